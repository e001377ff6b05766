from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.budget_rf import EXPECTED, MINIMAX, BudgetRF, Impurity, best_split, grow
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

QUICK = BudgetRF(budgets=(0.3, 0.9), slacks=(0.0,), price_powers=(0.5,), max_trees=6, max_depth=6, random_state=0)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks(
    [BudgetRF(budgets=(1.0,), splits=(EXPECTED,), price_powers=(0.5,), max_trees=10, random_state=0)]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_pairs_by_hand():
    assert Impurity(MINIMAX).of(np.array([3.0, 2.0])) == 6
    assert Impurity(MINIMAX, 1).of(np.array([3.0, 2.0])) == 1  # 2 * 1 - 1
    assert Impurity(MINIMAX).of(np.array([3.0, 2.0, 4.0])) == 6 + 12 + 8
    assert Impurity(MINIMAX, 2).of(np.array([3.0, 2.0, 4.0])) == 0  # 1 * 2 - 4 < 0
    assert_allclose(Impurity(EXPECTED).of(np.array([2.0, 2.0, 4.0])), 1.5)


def by_hand(Z, y, prices, split, slack, n_classes):
    """Try every split of every column."""
    impurity = Impurity(split, slack)

    def of(rows):
        return float(impurity.of(np.bincount(y[rows], minlength=n_classes).astype(float)))

    everyone = np.ones(y.size, dtype=bool)
    best = None
    for column in range(len(Z)):
        purest = None
        for threshold in np.unique(Z[column])[:-1]:
            left = Z[column] <= threshold
            shares = left.mean(), 1 - left.mean()
            mixed = max(of(left), of(~left)) if split == MINIMAX else shares[0] * of(left) + shares[1] * of(~left)
            if purest is None or mixed < purest[0] - 1e-12:
                purest = mixed, left
        if purest is not None and of(everyone) - purest[0] > 1e-7:
            ratio = prices[column] / (of(everyone) - purest[0])
            if best is None or ratio < best[0] - 1e-12:
                best = ratio, column, purest[1]
    return best


@pytest.mark.parametrize(("seed", "split"), list(product(range(30), [MINIMAX, EXPECTED])))
def test_the_split_equals_brute_force_with_ties(seed, split):
    rng = np.random.default_rng(seed)
    n_classes, slack = 2 + seed % 2, float(seed % 3)
    Z, y = rng.integers(0, 4, size=(4, 15)).astype(float), rng.integers(0, n_classes, size=15)
    prices = rng.integers(1, 5, size=4).astype(float)
    is_class = (y[:, None] == np.arange(n_classes)).astype(float)
    found, expected = best_split(Z, is_class, prices, Impurity(split, slack)), by_hand(Z, y, prices, split, slack,
                                                                                      n_classes)  # fmt: skip
    if expected is None:
        assert found is None
    else:
        assert found[0] == expected[1]
        assert_array_equal(Z[found[0]] <= found[1], expected[2])


def test_without_prices_the_entropy_tree_is_scikit_learns():
    X, y = data(n_classes=3)
    is_class = (y[:, None] == np.arange(3)).astype(float)
    tree = grow(X.T.copy(), is_class, np.ones(6), Impurity(EXPECTED), 4)
    theirs = DecisionTreeClassifier(criterion="entropy", max_depth=4, random_state=0).fit(X, y)
    assert_allclose(tree.walk(X.T.copy())[0], theirs.predict_proba(X), atol=1e-9)


def test_the_cost_of_validation_rows_stays_within_the_budget():
    X, y = data(n_rows=300)
    for budget in (0.2, 0.5, 0.8):
        fitted = clone(QUICK).set_params(budgets=(budget,), max_trees=20).fit(X[:200], y[:200], costs_of(), X[200:],
                                                                           y[200:])  # fmt: skip
        assert fitted.decide(X[200:]).cost.mean() <= budget * sum(costs_of()) + 1e-9


def test_no_budget_buys_nothing_and_says_the_prior():
    X, y = data(n_classes=3)
    fitted = clone(QUICK).set_params(budgets=(0.0,)).fit(X, y, costs_of(), X, y)
    assert_array_equal(fitted.decide(X).cost, 0)
    assert_allclose(fitted.predict_proba(X)[0], np.bincount(y) / y.size)


@pytest.mark.parametrize(
    "wrong", [{"budgets": (-1,)}, {"splits": ("gini",)}, {"slacks": (-1,)}, {"max_trees": 0}, {"max_depth": 0.5}]
)
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        BudgetRF(**wrong).fit(*data(n_rows=60))
