"""Incumbents: the best vectors that an exact search knows so far."""

import numpy as np

from emsco.arrays import IntArray
from emsco.scoring.objectives import Objectives
from emsco.scoring.ranking import pareto_rank
from emsco.search.base import Arrays

NEVER = np.int64(2**62)


Chain = tuple[int, ...]


Vector = tuple[int, int, int]


class Incumbents:
    """The non-dominated vectors (q labels, e wrong ones, cost) known so far, each with a chain.

    Parameters
    ----------
    n_samples : int
    by_counts : bool
        Whether the second objective is the number of wrong labels instead of the share of right ones: designs that are
        best so may be parts of sums that are.

    Attributes
    ----------
    chains : dict
        A chain of each vector.
    limit : ndarray of shape (n_samples + 1, n_samples + 1)
        A design of q labels, e of them wrong, is strictly dominated if it costs more than ``limit[q, e]``.
    """

    def __init__(self, n_samples: int, *, by_counts: bool = False) -> None:
        self._n_samples, self._by_counts = n_samples, by_counts
        self.chains: dict[Vector, Chain] = {}
        self.limit = np.full((n_samples + 1, n_samples + 1), NEVER)

    @property
    def vectors(self) -> IntArray:
        """The vectors, (n_vectors, 3)."""
        return np.array(list(self.chains), dtype=np.int64)

    def add(self, found: dict[Vector, Chain]) -> None:
        """Take in what was found; forget what is dominated."""
        chains = sorted((found | self.chains).items())  # in one order, whichever thread found them
        q, e, cost = np.array([vector for vector, _ in chains]).T
        accuracy = -e.astype(np.float64)
        if not self._by_counts:
            accuracy = np.divide(q - e, q, out=np.zeros(q.size), where=q > 0)
        rank = pareto_rank(Objectives(q.astype(np.float64), accuracy, cost.astype(np.float64), 1.0))
        self.chains = dict(chains[i] for i in np.flatnonzero(rank == rank.max()))
        self._set_limit()

    def packed(self) -> Arrays:
        """Return vectors and chains as arrays."""
        chains = list(self.chains.values())
        return {
            "incumbents": self.vectors,
            "chain_sizes": np.array([len(chain) for chain in chains]),
            "chains": np.array([s for chain in chains for s in chain]),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take all of it from arrays."""
        chains = np.split(arrays["chains"], np.cumsum(arrays["chain_sizes"])[:-1])
        vectors = arrays["incumbents"].tolist()
        self.chains = {(q, e, c): tuple(chain.tolist()) for (q, e, c), chain in zip(vectors, chains, strict=True)}
        self._set_limit()

    def _set_limit(self) -> None:
        q, e, cost = (column[:, None] for column in self.vectors.T)
        n = self._n_samples + 1
        no_better = np.full((n, n + 1), NEVER)  # the least cost of what is at least as good as q labels, e wrong
        worse = no_better.copy()  # and of what, too, is better in coverage or accuracy
        labels = np.broadcast_to(np.arange(n), (len(q), n))
        wrong = -(-labels * e // np.maximum(q, 1))  # so many wrong ones make them no more accurate
        if self._by_counts:
            wrong = np.broadcast_to(e, labels.shape)
        covered = labels <= q
        equal = (labels == q) & (wrong == e)
        costs = np.broadcast_to(cost, labels.shape)[covered]
        np.minimum.at(no_better, (labels[covered], wrong[covered]), costs)
        np.minimum.at(worse, (labels[covered], (wrong + equal)[covered]), costs)
        np.minimum.accumulate(no_better, axis=1, out=no_better)
        np.minimum.accumulate(worse, axis=1, out=worse)
        self.limit = np.ascontiguousarray(np.minimum(no_better, worse - 1)[:, :-1])
