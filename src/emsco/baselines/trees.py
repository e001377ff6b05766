"""Many decision trees as arrays; shared by the methods with trees."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from emsco.baselines import _trees as kernel
from emsco.baselines.base import BoolArray, FloatArray


@dataclass(frozen=True)
class Trees:
    """Trees with consecutive nodes.

    Attributes
    ----------
    feature : ndarray of shape (n_nodes,)
        The encoded column that a node tests; negative at a leaf.
    threshold : ndarray of shape (n_nodes,)
        A row goes left if its column is at most this.
    left, right : ndarray of shape (n_nodes,)
        The next node.
    value : ndarray of shape (n_nodes, n_outputs)
        Value added to the outputs of a row that ends at the node.
    roots : ndarray of shape (n_trees,)
    """

    feature: NDArray[np.intp]
    threshold: FloatArray
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    value: FloatArray
    roots: NDArray[np.intp]

    def first(self, n_trees: int) -> "Trees":
        """Return only the first trees."""
        return replace(self, roots=self.roots[:n_trees])

    def stopped(self, at: BoolArray) -> "Trees":
        """Return the same trees, with leaves at the nodes of a mask, (n_nodes,)."""
        return replace(self, feature=np.where(at, -1, self.feature))

    def walk(self, Z: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Apply all trees to encoded cases, (n_encoded, n_rows).

        Returns
        -------
        total : ndarray of shape (n_rows, n_outputs)
            Sum of the values of the leaves.
        read : ndarray of shape (n_rows, n_encoded)
            Columns tested in any tree.
        """
        ((_, total, read),) = self.walks(Z, [self.roots.size])
        return total, read

    def walks(self, Z: FloatArray, sizes: Iterable[int]) -> Iterator[tuple[int, FloatArray, BoolArray]]:
        """Apply the first trees, and more and more of them; yield their number, and what ``walk`` returns for them."""
        total = np.zeros((Z.shape[1], self.value.shape[1]))
        read = np.zeros((Z.shape[1], len(Z)), dtype=np.bool_)
        rows = np.ascontiguousarray(Z.T)
        nodes = self.feature, self.threshold, self.left, self.right, self.value
        n_done = 0
        for n in sizes:
            kernel.walk(rows, *nodes, self.roots[n_done:n], total, read)
            n_done = n
            yield n, total.copy(), read.copy()
