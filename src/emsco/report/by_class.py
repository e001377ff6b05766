"""What becomes of each class, as plain numbers for the page, within a bound on their number."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from emsco.scoring.classes import precision_of, recall_intervals, recall_of

_MOST_CLASSES = 20  # a larger table is unreadable, and there is one per point
_MOST_COUNTS = 200_000  # in the tables of all points; of more, those of the shortlist alone are told


def told_by_class(n_points: int, n_classes: int, listed: Iterable[int]) -> set[int]:
    """Return the points whose tables are told: all, or those of a list if all are too many."""
    if n_points * n_classes * (n_classes + 1) <= _MOST_COUNTS:
        return set(range(n_points))
    return set(listed)


def class_tables(confusion: Any) -> dict[str, Any]:
    """Return the tables of one confusion, (n_classes, n_classes + 1); None: of one that is not told.

    Returns
    -------
    dict
        ``confusion``: the counts, or None if there are more than 20 classes. ``by_class``: a row for each class, or
        for the 20 with the least recall: its position, its cases, those that get its label, recall, both ends of the
        95 % interval of the recall, precision, and the cases without a label. None where a figure is undefined.
    """
    if confusion is None:
        return {"confusion": None, "by_class": None}
    counts = np.asarray(confusion, dtype=np.int64)
    recall, precision = recall_of(counts), precision_of(counts)
    low, high = recall_intervals(counts)
    shown = np.sort(np.argsort(np.nan_to_num(recall, nan=2.0), kind="stable")[:_MOST_CLASSES])
    rows = [
        [
            t, int(counts[t].sum()), int(counts[t, t]), _share(recall[t]), _share(low[t]), _share(high[t]),
            _share(precision[t]), int(counts[t, -1]),
        ]
        for t in shown.tolist()
    ]  # fmt: skip
    return {"confusion": counts.tolist() if len(counts) <= _MOST_CLASSES else None, "by_class": rows}


def _share(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.4g}")
