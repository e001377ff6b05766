"""After the search: the front of what final stages, and thresholds of their own, make of the designs it found."""

from typing import Protocol

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.partition import distinct_sets, stage_counts
from emsco.fitting.clock import Clock
from emsco.fitting.forecast import n_placed
from emsco.fitting.limited import LimitedPace
from emsco.fitting.timing import Timing
from emsco.scoring.choice import spread
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.search.base import TimeUpError
from emsco.search.chains import MOST_LOOKED_FOR, SHORTLIST, Sureness, finest, merged, orders

SETS_AT_ONCE = 16  # trained between two signs of progress
_MOST_FINAL = 30  # designs of a front whose stages are trained again by a final learner of the user's
_MERGED_CELLS = 2**23  # designs x units that need no other feature sets than those trained: 64 MiB
_FEWEST_MERGED, _MOST_MERGED = 250, 12_000  # designs
_FEW_STEPS = 2**26  # samples x designs beyond which fewer designs are looked at
_STAGES = 3  # of a typical design
_ASKING = 3  # feature sets per unit that is placed, which there must be time for if a slow learner orders units
_FEWEST = 4  # feature sets of final stages; for fewer, a final learner is not worth it


class Asked(Protocol):
    """How sure a learner is of feature sets, and how long it takes to ask."""

    def __call__(self, sets: BoolArray) -> FloatArray:
        """Return how sure it is."""

    def seconds(self, sets: BoolArray) -> FloatArray:
        """Return how long it will take to ask for each of the sets."""


class Asking:
    """Asks a judge.

    Parameters
    ----------
    judge : Judge
    timing : Timing
        Of its learner.
    """

    def __init__(self, judge: Judge, timing: Timing) -> None:
        self._judge, self._timing = judge, timing

    def __call__(self, sets: BoolArray) -> FloatArray:
        """Return how sure the learner is."""
        return self._judge.sureness(sets)

    def seconds(self, sets: BoolArray) -> FloatArray:
        """Return how long it will take to ask for each of the sets."""
        return np.where(self._judge.cache.knows(sets), 0.0, self._timing.seconds(sets))


