"""What buying costs: units, their prices, and the bill of a design.

A *unit* is what is bought at once: usually one column, or several (a blood panel). The search assigns units to
stages. Money is counted in whole *ticks* (a tick is one price unit divided by ``PriceList.scale``), so two designs
that cost the same compare as equal whatever the order of the additions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emsco.exceptions import InvalidPricesError

# The largest sum of all prices, in ticks. Times 2**20 samples it still is an exact float64.
_MAX_TOTAL_TICKS = 2**33
_MAX_DECIMALS = 6


@dataclass(frozen=True)
class Prices:
    """Prices of units that may yield several columns each.

    Parameters
    ----------
    units : mapping of str to sequence of str
        For each unit that yields several columns, or a column of another name, the columns it yields. Columns that no
        unit names are units of their own, under their own name.
    price : mapping of str to float
        The price of every unit, at least 0. A free unit (price 0) is one you know from the start.

    Examples
    --------
    >>> prices = Prices(units={"blood panel": ["sodium", "creatinine"]}, price={"age": 0, "blood panel": 40})
    >>> resolve(prices, ["age", "sodium", "creatinine"]).unit_names
    ('age', 'blood panel')
    """

    units: Mapping[str, Sequence[str]] = field(default_factory=dict)
    price: Mapping[str, float] = field(default_factory=dict)


Costs: TypeAlias = ArrayLike | Mapping[Any, float] | Prices | None


@dataclass(frozen=True)
class PriceList:
    """Prices matched with the columns of one table.

    Attributes
    ----------
    unit_names : tuple of str
    unit_columns : tuple of tuple of int
        Positions of the columns each unit yields.
    ticks : ndarray of shape (n_units,)
        Whole prices; ``ticks / scale`` is the price in the user's money.
    scale : float
        Ticks per unit of money. Prices with up to six decimals are exact; others are rounded to one part in 2**33 of
        their sum.
    """

    unit_names: tuple[str, ...]
    unit_columns: tuple[tuple[int, ...], ...]
    ticks: NDArray[np.int64]
    scale: float

    @property
    def n_units(self) -> int:
        """Number of units, the ``n_features`` of the search."""
        return len(self.unit_names)

    @property
    def total(self) -> float:
        """Price of buying everything."""
        return float(self.ticks.sum()) / self.scale

    def stage_ticks(self, acquired: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return what each stage adds to the bill of an input that reaches it.

        Parameters
        ----------
        acquired : ndarray of shape (..., n_stages, n_units)
            Units owned by the end of each stage.
        """
        # Sums of ticks stay below 2**53, so the float product is exact, and BLAS does it.
        owned = (acquired.astype(np.float64) @ self.ticks.astype(np.float64)).astype(np.int64)
        return np.diff(owned, axis=-1, prepend=0)


def resolve(costs: Costs, column_names: Sequence[str]) -> PriceList:
    """Match prices with columns; every way to give prices ends here.

    Parameters
    ----------
    costs : None, array-like, mapping or Prices
        None: every column costs 1. An array: in column order. A mapping: by column name.
    column_names : sequence of str
    """
    names = [str(name) for name in column_names]
    if costs is None:
        costs = np.ones(len(names))
    if isinstance(costs, Prices):
        return _from_units(costs, names)
    if isinstance(costs, Mapping):
        return _from_units(Prices(price=costs), names)
    try:
        values = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidPricesError(
            f"costs must be numbers, a mapping of column name to price, or emsco.Prices; got {costs!r}."
        ) from error
    if values.ndim != 1 or values.size != len(names):
        raise InvalidPricesError(
            f"costs has shape {values.shape}, but the table has {len(names)} columns; give one price per column."
        )
    return _price_list(names, [(i,) for i in range(len(names))], values.tolist())


def _from_units(prices: Prices, names: list[str]) -> PriceList:
    position = {name: i for i, name in enumerate(names)}
    owner: dict[int, str] = {}
    for unit, columns in prices.units.items():
        if isinstance(columns, str) or len(columns) == 0:
            raise InvalidPricesError(f"unit {unit!r} must list the columns it yields; got {columns!r}.")
        for column in columns:
            if column not in position:
                raise InvalidPricesError(
                    f"unit {unit!r} yields the column {column!r}, which the table does not have; columns: {names}."
                )
            if position[column] in owner:
                raise InvalidPricesError(
                    f"column {column!r} is in the units {owner[position[column]]!r} and {unit!r}; it can be in one."
                )
            owner[position[column]] = str(unit)
    for i, name in enumerate(names):
        if i in owner:
            continue
        if name in prices.units:
            raise InvalidPricesError(f"{name!r} is both a unit and a column outside it; rename the unit.")
        owner[i] = name
    unit_columns: dict[str, list[int]] = {}
    for i in range(len(names)):
        unit_columns.setdefault(owner[i], []).append(i)
    given = {str(unit): value for unit, value in prices.price.items()}
    missing = [unit for unit in unit_columns if unit not in given]
    unknown = [unit for unit in given if unit not in unit_columns]
    if missing:
        raise InvalidPricesError(f"no price for {missing}; add {'it' if len(missing) == 1 else 'them'} (0 if known).")
    if unknown:
        raise InvalidPricesError(f"there is a price for {unknown}, but the table has no such column or unit.")
    return _price_list(
        list(unit_columns), [tuple(columns) for columns in unit_columns.values()], [given[u] for u in unit_columns]
    )


def _price_list(names: list[str], columns: list[tuple[int, ...]], values: Sequence[Any]) -> PriceList:
    for name, value in zip(names, values, strict=True):
        try:
            good = np.isfinite(float(value)) and float(value) >= 0
        except (TypeError, ValueError):
            good = False
        if not good:
            raise InvalidPricesError(f"the price of {name!r} is {value!r}; a price is a number of at least 0.")
    ticks, scale = _to_ticks(np.array([float(value) for value in values]))
    ticks.setflags(write=False)
    return PriceList(tuple(names), tuple(columns), ticks, scale)


def _to_ticks(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Return whole numbers and their scale: decimal where that is exact, binary fractions of the total otherwise."""
    total = values.sum()
    for decimals in range(_MAX_DECIMALS + 1):
        scale = 10.0**decimals
        ticks = np.rint(values * scale)
        if ticks.sum() > _MAX_TOTAL_TICKS:
            break
        if np.array_equal(ticks / scale, values):
            return ticks.astype(np.int64), scale
    scale = float(_MAX_TOTAL_TICKS / total)
    return np.rint(values * scale).astype(np.int64), scale
