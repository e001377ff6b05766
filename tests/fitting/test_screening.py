import numpy as np
import pytest

from emsco.fitting.screening import Grower, Screen
from tests.strategies import problem


def twofold(n=400, seed=0):
    """Column 0 says whether 1 or 2 tells the class; as a problem whose rows train."""
    p = problem(seed, n_features=4, n_train=n, n_validation=10, costs=[1, 1, 1, 1])
    rng = np.random.default_rng(seed)
    y, kind = p.y_train, rng.integers(2, size=n)
    X = rng.normal(size=(4, n))
    X[0] = kind
    X[1] += np.where(kind == 0, 3 * y, 0)
    X[2] += np.where(kind == 1, 3 * y, 0)
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    object.__setattr__(p, "train", X)
    return p, kind


def test_a_root_is_worth_what_its_branches_gain():
    p, kind = twofold()
    screen = Screen(p)
    root = np.arange(4) == 0
    assert screen.gain(kind, 2, root) > 0.3
    by_luck = [screen.gain(np.random.default_rng(100 + i).integers(2, size=kind.size), 2, root) for i in range(20)]
    assert max(by_luck) < 0.1
    assert screen.gain(kind, 2, np.ones(4, dtype=bool)) == -np.inf


def test_units_of_a_branch_are_ordered_by_what_they_tell_there():
    p, kind = twofold()
    folds = np.arange(kind.size) % 5
    grower = Grower(p, folds)
    root = np.arange(4) == 0
    for own in (True, False):
        for branch, first in ((0, 1), (1, 2)):
            orders = grower.grow(np.flatnonzero(kind == branch), root, own=own, most=3, views=[-1, 0, 4])
            assert [[order[0] for order in kinds] for kinds in orders] == [[first]] * 3
            assert all(sorted(order) == [1, 2, 3] for kinds in orders for order in kinds)


def test_a_view_does_not_see_the_rows_of_its_fold():
    p, kind = twofold()
    folds = np.arange(kind.size) % 5
    rows, root = np.flatnonzero(kind == 0), np.arange(4) == 0
    grower = Grower(p, folds)
    seen = grower._ask(rows, own=True)
    # regressions of each fold are trained without it: by hand
    for f in range(5):
        train = rows[folds[rows] != f]
        X = np.vstack([p.train[:, train], np.ones(train.size)])
        products = X @ X.T
        products[np.diag_indices(4)] += 1.0
        columns = np.array([0, 1, 4])
        sums = X @ np.eye(2)[p.y_train[train]]
        weights = np.linalg.solve(products[np.ix_(columns, columns)], sums[columns])
        judged = rows[folds[rows] == f]
        share = np.maximum(np.vstack([p.train[:, judged], np.ones(judged.size)])[columns].T @ weights, 1e-3)
        told = np.log(share[np.arange(judged.size), p.y_train[judged]] / share.sum(axis=1)).sum()
        assert seen(np.array([[True, True, False, False]]))[0, f] == pytest.approx(told)
    assert root.any()
