"""Pareto rank, norm, fitness and selection probabilities (§3.3)."""

import moocore
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from emsco.arrays import FloatArray
from emsco.scoring.objectives import Vectors


def pareto_rank(objectives: Vectors) -> NDArray[np.int64]:
    """Return rank = t* - t, t the non-dominated level of a design and t* the last one (Eq. 8): high is good."""
    levels = np.asarray(moocore.pareto_rank(objectives.to_minimise), dtype=np.int64)
    return np.asarray(levels.max() - levels)


def norm(objectives: Vectors) -> FloatArray:
    """Return the l2 norm of the gains, (g1, g2, g3) in the paper, in their generation."""
    gains = objectives.gains
    return np.asarray(np.sqrt((gains * gains).sum(axis=1)))


def log_fitness(rank: NDArray[np.int64], norms: FloatArray, *, epsilon: float) -> FloatArray:
    """Return log(gamma^rank * norm), gamma = max norm / min norm + epsilon (Eq. 9).

    In logs, because gamma^rank overflows a float within a few hundred levels. The paper's norm is never 0: g3 is not.
    With other objectives it can be, of designs that are worst in every one; these have rank 0 (or all designs are so),
    and a fitness of 0.
    """
    if not norms.any():
        return np.zeros(norms.size)
    gamma = norms.max() / norms.min(where=norms > 0, initial=np.inf) + epsilon
    with np.errstate(divide="ignore"):
        return np.asarray(rank * np.log(gamma) + np.log(norms))


def selection_probabilities(log_fitnesses: FloatArray) -> FloatArray:
    """Return the shares of a roulette wheel on fitness (§3.2.1)."""
    return np.asarray(softmax(log_fitnesses))
