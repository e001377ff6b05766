"""Mutation of stage assignments (Algorithm 1)."""

from functools import lru_cache

import numpy as np
from scipy.special import betaln, gammaln

from emsco.arrays import FloatArray, IntArray
from emsco.designs.operators import _mutation as kernel

LEAVES = 0.3  # probability that a feature chosen for mutation is left out instead of redrawn
_NONE = np.empty((0, 0), dtype=np.bool_)


def mutate(
    population: IntArray,
    *,
    rate: float,
    stage_bias: float,
    max_stages: int,
    rng: np.random.Generator,
    removal: bool = False,
) -> IntArray:
    """Redraw assignments from BetaBinomial(min(||Q||, k - 1), 1, beta), feature by feature.

    A feature is redrawn with probability ``rate``, and only if its stage holds another feature, so no stage becomes
    empty. ||Q|| is the current stage count: a draw equal to it opens a new stage.

    With ``removal``, a chosen feature is left out with probability 0.3, even if it is alone in its stage, unless it is
    the only one bought; the child may then have gaps. A chosen feature that was left out enters a stage with the
    probability ``enter_rate``, which is low in designs that leave out many features, so that small designs stay small.

    Parameters
    ----------
    population : ndarray of shape (n_designs, n_features)
    rate : float
        The paper's m_hat.
    stage_bias : float
        The paper's beta; larger values favour early stages.
    max_stages : int
        The paper's k.
    rng : Generator
    removal : bool
        Whether features may be left out.
    """
    children = population.copy()
    chosen = rng.random(children.shape) <= rate
    draws = rng.random(children.shape)
    leaves = enters = _NONE
    if removal:
        fates = rng.random(children.shape)
        leaves, enters = fates < LEAVES, fates < enter_rate(children)
    kernel.mutate(children, chosen, draws, stage_distribution(max_stages, stage_bias), max_stages, leaves, enters)
    return children


def enter_rate(population: IntArray) -> FloatArray:
    """Return, for each row, the probability that a chosen feature that was left out enters, (n_designs, 1).

    At a mutation rate m, the expected number of features that enter is the number that leave plus 3 m. With few
    features nearly every chosen one enters; with many, few do.
    """
    n_bought = (population >= 0).sum(axis=1, keepdims=True)
    n_left_out = np.maximum(population.shape[1] - n_bought, 1)
    return np.asarray(np.minimum((LEAVES * n_bought + 3.0) / n_left_out, 1.0))


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
