"""Recombination of parents with different numbers of stages (Algorithm 2)."""

import numpy as np

from emsco.arrays import IntArray
from emsco.designs.partition import stage_counts


def rescale(stages: IntArray, n_from: IntArray, n_to: IntArray) -> IntArray:
    """Map stages of a design of n_from stages to one of n_to: max(round((s + 1) / n_from * n_to) - 1, 0), half up.

    -1, never bought, stays -1.

    Examples
    --------
    >>> rescale(np.array([0, 2, 1, 2, 1, -1]), np.array(3), np.array(2))
    array([ 0,  1,  0,  1,  0, -1])
    """
    least = np.minimum(stages, 0)
    return np.asarray(np.maximum((2 * (stages + 1) * n_to + n_from) // (2 * n_from) - 1, least))


def recombine(first: IntArray, second: IntArray, *, rate: float, rng: np.random.Generator) -> IntArray:
    """Return one child per pair of parents; it may have gaps.

    With probability ``rate``, each feature copies one parent, selected by a fair coin, rescaled to the stage count of a
    parent or to their mean. Otherwise, or if such a child would buy nothing, the child is a copy of a parent.

    Parameters
    ----------
    first, second : ndarray of shape (n_pairs, n_features)
    rate : float
        The paper's r_hat.
    rng : Generator
    """
    n_pairs, n_features = first.shape
    recombined = rng.random((n_pairs, 1)) <= rate
    choice = rng.integers(3, size=(n_pairs, 1))
    from_first = rng.random((n_pairs, n_features)) < 0.5
    copies_first = rng.random((n_pairs, 1)) < 0.5
    n_first, n_second = stage_counts(first)[:, None], stage_counts(second)[:, None]
    n_child = np.choose(choice, [n_first, n_second, (n_first + n_second) // 2])
    mixed = np.where(from_first, rescale(first, n_first, n_child), rescale(second, n_second, n_child))
    copied = np.where(copies_first, first, second)
    buys = mixed.max(axis=1, keepdims=True) >= 0
    return np.where(recombined & buys, mixed, copied)
