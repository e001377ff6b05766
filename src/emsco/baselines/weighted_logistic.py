"""l2 logistic regressions of weighted rows, several weightings of the same rows at once."""

import numpy as np
from scipy.special import expit

from emsco.baselines.base import BoolArray, FloatArray

_MAX_STEPS = 100
_LAST_MOVE = 1e-6  # of a log-odds in a Newton step: the error left is about its square


def fit_weighted(X: FloatArray, labels: BoolArray, weights: FloatArray, *, C: float) -> FloatArray:
    """Return linear functions that are above 0 where a label is rather True: scikit-learn's objective.

    If the rows of positive weight are all of one label, the function is constant and says that label; if there is no
    such row, it says False.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    labels : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_fits, n_rows)
    C : float
        Inverse strength of the regularisation; the intercept is not regularised.

    Returns
    -------
    ndarray of shape (n_fits, n_columns + 1)
        The intercept last.
    """
    Z = np.column_stack([X, np.ones(len(X))])
    ridge = np.append(np.full(X.shape[1], 1 / C), 0.0)
    signs = np.where(labels, 1.0, -1.0)
    mass = np.stack([weights[:, ~labels].sum(axis=1), weights[:, labels].sum(axis=1)], axis=1)
    mixed = mass.min(axis=1) > 0
    theta = np.zeros((len(weights), Z.shape[1]))
    theta[:, -1] = np.where(mass[:, 1] > 0, 1.0, -1.0)
    theta[mixed] = _newton(Z, labels, signs, weights[mixed], ridge)
    return theta


def _newton(Z: FloatArray, labels: BoolArray, signs: FloatArray, weights: FloatArray, ridge: FloatArray) -> FloatArray:
    theta = np.zeros((len(weights), Z.shape[1]))
    margins = np.zeros(weights.shape)
    objective = _objective(theta, margins, signs, weights, ridge)
    for _ in range(_MAX_STEPS):
        if not len(weights):
            break
        chance = expit(margins)
        gradient = (weights * (chance - labels)) @ Z + ridge * theta
        curvature = weights * chance * (1 - chance)
        H = np.stack([(Z.T * c) @ Z for c in curvature]) + np.diag(ridge)
        H[:, -1, -1] += 1e-12 * (1 + H[:, -1, -1])  # where all rows are far from the border
        step = -np.linalg.solve(H, gradient[:, :, None])[:, :, 0]
        moves = step @ Z.T
        size = np.ones(len(theta))
        while True:
            tried = _objective(theta + size[:, None] * step, margins + size[:, None] * moves, signs, weights, ridge)
            overshot = (tried > objective * (1 + 1e-13)) & (size > 1e-9)
            if not overshot.any():
                break
            size[overshot] /= 2
        theta, margins, objective = theta + size[:, None] * step, margins + size[:, None] * moves, tried
        if np.abs(moves).max() < _LAST_MOVE:
            break
    return theta


def _objective(
    theta: FloatArray, margins: FloatArray, signs: FloatArray, weights: FloatArray, ridge: FloatArray
) -> FloatArray:
    losses = (weights * np.logaddexp(0.0, -signs * margins)).sum(axis=1)
    return np.asarray(losses + (ridge * theta**2).sum(axis=1) / 2)
