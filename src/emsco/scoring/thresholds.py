"""The thresholds of a point in words: when a case leaves early, and what becomes of the others."""

from collections.abc import Sequence
from typing import Any

from emsco.designs.branched import Branched
from emsco.designs.partition import stage_counts
from emsco.scoring.rejection import NEVER, RejectRule


def rule_words(rule: RejectRule, n_stages: int, classes: Sequence[Any]) -> str:
    """Return when a design of so many stages gives a label.

    Examples
    --------
    >>> rule_words(RejectRule(((0.97,), (0.0,))), 2, ["well", "sick"])
    'early exit at 97 % confidence; all others get a label'
    >>> rule_words(RejectRule(((0.97,), (0.8,))), 3, ["well", "sick"])
    'a label needs 97 % (stage 1), 80 % (from stage 2 on); the others get none'
    >>> rule_words(RejectRule(((0.75,),)), 2, ["well", "sick"])
    'a label needs 75 % confidence; the others get none'
    >>> rule_words(RejectRule(((0.0,),)), 1, ["well", "sick"])
    'every case gets a label'
    """
    bars = rule.matrix(n_stages)
    if bars.shape[1] > 1:
        return f"a label needs {rule.in_words(classes)}; the others get none"
    any_top = 1 / len(classes) if len(classes) else 0.0  # no top class is less probable
    first, last = float(bars[0, 0]), float(bars[-1, 0])
    if first <= any_top:
        return "every case gets a label" + (" at the first stage" if n_stages > 1 else "")
    if (bars >= NEVER).all():
        return "no case gets a label"
    if (bars == last).all():
        return f"a label needs {_share(last)} confidence; the others get none"
    rest = "all others get a label" if last <= any_top else "the others get none"
    if (bars[:-1] == first).all():
        final = "" if last <= any_top else f"at the last stage, a label needs {_share(last)}; "
        return f"early exit at {_share(first)} confidence; {final}{rest}"
    steps = RejectRule.of((bars[:-1] if last <= any_top else bars).tolist()).in_words(classes)
    return f"a label needs {steps}; {rest}"


def rules_words(branched: Branched, classes: Sequence[Any]) -> str:
    """Return when a design that branches gives a label: once, if all branches say the same.

    A branch whose rows leave at the root has one stage.
    """
    depths = stage_counts(branched.rows).tolist()
    said = [rule_words(rule, depth, classes) for rule, depth in zip(branched.rules, depths, strict=True)]
    if len(set(said)) == 1:
        return said[0]
    return "; ".join(f"[{b + 1}] {words}" for b, words in enumerate(said))


def _share(bar: float) -> str:
    return "no" if bar >= NEVER else f"{100 * bar:.4g} %"
