"""What becomes of each class: counts by true class and label in, recall, precision and the base rate out.

A confusion has a row per true class, a column per label, and a last column for the samples without a label. Arrays of
any number of confusions, (..., n_classes, n_classes + 1), give arrays of shape (..., n_classes).
"""

from collections.abc import Mapping, Sequence
from reprlib import repr as shorten
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.exceptions import InvalidParameterError
from emsco.markup import Sheet
from emsco.scoring.intervals import binomial_intervals
from emsco.scoring.words import NEVER_FOUND, tenths

_MOST_LABELS = 6  # columns of labels beside each other
_MOST_ROWS = 20  # classes in a table
_MOST_NAMED = 3  # classes in a sentence; of more, only the number is given


def recall_of(confusion: ArrayLike) -> FloatArray:
    """Return the share of each class that gets its own label; a sample without a label is not found.

    NaN for a class without samples.

    Examples
    --------
    >>> recall_of([[8, 1, 1], [2, 3, 5]])
    array([0.8, 0.3])
    """
    counts = _counts(confusion)
    return _share(_right(counts), counts.sum(axis=-1))


def precision_of(confusion: ArrayLike) -> FloatArray:
    """Return the share of each label that is correct; NaN for a label that is never given.

    Examples
    --------
    >>> precision_of([[8, 1, 1], [2, 3, 5]])
    array([0.8 , 0.75])
    """
    counts = _counts(confusion)
    return _share(_right(counts), counts[..., :-1].sum(axis=-2))


