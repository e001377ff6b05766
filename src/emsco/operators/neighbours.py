"""The designs near a design: one feature moved by a step, or two exchanged."""

from collections.abc import Callable

import numpy as np

from emsco.partition import BoolArray, IntArray, compress, places, stage_counts


def steps(designs: IntArray, max_stages: int) -> IntArray:
    """Return the designs with one feature moved to a stage beside its own, or to a new stage there.

    These change the feature set of one stage by one feature, or add or take away one stage.

    Examples
    --------
    >>> steps(np.array([[0, 0, 1]]), 2).tolist()
    [[1, 0, 1], [0, 1, 1], [0, 0, 0]]
    """
    there = places(stage_counts(designs), max_stages)
    own = 2 * designs + 1
    distance = np.abs(np.arange(there.shape[1]) - own[:, :, None])
    row, feature, place = np.nonzero(there[:, None, :] & (distance > 0) & (distance <= 2))
    children = own[row]
    children[np.arange(row.size), feature] = place
    return compress(children)


def near_swaps(designs: IntArray, max_stages: int) -> IntArray:
    """Return the designs with two features of stages side by side exchanged."""
    return _swapped(designs, lambda distance: distance == 1)


def far_swaps(designs: IntArray, max_stages: int) -> IntArray:
    """Return the designs with two features of stages not side by side exchanged."""
    return _swapped(designs, lambda distance: distance > 1)


def _swapped(designs: IntArray, wanted: Callable[[IntArray], BoolArray]) -> IntArray:
    first, second = np.triu_indices(designs.shape[1], 1)
    row, pair = np.nonzero(wanted(np.abs(designs[:, first] - designs[:, second])))
    children = designs[row]
    children[np.arange(row.size), first[pair]] = designs[row, second[pair]]
    children[np.arange(row.size), second[pair]] = designs[row, first[pair]]
    return children
