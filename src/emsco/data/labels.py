"""Labels: checked, counted, and turned into class indices."""

from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.data.table import is_missing
from emsco.exceptions import InvalidTargetError, RareClassWarning, shown, warn

_FEW_ROWS = 5  # of a class; fewer are warned of


def check_target(y: Any, n_rows: int) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return labels as class indices, and the classes, sorted.

    Raises
    ------
    InvalidTargetError
        Labels are missing, of the wrong number, continuous, or all of one class.
    """
    from sklearn.utils.multiclass import check_classification_targets  # here: serving does without scikit-learn
    from sklearn.utils.validation import column_or_1d

    if y is None:
        raise InvalidTargetError("This classifier requires y to be passed, but the target y is None.")
    try:
        labels = column_or_1d(plain_labels(y), warn=True)
    except ValueError as error:
        raise InvalidTargetError(f"must be one label per row: {error}", parameter="y") from error
    if labels.size != n_rows:
        raise InvalidTargetError(
            f"has {labels.size} labels, but X has {n_rows} rows; give one label per row.", parameter="y"
        )
    if labels.dtype.kind in "mM":
        raise InvalidTargetError("holds dates or durations; give class labels.", parameter="y")
    check_labels_known(labels)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # many classes may be few rows; what matters is checked below
            check_classification_targets(labels)
        classes, codes = np.unique(labels, return_inverse=True)
    except (ValueError, TypeError) as error:
        raise InvalidTargetError(f"cannot be used as class labels: {error}", parameter="y") from error
    if classes.size < 2:
        raise InvalidTargetError(
            f"holds one class only, {shown(classes.tolist())}; two or more classes are needed.", parameter="y"
        )
    if classes.size > 256:
        raise InvalidTargetError(
            f"holds {classes.size} classes; at most 256 are supported. Is it a number to regress?", parameter="y"
        )
    return codes.astype(np.int64), classes


def check_labels_known(labels: NDArray[Any], name: str = "y") -> None:
    """Raise if any label is missing."""
    if labels.dtype.kind == "f":
        bad = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        bad = np.array([is_missing(label) for label in labels.tolist()], dtype=np.bool_)
    else:
        return
    if bad.any():
        raise InvalidTargetError(
            f"{name} has {int(bad.sum())} missing or infinite labels (first in row {int(bad.argmax())}), as in Input "
            f"{name} contains NaN; drop these rows: a row without a label teaches nothing."
        )


def known_codes(y: Any, classes: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """Return validation labels as indices of the training classes; both must hold the same classes."""
    try:
        codes, found = check_target(y, n_rows)
    except InvalidTargetError as error:
        raise InvalidTargetError(f"in the validation part: {error}") from error
    unknown = sorted(set(found.tolist()) - set(classes.tolist()), key=str)
    absent = sorted(set(classes.tolist()) - set(found.tolist()), key=str)
    if unknown:
        raise InvalidTargetError(
            f"the validation part holds the classes {unknown}, which the training part does not; a class that is never "
            "trained can never be predicted. Move rows of them to the training part, or drop them."
        )
    if absent:
        raise InvalidTargetError(
            f"the validation part has no row of the classes {absent}; designs cannot be judged on a class that is not "
            "there. Move rows of them to the validation part, or let fit split the rows itself."
        )
    return codes  # both are sorted and equal as sets, so the indices agree


def count_classes(codes: NDArray[np.int64], classes: NDArray[Any]) -> NDArray[np.int64]:
    """Return how many rows each class has, to be split; raise if none can be, and warn of those that cannot."""
    counts = np.bincount(codes, minlength=classes.size)
    if counts.max() < 2:
        raise InvalidTargetError(
            f"each of the {classes.size} classes has a single row, so none is left to validate; add rows."
        )
    if counts.min() < 2:
        warn(
            f"the classes {classes[counts < 2].tolist()} have a single row: it trains, so the designs are not judged "
            "on these classes. Add rows of them, or drop them.",
            RareClassWarning,
        )
    few = (counts >= 2) & (counts < _FEW_ROWS)
    if few.any():
        found = ", ".join(
            f"{label!r} ({n})" for label, n in zip(classes[few].tolist(), counts[few].tolist(), strict=True)
        )
        warn(
            f"fewer than {_FEW_ROWS} rows have the class {found}: figures of so few say little, and designs may ignore "
            "them. Add rows, or drop these.",
            RareClassWarning,
        )
    return counts


def plain_labels(y: Any) -> NDArray[Any]:
    """Return labels of any array-like, pandas or polars type as a NumPy array."""
    module = type(y).__module__.partition(".")[0]
    if module == "pandas":
        plain = y.ndim > 1 or isinstance(y.dtype, np.dtype)
        y = y.to_numpy() if plain else np.asarray(y.astype(object))
    elif module == "polars":
        y = np.array(y.to_list(), dtype=object) if hasattr(y, "to_list") else y.to_numpy()
    if isinstance(y, list | tuple) and any(isinstance(label, str) for label in y):
        y = np.array(y, dtype=object)  # NumPy would turn the numbers of a mixed list into text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            array = np.asarray(y)
        except (ValueError, Warning) as error:
            raise InvalidTargetError(f"cannot be read as labels: {error}", parameter="y") from error
    return _unboxed(array) if array.dtype.kind == "O" else array


def _unboxed(labels: NDArray[Any]) -> NDArray[Any]:
    """Return object labels of one kind in their own type, so that classes look like what the user has."""
    flat = labels.ravel().tolist()
    if flat and all(isinstance(label, str) for label in flat):
        return labels.astype(np.str_)
    kinds = {type(label) for label in flat}
    if kinds and (kinds <= {int} or kinds <= {bool} or kinds <= {int, float}):
        return np.array(labels.tolist())
    return labels


def plain_classes(classes: NDArray[Any]) -> list[Any]:
    """Return class labels as plain Python, which JSON can hold."""
    return [label.item() if isinstance(label, np.generic) else label for label in classes.tolist()]
