"""Figures of points that branch, branch by branch."""

from collections.abc import Sequence

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.designs.branched import Branched
from emsco.designs.partition import acquired_sets
from emsco.prices.prices import PriceList


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


def branches_paid(branched: Branched, prices: PriceList) -> FloatArray:
    """Return what has been paid by the end of each stage of each branch, (n_branches, n_stages).

    It is constant beyond the last stage of a branch.
    """
    return np.asarray(np.cumsum(prices.stage_ticks(acquired_sets(branched.rows)[0]), axis=1) / prices.scale)


def dearest_paid(branched: Branched, prices: PriceList, n_stages: int) -> FloatArray:
    """Return what has been paid by the end of each of so many stages of the dearest branch, the first of equals."""
    paid = branches_paid(branched, prices)
    return np.pad(paid[paid[:, -1].argmax()], (0, n_stages - paid.shape[1]), mode="edge")
