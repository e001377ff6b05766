"""Why a case got its answer: the confidence after each stage, the runner-up, and what each feature contributed."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from emsco.arrays import FloatArray
from emsco.data.labels import plain_classes
from emsco.deployed.decide import Stage
from emsco.deployed.model import Deployed
from emsco.deployed.session import Session
from emsco.scoring.rejection import NEVER
from emsco.stages.base import outcomes_of


@dataclass(frozen=True)
class Passed:
    """A stage that a case has passed.

    Attributes
    ----------
    label : str, int, float or bool
        The most probable class.
    confidence : float
        Its probability.
    needed : float or None
        Confidence from which on this class is a decision; None: none is enough.
    cost : float
        Paid by then.
    """

    label: Any
    confidence: float
    needed: float | None
    cost: float


@dataclass(frozen=True)
class Contribution:
    """What a feature contributed to the answer of a stage: the difference to the same case without its value.

    Attributes
    ----------
    feature : str
    columns : tuple of str
    without : float
        Probability of the most probable class if the feature had not been available.
    log_odds : float or None
        By how much it changed the logarithm of the odds of that class against the runner-up; None: beyond measure.
    """

    feature: str
    columns: tuple[str, ...]
    without: float
    log_odds: float | None


@dataclass(frozen=True)
class Explanation:
    """What led to the answer of a session.

    Attributes
    ----------
    passed : tuple of Passed
        The stages passed, in order. The rest is of the last of them, and empty if there is none.
    probabilities : tuple of (label, float)
        Of every class, the most probable first.
    contributions : tuple of Contribution
        Of every feature bought, the largest first.
    """

    passed: tuple[Passed, ...]
    probabilities: tuple[tuple[Any, float], ...]
    contributions: tuple[Contribution, ...]


def explain(model: Deployed, session: Session) -> Explanation:
    """Return what led to the answer of a session of a model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import MultiStageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultiStageClassifier(design=[0, 0, 1, 1], costs=[1, 1, 5, 5], threshold=0.8).fit(X, y)
    >>> session = clf.session()
    >>> session.give({"x0": 6.1, "x1": 2.9, "x2": 4.7, "x3": None})
    >>> explanation = explain(clf.deployed_, session)
    >>> len(explanation.passed), explanation.contributions[0].feature
    (2, 'x2')
    """
    state = session.state
    given, n_passed = state["given"], state["stage"] + state["decided"]
    classes, rule = plain_classes(model.classes), model.rule
    passed: list[Passed] = []
    answers = np.empty((0, len(classes)))
    for j, stage in enumerate(model.stages[:n_passed]):
        answers = _answers(stage, _encoded(model, given))
        errors = model.itinerary.errors_of(given)
        (confidence,), (code,) = (values.tolist() for values in outcomes_of(answers, errors))
        bar = rule.bar(j, code)
        if errors is not None and code == len(classes):  # no answer
            code = int(errors.guess(answers)[0])
        passed.append(Passed(classes[code], confidence, None if bar >= NEVER else bar, float(model.paid[j])))
    if not passed:
        return Explanation((), (), ())
    order = np.argsort(-answers[0], kind="stable").tolist()
    return Explanation(
        tuple(passed),
        tuple((classes[k], float(answers[0, k])) for k in order),
        _contributions(model, n_passed, given, answers[0], order[0], order[1]),
    )


def _encoded(model: Deployed, given: Mapping[str, Any]) -> list[float]:
    """Return the encoded columns of the values that are there."""
    encoder = model.encoder
    encoded = [0.0] * encoder.n_encoded
    for code, start in zip(encoder.codes, encoder.starts.tolist(), strict=False):
        if code.name in given:
            code.encode_one(given[code.name], encoded, start)
    return encoded


def _answers(stage: Stage, *rows: list[float]) -> FloatArray:
    """Return the class probabilities of encoded rows."""
    return np.asarray(stage.model.predict_proba(np.array(rows)[:, stage.encoded_columns]), dtype=np.float64)


def _contributions(
    model: Deployed, n_passed: int, given: Mapping[str, Any], answer: FloatArray, top: int, second: int
) -> tuple[Contribution, ...]:
    prices, names = model.prices, model.column_names
    units = [u for u, stage in enumerate(model.design.tolist()) if 0 <= stage < n_passed]
    if not units:  # the empty design
        return ()
    columns = [tuple(names[c] for c in prices.unit_columns[u]) for u in units]
    rows = [_encoded(model, {**given, **dict.fromkeys(missing)}) for missing in columns]
    answers = _answers(model.stages[n_passed - 1], *rows)
    before = _log_odds(answer, top, second)
    found = []
    for u, inside, without in zip(units, columns, answers, strict=True):
        after = _log_odds(without, top, second)
        change = None if before is None or after is None else before - after
        found.append(Contribution(prices.unit_names[u], inside, float(without[top]), change))
    return tuple(sorted(found, key=lambda c: -np.inf if c.log_odds is None else -abs(c.log_odds)))


def _log_odds(probabilities: FloatArray, top: int, second: int) -> float | None:
    first, other = float(probabilities[top]), float(probabilities[second])
    return log(first / other) if first > 0 and other > 0 else None
