"""Routes: by what the root of a design has bought, each row may take another branch; which routes are worth a try."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.data.encoding import CategoryCode, Encoder, to_category
from emsco.data.table import Rows, Table, to_numbers
from emsco.designs.branched import Route
from emsco.prices.prices import PriceList

_MOST_BRANCHES = 8
_FEW_NUMBERS = 6  # distinct numbers of a column, up to which they are like categories
_QUANTILES = ((1 / 2,), (1 / 3, 2 / 3))
_LEAVES = 3  # of the tree that finds cuts


@dataclass(frozen=True, eq=False)
class Root:
    """What a design that branches buys first, and where each row goes then.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        What is bought.
    route : Route
    """

    units: BoolArray
    route: Route


def routes(
    table: Table,
    rows: Rows,
    encoder: Encoder,
    prices: PriceList,
    *,
    min_rows: int,
    y: IntArray | None = None,
    units: Sequence[int] | None = None,
) -> list[Root]:
    """Return the roots of one unit each, with the routes that send at least ``min_rows`` rows into each branch.

    Text and few distinct numbers have a branch for each frequent value, and one for all others if these are enough;
    other numbers are cut at quantiles and, with ``y``, where a small tree cuts them; of several columns of a unit the
    pattern, if all are 0 or 1, or else the largest one may lead the way.

    Parameters
    ----------
    table : Table
    rows : slice or ndarray of int
        Rows to learn from.
    encoder : Encoder
        Says which columns are numbers.
    prices : PriceList
    min_rows : int
    y : ndarray of shape (n_rows,) or None
        Class indices of these rows.
    units : sequence of int or None
        Units that may be read. None: any.
    """
    found = []
    for unit in range(prices.n_units) if units is None else units:
        columns = prices.unit_columns[unit]
        owned = np.arange(prices.n_units) == unit
        for route in _of_unit(unit, columns, table, rows, encoder, min_rows, y):
            found.append(Root(owned, route))
    return found


def branches_of(route: Route, table: Table, leaning: IntArray | None = None) -> NDArray[np.intp]:
    """Return the branch of each row of a table; ``leaning`` has the label of the root's classifier of each."""
    return route.branch([table.column(c) for c in route.columns], leaning)


def by_leaning(label: IntArray, n_classes: int, *, min_rows: int) -> Route | None:
    """Return the route by the label that the root's classifier would give, if enough rows have two labels or more."""
    counts = np.bincount(label, minlength=n_classes)
    named, default = _frequent({k: int(n) for k, n in enumerate(counts)}, min_rows)
    if len(named) < 2:
        return None
    return Route("leaning", unit=-1, groups=named, default=default, n_branches=len(named))


def _of_unit(
    unit: int,
    columns: Sequence[int],
    table: Table,
    rows: Rows,
    encoder: Encoder,
    min_rows: int,
    y: IntArray | None,
) -> Iterator[Route]:
    numbers: list[FloatArray] = []
    for c in columns:
        values = table.column(c)[rows]
        if isinstance(encoder.codes[c], CategoryCode):
            yield from _by_category(unit, c, [to_category(value) for value in values.tolist()], min_rows)
            continue
        numbers.append(to_numbers(values, table.names[c], rows))
        yield from _by_number(unit, c, numbers[-1], min_rows, y)
    if len(columns) > 1 and len(numbers) == len(columns):
        yield from _by_columns(unit, tuple(columns), np.array(numbers), min_rows)


def _by_category(unit: int, column: int, values: list[Any], min_rows: int) -> Iterator[Route]:
    counts = Counter(values)
    named, default = _frequent(counts, min_rows)
    if len(named) > 1:
        yield Route("category", unit=unit, columns=(column,), groups=named, default=default, n_branches=len(named))


