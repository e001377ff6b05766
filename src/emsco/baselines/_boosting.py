"""Boosting of depth-limited regression trees whose splits pay for the units they read (Greedy Miser).

Arrays in, arrays out, no checks. Samples lie along the last axis. A tree is a full binary tree of ``split_levels``
levels of splits: node i has the children 2 i + 1 and 2 i + 2, and its rule is ``Z[column] <= threshold`` goes left; a
column of -1 makes the node a leaf. A row of ``ascending`` is a column of Z in ascending order, the row of ``order``
says which samples these values are of: columns are sorted once for all trees.
"""

from typing import Any

import numpy as np

from emsco._compile import kernel
from emsco.stages._logistic import probabilities_of

Array = Any

LEAF = -1
_NO_SPLIT = -1.0  # a gain is at least 0
# Gains are squares of sums of residuals, which are right to better than 1e-10 of the residuals: the rest is rounding.
_ROUNDING = 1e-20
_LEAST_CURVATURE = 1e-8


@kernel()
def best_splits(
    order: Array,
    ascending: Array,
    residuals: Array,
    node: Array,
    n_nodes: int,
    min_samples_leaf: int,
    gains: Array,
    thresholds: Array,
) -> Array:
    """Find the best threshold of every column in every node; return the sums of squared residuals of the nodes.

    ``node`` says in which node each sample is, ``n_nodes`` for none; it and ``order`` are unsigned, which spares numba
    the check for negative indices and a third of the time. ``gains`` and ``thresholds``, (n_nodes,
    n_columns), are filled; of equal gains the lowest threshold is taken, and a gain of -1 means that there is none.
    """
    n_columns, n_samples = order.shape
    count = np.zeros(n_nodes + 1, np.int64)
    total = np.zeros(n_nodes + 1)
    squares = np.zeros(n_nodes + 1)
    for i in range(n_samples):
        k = node[i]
        count[k] += 1
        total[k] += residuals[i]
        squares[k] += residuals[i] * residuals[i]
    count[n_nodes] = 0  # samples in no node: never enough of them for a split
    n_left = np.empty(n_nodes + 1, np.int64)
    left = np.empty(n_nodes + 1)
    last = np.empty(n_nodes + 1)
    best = np.empty(n_nodes + 1)
    for c in range(n_columns):
        for k in range(n_nodes + 1):
            n_left[k] = 0
            left[k] = 0.0
            last[k] = -np.inf
            best[k] = _NO_SPLIT
        samples = order[c]
        values = ascending[c]
        for i in range(n_samples):
            sample = samples[i]
            k = node[sample]
            m = n_left[k]
            value = values[i]
            if value > last[k] and m >= min_samples_leaf and count[k] - m >= min_samples_leaf:
                # left^2 / m + right^2 / (count - m) - total^2 / count, without the cancellation
                difference = left[k] * count[k] - total[k] * m
                gain = difference * difference / (np.float64(count[k]) * m * (count[k] - m))
                if gain > best[k]:
                    best[k] = gain
                    middle = last[k] / 2.0 + value / 2.0
                    thresholds[k, c] = middle if last[k] <= middle < value else last[k]
            n_left[k] = m + 1
            left[k] += residuals[sample]
            last[k] = value
        for k in range(n_nodes):
            gains[k, c] = best[k]
    return squares


@kernel()
def _ask(owned: Array, own: Array, shared: Array, group_of: Array, asked: Array) -> None:
    """asked[u] = what buying unit u adds to the bill; ``group_of`` is -1 for units that share nothing."""
    is_open = np.zeros(shared.size, np.bool_)
    for u in range(owned.size):
        if owned[u] and group_of[u] >= 0:
            is_open[group_of[u]] = True
    for u in range(owned.size):
        asked[u] = 0.0 if owned[u] else own[u]
        if not owned[u] and group_of[u] >= 0 and not is_open[group_of[u]]:
            asked[u] += shared[group_of[u]]


