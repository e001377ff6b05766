import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.linear_model import LogisticRegression

from emsco import Prices
from emsco.baselines.price_stages import held_out, make_folds, price_order, train_by_price
from emsco.prices.prices import resolve
from tests.strategies import problem


def test_prices_that_differ_by_rounding_are_one():
    assert_array_equal(price_order(resolve([0.1 + 0.2, 0.3, 0.5], "abc")), [0, 0, 1])


def test_a_unit_of_a_group_counts_with_its_price_alone():
    prices = Prices(price={"a": 7, "b": 5, "c": 6}, groups={"blood": ["a", "b"]}, discount={"a": 3, "b": 1})
    assert_array_equal(price_order(resolve(prices, "abc")), [2, 0, 1])


@pytest.mark.parametrize("max_stages", [1, 2, 3, 5])
def test_merged_stages_keep_the_order_of_prices(max_stages):
    prices = np.random.default_rng(max_stages).integers(1, 11, 30).astype(float)
    design = price_order(resolve(prices, [f"x{i}" for i in range(30)]), max_stages)
    assert_array_equal(np.unique(design), np.arange(max_stages))
    for cheap, dear in zip(range(max_stages), range(1, max_stages), strict=False):
        assert prices[design == cheap].max() < prices[design == dear].min()


def test_folds_hold_each_class_in_proportion_and_never_all_of_it():
    y = np.repeat([0, 1, 2, 3], [60, 7, 2, 1])
    folds = make_folds(y, 5, np.random.default_rng(0))
    assert_array_equal(np.bincount(folds[y == 0]), 12)
    assert set(np.bincount(folds[y == 1], minlength=5)) == {1, 2}
    assert len(set(folds[y == 2])) == 2
    assert folds[-1] == -1


def test_held_out_answers_come_from_the_rows_of_other_folds():
    case = problem(0, n_classes=3, costs=[1, 1, 2, 3])
    stages = train_by_price(case, C=1.0)
    folds = make_folds(case.y_train, 4, np.random.default_rng(0))
    folds[0] = -1
    answers = held_out(case, stages, folds, C=1.0)
    X = case.train[stages.columns[1]].T
    held = folds == 2
    model = LogisticRegression(tol=1e-10, max_iter=10_000).fit(X[~held], case.y_train[~held])
    assert_allclose(answers[1, held], model.predict_proba(X[held]), atol=1e-6)
    assert_array_equal(answers[1, :1], stages.models[1].predict_proba(X[:1]))
    assert_allclose(stages.shares, [2 / 7, 4 / 7, 1.0])
