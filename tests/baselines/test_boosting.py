from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal

from emsco.baselines._boosting import best_splits, boost, grow, walk


def sorted_columns(Z):
    order = np.argsort(Z, axis=1, kind="stable")
    return order.astype(np.uint32), np.take_along_axis(Z, order, axis=1)


def every_split(values, residuals, min_samples_leaf):
    """Gain and threshold of each split of one column, in exact arithmetic, thresholds ascending."""

    def part(mask):
        return Fraction(int(residuals[mask].sum())) ** 2 / int(mask.sum())

    for low, high in zip(np.unique(values), np.unique(values)[1:], strict=False):
        left = values <= low
        if min(left.sum(), (~left).sum()) >= min_samples_leaf:
            yield float(part(left) + part(~left) - part(left | True)), (low + high) / 2


def slow_tree(Z, residuals, unit_of, own, shared, group_of, owned, split_levels, min_samples_leaf, reference):
    """The tree by its definition: node by node, every split of every column."""
    bought = set(np.flatnonzero(owned))
    rules, members = {}, {0: np.arange(residuals.size)}
    for node in range(2**split_levels - 1):
        if node not in members:
            continue
        rows, known = members[node], set(np.flatnonzero(owned)) if reference else set(bought)
        groups = {group_of[u] for u in known if group_of[u] >= 0}
        best = (-np.inf if reference else 0.0, None)
        for c, u in enumerate(unit_of):
            price = 0.0 if u in known else own[u]
            if u not in known and group_of[u] >= 0 and group_of[u] not in groups:
                price += shared[group_of[u]]
            for gain, threshold in every_split(Z[c, rows], residuals[rows], min_samples_leaf):
                if gain - price > best[0]:
                    best = gain - price, (c, threshold)
        if best[1] is None:
            continue
        c, threshold = rules[node] = best[1]
        bought.add(unit_of[c])
        members[2 * node + 1] = rows[Z[c, rows] <= threshold]
        members[2 * node + 2] = rows[Z[c, rows] > threshold]
    leaf = np.empty(residuals.size, dtype=int)
    for node in sorted(members):
        leaf[members[node]] = node
    return rules, leaf, bought


@given(st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_best_splits_are_those_of_brute_force(seed, min_samples_leaf):
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 5, size=(4, rng.integers(2, 30))).astype(float)
    residuals = rng.integers(-3, 4, size=Z.shape[1]).astype(float)
    node = rng.integers(0, 3, size=Z.shape[1])  # 2: in no node
    gains, thresholds = np.empty((2, 4)), np.empty((2, 4))
    best_splits(*sorted_columns(Z), residuals, node.astype(np.uint16), 2, min_samples_leaf, gains, thresholds)
    for k in range(2):
        for c in range(4):
            splits = list(every_split(Z[c, node == k], residuals[node == k], min_samples_leaf))
            if not splits:
                assert gains[k, c] == -1
                continue
            top = max(gain for gain, _ in splits)
            assert (gains[k, c], thresholds[k, c]) == (top, min(t for gain, t in splits if gain == top))


@given(st.integers(0, 2**32 - 1), st.booleans(), st.integers(1, 3), st.integers(1, 3))
def test_a_tree_is_that_of_its_definition(seed, reference, split_levels, min_samples_leaf):
    rng = np.random.default_rng(seed)
    Z = rng.integers(0, 4, size=(5, 24)).astype(float)
    residuals = rng.integers(-3, 4, size=24).astype(float)
    unit_of, group_of = np.array([0, 1, 1, 2, 3]), np.array([-1, 0, 0, -1])
    own, shared = rng.integers(0, 12, size=4) / 4, rng.integers(0, 8, size=1) / 4
    owned = rng.random(4) < 0.3
    arguments = unit_of, own, shared, group_of, owned
    rules, leaf, bought = slow_tree(Z, residuals, *arguments, split_levels, min_samples_leaf, reference)
    columns, thresholds = np.empty(2**split_levels - 1, dtype=np.int64), np.zeros(2**split_levels - 1)
    position = np.empty(24, dtype=np.int64)
    grow(
        Z, *sorted_columns(Z), residuals, *arguments, split_levels, min_samples_leaf, reference, columns, thresholds,
        position,
    )  # fmt: skip
    assert {k: (columns[k], thresholds[k]) for k in np.flatnonzero(columns >= 0)} == rules
    assert_array_equal(position, leaf)
    assert set(np.flatnonzero(owned)) == bought


def test_a_node_of_equal_residuals_is_not_split_on_rounding():
    Z = np.random.default_rng(0).normal(size=(3, 50))
    columns, thresholds = np.empty(7, dtype=np.int64), np.zeros(7)
    zeros = np.zeros(3)
    grow(
        Z, *sorted_columns(Z), np.full(50, 0.1), np.arange(3), zeros, np.zeros(0), np.full(3, -1), zeros > 0, 3, 1,
        False, columns, thresholds, np.empty(50, dtype=np.int64),
    )  # fmt: skip
    assert_array_equal(columns, -1)


def test_neighbouring_floats_are_kept_apart():
    Z = np.array([[1.0, np.nextafter(1.0, 2)] * 5])
    gains, thresholds = np.empty((1, 1)), np.empty((1, 1))
    residuals = np.array([1.0, -1.0] * 5)
    best_splits(*sorted_columns(Z), residuals, np.zeros(10, dtype=np.uint16), 1, 5, gains, thresholds)
    assert gains[0, 0] == 10
    assert_array_equal(Z[0] <= thresholds[0, 0], residuals > 0)


def test_walking_gives_the_scores_of_training_and_the_columns_of_the_path():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(3, 60))
    targets = (Z[:1] > 0).astype(float)
    columns, thresholds = np.empty((1, 1, 3), dtype=np.int64), np.zeros((1, 1, 3))
    values = np.zeros((1, 1, 7))
    boost(
        Z, *sorted_columns(Z), targets, np.zeros(1), np.arange(3), np.zeros(3), np.zeros(0), np.full(3, -1), 1.0, 2, 1,
        np.inf, False, columns, thresholds, values,
    )  # fmt: skip
    scores, read = np.zeros((1, 60)), np.zeros((60, 3), dtype=bool)
    walk(Z, columns, thresholds, values, scores, read)
    assert_array_equal(columns[0, 0], [0, -1, -1])
    assert_array_equal(scores[0], np.where(targets[0] > 0, 2.0, -2.0))  # 0.5 / 0.25: the Newton step from p = 1/2
    assert_array_equal(read, [[True, False, False]] * 60)
