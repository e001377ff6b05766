"""Designs that branch: roots are screened, their branches searched, and used only where the gain is no luck."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.branched import Branched, BranchFigures
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.exceptions import InvalidParameterError, SearchInterruptedWarning
from emsco.fitting.final import Finished
from emsco.fitting.gate import MOST_SUMS, Range, Verdict, pass_gate
from emsco.fitting.large import LargeRehearsal
from emsco.fitting.rooted import BARS, EVERYONE, Ground, Lane, Rooted
from emsco.fitting.routes import Root, branches_of, by_leaning, routes
from emsco.fitting.screening import Screen
from emsco.fitting.settings import Settings
from emsco.fitting.tuning import count_pairs
from emsco.prices.prices import PriceList
from emsco.scoring.compose import best_counts, compose
from emsco.scoring.gains import Branches, Gain
from emsco.scoring.judge import Judge
from emsco.scoring.rejection import rule_of
from emsco.search.base import TimeUpError

LEANING = "leaning"
_FEWEST_GAINED = 0.02  # of the share of variance, which a screened root must gain
_MOST_ROOTS, _PER_UNIT = 8, 2  # roots that are looked at closely, and of each unit
_MOST_LEANINGS, _UNITS_LEANING = 4, 3  # roots whose classifier leads the way, and units that they buy
_MOST_COLUMNS = 800  # encoded columns, beyond which nothing is screened
_SHARE = 0.5  # of the time taken so far, which there must be left if there is a limit


@dataclass(frozen=True, eq=False)
class Point:
    """A design that branches, with what it makes of the samples that judge.

    Attributes
    ----------
    branched : Branched
    reached : ndarray of shape (n_stages,)
        Samples that reach each stage, in all branches.
    paid : ndarray of shape (n_stages,)
        What a sample has paid by the end of each stage in the dearest branch.
    total_ticks : int
        What all samples pay.
    confusion : ndarray of shape (n_classes, n_classes + 1)
        Samples by true class and label, none last.
    against : ndarray of shape (n_classes, 2)
        Samples of each class that only buying everything labels correctly, and only the design.
    """

    branched: Branched
    reached: IntArray
    paid: FloatArray
    total_ticks: int
    confusion: IntArray
    against: IntArray


@dataclass(frozen=True, eq=False)
class Branching:
    """What was tried, and the points of the root that passed.

    Attributes
    ----------
    tried : Branches
    points : list of Point
    trained : dict
        By key of its model, who has trained a feature set for a branch, and the set.
    """

    tried: Branches
    points: list[Point] = field(default_factory=list)
    trained: dict[bytes, tuple[Judge, BoolArray]] = field(default_factory=dict)


NO_BRANCHES = Branching(Branches())


def look_for_branches(settings: Settings, finished: Finished, codes: IntArray, classes: Sequence[object]) -> Branching:
    """Return the designs that branch, if they were asked for; an interrupt, or the end of the time, leaves the chains.

    Parameters are those of ``find_branches``.
    """
    clock = finished.rehearsal.clock
    if settings.branch is None:
        return NO_BRANCHES
    try:
        return find_branches(settings, finished, codes, classes)
    except KeyboardInterrupt:
        words = "interrupted while designs that branch were tried; all points are chains."
        clock.warn(words, SearchInterruptedWarning)
        return Branching(Branches(note="the fit was interrupted"))
    except TimeUpError:
        clock.cut("designs that branch were not tried")
        return Branching(Branches(note="there was no time"))


def find_branches(settings: Settings, finished: Finished, codes: IntArray, classes: Sequence[object]) -> Branching:
    """Return the designs that branch and are worth it; none if no root passes the gate.

    Parameters
    ----------
    settings : Settings
    finished : Finished
        The chains.
    codes : ndarray of shape (n_rows,)
        Class indices of the table that trains.
    classes : sequence
        Labels, in order.
    """
    assert settings.branch is not None
    ground = Ground(settings, settings.branch, finished, codes, tuple(classes))
    if note := _obstacle(ground):
        return Branching(Branches(note=note))
    clock = ground.rehearsal.clock
    roots, n_screened = screened(ground)
    gains: list[Gain] = []
    passed: list[tuple[int, Rooted, Verdict]] = []
    for i, root in enumerate(roots):
        clock("trying branches", i / len(roots), f"{len(roots)} roots")
        if clock.is_limited and not clock.left() > 0:
            clock.cut(f"{i} of {len(roots)} roots of designs that branch were tried")
            break
        rooted = Rooted(root, ground)
        verdict = pass_gate(rooted, ground, len(roots))
        gains.append(verdict.gain)
        if verdict.gain.kept:
            passed.append((i, rooted, verdict))
    if not passed:
        return Branching(Branches(tuple(gains), n_screened))
    chosen, rooted, verdict = max(passed, key=lambda each: each[2].worth)
    others = [gain.second() if gain.kept else gain for i, gain in enumerate(gains) if i != chosen]
    points = _points(rooted, ground, verdict.ranges)
    trained = {key: who for point in points for key, who in rooted.trained(point.branched).items()}
    return Branching(Branches((gains[chosen], *others), n_screened), points, trained)


def _obstacle(ground: Ground) -> str:
    """Return why designs that branch are not looked for, if so."""
    settings, rehearsal, clock = ground.settings, ground.rehearsal, ground.rehearsal.clock
    if isinstance(rehearsal, LargeRehearsal):
        return "with so many rows, stages are trained in a way that those of branches are not"
    if not settings.policy.tunes:
        return 'they are looked for where each point has thresholds of its own, threshold="auto"'
    if ground.judge.task.aims is not None:
        return "they are looked for by coverage, accuracy and cost alone"
    if rehearsal.workers is not None:
        return "their classifiers are not trained on a cluster; fit without a client to look for them"
    if ground.finished.front.thresholds is None or (clock.is_limited and not clock.affords(_SHARE * clock.elapsed)):
        clock.cut("designs that branch were not tried")
        return "there was no time"
    if ground.asked.experts == "shared" and not ground.shares:
        raise InvalidParameterError(
            'Branch: experts="shared" needs logistic stages; set final_estimator="search", or leave it to "auto".'
        )
    problem = ground.whole[0]
    if problem.train.shape[0] > _MOST_COLUMNS or not ground.recipe.is_batched(problem):
        return "there are too many columns and classes"
    return ""


def screened(ground: Ground) -> tuple[list[Root], int]:
    """Return the roots that deserve a closer look, the most promising one first, and how many were screened."""
    everything, asked = ground.everything, ground.asked
    roots, screen = candidates(ground), Screen(ground.whole[0])
    gains = []
    for root in roots:
        leaning = _leaning(ground, root) if root.route.kind == LEANING else None
        branch = branches_of(root.route, everything.table, leaning)[everything.learn]
        gains.append(screen.gain(branch, root.route.n_branches, root.units))
    kept: list[Root] = []
    for i in np.argsort(-np.array(gains), kind="stable").tolist():
        same = sum(root.route.unit == roots[i].route.unit for root in kept)
        enough = gains[i] >= _FEWEST_GAINED or asked.on is not None or asked.by is not None
        if len(kept) < _MOST_ROOTS and same < _PER_UNIT and enough:
            kept.append(roots[i])
    return kept, len(roots)


def candidates(ground: Ground) -> list[Root]:
    """Return all roots that may be tried."""
    asked, prices, everything = ground.asked, ground.prices, ground.everything
    y = everything.codes[everything.learn]
    on = [_unit(name, prices) for name in asked.units]
    by = None if asked.by in (None, LEANING) else _unit(str(asked.by), prices)
    found: list[Root] = []
    if asked.by != LEANING:
        units = on or None if by is None else [by]
        encoder = ground.whole[1]
        found = routes(everything.table, everything.learn, encoder, prices, min_rows=asked.min_rows, y=y, units=units)
        bought = [*on, *([] if by is None else [by])]
        if bought:
            owned = np.isin(np.arange(prices.n_units), bought)
            found = [Root(owned, root.route) for root in found]
    if by is None and ground.rehearsal.crosses:
        found += _leanings(ground, on)
    return found


def _leanings(ground: Ground, on: list[int]) -> Iterator[Root]:
    """Yield roots whose classifier leads the way: what the user wants, or what the best chains buy first."""
    n_units = ground.prices.n_units
    if on:
        firsts = [np.isin(np.arange(n_units), on)]
    else:
        front = ground.finished.front
        first = front.designs[np.argsort(-front.combined, kind="stable")] == 0
        few = first[first.sum(axis=1) <= _UNITS_LEANING]
        firsts = list(few[np.sort(np.unique(few, axis=0, return_index=True)[1])][:_MOST_LEANINGS])
    for units in firsts:
        label = ground.judge.cache.outcomes(units[None]).label[0].astype(np.int64)
        route = by_leaning(label, ground.rehearsal.n_classes, min_rows=ground.asked.min_rows)
        if route is not None:
            yield Root(units, route)


def _leaning(ground: Ground, root: Root) -> IntArray:
    """Return the label that the root's classifiers give to the rows that did not train them."""
    assert ground.rehearsal.folds is not None
    rows = np.concatenate([judges for _, judges in ground.rehearsal.folds])
    leaning = np.full(ground.rehearsal.table.n_rows, -1, dtype=np.int64)
    leaning[rows] = ground.judge.cache.outcomes(root.units[None]).label[0]
    return leaning


