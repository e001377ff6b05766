"""The rows that calibrate a Guarantee: set aside before anything is learned, and looked at once, at the end."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.data.labels import check_labels_known, plain_labels
from emsco.data.splits import check_columns
from emsco.data.table import BlankedTable, Rows, Table, check_size, is_missing
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidTargetError, RareClassWarning, warn
from emsco.promises.policy import ThresholdPolicy


@dataclass(frozen=True, eq=False)
class CalibrationRows:
    """Rows that neither training nor search sees.

    Attributes
    ----------
    table : Table
    rows : slice or ndarray of int
        Which of its rows.
    truth : ndarray of shape (n_rows,)
        Class indices, -1 where the class is not trained: such a row can only get a wrong label.
    given : bool
        Whether they were given to fit; else they are a share of its rows.
    """

    table: Table
    rows: Rows
    truth: IntArray
    given: bool


@dataclass(frozen=True, eq=False)
class SetAside:
    """What is left to learn from, once the calibration rows are out of reach.

    Attributes
    ----------
    table : Table
        With calibration rows blanked.
    learn : slice or ndarray of int
        Rows to learn from.
    codes, classes : ndarray
        Class indices of all rows of the table, and the classes of those to learn from.
    calibration : CalibrationRows or None
    """

    table: Table
    learn: Rows
    codes: IntArray
    classes: NDArray[Any]
    calibration: CalibrationRows | None


def set_aside(
    policy: ThresholdPolicy,
    table: Table,
    codes: IntArray,
    classes: NDArray[Any],
    X_cal: Any,
    y_cal: Any,
    rng: np.random.Generator,
) -> SetAside:
    """Take the calibration rows out, if thresholds are calibrated.

    They are drawn without looking at their classes: rows of the same kind as new ones, so that errors are binomial.
    """
    if (X_cal is None) != (y_cal is None):
        raise InvalidInputError("give X_cal and y_cal together, or neither.")
    if policy.set_aside is None:
        if X_cal is not None:
            raise InvalidParameterError(
                "calibrates a promise, but nothing is promised; leave it out, or fit with threshold=Guarantee(...).",
                parameter="X_cal",
            )
        return SetAside(table, slice(None), codes, classes, None)
    if X_cal is not None:
        other = X_cal if isinstance(X_cal, Table) else Table(X_cal)
        check_size(other)
        check_columns(other, table, "X_cal")
        truth = _codes_of(y_cal, classes, other.n_rows)
        return SetAside(table, slice(None), codes, classes, CalibrationRows(other, slice(None), truth, given=True))
    n_calibration = max(round(table.n_rows * policy.set_aside), 1)
    shuffled = rng.permutation(table.n_rows)
    rows, learn = np.sort(shuffled[:n_calibration]), np.sort(shuffled[n_calibration:])
    trained = np.bincount(codes[learn], minlength=classes.size) > 0
    if trained.sum() < 2:
        raise InvalidTargetError(
            f"of {table.n_rows} rows, {n_calibration} calibrate, and the rest holds one class only; add rows, or give "
            "X_cal and y_cal."
        )
    if not trained.all():
        warn(
            f"all rows of the classes {classes[~trained].tolist()} calibrate, so these classes are never predicted; "
            "add rows of them.",
            RareClassWarning,
        )
    codes = np.where(trained, np.cumsum(trained) - 1, -1)[codes]
    calibration = CalibrationRows(table, rows, codes[rows], given=False)
    return SetAside(BlankedTable(table, rows), learn, codes, classes[trained], calibration)


def n_shared_rows(rows: CalibrationRows, table: Table) -> int:
    """Return how many given calibration rows are, cell by cell, also rows of the training table.

    Rows may be alike by chance, in tables of few categories even most of them. That is 0 if no more calibration rows
    have a twin among the training rows than training rows have one among themselves.
    """
    if not rows.given:
        return 0
    marks = np.zeros(table.n_rows + rows.table.n_rows, dtype=np.uint64)
    for i in range(len(table.names)):
        cells = [*table.column(i).tolist(), *rows.table.column(i).tolist()]
        position: dict[Any, int] = {}
        codes = [position.setdefault(None if is_missing(cell) else cell, len(position)) for cell in cells]
        marks = marks * np.uint64(0x9E3779B97F4A7C15) + np.array(codes, dtype=np.uint64) + np.uint64(1)
    known, first, n_alike = np.unique(marks[: table.n_rows], return_inverse=True, return_counts=True)
    by_chance = float((n_alike[first] > 1).mean())
    shared = int(np.isin(marks[table.n_rows :], known).sum())
    n = rows.table.n_rows
    return shared if shared / n > by_chance + 3 * np.sqrt(by_chance * (1 - by_chance) / n) + 1 / n else 0


def _codes_of(y: Any, classes: NDArray[Any], n_rows: int) -> IntArray:
    """Return labels as class indices, -1 where the class was not trained."""
    labels = plain_labels(y)
    if labels.shape != (n_rows,):
        raise InvalidTargetError(
            f"has the shape {labels.shape}, X_cal has {n_rows} rows; give one label per row.", parameter="y_cal"
        )
    check_labels_known(labels, "y_cal")
    position = {label: code for code, label in enumerate(classes.tolist())}
    codes = np.array([position.get(label, -1) for label in labels.tolist()], dtype=np.int64)
    if (codes < 0).all():
        raise InvalidTargetError(f"holds none of the classes {classes.tolist()} that y holds.", parameter="y_cal")
    return codes
