"""Stages that learn as others did: for each feature set, an untrained copy of the model that it has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from emsco.designs.partition import set_key
from emsco.stages.base import StageModel, StageTrainer
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.problem import Problem
from emsco.stages.recipe import Recipe


class AlikeTrainer(EstimatorTrainer):
    """Trains feature sets by clones of models that were trained on other rows.

    A clone has all settings of its model, the seed included.

    Parameters
    ----------
    problem : Problem
    models : mapping of bytes to classifier
        A scikit-learn classifier for each feature set that will be trained (``set_key``).
    n_jobs : int
        As of ``EstimatorTrainer``.
    """

    def __init__(self, problem: Problem, models: Mapping[bytes, StageModel], *, n_jobs: int = 1) -> None:
        super().__init__(problem, next(iter(models.values())), seed=0, n_jobs=n_jobs)
        self._models = models

    def _seeded(self, units: NDArray[np.bool_]) -> Any:
        return clone(self._models[set_key(units)])


@dataclass(frozen=True)
class Alike(Recipe):
    """The training settings of models that are there; ``estimator`` is one of them.

    Attributes
    ----------
    models : mapping of bytes to classifier
        Those models.
    """

    models: Mapping[bytes, StageModel] = field(default_factory=dict)

    def trainer(self, problem: Problem, *, seed: int, n_jobs: int, like: StageTrainer | None = None) -> StageTrainer:
        """Return the trainer for feature sets of a problem."""
        return AlikeTrainer(problem, self.models, n_jobs=n_jobs)
