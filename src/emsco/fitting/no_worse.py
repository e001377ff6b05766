"""The default choice: the cheapest point that is no worse than buying everything, for any class.

*No worse* is paired: some rows only buying everything labels correctly (lost), others only the point (gained). Both
numbers together are the variance of their difference. Thousands of points are tried, so the cheapest of those that seem
as good as buying everything are there by luck, too, and worse on new rows. Therefore a point must gain more than it
loses by two standard errors, unless it gives the same labels; a single class may lose half a standard error. Measured,
the points chosen so are right 0.4 points less often on new rows than buying everything (docs/defaults.md). With many
rows, a thousandth of them may be lost besides.

The choice is also made without the rows of each fold and judged on them: this tells what to expect on new rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.fitting._no_worse import walk_against
from emsco.fitting.clock import Clock
from emsco.fitting.finishing import simplified
from emsco.fitting.forecast import walking_seconds
from emsco.scoring.choice import OF_A_CLASS, tolerated
from emsco.scoring.judge import Judge, Task
from emsco.scoring.outlook import Outlook

MARGIN = -2.0  # standard errors by which a point may be worse, all classes together: it must be better
_CELLS = 2**22  # outcomes of feature sets x samples in memory at once: 36 MiB


@dataclass(frozen=True, eq=False)
class Pick:
    """What is chosen.

    Attributes
    ----------
    design : ndarray of shape (n_units,)
    exit_at : float
        Threshold of its stages before the last; the last one labels whoever is left.
    outlook : Outlook
        What to expect of it on new rows.
    """

    design: IntArray
    exit_at: float
    outlook: Outlook


@dataclass
class _Best:
    """The cheapest so far within the margin: seen from all rows, or from all but a fold."""

    key: tuple[float, int, int, int, int] = (np.inf, 0, 0, 0, 0)
    design: int = -1
    exit: int = -1
    left: IntArray | None = None  # by fold and stage
    lost: IntArray | None = None  # by fold and class
    gained: IntArray | None = None


def within(lost: IntArray, gained: IntArray, n_rows: IntArray) -> BoolArray:
    """Return where no class, and not all of them together, lose more than they may; classes are the last axis."""
    by_class = (lost - gained <= OF_A_CLASS * np.sqrt(lost + gained) + tolerated(n_rows)).all(axis=-1)
    all_lost, all_gained = lost.sum(axis=-1), gained.sum(axis=-1)
    together = all_lost - all_gained <= MARGIN * np.sqrt(all_lost + all_gained) + tolerated(n_rows.sum())
    return np.asarray(by_class & together)


def choose_no_worse(
    designs: IntArray, judge: Judge, folds: NDArray[np.intp], exits: tuple[float, ...], clock: Clock | None = None
) -> Pick:
    """Return the cheapest of designs and exit thresholds that is no worse than buying everything at once.

    Parameters
    ----------
    designs : ndarray of shape (n_designs, n_units)
    judge : Judge
    folds : ndarray of shape (n_samples,)
        Fold of each sample, for the rehearsal of the choice.
    exits : tuple of float
    clock : Clock or None
        Where there is no time for all designs, those with few stages are looked at.
    """
    task, clock = judge.task, Clock() if clock is None else clock
    everything = np.zeros((1, task.prices.n_units), dtype=np.int64)
    designs = np.unique(np.concatenate([everything, designs]), axis=0)
    if clock.is_limited:
        designs = _everything_first(designs, few_stages=not clock.affords(_seconds(task, len(designs), clock)))
    at_once = judge.answers(everything[0])
    other = at_once.label[0] == task.y
    n_folds = int(folds.max()) + 1
    views = [np.ones(n_folds, dtype=np.bool_), *(np.arange(n_folds) != f for f in range(n_folds))]
    n_rows = np.array([np.bincount(task.y[folds == f], minlength=task.n_classes) for f in range(n_folds)])
    chosen, *rehearsed = best = [_Best() for _ in views]
    for rows, (left, lost, gained) in _walked(designs, judge, other, folds, np.array(exits), clock):
        part = designs[rows]
        n_stages, n_bought = stage_counts(part), (part >= 0).sum(axis=1)
        paid = np.cumsum(task.prices.stage_ticks(acquired_sets(part)[0]), axis=1)
        for so_far, view in zip(best, views, strict=True):
            spent = (left[:, :, view].sum(axis=2) * paid[:, None]).sum(axis=2)
            losses, gains = lost[:, :, view].sum(axis=2), gained[:, :, view].sum(axis=2)
            net, allowed = (losses - gains).sum(axis=2), within(losses, gains, n_rows[view].sum(axis=0))
            _improve(so_far, rows, allowed, spent, n_stages, n_bought, net, (left, lost, gained))
    assert chosen.left is not None  # buying everything is among the designs, and no worse than itself
    design = simplified(designs[chosen.design][None], chosen.left.sum(axis=0)[None], removal=task.removal)[0]
    return Pick(design, exits[chosen.exit], _outlook(chosen, rehearsed, designs, judge, other))


def _everything_first(designs: IntArray, *, few_stages: bool) -> IntArray:
    """Return designs with everything at once first; then as they are, or those with few stages first."""
    n_stages = stage_counts(designs) if few_stages else np.ones(len(designs))
    return designs[np.lexsort((n_stages, (designs != 0).any(axis=1)))]


def _seconds(task: Task, n_designs: int, clock: Clock) -> float:
    return walking_seconds(task.y.size, n_designs) * clock.speed.of("walking")


def _walked(
    designs: IntArray, judge: Judge, other: BoolArray, folds: NDArray[np.intp], bars: FloatArray, clock: Clock
) -> Iterator[tuple[NDArray[np.intp], tuple[IntArray, IntArray, IntArray]]]:
    """Yield parts of the designs, as far as there is time, with what leaves, is lost and is gained.

    These are counts by threshold and fold.
    """
    y, n_classes = judge.task.y, judge.task.n_classes
    n_folds = int(folds.max()) + 1
    step = max(int(min(_CELLS // y.size, judge.cache.capacity) // max(stage_counts(designs).max(), 1)), 1)
    until = clock.left() / 2  # for the thresholds of the front
    for i in range(0, len(designs), step):
        rows = np.arange(i, min(i + step, len(designs)))
        if i and clock.left() - _seconds(judge.task, len(rows), clock) < until:
            clock.cut(f"{i:,} of {len(designs):,} designs were compared")
            return
        began = clock.elapsed
        acquired, exists = acquired_sets(designs[rows])
        sets, place = np.unique(acquired[exists], axis=0, return_inverse=True)
        slots = np.zeros(exists.shape, dtype=np.int64)
        slots[exists] = place.ravel()
        outcomes = judge.cache.outcomes(sets)
        shape = (len(rows), bars.size, n_folds)
        left = np.zeros((*shape, exists.shape[1]), dtype=np.int64)
        lost, gained = (np.zeros((*shape, n_classes), dtype=np.int64) for _ in range(2))
        right = outcomes.label == y
        walk_against(slots, exists.sum(axis=1), outcomes.confidence, right, other, y, folds, bars, left, lost, gained)
        yield rows, (left, lost, gained)
        clock.speed.learn("walking", clock.elapsed - began, walking_seconds(judge.task.y.size, len(rows)))
        clock("choosing thresholds", 0.5 * (i + len(rows)) / len(designs), f"{i + len(rows):,} designs")


def _improve(
    best: _Best,
    rows: NDArray[np.intp],
    allowed: BoolArray,
    spent: IntArray,
    n_stages: IntArray,
    n_bought: IntArray,
    net: IntArray,
    counts: tuple[IntArray, IntArray, IntArray],
) -> None:
    """Take the cheapest of a part if it is cheaper; of equals that with the fewest stages, units, then lost samples."""
    if not allowed.any():
        return
    cheapest = np.where(allowed, spent, np.iinfo(np.int64).max)
    ds, es = np.nonzero(cheapest == cheapest.min())
    first = np.lexsort((es, net[ds, es], n_bought[ds], n_stages[ds]))[0]
    d, e = int(ds[first]), int(es[first])
    key = (float(spent[d, e]), int(n_stages[d]), int(n_bought[d]), int(net[d, e]), e)
    if key < best.key:
        best.key, best.design, best.exit = key, int(rows[d]), e
        best.left, best.lost, best.gained = (array[d, e].copy() for array in counts)


def _outlook(chosen: _Best, rehearsed: list[_Best], designs: IntArray, judge: Judge, other: BoolArray) -> Outlook:
    """Return the labels of what was chosen without each fold, on that fold, and what the chosen one costs."""
    task = judge.task
    n_rows = np.bincount(task.y, minlength=task.n_classes)
    n_right = np.bincount(task.y[other], minlength=task.n_classes)
    for f, best in enumerate(rehearsed):
        assert best.lost is not None  # buying everything is among the designs, and no worse than itself
        assert best.gained is not None
        n_right = n_right + best.gained[f] - best.lost[f]
    assert chosen.left is not None
    paid = np.cumsum(task.prices.stage_ticks(acquired_sets(designs[chosen.design][None])[0])[0])
    n_paid = chosen.left.sum(axis=0)[: paid.size]
    used = np.flatnonzero(n_paid)
    return Outlook(
        n_right=tuple(n_right.tolist()),
        n_labelled=tuple(n_rows.tolist()),
        n_rows=tuple(n_rows.tolist()),
        paid=tuple((paid[used] / task.prices.scale).tolist()),
        n_paid=tuple(n_paid[used].tolist()),
    )
