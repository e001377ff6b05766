"""A root with its branches: who classifies there, which chains there are, and what these make of the rows."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, IntArray
from emsco.data.encoding import Encoder
from emsco.designs.branch import Branch
from emsco.designs.branched import Branched
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.fitting._no_worse import walk_against
from emsco.fitting.experts import Sorted, expert_judge, judged_rows, kinds_of, sorted_by
from emsco.fitting.final import Finished
from emsco.fitting.rehearsal import Rehearsal
from emsco.fitting.routes import Root
from emsco.fitting.screening import Grower
from emsco.fitting.settings import Settings
from emsco.fitting.tuning import EXITS
from emsco.prices.prices import PriceList
from emsco.scoring.judge import Judge
from emsco.scoring.rejection import rule_of
from emsco.search.chains import merged
from emsco.stages.problem import Problem
from emsco.stages.recipe import Recipe

EVERYONE = -1  # the view that leaves no fold out
BARS = EXITS[::3]  # exit thresholds of branches: with few rows, the best of many is there by luck
_STRENGTH = 0.1  # of C: classifiers of a branch know few rows of it
_MOST_PLACED = 10  # units that a branch buys one by one
_VARIANTS = 130  # designs of an order
_CELLS = 2**22  # outcomes of feature sets x samples in memory at once


class Walked(NamedTuple):
    """What designs make of the samples at every exit threshold, if whoever is left at the last stage gets its label.

    Attributes
    ----------
    designs : ndarray of shape (n_designs, n_units)
    right, ticks : ndarray of shape (n_designs * n_exits, n_folds)
        Right labels, and what is paid; all thresholds of the first design come first.
    bars : tuple of float
        Exit thresholds.
    """

    designs: IntArray
    right: IntArray
    ticks: IntArray
    bars: tuple[float, ...]

    def within(self, folds: BoolArray) -> tuple[IntArray, IntArray]:
        """Return right labels and ticks of the rows of some folds."""
        return self.right[:, folds].sum(axis=1), self.ticks[:, folds].sum(axis=1)

    def one(self, row: int) -> tuple[IntArray, float]:
        """Return the design and the threshold of a row."""
        return self.designs[row // len(self.bars)], self.bars[row % len(self.bars)]


def walked(
    designs: IntArray, judge: Judge, folds: NDArray[np.intp], n_folds: int, exits: tuple[float, ...] = BARS
) -> Walked:
    """Send the samples of a judge through designs at exit thresholds."""
    task, bars = judge.task, np.array(exits)
    y = task.y
    right = np.zeros((len(designs), bars.size, n_folds), dtype=np.int64)
    ticks = np.zeros_like(right)
    step = max(int(min(_CELLS // max(y.size, 1), judge.cache.capacity) // max(stage_counts(designs).max(), 1)), 1)
    nobody = np.zeros(y.size, dtype=np.bool_)
    for i in range(0, len(designs), step):
        part = slice(i, min(i + step, len(designs)))
        acquired, exists = acquired_sets(designs[part])
        sets, place = np.unique(acquired[exists], axis=0, return_inverse=True)
        slots = np.zeros(exists.shape, dtype=np.int64)
        slots[exists] = place.ravel()
        told = judge.cache.outcomes(sets)
        shape = (len(slots), bars.size, n_folds)
        left = np.zeros((*shape, exists.shape[1]), dtype=np.int64)
        lost, gained = (np.zeros((*shape, task.n_classes), dtype=np.int64) for _ in range(2))
        n_stages, hits = exists.sum(axis=1), told.label == y
        walk_against(slots, n_stages, told.confidence, hits, nobody, y, folds, bars, left, lost, gained)
        paid = np.cumsum(task.prices.stage_ticks(acquired), axis=1)
        right[part], ticks[part] = gained.sum(axis=3), (left * paid[:, None, None]).sum(axis=3)
    return Walked(designs, right.reshape(-1, n_folds), ticks.reshape(-1, n_folds), exits)


def rows_of(judge: Judge, design: IntArray, exit_at: float) -> tuple[BoolArray, IntArray]:
    """Return which samples get the right label, and what each pays in ticks, if everybody gets a label."""
    answers = judge.answers(design)
    stage, _ = answers.leaving(rule_of([exit_at, 0.0], len(answers.confidence)))
    paid = np.cumsum(judge.task.prices.stage_ticks(acquired_sets(design[None])[0])[0])
    return answers.label[stage, np.arange(answers.n_rows)] == answers.truth, paid[stage]


@dataclass(frozen=True, eq=False)
class Ground:
    """What all roots have in common: the rows, the chains, and how classifiers of branches learn.

    Attributes
    ----------
    settings : Settings
    asked : Branch
    finished : Finished
        The chains.
    codes : ndarray of shape (n_rows,)
        Class indices of the table that trains.
    classes : tuple
        Labels, in order.
    """

    settings: Settings
    asked: Branch
    finished: Finished
    codes: IntArray
    classes: tuple[object, ...]

    @property
    def judge(self) -> Judge:
        """Of chains."""
        return self.finished.judge

    @property
    def rehearsal(self) -> Rehearsal:
        """Which rows train and judge."""
        return self.finished.rehearsal

    @property
    def prices(self) -> PriceList:
        """What sets of units cost."""
        return self.judge.task.prices

    @property
    def n_samples(self) -> int:
        """Rows that judge."""
        return int(self.judge.task.y.size)

    @cached_property
    def folds(self) -> NDArray[np.intp]:
        """The fold of each sample."""
        return self.rehearsal.parts()

    @cached_property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.folds.max()) + 1

    def judged_without(self, view: int) -> BoolArray:
        """Return the folds that a view sees."""
        return np.asarray(np.arange(self.n_folds) != view)

    @cached_property
    def recipe(self) -> Recipe:
        """How classifiers of a branch learn: as those of chains if these are logistic, but more regularised."""
        recipe = self.finished.setup.recipe
        recipe = recipe if self.shares else Recipe(None, recipe.encoding, 1.0)
        return replace(recipe, C=_STRENGTH * recipe.C)

    @property
    def shares(self) -> bool:
        """Whether the classifiers of chains are logistic ones."""
        recipe = self.finished.setup.recipe
        return type(recipe) is Recipe and recipe.estimator is None

    @cached_property
    def everything(self) -> Rehearsal:
        """All rows, to learn from."""
        return self.rehearsal.everything()

    @cached_property
    def whole(self) -> tuple[Problem, Encoder]:
        """All rows as one problem, encoded once for all folds: good enough to compare roots and order units."""
        return self.everything.problems(self.recipe.encoding)[0]

    @cached_property
    def grower(self) -> Grower:
        """Orders units by the rows that judge."""
        problem = self.whole[0]
        number = np.full(self.everything.table.n_rows, -1)
        number[self.everything.learn] = np.arange(problem.y_train.size)
        rows = judged_rows(self.rehearsal)
        place = np.arange(problem.y_train.size - self.n_samples, problem.y_train.size) if rows is None else number[rows]
        train = np.ascontiguousarray(problem.train[:, place])
        return Grower(replace(problem, train=train, y_train=problem.y_train[place]), self.folds)

    @cached_property
    def chains(self) -> Walked:
        """What the chains of the front make of the rows."""
        designs = np.unique(self.finished.front.designs, axis=0)
        return walked(designs, self.judge, self.folds, self.n_folds, EXITS)


@dataclass(frozen=True, eq=False)
class Lane:
    """One kind of classifiers of one branch.

    Attributes
    ----------
    kind : str
        "shared", "weighted" or "own".
    judge : Judge
        Its samples are those of the branch.
    samples : ndarray of int
        These, among all.
    folds : ndarray of int
        Their folds.
    by_view : dict of int to Walked
        The designs that were found without a fold, and what they make of all samples.
    """

    kind: str
    judge: Judge
    samples: NDArray[np.intp]
    folds: NDArray[np.intp]
    by_view: dict[int, Walked] = field(default_factory=dict)


class Rooted:
    """A root with its branches.

    Parameters
    ----------
    root : Root
    ground : Ground

    Attributes
    ----------
    root : Root
    sent : Sorted
        Which branch each row takes.
    lanes : list of list of Lane
        The kinds of classifiers of each branch.
    """

    def __init__(self, root: Root, ground: Ground) -> None:
        self._ground = ground
        self.root = root
        self.sent: Sorted = sorted_by(root, ground.rehearsal, ground.judge)
        self.lanes = [self._lanes(b) for b in range(root.route.n_branches)]

    def _lanes(self, branch: int) -> list[Lane]:
        ground = self._ground
        samples = np.flatnonzero(self.sent.judged == branch)
        args = (ground.rehearsal, ground.codes)
        kinds = kinds_of(self.sent, branch, *args, asked=ground.asked.experts, shares=ground.shares)
        lanes = []
        for kind in kinds:
            judge = expert_judge(
                self.sent, branch, kind, ground.judge, ground.rehearsal, ground.recipe, seed=ground.settings.seed
            )
            lanes.append(Lane(kind, judge, samples, ground.folds[samples]))
        return lanes

    def search(self, views: Sequence[int]) -> None:
        """Search the chains of each branch without each of some folds."""
        ground, root = self._ground, self.root.units
        for lanes in self.lanes:
            orders: dict[bool, list[list[tuple[int, ...]]]] = {}
            for lane in lanes:
                own = lane.kind == "own"
                if own not in orders:
                    orders[own] = ground.grower.grow(lane.samples, root, own=own, most=_MOST_PLACED, views=views)
                for view, found in zip(views, orders[own], strict=True):
                    designs = self._designs(found)
                    lane.by_view[view] = walked(designs, lane.judge, lane.folds, ground.n_folds)

    def chosen(self, view: int) -> list[Lane]:
        """Return of each branch the kind of classifiers that labels most rows correctly, a fold left out."""
        folds = self._ground.judged_without(view)
        return [max(lanes, key=lambda lane: lane.by_view[view].within(folds)[0].max()) for lanes in self.lanes]

    def _designs(self, orders: Sequence[tuple[int, ...]]) -> IntArray:
        """Return the chains that buy the root, then in one of the orders; with removal they may end anywhere."""
        task, root = self._ground.judge.task, self.root.units
        found = [np.where(root, 0, -1)[None]] if task.removal or root.all() else []
        for order in orders if task.max_stages > 1 and not root.all() else ():
            fine = np.full(root.size, -1)
            fine[list(order)] = np.arange(len(order))
            if not task.removal:
                fine[~root & (fine < 0)] = len(order)
            after = merged(fine, max_stages=task.max_stages - 1, removal=task.removal, most=_VARIANTS)
            found.append(np.where(root, 0, np.where(after < 0, -1, after + 1)))
        return np.unique(np.concatenate(found), axis=0)

    def trained(self, branched: Branched) -> dict[bytes, tuple[Judge, BoolArray]]:
        """Return by key who has trained the feature sets of a design, those that are not of chains."""
        found = {}
        for b, kind in enumerate(branched.experts):
            sets = acquired_sets(branched.rows[b][None])[0][0]
            judge = next(lane.judge for lane in self.lanes[b] if lane.kind == kind)
            for key, units in list(zip(branched.keys(b), sets, strict=True))[1:]:
                if kind != "shared":
                    found[key] = (judge, units)
        return found
