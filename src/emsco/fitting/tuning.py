"""Thresholds that are part of a design: one for its early exits, another for its last stage."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.fitting.clock import Clock
from emsco.fitting.forecast import counting_seconds
from emsco.scoring.answers import Answers
from emsco.scoring.front import Front, make_front
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import PAPER
from emsco.scoring.tally import Tally, join_tallies

EXITS = (0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.94, 0.96, 0.97, 0.98, 0.99, 0.995, 0.998)
LASTS = (0.0, *EXITS)  # 0: whoever is left gets a label
_AT_ONCE = 50_000  # designs with thresholds that are compared in one go
_FEWEST, _MOST = 200, 1_600  # points of a front
_POINT_CELLS = 5 * 10**7  # points x samples, beyond which there are fewer of them
_FEWEST_COUNTED = 60  # designs that are counted at all thresholds
_COUNTED_CELLS = 5 * 10**6  # designs x samples, beyond which not all promising ones are

_Part: TypeAlias = tuple[IntArray, FloatArray, Tally]  # designs, their thresholds and counts


def tune(
    designs: IntArray, judge: Judge, *, kept: Sequence[tuple[IntArray, float]] = (), clock: Clock | None = None
) -> Front:
    """Return the front of designs with thresholds: every pair of `EXITS` and `LASTS` is tried for promising ones.

    Promising is what no other design beats where both have the same threshold at all stages, any of `EXITS`.

    Parameters
    ----------
    designs : ndarray of shape (n_designs, n_units)
    judge : Judge
        It is left with another threshold.
    kept : sequence of pairs of design and exit threshold
        Points that label everybody and stay on the front, whether another one dominates them or not.
    clock : Clock or None
        Where there is no time for all promising designs, or to find out which are, fewer are tried.
    """
    task, clock = judge.task, Clock() if clock is None else clock
    parts: list[_Part] = []
    for design in _affordable(_promising(designs, judge, clock), task, clock):
        parts.append(_counted(design, judge.answers(design), task))
        if sum(len(part[0]) for part in parts) > _AT_ONCE:
            parts = [_best(parts, task)]
    best = _thinned(_best(parts, task), task, int(np.clip(_POINT_CELLS // task.y.size, _FEWEST, _MOST)))
    for design, exit_at in kept:
        best = _with(best, design, exit_at, judge)
    found, thresholds, tally = best
    ties = [design[None] for design in found]
    n_ties = np.ones(len(found), dtype=np.int64)
    return make_front(found, tally, n_ties, ties, task.prices, aims=task.aims, thresholds=thresholds)


def _with(best: _Part, design: IntArray, exit_at: float, judge: Judge) -> _Part:
    """Return the points and one more, in place of one with the same objective vector."""
    designs, thresholds, tally = _counted(design, judge.answers(design), judge.task)
    wanted = (thresholds[:, 1] == 0) & ((thresholds[:, 0] == exit_at) | (design.max() == 0))
    row = np.flatnonzero(wanted)[:1]
    others = np.flatnonzero((best[2].vectors != tally.select(row).vectors).any(axis=1))
    joined = join_tallies(best[2].select(others), tally.select(row))
    return np.concatenate([best[0][others], designs[row]]), np.concatenate([best[1][others], thresholds[row]]), joined


def _thinned(part: _Part, task: Task, most: int) -> _Part:
    """Return about so many points at most, and a quarter of these at least: where many are alike the best of them.

    Points are alike that are in the same cell of a grid of all objectives but one, as many in each row of it as in any
    other; the best has the most of that one: accuracy, if it is an objective. The best of each objective and by the
    combined score are always kept.
    """
    tally = part[2]
    if len(part[0]) <= most:
        return part
    names = PAPER if task.aims is None else task.aims.names
    values = task.measure(tally).to_minimise
    free = next((i for i, name in enumerate(names) if name not in ("coverage", "cost", "stages")), 0)
    place = np.argsort(np.argsort(values, axis=0, kind="stable"), axis=0, kind="stable")
    place = np.delete(place, free, axis=1)
    order = np.lexsort((values[:, free],))
    n_cells, first = int(most ** (1 / (len(names) - 1))), order[:0]
    while first.size < most // 4:  # with many objectives most points are in few cells of a coarse grid
        first = np.unique((place * n_cells // len(values))[order], axis=0, return_index=True)[1]
        n_cells += 1
    kept = [order[first], values.argmin(axis=0), [task.score(tally).argmax()]]
    rows = np.unique(np.concatenate(kept))
    return part[0][rows], part[1][rows], tally.select(rows)


def _promising(designs: IntArray, judge: Judge, clock: Clock) -> IntArray:
    """Return the designs that are on the front of all designs and thresholds, one threshold for all their stages."""
    kept: list[_Part] = []
    i, taken = 0, 0.0
    while i < len(EXITS):
        began, exit_at = clock.elapsed, EXITS[i]
        judge.cache.set_threshold(exit_at)
        part = designs, np.full((len(designs), 2), exit_at), judge.tally(designs)
        kept = [_best([*kept, part], judge.task)]
        taken = clock.elapsed - began
        clock("choosing thresholds", 0.5 + 0.2 * (i + 1) / len(EXITS))
        # With little time, only some thresholds are tried; half of it is for what follows.
        n_affordable = clock.left() / 2 / taken if taken > 0 else np.inf
        i += 1 if n_affordable >= len(EXITS) - i - 1 else int((len(EXITS) - i) // max(n_affordable, 1)) + 1
    found = np.unique(kept[0][0], axis=0)
    most = max(_COUNTED_CELLS // judge.task.y.size, _FEWEST_COUNTED)
    return found if len(found) <= most else np.unique(_thinned(kept[0], judge.task, most)[0], axis=0)


def _affordable(designs: IntArray, task: Task, clock: Clock) -> Iterator[IntArray]:
    """Yield the designs that there is time to count at all thresholds, one at least: some from everywhere."""
    expected = counting_seconds(task.y.size)
    if not clock.affords(len(designs) * expected * clock.speed.of("counting")):
        designs = designs[np.random.default_rng(0).permutation(len(designs))]
    for i, design in enumerate(designs):
        if i and not clock.affords(expected * clock.speed.of("counting")):
            clock.cut(f"thresholds of {i:,} of {len(designs):,} designs were compared")
            return
        began = clock.elapsed
        yield design
        clock.speed.learn("counting", clock.elapsed - began, expected)
        clock("choosing thresholds", 0.7 + 0.3 * (i + 1) / len(designs), f"{len(designs):,} designs")


def _best(parts: list[_Part], task: Task) -> _Part:
    """Return what is non-dominated of all; of equals, that with few stages, few units and low thresholds."""
    designs, thresholds = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    tally = join_tallies(*(part[2] for part in parts))
    n_bought = (designs >= 0).sum(axis=1)
    best = task.best(tally, stage_counts(designs), n_bought, thresholds[:, 0], thresholds[:, 1])
    return designs[best], thresholds[best], tally.select(best)


def count_pairs(answers: Answers, n_classes: int) -> tuple[FloatArray, IntArray, IntArray]:
    """Return every pair of thresholds of a design, and what becomes of the samples at each.

    Returns
    -------
    thresholds : ndarray of shape (n_pairs, 2)
    reached : ndarray of shape (n_pairs, n_stages)
        Samples that reach each stage.
    confusion : ndarray of shape (n_pairs, n_classes, n_classes + 1)
        Samples by true class and label, none last.
    """
    n_stages = len(answers.confidence)
    exits = EXITS if n_stages > 1 else EXITS[:1]
    pairs = [_confusion(answers, exit_at, n_classes) for exit_at in exits]
    reached = np.repeat(np.array([reached for reached, _ in pairs]), len(LASTS), axis=0)
    confusion = np.concatenate([counts for _, counts in pairs])
    thresholds = np.array([(exit_at, last_at) for exit_at in exits for last_at in LASTS])
    if n_stages == 1:
        thresholds[:, 0] = thresholds[:, 1]
    return thresholds, reached, confusion


def _counted(design: IntArray, answers: Answers, task: Task) -> _Part:
    """Count what becomes of the samples of a design at every pair of thresholds."""
    n_stages = len(answers.confidence)
    thresholds, reached, confusion = count_pairs(answers, task.n_classes)
    n_pairs = len(thresholds)
    paid = task.prices.stage_ticks(acquired_sets(design[None])[0])
    tally = Tally(
        n_samples=answers.truth.size,
        reached=reached,
        n_conclusive=confusion[:, :, :-1].sum(axis=(1, 2)),
        n_correct=np.trace(confusion, axis1=1, axis2=2),
        total_ticks=(reached * paid).sum(axis=1),
        scale=task.prices.scale,
        least_price=task.prices.least,
    )
    if task.aims is not None:
        tally = replace(tally, values=task.aims.score(tally, np.full(n_pairs, n_stages), confusion))
    return np.tile(design, (n_pairs, 1)), thresholds, tally


def _confusion(answers: Answers, exit_at: float, n_classes: int) -> tuple[IntArray, IntArray]:
    """Return how many samples reach each stage, and by last threshold, true class and label (none last) how many leave.

    A sample is counted by the highest last threshold at which it still gets a label; lower ones give it too.
    """
    n_stages, n_samples = answers.confidence.shape
    early = answers.confidence[:-1] >= exit_at
    stage = np.where(early.any(axis=0), early.argmax(axis=0) if n_stages > 1 else 0, n_stages - 1)
    rows = np.arange(n_samples)
    label = answers.label[stage, rows].astype(np.int64)
    level = np.searchsorted(LASTS, answers.confidence[-1], side="right") - 1
    level[stage < n_stages - 1] = len(LASTS) - 1
    cell = (level * n_classes + answers.truth) * n_classes + label
    counts = np.bincount(cell, minlength=len(LASTS) * n_classes**2).reshape(len(LASTS), n_classes, n_classes)
    given = counts[::-1].cumsum(axis=0)[::-1]
    rejected = given[:1].sum(axis=2) - given.sum(axis=2)
    left = np.bincount(stage, minlength=n_stages)
    return left[::-1].cumsum()[::-1], np.concatenate([given, rejected[:, :, None]], axis=2)
