"""Feature sets trained on the workers of a cluster: the same numbers as in one process, to the bit."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray
from emsco.cluster.crew import Call, Crew, KilledError
from emsco.fitting.timing import Timing
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.estimator import EstimatorTrainer

_WORTH_IT = 0.1  # seconds of one process, from which on work is sent away
_SHORTEST = 0.06  # seconds of a task, about
_PER_THREAD = 8  # tasks, at most: enough that nobody waits long for the last one


class Workers:
    """The workers of a Dask client, as a fit sees them.

    Parameters
    ----------
    client : distributed.Client

    Attributes
    ----------
    crew : Crew
    """

    def __init__(self, client: Any) -> None:
        self.crew = Crew(client)

    @property
    def n_threads(self) -> int:
        """Threads of all workers."""
        return self.crew.n_threads

    def in_words(self) -> str:
        """Return what is there and what has been done."""
        return self.crew.in_words()

    def trainer(self, trainer: StageTrainer, timing: Timing) -> StageTrainer:
        """Return a trainer whose work is done by the workers."""
        return ClusterTrainer(trainer, self.crew, timing)


class ClusterTrainer:
    """A trainer whose sets, fold by fold, are trained on the workers of a cluster in tasks of tens of milliseconds.

    What takes less than a tenth of a second is trained here: to send it takes as long.

    Parameters
    ----------
    trainer : StageTrainer
    crew : Crew
    timing : Timing
        Says how long sets take.
    """

    def __init__(self, trainer: StageTrainer, crew: Crew, timing: Timing) -> None:
        self._trainer = trainer
        self._crew = crew
        self._timing = timing
        self._folds = tuple(trainer.folds) if isinstance(trainer, CrossFitTrainer) else (trainer,)
        self._alone = [_alone(fold) for fold in self._folds]
        self._whole = trainer.whole if isinstance(trainer, CrossFitTrainer) else trainer
        self._whole_alone = _alone(self._whole)
        self.memory_dtype = trainer.memory_dtype

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Train each set; return the data to store."""
        seconds = self._timing.one_by_one(feature_sets)
        if seconds.sum() < _WORTH_IT:
            return self._trainer.train(feature_sets)
        memory = np.empty(len(feature_sets), dtype=self.memory_dtype)
        parts = _parts(seconds, len(self._folds), self._crew.n_threads)
        tasks = [(fold, part) for part in parts for fold in range(len(self._folds))]
        for (fold, part), found in self._done(tasks, _train, self._alone, feature_sets):
            if isinstance(self._trainer, CrossFitTrainer):
                memory[f"fold{fold}"][part] = found
            else:
                memory[part] = found
        return memory

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the outcomes of trained sets, computed here."""
        return self._trainer.outcomes(feature_sets, memory)

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return the models of trained sets; those that have to be trained are trained on the workers."""
        seconds = self._timing.one_by_one(feature_sets, of_models=True)
        if seconds.sum() < _WORTH_IT or not self._trains_models:
            return self._trainer.models(feature_sets, memory)
        models: list[StageModel | None] = [None] * len(feature_sets)
        tasks = [(0, part) for part in _parts(seconds, 1, self._crew.n_threads)]
        for (_, part), found in self._done(tasks, _models, [self._whole_alone], feature_sets):
            for i, model in zip(part.tolist(), found, strict=True):
                models[i] = model
        return [model for model in models if model is not None]

    @property
    def _trains_models(self) -> bool:
        return isinstance(self._trainer, CrossFitTrainer) or isinstance(self._whole, EstimatorTrainer)

    def _done(
        self,
        tasks: list[tuple[int, NDArray[np.intp]]],
        function: Any,
        trainers: Sequence[StageTrainer],
        feature_sets: FeatureSets,
    ) -> Any:
        """Yield tasks and what they give; sets whose batch ends workers are tried one by one, to find out which it is.

        A task is a fold and the positions of some sets.
        """

        def call(task: tuple[int, NDArray[np.intp]]) -> Call:
            sets = feature_sets[task[1]]
            return Call(function, trainers[task[0]], (sets,), self._in_words(sets))

        left = dict(enumerate(tasks))
        while left:
            numbers = list(left)
            try:
                for i, found in self._crew.run([call(left[number]) for number in numbers]):
                    yield left.pop(numbers[i]), found
            except KilledError as error:
                fold, part = left.pop(numbers[error.number])
                if part.size == 1:
                    raise
                for i, found in self._crew.run([call((fold, part[j : j + 1])) for j in range(part.size)], alone=True):
                    yield (fold, part[i : i + 1]), found

    def _in_words(self, sets: BoolArray) -> str:
        names = self._timing.problem.prices.unit_names
        shown = ["{" + ", ".join(names[unit] for unit in np.flatnonzero(units)) + "}" for units in sets]
        kind = "feature set" if len(shown) == 1 else "feature sets"
        return f"training the {kind} {', '.join(shown[:3])}{', ...' if len(shown) > 3 else ''}"


def _alone(trainer: Any) -> Any:
    """Return a trainer as it is sent to a worker, with one thread."""
    return trainer.alone()


def _train(trainer: StageTrainer, feature_sets: FeatureSets) -> NDArray[Any]:
    return trainer.train(feature_sets)


def _models(trainer: StageTrainer, feature_sets: FeatureSets) -> list[StageModel]:
    return trainer.models(feature_sets, trainer.train(feature_sets))


def _parts(seconds: FloatArray, n_folds: int, n_threads: int) -> list[NDArray[np.intp]]:
    """Return positions of sets that are trained by one task each, the longest first; a task has one fold."""
    order = np.argsort(-seconds, kind="stable")
    shortest = max(_SHORTEST, float(seconds.sum()) / (_PER_THREAD * n_threads)) * n_folds
    starts = np.concatenate([[0.0], np.cumsum(seconds[order])[:-1]])
    return [part for part in np.split(order, np.flatnonzero(np.diff(starts // shortest)) + 1) if part.size]
