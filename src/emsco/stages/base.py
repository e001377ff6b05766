"""Interface of stage classifiers for the search: a confidence and a label for every validation sample."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emsco.prices.errors import ErrorPrices

FeatureSets = NDArray[np.bool_]  # (n_sets, n_units)


@dataclass(frozen=True)
class StageOutcomes:
    """Predictions of classifiers trained on feature sets for each validation sample, independent of any threshold.

    Attributes
    ----------
    confidence : ndarray of shape (n_sets, n_samples)
        Top class probability; where errors have prices, 1 - expected price / largest price of an error.
    label : ndarray of shape (n_sets, n_samples)
        Index of the top class; the lowest on a tie. Where errors have prices, that of least expected price; the number
        of classes stands for no answer.
    """

    confidence: NDArray[np.float64]
    label: NDArray[np.uint8]


class StageModel(Protocol):
    """A trained stage: anything with scikit-learn's ``predict_proba`` over the classes 0, 1, ..."""

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class probabilities of encoded rows."""


class StageTrainer(Protocol):
    """Trains classifiers on feature sets. The result of a set must not depend on the other sets of the batch.

    Attributes
    ----------
    memory_dtype : dtype
        Data stored for each trained set, from which its outcomes follow without training.
    """

    memory_dtype: np.dtype[Any]

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Train each set; return the data to store."""

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return the outcomes of trained sets from their stored data."""

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return the models of trained sets, for deployment."""


def outcomes_of(
    probabilities: NDArray[np.float64], errors: ErrorPrices | None = None
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return confidence and label from class probabilities (n_samples, n_classes); by prices of errors, if given."""
    if errors is not None:
        return errors.outcomes(probabilities)
    if probabilities.shape[1] == 2:  # twice as fast as argmax, for the most common case
        first, second = probabilities[:, 0], probabilities[:, 1]
        return np.maximum(first, second), (second > first).astype(np.intp)
    label = probabilities.argmax(axis=1)
    return np.take_along_axis(probabilities, label[:, None], axis=1)[:, 0], label
