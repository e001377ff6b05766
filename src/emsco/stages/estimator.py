"""Any scikit-learn classifier as a stage: one clone per feature set, trained in parallel."""

from functools import cache
from typing import Any
import zlib

from joblib import Parallel, delayed
import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from emsco.exceptions import InvalidEstimatorError
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, outcomes_of
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
    n_jobs : int or None
        As in joblib.
    """

    def __init__(self, problem: Problem, estimator: Any, *, seed: int, n_jobs: int | None = None) -> None:
        check_estimator_usable(estimator)
        self._problem = problem
        self._estimator = estimator
        self._seed = seed
        self._n_jobs = n_jobs
        n = problem.n_validation
        self.memory_dtype = np.dtype([("confidence", np.float64, (n,)), ("label", np.uint8, (n,))])

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Return the outcomes of each set, which are stored unchanged."""
        memory = np.empty(len(feature_sets), dtype=self.memory_dtype)
        if self._problem.n_validation:
            for i, (confidence, label) in enumerate(self._parallel(_train_and_score, feature_sets)):
                memory["confidence"][i] = confidence
                memory["label"][i] = label
        return memory

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the stored outcomes."""
        return StageOutcomes(memory["confidence"], memory["label"])

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Train the sets again, with the same result; storing every model of a search would have no bound."""
        return list(self._parallel(_train, feature_sets))

    def _parallel(self, function: Any, feature_sets: FeatureSets) -> Any:
        return Parallel(n_jobs=self._n_jobs)(
            delayed(_with_one_thread)(function, self._problem, self._seeded(units), units @ self._problem.unit_columns)
            for units in feature_sets
        )

    def _seeded(self, units: NDArray[np.bool_]) -> Any:
        """Return a clone whose random numbers depend only on the feature set."""
        estimator = clone(self._estimator)
        seed = zlib.crc32(np.packbits(units).tobytes(), self._seed & 0xFFFFFFFF) & 0x7FFFFFFF
        unset = {
            name: seed
            for name, value in estimator.get_params(deep=True).items()
            if (name == "random_state" or name.endswith("__random_state")) and value is None
        }
        return estimator.set_params(**unset) if unset else estimator


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
    return estimator.fit(problem.train[columns].T, problem.y_train)


def _train_and_score(problem: Problem, estimator: Any, columns: NDArray[np.bool_]) -> Any:
    model = _train(problem, estimator, columns)
    probabilities = np.asarray(model.predict_proba(problem.validation[columns].T))
    expected = (problem.n_validation, problem.n_classes)
    if probabilities.shape != expected or not np.isfinite(probabilities).all():
        raise InvalidEstimatorError(
            f"predict_proba of {estimator!r} gave {'NaN or inf' if probabilities.shape == expected else 'an array'} of "
            f"shape {probabilities.shape}; wanted finite probabilities of shape {expected}."
        )
    confidence, label = outcomes_of(probabilities)
    return confidence, label.astype(np.uint8)
