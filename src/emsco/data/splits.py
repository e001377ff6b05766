"""Which rows train and which judge."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.data.labels import count_classes
from emsco.data.table import Table
from emsco.exceptions import InvalidInputError, InvalidParameterError, shown


def split_rows(
    codes: NDArray[np.int64], fraction: Any, rng: np.random.Generator, classes: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return training and validation rows, each class in proportion and present in both.

    A class of a single row can only be trained; that is warned of.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,)
        Class indices.
    fraction : float
        Share of the rows of each class that validates, strictly between 0 and 1.
    rng : Generator
    classes : ndarray of shape (n_classes,)
        Labels, to name a class in an error.
    """
    if isinstance(fraction, bool) or not isinstance(fraction, float | np.floating) or not 0 < fraction < 1:
        is_list = isinstance(fraction, list | tuple)
        found = f"a list of {len(fraction)}; give the splitter, not its splits" if is_list else shown(fraction)
        raise InvalidParameterError(
            "must be a share of the rows strictly between 0 and 1, such as 1/3, a whole number of folds, such as 5, or "
            f"(in Python) a splitter; got {found}.",
            parameter="validation",
        )
    counts = count_classes(codes, classes)
    validates = np.zeros(codes.size, dtype=np.bool_)
    for code, count in enumerate(counts):
        n_validation = min(max(int(np.floor(count * float(fraction) + 0.5)), 1), int(count) - 1)
        validates[rng.permutation(np.flatnonzero(codes == code))[:n_validation]] = True
    return np.flatnonzero(~validates), np.flatnonzero(validates)


def check_columns(table: Table, fitted: Table, name: str = "X_val") -> None:
    """Raise unless a second table given to fit has the columns of the first, in the same order."""
    if table.names != fitted.names:
        raise InvalidInputError(
            f"{name} has the columns {list(table.names)}, X has {list(fitted.names)}; give both the same columns."
        )


Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def make_folds(validation: Any, codes: IntArray, classes: NDArray[Any], rng: np.random.Generator) -> Folds:
    """Return the folds of a cross-validation: by number, each class in proportion, or those of a splitter.

    A class of a single row is always trained and never judged; that is warned of.
    """
    n_rows = codes.size
    if not hasattr(validation, "split"):
        return _stratified(int(validation), codes, classes, rng)
    try:
        pairs: Iterable[Any] = list(validation.split(np.zeros((n_rows, 1)), codes))
        folds = [(np.asarray(train, dtype=np.intp), np.asarray(judges, dtype=np.intp)) for train, judges in pairs]
    except Exception as error:  # of somebody else's splitter
        raise InvalidParameterError(f"{validation!r} cannot split {n_rows} rows: {error}") from error
    if not folds:
        raise InvalidParameterError(f"{validation!r} gives no folds.")
    last = max(int(rows.max(initial=0)) for fold in folds for rows in fold)
    if last >= n_rows:
        raise InvalidParameterError(
            f"{validation!r} knows a row {last}, but only {n_rows} rows are split. If a promise has set others aside "
            "to calibrate it, give these as X_cal and y_cal."
        )
    for train, judges in folds:
        absent = np.setdiff1d(np.arange(classes.size), codes[train])
        if absent.size or not judges.size or np.intersect1d(train, judges).size:
            raise InvalidParameterError(
                f"a fold of {validation!r} has {judges.size} rows that judge, {np.intersect1d(train, judges).size} of "
                f"which train too, and none of the classes {classes[absent].tolist()} to train on; use a stratified "
                "splitter, or fewer folds."
            )
    n_judged = np.bincount(np.concatenate([judges for _, judges in folds]), minlength=n_rows)
    if n_judged.max() > 1:
        raise InvalidParameterError(
            f"{validation!r} lets {int((n_judged > 1).sum())} rows judge more than once, which would make figures look "
            "surer than they are; use a splitter with which each row judges once at most, such as StratifiedKFold."
        )
    return folds


def _stratified(n_folds: int, codes: IntArray, classes: NDArray[Any], rng: np.random.Generator) -> Folds:
    counts = count_classes(codes, classes)
    number = np.full(codes.size, -1)
    dealt = 0
    for code, count in enumerate(counts):
        if count > 1:
            number[rng.permutation(np.flatnonzero(codes == code))] = (dealt + np.arange(count)) % n_folds
            dealt += count
    return [(np.flatnonzero(number != i), np.flatnonzero(number == i)) for i in range(n_folds) if (number == i).any()]


def is_folds(validation: Any) -> bool:
    """Return whether rows are to take turns: a whole number of at least 2, or a splitter."""
    if hasattr(validation, "split") and not isinstance(validation, str):
        return True
    whole = isinstance(validation, int | np.integer) and not isinstance(validation, bool)
    return bool(whole and validation >= 2)
