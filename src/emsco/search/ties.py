"""The designs that share one objective vector: counted exactly, the simplest at hand, all of them on request."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from emsco.partition import IntArray, count_solutions

# The set of each state, and the states that become it there; state 0 is the beginning.
StateGraph = dict[int, tuple[int, list[int]]]


class Hit(NamedTuple):
    """Designs that go through a state, then buy a set, then all the rest.

    Where nobody waits after the set, the rest may be bought in up to ``room`` stages, in any way; else ``room`` is 1.
    It is 0 where the set leaves no rest.
    """

    state: int
    last_set: int
    room: int


class TiedDesigns:
    """All designs of one vector, as rows of stage numbers; found as they are iterated over.

    Parameters
    ----------
    graph : dict
        The set and the parents of every state that leads to the vector; shared by all vectors of a frontier.
    hits : list of Hit
    n_units : int
    """

    def __init__(self, graph: StateGraph, hits: list[Hit], n_units: int) -> None:
        self._graph = graph
        self._hits = hits
        self._n_units = n_units

    @classmethod
    def of_chain(cls, chain: tuple[int, ...], n_units: int) -> "TiedDesigns":
        """Return a single design, as a chain that ends in everything."""
        graph: StateGraph = {i + 1: (owned, [i]) for i, owned in enumerate(chain[:-1])}
        return cls({0: (0, []), **graph}, [Hit(len(chain) - 1, chain[-1], 0)], n_units)

    @cached_property
    def n_designs(self) -> int:
        """How many they are: one vector can have millions."""
        n_paths: dict[int, int] = {}
        for state in sorted(self._graph):  # parents have the smaller numbers
            parents = self._graph[state][1]
            n_paths[state] = sum(n_paths[parent] for parent in parents) if parents else 1
        return sum(n_paths[hit.state] * self._n_endings(hit) for hit in self._hits)

    def simplest(self) -> IntArray:
        """Return the design of fewest stages and, of these, the smallest row."""
        shortest: dict[int, tuple[int, ...]] = {}
        for state in sorted(self._graph):
            owned, parents = self._graph[state]
            chains = [(*shortest[parent], owned) for parent in parents]
            shortest[state] = min(chains, key=self._complexity) if chains else ()
        full = 2**self._n_units - 1
        ends = [
            (*shortest[hit.state], hit.last_set, full) if hit.room else (*shortest[hit.state], full)
            for hit in self._hits
        ]
        return self._row(min(ends, key=self._complexity))

    def __iter__(self) -> Iterator[IntArray]:
        for hit in self._hits:
            for chain in self._chains(hit.state):
                for ending in _endings(2**self._n_units - 1, hit.last_set, hit.room):
                    yield self._row((*chain, hit.last_set, *ending))

    def _chains(self, state: int) -> Iterator[tuple[int, ...]]:
        if state == 0:
            yield ()
        owned, parents = self._graph[state]
        for parent in parents:
            for chain in self._chains(parent):
                yield (*chain, owned)

    def _n_endings(self, hit: Hit) -> int:
        rest = (2**self._n_units - 1) ^ hit.last_set
        return count_solutions(rest.bit_count(), hit.room) if hit.room else 1

    def _complexity(self, chain: tuple[int, ...]) -> tuple[int, list[int]]:
        return len(chain), self._row(chain).tolist()

    def _row(self, chain: tuple[int, ...]) -> IntArray:
        """Return the stage of each unit: the number of sets that do not own it."""
        owned = (np.array(chain, dtype=np.int64)[:, None] >> np.arange(self._n_units)) & 1
        return np.asarray((1 - owned).sum(axis=0))


def _endings(full: int, owned: int, room: int) -> Iterator[tuple[int, ...]]:
    """Yield all chains from a set to everything in up to so many stages."""
    if owned == full:
        yield ()
        return
    yield (full,)
    rest = full ^ owned
    bought = (rest - 1) & rest
    while room > 1 and bought:
        for ending in _endings(full, owned | bought, room - 1):
            yield (owned | bought, *ending)
        bought = (bought - 1) & rest
