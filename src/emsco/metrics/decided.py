"""Metrics of decisions: which rows got a label, whether it is right, and what was paid."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emsco.arrays import BoolArray, FloatArray
from emsco.data.labels import plain_labels
from emsco.deployed.decide import Decisions
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidTargetError, shown
from emsco.scoring.objectives import Loss


def coverage_score(decisions: Decisions) -> float:
    """Return the share of the rows that got a label.

    Parameters
    ----------
    decisions : Decisions
        What ``clf.decide(X)`` returned.

    Returns
    -------
    float
    """
    return float(_checked(decisions).conclusive.mean())


def selective_accuracy(y_true: ArrayLike, decisions: Decisions) -> float:
    """Return the share of the labels given that are right; NaN if none was given.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
    decisions : Decisions

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import MultiStageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> decisions = MultiStageClassifier([0, 0, -1, -1]).fit(X[::2], y[::2]).decide(X[1::2])
    >>> print(f"{coverage_score(decisions):.2f} {selective_accuracy(y[1::2], decisions):.2f}")
    0.47 0.97
    """
    right = _right(y_true, decisions)
    return float(right.sum() / decisions.conclusive.sum()) if decisions.conclusive.any() else float("nan")


def recall_by_class(y_true: ArrayLike, decisions: Decisions) -> dict[Any, float]:
    """Return, for each class of ``y_true``, the share of its rows that got its label.

    A row without a label is not found: it counts against the recall of its class.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
    decisions : Decisions

    Returns
    -------
    dict
        Recalls by label, in the order of the labels.
    """
    right, truth = _right(y_true, decisions), _truth(y_true, decisions)
    return {label: float(right[truth == label].mean()) for label in np.unique(truth).tolist()}


def mean_cost(decisions: Decisions) -> float:
    """Return what a row paid for its features on average, rows without a label included.

    Parameters
    ----------
    decisions : Decisions

    Returns
    -------
    float
    """
    return float(_checked(decisions).cost.mean())


def money_per_case(
    y_true: ArrayLike,
    decisions: Decisions,
    errors: ArrayLike | Loss,
    reject: float | Sequence[float] = 0.0,
    *,
    labels: ArrayLike | None = None,
) -> float:
    """Return the mean price of a case: its features, and its label or the lack of one.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
    decisions : Decisions
    errors : array-like of shape (n_classes, n_classes), or Loss
        Price of each label in the unit of the feature prices: one row per true class, one column per label.
    reject : float or sequence of shape (n_classes,)
        Price of giving no label, such as that of an expert: one number, or one per true class. A ``Loss`` has its own.
    labels : array-like of shape (n_classes,) or None
        The classes that rows and columns of ``errors`` stand for. None: all labels in ``y_true`` and ``decisions``,
        sorted; give ``clf.classes_`` if these may lack a class.

    Returns
    -------
    float

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import MultiStageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> decisions = MultiStageClassifier([0, 0, -1, -1], costs=[2, 1, 1, 1]).fit(X, y).decide(X)
    >>> free = money_per_case(y, decisions, errors=np.zeros((3, 3)))
    >>> free == mean_cost(decisions) == 3.0
    True
    """
    loss = errors if isinstance(errors, Loss) else Loss(errors, reject)
    truth, guesses = _truth(y_true, decisions), np.asarray(decisions.label.data)
    classes = np.unique(np.concatenate([truth, guesses])) if labels is None else plain_labels(labels)
    if classes.size != len(loss.matrix):
        raise InvalidParameterError(
            f"has prices of {len(loss.matrix)} classes, but the classes are {shown(classes.tolist())}; give "
            "labels= the classes of its rows and columns.",
            parameter="errors",
        )
    given = decisions.conclusive
    true = _positions(truth, classes, "y_true")
    label = _positions(np.where(given, guesses, classes[0]), classes, "decisions")
    price: FloatArray = np.where(given, np.array(loss.matrix)[true, label], np.array(loss.reject)[true])
    return float((decisions.cost + price).mean())


def _positions(labels: NDArray[Any], classes: NDArray[Any], name: str) -> NDArray[np.intp]:
    position = {label: i for i, label in enumerate(classes.tolist())}
    unknown = sorted({label for label in labels.tolist() if label not in position}, key=str)
    if unknown:
        raise InvalidTargetError(f"{name} holds {shown(unknown)}, which is not among labels={shown(classes.tolist())}.")
    return np.array([position[label] for label in labels.tolist()], dtype=np.intp)


def _checked(decisions: Decisions) -> Decisions:
    if not isinstance(decisions, Decisions):
        raise InvalidInputError(f"decisions must be the result of clf.decide(X); got {type(decisions).__name__}.")
    if not len(decisions):
        raise InvalidInputError("there are no rows to score.")
    return decisions


def _truth(y_true: ArrayLike, decisions: Decisions) -> NDArray[Any]:
    """Return the true labels, one per row."""
    truth = plain_labels(y_true)
    if truth.shape != (len(_checked(decisions)),):
        raise InvalidTargetError(
            f"y_true has the shape {truth.shape}, but there are {len(decisions)} decisions; give one label per row."
        )
    return truth


def _right(y_true: ArrayLike, decisions: Decisions) -> BoolArray:
    """Return which rows got the right label."""
    truth = _truth(y_true, decisions)
    return np.asarray(decisions.conclusive & (np.asarray(decisions.label.data) == truth), dtype=np.bool_)
