"""One purse: designs and bars that cost least, tests and errors together, where errors have prices.

A stage gives the label of least expected price. A row leaves as soon as the expected price of leaving is at most the
bar of the stage. Bars are chosen with the design, on rows that did not train. The search looks at all ways to move one
unit of the best designs so far, and begins with the empty design.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.branched import Branched
from emsco.designs.partition import acquired_sets, compress, stage_counts
from emsco.fitting._money import least_money
from emsco.fitting.clock import Clock
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import to_ticks
from emsco.scoring.forked import Forked
from emsco.scoring.front import Front, make_front
from emsco.scoring.judge import Judge
from emsco.scoring.objectives import LOSS
from emsco.scoring.rejection import rule_of
from emsco.scoring.tally import Tally, join_tallies
from emsco.search.base import TimeUpError

# Bars, as shares of what the best constant label costs.
_BARS = (
    0.0, 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.35, 0.4, 0.47, 0.55, 0.63, 0.72, 0.82, 0.92,
    1.0, 1.1, 1.25, 1.5,
)  # fmt: skip
_ALL_SETS = 8  # units, up to which all feature sets are looked at in one stage
_EXPANDED = 6  # designs whose neighbours are looked at together
_ROUNDS = 14
DEEPEST = 4  # stages
_PASSES = 2
_AT_ONCE = 4_000  # designs
_COMPARED = 400  # of the best designs, of which the simplest that is not clearly worse is taken
_RATIOS = (0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0, 3.0, 5.0, 10.0)  # times the prices of errors, for the front
_EACH = 20  # designs of each ratio
SLACK = 0.5  # standard errors by which a simpler design may cost more


@dataclass(frozen=True, eq=False)
class Priced:
    """Designs with their bars and what they cost.

    Attributes
    ----------
    designs : ndarray of shape (n_designs, n_units)
    bars : ndarray of shape (n_designs, n_stages)
        Confidence from which on rows leave, by stage; that of the last stage, and of those beyond, is 0.
    money : ndarray of shape (n_designs,)
        Mean price of tests and errors of the rows that judge.
    """

    designs: IntArray
    bars: FloatArray
    money: FloatArray


class Purse:
    """What designs cost, by the outcomes of feature sets that a judge has trained.

    Parameters
    ----------
    judge : Judge
        Its task has prices of errors.
    """

    def __init__(self, judge: Judge) -> None:
        errors = judge.task.errors
        assert errors is not None
        self.judge = judge
        self.levels = levels_of(errors, judge.task.y)
        self._errors = errors
        self._row_of: dict[bytes, int] = {}
        self._sets = np.empty((0, judge.task.prices.n_units), dtype=np.bool_)
        n = judge.task.y.size
        self._level = np.empty((0, n), dtype=np.uint8)
        self._price = np.empty((0, n))

    @property
    def n_sets(self) -> int:
        """Feature sets trained so far."""
        return len(self._row_of)

    def rows(self, sets: BoolArray) -> NDArray[np.int64]:
        """Return the row of each feature set, after the new ones were trained."""
        keys = [units.tobytes() for units in np.packbits(sets, axis=1)]
        new = {key: i for i, key in enumerate(keys) if key not in self._row_of}
        if new:
            first, places = len(self._row_of), list(new.values())
            step = min(max(2**20 // self._level.shape[1], 1), self.judge.cache.capacity)
            parts = [self._read(sets[places[i : i + step]]) for i in range(0, len(places), step)]
            self._level = np.concatenate([self._level, *(level for level, _ in parts)])
            self._price = np.concatenate([self._price, *(price for _, price in parts)])
            self._sets = np.concatenate([self._sets, sets[places]])
            self._row_of.update({key: first + i for i, key in enumerate(new)})
        return np.array([self._row_of[key] for key in keys], dtype=np.int64)

    def known(self) -> tuple[BoolArray, NDArray[np.uint8], FloatArray]:
        """Return the feature sets trained so far, and of each sample the first bar it reaches and its price, by set."""
        return self._sets, self._level, self._price

    def _read(self, sets: BoolArray) -> tuple[NDArray[np.uint8], FloatArray]:
        outcomes = self.judge.cache.outcomes(sets)
        level = np.searchsorted(-self.levels, -outcomes.confidence, side="left").astype(np.uint8)
        return level, self._errors.price(self.judge.task.y, outcomes.label)

    def money(
        self, designs: IntArray, ratio: float = 1.0, samples: NDArray[np.intp] | None = None
    ) -> tuple[IntArray, FloatArray]:
        """Return the numbers of the bars of each design, and what each row costs, (n_designs, n_samples).

        ``samples`` are the rows that count; None: all.
        """
        slots, n_stages, paid = self._slots(designs)
        level, price = self._level, self._price
        if samples is not None:
            level, price = np.ascontiguousarray(level[:, samples]), np.ascontiguousarray(price[:, samples])
        bars = np.zeros(slots.shape, dtype=np.int64)
        money = np.empty((len(designs), level.shape[1]))
        price = price if ratio == 1.0 else ratio * price
        least_money(slots, n_stages, paid, level, price, self.levels.size, _PASSES, bars, money)
        return bars, money

    def _slots(self, designs: IntArray) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the row of each stage's feature set, the numbers of stages, and the price of each stage."""
        acquired, exists = acquired_sets(designs)
        slots = np.zeros(exists.shape, dtype=np.int64)
        slots[exists] = self.rows(acquired[exists])
        prices = self.judge.task.prices
        return slots, exists.sum(axis=1), prices.stage_ticks(acquired) / prices.scale

    def priced(self, designs: IntArray, ratio: float = 1.0, samples: NDArray[np.intp] | None = None) -> Priced:
        """Return designs with their bars and what they cost, if errors cost so many times their prices."""
        n_stages = np.maximum(stage_counts(designs), 1)
        bars = np.zeros((len(designs), int(n_stages.max())))
        money = np.empty(len(designs))
        for i in range(0, len(designs), _AT_ONCE):
            part = slice(i, i + _AT_ONCE)
            numbers, rows = self.money(designs[part], ratio, samples)
            before = np.arange(numbers.shape[1]) < n_stages[part, None] - 1
            bars[part, : numbers.shape[1]] = np.where(before, self.levels[numbers], 0.0)
            money[part] = rows.mean(axis=1)
        return Priced(designs, bars, money)


