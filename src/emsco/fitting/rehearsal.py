"""Rehearsal: which rows train and which judge, encoded once, and what learns from them."""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.checks import n_threads
from emsco.data.encoding import Encoder
from emsco.data.splits import Folds
from emsco.data.table import Rows, StackedTable, Table
from emsco.exceptions import InvalidParameterError, SuspiciousColumnWarning
from emsco.fitting.clock import Clock
from emsco.fitting.timing import TimedTrainer, Timing, Workers
from emsco.prices.amounts import amounts_of
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList
from emsco.stages.base import StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.problem import Problem, unit_membership
from emsco.stages.recipe import Recipe

_SCOUTS = 2  # folds by which learners are compared, and designs searched where final stages are trained anew
_FEW_ROWS, _FEW_CELLS = 2_000, 200_000  # of which all folds are needed
_PER_COLUMN = 1e-3  # seconds
_Learner: TypeAlias = tuple[str, Any]  # an encoding, and more if it is that of a race
_PER_CELL = {"raw": 1e-7, "linear": 1e-7, "rank": 8e-7, "spline": 1.4e-6}  # seconds that a cell takes to encode


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The rows that train and judge feature sets: one split into two parts, or the folds of a cross-validation.

    Parameters
    ----------
    table : Table
    codes : ndarray of shape (n_rows,)
        Class indices.
    n_classes : int
    prices : PriceList
    folds : list of pairs of arrays, or None
        Rows of ``table`` that train, and that judge. None: all rows train, and ``judges`` are another table.
    judges : tuple of Table and ndarray, or None
        Rows that judge, and their class indices.
    learn : slice or ndarray of int
        Rows of ``table`` to learn from; the others are out of reach.
    clock : Clock
        Times what is encoded and trained.
    errors : ErrorPrices or None
        If errors have prices, stages give the label of least expected price.
    workers : Workers or None
        Who trains. None: this process.
    """

    table: Table
    codes: IntArray
    n_classes: int
    prices: PriceList
    folds: Folds | None
    judges: tuple[Table, IntArray] | None = None
    learn: Rows = field(default_factory=lambda: slice(None))
    clock: Clock = field(default_factory=Clock)
    errors: ErrorPrices | None = None
    workers: Workers | None = None
    _encoded: dict[str, list[tuple[Problem, Encoder]]] = field(default_factory=dict)
    _trainers: dict[_Learner, list[StageTrainer | None]] = field(default_factory=dict)

    @property
    def y(self) -> IntArray:
        """Class indices of the samples that judge, fold after fold."""
        if self.folds is None:
            return self.judges[1] if self.judges else self.codes[:0].copy()
        return np.concatenate([self.codes[judges] for _, judges in self.folds])

    def parts(self, n_parts: int = 5) -> NDArray[np.intp]:
        """Return the fold of each sample that judges; without folds, parts that have their share of each class."""
        if self.folds is not None and self.crosses:
            return np.repeat(np.arange(len(self.folds)), [judges.size for _, judges in self.folds])
        y = self.y
        part = np.empty(y.size, dtype=np.intp)
        order = np.argsort(y, kind="stable")
        part[order] = np.arange(y.size) % n_parts
        return part

    @property
    def n_trained(self) -> tuple[int, int]:
        """Folds, and rows on which feature sets are trained that are judged, about."""
        return len(self.folds or [None]), int(self.codes[self.learn].size)

    @property
    def crosses(self) -> bool:
        """Whether rows are cross-validated."""
        return self.folds is not None and len(self.folds) > 1

    @property
    def judged_by(self) -> int | float | str:
        """How rows are judged: the number of folds, the share of the rows that judge, or "given"."""
        if self.folds is None:
            return "given"
        if self.crosses:
            return len(self.folds)
        ((train, judges),) = self.folds
        return judges.size / (train.size + judges.size)

    def problems(self, encoding: str) -> list[tuple[Problem, Encoder]]:
        """Return the problem of each fold, with columns encoded as its training rows suggest; each is made once."""
        if encoding not in self._encoded:
            began = self.clock.elapsed
            with warnings.catch_warnings():
                if self.crosses or self._encoded:
                    warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
                self._encoded[encoding] = self._problems(encoding)
            self.clock.speed.learn("encoding", self.clock.elapsed - began, self._expected(encoding))
        return self._encoded[encoding]

    def encoding_seconds(self, encoding: str) -> float:
        """Return how long it will take to encode all folds; nothing if that is done."""
        return 0.0 if encoding in self._encoded else self._expected(encoding) * self.clock.speed.of("encoding")

    def _expected(self, encoding: str) -> float:
        """Return how long it takes on a usual machine to encode all folds."""
        n_columns, n_rows = len(self.table.names), self.n_trained[1]
        return len(self.folds or [None]) * n_columns * (_PER_COLUMN + _PER_CELL[encoding] * n_rows)

    def trainers(self, recipe: Recipe, *, seed: int, n_jobs: int) -> list[StageTrainer]:
        """Return what trains feature sets of each fold; logistic ones that differ in strength share their arrays."""
        problems = [problem for problem, _ in self.problems(recipe.encoding)]
        if recipe.estimator is not None and recipe.kind is None:
            return [recipe.trainer(problem, seed=seed, n_jobs=n_jobs) for problem in problems]
        learner = (recipe.encoding, None if recipe.estimator is None else (recipe, seed, n_jobs))
        known = self._trainers.setdefault(learner, [None] * len(problems))
        if recipe.estimator is not None and known[0] is not None:
            return [trainer for trainer in known if trainer is not None]
        known[:] = [
            recipe.trainer(problem, seed=seed, n_jobs=n_jobs, like=like)
            for problem, like in zip(problems, known, strict=True)
        ]
        return [trainer for trainer in known if trainer is not None]

    def timing(self, recipe: Recipe, *, n_jobs: int, n_folds: int | None = None) -> Timing:
        """Return how long feature sets take to train on all folds, or on the first ones."""
        problem, everyone = self.problems(recipe.encoding)[0][0], int(self.codes[self.learn].size)
        folds = tuple(train.size for train, _ in self.folds or []) or (everyone,)
        whole = everyone if self.crosses else 0 if recipe.is_batched(problem) else folds[0]
        if recipe.estimator is None or recipe.kind is not None:
            n_jobs = n_threads(n_jobs)
        if self.workers is not None:
            n_jobs = self.workers.n_threads
        return Timing(recipe, problem, folds[:n_folds], whole, n_jobs, self.clock.speed)

    def timed(self, trainer: StageTrainer, recipe: Recipe, *, n_jobs: int, n_folds: int | None = None) -> TimedTrainer:
        """Return a trainer on the clock; if there are workers, it has them train."""
        timing = self.timing(recipe, n_jobs=n_jobs, n_folds=n_folds)
        if self.workers is not None:
            trainer = self.workers.trainer(trainer, timing)
        return TimedTrainer(trainer, self.clock, timing, patient=self.workers is not None)

    def crossed(self, recipe: Recipe, *, seed: int, n_jobs: int, n_folds: int | None = None) -> TimedTrainer:
        """Return what trains and judges feature sets on all folds, or on the first ones; it has no models to deploy."""
        folds = self.trainers(recipe, seed=seed, n_jobs=n_jobs)[:n_folds]
        return self.timed(CrossFitTrainer(folds, folds[0]), recipe, n_jobs=n_jobs, n_folds=n_folds)

    def prepared(self, recipe: Recipe, *, seed: int, n_jobs: int) -> "Setup":
        """Return what trains feature sets, and makes models of them."""
        parts, trainers = self.problems(recipe.encoding), self.trainers(recipe, seed=seed, n_jobs=n_jobs)
        if not self.crosses:
            return Setup(recipe, self.timed(trainers[0], recipe, n_jobs=n_jobs), parts[0][1])
        ((whole, encoder),) = self.everything().problems(recipe.encoding)
        crossed = CrossFitTrainer(trainers, recipe.trainer(whole, seed=seed, n_jobs=n_jobs))
        return Setup(recipe, self.timed(crossed, recipe, n_jobs=n_jobs), encoder)

    def is_at_most(self, n_rows: int, n_cells: int) -> bool:
        """Return whether there are no more rows to learn from, and no more cells."""
        n = self.n_trained[1]
        return n <= n_rows and n * len(self.table.names) <= n_cells

    def scout(self) -> "Rehearsal":
        """Return a rehearsal by some of the folds, if there are many rows: enough to find out what is promising."""
        if self.folds is None or len(self.folds) <= _SCOUTS or self.is_at_most(_FEW_ROWS, _FEW_CELLS):
            return self
        made = {encoding: parts[:_SCOUTS] for encoding, parts in self._encoded.items()}
        trainers = {learner: known[:_SCOUTS] for learner, known in self._trainers.items()}
        return replace(self, folds=self.folds[:_SCOUTS], _encoded=made, _trainers=trainers)

    def forget(self, *, but: Collection[str]) -> None:
        """Let go of what was made for other encodings."""
        for encoding in [each for each in self._encoded if each not in but]:
            del self._encoded[encoding]
        for learner in [each for each in self._trainers if each[0] not in but]:
            del self._trainers[learner]

    def _problems(self, encoding: str) -> list[tuple[Problem, Encoder]]:
        if self.folds is None:
            judges, codes = self.judges or (self.table, self.codes[:0])
            return [self._problem(self.learn, judges, slice(None) if self.judges else slice(0), codes, encoding)]
        return [self._problem(train, self.table, rows, self.codes[rows], encoding) for train, rows in self.folds]

    def everything(self) -> "Rehearsal":
        """Return a rehearsal in which all rows train and none judges."""
        table, codes, learn = self.table, self.codes, self.learn
        if self.judges is not None:
            if not isinstance(learn, slice):
                learn = np.append(learn, table.n_rows + np.arange(self.judges[0].n_rows))
            table, codes = StackedTable(table, self.judges[0]), np.concatenate([codes, self.judges[1]])
        return Rehearsal(
            table, codes, self.n_classes, self.prices, None, learn=learn, clock=self.clock, errors=self.errors,
            workers=self.workers,
        )  # fmt: skip

    def _problem(
        self, train: Rows, judges: Table, rows: Rows, judged: IntArray, encoding: str
    ) -> tuple[Problem, Encoder]:
        others = () if judges is self.table else (judges,)
        encoder = Encoder(self.table, train, *others, encoding=encoding)
        problem = Problem(
            train=encoder.encode(self.table, train),
            y_train=self.codes[train].copy(),
            validation=encoder.encode(judges, rows),
            y_validation=judged.copy(),
            n_classes=self.n_classes,
            unit_columns=unit_membership(encoder, self.prices),
            prices=self.prices,
            errors=self._errors_of(judges, rows),
        )
        return problem, encoder

    def _errors_of(self, table: Table, rows: Any) -> ErrorPrices | None:
        """Return the prices of errors of rows; where these grow with an amount, by the amount of each."""
        if self.errors is None or self.errors.at_risk is None:
            return self.errors
        name = self.errors.at_risk.column
        return self.errors.at(amounts_of(table, table.names.index(name), name)[rows])

    @property
    def judged_errors(self) -> ErrorPrices | None:
        """Prices of errors of the samples that judge, fold after fold."""
        if self.folds is None:
            table, rows = (self.judges[0], slice(None)) if self.judges else (self.table, slice(0))
            return self._errors_of(table, rows)
        return self._errors_of(self.table, np.concatenate([judges for _, judges in self.folds]))


@dataclass(frozen=True)
class Setup:
    """Everything that a search needs to train and judge feature sets.

    Attributes
    ----------
    recipe : Recipe
    trainer : TimedTrainer
    encoder : Encoder
        Of the models to be deployed.
    """

    recipe: Recipe
    trainer: TimedTrainer
    encoder: Encoder


def check_calibrable(rehearsal: Rehearsal, classes: NDArray[Any], n_folds: int) -> None:
    """Raise unless every class has a row for each fold that calibrates, whichever rows train."""
    trained = [rehearsal.learn] if rehearsal.folds is None else [train for train, _ in rehearsal.folds]
    counts = np.min([np.bincount(rehearsal.codes[rows], minlength=classes.size) for rows in trained], axis=0)
    if counts.min() < n_folds:
        raise InvalidParameterError(
            f"needs {n_folds} training rows of each class, but {classes.tolist()[counts.argmin()]!r} has "
            f"{counts.min()}; add rows, or do not calibrate.",
            parameter="calibration",
        )
