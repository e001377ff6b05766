"""Neighbours of a design: one feature moved by a step, or two features exchanged.

A feature that is left out counts as being in a stage after the last one, which no sample reaches.
"""

from collections.abc import Callable

import numpy as np

from emsco.arrays import BoolArray, IntArray
from emsco.designs.partition import compress, places, stage_counts


def steps(designs: IntArray, max_stages: int, *, removal: bool = False) -> IntArray:
    """Return the designs with one feature moved to an adjacent stage, or to a new stage there.

    A step changes the feature set of one stage by one feature, or adds or removes one stage. With ``removal``, a step
    may also remove a feature from the last stage, or add one to it.

    Examples
    --------
    >>> steps(np.array([[0, 0, 1]]), 2).tolist()
    [[1, 0, 1], [0, 1, 1], [0, 0, 0]]
    >>> steps(np.array([[0, 0, 1]]), 2, removal=True).tolist()
    [[1, 0, 1], [0, 1, 1], [0, 0, 0], [0, 0, -1]]
    """
    n_stages = stage_counts(designs)
    there = places(n_stages, max_stages)
    own = 2 * designs + 1
    out = 2 * n_stages + 1
    if removal:
        there = np.pad(there, ((0, 0), (0, 1)))
        there[np.arange(len(designs)), out] = (designs >= 0).sum(axis=1) > 1
        own = np.where(designs < 0, out[:, None], own)
    distance = np.abs(np.arange(there.shape[1]) - own[:, :, None])
    row, feature, place = np.nonzero(there[:, None, :] & (distance > 0) & (distance <= 2))
    children = own[row]
    children[np.arange(row.size), feature] = place
    return compress(np.where(children == out[row, None], -1, children) if removal else children)


def near_swaps(designs: IntArray, max_stages: int) -> IntArray:
    """Return the designs with two features of adjacent stages exchanged."""
    return _swapped(designs, lambda distance: distance == 1)


def far_swaps(designs: IntArray, max_stages: int) -> IntArray:
    """Return the designs with two features of non-adjacent stages exchanged."""
    return _swapped(designs, lambda distance: distance > 1)


def jumps(designs: IntArray, max_stages: int) -> IntArray:
    """Return the designs with one feature removed from, or added to, a stage before the last.

    Examples
    --------
    >>> jumps(np.array([[0, 1, -1]]), 2).tolist()
    [[0, 1, 0], [-1, 0, -1]]
    """
    n_stages = stage_counts(designs)[:, None]
    there = places(n_stages[:, 0], max_stages)
    earlier = np.arange(there.shape[1]) < 2 * n_stages - 1
    row, feature, place = np.nonzero((there & earlier)[:, None, :] & (designs < 0)[:, :, None])
    row_out, feature_out = np.nonzero((designs >= 0) & (designs < n_stages - 1))
    children = 2 * designs[np.append(row, row_out)] + 1
    children[np.arange(len(children)), np.append(feature, feature_out)] = np.append(place, np.full(row_out.size, -1))
    return compress(children)


def _swapped(designs: IntArray, wanted: Callable[[IntArray], BoolArray]) -> IntArray:
    first, second = np.triu_indices(designs.shape[1], 1)
    stages = np.where(designs < 0, stage_counts(designs)[:, None], designs)
    row, pair = np.nonzero(wanted(np.abs(stages[:, first] - stages[:, second])))
    children = designs[row]
    children[np.arange(row.size), first[pair]] = designs[row, second[pair]]
    children[np.arange(row.size), second[pair]] = designs[row, first[pair]]
    return children
