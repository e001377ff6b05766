from dataclasses import replace
from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import Prices
from emsco.baselines.budget_prune import PRICE_WEIGHTS, BudgetPrune, Forest, Program, to_float32
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import resolve
from tests.baselines.contract import check_contract, costs_of, data
from tests.strategies import problem

QUICK = BudgetPrune(price_weights=(0, 0.1, 1), n_trees=(5,), max_depths=(4,), random_state=0)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def grown(p, n_trees, max_depth):
    """Return the same forest by scikit-learn alone."""
    return RandomForestClassifier(n_trees, max_depth=max_depth, random_state=0).fit(p.train.T, p.y_train)


def forest_and_program(p, n_trees=3, max_depth=3, max_rows=1000):
    forest = Forest(p, n_trees=n_trees, max_depth=max_depth, seed=0)
    return forest, Program(forest, p, max_rows=max_rows, seed=0)


def with_panel_and_group(seed, n_classes=2):
    """Five columns: two of one unit, two units that share a cost, and a free one."""
    p = problem(seed, n_features=5, n_train=50, n_classes=n_classes)
    prices = Prices(
        units={"panel": ["x0", "x3"]}, price={"panel": 3, "x1": 4, "x2": 5, "x4": 0},
        groups={"visit": ["x1", "x2"]}, discount={"x1": 2, "x2": 3},
    )  # fmt: skip
    prices = resolve(prices, [f"x{i}" for i in range(5)])
    columns = np.zeros((4, 5), dtype=np.bool_)
    for unit, yields in enumerate(prices.unit_columns):
        columns[unit, list(yields)] = True
    return replace(p, prices=prices, unit_columns=columns)


def path(tree, row, goes_on):
    """Return the nodes that a row visits in a tree that stops where it does not go on."""
    nodes = [0]
    while goes_on[nodes[-1]]:
        here = nodes[-1]
        left = np.float32(row[tree.feature[here]]) <= tree.threshold[here]
        nodes.append(tree.children_left[here] if left else tree.children_right[here])
    return nodes


def objective(p, forest, stops, price_weight):
    """Return mean error out of bag of single trees, and the weighted mean bill, counted row by row."""
    errors = []
    bought = np.zeros((p.y_train.size, p.prices.n_units), dtype=np.bool_)
    for estimator, in_bag, goes_on in zip(forest.estimators_, forest.estimators_samples_, stops, strict=True):
        tree = estimator.tree_
        wrong = []
        for i, row in enumerate(p.train.T):
            nodes = path(tree, row, goes_on)
            for node in nodes[:-1]:
                bought[i] |= p.unit_columns[:, tree.feature[node]]
            if i not in in_bag:
                wrong.append(tree.value[nodes[-1], 0].argmax() != p.y_train[i])
        errors.append(np.mean(wrong))
    bills = [p.prices.price_of(units) for units in bought]
    return np.mean(errors) + price_weight * np.mean(bills) / p.prices.total


def prunings(tree, node=0):
    """Return every set of inner nodes at which a tree may go on, below a node."""
    if tree.feature[node] < 0:
        return [frozenset()]
    below = product(prunings(tree, tree.children_left[node]), prunings(tree, tree.children_right[node]))
    return [frozenset(), *(left | right | {node} for left, right in below)]


