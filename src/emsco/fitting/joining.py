"""A front of chains and the designs that branch, as one front with all models."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, IntArray
from emsco.designs.operators.elitism import best_first
from emsco.designs.partition import acquired_sets, set_key
from emsco.fitting.branching import Branching, Point
from emsco.fitting.choosing import same_point
from emsco.fitting.final import Finished
from emsco.fitting.training import Trained
from emsco.prices.prices import PriceList
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge
from emsco.scoring.objectives import measure
from emsco.scoring.ranking import nondominated, norm
from emsco.scoring.tally import Tally
from emsco.stages.base import StageModel


def joined(trained: Trained, branching: Branching, finished: Finished) -> Trained:
    """Return the points of chains and those that branch, without those that another one dominates, and their models.

    The default choice of the chains stays, whatever dominates it.

    Parameters
    ----------
    trained : Trained
        Of chains.
    branching : Branching
    finished : Finished
        The chains before some were left out for lack of time.
    """
    if not branching.points:
        return trained
    kept = None if finished.pick is None else same_point(finished.front, finished.pick, trained.front)
    with finished.rehearsal.clock.must():
        return _joined_with(trained, branching, finished.judge.task.prices, kept)


def _joined_with(trained: Trained, branching: Branching, prices: PriceList, kept: int | None) -> Trained:
    front, points = trained.front, branching.points
    tally = _tally(front, points, prices)
    best = nondominated(measure(tally))
    best[len(front) :] &= _are_new(tally.vectors, len(front))
    if kept is not None:
        best[kept] = True
    chains, added = np.flatnonzero(best[: len(front)]), np.flatnonzero(best[len(front) :])
    if not added.size:
        return trained
    some = [points[i] for i in added.tolist()]
    models = {**trained.models, **_models(trained, some, branching)}
    whole = _joined(front[chains], some, tally.select(np.flatnonzero(best)))
    return replace(trained, front=replace(whole, outlook=front.outlook), models=models)


def _tally(front: Front, points: list[Point], prices: PriceList) -> Tally:
    """Count chains and points that branch side by side."""
    depth = max([front.reached.shape[1], *(point.reached.size for point in points)])
    ticks = prices.stage_ticks(acquired_sets(front.designs)[0])
    reached = [np.pad(front.reached, ((0, 0), (0, depth - front.reached.shape[1])))]
    reached += [np.pad(point.reached, (0, depth - point.reached.size))[None] for point in points]
    assert front.confusion is not None
    confusion = np.concatenate([front.confusion, [point.confusion for point in points]])
    return Tally(
        front.n_samples,
        np.concatenate(reached),
        confusion[:, :, :-1].sum(axis=(1, 2)),
        np.trace(confusion, axis1=1, axis2=2),
        np.append((front.reached[:, : ticks.shape[1]] * ticks).sum(axis=1), [point.total_ticks for point in points]),
        prices.scale,
        prices.least,
    )


def _are_new(vectors: IntArray, n_chains: int) -> BoolArray:
    """Return which points that branch come first among all with the same figures."""
    first = np.unique(vectors, axis=0, return_index=True)[1]
    return np.isin(np.arange(n_chains, len(vectors)), first)


def _joined(chains: Front, points: list[Point], tally: Tally) -> Front:
    figures, n = measure(tally), len(points)
    depth = tally.reached.shape[1]
    accuracy = np.where(tally.n_conclusive > 0, figures.accuracy, np.nan)
    designs = np.concatenate([chains.designs, [point.branched.summary for point in points]])
    paid = np.pad(chains.paid, ((0, 0), (0, depth - chains.paid.shape[1])), mode="edge")
    more = [np.pad(point.paid, (0, depth - point.paid.size), mode="edge") for point in points]
    norms = norm(figures)
    assert chains.thresholds is not None
    assert chains.confusion is not None
    assert chains.against is not None
    front = replace(
        chains,
        designs=designs,
        coverage=figures.coverage,
        accuracy=accuracy,
        mean_cost=figures.mean_cost,
        fitness=norms,
        n_ties=np.append(chains.n_ties, np.ones(n, dtype=np.int64)),
        ties=(*chains.ties, *(point.branched.summary[None] for point in points)),
        reached=tally.reached,
        paid=np.concatenate([paid, more]),
        values=np.column_stack([figures.coverage, accuracy, figures.mean_cost]),
        certificate=None,
        thresholds=np.concatenate([chains.thresholds, [_thresholds(point) for point in points]]),
        confusion=np.concatenate([chains.confusion, [point.confusion for point in points]]),
        against=np.concatenate([chains.against, [point.against for point in points]]),
        branched=(*((None,) * len(chains)), *(point.branched for point in points)),
    )
    order: NDArray[np.intp] = best_first(designs, np.zeros(len(designs), dtype=np.int64), norms)
    return front[order]


def _thresholds(point: Point) -> list[float]:
    """Return the thresholds of the largest branch; those of all are with the branches."""
    figures = point.branched.figures
    assert figures is not None
    bars = point.branched.rules[int(figures.reached[:, 0].argmax())].bars
    return [bars[0][0], bars[-1][0]]


def _models(trained: Trained, points: list[Point], branching: Branching) -> dict[bytes, StageModel]:
    """Train the stages of branches: those of experts by who has judged them, the others as those of chains."""
    shared: dict[bytes, BoolArray] = {}
    experts: dict[int, tuple[Judge, dict[bytes, BoolArray]]] = {}
    for point in points:
        for b, row in enumerate(point.branched.rows):
            for key, units in zip(point.branched.keys(b), acquired_sets(row[None])[0][0], strict=True):
                if key in branching.trained:
                    judge = branching.trained[key][0]
                    experts.setdefault(id(judge), (judge, {}))[1][key] = units
                elif set_key(units) not in trained.models:
                    shared[key] = units
    models: dict[bytes, StageModel] = {}
    for sets, train in ((shared, trained.train), *((sets, judge.cache.models) for judge, sets in experts.values())):
        if sets:
            models.update(zip(sets, train(np.array(list(sets.values()))), strict=True))
    return models
