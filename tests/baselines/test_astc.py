from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.astc import ASTC, PLAIN, RATIO, grow, select
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data
from tests.strategies import problem

QUICK = ASTC(budgets=(0.3, 0.8), levels=(2,), C=(1.0,), random_state=0)


@pytest.mark.parametrize("levels", [1, 3])
def test_it_keeps_the_contract_of_rivals(levels):
    check_contract(clone(QUICK).set_params(levels=(levels,)))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([ASTC(budgets=(1.0,), levels=(1,), random_state=0)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def r2(p, rows, targets, units):
    """R² of scikit-learn's regression of the targets on some units."""
    if not units:
        return 0.0
    columns = p.train[units][:, rows].T
    fitted = LinearRegression().fit(columns, targets)
    centred = targets - targets.mean(axis=0)
    return 1 - ((targets - fitted.predict(columns)) ** 2).sum() / (centred**2).sum()


@pytest.mark.parametrize(("seed", "by_ratio"), list(product(range(8), [True, False])))
def test_forward_selection_takes_the_largest_rise_of_r2_at_each_step(seed, by_ratio):
    p = problem(seed, n_features=5, n_train=60, n_classes=2 + seed % 2, costs=[3, 1, 2, 5, 4])
    rows = np.arange(60)
    targets = (p.y_train[:, None] == np.arange(p.n_classes)).astype(float)
    owned = np.zeros(5, dtype=bool)
    owned[seed % 5] = seed % 3 == 0
    found = select(p, rows, targets, owned, 9.0, by_ratio=by_ratio)
    chosen = np.flatnonzero(owned).tolist()
    prices = [3, 1, 2, 5, 4]
    while True:
        rises = {u: r2(p, rows, targets, [*chosen, u]) - r2(p, rows, targets, chosen) for u in range(5)
                 if u not in chosen and sum(prices[c] for c in [*chosen, u]) <= 9}  # fmt: skip
        rises = {u: rise for u, rise in rises.items() if rise > 1e-6}
        if not rises:
            break
        chosen.append(max(rises, key=lambda u: rises[u] / prices[u] if by_ratio else rises[u]))
    assert sorted(chosen) == np.flatnonzero(found).tolist()


@pytest.mark.parametrize("budget", [0.0, 0.2, 0.5, 1.0])
def test_no_path_costs_more_than_the_budget(budget):
    X, y = data(n_rows=300)
    fitted = clone(QUICK).set_params(budgets=(budget,), levels=(3,)).fit(X[:200], y[:200], costs_of())
    assert fitted.decide(X).cost.max() <= budget * sum(costs_of()) + 1e-9


def test_without_a_budget_it_says_the_prior():
    X, y = data(n_classes=3)
    fitted = clone(QUICK).set_params(budgets=(0.0,)).fit(X, y, costs_of(), X, y)
    assert_array_equal(fitted.decide(X).cost, 0)
    assert_allclose(fitted.predict_proba(X)[0], np.bincount(y) / y.size)


def test_a_node_sends_half_of_its_rows_to_each_child():
    p = problem(1, n_features=5, n_train=101, n_classes=3)
    nodes = grow(p, p.prices.total, 3, by_ratio=True)
    assert len(nodes) == 7
    for node in nodes:
        if node.children:
            sizes = [nodes[child].rows.size for child in node.children]
            assert abs(sizes[0] - sizes[1]) <= 1
            for child in node.children:
                assert (nodes[child].units >= node.units).all()


def test_copies_of_a_column_are_bought_once():
    X, y = data()
    doubled = np.column_stack([X[:, 0], X[:, 0] * 2, X[:, 1]])
    fitted = clone(QUICK).set_params(budgets=(1.0,), levels=(1,)).fit(doubled, y, [1, 1, 1])
    assert fitted.decide(doubled).bought[0, :2].sum() <= 1


@pytest.mark.parametrize("wrong", [{"budgets": (-1,)}, {"rules": ("best",)}, {"levels": (0,)}, {"C": (0,)}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        ASTC(**wrong).fit(*data(n_rows=60))


def test_both_rules_are_tried():
    X, y = data()
    assert {row["rule"] for row in clone(QUICK).fit(X, y, costs_of()).table_} == {RATIO, PLAIN}
