"""What a time limit leaves out: work is cut in whole feature sets, designs and points, before it is begun."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.partition import acquired_sets
from emsco.exceptions import EmscoError
from emsco.fitting.clock import Clock
from emsco.fitting.forecast import ordering_seconds, point_seconds, search_seconds, typical_seconds, typical_sets
from emsco.fitting.proxy import Proxy
from emsco.fitting.settings import Settings
from emsco.fitting.timing import Timing
from emsco.scoring.choice import choose_point, spread
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.search.base import Search, TimeUpError
from emsco.search.bestfirst import CHAINS, BestFirst
from emsco.search.chains import Order, Sureness, beginnings, ends_of, orders
from emsco.search.exact.proof import Exact

_ORDERING = 0.4  # share of the time of the search that orders by the learner itself may take
_TRAINED = 0.5  # share of it that is kept for the stages of these orders
_AROUND = 1.7  # time that final stages take, in that which all their feature sets take
_REPRESENTING = 60  # points of a front
_COUNTED = 20  # points that are counted by class in any case
_SHORT = BestFirst(max_designs=6_000, focus=0.5, start=CHAINS)  # where there is no time for the search that was picked


class LimitedPace:
    """What there is time for, of the feature sets of a judge.

    Parameters
    ----------
    clock : Clock
    judge : Judge
    timing : Timing
        Of its learner.
    make_proxy : callable
        Returns what orders units where there is no time to ask the learner.
    proxy : Proxy or None
        What orders them anyway, if the learner is slow.

    Attributes
    ----------
    cut : bool
        Whether there was no time for something.
    """

    def __init__(
        self, clock: Clock, judge: Judge, timing: Timing, make_proxy: Callable[[], Proxy], proxy: Proxy | None = None
    ) -> None:
        self._clock = clock
        self._judge = judge
        self._timing = timing
        self._make_proxy = make_proxy
        self._proxy = proxy
        self._orders: list[Order] = []
        self.cut = False

    def left(self) -> float:
        """Return the seconds left."""
        return self._clock.left()

    def seconds(self, sets: BoolArray) -> FloatArray:
        """Return how long each set will take; nothing if it is trained already."""
        return np.where(self._judge.cache.knows(sets), 0.0, self._timing.seconds(sets))

    def n_designs(self, designs: IntArray) -> int:
        """Return for how many of the designs, the first ones, there is time."""
        acquired, exists = acquired_sets(designs)
        sets, first = np.unique(acquired[exists], axis=0, return_index=True)
        seconds = np.zeros(len(designs))
        np.add.at(seconds, np.nonzero(exists)[0][first], self.seconds(sets))
        return self._within(seconds, self.left())

    def n_typical(self) -> int:
        """Return for how many typical feature sets there is time, with orders before and models after them."""
        left = self._clock.left_through("training the final stages")
        return int(left / (_AROUND * typical_seconds(self._timing, self._judge.task.prices.n_units)))

    @property
    def sureness(self) -> Sureness:
        """What orders units: the learner, or a proxy if that is slow."""
        return self._judge.sureness if self._proxy is None else self._proxy

    def asking(self, sets: BoolArray) -> float:
        """Return how long it takes to ask that of feature sets."""
        return float((self.seconds(sets) if self._proxy is None else self._proxy.seconds(sets)).sum())

    def orders(self) -> list[Order]:
        """Return orders in which units are worth buying, as far as there is time to train the sets they lead to."""
        if not self._orders:
            prices, left = self._judge.task.prices, self.left()
            slow = not self._judge.fast or ordering_seconds(self._timing, prices) > _ORDERING * left
            if slow and self._proxy is None:
                self.cut, self._proxy = True, self._make_proxy()
            until = 0.0 if self._proxy is None else _TRAINED * left
            found = orders(self.sureness, prices, affords=lambda sets: self._affords(sets, until))
            for n_left, order in zip(range(len(found), 0, -1), found, strict=True):
                self._orders.append(self.trained(order, self.left() / n_left))
        return self._orders

    def trained(self, order: Order, seconds: float) -> Order:
        """Train the sets that an order leads to; return one that ends where more would take longer than that."""
        sets, ends = beginnings(order), ends_of(order)
        n_sets, step = self._within(self.seconds(sets), seconds), self._timing.n_jobs
        for i in range(0, n_sets, step):
            try:
                self._judge.cache.slots(sets[i : min(i + step, n_sets)])
            except TimeUpError:
                self.cut, n_sets = True, i
                break
        return order._replace(n_placed=[0, *ends][n_sets])

    def chain(self, order: Order, seconds: float) -> IntArray:
        """Return the design that buys in an order, with stages where there is time to train them: from everywhere."""
        sets, ends, trained = beginnings(order), np.array(ends_of(order), dtype=np.int64), [0]
        until = self._clock.elapsed + seconds
        for i in _halving(len(sets)):
            try:
                if not self.left() > 0 or self.seconds(sets[i : i + 1])[0] > until - self._clock.elapsed:
                    raise TimeUpError
                self._judge.cache.slots(sets[i : i + 1])
            except TimeUpError:
                self.cut = True
                continue
            trained.append(ends[i])
        design = np.empty(order.units.size, dtype=np.int64)
        design[order.units] = np.searchsorted(sorted(trained), np.arange(order.units.size), side="right") - 1
        return design

    def _affords(self, sets: BoolArray, until: float) -> bool:
        affords = self.asking(sets) <= self.left() - until
        self.cut |= not affords
        return affords

    def _within(self, seconds: FloatArray, left: float) -> int:
        n = int(np.searchsorted(np.cumsum(seconds), max(left, 0.0), side="right"))
        self.cut |= n < len(seconds)
        return n


def _halving(n: int) -> list[int]:
    """Return the numbers below ``n``, so that the first few of them are everywhere: the last, then halves of halves.

    Examples
    --------
    >>> _halving(7)
    [6, 3, 1, 5, 0, 2, 4]
    """
    order, step = [n - 1] if n else [], n
    while step > 1:
        step = -(-step // 2)
        order.extend(i for i in range(step - 1, n, step) if i not in order)
    return order


def search_in_time(picked: Search, judge: Judge, timing: Timing, clock: Clock, *, given: bool) -> Search:
    """Return the search, or where there is no time for it a shorter one.

    Parameters
    ----------
    picked : Search
    judge : Judge
    timing : Timing
        Of the learner of the search.
    clock : Clock
    given : bool
        Whether the user asked for this search; then only a proof is replaced, which finds nothing before all feature
        sets are trained.
    """
    if clock.affords(search_seconds(picked, judge.task, timing, fast=judge.fast)):
        return picked
    if isinstance(picked, BestFirst) and not given:
        return replace(picked, max_designs=min(picked.max_designs, _SHORT.max_designs), start=CHAINS)
    if not isinstance(picked, Exact):
        return picked if given else _SHORT
    n_units = judge.task.prices.n_units
    training = 2.0**n_units * timing.seconds(typical_sets(n_units, np.array([n_units / 2])))[0]
    if clock.affords(2 * training):
        return picked
    clock.cut(f"there was no exact search: the {2**n_units - 1:,} feature sets take about {training:.2g} s to train")
    return _SHORT


def counted_in_time(settings: Settings, front: Front, pick: int | None, task: Task, clock: Clock) -> Front:
    """Return the points that there is time to count by class; some at least.

    First comes the one that will be put into use, ``pick`` if that is known, then those that represent the front, then
    the fittest.
    """
    n_points = clock.left() / 2 / (point_seconds(task.y.size) * clock.speed.of("counting"))
    return _first_points(front, first_choice(settings, front) if pick is None else pick, max(n_points, _COUNTED))


def trained_in_time(front: Front, first: int, timing: Timing, clock: Clock) -> tuple[Front, int]:
    """Return the points that there is time to train, and which of them is the ``first``, which is always there."""
    order = _in_order(front, first)
    acquired, exists = acquired_sets(front.designs[order])
    everything = np.ones((1, front.designs.shape[1]), dtype=np.bool_)
    sets, first_at = np.unique(np.concatenate([everything, acquired[exists]]), axis=0, return_index=True)
    seconds = np.zeros(len(order))
    np.add.at(seconds, np.concatenate([[0], np.nonzero(exists)[0]])[first_at], timing.model_seconds(sets))
    n_points = int(np.searchsorted(np.cumsum(seconds), clock.left(), side="right"))
    few = _first_points(front, first, max(n_points, 1))
    kept = np.sort(order[: len(few)])
    return few, int(np.flatnonzero(kept == first)[0])


def _first_points(front: Front, first: int, n_points: float) -> Front:
    if n_points >= len(front):
        return front
    return replace(front[np.sort(_in_order(front, first)[: int(n_points)])], certificate=None)


def _in_order(front: Front, first: int) -> NDArray[np.intp]:
    """Return all points, those that matter most first."""
    return np.array(list(dict.fromkeys([first, *spread(front, _REPRESENTING).tolist(), *range(len(front))])))


def first_choice(settings: Settings, front: Front) -> int:
    """Return the point that will be put into use, as far as that can be said; else the fittest."""
    with suppress(EmscoError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not callable(settings.choose):
            return choose_point(front, settings.choose, best=settings.best)
    return 0
