"""Prices of errors that grow with an amount at risk, such as that of a transaction: a column of the table names it."""

from collections.abc import Mapping, Sequence
import re
from typing import Any

import numpy as np

from emsco.arrays import FloatArray
from emsco.data.table import Table
from emsco.exceptions import InvalidInputError, InvalidPricesError, MissingColumnError, shown

_NUMBER = r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?"
_PRICE = re.compile(rf"(?:(?P<fixed>{_NUMBER})\s*\+\s*)?(?:(?P<per>{_NUMBER})\s*\*\s*)?(?P<column>.*\S)")


def split_prices(errors: Any) -> tuple[Any, Any, str] | None:
    """Return prices as a fixed part, a part per unit of an amount, and the column that holds it; None if all are fixed.

    Examples
    --------
    >>> split_prices([[0, 5], ["5 + 0.9 * amount", 0]])
    ([[0, 5], [5.0, 0]], [[0.0, 0.0], [0.9, 0.0]], 'amount')
    """
    columns: dict[str, None] = {}

    def parts(price: Any) -> tuple[Any, float]:
        if not isinstance(price, str) or _is_number(price):
            return price, 0.0
        found = _PRICE.fullmatch(price.strip())
        if found is None:
            raise InvalidPricesError(f"has an empty price: {price!r}.", parameter="errors")
        columns[found["column"]] = None
        return float(found["fixed"] or 0.0), float(found["per"] or 1.0)

    def both(row: Any) -> tuple[Any, Any]:
        if isinstance(row, Mapping):
            pairs = {label: parts(price) for label, price in row.items()}
            return {k: fixed for k, (fixed, _) in pairs.items()}, {k: per for k, (_, per) in pairs.items()}
        if isinstance(row, Sequence) and not isinstance(row, str):
            split = [parts(price) for price in row]
            return [fixed for fixed, _ in split], [per for _, per in split]
        return row, row

    if isinstance(errors, np.ndarray) and errors.dtype.kind in "OU":
        errors = errors.tolist()
    if isinstance(errors, Mapping):
        rows = {true: both(row) for true, row in errors.items()}
        split: tuple[Any, Any] = {k: f for k, (f, _) in rows.items()}, {k: p for k, (_, p) in rows.items()}
    elif isinstance(errors, Sequence) and not isinstance(errors, str):
        lines = [both(row) for row in errors]
        split = [f for f, _ in lines], [p for _, p in lines]
    else:
        return None
    if not columns:
        return None
    if len(columns) > 1:
        raise InvalidPricesError(
            f"names the columns {shown(list(columns))} as amounts at risk; all prices must name the same one.",
            parameter="errors",
        )
    return *split, next(iter(columns))


def price_in_words(fixed: float, per: float, column: str) -> float | str:
    """Return a price as ``split_prices`` reads it."""
    return fixed if per == 0 else f"{fixed!r} + {per!r} * {column}"


def amounts_of(table: Table, position: int | None, name: str) -> FloatArray:
    """Return the amounts at risk of all rows of a table.

    Raises
    ------
    InvalidInputError
        The column is not there, holds no numbers, or not all of them are finite and at least 0.
    """
    if position is None:
        raise MissingColumnError(
            f"column {name!r} is not in the table, but prices of errors depend on it; add the amount of each row."
        )
    values = table.column(position)
    numbers = values.astype(np.float64) if values.dtype.kind in "fiub" else np.full(len(values), np.nan)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if wrong.size:
        raise InvalidInputError(
            f"column {name!r} holds the amounts that prices of errors depend on: numbers of at least 0, none missing; "
            f"got {shown(values[wrong[0]])} in row {wrong[0]}."
        )
    return numbers


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
