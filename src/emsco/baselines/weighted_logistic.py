"""l2 logistic regressions on weighted rows, for several weightings of the same rows at once."""

import numpy as np

from emsco.baselines import _weighted as kernel
from emsco.baselines.base import BoolArray, FloatArray


def fit_weighted(X: FloatArray, labels: BoolArray, weights: FloatArray, *, C: float) -> FloatArray:
    """Return linear functions that are above 0 if the label is probably True, with scikit-learn's objective.

    If all rows with a positive weight have the same label, the function is constant and predicts that label. If there
    is no such row, it predicts False.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    labels : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_fits, n_rows)
    C : float
        Inverse regularisation strength; the intercept is not regularised.

    Returns
    -------
    ndarray of shape (n_fits, n_columns + 1)
        The intercept last.
    """
    mass = np.stack([weights[:, ~labels].sum(axis=1), weights[:, labels].sum(axis=1)])
    mixed = mass.min(axis=0) > 0
    Z = np.vstack([X.T, np.ones(len(X))])
    theta = np.zeros((len(weights), len(Z)))
    theta[:, -1] = np.where(mass[1] > 0, 1.0, -1.0)
    fitted = theta[mixed]
    kernel.fit(Z, labels.astype(np.float64), np.arange(len(Z)), weights[mixed], 1 / C, fitted)
    theta[mixed] = fitted
    return theta