def masks(tree):
    return [np.isin(np.arange(tree.node_count), list(inner)) for inner in prunings(tree)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("price_weight", [0.0, 0.05, 0.2, 0.6])
def test_no_other_pruning_of_a_small_forest_is_better(seed, price_weight):
    p = with_panel_and_group(seed, n_classes=2 + seed % 2)
    theirs = grown(p, 2, 2)
    forest, program = forest_and_program(p, 2, 2)
    goes_on = program.solve(price_weight) > 0.5
    found = objective(p, theirs, np.split(goes_on, forest.trees.roots[1:]), price_weight)
    every = [objective(p, theirs, stops, price_weight) for stops in product(*(masks(t.tree_) for t in theirs))]
    assert len(every) > 4
    assert_allclose(found, min(every), atol=1e-9)


@pytest.mark.parametrize("price_weight", PRICE_WEIGHTS)
def test_the_optimum_is_integral_and_closed(price_weight):
    p = problem(5, n_features=8, n_train=200, n_classes=3)
    forest, program = forest_and_program(p, 10, 6)
    goes_on = program.solve(price_weight)
    assert_allclose(goes_on, np.rint(goes_on), atol=1e-7)
    inner = forest.parent >= 0
    assert (goes_on[inner] <= goes_on[forest.parent[inner]] + 1e-7).all()


def test_unpruned_it_is_scikit_learns_forest():
    p = problem(2, n_features=5, n_train=120, n_classes=3)
    forest, _ = forest_and_program(p, 7, 5)
    probabilities, _ = forest.trees.walk(to_float32(p.validation))
    assert_allclose(probabilities, grown(p, 7, 5).predict_proba(p.validation.T), atol=1e-12)


def test_values_are_compared_as_single_precision():
    p = problem(2, n_features=2, n_train=80)
    forest, _ = forest_and_program(p, 4, 4)
    inner = forest.trees.feature >= 0
    just_above = np.nextafter(forest.trees.threshold[inner], np.inf)  # rounds back to the threshold, or near it
    Z = np.tile(just_above, (2, 1))
    probabilities, _ = forest.trees.walk(to_float32(Z))
    assert_allclose(probabilities, grown(p, 4, 4).predict_proba(Z.T), atol=1e-12)
    assert_array_equal(np.abs(to_float32(np.array([[1e100, -1e100]]))), np.finfo(np.float32).max)


def test_errors_are_counted_out_of_bag():
    p = problem(3, n_features=4, n_train=90)
    forest, _ = forest_and_program(p, 5, 4)
    theirs = grown(p, 5, 4)
    whole = [tree.tree_.feature >= 0 for tree in theirs.estimators_]
    leaves = forest.trees.feature < 0
    assert_allclose(forest.error[leaves].sum(), objective(p, theirs, whole, 0))


def test_for_nothing_single_trees_err_at_most_as_often_as_unpruned():
    for seed in range(3):
        p = problem(seed, n_features=6, n_train=150)
        forest, program = forest_and_program(p, 6, 8)
        goes_on = program.solve(0) > 0.5
        above = (forest.parent < 0) | goes_on[forest.parent]
        stops = ~goes_on & above
        assert forest.error[stops].sum() <= forest.error[forest.trees.feature < 0].sum() + 1e-12


def test_a_huge_weight_stops_at_every_root():
    X, y = data(n_classes=3)
    fitted = clone(QUICK).set_params(price_weights=(1e3,)).fit(X, y, costs_of())
    assert_array_equal(fitted.decide(X).cost, 0)
    probabilities = fitted.predict_proba(X)
    assert_array_equal(probabilities, np.tile(probabilities[:1], (len(X), 1)))
    assert_allclose(probabilities[0], np.bincount(y) / y.size, atol=0.1)  # of bootstrapped rows


def test_dearer_weights_buy_less_in_the_sample():
    p = problem(7, n_features=8, n_train=200, n_validation=200)
    forest, program = forest_and_program(p, 10, 6)
    share = p.prices.prices / p.prices.total
    costs = [(forest.trees.stopped(program.solve(w) < 0.5).walk(to_float32(p.train))[1] @ share).mean()
             for w in PRICE_WEIGHTS]  # fmt: skip
    assert (np.diff(costs[1:]) <= 1e-9).all()  # exact: an optimum of a larger weight has a smaller bill
    assert costs[1] > 0.5
    assert costs[-1] < 0.05


def test_free_columns_are_used_whatever_the_weight():
    X, y = data()
    fitted = clone(QUICK).set_params(price_weights=(1e3,)).fit(X, y, [0, 1, 0, 1, 1, 1])
    bought = fitted.decide(X).bought
    assert bought[:, [0, 2]].any()
    assert not bought[:, [1, 3, 4, 5]].any()


def test_the_bill_of_many_rows_is_estimated_on_some():
    p = problem(1, n_features=5, n_train=300)
    _, everyone = forest_and_program(p, 4, 4)
    forest, some = forest_and_program(p, 4, 4, max_rows=100)
    assert some._bills.size < everyone._bills.size
    goes_on = some.solve(0.1) > 0.5
    share = p.prices.prices / p.prices.total
    bills = [(forest.trees.stopped(~on).walk(to_float32(p.train))[1] @ share).mean()
             for on in (goes_on, everyone.solve(0.1) > 0.5)]  # fmt: skip
    assert_allclose(*bills, atol=0.1)


@pytest.mark.parametrize(
    "wrong", [{"price_weights": (-1,)}, {"n_trees": (0,)}, {"max_depths": 6}, {"max_rows": 0}, {"n_trees": (1.5,)}]
)
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        BudgetPrune(**wrong).fit(*data(n_rows=60))


def test_where_everything_is_free_only_errors_count():
    X, y = data(n_rows=120)
    fitted = clone(QUICK).fit(X, y, np.zeros(6))
    assert (fitted.decide(X).cost == 0).all()
    assert fitted.decide(X).bought.any()
    assert len({row["accuracy"] for row in fitted.table_}) == 1