def recall_intervals(confusion: ArrayLike, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """Return the ends of the exact confidence intervals of the recalls (Clopper and Pearson)."""
    counts = _counts(confusion)
    return binomial_intervals(_right(counts), counts.sum(axis=-1), level)


def worst_recall(confusion: ArrayLike) -> FloatArray:
    """Return the least recall of a class that has samples, (...); NaN if there are no samples.

    Examples
    --------
    >>> float(worst_recall([[8, 1, 1], [2, 3, 5]]))
    0.3
    """
    recall = recall_of(confusion)
    least = np.min(recall, axis=-1, initial=np.inf, where=~np.isnan(recall))
    return np.asarray(np.where(np.isinf(least), np.nan, least))


def never_found(confusion: ArrayLike) -> NDArray[np.bool_]:
    """Return which classes have samples, none of which gets its own label."""
    counts = _counts(confusion)
    return np.asarray((_right(counts) == 0) & (counts.sum(axis=-1) > 0))


def class_columns(
    classes: Sequence[Any], recall: FloatArray, low: FloatArray, high: FloatArray, precision: FloatArray
) -> dict[str, FloatArray]:
    """Return figures by class, each of shape (n_rows, n_classes), as columns of a table with names."""
    columns = {}
    for c, label in enumerate(classes):
        columns[f"recall_{label}"] = recall[:, c]
        columns[f"recall_{label}_low"], columns[f"recall_{label}_high"] = low[:, c], high[:, c]
        columns[f"precision_{label}"] = precision[:, c]
    return columns


def base_rate(class_counts: ArrayLike, classes: Sequence[Any]) -> str:
    """Return what always answering the most frequent class would score, as a sentence.

    Examples
    --------
    >>> base_rate([925, 75], ["normal", "sick"])
    'Always answering "normal": 92.5 % correct, 0 % of "sick" found.'
    >>> base_rate([5, 1, 1, 1, 1], "abcde")
    'Always answering "a": 55.6 % correct, 0 % of the 4 other classes found.'
    """
    counts = np.asarray(class_counts)
    top = int(counts.argmax())
    others = [f'"{label}"' for i, label in enumerate(classes) if i != top and counts[i]]
    share = 100 * counts[top] / max(counts.sum(), 1)
    missed = " and ".join(filter(None, [", ".join(others[:-1]), *others[-1:]]))
    if len(others) > _MOST_NAMED:
        missed = f"the {len(others)} other classes"
    return f'Always answering "{classes[top]}": {share:.1f} % correct' + (
        f", 0 % of {missed} found." if missed else "."
    )


def class_sheet(confusion: ArrayLike, classes: Sequence[Any], width: int | None = None) -> Sheet:
    """Return recall with its 95 % interval, precision and counts by label, one row per true class.

    A class that is never found is marked, not only by a colour. Of many classes, those with the least recall are shown.

    Parameters
    ----------
    confusion : array-like of shape (n_classes, n_classes + 1)
    classes : sequence
        Labels, in order.
    width : int or None
        Characters per line. In a narrow table an interval is below its recall; in a narrower one, or with many
        classes, the counts by label are left out. None: no limit.

    Examples
    --------
    >>> print(class_sheet([[95, 5, 0], [10, 0, 0]], ["well", "sick"]).to_text(100))
    class  cases              recall  precision  as well  as sick  no label
    well     100  95.0 % (88.7-98.4)     90.5 %       95        5         0
    sick      10  0.0 % ! (0.0-30.8)      0.0 %       10      0 !         0
    ! a class is never found.
    """
    counts, labels = _counts(confusion), [str(label) for label in classes]
    if len(labels) <= _MOST_LABELS:
        for joint in (" ", "\n"):
            sheet = _class_sheet(counts, labels, joint, by_label=True)
            if width is None or sheet.width <= width:
                return sheet
    return _class_sheet(counts, labels, " ", by_label=False)


def _class_sheet(counts: IntArray, labels: list[str], joint: str, *, by_label: bool) -> Sheet:
    recall, precision, never = recall_of(counts), precision_of(counts), never_found(counts)
    low, high = recall_intervals(counts)
    shown = np.sort(np.argsort(np.nan_to_num(recall, nan=2.0), kind="stable")[:_MOST_ROWS])
    rows = []
    for t in shown.tolist():
        mark = " !" if never[t] else ""
        span = f"{joint}({100 * low[t]:.1f}-{100 * high[t]:.1f})" if counts[t].sum() else ""
        cells = [labels[t], f"{counts[t].sum():,}", f"{tenths(recall[t])}{mark}{span}", tenths(precision[t])]
        if by_label:
            cells += [f"{n:,}{mark if p == t else ''}" for p, n in enumerate(counts[t, :-1])]
        rows.append((*cells, f"{counts[t, -1]:,}"))
    columns = [f"as {label}" for label in labels] if by_label else []
    notes = [NEVER_FOUND] if never[shown].any() else []
    if shown.size < len(labels):
        notes.append(f"The {shown.size} of {len(labels)} classes with the least recall.")
    return Sheet(("class", "cases", "recall", "precision", *columns, "no label"), tuple(rows), (0,), (), tuple(notes))


def shares_by_class(shares: Any, classes: Sequence[Any], parameter: str) -> dict[int, float]:
    """Return a least share by the position of its class.

    Parameters
    ----------
    shares : mapping
        From a label, or its text, to a share.
    classes : sequence
        All labels, in order.
    parameter : str
        Name of the parameter, for errors.
    """
    position = {str(label): i for i, label in enumerate(classes)}
    position |= {label: i for i, label in enumerate(classes)}
    unknown = [label for label in shares if label not in position]
    if unknown:
        raise InvalidParameterError(
            f"names {shorten(unknown)}, but the classes are {shorten(list(classes))}.", parameter=parameter
        )
    return {position[label]: float(share) for label, share in shares.items()}


def check_shares(shares: Any, parameter: str) -> None:
    """Raise unless this is a share between 0 and 1, or a mapping of labels to such shares."""
    if isinstance(shares, Mapping):
        if not shares:
            raise InvalidParameterError("is empty; give a share, or one per class.", parameter=parameter)
        values = list(shares.values())
    else:
        values = [shares]
    for value in values:
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not (number and 0 <= value <= 1):
            raise InvalidParameterError(
                f"must be a share between 0 and 1, such as 0.9, or one per class; got {shares!r}.", parameter=parameter
            )


def _counts(confusion: ArrayLike) -> IntArray:
    counts = np.asarray(confusion, dtype=np.int64)
    return counts if counts.ndim > 1 else np.zeros((0, 1), dtype=np.int64)  # an empty tuple: no classes


def _right(counts: IntArray) -> IntArray:
    return np.diagonal(counts, axis1=-2, axis2=-1)


def _share(n_hits: IntArray, n: IntArray) -> FloatArray:
    return np.asarray(np.divide(n_hits, n, out=np.full(n.shape, np.nan), where=n > 0))
