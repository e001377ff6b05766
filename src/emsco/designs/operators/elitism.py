"""Selection of the elite, which passes to the next generation unchanged (§3.2.2)."""

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.designs.partition import stage_counts


def best_first(population: IntArray, rank: NDArray[np.int64], norms: FloatArray) -> NDArray[np.intp]:
    """Return the order of decreasing fitness; ties: fewer stages first, then fewer features, then the smaller row.

    Fitness increases with rank, and within a rank with the norm (Property 2), so these two are compared instead.
    """
    n_bought = (population >= 0).sum(axis=1)
    return np.lexsort((*population.T[::-1], n_bought, stage_counts(population), -norms, -rank))


def unique_vectors(order: NDArray[np.intp], vectors: IntArray) -> NDArray[np.intp]:
    """Return the first design of each distinct objective vector, in the given order."""
    _, first = np.unique(vectors[order], axis=0, return_index=True)
    return order[np.sort(first)]


def count_elite(
    n_unique: int, n_nondominated: int, *, elite_fraction: float, population_size: int | None = None
) -> int:
    """Return max(ceil(b u), e): how many of the u unique designs, e of them non-dominated, pass (§3.2.2).

    The product is exact: b is the decimal number as it is written. If the size of the population is given, the fraction
    alone claims at most four fifths of it, so that there are children.

    Examples
    --------
    >>> count_elite(100, 0, elite_fraction=0.07)  # 0.07 * 100 is 7.000000000000001 in floats
    7
    """
    by_fraction = ceil(Fraction(str(float(elite_fraction))) * n_unique)
    if population_size is not None:
        by_fraction = min(by_fraction, 4 * population_size // 5)
    return max(by_fraction, n_nondominated)


def unique_rows(order: NDArray[np.intp], population: IntArray) -> NDArray[np.intp]:
    """Return the first of equal designs, in the given order."""
    return unique_vectors(order, population)


def next_size(n_elite: int, population_size: int) -> int:
    """Return the size of the next population: at least a fifth of it are children, for any number of elites."""
    return max(population_size, -(-5 * n_elite // 4))
