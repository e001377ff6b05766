"""First designs of a search with removal: designs that leave features out."""

import numpy as np

from emsco.arrays import IntArray
from emsco.designs.partition import compress


def leave_out(designs: IntArray, *, rng: np.random.Generator) -> IntArray:
    """Leave features out of designs that buy all, so that cheap designs are represented.

    Up to half of the designs keep a single feature, each a different one. The others keep a random share of their
    features, from nearly none to all.
    """
    n_designs, n_features = designs.shape
    left_out = rng.random(designs.shape) < rng.random((n_designs, 1))
    n_single = min(n_features, n_designs // 2)
    left_out[:n_single] = True
    kept = rng.integers(n_features, size=(n_designs,))  # at least this one
    kept[:n_single] = rng.permutation(n_features)[:n_single]
    left_out[np.arange(n_designs), kept] = False
    return compress(np.where(left_out, -1, designs))
