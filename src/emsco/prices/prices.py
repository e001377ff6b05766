"""Units, their prices, and the cost of a design.

A *unit* is a set of columns that are bought together: usually one column, or several (a blood panel). The search
assigns units to stages. Prices are counted in whole *ticks* (a tick is one price unit divided by
``PriceList.scale``), so two designs with the same cost compare as equal for any order of the additions.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain
from math import fsum
from typing import Any, TypeAlias
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emsco.exceptions import InvalidInputError, InvalidPricesError, PriceRoundingWarning, shown
from emsco.prices.derived import check_derived
from emsco.prices.groups import groups_of, shared_costs

_MAX_TOTAL_TICKS = 2**40  # the largest sum of all prices; times the largest number of samples it fits an int64
MAX_SAMPLES = 2**22
_ROUNDING = 0.01  # share of a price that rounding may change without a warning
_DECIMAL_SCALES = tuple(10.0**decimals for decimals in range(7))


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Prices of units that may yield several columns each.

    Parameters
    ----------
    units : mapping of str to sequence of str
        The columns of each unit that yields several columns, or a column with another name. A column that no unit
        names is a unit of its own, under its own name.
    price : mapping of str to float
        The price of every unit, at least 0. A price of 0 means that the value is already known.
    groups : mapping of str to sequence of str
        Units that share a cost, such as drawing blood. The first unit of a group costs its price; every further unit
        of the group, then or later, costs its discount price. The shared cost, price minus discount price, is the same
        for all units of a group.
    discount : mapping of str to float
        Discount price of each unit of a group, once the shared cost is paid.
    derived : mapping of str to sequence of str
        Units that are computed from others, such as a ratio of two tests, and the units that they are computed from.
        They have no price: such a unit costs those of its sources that are not owned yet, which are then owned, too.
        Not with parallel prices.
    overhead : float
        Fixed cost of a stage in addition to its purchases, such as a visit or the evaluation of a classifier. Every
        case pays it for each stage that it reaches, including the first one.
    parallel : bool
        Prices are times, and all units of a stage are bought at the same time. The stage takes as long as its slowest
        new unit, including the shared time of a new group, plus the overhead. The times of stages add up, so the cost
        of a case is its waiting time.

    Examples
    --------
    >>> prices = Prices(units={"blood panel": ["sodium", "creatinine"]}, price={"age": 0, "blood panel": 40})
    >>> resolve(prices, ["age", "sodium", "creatinine"]).unit_names
    ('age', 'blood panel')

    Two blood tests at 7 and 5 that share a cost of 2 for drawing the blood:

    >>> prices = Prices(price={"lipids": 7, "glucose": 5}, groups={"blood": ["lipids", "glucose"]},
    ...                 discount={"lipids": 5, "glucose": 3})
    >>> resolve(prices, ["lipids", "glucose"]).total
    10.0

    A ratio of two tests is free once both are bought, and costs both otherwise:

    >>> prices = resolve(Prices(price={"a": 7, "b": 5}, derived={"a / b": ["a", "b"]}), ["a", "b", "a / b"])
    >>> prices.price_of(np.array([False, False, True])), prices.total
    (12.0, 12.0)

    A test of 3 days and one of 1 day, requested together, and half a day for the visit:

    >>> resolve(Prices(price={"culture": 3, "smear": 1}, overhead=0.5, parallel=True), ["culture", "smear"]).total
    3.5
    """

    units: Mapping[str, Sequence[str]] = field(default_factory=dict)
    price: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    discount: Mapping[str, float] = field(default_factory=dict)
    derived: Mapping[str, Sequence[str]] = field(default_factory=dict)
    overhead: float = 0.0
    parallel: bool = False


Costs: TypeAlias = ArrayLike | Mapping[Any, float] | Prices | None


