"""Figures of points that branch, branch by branch."""

from collections.abc import Sequence

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.designs.branched import Branched


def with_branches(left: IntArray, paid: FloatArray, points: Sequence[Branched | None]) -> tuple[FloatArray, FloatArray]:
    """Return how many samples leave each stage and what they have paid, with a column for each stage of each branch.

    Parameters
    ----------
    left, paid : ndarray of shape (n_points, n_stages)
        Those of chains.
    points : sequence
        Of each point its branches, None if it is a chain. Where the figures by branch are not known, all is NaN.
    """
    figures = {i: branched.figures for i, branched in enumerate(points) if branched is not None}
    widest = max([left.shape[1], *(known.reached.size for known in figures.values() if known is not None)])
    more = ((0, 0), (0, widest - left.shape[1]))
    left_, paid_ = np.pad(left.astype(np.float64), more), np.pad(paid, more)
    for i, known in figures.items():
        left_[i], paid_[i] = (0.0, 0.0) if known is not None else (np.nan, np.nan)
        if known is not None:
            left_[i, : known.reached.size] = known.left.ravel()
            paid_[i, : known.reached.size] = known.paid.ravel()
    return left_, paid_
