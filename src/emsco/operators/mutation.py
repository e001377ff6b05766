"""Mutation of stage assignments (Algorithm 1)."""

from functools import lru_cache

import numpy as np
from scipy.special import betaln, gammaln

from emsco._kernels import mutation as kernel
from emsco.objectives import FloatArray
from emsco.partition import IntArray


def mutate(
    population: IntArray, *, rate: float, stage_bias: float, max_stages: int, rng: np.random.Generator
) -> IntArray:
    """Redraw assignments from BetaBinomial(min(||Q||, k - 1), 1, beta), feature by feature.

    A feature is redrawn with probability ``rate``, and only where its stage holds another one too, so no stage is
    emptied. ||Q|| is the current stage count: a draw equal to it opens a new stage.

    Parameters
    ----------
    population : ndarray of shape (n_designs, n_features)
    rate : float
        The paper's m_hat.
    stage_bias : float
        The paper's beta: the greater, the more the early stages are preferred.
    max_stages : int
        The paper's k.
    rng : Generator
    """
    children = population.copy()
    chosen = rng.random(children.shape) <= rate
    draws = rng.random(children.shape)
    kernel.mutate(children, chosen, draws, stage_distribution(max_stages, stage_bias), max_stages)
    return children


@lru_cache(maxsize=8)
def stage_distribution(max_stages: int, stage_bias: float) -> FloatArray:
    """Return the distribution functions of BetaBinomial(h, 1, beta) for h = 0 .. max_stages - 1 (Eq. 3).

    Returns
    -------
    ndarray of shape (max_stages, max_stages)
        ``[h, j]`` is the probability of a draw of at most j.
    """
    h = np.arange(max_stages)[:, None]
    j = np.arange(max_stages)[None, :]
    possible = j <= h
    left = np.where(possible, h - j, 0)
    log_choose = gammaln(h + 1) - gammaln(j + 1) - gammaln(left + 1)
    log_mass = log_choose + betaln(j + 1, left + stage_bias) - betaln(1, stage_bias)
    cdf = np.cumsum(np.where(possible, np.exp(log_mass), 0.0), axis=1)
    cdf.setflags(write=False)
    return cdf
