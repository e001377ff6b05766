"""Any scikit-learn classifier as a stage: one clone per feature set, trained in parallel."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cache, cached_property, partial
from typing import Any
import zlib

from joblib import Parallel, delayed
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from emsco.checks import n_threads
from emsco.exceptions import InvalidEstimatorError
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, outcomes_of
from emsco.stages.boosted import boosted_probabilities, plain_parameters
from emsco.stages.logistic import constant_model
from emsco.stages.problem import Problem

_FEW_ROWS = 20_000


class EstimatorTrainer:
    """Trains clones of a scikit-learn classifier on the encoded columns of feature sets.

    Random estimators whose ``random_state`` is None are seeded per feature set, from ``seed`` and the set itself: a set
    that is trained twice, or by another worker, gives the same model.

    Parameters
    ----------
    problem : Problem
    estimator : classifier
        Needs ``fit`` and ``predict_proba``. It is cloned and not modified.
    seed : int
    n_jobs : int
        Processes. LightGBM lets go of the interpreter lock, so its classifiers are trained in threads instead, in as
        many as OpenMP uses if there are fewer processes: nothing is copied.
    """

    def __init__(self, problem: Problem, estimator: Any, *, seed: int, n_jobs: int = 1) -> None:
        check_estimator_usable(estimator)
        self._problem = problem
        self._estimator = estimator
        self._engine = plain_parameters(estimator)
        self._seed = seed
        self._n_jobs = n_jobs
        self._known: dict[bytes, Any] = {}  # what the set of everything says: a race asks, and final stages do
        self.n_validation = n = problem.n_validation
        self.memory_dtype = np.dtype([("confidence", np.float64, (n,)), ("label", np.uint8, (n,))])

    def alone(self) -> "EstimatorTrainer":
        """Return the same trainer with one process, to be sent to another one."""
        other = copy(self)
        other._n_jobs, other._known = 1, {}
        return other

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Return the outcomes of each set, which are stored unchanged."""
        return train_together([self], feature_sets)[0]

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the stored outcomes."""
        return StageOutcomes(memory["confidence"], memory["label"])

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Train the sets again, with the same result; storing every model of a search would have no bound."""
        return self.run(self._tasks(_train, self._seeded, feature_sets))

    def known(self, units: NDArray[np.bool_]) -> Any:
        """Return what a feature set says of the validation samples; None if it has to be trained."""
        return self._known.get(units.tobytes())

    def keep(self, units: NDArray[np.bool_], said: Any) -> None:
        """Remember what the set of everything says."""
        if units.all():
            self._known[units.tobytes()] = said

    def judging(self, feature_sets: FeatureSets) -> list[Any]:
        """Return the calls that train one feature set each, and ask it for the validation samples."""
        if self._engine is not None and self._all_classes:
            return self._tasks(_boost_and_score, self._seeded_engine, feature_sets)
        return self._tasks(_train_and_score, self._seeded, feature_sets)

    def _tasks(self, function: Any, seeded: Any, feature_sets: FeatureSets) -> list[Any]:
        """Return the calls of a function of problem, seeded estimator and columns, one per feature set."""
        problem, call = self._problem, function if self._in_threads else partial(_with_one_thread, function)
        return [delayed(call)(problem, seeded(units), problem.columns(units)) for units in feature_sets]

    def run(self, tasks: list[Any]) -> list[Any]:
        """Return what calls return, in order; they run beside each other."""
        if self._in_threads:
            return _in_threads(tasks, min(n_threads(self._n_jobs), len(tasks)))
        return list(Parallel(n_jobs=self._n_jobs)(tasks))

    @property
    def _in_threads(self) -> bool:
        return type(self._estimator).__module__.startswith("lightgbm.")

    def _seeded(self, units: NDArray[np.bool_]) -> Any:
        """Return a clone whose random numbers depend only on the feature set."""
        estimator = clone(self._estimator)
        unset = {
            name: self._seed_of(units)
            for name, value in estimator.get_params(deep=True).items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        return estimator.set_params(**unset) if unset else estimator

    def _seeded_engine(self, units: NDArray[np.bool_]) -> Any:
        """Return the parameters of LightGBM's engine, with the seed that ``_seeded`` has."""
        engine = self._engine or {}
        return engine if engine["seed"] is not None else engine | {"seed": self._seed_of(units)}

    def _seed_of(self, units: NDArray[np.bool_]) -> int:
        return zlib.crc32(np.packbits(units).tobytes(), self._seed & 0xFFFFFFFF) & 0x7FFFFFFF

    @cached_property
    def _all_classes(self) -> bool:
        return np.unique(self._problem.y_train).size == self._problem.n_classes


def train_together(trainers: Sequence[EstimatorTrainer], feature_sets: FeatureSets) -> list[NDArray[Any]]:
    """Return the stored data of each set for each trainer, as their ``train`` does, all of them trained in one go."""
    asked = [feature_sets if trainer.n_validation else feature_sets[:0] for trainer in trainers]
    known = [[trainer.known(units) for units in sets] for trainer, sets in zip(trainers, asked, strict=True)]
    tasks = [
        task
        for trainer, sets, old in zip(trainers, asked, known, strict=True)
        for task in trainer.judging(sets[[each is None for each in old]])
    ]
    said = iter(trainers[0].run(tasks))
    memories = [np.empty(len(feature_sets), dtype=trainer.memory_dtype) for trainer in trainers]
    for trainer, memory, sets, old in zip(trainers, memories, asked, known, strict=True):
        for i, outcome in enumerate(old):
            memory["confidence"][i], memory["label"][i] = found = next(said) if outcome is None else outcome
            trainer.keep(sets[i], found)
    return memories


def _in_threads(tasks: list[Any], n_jobs: int) -> list[Any]:
    """Return what calls return, in order; what has not begun when one of them fails never will."""
    if n_jobs <= 1:
        return [function(*given, **named) for function, given, named in tasks]
    pool = ThreadPoolExecutor(n_jobs)
    try:
        waiting = [pool.submit(function, *given, **named) for function, given, named in tasks]
        return [each.result() for each in waiting]
    finally:
        pool.shutdown(cancel_futures=True)


def check_estimator_usable(estimator: Any) -> None:
    """Raise unless the object is a scikit-learn classifier with ``predict_proba``."""
    if isinstance(estimator, type):
        raise InvalidEstimatorError(f"estimator is the class {estimator.__name__}; pass an instance of it.")
    for method in ("fit", "predict_proba", "get_params", "set_params"):
        if not hasattr(estimator, method):
            raise InvalidEstimatorError(
                f"{estimator!r} has no {method}; a stage needs a scikit-learn classifier that gives probabilities. "
                "Wrap one that does not in sklearn.calibration.CalibratedClassifierCV."
            )


def _with_one_thread(function: Any, *arguments: Any) -> Any:
    """Call with one thread of OpenMP: with few rows, more of them mostly wait for each other."""
    if arguments[0].y_train.size > _FEW_ROWS:
        return function(*arguments)
    with _threads().limit(limits=1, user_api="openmp"):
        return function(*arguments)


@cache
def _threads() -> Any:
    return ThreadpoolController()  # looking for libraries takes milliseconds, so it is done once


def _train(problem: Problem, estimator: Any, columns: NDArray[np.bool_]) -> Any:
    if not columns.any():
        return constant_model(problem.y_train, problem.n_classes)
    return estimator.fit(problem.train[columns].T, problem.y_train)


def _train_and_score(problem: Problem, estimator: Any, columns: NDArray[np.bool_]) -> Any:
    model = _train(problem, estimator, columns)
    return _outcomes(problem, estimator, np.asarray(model.predict_proba(problem.validation[columns].T)))


def _boost_and_score(problem: Problem, engine: dict[str, Any], columns: NDArray[np.bool_]) -> Any:
    if not columns.any():
        return _train_and_score(problem, None, columns)
    X, asked = problem.train[columns].T, problem.validation[columns].T
    probabilities = boosted_probabilities(engine, X, problem.y_train, asked, problem.n_classes)
    return _outcomes(problem, "LGBMClassifier", probabilities)


def _outcomes(problem: Problem, estimator: Any, probabilities: NDArray[np.float64]) -> Any:
    expected = (problem.n_validation, problem.n_classes)
    if probabilities.shape != expected or not np.isfinite(probabilities).all():
        raise InvalidEstimatorError(
            f"predict_proba of {estimator!r} gave {'NaN or inf' if probabilities.shape == expected else 'an array'} of "
            f"shape {probabilities.shape}; wanted finite probabilities of shape {expected}."
        )
    confidence, label = outcomes_of(probabilities, problem.errors)
    return confidence, label.astype(np.uint8)
