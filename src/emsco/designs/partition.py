"""A design as a row of integers: ``row[i]`` is the stage, from 0, in which feature i is bought (§3.1), -1 if never.

A *population* is an integer array of shape (n_designs, n_features). A valid row has no gaps: every stage below the
highest one in use holds at least one feature. It buys at least one feature. The paper's designs buy all features; with
``removal``, a design may leave features out. Where errors have prices, there is also the *empty* design, whose entries
are all -1: it has one stage, which buys nothing.
"""

from collections.abc import Sequence
from math import ceil, comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from emsco.arrays import BoolArray, IntArray
from emsco.exceptions import (
    InvalidDesignError,
    InvalidParameterError,
)


def stage_counts(population: IntArray) -> IntArray:
    """Return the highest stage in use plus one, for each row; for a valid row this is its number of stages."""
    return np.asarray(population.max(axis=1) + 1)


def compress(population: IntArray) -> IntArray:
    """Close gaps in the stage numbers, keeping their order (§3.1).

    Examples
    --------
    >>> compress(np.array([[0, 0, 0, 2], [3, -1, 1, 1]]))
    array([[ 0,  0,  0,  1],
           [ 1, -1,  0,  0]])
    """
    n_stages = int(population.max(initial=0)) + 1
    in_use = np.zeros((len(population), n_stages + 1), dtype=np.int64)
    np.put_along_axis(in_use, population, 1, axis=1)  # -1 is the last column
    new_number = in_use.cumsum(axis=1) - 1
    new_number[:, -1] = -1
    return np.take_along_axis(new_number, population, axis=1)


