"""Chains: the order in which features are worth buying, and the designs that cut it into stages.

A design that buys features one by one needs a classifier for each beginning of the order. Every other design that
keeps the order needs no further one: it only leaves stages out. Thousands of designs cost the training of a few sets.
"""

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.prices.prices import PriceList

Sureness = Callable[[BoolArray], FloatArray]  # of feature sets, how sure they are of the truth: the more, the better
Affords = Callable[[BoolArray], bool]  # whether there is time for some feature sets
MOST_LOOKED_FOR = 25  # units whose place in the order is looked for; the others follow as they did last
SHORTLIST = 5  # units that a slow learner is asked of
_MANY = 64  # units that are left, beyond which only the most promising ones are looked at,
_LOOKED_AT = 32  # so many of them;
_AGAIN = 6  # but all of them every so many places: what was worth little before may be worth more with others
_EACH = 10  # units of the order after each of which a stage may end; beyond, after ever more
_GROWTH = 1.18
_NEARLY = 0.02  # share of its log-likelihood that a slow learner may miss for an order to end


class Order(NamedTuple):
    """All units, and how many of them, the first ones, have been given their place."""

    units: IntArray
    n_placed: int


def orders(
    sureness: Sureness,
    prices: PriceList,
    strong: Sureness | None = None,
    *,
    most: int = MOST_LOOKED_FOR,
    ends_early: bool = False,
    affords: Affords | None = None,
) -> list[Order]:
    """Return orders of all units: by what each adds to the sureness of those before, and by what it adds per price.

    Parameters
    ----------
    sureness : callable
        Of a fast learner.
    prices : PriceList
    strong : callable or None
        Sureness of a slow learner, which is asked only of what comes first by the fast one.
    most : int
        Units whose place is looked for.
    ends_early : bool
        Whether an order ends where the slow learner is as sure as with everything, nearly; the other units are one
        stage.
    affords : callable or None
        Whether there is time to compare some feature sets. Where there is not, all orders end, and the other units are
        one stage. None: there always is.
    """
    kinds = (False, True)[: n_orders(prices)]
    growing = [_Growing(sureness, prices, strong, most, per_price=kind, ends_early=ends_early) for kind in kinds]
    waiting = growing
    while waiting := [order for order in waiting if not order.is_done]:
        for order in waiting:  # in turns: where the time is up, they are of about the same length
            if affords is not None and not affords(order.candidates):
                return [each.order(cut=not each.is_done) for each in growing]
            order.grow()
    return [each.order() for each in growing]


def n_orders(prices: PriceList) -> int:
    """Return how many orders there are: with equal prices, what a unit adds and what it adds per price are alike."""
    return 2 if np.unique(prices.prices).size > 1 or prices.groups.any() or prices.sources else 1