def levels_of(errors: ErrorPrices, y: IntArray, bars: Sequence[float] = _BARS) -> FloatArray:
    """Return the confidences at which rows may leave, the highest first: from shares of what a constant costs."""
    constant = errors.constant(y)
    return np.unique(np.clip(1.0 - np.array(bars) * constant / errors.largest, 0.0, 1.0))[::-1]


def explore(
    purse: Purse,
    clock: Clock,
    n_sets: int = 2**16,
    *,
    begin: IntArray | None = None,
    n_rounds: int = _ROUNDS,
    n_expanded: int = _EXPANDED,
) -> Priced:
    """Return designs and what they cost: all with one unit moved of the best so far, from simple or given ones on.

    It ends when about ``n_sets`` feature sets are trained.
    """
    task = purse.judge.task
    n_units, deepest = task.prices.n_units, min(task.max_stages, DEEPEST)
    seen: set[bytes] = set()
    designs: list[IntArray] = []
    found: list[Priced] = []

    def add(rows: IntArray) -> None:
        new = [row for row in np.unique(rows, axis=0) if row.tobytes() not in seen]
        if new:
            found.append(purse.priced(np.array(new)))
        seen.update(row.tobytes() for row in new)
        designs.extend(new)

    every = 2**n_units <= min(n_sets, 2**_ALL_SETS)
    with clock.must():
        add(_simple(n_units, every=every) if begin is None else np.vstack([np.full_like(begin[:1], -1), begin]))
    expanded: set[int] = set()
    for n_round in range(n_rounds):
        clock("searching", n_round / n_rounds)
        money = np.concatenate([part.money for part in found])
        order = np.argsort(money, kind="stable")
        best = [int(i) for i in order[: 4 * n_expanded] if int(i) not in expanded][:n_expanded]
        if not best or purse.n_sets >= n_sets:
            break
        expanded.update(best)
        try:
            add(np.concatenate([_neighbours(designs[i], deepest) for i in best]))
        except TimeUpError:
            clock.cut(f"the search ended after {n_round} rounds")
            break
    width = max(part.bars.shape[1] for part in found)
    return Priced(
        np.array(designs),
        np.concatenate([np.pad(part.bars, ((0, 0), (0, width - part.bars.shape[1]))) for part in found]),
        np.concatenate([part.money for part in found]),
    )


