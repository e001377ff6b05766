"""Integer counts of designs, computed on bitsets (§2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.prices.prices import PriceList
from emsco.scoring import _bitset as bitset
from emsco.scoring.cache import StageCache

_CELLS_AT_ONCE = 2**22  # counts by true class and label: 32 MiB


@dataclass(frozen=True)
class Tally:
    """Integer counts of designs on the same samples. Counts compare exactly; divisions come later.

    Attributes
    ----------
    n_samples : int
    reached : ndarray of shape (n_designs, n_stages)
        Samples that reach, and pay for, each stage.
    n_conclusive, n_correct : ndarray of shape (n_designs,)
        Samples that leave with a label, and with a correct label.
    total_ticks : ndarray of shape (n_designs,)
        Total cost of all samples, in ticks of the price list.
    scale : float
        Ticks per price unit.
    least_price : float
        The smallest price above 0, in price units.
    values : ndarray of shape (n_designs, n_objectives) or None
        Values of the objectives that the user chose; None for those of the paper, which follow from the counts.
    """

    n_samples: int
    reached: IntArray
    n_conclusive: IntArray
    n_correct: IntArray
    total_ticks: IntArray
    scale: float
    least_price: float
    values: NDArray[np.float64] | None = None

    @property
    def vectors(self) -> IntArray:
        """Integers per design; equal rows are equal objective vectors.

        (n_conclusive, n_correct, total_ticks); for objectives that the user chose, the bits of their values.
        """
        if self.values is not None:
            return self.values.view(np.int64)
        return np.column_stack([self.n_conclusive, self.n_correct, self.total_ticks])

    def select(self, designs: NDArray[np.intp]) -> "Tally":
        """Return the counts of the selected designs."""
        return Tally(
            self.n_samples,
            self.reached[designs],
            self.n_conclusive[designs],
            self.n_correct[designs],
            self.total_ticks[designs],
            self.scale,
            self.least_price,
            None if self.values is None else self.values[designs],
        )


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
    """

    def __init__(self, cache: StageCache, prices: PriceList, score: Score | None = None) -> None:
        self._cache = cache
        self._prices = prices
        self._score = score

    def tally(self, population: IntArray) -> Tally:
        """Count the decisions of every design of the population on the validation samples."""
        n_stages = stage_counts(population)
        deepest = int(n_stages.max())
        self._cache.require(deepest)
        n_classes = len(self._cache.truth)
        step = max(min(self._cache.capacity // deepest, _CELLS_AT_ONCE // (n_classes + 1) ** 2), 1)
        return join_tallies(*(self._tally(population[i : i + step]) for i in range(0, len(population), step)))

    def _tally(self, population: IntArray) -> Tally:
        n_designs = len(population)
        n_stages = stage_counts(population)
        acquired, exists = acquired_sets(population)
        slots = np.zeros(exists.shape, dtype=np.int64)
        slots[exists] = self._cache.slots(acquired[exists])
        if (n_rules := self._cache.n_rules) > 1:
            slots = slots * n_rules + np.minimum(np.arange(exists.shape[1]), n_rules - 1)
        reached = np.zeros(exists.shape, dtype=np.int64)
        n_conclusive = np.empty(n_designs, dtype=np.int64)
        n_correct = np.empty(n_designs, dtype=np.int64)
        cache = self._cache
        n_classes = len(cache.truth)
        confusion = np.empty((n_designs, n_classes, n_classes + 1), dtype=np.int64)
        if n_classes:
            walk = bitset.walk_two_classes if n_classes == 2 else bitset.walk_by_class
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


def join_tallies(*parts: Tally) -> Tally:
    """Return the counts of several groups of designs as one."""
    if len(parts) == 1:
        return parts[0]
    deepest = max(part.reached.shape[1] for part in parts)
    reached = [np.pad(part.reached, ((0, 0), (0, deepest - part.reached.shape[1]))) for part in parts]
    return Tally(
        parts[0].n_samples,
        np.concatenate(reached),
        np.concatenate([part.n_conclusive for part in parts]),
        np.concatenate([part.n_correct for part in parts]),
        np.concatenate([part.total_ticks for part in parts]),
        parts[0].scale,
        parts[0].least_price,
        None if parts[0].values is None else np.concatenate([part.values for part in parts if part.values is not None]),
    )


def pack_tally(tally: Tally) -> dict[str, NDArray[Any]]:
    """Return the counts as arrays."""
    return {
        "reached": tally.reached,
        "figures": np.array([tally.n_conclusive, tally.n_correct, tally.total_ticks]),
        "n_samples": np.array(tally.n_samples),
        "money": np.array([tally.scale, tally.least_price]),
        **({} if tally.values is None else {"values": tally.values}),
    }


def restore_tally(arrays: Mapping[str, NDArray[Any]]) -> Tally:
    """Return the counts from the arrays of ``pack_tally``."""
    n_conclusive, n_correct, total_ticks = arrays["figures"]
    counts = (int(arrays["n_samples"]), arrays["reached"], n_conclusive, n_correct, total_ticks)
    scale, least_price = arrays["money"].tolist()
    return Tally(*counts, scale, least_price, arrays.get("values"))
