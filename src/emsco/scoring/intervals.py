"""Confidence intervals of figures."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidParameterError


def check_level(level: object) -> None:
    """Raise unless this is a confidence level."""
    if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
        raise InvalidParameterError(f"level must be a share between 0 and 1, such as 0.95; got {level!r}.")


def binomial_interval(n_hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a share (Clopper and Pearson).

    Examples
    --------
    >>> low, high = binomial_interval(0, 30)
    >>> low, round(high, 3)
    (0.0, 0.116)
    """
    low, high = binomial_intervals(np.array([n_hits]), np.array([n]), level)
    return float(low[0]), float(high[0])


def binomial_intervals(
    n_hits: NDArray[np.int64], n: NDArray[np.int64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the lower and upper ends of the exact confidence intervals of many shares."""
    from scipy.special import betaincinv  # scipy.stats has the same function, and takes a second to load

    tail, missed = (1 - level) / 2, n - n_hits
    low = np.where(n_hits > 0, betaincinv(np.maximum(n_hits, 1), missed + 1, tail), 0.0)
    high = np.where(missed > 0, betaincinv(n_hits + 1, np.maximum(missed, 1), 1 - tail), 1.0)
    return low, high


def mean_intervals(
    left: NDArray[Any], paid: NDArray[np.float64], level: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the normal confidence intervals of mean costs; parameters as in ``mean_and_error``."""
    from scipy.special import ndtri

    mean, error = mean_and_error(left, paid)
    margin = ndtri((1 + level) / 2) * error
    return np.maximum(mean - margin, 0.0), mean + margin


def mean_and_error(left: NDArray[Any], paid: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean costs and their standard errors.

    Parameters
    ----------
    left : ndarray of shape (n_designs, n_stages)
        Rows that leave at each stage, with or without a label; NaN if unknown.
    paid : ndarray of shape (n_designs, n_stages)
        Total paid by then.
    """
    n_rows = left.sum(axis=1)
    mean = (left * paid).sum(axis=1) / n_rows
    variance = (left * (paid - mean[:, None]) ** 2).sum(axis=1) / np.maximum(n_rows - 1, 1)
    return mean, np.sqrt(variance / n_rows)