@kernel()
def grow(
    Z: Array,
    order: Array,
    ascending: Array,
    residuals: Array,
    unit_of: Array,
    own: Array,
    shared: Array,
    group_of: Array,
    owned: Array,
    split_levels: int,
    min_samples_leaf: int,
    reference: bool,
    columns: Array,
    thresholds: Array,
    position: Array,
) -> None:
    """Grow a tree level by level, left to right; ``position`` becomes the leaf of each sample.

    A split's score is its gain minus the price of its unit; of equal scores the lowest column is taken. What a split
    buys is owned from the next node on, and a node whose best score is not positive is a leaf. As the ``reference``
    has it, it is owned from the next tree on, and a node is split wherever it can be.
    """
    n_columns, n_samples = Z.shape
    gains = np.empty((1 << (split_levels - 1), n_columns))
    cuts = np.empty_like(gains)
    node = np.empty(n_samples, np.uint16)
    asked = np.empty(owned.size)
    bought = owned.copy()
    _ask(owned, own, shared, group_of, asked)
    columns[:] = LEAF
    position[:] = 0
    for level in range(split_levels):
        n_nodes = np.int64(1) << level
        first = n_nodes - 1
        for i in range(n_samples):
            node[i] = position[i] - first if position[i] >= first else n_nodes
        squares = best_splits(order, ascending, residuals, node, n_nodes, min_samples_leaf, gains, cuts)
        is_split = False
        for k in range(n_nodes):
            best = -np.inf if reference else _ROUNDING * squares[k]
            for c in range(n_columns):
                score = gains[k, c] - asked[unit_of[c]]
                if gains[k, c] >= 0.0 and score > best:
                    best = score
                    columns[first + k] = c
                    thresholds[first + k] = cuts[k, c]
            if columns[first + k] == LEAF:
                continue
            is_split = True
            bought[unit_of[columns[first + k]]] = True
            if not reference:
                _ask(bought, own, shared, group_of, asked)
        if not is_split:
            break
        for i in range(n_samples):
            c = columns[first + node[i]] if node[i] < n_nodes else LEAF
            if c != LEAF:
                position[i] = 2 * position[i] + (1 if Z[c, i] <= thresholds[position[i]] else 2)
    owned[:] = bought


@kernel()
def boost(
    Z: Array,
    order: Array,
    ascending: Array,
    targets: Array,
    start: Array,
    unit_of: Array,
    own: Array,
    shared: Array,
    group_of: Array,
    learning_rate: float,
    split_levels: int,
    min_samples_leaf: int,
    largest_step: float,
    reference: bool,
    columns: Array,
    thresholds: Array,
    values: Array,
) -> None:
    """Fill the trees, (n_rounds, n_scores, ...), one per round and score; all of them share what is owned.

    The loss is the logistic one (one score) or that of the softmax, a leaf's value a Newton step; as the ``reference``
    has it, the loss is squared and a leaf's value the mean residual. Values are multiplied by the learning rate.
    """
    n_scores, n_samples = targets.shape
    owned = np.zeros(own.size, np.bool_)
    scores = np.empty((n_scores, n_samples))
    fitted = np.empty((n_scores, n_samples))
    residuals = np.empty(n_samples)
    position = np.empty(n_samples, np.int64)
    total = np.empty(values.shape[2])
    curvature = np.empty(values.shape[2])
    factor = 1.0 if n_scores == 1 or reference else (n_scores - 1) / n_scores
    for a in range(n_scores):
        scores[a, :] = start[a]
    for t in range(values.shape[0]):
        if reference:
            for a in range(n_scores):
                for i in range(n_samples):
                    fitted[a, i] = scores[a, i]
        else:
            probabilities_of(scores, n_samples, fitted, residuals)
        for a in range(n_scores):
            for i in range(n_samples):
                residuals[i] = targets[a, i] - fitted[a, i]
            grow(
                Z, order, ascending, residuals, unit_of, own, shared, group_of, owned, split_levels, min_samples_leaf,
                reference, columns[t, a], thresholds[t, a], position,
            )  # fmt: skip
            total[:] = 0.0
            curvature[:] = 0.0
            for i in range(n_samples):
                total[position[i]] += residuals[i]
                curvature[position[i]] += 1.0 if reference else fitted[a, i] * (1.0 - fitted[a, i])
            for k in range(total.size):
                step = factor * total[k] / max(curvature[k], _LEAST_CURVATURE)
                values[t, a, k] = learning_rate * min(max(step, -largest_step), largest_step)
            for i in range(n_samples):
                scores[a, i] += values[t, a, position[i]]


@kernel()
def probabilities(scores: Array, total: Array, fitted: Array) -> None:
    """Fill class probabilities of scores (n_scores, n_rows); with one score, those of the second class."""
    probabilities_of(scores, scores.shape[1], fitted, total)


@kernel()
def walk(Z: Array, columns: Array, thresholds: Array, values: Array, scores: Array, read: Array) -> None:
    """Add what the trees say to scores (n_scores, n_rows), and mark the columns read, (n_rows, n_columns)."""
    n_rounds, n_scores, n_splits = columns.shape
    for t in range(n_rounds):
        for a in range(n_scores):
            column = columns[t, a]
            threshold = thresholds[t, a]
            value = values[t, a]
            score = scores[a]
            for i in range(Z.shape[1]):
                k = 0
                while k < n_splits and column[k] != LEAF:
                    c = column[k]
                    read[i, c] = True
                    k = 2 * k + (1 if Z[c, i] <= threshold[k] else 2)
                score[i] += value[k]
