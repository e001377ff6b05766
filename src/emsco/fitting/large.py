"""Tables of many rows: a sample is searched; what it finds is judged and trained on all rows that there is room for.

Folds share one encoder, whose columns are kept in single precision, fold after fold.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.checks import n_threads
from emsco.data.encoding import Encoder
from emsco.fitting.forecast import typical_sets
from emsco.fitting.rehearsal import Rehearsal, Setup
from emsco.fitting.timing import Timing
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.large import LargeLogisticTrainer
from emsco.stages.problem import Problem, unit_membership
from emsco.stages.recipe import Recipe

MANY = 12_000  # rows beyond which a sample is searched
_FEWEST, _MANY_SEARCHED, _MOST = 10_000, 20_000, 60_000  # rows of the sample: of a few thousand, of many, at most
_SHARE = 0.1  # of all rows
RACED = 4  # times as many rows tell which learner is best: the more there are, the larger trees may be
_OF_A_CLASS = 200  # of these, that each class should have
_RAREST = 50  # and that it has, if it has as many
_BYTES = 2**31  # of encoded columns
_JUDGES = 250_000  # rows that judge, at most: a share is known to a thousandth
_LOGISTIC_ROWS = 1_000_000  # that logistic stages are trained on
_OTHER_ROWS = 500_000  # that other learners are trained on,
_OTHER_TRAIN = 100_000  # and those of them that are judged
_SECONDS = 45.0  # that all feature sets of logistic stages may take, about, on one core of a usual machine
FEWEST_SETS, _MOST_SETS = 12, 60


def sample_size(codes: IntArray) -> int:
    """Return how many rows are searched: the more, the rarer the rarest class is."""
    shares = np.bincount(codes) / codes.size
    enough = np.clip(_SHARE * codes.size, _FEWEST, _MANY_SEARCHED)
    return int(np.clip(_OF_A_CLASS / shares[shares > 0].min(), enough, _MOST))


def is_many(rehearsal: Rehearsal) -> bool:
    """Return whether there are so many rows that a sample of them is searched."""
    codes = rehearsal.codes[rehearsal.learn]
    return bool(codes.size > max(MANY, sample_size(codes)))


def sampled(rehearsal: Rehearsal, rng: np.random.Generator, times: int = 1) -> Rehearsal:
    """Return a rehearsal with some of the rows, or so many times more, each class in proportion.

    Of rare classes there are more rows, or all.
    """
    n_rows = times * sample_size(rehearsal.codes[rehearsal.learn])
    learn = np.arange(rehearsal.codes.size)[rehearsal.learn]
    chosen = np.zeros(rehearsal.codes.size, dtype=np.bool_)
    for code in range(rehearsal.n_classes):
        rows = learn[rehearsal.codes[learn] == code]
        n = min(max(round(n_rows * rows.size / learn.size), _RAREST), rows.size)
        chosen[rng.permutation(rows)[:n]] = True
    folds = None
    if rehearsal.folds is not None:
        folds = [(train[chosen[train]], judges[chosen[judges]]) for train, judges in rehearsal.folds]
    return replace(rehearsal, folds=folds, learn=np.flatnonzero(chosen), _encoded={}, _trainers={})


@dataclass(frozen=True, eq=False)
class LargeRehearsal(Rehearsal):
    """A rehearsal of folds that share one encoder.

    Parameters
    ----------
    like : Problem
        The problem of a sample of the rows: as wide as theirs, about.
    rows : sequence of ndarray
        Rows of each fold.
    n_judges : ndarray of shape (n_folds,)
        How many of them judge, the first ones.
    n_training : int
        Most rows on which learners are trained that are judged, unless all folds are solved together.
    """

    like: Problem = field(kw_only=True)
    rows: Sequence[NDArray[np.intp]] = ()
    n_judges: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    n_training: int = 0
    _tables: dict[str, tuple[Problem, Encoder]] = field(default_factory=dict)

    @property
    def y(self) -> IntArray:
        """Class indices of the samples that judge, fold after fold."""
        return np.concatenate([self.codes[rows[:n]] for rows, n in zip(self.rows, self.n_judges, strict=True)])

    def parts(self, n_parts: int = 5) -> NDArray[np.intp]:
        """Return the fold of each sample that judges."""
        return np.repeat(np.arange(len(self.rows)), self.n_judges)

    @property
    def judged_by(self) -> int | float | str:
        """The number of folds."""
        return len(self.rows)

    @property
    def n_trained(self) -> tuple[int, int]:
        """Folds, and rows on which feature sets are trained that are judged."""
        return len(self.rows), min(int(self.starts[-1]), self.n_training or int(self.starts[-1]))

    @property
    def crosses(self) -> bool:
        """Rows are cross-validated."""
        return True

    @property
    def starts(self) -> IntArray:
        """Where each fold begins among the encoded rows, and their number."""
        return np.concatenate([[0], np.cumsum([rows.size for rows in self.rows])]).astype(np.int64)

    def encoding_seconds(self, encoding: str) -> float:
        """Return how long it will take to encode the rows; nothing if that is done."""
        return 0.0 if encoding in self._tables else self._expected(encoding) * self.clock.speed.of("encoding")

    def _expected(self, encoding: str) -> float:
        per_cell = {"raw": 6e-8, "linear": 6e-8, "rank": 3.2e-7, "spline": 4e-7}[encoding]
        return len(self.table.names) * int(self.starts[-1]) * per_cell

    def whole(self, encoding: str) -> tuple[Problem, Encoder]:
        """Return the problem whose training samples are all rows, fold after fold, and none validates."""
        if encoding not in self._tables:
            began = self.clock.elapsed
            rows = np.concatenate(self.rows)
            encoder = Encoder(self.table, np.sort(rows), encoding=encoding)
            columns = encoder.encode(self.table, rows, np.float32)
            membership = unit_membership(encoder, self.prices)
            y, none = self.codes[rows], self.codes[:0].copy()
            problem = Problem(columns, y, columns[:, :0], none, self.n_classes, membership, self.prices)
            self._tables[encoding] = problem, encoder
            self.clock.speed.learn("encoding", self.clock.elapsed - began, self._expected(encoding))
        return self._tables[encoding]

    def timing(self, recipe: Recipe, *, n_jobs: int, n_folds: int | None = None) -> Timing:
        """Return how long feature sets take to train."""
        problem, n_rows = self.like, int(self.starts[-1])
        if recipe.estimator is None or recipe.kind is not None:
            n_jobs = n_threads(n_jobs)
        if self.workers is not None:
            n_jobs = self.workers.n_threads
        if is_newton(recipe, problem):
            return Timing(recipe, problem, (n_rows,), 0, n_jobs, self.clock.speed, n_large=len(self.rows))
        folds = tuple(min(n_rows - rows.size, self.n_training) for rows in self.rows)
        return Timing(recipe, problem, folds[:n_folds], n_rows, n_jobs, self.clock.speed)

    def prepared(self, recipe: Recipe, *, seed: int, n_jobs: int) -> Setup:
        """Return what trains feature sets of all folds, and on all rows."""
        whole, encoder = self.whole(recipe.encoding)
        if is_newton(recipe, self.like):
            starts, n_jobs = self.starts, n_threads(n_jobs)
            trainer = LargeLogisticTrainer(whole, starts, self.n_judges, C=recipe.C, n_jobs=n_jobs)
            return Setup(recipe, self.timed(trainer, recipe, n_jobs=n_jobs), encoder)
        if recipe.estimator is None:
            recipe = replace(recipe, estimator=recipe.logistic())
        folds = [recipe.trainer(self._fold(whole, i), seed=seed, n_jobs=n_jobs) for i in range(len(self.rows))]
        crossed = CrossFitTrainer(folds, recipe.trainer(whole, seed=seed, n_jobs=n_jobs))
        return Setup(recipe, self.timed(crossed, recipe, n_jobs=n_jobs), encoder)

    def _fold(self, whole: Problem, i: int) -> Problem:
        """Return a problem without one fold, which validates; some of the other rows train."""
        start, stop = self.starts[i], self.starts[i + 1]
        others = np.concatenate([np.arange(start), np.arange(stop, self.starts[-1])])
        train = others[:: max(-(-others.size // self.n_training), 1)]
        judges = slice(start, start + self.n_judges[i])
        return replace(
            whole,
            train=whole.train[:, train],
            y_train=whole.y_train[train],
            validation=whole.train[:, judges],
            y_validation=whole.y_train[judges],
        )


def is_newton(recipe: Recipe, problem: Problem) -> bool:
    """Return whether folds are solved together by Newton's method."""
    return recipe.is_batched(problem) and not recipe.products