def _unit(name: str, prices: PriceList) -> int:
    if name not in prices.unit_names:
        raise InvalidParameterError(f"Branch: there is no unit {name!r}; there are {', '.join(prices.unit_names)}.")
    return prices.unit_names.index(name)


@dataclass(frozen=True, eq=False)
class _Option:
    """A design of a branch with its thresholds."""

    lane: Lane
    design: IntArray
    thresholds: FloatArray
    reached: IntArray
    confusion: IntArray


def _points(rooted: Rooted, ground: Ground, ranges: Sequence[Range]) -> list[Point]:
    """Return what is best with a root, by all rows and at all thresholds, within ranges of price."""
    options, parts = [], []
    for lane in rooted.chosen(EVERYONE):
        found: list[_Option] = []
        counts = []
        for design in _promising(lane):
            thresholds, reached, confusion = count_pairs(lane.judge.answers(design), ground.judge.task.n_classes)
            tried = np.flatnonzero(np.isin(thresholds[:, 0], BARS) | (reached.shape[1] == 1))
            labels = confusion[tried, :, :-1].sum(axis=(1, 2))
            wrong = labels - np.trace(confusion[tried], axis1=1, axis2=2)
            ticks = reached[tried] @ ground.prices.stage_ticks(acquired_sets(design[None])[0])[0]
            table = np.column_stack([labels, wrong, ticks])
            best = best_counts(table)
            counts.append(table[best])
            found += [_Option(lane, design, thresholds[i], reached[i], confusion[i]) for i in tried[best].tolist()]
        options.append(found)
        parts.append(np.concatenate(counts))
    total = compose(parts, most=MOST_SUMS)
    price = total.counts[:, 2] / ground.n_samples
    inside = np.any([(price > low) & (price <= high) for low, high in ranges], axis=0)
    everything = ground.judge.answers(np.zeros(ground.prices.n_units, dtype=np.int64)).label[0] == ground.judge.task.y
    return [
        _point(rooted, ground, [options[b][i] for b, i in enumerate(total.picks[p].tolist())], everything)
        for p in np.flatnonzero(inside & (total.counts[:, 0] > 0)).tolist()
    ]


