"""l2-regularised logistic regressions of two classes and weighted rows: Newton's method, one weighting after another.

Arrays in, arrays out, no checks; the layout is that of `logistic`. Unlike BLAS, the same bits for any threads, and no
threads that wait for a core: these problems are small and many.
"""

from typing import Any

import numpy as np

from emsco._compile import kernel
from emsco.stages._logistic import (
    BLOCK,
    LAST_MOVE,
    MAX_ITERATIONS,
    OVERSHOT,
    add_products,
    factor,
    moves_of,
    probabilities_of,
    slope_along,
    substitute,
)

Array = Any


@kernel()
def _add_curvature(H: Array, Z: Array, rows: Array, curvature: Array, weighted: Array) -> None:
    """H += Z diag(curvature) Z^T, lower triangle."""
    n_samples = curvature.size
    for start in range(0, n_samples, BLOCK):
        stop = min(start + BLOCK, n_samples)
        v = curvature[start:stop]
        part = weighted[: stop - start]
        for j in range(rows.size):
            z = Z[j, start:stop]
            for i in range(v.size):
                part[i] = v[i] * z[i]
            add_products(H[j], part, Z, rows, j + 1, start, stop)


@kernel()
def fit(Z: Array, target: Array, rows: Array, weights: Array, ridge: float, theta: Array) -> None:
    """Fill theta (n_fits, n_columns + 1) with the minimisers; weights are (n_fits, n_samples).

    ``rows`` counts the rows of Z, of which the last is all ones. Both labels need a row of positive weight.
    """
    n_fits, n_samples = weights.shape
    m = rows.size
    start = np.int64(0)
    margins = np.empty((1, n_samples))
    moves = np.empty((1, n_samples))
    chances = np.empty((1, n_samples))
    residuals = np.empty((1, n_samples))
    curvature = np.empty(n_samples)
    weighted = np.empty(BLOCK)
    H = np.empty((m, m))
    gradient = np.empty(m)
    step = np.zeros(m)
    current = np.empty(m)
    for f in range(n_fits):
        weight = weights[f]
        current[:] = 0.0
        margins[:] = 0.0
        slope = 0.0
        for iteration in range(MAX_ITERATIONS):
            size = 1.0
            while True:
                probabilities_of(margins, n_samples, chances, curvature)
                for i in range(n_samples):
                    residuals[0, i] = weight[i] * (chances[0, i] - target[i])
                if iteration == 0 or size < 1e-9:
                    break
                if slope_along(residuals, moves, current, step, m, ridge) <= -OVERSHOT * slope:
                    break
                size /= 2.0
                for i in range(n_samples):
                    margins[0, i] -= size * moves[0, i]
                for j in range(m):
                    current[j] -= size * step[j]
            gradient[:] = 0.0
            add_products(gradient, residuals[0], Z, rows, m, start, n_samples)
            H[:] = 0.0
            for i in range(n_samples):
                curvature[i] = weight[i] * chances[0, i] * (1.0 - chances[0, i])
            _add_curvature(H, Z, rows, curvature, weighted)
            for j in range(m - 1):
                gradient[j] += ridge * current[j]
                H[j, j] += ridge
            factor(H, m)
            for j in range(m):
                step[j] = -gradient[j]
            substitute(H, step, m)
            slope = 0.0
            for j in range(m):
                slope += step[j] * gradient[j]
            largest = moves_of(Z, rows, step, moves)
            for j in range(m):
                current[j] += step[j]
            for i in range(n_samples):
                margins[0, i] += moves[0, i]
            if largest < LAST_MOVE:
                break
        theta[f] = current
