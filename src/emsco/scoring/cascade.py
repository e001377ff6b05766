"""Integer counts of designs, computed on bitsets (§2)."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.prices.prices import PriceList
from emsco.scoring import _bitset as bitset
from emsco.scoring.cache import StageCache
from emsco.scoring.tally import Tally, join_tallies

_CELLS_AT_ONCE = 2**22  # counts by true class and label: 32 MiB


# From counts, stages and confusion by true class and label, (n_designs, n_classes, n_classes + 1), to values.
Score = Callable[[Tally, IntArray, IntArray], NDArray[np.float64]]


class Cascade:
    """Scores whole populations of designs.

    Parameters
    ----------
    cache : StageCache
        If it stores labels, samples are counted by true class and label.
    prices : PriceList
    score : callable or None
        Returns the values of the objectives that the user chose, for some of the designs at a time.
    last_differs : bool
        The second of two rules of the cache is that of the last stage of a design, wherever that is; the first one
        holds for all stages before.
    """

    def __init__(
        self, cache: StageCache, prices: PriceList, score: Score | None = None, *, last_differs: bool = False
    ) -> None:
        self._cache = cache
        self._last_differs = last_differs
        self._prices = prices
        self._score = score

    def tally(self, population: IntArray) -> Tally:
        """Count the decisions of every design of the population on the validation samples."""
        deepest = max(int(stage_counts(population).max()), 1)
        self._cache.require(deepest)
        n_classes = len(self._cache.truth)
        step = max(min(self._cache.capacity // deepest, _CELLS_AT_ONCE // (n_classes + 1) ** 2), 1)
        return join_tallies(*(self._tally(population[i : i + step]) for i in range(0, len(population), step)))

    def _tally(self, population: IntArray) -> Tally:
        n_designs = len(population)
        acquired, exists = acquired_sets(population)
        n_stages = exists.sum(axis=1)
        slots = np.zeros(exists.shape, dtype=np.int64)
        slots[exists] = self._cache.slots(acquired[exists])
        if self._last_differs:
            slots = slots * 2 + (np.arange(exists.shape[1]) == n_stages[:, None] - 1)
        elif (n_rules := self._cache.n_rules) > 1:
            slots = slots * n_rules + np.minimum(np.arange(exists.shape[1]), n_rules - 1)
        reached = np.zeros(exists.shape, dtype=np.int64)
        n_conclusive = np.empty(n_designs, dtype=np.int64)
        n_correct = np.empty(n_designs, dtype=np.int64)
        cache = self._cache
        n_classes = len(cache.truth)
        confusion = np.empty((n_designs, n_classes, n_classes + 1), dtype=np.int64)
        if n_classes:
            walk = bitset.walk_two_classes if n_classes == 2 and cache.labels.shape[1] == 1 else bitset.walk_by_class
            walk(slots, n_stages, cache.truth, cache.confident, cache.labels, reached, confusion)
            n_conclusive[:] = confusion[:, :, :-1].sum(axis=(1, 2))
            n_correct[:] = np.trace(confusion, axis1=1, axis2=2)
        else:
            bitset.walk(slots, n_stages, cache.everyone, cache.confident, cache.right, reached, n_conclusive, n_correct)
        paid = self._prices.stage_ticks(acquired)
        total_ticks = (reached * paid).sum(axis=1)
        n_samples = int(reached[0, 0])
        money = (self._prices.scale, self._prices.least)
        tally = Tally(n_samples, reached, n_conclusive, n_correct, total_ticks, *money)
        return tally if self._score is None else replace(tally, values=self._score(tally, n_stages, confusion))
