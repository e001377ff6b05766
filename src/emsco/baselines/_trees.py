"""Rows through decision trees, with what each has read. Arrays in, arrays out, no checks."""

from typing import Any

from emsco._compile import kernel

Array = Any


@kernel()
def walk(
    rows: Array, feature: Array, threshold: Array, left: Array, right: Array, value: Array, roots: Array, total: Array,
    read: Array,
) -> None:  # fmt: skip
    """Add the values of the leaves that each row falls into to its ``total``, and mark the columns it has ``read``.

    A node whose ``feature`` is negative is a leaf; a row goes left where its column is at most the threshold.
    """
    n_outputs = value.shape[1]
    for i in range(len(rows)):
        for t in range(roots.size):
            node = roots[t]
            column = feature[node]
            while column >= 0:
                read[i, column] = True
                node = left[node] if rows[i, column] <= threshold[node] else right[node]
                column = feature[node]
            for k in range(n_outputs):
                total[i, k] += value[node, k]
