"""Checks of settings that several methods share."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidParameterError


def check_grid(values: Any, name: str) -> NDArray[np.float64]:
    """Return a grid of distinct numbers of at least 0, the largest first, which is preferred on a tie."""
    try:
        grid = np.unique(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.size == 0 or not np.isfinite(grid).all() or grid[0] < 0:
        raise InvalidParameterError(f"{name} must be numbers of at least 0, one or more; got {values!r}.")
    return grid[::-1]


def check_positive(value: Any, name: str) -> float:
    """Return a number above 0."""
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 0 < value < np.inf:
        raise InvalidParameterError(f"{name} must be a positive number; got {value!r}.")
    return float(value)


def check_count(value: Any, name: str, least: int) -> int:
    """Return a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidParameterError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    return int(value)
