"""The designs that share one objective vector: counted exactly, the simplest at hand, all of them on request."""

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from emsco.arrays import IntArray
from emsco.designs.partition import count_solutions

# The set of each state, and the states that become it there; state 0 is the beginning.
StateGraph = dict[int, tuple[int, list[int]]]


class Hit(NamedTuple):
    """Designs that go through a state, then buy a set, then all the rest.

    Where nobody waits after the set, the rest may be bought in up to ``room`` stages, in any way; else ``room`` is 1.
    It is 0 where the set leaves no rest. With removal the rest, or some of it, may also be left out, and where somebody
    waits, it is: ``room`` is 0.
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
    removal : bool
        Whether designs may leave units out.
    """

    def __init__(self, graph: StateGraph, hits: list[Hit], n_units: int, *, removal: bool = False) -> None:
        self._graph = graph
        self._hits = hits
        self._n_units = n_units
        self._removal = removal

    @classmethod
    def of_chain(cls, chain: tuple[int, ...], n_units: int) -> "TiedDesigns":
        """Return a single design, as the chain of its sets."""
        graph: StateGraph = {i + 1: (owned, [i]) for i, owned in enumerate(chain[:-1])}
        return cls({0: (0, []), **graph}, [Hit(len(chain) - 1, chain[-1], 0)], n_units)

    @cached_property
    def _states(self) -> list[int]:
        """The states that lead to the vector, parents first: they have the smaller numbers."""
        found: set[int] = set()
        new = [hit.state for hit in self._hits]
        while new:
            if (state := new.pop()) not in found:
                found.add(state)
                new += self._graph[state][1]
        return sorted(found)

    @cached_property
    def n_designs(self) -> int:
        """How many they are: one vector can have millions."""
        n_paths: dict[int, int] = {}
        for state in self._states:
            parents = self._graph[state][1]
            n_paths[state] = sum(n_paths[parent] for parent in parents) if parents else 1
        return sum(n_paths[hit.state] * self._n_endings(hit) for hit in self._hits)

    def simplest(self) -> IntArray:
        """Return the design of fewest stages, of these fewest units and, of these, the smallest row."""
        shortest: dict[int, tuple[int, ...]] = {}
        for state in self._states:
            owned, parents = self._graph[state]
            chains = [(*shortest[parent], owned) for parent in parents]
            shortest[state] = min(chains, key=self._complexity) if chains else ()
        rest = () if self._removal else (2**self._n_units - 1,)
        ends = [(*shortest[hit.state], hit.last_set, *(rest if hit.room else ())) for hit in self._hits]
        return self._row(min(ends, key=self._complexity))

    def __iter__(self) -> Iterator[IntArray]:
        for hit in self._hits:
            for chain in self._chains(hit.state):
                for ending in _endings(2**self._n_units - 1, hit.last_set, hit.room, removal=self._removal):
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
        n_endings = count_solutions(rest.bit_count(), hit.room, removal=self._removal)
        return n_endings + 1 if self._removal or not hit.room else n_endings

    def _complexity(self, chain: tuple[int, ...]) -> tuple[int, int, list[int]]:
        return len(chain), chain[-1].bit_count(), self._row(chain).tolist()

    def _row(self, chain: tuple[int, ...]) -> IntArray:
        """Return the stage of each unit: the number of sets that do not own it; -1 if none does."""
        owned = (np.array(chain, dtype=np.int64)[:, None] >> np.arange(self._n_units)) & 1
        return np.where(owned[-1], (1 - owned).sum(axis=0), -1)


def _endings(full: int, owned: int, room: int, *, removal: bool) -> Iterator[tuple[int, ...]]:
    """Yield all chains from a set to everything, or with removal to any set, in up to so many stages."""
    if removal or owned == full:
        yield ()
    rest = full ^ owned
    bought = rest
    while room > 0 and bought:
        if removal or room > 1 or bought == rest:
            for ending in _endings(full, owned | bought, room - 1, removal=removal):
                yield (owned | bought, *ending)
        bought = (bought - 1) & rest