def acquired_sets(population: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return the features known at each stage of each row, and which stages exist.

    Returns
    -------
    acquired : ndarray of shape (n_designs, n_stages, n_features)
        Features bought by the end of the stage.
    exists : ndarray of shape (n_designs, n_stages)
        Whether the row has that stage; beyond its last one, ``acquired`` holds all features that the row buys.
    """
    stages = np.arange(max(int(population.max()), 0) + 1)  # the empty design has one stage, which knows nothing
    # As an unsigned number, -1 is greater than every stage.
    acquired = population.view(np.uint64)[:, None, :] <= stages.view(np.uint64)[None, :, None]
    exists = stages < np.maximum(stage_counts(population), 1)[:, None]
    return acquired, exists


def count_partitions(n_features: int, n_stages: int, *, removal: bool = False) -> int:
    """Return the number of ordered partitions of n features into exactly j non-empty stages (Theorem 1).

    With ``removal``, features may be left out; they form one more part, which may be empty.
    """
    return sum((-1) ** (n_stages - i) * comb(n_stages, i) * (i + removal) ** n_features for i in range(n_stages + 1))


def count_solutions(n_features: int, max_stages: int, *, removal: bool = False) -> int:
    """Return |S(n, k)|, the number of designs of n features in at most k stages.

    Examples
    --------
    >>> count_solutions(12, 4), count_solutions(14, 4)
    (15199275, 254152083)
    >>> count_solutions(12, 4, removal=True)
    195926549
    """
    most = min(max_stages, n_features)
    return sum(count_partitions(n_features, j, removal=removal) for j in range(1, most + 1))


def has_at_most(n_designs: int, n_features: int, max_stages: int, *, removal: bool = False) -> bool:
    """Return whether there are so many designs at most; without counting all of very many.

    Examples
    --------
    >>> has_at_most(15_199_275, 12, 4), has_at_most(15_199_274, 12, 4), has_at_most(10**9, 10_000, 5_000)
    (True, False, False)
    """
    if min(max_stages, n_features) > 1 and n_features > n_designs.bit_length() + 1:  # 2^n - 1 with two stages alone
        return False
    return count_solutions(n_features, max_stages, removal=removal) <= n_designs


def places(n_stages: IntArray, max_stages: int) -> BoolArray:
    """Return where a feature may go, (n_designs, n_places): place 2 j + 1 is stage j, 2 j a new stage before it.

    For a design that buys nothing yet, place 0 is its first stage.
    """
    numbers = np.arange(2 * int(n_stages.max()) + 1)
    return np.asarray((numbers <= 2 * n_stages[:, None]) & ((numbers % 2 == 1) | (n_stages < max_stages)[:, None]))


def all_designs(n_features: int, max_stages: int, *, removal: bool = False) -> IntArray:
    """Return every design of n features in at most k stages.

    A design of n features is a design of the first n - 1 features and a place for the last one: one of the stages, a
    new stage in a gap, or, with ``removal``, none.

    Examples
    --------
    >>> all_designs(2, 2).tolist()
    [[1, 0], [0, 0], [0, 1]]
    >>> all_designs(2, 1, removal=True).tolist()
    [[0, 0], [-1, 0], [0, -1]]
    """
    designs = np.array([[0], [-1]] if removal else [[0]], dtype=np.int64)
    for _ in range(1, n_features):
        row, place = np.nonzero(places(stage_counts(designs), max_stages))
        if removal:
            row = np.append(row, np.arange(len(designs)))
            place = np.append(place, np.full(len(designs), -1))
        designs = compress(np.column_stack([2 * designs[row] + 1, place]))
    return designs[stage_counts(designs) > 0]


def check_design(design: ArrayLike | Sequence[Sequence[str]], unit_names: Sequence[str]) -> IntArray:
    """Return a design given as a row of stage numbers, or as lists of names per stage, as a checked row.

    A feature with the number -1, or without a name in the lists, is never bought.

    Examples
    --------
    >>> check_design([["sex", "age"], ["blood"]], ["age", "blood", "sex"])
    array([0, 1, 0])
    >>> check_design([["sex"], ["blood"]], ["age", "blood", "sex"])
    array([-1,  1,  0])
    """
    design = getattr(design, "design", design)  # a point of a front
    try:
        entries: list[Any] = list(design)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidDesignError(
            f"design is {design!r}; give one stage number (from 0) per feature, or a list of feature names per stage."
        ) from None
    if entries and all(isinstance(e, Sequence | set | frozenset | np.ndarray) for e in entries):
        return _row_from_names(entries, list(unit_names))
    try:
        row = np.asarray(entries)
    except ValueError:
        row = np.empty((0, 0))
    n_features = len(unit_names)
    if row.ndim != 1 or row.size != n_features:
        raise InvalidDesignError(
            f"design has shape {row.shape}, but there are {n_features} features to buy; "
            "give one stage number (from 0; -1: never) per feature, or a list of feature names per stage."
        )
    if row.dtype.kind not in "iu" and not (row.dtype.kind == "f" and np.equal(np.mod(row, 1), 0).all()):
        raise InvalidDesignError(f"design must hold whole stage numbers from 0; got {entries!r}.")
    row = row.astype(np.int64)
    used = np.unique(row[row != -1])
    if not used.size:
        raise InvalidDesignError("design buys nothing; give at least one feature a stage, from 0.")
    if not np.array_equal(used, np.arange(used.size)):
        raise InvalidDesignError(
            f"design uses the stages {used.tolist()}; number them 0, 1, 2, ... without gaps (-1: never bought)."
        )
    return row


def are_designs(population: IntArray) -> BoolArray:
    """Return which rows are designs: without gaps in their stages, and with something to buy.

    Examples
    --------
    >>> are_designs(np.array([[0, 1, -1], [0, 2, 0], [-1, -1, -1]])).tolist()
    [True, False, False]
    """
    return np.asarray((compress(population) == population).all(axis=1) & (population.max(axis=1) >= 0))


def _row_from_names(stages: list[Any], unit_names: list[str]) -> IntArray:
    row = np.full(len(unit_names), -1, dtype=np.int64)
    for number, names in enumerate(stages):
        if isinstance(names, str):
            raise InvalidDesignError(f"stage {number} of the design is the text {names!r}; put it in a list.")
        if len(names) == 0:
            raise InvalidDesignError(f"stage {number} of the design is empty; remove it.")
        for name in names:
            if name not in unit_names:
                raise InvalidDesignError(f"the design buys {name!r}, which is not a feature; known: {unit_names}.")
            if row[unit_names.index(name)] >= 0:
                raise InvalidDesignError(f"the design buys {name!r} twice; name every feature once.")
            row[unit_names.index(name)] = number
    return row


def distinct_sets(designs: IntArray) -> BoolArray:
    """Return the distinct feature sets that the designs need, and the set of all features for comparison."""
    acquired, exists = acquired_sets(designs)
    everything = np.ones((1, designs.shape[1]), dtype=np.bool_)
    return np.unique(np.concatenate([acquired[exists], everything]), axis=0)


def set_key(units: BoolArray) -> bytes:
    """Return a set of units as the key of its model."""
    return np.packbits(units).tobytes()


def keys_of(design: IntArray) -> list[bytes]:
    """Return the key of the model of each stage of a chain."""
    return [set_key(units) for units in acquired_sets(design[None])[0][0]]


_MOST_STAGES = 30  # with more stages, a table of hundreds of columns would take hours


def check_max_stages(max_stages: Any, n_units: int) -> int:
    """Return the largest number of stages; None: half the features, but at least 10 and at most 30."""
    if max_stages is None:
        return min(n_units, max(ceil(n_units / 2), 10), _MOST_STAGES)
    if isinstance(max_stages, bool) or not isinstance(max_stages, int | np.integer) or max_stages < 1:
        raise InvalidParameterError(
            f"must be a whole number of at least 1, or None; got {max_stages!r}.", parameter="max_stages"
        )
    return int(max_stages)