@dataclass(frozen=True)
class PriceList:
    """Prices matched with the columns of one table.

    The cost of a stage depends on its new units and on the units owned before. It is the sum of the own prices of the
    new units and of the shared costs of the groups that the stage opens; a stage opens a group if no unit of the group
    was owned. In parallel, it is the largest own price among the new units, each with the shared cost of its group if
    the stage opens the group. The overhead is added. A stage that buys nothing costs nothing. A derived unit has no own
    price, but its sources are bought with it.

    Attributes
    ----------
    unit_names : tuple of str
    unit_columns : tuple of tuple of int
        Positions of the columns each unit yields.
    prices : ndarray of shape (n_units,)
        Price of each unit alone, as given by the user.
    own_prices : ndarray of shape (n_units,)
        Price without the shared cost of the group.
    group_names : tuple of str
    groups : ndarray of shape (n_units, n_groups)
        Which units are in which group.
    shared_prices : ndarray of shape (n_groups,)
    own_ticks, shared_ticks : ndarray of shape (n_units,) and (n_groups,)
        Integer prices, which the search compares. They are exact for prices of up to six decimals whose sum is below
        2**40 in units of the last decimal; others are rounded to one part in 2**40 of the sum, and never to 0.
    scale : float
        Ticks per price unit.
    overhead, overhead_ticks : float and int
        Fixed cost of each stage.
    parallel : bool
        Whether a stage costs its slowest unit instead of the sum.
    sources : tuple of tuple of int
        Positions of the units that each unit is computed from; empty if no unit is derived.
    """

    unit_names: tuple[str, ...]
    unit_columns: tuple[tuple[int, ...], ...]
    prices: NDArray[np.float64]
    own_prices: NDArray[np.float64]
    group_names: tuple[str, ...]
    groups: NDArray[np.bool_]
    shared_prices: NDArray[np.float64]
    own_ticks: NDArray[np.int64]
    shared_ticks: NDArray[np.int64]
    scale: float
    overhead: float = 0.0
    overhead_ticks: int = 0
    parallel: bool = False
    sources: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        for name in ("prices", "own_prices", "groups", "shared_prices", "own_ticks", "shared_ticks"):
            getattr(self, name).setflags(write=False)

    @property
    def n_units(self) -> int:
        """Number of units, the ``n_features`` of the search."""
        return len(self.unit_names)

    @property
    def total(self) -> float:
        """Price of buying everything in one stage."""
        return self.price_of(np.ones(self.n_units, dtype=np.bool_))

    @property
    def least(self) -> float:
        """The smallest price above 0; 1 if all prices are 0."""
        prices = np.concatenate([self.prices, self.own_prices, [self.overhead]])
        return float(min(prices[prices > 0], default=1.0))

    @property
    def rule(self) -> str:
        """The cost of a stage, in a sentence."""
        cost = "takes as long as its slowest purchase" if self.parallel else "costs the sum of its purchases"
        shared = ", including the shared cost of each new group" if self.group_names else ""
        overhead = f", plus an overhead of {self.overhead:,.6g}" if self.overhead else ""
        derived = " A derived feature costs the features that it is computed from." if self.sources else ""
        return f"A stage {cost}{shared}{overhead}.{derived}"

    def _with_sources(self, acquired: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return sets of units, and the units that derived ones are computed from."""
        if self.sources:
            acquired = acquired.copy()
            for unit, sources in enumerate(self.sources):
                acquired[..., sources] |= acquired[..., [unit]]
        return acquired

    def source_names(self, unit: int) -> list[str]:
        """Return the names of the units that a unit is computed from."""
        return [self.unit_names[source] for source in self.sources[unit]] if self.sources else []

    def price_of(self, new: NDArray[np.bool_], owned: NDArray[np.bool_] | None = None) -> float:
        """Return the cost of a stage that buys new units, given the units that are owned already."""
        owned = np.zeros_like(new) if owned is None else owned
        if self._is_decimal:
            return int(self.stage_ticks(np.stack([owned, owned | new]))[1]) / self.scale
        return fsum(self._terms(new, owned))

    def paid(self, acquired: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return the total that a case has paid by the end of each stage.

        Parameters
        ----------
        acquired : ndarray of shape (n_stages, n_units)
            Units owned by the end of each stage.
        """
        if self._is_decimal:
            return np.asarray(self.stage_ticks(acquired).cumsum() / self.scale)
        before = np.vstack([np.zeros_like(acquired[:1]), acquired[:-1]])
        terms = [self._terms(owned & ~known, known) for known, owned in zip(before, acquired, strict=True)]
        return np.array([fsum(chain.from_iterable(terms[: j + 1])) for j in range(len(terms))])

    def stage_ticks(self, acquired: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the cost of each stage for a case that reaches it.

        Parameters
        ----------
        acquired : ndarray of shape (..., n_stages, n_units)
            Units owned by the end of each stage.
        """
        if self.parallel:
            return self._parallel_ticks(acquired)
        # Sums of ticks stay below 2**53, so the float product is exact, and BLAS can compute it.
        known = self._with_sources(acquired)
        owned = (known.astype(np.float64) @ self.own_ticks.astype(np.float64)).astype(np.int64)
        for members, ticks in zip(self.groups.T, self.shared_ticks, strict=True):
            owned += ticks * known[..., members].any(axis=-1)
        stages = np.diff(owned, axis=-1, prepend=0)
        if self.overhead_ticks:
            stages += self.overhead_ticks * (np.diff(acquired.sum(axis=-1), axis=-1, prepend=0) > 0)
        return stages

    def set_ticks(self, units: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return, for sets of units, (n_sets, n_units), the sum of their prices; in parallel, the largest own one."""
        if self.parallel:
            return np.asarray((units * self.own_ticks).max(axis=-1))
        return self.stage_ticks(units[:, None, :])[:, 0] - self.overhead_ticks * units.any(axis=-1)

    def _parallel_ticks(self, acquired: NDArray[np.bool_]) -> NDArray[np.int64]:
        owned = np.zeros_like(acquired)
        owned[..., 1:, :] = acquired[..., :-1, :]
        new = acquired & ~owned
        times = new * self.own_ticks
        for members, ticks in zip(self.groups.T, self.shared_ticks, strict=True):
            opened = ~owned[..., members].any(axis=-1, keepdims=True)
            times[..., members] += ticks * (opened & new[..., members])
        return np.asarray(times.max(axis=-1) + self.overhead_ticks * new.any(axis=-1))

    @property
    def _is_decimal(self) -> bool:
        """Whether sums of ticks are exact."""
        return self.scale in _DECIMAL_SCALES

    def _terms(self, new: NDArray[np.bool_], owned: NDArray[np.bool_]) -> list[float]:
        """Return the prices that add up to the cost of a stage."""
        if not new.any():
            return []
        owned, new = self._with_sources(owned), self._with_sources(owned | new)
        new &= ~owned
        opened = self.groups[new].any(axis=0) & ~self.groups[owned].any(axis=0)
        own, shared = self.own_prices[new], self.shared_prices * opened
        if self.parallel:
            on_top = self.groups[new] @ shared
            slowest = int(np.argmax(own + on_top))
            return [float(own[slowest]), float(on_top[slowest]), self.overhead]
        return [*own.tolist(), *shared.tolist(), self.overhead]


def _from_series(series: Any, names: list[str]) -> PriceList:
    """Match a pandas Series by its index, unless the index is a plain range."""
    if list(series.index) == list(range(len(series))) and names[: len(series)] != [str(i) for i in series.index]:
        return resolve(series.to_numpy(), names)
    return _from_units(Prices(price=series.to_dict()), names)


def resolve(costs: Costs, column_names: Sequence[str]) -> PriceList:
    """Match prices, given in any form, with columns.

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
    module = type(costs).__module__.partition(".")[0]
    if module == "pandas" and hasattr(costs, "to_dict") and getattr(costs, "ndim", 0) == 1:
        return _from_series(costs, names)
    try:
        values = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidPricesError(
            f"must be finite numbers, a mapping of column name to price, or emsco.Prices; got {shown(costs)}.",
            parameter="costs",
        ) from error
    if values.ndim != 1 or values.size != len(names):
        raise InvalidPricesError(
            f"has the shape {values.shape}, but the table has {len(names)} columns; give one price per column, or a "
            "mapping of column name to price.",
            parameter="costs",
        )
    return _price_list(names, [(i,) for i in range(len(names))], values.tolist())


def _from_units(prices: Prices, names: list[str]) -> PriceList:
    for part in ("units", "price", "groups", "discount", "derived"):
        if not isinstance(getattr(prices, part), Mapping) and not hasattr(getattr(prices, part), "items"):
            raise InvalidPricesError(
                f"Prices: {part} must be a mapping by unit name; got {getattr(prices, part)!r}. As in "
                "Prices(units={'panel': ['sodium', 'creatinine']}, price={'panel': 40, 'age': 1})."
            )
    position = {name: i for i, name in enumerate(names)}
    owner: dict[int, str] = {}
    for unit, columns in prices.units.items():
        if isinstance(columns, str) or not hasattr(columns, "__len__") or len(columns) == 0:
            raise InvalidPricesError(f"unit {unit!r} must list the columns it yields; got {columns!r}.")
        for column in map(str, columns):
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
    sources = check_derived(prices.derived, list(unit_columns), {*given, *map(str, prices.discount)})
    if sources and prices.parallel:
        raise InvalidPricesError("derived units and parallel prices do not go together; give each unit its time.")
    given |= dict.fromkeys(sources, 0.0)
    missing = [unit for unit in unit_columns if unit not in given]
    unknown = [unit for unit in given if unit not in unit_columns]
    inside = [unit for unit in unknown if unit in position]
    if inside:
        raise InvalidPricesError(f"there is a price for {inside}, which are inside a unit; price the unit alone.")
    if missing or unknown:
        lacking = f"no price for {missing}; add it (0 if known from the start). " if missing else ""
        surplus = ""
        if unknown:
            near = get_close_matches(str(unknown[0]), [str(unit) for unit in unit_columns], n=1)
            hint = f"is it {near[0]!r}?" if near else "leave it out, or correct its name."
            surplus = f"There is a price for {unknown}, but the table has no such column or unit; {hint}"
        raise InvalidPricesError((lacking + surplus).strip())
    return _price_list(
        list(unit_columns),
        [tuple(columns) for columns in unit_columns.values()],
        [given[u] for u in unit_columns],
        {str(group): members for group, members in prices.groups.items()},
        {str(unit): value for unit, value in prices.discount.items()},
        prices.overhead,
        prices.parallel,
        sources,
    )


def _price_list(
    names: list[str],
    columns: list[tuple[int, ...]],
    values: Sequence[Any],
    group_members: Mapping[str, Sequence[str]] | None = None,
    discount: Mapping[str, Any] | None = None,
    overhead: Any = 0.0,
    parallel: Any = False,
    sources: Mapping[str, Sequence[str]] | None = None,
) -> PriceList:
    discount = discount or {}
    overhead = _overhead(overhead)
    if not isinstance(parallel, bool | np.bool_):
        raise InvalidPricesError(f"must be True or False; got {shown(parallel)}.", parameter="parallel")
    groups = groups_of(names, group_members or {}, discount)
    full = np.array([_price(value, name) for name, value in zip(names, values, strict=True)])
    own = np.array([_price(discount.get(name, value), name) for name, value in zip(names, values, strict=True)])
    # A case may reach one stage per unit and pay the overhead each time, so the largest sum contains it so often.
    overheads = np.full(len(names) if overhead else 0, overhead)
    ticks, scale = to_ticks(np.concatenate([overheads, full, own] if discount else [overheads, full]))
    _warn_if_rounded(np.concatenate([overheads, full, own]), scale)
    overhead_ticks, ticks = int(ticks[0]) if overhead else 0, ticks[overheads.size :]
    own_ticks = ticks[-len(names) :]
    noise = 1e-9 * float(full.max(initial=0.0))
    shared_ticks = shared_costs(names, group_members or {}, groups, full - own, ticks[: len(names)] - own_ticks, noise)
    shared_prices = shared_ticks / scale
    alone = (own_ticks + groups @ shared_ticks) / scale
    full = np.where(groups.any(axis=1) & (np.abs(alone - full) > noise), alone, full)
    prices = PriceList(
        tuple(names), tuple(columns), full, own, tuple(group_members or ()), groups, shared_prices, own_ticks,
        shared_ticks, scale, overhead, overhead_ticks, bool(parallel),
    )  # fmt: skip
    return _with_derived(prices, sources) if sources else prices


def _with_derived(prices: PriceList, sources: Mapping[str, Sequence[str]]) -> PriceList:
    """Return prices with units that cost what they are computed from."""
    names = prices.unit_names
    positions = tuple(tuple(names.index(source) for source in sources.get(name, ())) for name in names)
    alone = replace(prices, sources=positions, overhead=0.0, overhead_ticks=0)
    full = [alone.price_of(np.arange(len(names)) == unit) for unit in range(len(names))]
    return replace(prices, sources=positions, prices=np.array(full))


def _price(value: Any, name: str) -> float:
    price = _number(value)
    if not (np.isfinite(price) and price >= 0):
        raise InvalidPricesError(f"the price of {name!r} is {shown(value)}; a price is a number of at least 0.")
    return price


def _overhead(value: Any) -> float:
    price = _number(value)
    if not (np.isfinite(price) and price >= 0):
        raise InvalidPricesError(f"must be a number of at least 0; got {shown(value)}.", parameter="overhead")
    return price


def _number(value: Any) -> float:
    """Return a value as a number: NaN if it is none, infinity if it is too large to be one."""
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        return np.nan


def to_ticks(values: NDArray[np.float64]) -> tuple[NDArray[np.int64], float]:
    """Return integers and their scale: decimal if that is exact, otherwise binary fractions of the total."""
    with np.errstate(over="ignore"):
        total = float(values.sum())
    for scale in _DECIMAL_SCALES:
        if total * scale > _MAX_TOTAL_TICKS:
            break
        ticks = np.rint(values * scale)
        if np.array_equal(ticks / scale, values):
            return ticks.astype(np.int64), scale
    with np.errstate(over="ignore"):
        scale = float(np.divide(_MAX_TOTAL_TICKS, total))
    if not (np.isfinite(total) and np.isfinite(scale)):
        raise InvalidPricesError(f"the prices add up to {total!r}, which is too large or too small; use another unit.")
    return np.where(values > 0, np.maximum(np.rint(values * scale), 1), 0).astype(np.int64), scale


def _warn_if_rounded(values: NDArray[np.float64], scale: float) -> None:
    """Warn if prices are so far apart that small ones are lost in the sum."""
    positive = values[values > 0]
    if scale in _DECIMAL_SCALES or not positive.size:
        return
    least, counted = float(positive.min()), float(max(np.rint(positive.min() * scale), 1) / scale)
    if abs(counted - least) > _ROUNDING * least:
        warnings.warn(
            f"the prices range from {least:.4g} to {float(positive.max()):.4g}, too far to add them exactly: "
            f"{least:.4g} is counted as {counted:.4g}, and figures of cost are rounded. Lower the largest prices: a "
            "feature that is never worth its price can be dropped.",
            PriceRoundingWarning,
            stacklevel=2,
        )


def check_validation_size(n_rows: int) -> None:
    """Raise if the total cost of so many rows could overflow the counters."""
    if n_rows > MAX_SAMPLES:
        raise InvalidInputError(
            f"{n_rows:,} validation rows are more than the {MAX_SAMPLES:,} that can be counted; validate on fewer."
        )
