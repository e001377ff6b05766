"""Tallies -> coverage, accuracy, cost: the only place that divides, and the only home of the 0/0 convention."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emsco.cascade import Tally

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Objectives:
    """Raw objective values of designs.

    Attributes
    ----------
    coverage : ndarray of shape (n_designs,)
        Share of samples that get a label (g1, Eq. 4).
    accuracy : ndarray of shape (n_designs,)
        Share of the labels that are right (g2, Eq. 5); 0 inside the search where there is none.
    mean_cost : ndarray of shape (n_designs,)
        What a sample pays on average, rejected ones included (g3*, Eq. 6).
    least_price : float
        The smallest price that is not 0.
    """

    coverage: FloatArray
    accuracy: FloatArray
    mean_cost: FloatArray
    least_price: float

    @property
    def to_minimise(self) -> FloatArray:
        """The vectors that dominance compares, (n_designs, 3), all to be minimised; cost is raw."""
        return np.column_stack([-self.coverage, -self.accuracy, self.mean_cost])

    @property
    def gains(self) -> FloatArray:
        """(g1, g2, g3) of a generation, (n_designs, 3), each in [0, 1] and the more the better."""
        return np.column_stack([self.coverage, self.accuracy, inverse_cost(self.mean_cost, self.least_price)])


def measure(tally: Tally) -> Objectives:
    """Return the objectives of counted designs.

    Equal counts give equal floats, and equal ratios too: each value is one correctly rounded division.
    """
    accuracy = np.divide(tally.n_correct, tally.n_conclusive, out=np.zeros(tally.n_correct.size),
                         where=tally.n_conclusive > 0)  # fmt: skip
    return Objectives(
        coverage=tally.n_conclusive / tally.n_samples,
        accuracy=accuracy,
        mean_cost=tally.total_ticks / (tally.scale * tally.n_samples),
        least_price=tally.least_price,
    )


def inverse_cost(mean_cost: FloatArray, least_price: float) -> FloatArray:
    """Return g3 = (least cost of the generation) / cost (Eq. 7), in (0, 1].

    If the least cost is 0 the ratio would be 0 for all who pay anything, however little. Both sides then are raised by
    the smallest price that is not 0, so a free design has 1, one that costs that price 1/2, and dearer ones less.

    Examples
    --------
    >>> inverse_cost(np.array([10.0, 20.0]), 5.0)
    array([1. , 0.5])
    >>> inverse_cost(np.array([0.0, 5.0, 15.0]), 5.0)
    array([1.  , 0.5 , 0.25])
    """
    offset = 0.0 if mean_cost.min() > 0 else least_price
    return np.asarray((mean_cost.min() + offset) / (mean_cost + offset))