def widened(
    rehearsal: Rehearsal, recipe: Recipe, like: Problem, rng: np.random.Generator, *, share: float = 1.0
) -> Rehearsal:
    """Return the rehearsal of all rows, or of as many as there is room for, or of a share of these.

    Parameters
    ----------
    rehearsal : Rehearsal
        Of all rows.
    recipe : Recipe
        Of final stages.
    like : Problem
        Of a sample of the rows, with the encoding of final stages.
    rng : Generator
    share : float
        For which there is time.
    """
    if rehearsal.folds is None or not rehearsal.crosses:
        return rehearsal
    folds = [judges for _, judges in rehearsal.folds]
    most, n_training = _LOGISTIC_ROWS, 0
    if not is_newton(recipe, like):  # each fold is trained by itself: two are enough
        half = len(folds) // 2
        most, n_training = _OTHER_ROWS, _OTHER_TRAIN
        folds = [np.concatenate(folds[:half]), np.concatenate(folds[half:])]
    sizes = np.array([rows.size for rows in folds])
    most = int(share * min(most, _BYTES // (4 * len(like.train)), int(sizes.sum())))
    n_kept = np.maximum(sizes * most // sizes.sum(), 1)
    rows = [rng.permutation(fold)[:n] for fold, n in zip(folds, n_kept, strict=True)]
    return LargeRehearsal(
        rehearsal.table,
        rehearsal.codes,
        rehearsal.n_classes,
        rehearsal.prices,
        rehearsal.folds,
        learn=np.sort(np.concatenate(rows)),
        clock=rehearsal.clock,
        workers=rehearsal.workers,
        like=like,
        rows=rows,
        n_judges=np.minimum(n_kept, np.maximum(n_kept * _JUDGES // n_kept.sum(), 1)),
        n_training=n_training,
    )


def affordable_large_sets(rehearsal: Rehearsal, recipe: Recipe) -> int:
    """Return how many feature sets logistic stages train in reasonable time: by counting, not by the clock."""
    timing = rehearsal.timing(recipe, n_jobs=1)
    third = typical_sets(rehearsal.prices.n_units, np.array([rehearsal.prices.n_units / 3]))
    return int(np.clip(_SECONDS / timing.expected(third)[0], FEWEST_SETS, _MOST_SETS))
