"""Roulette-wheel selection of parents (§3.2.1)."""

import numpy as np

from emsco.arrays import FloatArray, IntArray


def select(probabilities: FloatArray, *, n_pairs: int, rng: np.random.Generator) -> IntArray:
    """Return the rows of n_pairs pairs of parents, (n_pairs, 2), drawn with the given probabilities."""
    wheel = np.cumsum(probabilities)
    spins = rng.random((n_pairs, 2)) * wheel[-1]
    return np.asarray(np.minimum(np.searchsorted(wheel, spins, side="right"), probabilities.size - 1))
