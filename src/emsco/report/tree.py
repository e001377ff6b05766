"""Designs that branch, as records and as lines of a table: the root, then what each branch buys, and for whom."""

from collections.abc import Sequence
from typing import Any

from emsco.deployed.branching import BranchedCascade
from emsco.deployed.evaluation import Result
from emsco.deployed.model import Deployed
from emsco.designs.branched import Branched

Row = tuple[str, ...]


def tree_record(model: Deployed, point: int, result: Result | None = None) -> dict[str, Any] | None:
    """Return a point that branches as plain data, None for a chain.

    Returns
    -------
    dict
        ``rows``, how many cases were counted, None if none were; ``counted``, on which rows. ``root`` and each entry of
        ``branches`` have ``stages``, each with what it ``buys``, its ``price``, what is ``paid`` by then and, if cases
        were counted, how many ``reached`` it and were ``answered`` there, and of how many of these the label is
        ``right`` (None if unknown). A branch also has ``words``, ``n_rows`` and ``rejected``.
    """
    branched = model.branches[point] if model.branches else None
    if branched is None:
        return None
    tree = model.tree_of(branched)
    counts = _of_result(result) if result is not None else _of_figures(branched)
    words = branched.route.words(model.column_names, model.classes.tolist())
    parts = [_stages(tree, b, None if counts is None else counts[b]) for b in range(branched.n_branches)]
    branches = [
        {
            "words": words[b],
            "experts": branched.experts[b],
            "stages": part[1:],
            "n_rows": None if counts is None else part[0]["reached"],
            "rejected": None if counts is None else counts[b][2],
        }
        for b, part in enumerate(parts)
    ]
    root = {**parts[0][0]}
    for name in () if counts is None else ("reached", "answered", "right"):
        values = [part[0][name] for part in parts]
        root[name] = None if None in values else sum(values)
    n_rows = None if counts is None else root["reached"]
    said = "" if counts is None else "test" if result is not None else "validation"
    return {"rows": n_rows, "counted": said, "root": root, "branches": branches}


Counts = tuple[Sequence[int], Sequence[int | None], int]  # of each stage labels and right ones, and those without


def _of_result(result: Result) -> list[Counts]:
    counts: list[Counts] = []
    start = 0
    for depth, silent in zip(result.branches, result.silent, strict=True):
        part = slice(start, start + depth)
        counts.append((result.answered[part], result.right[part], silent))
        start += depth
    return counts


def _of_figures(branched: Branched) -> list[Counts] | None:
    figures = branched.figures
    if figures is None:
        return None
    counts: list[Counts] = []
    for b, row in enumerate(branched.rows):
        depth = int(row.max()) + 1
        silent = int(figures.reached[b, 0] - figures.n_conclusive[b])
        answered = figures.left[b, :depth].tolist()
        answered[-1] -= silent
        counts.append((answered, [None] * depth, silent))
    return counts


def answered_by_depth(branched: Branched, n_stages: int) -> list[int] | None:
    """Return how many validation samples get a label at each stage, all branches together; None if unknown."""
    counts = _of_figures(branched)
    if counts is None:
        return None
    return [sum(int(answered[j] or 0) for answered, _, _ in counts if j < len(answered)) for j in range(n_stages)]


def _stages(tree: BranchedCascade, b: int, counts: Counts | None) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    chain = tree.chains[b]
    waiting = 0 if counts is None else sum(counts[0]) + counts[2]
    for j, (stage, paid) in enumerate(zip(chain.stages, chain.paid.tolist(), strict=True)):
        record: dict[str, Any] = {"buys": list(stage.features), "price": stage.price, "paid": paid}
        if counts is not None:
            record |= {"reached": waiting, "answered": counts[0][j], "right": counts[1][j]}
            waiting -= counts[0][j]
        records.append(record)
    return records


def stage_rows(model: Deployed, result: Result | None) -> list[Row]:
    """Return a line per stage of a chain: its number, what it buys, its price, and what became of the test cases."""
    rows, waiting = [], result.n_rows if result else 0
    for j, stage in enumerate(model.stages):
        figures: list[str] = []
        if result is not None:
            figures = [str(waiting), str(result.answered[j]), str(result.right[j])]
            waiting -= result.answered[j]
        rows.append((str(j + 1), ", ".join(stage.features), f"{stage.price:,.6g}", *figures))
    if result is not None:
        rows.append(("", "inconclusive", "", str(waiting), "", ""))
    return rows


def tree_rows(model: Deployed, result: Result | None) -> list[Row]:
    """Return the same lines for a design that branches: that of the root, then those of each branch below its words."""
    record = tree_record(model, model.point, result)
    assert record is not None

    def line(number: int, stage: dict[str, Any]) -> Row:
        figures = [str(stage[name]) for name in ("reached", "answered", "right")] if result is not None else []
        return (str(number), ", ".join(stage["buys"]), f"{stage['price']:,.6g}", *figures)

    rows = [line(1, record["root"])]
    for b, branch in enumerate(record["branches"]):
        counts = [str(branch["n_rows"]), "", ""] if result is not None else []
        rows.append(("", f"[{b + 1}] if {branch['words']}:", "", *counts))
        rows += [line(j + 2, stage) for j, stage in enumerate(branch["stages"])]
        if not branch["stages"]:
            rows.append(("", "nothing more", "", *([""] * 3 if result is not None else [])))
    if result is not None:
        rows.append(("", "inconclusive", "", str(result.n_rejected), "", ""))
    return rows
