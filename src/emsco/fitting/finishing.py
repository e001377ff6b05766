"""After the search: the front of what final stages, and thresholds of their own, make of the designs it found."""

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.partition import distinct_sets, stage_counts
from emsco.fitting.clock import Clock
from emsco.fitting.limited import LimitedPace
from emsco.fitting.race import Quick
from emsco.scoring.front import Front, spread
from emsco.scoring.judge import Judge, Task
from emsco.search.base import TimeUpError
from emsco.search.chains import MOST_LOOKED_FOR, SHORTLIST, Sureness, finest, merged, orders

SETS_AT_ONCE = 16  # trained between two signs of progress
_MOST_FINAL = 30  # designs of a front whose stages are trained again by a final learner of the user's
_MERGED_CELLS = 2**23  # designs x units that need no other feature sets than those trained: 64 MiB
_MOST_MERGED = 12_000  # designs
_FEW_STEPS = 2**28  # samples x designs beyond which fewer designs are looked at
_STAGES = 3  # of a typical design
_FEWEST = 4  # feature sets of final stages; for fewer, a final learner is not worth it


def pool(
    front: Front,
    fast: Judge,
    final: Judge,
    *,
    chains: bool,
    quick: Quick | None,
    clock: Clock,
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
    quick : Quick or None
        How sure the final learner is of sets, approximately and fast; None: ask it itself.
    clock : Clock
    proxy : callable or None
        Orders units in place of the learner of the search, if that is slow.
    """
    task, designs, strong, most = final.task, front.designs, None, MOST_LOOKED_FOR
    if final is not fast:
        n_designs = _MOST_FINAL
        if quick is not None:  # a third of the sets for each order, which begin alike, the others for designs
            most = quick.n_sets // 3
            n_designs = max(quick.n_sets // 3 // _STAGES, 2)
        designs = designs[spread(front, n_designs)]
        strong = _showing(final.sureness if quick is None else quick, most, clock)
    if chains:
        sureness: Sureness = fast.sureness if proxy is None else proxy
        found = orders(sureness, task.prices, strong, most=most, ends_early=quick is not None)
        designs = np.concatenate([designs, [finest(order) for order in found]])
    if final is not fast:
        clock.begin("training the final stages")
        _train(distinct_sets(designs), final, clock)
    return _merged(designs, task, many=final is not fast and quick is None)


def pool_in_time(
    front: Front,
    final: Judge,
    *,
    quick: Quick | None,
    clock: Clock,
    searching: LimitedPace,
    finishing: LimitedPace | None,
) -> IntArray:
    """Return as ``pool`` designs of a search and others, but only those that there is time to train.

    Parameters
    ----------
    front : Front
    final : Judge
        Of the learner that is put into use.
    quick : Quick or None
    clock : Clock
    searching, finishing : LimitedPace
        What there is time for, of the learner of the search and of the final one, if that is another.
    """
    task, designs = final.task, front.designs
    if finishing is None:
        designs = np.concatenate([designs, [finest(order) for order in searching.orders()]])
        return _merged(designs, task, many=False)
    final.cache.slots(np.ones((1, task.prices.n_units), dtype=np.bool_))  # which also tells how fast the learner is
    n_sets = finishing.n_typical()
    if n_sets < _FEWEST:
        raise TimeUpError
    most = min(n_sets // 3, MOST_LOOKED_FOR if quick is None else quick.n_sets // 3)
    asked: Sureness = final.sureness if quick is None else quick
    seconds = finishing.seconds if quick is None else quick.seconds
    until = clock.left() / 3

    def affords(sets: BoolArray) -> bool:
        return searching.asking(sets) + float(seconds(sets[:SHORTLIST]).sum()) <= clock.left() - until

    strong = _showing(asked, most, clock)
    found = orders(searching.sureness, task.prices, strong, most=max(most, 1), ends_early=True, affords=affords)
    clock.begin("training the final stages")
    found = [finishing.trained(order, clock.left() / (len(found) + 1 - i)) for i, order in enumerate(found)]
    designs = designs[spread(front, max(n_sets // 3 // _STAGES, 2))]
    designs = designs[: finishing.n_designs(designs)]
    _train(distinct_sets(designs), final, clock)
    return _merged(np.concatenate([designs, [finest(order) for order in found]]), task, many=False)


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
        n_merged = min(n_merged, _MOST_MERGED, max(_FEW_STEPS // task.y.size, 500))
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