def _promising(lane: Lane) -> list[IntArray]:
    """Return the designs that are best at some price if everybody gets a label."""
    walked, n = lane.by_view[EVERYONE], lane.samples.size
    right, ticks = walked.right.sum(axis=1), walked.ticks.sum(axis=1)
    kept = best_counts(np.column_stack([np.full(right.size, n), n - right, ticks]))
    designs = np.array([walked.one(row)[0] for row in kept.tolist()])
    return list(np.unique(designs, axis=0))


def _point(rooted: Rooted, ground: Ground, picks: Sequence[_Option], everything: BoolArray) -> Point:
    prices, n_classes = ground.prices, ground.judge.task.n_classes
    rows = np.array([pick.design for pick in picks])
    rules = tuple(rule_of(pick.thresholds.tolist(), int(pick.design.max()) + 1) for pick in picks)
    depth = int(stage_counts(rows).max())
    reached, ticks = np.zeros((2, len(picks), depth), dtype=np.int64)
    against = np.zeros((n_classes, 2), dtype=np.int64)
    for b, (pick, rule) in enumerate(zip(picks, rules, strict=True)):
        n_stages = pick.reached.size
        reached[b, :n_stages] = pick.reached
        ticks[b, :n_stages] = prices.stage_ticks(acquired_sets(pick.design[None])[0])[0]
        judge, other = pick.lane.judge, everything[pick.lane.samples]
        right, truth = judge.answers(pick.design).results(rule)[1], judge.task.y
        against[:, 0] += np.bincount(truth[other & ~right], minlength=n_classes)
        against[:, 1] += np.bincount(truth[right & ~other], minlength=n_classes)
    paid = np.cumsum(ticks, axis=1) / prices.scale
    n_right = np.array([np.trace(pick.confusion) for pick in picks])
    n_given = np.array([pick.confusion[:, :-1].sum() for pick in picks])
    experts = tuple(pick.lane.kind for pick in picks)
    branched = Branched(rows, rooted.root.route, rules, experts, BranchFigures(reached, n_given, n_right, paid))
    branched.check(prices.unit_columns)
    confusion = np.sum([pick.confusion for pick in picks], axis=0)
    dearest = paid[paid[:, -1].argmax()]
    return Point(branched, reached.sum(axis=0), dearest, int((reached * ticks).sum()), confusion, against)
