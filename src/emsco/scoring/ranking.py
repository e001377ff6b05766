"""Pareto rank, norm, fitness and selection probabilities (§3.3)."""

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray
from emsco.scoring.objectives import Vectors


def pareto_rank(objectives: Vectors) -> NDArray[np.int64]:
    """Return rank = t* - t, t the non-dominated level of a design and t* the last level (Eq. 8); high is good."""
    import moocore  # here: serving, which loads this file, ranks nothing

    levels = np.asarray(moocore.pareto_rank(objectives.to_minimise), dtype=np.int64)
    return np.asarray(levels.max() - levels)


def nondominated(objectives: Vectors) -> BoolArray:
    """Return which designs no other one dominates; equal vectors do not dominate each other."""
    import moocore

    mask = moocore.is_nondominated(objectives.to_minimise, keep_weakly=True)
    return np.asarray(mask, dtype=np.bool_)


def norm(objectives: Vectors) -> FloatArray:
    """Return the l2 norm of the gains within the generation; in the paper, of (g1, g2, g3)."""
    gains = objectives.gains
    return np.asarray(np.sqrt((gains * gains).sum(axis=1)))


def log_fitness(rank: NDArray[np.int64], norms: FloatArray, *, epsilon: float) -> FloatArray:
    """Return log(gamma^rank * norm), gamma = max norm / min norm + epsilon (Eq. 9).

    The fitness is computed in logs, because gamma^rank overflows a float within a few hundred levels. The paper's norm
    is never 0, because g3 is positive. With other objectives, the norm of a design that is the worst in all of them is
    0; such a design has rank 0 and fitness 0. If all norms are 0, all designs have the same fitness.
    """
    if not norms.any():
        return np.zeros(norms.size)
    gamma = norms.max() / norms.min(where=norms > 0, initial=np.inf) + epsilon
    with np.errstate(divide="ignore"):
        return np.asarray(rank * np.log(gamma) + np.log(norms))


def selection_probabilities(log_fitnesses: FloatArray) -> FloatArray:
    """Return the shares of a roulette wheel on fitness (§3.2.1)."""
    from scipy.special import softmax

    return np.asarray(softmax(log_fitnesses))
