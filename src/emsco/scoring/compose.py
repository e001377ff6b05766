"""Fronts of designs that branch, composed from the fronts of their branches.

Branches share no row, so whole counts add up, and so do fronts: the front of all designs that go on in each branch in
some way is the best of all sums of one point per branch. It is enough to add up what is best in each branch, *if best
means more labels, fewer wrong ones, lower cost*: adding the same counts to both sides never turns that round. Accuracy
would: more labels, the same share of them right, make a sum worse if the other branch is better than they are. What is
best by coverage, accuracy and cost is best by counts, too; so compose by counts, and divide at the end.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import moocore
import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray

_AT_ONCE = 500_000  # sums compared in one go: some 40 MiB


@dataclass(frozen=True, eq=False)
class Composed:
    """Non-dominated counts, cheapest first, and what they are sums of.

    Attributes
    ----------
    counts : ndarray of shape (n_points, 3)
        Labels given, wrong ones among them, and what all rows have paid, in whole ticks.
    picks : ndarray of shape (n_points, n_branches)
        The row of counts that each branch contributes.
    """

    counts: IntArray
    picks: IntArray


def best_counts(counts: IntArray) -> NDArray[np.intp]:
    """Return the rows that no other one beats (labels up, wrong down, cost down), of equals the first; cheapest first.

    Examples
    --------
    >>> best_counts(np.array([[10, 1, 40], [10, 3, 10], [10, 3, 20], [10, 3, 10]])).tolist()
    [1, 0]
    """
    values = counts * np.array([-1.0, 1.0, 1.0])  # whole numbers below 2**53: exact
    kept = np.flatnonzero(np.asarray(moocore.is_nondominated(values, keep_weakly=True)))
    kept = kept[np.sort(np.unique(counts[kept], axis=0, return_index=True)[1])]
    return kept[np.lexsort((-counts[kept, 0], counts[kept, 1], counts[kept, 2]))]


def compose(parts: Sequence[IntArray], *, most: int | None = None) -> Composed:
    """Return the non-dominated sums of one row of counts of each branch.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_points, 3)
        Of each branch labels, wrong labels and ticks of some designs.
    most : int or None
        Points kept of each branch and after each sum, besides all that have the most labels; None: all, which is exact.

    Examples
    --------
    >>> left = np.array([[10, 1, 60], [10, 3, 30], [10, 3, 40]])
    >>> right = np.array([[5, 0, 25], [5, 2, 10]])
    >>> both = compose([left, right])
    >>> both.counts.tolist(), both.picks.tolist()
    ([[15, 5, 40], [15, 3, 55], [15, 1, 85]], [[1, 1], [1, 0], [0, 0]])
    """
    counts = np.zeros((1, 3), dtype=np.int64)
    picks = np.zeros((1, 0), dtype=np.int64)
    for part in parts:
        of_part = _thinned(part, best_counts(part), most)
        counts, pairs = _sums(counts, part[of_part], most)
        before, new = np.divmod(pairs, of_part.size)
        picks = np.column_stack([picks[before], of_part[new]])
    return Composed(counts, picks)


def _sums(some: IntArray, others: IntArray, most: int | None) -> tuple[IntArray, NDArray[np.intp]]:
    """Return the best sums, and the number of the pair that each one is; only some sums are in memory at a time."""
    step = max(_AT_ONCE // len(others), 1)
    counts, pairs = np.zeros((0, 3), dtype=np.int64), np.zeros(0, dtype=np.intp)
    for i in range(0, len(some), step):
        sums = (some[i : i + step, None] + others).reshape(-1, 3)
        counts = np.concatenate([counts, sums])
        pairs = np.concatenate([pairs, np.arange(len(sums)) + i * len(others)])
        kept = best_counts(counts)
        counts, pairs = counts[kept], pairs[kept]
    kept = _thinned(counts, np.arange(len(counts)), most)
    return counts[kept], pairs[kept]


def _thinned(counts: IntArray, kept: NDArray[np.intp], most: int | None) -> NDArray[np.intp]:
    """Return the points with the most labels, and so many others, evenly by cost.

    A sum labels everyone only if each branch does: thinned like the others, such points would be gone after two sums.
    """
    if most is None or kept.size <= most:
        return kept
    full = counts[kept, 0] == counts[kept, 0].max()
    rest, first = np.flatnonzero(~full), np.flatnonzero(full)
    if rest.size > most:
        rest = rest[np.linspace(0, rest.size - 1, most).astype(np.intp)]
    if first.size > most:
        first = first[np.linspace(0, first.size - 1, most).astype(np.intp)]
    return kept[np.sort(np.append(first, rest))]