def _simple(n_units: int, *, every: bool) -> IntArray:
    """Return the empty design, and those of one stage: every one, or those that buy one unit or all."""
    empty = np.full((1, n_units), -1, dtype=np.int64)
    if not every:
        return np.concatenate([empty, np.eye(n_units, dtype=np.int64) - 1, np.zeros((1, n_units), dtype=np.int64)])
    bought = (np.arange(2**n_units)[:, None] >> np.arange(n_units)) & 1
    return np.asarray(bought - 1, dtype=np.int64)


def _neighbours(design: IntArray, max_stages: int) -> IntArray:
    """Return the designs with one unit elsewhere: in any stage, in a new one anywhere, or nowhere."""
    n_units, n_stages = design.size, int(design.max()) + 1
    places = np.arange(-1, 2 * n_stages + 1)  # 2 j + 1 is stage j, 2 j a new one before it
    unit, place = (grid.ravel() for grid in np.meshgrid(np.arange(n_units), places, indexing="ij"))
    children = np.tile(np.where(design < 0, -1, 2 * design + 1), (unit.size, 1))
    children[np.arange(unit.size), unit] = place
    children = compress(children)
    return children[stage_counts(children) <= max_stages]


def pick(purse: Purse, priced: Priced, slack: float = SLACK, samples: NDArray[np.intp] | None = None) -> int:
    """Return the design to use: the simplest of those that do not cost clearly more than the least.

    Thousands of designs are compared on the same rows, so the cheapest of them is there by luck, too.
    """
    order = np.argsort(priced.money, kind="stable")[:_COMPARED]
    designs = priced.designs[order]
    rows = purse.money(designs, samples=samples)[1]
    more = rows - rows[0]
    error = more.std(axis=1) / np.sqrt(rows.shape[1])
    near = np.flatnonzero(more.mean(axis=1) <= slack * error + 1e-12)
    n_bought, n_stages = (designs[near] >= 0).sum(axis=1), np.maximum(stage_counts(designs[near]), 1)
    return int(order[near[np.lexsort((priced.money[order[near]], n_stages, n_bought))[0]]])


def front_of(purse: Purse, priced: Priced, chosen: int, forked: Forked | None = None) -> tuple[Front, int]:
    """Return the front over money for tests and money for errors, and the point of the design that was chosen.

    Its designs are those that cost least if errors cost more, or less, than their prices, with the bars that suit that.
    If a design that branches is given, that is the choice.
    """
    parts = [Priced(priced.designs[[chosen]], priced.bars[[chosen]], priced.money[[chosen]])]
    for ratio in _RATIOS:
        again = priced if ratio == 1.0 else purse.priced(priced.designs, ratio)
        best = np.argsort(again.money, kind="stable")[:_EACH]
        parts.append(Priced(again.designs[best], again.bars[best], again.money[best]))
    task, width = purse.judge.task, max(parts[0].bars.shape[1], 2)
    designs = np.concatenate([part.designs for part in parts])
    early = np.concatenate([np.pad(part.bars, ((0, 0), (0, width - part.bars.shape[1]))) for part in parts])
    thresholds = np.column_stack([early[:, :-1], np.zeros(len(designs))])
    tally = _counted(designs, thresholds, purse.judge)
    branched: list[Branched | None] = [None] * len(designs)
    if forked is not None:  # comes first
        point = forked.branched
        designs, branched = np.concatenate([point.summary[None], designs]), [point, *branched]
        thresholds = np.concatenate([np.zeros((1, width)), thresholds])  # its rules are those of its branches
        tally = join_tallies(_with_loss(forked), tally)
    best = task.best(tally, np.maximum(stage_counts(designs), 1), (designs >= 0).sum(axis=1), *thresholds.T)
    if 0 not in best:  # the choice stays, in place of one with the same figures
        best = np.append([0], best[(tally.select(best).vectors != tally.select(np.array([0])).vectors).any(axis=1)])
    designs, thresholds, tally = designs[best], thresholds[best], tally.select(best)
    n_ties = np.ones(len(best), dtype=np.int64)
    ties = [design[None] for design in designs]
    points = [branched[i] for i in best] if forked is not None else []
    front = make_front(
        designs, tally, n_ties, ties, task.prices, aims=task.aims, thresholds=thresholds, branched=points
    )
    if forked is not None:
        return front, [point is not None for point in front.branched].index(True)
    mine = (front.designs == priced.designs[chosen]).all(axis=1)
    rule = np.append(priced.bars[chosen], np.zeros(width - priced.bars.shape[1]))
    mine &= (np.asarray(front.thresholds) == np.append(rule[:-1], 0.0)).all(axis=1)
    return front, int(mine.argmax())