class _Growing:
    """An order to which one unit after another is added."""

    def __init__(
        self,
        sureness: Sureness,
        prices: PriceList,
        strong: Sureness | None,
        most: int,
        *,
        per_price: bool,
        ends_early: bool,
    ) -> None:
        self._sureness, self._strong, self._prices, self._most = sureness, strong, prices, most
        self._per_price, self._ends_early = per_price, ends_early
        n_units = prices.n_units
        self._enough = np.inf
        if strong is not None and ends_early:
            everything = float(strong(np.ones((1, n_units), dtype=np.bool_))[0])
            self._enough = everything - _NEARLY * abs(everything)
        self._owned = np.zeros(n_units, dtype=np.bool_)
        self._placed: list[int] = []
        self._left, self._worth = np.arange(n_units), np.zeros(n_units)
        self._reached: dict[Sureness, float] = {}  # what each learner is sure of what is owned

    @property
    def is_done(self) -> bool:
        """Whether no other unit is to be placed."""
        enough = self._strong is not None and self._reached.get(self._strong, -np.inf) >= self._enough
        return not self._left.size or len(self._placed) >= self._most or enough

    @property
    def candidates(self) -> BoolArray:
        """The feature sets of which the next one is chosen."""
        return self._with(self._left[self._looked_at()])

    def _looked_at(self) -> NDArray[np.intp]:
        """Return which of the units left may come next."""
        if self._left.size <= _MANY or len(self._placed) % _AGAIN == 0:
            return np.arange(self._left.size)
        return np.sort(np.argsort(-self._worth, kind="stable")[:_LOOKED_AT])

    def grow(self) -> None:
        """Add the unit that is worth most."""
        looked_at = self._looked_at()
        worth, sure = self._gains(self._sureness, self._left[looked_at])
        self._worth[looked_at] = worth
        chosen = int(worth.argmax())
        if self._strong is not None:
            first = np.argsort(-worth, kind="stable")[:SHORTLIST]
            strong_worth, strongly_sure = self._gains(self._strong, self._left[looked_at[first]])
            chosen = int(first[strong_worth.argmax()])
            self._reached[self._strong] = float(strongly_sure[strong_worth.argmax()])
        self._reached[self._sureness] = float(sure[chosen])
        best = int(looked_at[chosen])
        self._placed.append(int(self._left[best]))
        self._owned[self._left[best]] = True
        self._left, self._worth = np.delete(self._left, best), np.delete(self._worth, best)

    def order(self, *, cut: bool = False) -> Order:
        """Return the order; ``cut``: no other unit will get its place."""
        rest = self._left[np.argsort(-self._worth, kind="stable")]
        n_placed = len(self._placed) if self._ends_early or cut else self._owned.size
        return Order(np.array([*self._placed, *rest], dtype=np.int64), n_placed)

    def _with(self, units: IntArray) -> BoolArray:
        after = np.tile(self._owned, (units.size, 1))
        after[np.arange(units.size), units] = True
        return after

    def _gains(self, learner: Sureness, units: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what units gain, and how sure the learner is with them."""
        before, after = np.tile(self._owned, (units.size, 1)), self._with(units)
        sure = learner(after)
        gain = sure - self._reached.get(learner, float(sure.min()))
        if self._per_price:
            gain = _per_price(gain, self._prices.stage_ticks(np.stack([before, after], axis=1))[:, 1])
        return gain, sure


def _per_price(gain: FloatArray, paid: IntArray) -> FloatArray:
    """Return gain per price; what is free comes first if it gains, and a loss weighs more the more is paid for it."""
    price = np.maximum(paid, 1e-3)  # ticks are whole
    return np.where(gain > 0, gain / price, gain * price)


def ends_of(order: Order) -> list[int]:
    """Return after how many units of an order a stage may end, those whose place was looked for."""
    ends = [*range(1, min(_EACH, order.n_placed) + 1)]
    while ends and ends[-1] < order.n_placed:
        ends.append(min(max(ends[-1] + 1, round(ends[-1] * _GROWTH)), order.n_placed))
    return ends


def beginnings(order: Order) -> BoolArray:
    """Return the feature sets that the order leads to, one for each end of a stage; the smallest first."""
    place = np.empty(order.units.size, dtype=np.int64)
    place[order.units] = np.arange(order.units.size)
    return np.asarray(place < np.array(ends_of(order), dtype=np.int64)[:, None])


def finest(order: Order) -> IntArray:
    """Return the design that buys in this order with a stage wherever one may end: cuts have no other feature sets.

    Units beyond those whose place was looked for are one stage.
    """
    n_units = order.units.size
    design = np.empty(n_units, dtype=np.int64)
    design[order.units] = np.searchsorted(ends_of(order), np.arange(n_units), side="right")
    return design


def merged(design: IntArray, *, max_stages: int, removal: bool, most: int) -> IntArray:
    """Return the designs that merge stages of this one; with removal, also those that leave its last ones out.

    They need no other feature sets. If there are more than ``most``, only those with few stages are returned.

    Examples
    --------
    >>> merged(np.array([0, 1, 2]), max_stages=2, removal=False, most=10)
    array([[0, 0, 0],
           [0, 1, 1],
           [0, 0, 1]])
    """
    n_stages = int(design.max()) + 1
    ends = range(1, n_stages + 1 if removal else n_stages)
    closing = () if removal else (n_stages,)  # the last stage buys all that is left
    designs: list[IntArray] = []
    for depth in range(1, min(max_stages, n_stages) + 1):
        n_free = depth - len(closing)
        if designs and len(designs) + comb(len(ends), n_free) > most:
            break
        for chosen in combinations(ends, n_free):
            stage = np.searchsorted([*chosen, *closing], np.arange(n_stages), side="right")
            stage[stage == depth] = -1
            designs.append(np.where(design < 0, -1, stage[design]))
    return np.array(designs[:most])


def cuts(order: Order, *, max_stages: int, removal: bool, most: int) -> IntArray:
    """Return up to ``most`` designs that buy in this order, those with few stages first."""
    return merged(finest(order), max_stages=max_stages, removal=removal, most=most)