def pool(
    front: Front,
    fast: Judge,
    final: Judge,
    *,
    chains: bool,
    clock: Clock,
    asked: Asked | None = None,
    n_sets: int | None = None,
    proxy: Sureness | None = None,
) -> IntArray:
    """Return the designs of a search, and others that need few feature sets more.

    The others are those that merge stages of a design of the front, or that buy in the order in which units are worth
    it. A final learner orders what the fast one proposes.

    Parameters
    ----------
    front : Front
        What the search found.
    fast : Judge
        Of the learner of the search.
    final : Judge
        Of the learner that is put into use; it may be the same.
    chains : bool
        Whether the fast learner is fast enough to order units.
    clock : Clock
    asked : Asked or None
        How sure the final learner is of sets, if it orders units, too.
    n_sets : int or None
        Feature sets that the final learner trains in reasonable time; None: many.
    proxy : callable or None
        Orders units in place of the learner of the search, if that is slow.
    """
    task, designs, most, n_designs = final.task, front.designs, MOST_LOOKED_FOR, _MOST_FINAL
    if n_sets is not None:  # a third of the sets for each order, which begin alike, the others for designs
        most = n_placed(n_sets, task.prices.n_units)
        n_designs = max(n_sets // 3 // _STAGES, 2)
    if final is not fast:
        designs = designs[spread(front, n_designs)]
    if chains:
        sureness: Sureness = fast.sureness if proxy is None else proxy
        strong = None if asked is None else _showing(asked, most, clock)
        found = orders(sureness, task.prices, strong, most=most, ends_early=n_sets is not None)
        designs = np.concatenate([designs, [finest(order) for order in found]])
    if final is not fast:
        clock.begin("training the final stages")
        _train(distinct_sets(designs), final, clock)
    return _merged(designs, task, many=final is not fast and n_sets is None)


def pool_in_time(
    front: Front,
    final: Judge,
    *,
    clock: Clock,
    searching: LimitedPace,
    finishing: LimitedPace | None = None,
    asked: Asked | None = None,
    n_sets: int | None = None,
) -> IntArray:
    """Return as ``pool`` designs of a search and others, but only those that there is time to train.

    Parameters
    ----------
    front : Front
    final : Judge
        Of the learner that is put into use.
    clock : Clock
    searching, finishing : LimitedPace
        What there is time for, of the learner of the search and of the final one, if that is another.
    asked, n_sets
        As ``pool`` has them.
    """
    task, designs = final.task, front.designs
    if finishing is None:
        designs = np.concatenate([designs, [finest(order) for order in searching.orders()]])
        return _merged(designs, task, many=False)
    final.cache.slots(np.ones((1, task.prices.n_units), dtype=np.bool_))  # which also tells how fast the learner is
    n_typical = finishing.n_typical()
    if n_typical < _FEWEST:
        raise TimeUpError
    most = MOST_LOOKED_FOR if n_sets is None else n_placed(n_sets, task.prices.n_units)
    if n_typical < _ASKING * most:
        asked = None
    until = clock.left() / 3

    def affords(sets: BoolArray) -> bool:
        seconds = 0.0 if asked is None else float(asked.seconds(sets[:SHORTLIST]).sum())
        return searching.asking(sets) + seconds <= clock.left() - until

    strong = None if asked is None else _showing(asked, most, clock)
    found = orders(searching.sureness, task.prices, strong, most=most, ends_early=True, affords=affords)
    clock.begin("training the final stages")
    chains = [finishing.chain(order, clock.left() / (len(found) + 1 - i)) for i, order in enumerate(found)]
    designs = designs[spread(front, max(n_typical // 3 // _STAGES, 2))]
    designs = designs[: finishing.n_designs(designs)]
    _train(distinct_sets(designs), final, clock)
    return _merged(np.concatenate([designs, chains]), task, many=False)


def _showing(sureness: Sureness, most: int, clock: Clock) -> Sureness:
    """Return the sureness of a slow learner, with signs of progress."""

    def strong(sets: BoolArray) -> FloatArray:
        clock("ordering features", min(sets[0].sum() / (most + 1), 1.0))
        return sureness(sets)

    return strong


def _merged(designs: IntArray, task: Task, *, many: bool) -> IntArray:
    """Return designs, and those that merge their stages: as many as memory allows, or fewer."""
    n_merged = _MERGED_CELLS // designs.shape[1]
    if not many:
        n_merged = min(n_merged, _MOST_MERGED, max(_FEW_STEPS // task.y.size, _FEWEST_MERGED))
    each = max(n_merged // len(designs), 1)
    parts = [merged(design, max_stages=task.max_stages, removal=task.removal, most=each) for design in designs]
    allowed = designs[stage_counts(designs) <= task.max_stages]
    return np.unique(np.concatenate([allowed, *parts]), axis=0)


def _train(sets: BoolArray, final: Judge, clock: Clock) -> None:
    """Train feature sets, with signs of progress."""
    step = min(SETS_AT_ONCE, final.cache.capacity)
    for i in range(0, len(sets), step):
        final.cache.slots(sets[i : i + step])
        clock("training the final stages", min((i + step) / len(sets), 1.0))


def simplified(designs: IntArray, left: IntArray, *, removal: bool) -> IntArray:
    """Return designs without the stages that change nothing: nobody leaves there, or nobody gets there.

    Without removal, what nobody gets to is still bought, in one last stage.

    Parameters
    ----------
    designs : ndarray of shape (n_designs, n_units)
    left : ndarray of shape (n_designs, n_stages)
        Samples that leave at each stage.

    Examples
    --------
    >>> simplified(np.array([[0, 1, 2, 3]]), np.array([[5, 0, 2, 0]]), removal=True)
    array([[ 0,  1,  1, -1]])
    """
    used = left > 0
    place: IntArray = np.cumsum(used, axis=1) - used  # of the stage at which those who wait leave next
    last = used.shape[1] - 1 - used[:, ::-1].argmax(axis=1)
    stage: IntArray = np.take_along_axis(place, np.maximum(designs, 0), axis=1)
    beyond = designs > last[:, None]
    return np.where((designs < 0) | (beyond & removal), -1, stage)
