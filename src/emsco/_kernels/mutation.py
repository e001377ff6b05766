"""The walk of Algorithm 1 over a whole population. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._kernels.compile import kernel

Array = Any


@kernel()
def mutate(population: Array, chosen: Array, draws: Array, cdf: Array, max_stages: int) -> None:
    """Redraw, in place and feature by feature, the stages of chosen features whose stage holds another one too.

    ``cdf[h]`` is the distribution function of BetaBinomial(h, 1, beta); ``draws`` are uniform on [0, 1).
    """
    n_rows, n_features = population.shape
    counts = np.zeros(n_features + 1, np.int64)
    for r in range(n_rows):
        counts[:] = 0
        n_stages = 0
        for f in range(n_features):
            counts[population[r, f]] += 1
            n_stages = max(n_stages, population[r, f] + 1)
        for f in range(n_features):
            stage = population[r, f]
            if not chosen[r, f] or counts[stage] < 2:
                continue
            highest = min(n_stages, max_stages - 1)
            new = 0
            while new < highest and draws[r, f] >= cdf[highest, new]:
                new += 1
            counts[stage] -= 1
            counts[new] += 1
            n_stages = max(n_stages, new + 1)
            population[r, f] = new