def _by_number(unit: int, column: int, numbers: FloatArray, min_rows: int, y: IntArray | None) -> Iterator[Route]:
    known = numbers[~np.isnan(numbers)]
    distinct = np.unique(known)
    if distinct.size < 2:
        return
    if distinct.size <= _FEW_NUMBERS:
        counts: dict[Any, int] = {float(v): int((known == v).sum()) for v in distinct}
        counts[None] = numbers.size - known.size
        named, default = _frequent(counts, min_rows)
        if len(named) > 1:
            yield Route("category", unit=unit, columns=(column,), groups=named, default=default, n_branches=len(named))
        if distinct.size == 2:
            return
    tried = {_between(known, distinct, np.quantile(known, q)) for q in _QUANTILES}
    if y is not None:
        tried.add(_tree_cuts(known, y[~np.isnan(numbers)], min_rows))
    for cuts in sorted(tried, key=lambda each: (len(each), each)):
        counts_of = np.bincount(np.searchsorted(cuts, known, side="right"), minlength=len(cuts) + 1)
        if cuts and counts_of.min() >= min_rows:
            yield Route(
                "cut", unit=unit, columns=(column,), cuts=cuts, default=int(counts_of.argmax()),
                n_branches=len(cuts) + 1,
            )  # fmt: skip


def _by_columns(unit: int, columns: tuple[int, ...], numbers: FloatArray, min_rows: int) -> Iterator[Route]:
    """Yield routes by several columns: the pattern of zeros and ones, or the largest number."""
    known = ~np.isnan(numbers)
    if np.isin(numbers[known], (0.0, 1.0)).all():
        whole = known.all(axis=0)
        counts: dict[Any, int] = dict(Counter(tuple(bits) for bits in numbers[:, whole].T.astype(int).tolist()))
        counts[None] = int((~whole).sum())
        named, default = _frequent(counts, min_rows)
        if len(named) > 1:
            yield Route("pattern", unit=unit, columns=columns, groups=named, default=default, n_branches=len(named))
        return
    largest = np.where(known, numbers, -np.inf).argmax(axis=0)
    counts_of = np.bincount(largest, minlength=len(columns))
    if counts_of.min() >= min_rows and len(columns) <= _MOST_BRANCHES:
        default = int(counts_of.argmax())
        yield Route("largest", unit=unit, columns=columns, default=default, n_branches=len(columns))


def _frequent(counts: dict[Any, int], min_rows: int) -> tuple[tuple[tuple[Any, ...], ...], int]:
    """Return a group for each frequent value and the default: the group of all others, or if they are few, the largest.

    Examples
    --------
    >>> _frequent({"a": 50, "b": 90, "c": 20, "d": 25}, min_rows=40)
    ((('b',), ('a',), ()), 2)
    >>> _frequent({"a": 50, "b": 90, None: 20}, min_rows=40)
    ((('b',), ('a',)), 0)
    """
    order = sorted(
        (v for v, n in counts.items() if v is not None and n >= min_rows), key=lambda v: (-counts[v], str(v))
    )
    named = [(value,) for value in order[: _MOST_BRANCHES - 1]]
    n_others = sum(counts.values()) - sum(counts[value] for (value,) in named)
    if n_others >= min_rows and named:
        return (*named, ()), len(named)
    return tuple(named), 0


def _between(known: FloatArray, distinct: FloatArray, at: FloatArray) -> tuple[float, ...]:
    """Return cuts halfway between two neighbouring values, the first ones beyond some values; none beyond the last."""
    place = np.searchsorted(distinct, at, side="right")
    place = np.unique(place[(place > 0) & (place < distinct.size)])
    return tuple(((distinct[place - 1] + distinct[place]) / 2).tolist())


def _tree_cuts(known: FloatArray, y: IntArray, min_rows: int) -> tuple[float, ...]:
    """Return where a small tree cuts a column."""
    from sklearn.tree import DecisionTreeClassifier

    if known.size < 2 * min_rows:
        return ()
    tree = DecisionTreeClassifier(max_leaf_nodes=_LEAVES, min_samples_leaf=min_rows, random_state=0)
    found = tree.fit(known[:, None], y).tree_
    return tuple(
        sorted({float(cut) for cut, left in zip(found.threshold, found.children_left, strict=True) if left >= 0})
    )
