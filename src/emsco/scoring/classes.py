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
from emsco.scoring.intervals import binomial_intervals

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
