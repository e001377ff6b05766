"""What to expect on new rows of the point that fit chose: as a record, and in words."""

from typing import Any

from emsco.deployed.evaluation import Evaluation
from emsco.deployed.model import Deployed
from emsco.scoring.outlook import Outlook
from emsco.scoring.words import tenths

_FIGURES = ("accuracy", "coverage", "mean_cost")
_ROUNDING = 1e-9  # a figure at the end of an interval is within


def outlook_record(model: Deployed, evaluation: Evaluation | None) -> dict[str, Any] | None:
    """Return the expected figures, with intervals; None if unknown.

    Returns
    -------
    dict
        ``point``, that fit chose; ``rows``, that the figures rest on; ``coverage``, ``accuracy`` and ``mean_cost``,
        each with its interval in the long run; ``recall`` by class, with the counts; ``new_rows``: for as many rows as
        were evaluated, the interval of each figure, the figure itself, and whether it is within. None without an
        evaluation.
    """
    outlook = model.outlook
    if outlook is None:
        return None
    labels = [str(label) for label in model.classes.tolist()]
    counts = zip(labels, outlook.recall, outlook.n_right, outlook.n_rows, strict=True)
    return {
        "point": model.chosen,
        "rows": sum(outlook.n_rows),
        **{
            name: {"value": getattr(outlook, name), "interval_95": list(outlook.interval(name))} for name in _FIGURES
        },
        "recall": {
            label: {"value": share, "right": right, "rows": n}
            for label, share, right, n in counts
        },
        "new_rows": None if evaluation is None else _new_rows(outlook, evaluation, model.chosen),
    }  # fmt: skip


def _new_rows(outlook: Outlook, evaluation: Evaluation, point: int) -> dict[str, Any]:
    """Return the intervals for as many new rows as were evaluated, beside the figures of these."""
    result, record = evaluation.points[point], {}
    for name in _FIGURES:
        low, high = outlook.interval(name, n_rows=evaluation.n_rows)
        found = getattr(result, name)
        within = bool(low - _ROUNDING * max(low, 1) <= found <= high + _ROUNDING * max(high, 1))
        record[name] = {"interval_95": [low, high], "found": found, "within": within}
    return {"rows": evaluation.n_rows, **record}


def outlook_words(record: dict[str, Any]) -> list[str]:
    """Return the sentences of a record."""
    new = record["new_rows"]
    where = "new cases, in the long run" if new is None else f"{new['rows']:,} new cases"
    spans = [
        f"{name.replace('_', ' ')} {span(name, (record if new is None else new)[name]['interval_95'])}"
        for name in _FIGURES
    ]
    words = [
        f"Expected on {where} (95 % intervals; from {record['rows']:,} training rows, each labelled by a design that "
        f"was chosen and trained without it): {', '.join(spans)}."
    ]
    return words if new is None else [*words, _verdict(new)]


def _verdict(new: dict[str, Any]) -> str:
    """Return whether the figures of the test are as expected."""
    outside = [name for name in _FIGURES if not new[name]["within"]]
    if not outside:
        return "The test figures are within these intervals."
    found = []
    for name in outside:
        low = new[name]["interval_95"][0]
        side = "below" if new[name]["found"] < low else "above"  # an undefined accuracy is neither
        found.append(f"{name.replace('_', ' ')} {shown(name, new[name]['found'])}, {side} its interval")
    return f"Not as expected on the test cases: {'; '.join(found)}. By chance alone, about one figure in twenty is."


def span(name: str, ends: list[float]) -> str:
    """Return an interval in words."""
    low, high = (shown(name, end) for end in ends)
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def shown(name: str, value: float) -> str:
    """Return a figure as text."""
    return f"{value:,.2f}" if name == "mean_cost" else tenths(value)
