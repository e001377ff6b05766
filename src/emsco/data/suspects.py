"""Columns that are probably not features: ids, constants, and the target under another name."""

from collections.abc import Iterator
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.data.encoding import holds_numbers, to_category
from emsco.data.table import Table
from emsco.exceptions import SuspiciousColumnWarning

_FEWEST_ROWS = 20  # fewer rows are too few to suspect anything


def warn_of_suspects(table: Table, codes: NDArray[np.int64]) -> None:
    """Warn of columns that are probably not features.

    Parameters
    ----------
    table : Table
    codes : ndarray of shape (n_rows,)
        Class indices.
    """
    if table.n_rows < _FEWEST_ROWS:
        return
    for said in _suspects(table, codes):
        warnings.warn(f"{said} Leave it out if it is not a feature.", SuspiciousColumnWarning, stacklevel=2)


def _suspects(table: Table, codes: NDArray[np.int64]) -> Iterator[str]:
    for c, name in enumerate(table.names):
        values = table.column(c)
        text = not holds_numbers(values)
        cells = np.array([to_category(cell) or "" for cell in values.tolist()]) if text else values.astype(np.float64)
        distinct, places = np.unique(cells, return_inverse=True)
        if distinct.size == 1:
            yield f"column {name!r} has the same value in every row, so it tells nothing."
        elif distinct.size == table.n_rows and (text or _counts_up(cells)):
            yield f"column {name!r} has another value in every row, as an id has."
        elif distinct.size == np.unique(codes).size == len(set(zip(places.tolist(), codes.tolist(), strict=True))):
            yield f"column {name!r} determines the label of every row: is it the target under another name?"


def _counts_up(numbers: NDArray[np.float64]) -> bool:
    """Return whether a column of distinct values numbers the rows: in their order, or without a gap."""
    if not (np.isfinite(numbers).all() and (numbers == np.rint(numbers)).all()):
        return False
    steps = np.diff(numbers)
    return bool((steps > 0).all() or (steps < 0).all() or np.ptp(numbers) == numbers.size - 1)
