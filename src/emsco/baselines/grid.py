"""Checked grids of settings, as lists."""

from typing import Any

import numpy as np

from emsco.exceptions import InvalidParameterError


def numbers(values: Any, name: str, *, least: float = 0.0) -> list[float]:
    """Return the numbers of a grid, of at least ``least`` each.

    Examples
    --------
    >>> numbers((0, 0.5), "price_weights")
    [0.0, 0.5]
    """
    try:
        grid = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        grid = np.empty(0)
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all() or grid.min() < least:
        raise InvalidParameterError(f"{name} must list numbers of at least {least:g}; got {values!r}.")
    return [float(value) for value in grid]


def whole_numbers(values: Any, name: str, *, least: int = 1) -> list[int]:
    """Return the whole numbers of a grid, of at least ``least`` each.

    Examples
    --------
    >>> whole_numbers([4, 8], "num_leaves", least=2)
    [4, 8]
    """
    grid = numbers(values, name, least=least)
    if any(value != int(value) for value in grid):
        raise InvalidParameterError(f"{name} must list whole numbers of at least {least}; got {values!r}.")
    return [int(value) for value in grid]