def _with_loss(forked: Forked) -> Tally:
    """Return the counts of a design that branches, with what its errors cost if that depends on the row."""
    tally, task, errors = forked.tally(), forked.judge.task, forked.judge.task.errors
    if errors is None or errors.amounts is None or task.aims is None or tally.values is None:
        return tally
    ticks, scale = _row_ticks(errors, task.y)
    values = tally.values.copy()
    lost = int(ticks[np.arange(task.y.size), forked.answer].sum()) / scale
    values[:, task.aims.names.index(LOSS)] = lost / task.y.size
    return replace(tally, values=values)


def _counted(designs: IntArray, thresholds: FloatArray, judge: Judge) -> Tally:
    """Count what becomes of the rows that judge, with the thresholds of each design."""
    task, errors = judge.task, judge.task.errors
    assert errors is not None
    n_stages = np.maximum(stage_counts(designs), 1)
    lost, ticks_of = np.empty(len(designs)), None if errors.amounts is None else _row_ticks(errors, task.y)
    reached = np.zeros((len(designs), int(n_stages.max())), dtype=np.int64)
    confusion = np.empty((len(designs), task.n_classes, task.n_classes + 1), dtype=np.int64)
    for i, (design, bars) in enumerate(zip(designs, thresholds.tolist(), strict=True)):
        answers, rule = judge.answers(design), rule_of(bars, int(n_stages[i]))
        left = np.bincount(answers.leaving(rule)[0], minlength=reached.shape[1])
        reached[i] = left[::-1].cumsum()[::-1]
        confusion[i] = answers.confusion(rule, task.n_classes)
        if ticks_of is not None:
            rows = np.arange(task.y.size)
            lost[i] = int(ticks_of[0][rows, answers.label[answers.leaving(rule)[0], rows]].sum()) / ticks_of[1]
    ticks = task.prices.stage_ticks(acquired_sets(designs)[0])
    tally = Tally(
        n_samples=task.y.size,
        reached=reached,
        n_conclusive=confusion[:, :, :-1].sum(axis=(1, 2)),
        n_correct=np.trace(confusion, axis1=1, axis2=2),
        total_ticks=(reached * ticks).sum(axis=1),
        scale=task.prices.scale,
        least_price=task.prices.least,
    )
    assert task.aims is not None
    values = task.aims.score(tally, n_stages, confusion)
    if ticks_of is not None:  # by row, which counts by class cannot tell
        values[:, task.aims.names.index(LOSS)] = lost / task.y.size
    return replace(tally, values=values)


def _row_ticks(errors: ErrorPrices, y: IntArray) -> tuple[IntArray, float]:
    """Return what each answer costs each row, in whole ticks, and their scale."""
    return to_ticks(np.column_stack([errors.price(y, answer) for answer in range(errors.n_answers)]))
