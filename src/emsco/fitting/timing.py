"""Training on the clock: how long feature sets will take, from how long others have taken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.fitting.clock import Clock, Speed
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, StageTrainer
from emsco.stages.large import large_seconds
from emsco.stages.learners import boosting_seconds
from emsco.stages.logistic import training_seconds
from emsco.stages.problem import Problem
from emsco.stages.recipe import Recipe

_ON_WORKERS = 20.0  # the same on the workers of a cluster, if nobody looks: each time, they wait for the last one
_AT_ONCE = 0.7  # seconds of training between two looks at the clock, about
_PER_CELL = 2e-6  # seconds that an unknown learner takes for a cell of the table, until it is measured
_PER_CALL = 1e-3  # seconds that it takes to begin to train
_SOLVER = 8e-8  # seconds that scikit-learn's logistic regression takes for a cell and a class


@dataclass(frozen=True, eq=False)
class Timing:
    """How long feature sets take to train.

    Attributes
    ----------
    recipe : Recipe
    problem : Problem
        Of one of the folds.
    folds : tuple of int
        Training rows of each fold.
    whole : int
        Rows that the models to deploy are trained on; 0: they are there once a set is trained.
    n_jobs : int
        Workers.
    speed : Speed
        Of this machine, by kind of learner.
    n_large : int
        Folds that are solved together; 0: each by itself.
    """

    recipe: Recipe
    problem: Problem
    folds: tuple[int, ...]
    whole: int
    n_jobs: int
    speed: Speed
    n_large: int = 0

    @property
    def kind(self) -> str:
        """Kind of learner: all of a kind are slower or faster than expected by the same factor."""
        if self.n_large:
            return "large"
        if self.recipe.estimator is None:
            return "logistic" if self.recipe.is_batched(self.problem) else "solver"
        return "given" if self.recipe.kind is None else "boosted"

    def seconds(self, feature_sets: FeatureSets) -> FloatArray:
        """Return how long the training of each set will take, if they are trained together."""
        return self.speed.of(self.kind) * self.expected(feature_sets)

    def model_seconds(self, feature_sets: FeatureSets) -> FloatArray:
        """Return how long it will take to make the model of each set."""
        return self.speed.of(self.kind) * self.expected(feature_sets, of_models=True)

    def one_by_one(self, feature_sets: FeatureSets, *, of_models: bool = False) -> FloatArray:
        """Return how long the training of each set, or of its model, takes on one core."""
        return self.speed.of(self.kind) * self._one_by_one(feature_sets, self._rows(of_models))

    def expected(self, feature_sets: FeatureSets, *, of_models: bool = False) -> FloatArray:
        """Return how long each set, or its model, takes on a usual machine."""
        rows = self._rows(of_models)
        n_beside = len(feature_sets) * (1 if self.kind in ("logistic", "large") else len(rows))
        return self._one_by_one(feature_sets, rows) / min(self.n_jobs, max(n_beside, 1))

    def _rows(self, of_models: bool) -> tuple[int, ...]:
        return ((self.whole,) if self.whole else ()) if of_models else self.folds

    def _one_by_one(self, feature_sets: FeatureSets, rows: tuple[int, ...]) -> FloatArray:
        n_columns = self.problem.columns(feature_sets).sum(axis=1).astype(np.float64)
        return sum((self._fit(n, n_columns) for n in rows), np.zeros(len(feature_sets)))

    def _fit(self, n_rows: int, n_columns: FloatArray) -> FloatArray:
        """Return how long one fit takes on one core."""
        recipe, n_classes = self.recipe, self.problem.n_classes
        if self.n_large:
            return np.asarray(large_seconds(n_classes, n_rows, self.n_large, n_columns))
        if recipe.kind is not None:
            return np.asarray(boosting_seconds(recipe.kind, recipe.estimator, n_classes, n_rows, n_columns))
        if recipe.estimator is not None:
            return _PER_CELL * n_rows * (n_columns + 1)
        if recipe.products:
            n_columns = n_columns * (n_columns + 1) / 2
        if recipe.is_batched(self.problem):
            return np.asarray(training_seconds(n_classes, n_rows, n_columns))
        return _SOLVER * n_rows * n_columns * n_classes


class Workers(Protocol):
    """Other processes that train feature sets; ``emsco.cluster`` has those of Dask."""

    @property
    def n_threads(self) -> int:
        """Threads of all of them."""

    def in_words(self) -> str:
        """Return what is there and what has been done."""

    def trainer(self, trainer: StageTrainer, timing: Timing) -> StageTrainer:
        """Return a trainer whose work is done by them, with the same results."""


class TimedTrainer:
    """A trainer on the clock; what it trains is the same as without.

    With a limit it raises ``TimeUpError`` where sets would take a phase far beyond its time.

    Parameters
    ----------
    trainer : StageTrainer
    clock : Clock
    timing : Timing
    patient : bool
        Whether more is trained between two looks at the clock, unless there is a limit.

    Attributes
    ----------
    clock, timing
        As given.
    """

    def __init__(self, trainer: StageTrainer, clock: Clock, timing: Timing, *, patient: bool = False) -> None:
        self._trainer = trainer
        self._patient = patient
        self.clock = clock
        self.timing = timing
        self.memory_dtype = trainer.memory_dtype

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Train each set, a second's worth at a time."""
        memory = np.empty(len(feature_sets), dtype=self.memory_dtype)
        start, n_jobs = 0, self.timing.n_jobs
        at_once = _ON_WORKERS if self._patient and not self.clock.is_limited else _AT_ONCE
        while start < len(feature_sets):
            n_soon = int(np.searchsorted(np.cumsum(self.timing.seconds(feature_sets[start:])), at_once))
            if not self.clock.speed.knows(self.timing.kind):
                n_soon = 1  # nobody knows how long it takes
            part = feature_sets[start : start + max(n_soon // n_jobs, 1) * n_jobs]
            memory[start : start + len(part)] = self._timed(self._trainer.train, part)
            start += len(part)
        return memory

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the outcomes of trained sets."""
        return self._trainer.outcomes(feature_sets, memory)

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return the models of trained sets."""
        models: list[StageModel] = self._timed(self._trainer.models, feature_sets, memory, of_models=True)
        return models

    def _timed(
        self, function: Callable[..., Any], feature_sets: FeatureSets, *memory: Any, of_models: bool = False
    ) -> Any:
        clock, kind = self.clock, self.timing.kind
        expected = float(self.timing.expected(feature_sets, of_models=of_models).sum()) + _PER_CALL
        clock.check(expected * clock.speed.of(kind))
        began = clock.elapsed
        done = function(feature_sets, *memory)
        clock.speed.learn(kind, clock.elapsed - began, expected)
        return done
