"""Cross-fitting: every sample is predicted by classifiers that were trained without it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, StageTrainer
from emsco.stages.estimator import EstimatorTrainer, train_together
from emsco.stages.logistic import LogisticTrainer


class CrossFitTrainer:
    """Trains a feature set once per fold; a sample is predicted by the fold that left it out.

    The validation samples are those of the first fold, then those of the second, and so on.

    Parameters
    ----------
    folds : sequence of StageTrainer
        One trainer per fold.
    whole : StageTrainer
        Trainer on all samples, for the deployed models.

    Attributes
    ----------
    folds, whole
        As given.
    """

    def __init__(self, folds: Sequence[StageTrainer], whole: StageTrainer) -> None:
        self.folds = tuple(folds)
        self.whole = whole
        self.memory_dtype = np.dtype([(f"fold{i}", fold.memory_dtype) for i, fold in enumerate(folds)])

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Return the stored data of each fold for each set."""
        memory = np.empty(len(feature_sets), dtype=self.memory_dtype)
        slow = [fold for fold in self.folds if isinstance(fold, EstimatorTrainer)]
        fast = [fold for fold in self.folds if isinstance(fold, LogisticTrainer)]
        if len(slow) == len(self.folds):
            trained = train_together(slow, feature_sets)
        elif len(fast) == len(self.folds) and len(feature_sets) < fast[0].n_jobs:  # too few for all threads
            with ThreadPoolExecutor(fast[0].n_jobs) as pool:
                trained = list(pool.map(lambda fold: fold.train(feature_sets), fast))
        else:
            trained = [fold.train(feature_sets) for fold in self.folds]
        for i, part in enumerate(trained):
            memory[f"fold{i}"] = part
        return memory

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the outcomes of all folds side by side."""
        parts = [fold.outcomes(feature_sets, memory[f"fold{i}"]) for i, fold in enumerate(self.folds)]
        return StageOutcomes(
            np.concatenate([part.confidence for part in parts], axis=1),
            np.concatenate([part.label for part in parts], axis=1),
        )

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Train the sets on all samples."""
        return self.whole.models(feature_sets, self.whole.train(feature_sets))
