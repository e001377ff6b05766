"""Chains: the order in which features are worth buying, and the designs that cut it into stages.

A design that buys features one by one needs a classifier for each beginning of the order. Every other design that
keeps the order needs no further one: it only leaves stages out. Thousands of designs cost the training of a few sets.
"""

from collections.abc import Callable
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.prices.prices import PriceList

Sureness = Callable[[BoolArray], FloatArray]  # of feature sets, how sure they are of the truth: the more, the better
MOST_LOOKED_FOR = 25  # units whose place in the order is looked for; the others follow as they did last
_SHORTLIST = 5  # units that a slow learner is asked of
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
    """
    by_gain = _forward(sureness, prices, strong, most, per_price=False, ends_early=ends_early)
    if np.unique(prices.prices).size == 1 and not prices.groups.any() and not prices.sources:
        return [by_gain]
    return [by_gain, _forward(sureness, prices, strong, most, per_price=True, ends_early=ends_early)]


def _forward(
    sureness: Sureness, prices: PriceList, strong: Sureness | None, most: int, *, per_price: bool, ends_early: bool
) -> Order:
    n_units = prices.n_units
    enough = np.inf
    if strong is not None and ends_early:
        everything = float(strong(np.ones((1, n_units), dtype=np.bool_))[0])
        enough = everything - _NEARLY * abs(everything)
    owned = np.zeros(n_units, dtype=np.bool_)
    order: list[int] = []
    left, worth = np.arange(n_units), np.zeros(n_units)
    reached: dict[Sureness, float] = {}  # what each learner is sure of what is owned

    def gains(learner: Sureness, units: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what units gain, and how sure the learner is with them."""
        before = np.tile(owned, (units.size, 1))
        after = before.copy()
        after[np.arange(units.size), units] = True
        sure = learner(after)
        gain = sure - reached.get(learner, float(sure.min()))
        if per_price:
            gain = _per_price(gain, prices.stage_ticks(np.stack([before, after], axis=1))[:, 1])
        return gain, sure

    while left.size and len(order) < most and (strong is None or reached.get(strong, -np.inf) < enough):
        worth, sure = gains(sureness, left)
        best = int(worth.argmax())
        if strong is not None:
            first = np.argsort(-worth, kind="stable")[:_SHORTLIST]
            strong_worth, strongly_sure = gains(strong, left[first])
            best = int(first[strong_worth.argmax()])
            reached[strong] = float(strongly_sure[strong_worth.argmax()])
        reached[sureness] = float(sure[best])
        order.append(int(left[best]))
        owned[left[best]] = True
        left, worth = np.delete(left, best), np.delete(worth, best)
    rest = left[np.argsort(-worth, kind="stable")]
    return Order(np.array([*order, *rest], dtype=np.int64), len(order) if ends_early else n_units)


def _per_price(gain: FloatArray, paid: IntArray) -> FloatArray:
    """Return gain per price; what is free comes first if it gains, and a loss weighs more the more is paid for it."""
    price = np.maximum(paid, 1e-3)  # ticks are whole
    return np.where(gain > 0, gain / price, gain * price)


def finest(order: Order) -> IntArray:
    """Return the design that buys in this order with a stage wherever one may end: cuts have no other feature sets.

    Units beyond those whose place was looked for are one stage.
    """
    n_units = order.units.size
    ends = [*range(1, min(_EACH, order.n_placed) + 1)]
    while ends[-1] < order.n_placed:
        ends.append(min(max(ends[-1] + 1, round(ends[-1] * _GROWTH)), order.n_placed))
    design = np.empty(n_units, dtype=np.int64)
    design[order.units] = np.searchsorted(ends, np.arange(n_units), side="right")
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
