"""The designs near a design: one feature moved by a step, or two exchanged."""

from collections.abc import Callable

import numpy as np

from emsco.partition import BoolArray, IntArray, compress, places, stage_counts


def steps(designs: IntArray, max_stages: int, *, removal: bool = False) -> IntArray:
    """Return the designs with one feature moved to a stage beside its own, or to a new stage there.

    These change the feature set of one stage by one feature, or add or take away one stage. With ``removal`` also those
    with one feature left out, and with one taken in, in any stage or a new one.

    Examples
    --------
    >>> steps(np.array([[0, 0, 1]]), 2).tolist()
    [[1, 0, 1], [0, 1, 1], [0, 0, 0]]
    >>> steps(np.array([[0, -1]]), 1, removal=True).tolist()
    [[0, 0]]
    """
    there = places(stage_counts(designs), max_stages)
    own = 2 * designs + 1
    distance = np.abs(np.arange(there.shape[1]) - own[:, :, None])
    near = (distance > 0) & (distance <= 2)
    if removal:
        near |= designs[:, :, None] < 0
    row, feature, place = np.nonzero(there[:, None, :] & near)
    if removal:
        leaving = np.nonzero((designs >= 0) & ((designs >= 0).sum(axis=1, keepdims=True) > 1))
        row, feature = np.append(row, leaving[0]), np.append(feature, leaving[1])
        place = np.append(place, np.full(leaving[0].size, -1))
    children = own[row]
    children[np.arange(row.size), feature] = place
    return compress(children)


def near_swaps(designs: IntArray, max_stages: int, *, removal: bool = False) -> IntArray:
    """Return the designs with two features of stages side by side exchanged; one left out is beside every stage."""
    return _swapped(designs, lambda distance, without: without | (distance == 1))


def far_swaps(designs: IntArray, max_stages: int, *, removal: bool = False) -> IntArray:
    """Return the designs with two features of stages not side by side exchanged."""
    return _swapped(designs, lambda distance, without: ~without & (distance > 1))


def _swapped(designs: IntArray, wanted: Callable[[IntArray, BoolArray], BoolArray]) -> IntArray:
    """Exchange pairs of features by the distance of their stages, and by whether just one of them is left out."""
    first, second = np.triu_indices(designs.shape[1], 1)
    a, b = designs[:, first], designs[:, second]
    row, pair = np.nonzero(wanted(np.abs(a - b), (a < 0) != (b < 0)))
    children = designs[row]
    children[np.arange(row.size), first[pair]] = b[row, pair]
    children[np.arange(row.size), second[pair]] = a[row, pair]
    return children
