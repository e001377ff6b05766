from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import Prices
from emsco.baselines.base import cost_of
from emsco.baselines.optimal_tree import OptimalTree, between
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

pytest.importorskip("pystreed")
QUICK = OptimalTree(
    price_weights=(0.1, 1.0), max_depths=(2,), min_rows_in_leaf=(5,), smoothings=(1.0,), max_tests=30, random_state=0
)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def least_of_all_trees(X, y, prices, weight):
    """Return the least mean of errors and prices of all trees of two levels; every value is a threshold."""
    tests = [(j, t) for j in range(X.shape[1]) for t in between(X[:, j], 10)]

    def price(columns):
        bought = np.zeros((1, X.shape[1]), dtype=bool)
        bought[0, list(columns)] = True
        return weight * cost_of(bought, prices)[0] / prices.total

    def leaf(y, columns):
        return y.size - np.bincount(y).max(initial=0) + y.size * price(columns)

    def side(X, y, column):
        return min([leaf(y, {column})] + [
            leaf(y[X[:, j] <= t], {column, j}) + leaf(y[X[:, j] > t], {column, j}) for j, t in tests
            if 0 < (X[:, j] <= t).sum() < y.size
        ])  # fmt: skip

    whole = [leaf(y, set())]
    for j, t in tests:
        low = X[:, j] <= t
        whole.append(side(X[low], y[low], j) + side(X[~low], y[~low], j))
    return min(whole) / y.size


@pytest.mark.parametrize(("seed", "weight"), list(product(range(3), [0.0, 0.1, 0.5, 2.0])))
def test_no_tree_of_two_levels_has_fewer_errors_and_prices(seed, weight):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (60, 4)).astype(float)
    y = ((X[:, 0] > 1) ^ (X[:, 1] > 2) ^ (rng.random(60) < 0.2)).astype(int) + (X[:, 3] == 0)
    frame = pd.DataFrame(X, columns=list("abcd"))
    prices = Prices(price={"a": 3, "b": 4, "c": 1, "d": 2}, groups={"visit": ["a", "b"]}, discount={"a": 1, "b": 2})
    fitted = OptimalTree(
        threshold=0.0,
        price_weights=(weight,),
        max_depths=(2,),
        min_rows_in_leaf=(1,),
        smoothings=(0.0,),
        random_state=0,
    ).fit(frame, y, prices, frame, y)
    decisions = fitted.decide(frame)
    found = (decisions.label.data != y).mean() + weight * decisions.cost.mean() / fitted.prices_.total
    assert_allclose(found, least_of_all_trees(X, y, fitted.prices_, weight), atol=1e-9)


def test_a_leaf_answers_with_the_shares_of_its_training_rows():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0]])
    y = np.array([0, 0, 1, 1, 1])
    fitted = OptimalTree(
        price_weights=(0.0,), max_depths=(1,), min_rows_in_leaf=(1,), smoothings=(0.0,), random_state=0
    ).fit(X, y, [1.0], X, y)  # fmt: skip
    assert_allclose(fitted.predict_proba([[0.0], [1.0]]), [[2 / 3, 1 / 3], [0, 1]])
    fitted.set_params(smoothings=(1.0,)).fit(X, y, [1.0], X, y)
    assert_allclose(fitted.predict_proba([[0.0], [1.0]]), [[3 / 5, 2 / 5], [1 / 4, 3 / 4]])


def test_too_dear_tests_are_not_bought():
    X, y = data()
    fitted = clone(QUICK).set_params(price_weights=(1e6,)).fit(X, y, costs_of())
    assert not fitted.decide(X).bought.any()
    assert_array_equal(fitted.predict_proba(X)[0], fitted.predict_proba(X)[-1])


@pytest.mark.parametrize("wrong", [{"max_depths": (0,)}, {"price_weights": (-1.0,)}, {"smoothings": (-1,)}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        OptimalTree(**wrong).fit(*data(n_rows=60))
