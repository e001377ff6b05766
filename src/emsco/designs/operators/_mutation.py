"""Algorithm 1 on a whole population. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._compile import kernel

Array = Any


@kernel()
def mutate(
    population: Array, chosen: Array, draws: Array, cdf: Array, max_stages: int, leaves: Array, enters: Array
) -> None:
    """Redraw, in place and feature by feature, the stages of chosen features that share their stage.

    ``cdf[h]`` is the distribution function of BetaBinomial(h, 1, beta); ``draws`` are uniform on [0, 1). A chosen
    feature that ``leaves`` is left out (-1) instead, unless it is the only one bought. A feature that is left out stays
    out unless it ``enters``. Without removal, both matrices have no rows.
    """
    n_rows, n_features = population.shape
    removal = leaves.shape[0] > 0
    counts = np.zeros(n_features + 1, np.int64)
    for r in range(n_rows):
        counts[:] = 0
        n_stages = 0
        n_bought = 0
        for f in range(n_features):
            if population[r, f] >= 0:
                counts[population[r, f]] += 1
                n_bought += 1
            n_stages = max(n_stages, population[r, f] + 1)
        for f in range(n_features):
            if not chosen[r, f]:
                continue
            stage = population[r, f]
            if stage < 0:
                if not enters[r, f]:
                    continue
                n_bought += 1
            elif removal and leaves[r, f] and n_bought > 1:
                counts[stage] -= 1
                n_bought -= 1
                population[r, f] = -1
                while counts[n_stages - 1] == 0:
                    n_stages -= 1
                continue
            elif counts[stage] < 2:
                continue
            highest = min(n_stages, max_stages - 1)
            new = 0
            while new < highest and draws[r, f] >= cdf[highest, new]:
                new += 1
            if stage >= 0:
                counts[stage] -= 1
            counts[new] += 1
            n_stages = max(n_stages, new + 1)
            population[r, f] = new
