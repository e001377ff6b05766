"""Metrics of confidence: how right a classifier is if it labels only the rows that it is most confident of.

Rows of equal confidence have no order. Where a metric needs one, it is the mean over all orders of such rows, so it
never depends on the order of the table.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from emsco.arrays import BoolArray, FloatArray
from emsco.data.labels import plain_labels
from emsco.deployed.decide import Decisions
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidTargetError


def accuracy_at_coverage(
    y_true: ArrayLike, y_pred: ArrayLike | Decisions, confidence: ArrayLike | None = None, *, coverage: float = 0.9
) -> float:
    """Return the accuracy of the most confident labels that cover a share of the rows.

    Parameters
    ----------
    y_true : array-like of shape (n_rows,)
    y_pred : array-like of shape (n_rows,), or Decisions
        Best guesses. ``Decisions`` hold their confidence; rows without a label count by their best guess.
    confidence : array-like of shape (n_rows,)
        How sure each guess is, such as ``clf.predict_proba(X).max(axis=1)``; only the order matters.
    coverage : float
        Share of the rows that get a label, above 0 and at most 1; rounded up to whole rows.

    Returns
    -------
    float

    Examples
    --------
    >>> accuracy_at_coverage([0, 0, 1, 1], [0, 1, 1, 1], [0.9, 0.6, 0.8, 0.7], coverage=0.75)
    1.0
    """
    if isinstance(coverage, bool) or not isinstance(coverage, Real) or not 0 < coverage <= 1:
        raise InvalidParameterError(f"must be above 0 and at most 1; got {coverage!r}.", parameter="coverage")
    right, confidence = _ranked(y_true, y_pred, confidence)
    n_labels = int(np.ceil(float(coverage) * right.size * (1 - 1e-12)))
    return 1.0 - float(_errors(right, confidence)[n_labels - 1]) / n_labels


def risk_coverage_curve(
    y_true: ArrayLike, y_pred: ArrayLike | Decisions, confidence: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the share of wrong labels at every coverage that a threshold of the confidence can give.

    Parameters
    ----------
    y_true, y_pred, confidence
        As in ``accuracy_at_coverage``.

    Returns
    -------
    coverage : ndarray of shape (n_thresholds,)
        Share of the rows whose confidence reaches the threshold, increasing; the last is 1.
    risk : ndarray of shape (n_thresholds,)
        Share of their guesses that are wrong.
    thresholds : ndarray of shape (n_thresholds,)
        The distinct confidences, decreasing.

    Examples
    --------
    >>> coverage, risk, thresholds = risk_coverage_curve([0, 0, 1, 1], [0, 1, 1, 1], [0.9, 0.6, 0.8, 0.8])
    >>> coverage.tolist(), risk.tolist(), thresholds.tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.0, 0.25], [0.9, 0.8, 0.6])
    """
    right, confidence = _ranked(y_true, y_pred, confidence)
    last = np.append(np.flatnonzero(np.diff(confidence)), right.size - 1)
    n_wrong = np.cumsum(~right)[last]
    return (last + 1) / right.size, n_wrong / (last + 1), confidence[last]


def area_under_risk_coverage(
    y_true: ArrayLike, y_pred: ArrayLike | Decisions, confidence: ArrayLike | None = None, *, excess: bool = False
) -> float:
    """Return the area under the risk-coverage curve (AURC): the mean share of wrong labels over all coverages.

    Small is good. It is 0 if all guesses are right. It depends on how many guesses are wrong, and on whether the
    confidence ranks these last.

    Parameters
    ----------
    y_true, y_pred, confidence
        As in ``accuracy_at_coverage``.
    excess : bool
        Whether to subtract the area of a perfect ranking of the same guesses. What is left tells how well the
        confidence ranks, whatever the accuracy (excess AURC).

    Returns
    -------
    float

    Notes
    -----
    The mean over k = 1, ..., n of the share of errors among the k most confident rows (Geifman, Uziel and El-Yaniv,
    2019).

    Examples
    --------
    >>> area_under_risk_coverage([0, 0, 1, 1], [0, 1, 1, 1], [0.9, 0.6, 0.8, 0.7])
    0.0625
    >>> area_under_risk_coverage([0, 0, 1, 1], [0, 1, 1, 1], [0.9, 0.6, 0.8, 0.7], excess=True)
    0.0
    """
    right, confidence = _ranked(y_true, y_pred, confidence)
    n_labels = np.arange(1, right.size + 1)
    area = float((_errors(right, confidence) / n_labels).mean())
    if not excess:
        return area
    return area - float((np.maximum(n_labels - right.sum(), 0) / n_labels).mean())


def _ranked(
    y_true: ArrayLike, y_pred: ArrayLike | Decisions, confidence: ArrayLike | None
) -> tuple[BoolArray, FloatArray]:
    """Return which guesses are right, and their confidence, the most confident first."""
    if isinstance(y_pred, Decisions):
        if confidence is not None:
            raise InvalidParameterError("is that of the decisions; leave it out.", parameter="confidence")
        guesses: Any = np.asarray(y_pred.label.data)
        sure = y_pred.confidence
    elif confidence is None:
        raise InvalidParameterError(
            "is missing; give one number per row, such as clf.predict_proba(X).max(axis=1).", parameter="confidence"
        )
    else:
        guesses, sure = plain_labels(y_pred), np.asarray(confidence, dtype=np.float64)
    truth = plain_labels(y_true)
    if not truth.ndim == 1 or not truth.shape == guesses.shape == sure.shape:
        raise InvalidTargetError(
            f"y_true has the shape {truth.shape}, y_pred {guesses.shape} and confidence {sure.shape}; give one label, "
            "one guess and one confidence per row."
        )
    if not truth.size:
        raise InvalidInputError("there are no rows to score.")
    if np.isnan(sure).any():
        raise InvalidParameterError(f"is NaN in {int(np.isnan(sure).sum())} rows.", parameter="confidence")
    order = np.argsort(-sure, kind="stable")
    return np.asarray(guesses == truth, dtype=np.bool_)[order], sure[order]


def _errors(right: BoolArray, confidence: FloatArray) -> FloatArray:
    """Return how many of the first k guesses are wrong, k = 1, 2, ...; among equals, on average over their orders."""
    group = np.append(0, np.cumsum(np.diff(confidence) != 0))
    share = np.bincount(group, weights=~right) / np.bincount(group)
    before = np.append(0, np.cumsum(np.bincount(group, weights=~right)))[group]  # errors in the groups before
    position = np.arange(right.size) - np.flatnonzero(np.append(True, np.diff(confidence) != 0))[group] + 1
    return np.asarray(before + share[group] * position)
