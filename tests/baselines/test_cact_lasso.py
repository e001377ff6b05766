from dataclasses import replace

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from emsco.baselines.cact_lasso import PAPER_GRID, CaCTLasso, lasso_path
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data
from tests.stages.test_logistic import hard_problems, make_problem
from tests.strategies import problem

L1 = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}
GRID = [0, *np.geomspace(0.1, 100, 60)]


def violations(case, weights, penalty):
    """By how much each weight misses the optimality conditions, in plain NumPy."""
    Z = np.vstack([case.train, np.ones(case.y_train.size)])
    margins = weights @ Z
    if case.n_classes == 2:
        margins = np.vstack([np.zeros_like(margins), margins])
    exponentials = np.exp(margins - margins.max(axis=0))
    residuals = exponentials / exponentials.sum(axis=0) - (case.y_train == np.arange(case.n_classes)[:, None])
    slopes = residuals[-len(weights) :] @ Z.T
    penalties = np.full_like(slopes, penalty)
    penalties[:, -1] = 0
    inside = np.maximum(np.abs(slopes) - penalties, 0)
    return np.where(weights != 0, np.abs(slopes + penalties * np.sign(weights)), inside)


def largest_penalty(case):
    """Beyond it the empty model is the best."""
    classes = np.arange(1 if case.n_classes == 2 else 0, case.n_classes)
    targets = case.y_train == classes[:, None]
    return np.abs((targets - targets.mean(axis=1, keepdims=True)) @ case.train.T).max()


@pytest.mark.parametrize("convention", ["sum", "mean"])
def test_it_keeps_the_contract_of_rivals(convention):
    grid = GRID if convention == "sum" else np.divide(GRID, 100)
    check_contract(CaCTLasso(threshold=0.7, penalties=grid, convention=convention, random_state=0))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([CaCTLasso(penalties=[0, 0.5, 2, 8, 32])])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_every_point_of_the_paths_is_optimal(seed, n_classes):
    case = problem(seed, n_features=12, n_train=90, n_classes=n_classes)
    grid = np.geomspace(100, 0.1, 40)
    for penalty, weights in zip(grid, lasso_path(case, grid), strict=True):
        assert violations(case, weights, penalty).max() < 1e-6


@pytest.mark.parametrize(
    ("X", "y"), [pytest.param(X, y.astype(int), id=name) for name, X, y in hard_problems() if name != "badly scaled"]
)
def test_hard_problems_are_solved(X, y):
    deviations = X.std(axis=0)
    case = make_problem((X - X.mean(axis=0)) / np.where(deviations > 0, deviations, 1), y)
    for penalty, weights in zip(PAPER_GRID[:0:-25], lasso_path(case, PAPER_GRID[:0:-25]), strict=True):
        assert violations(case, weights, penalty).max() <= 1.1e-8 * y.size
    assert np.isfinite(lasso_path(case, np.zeros(1))).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_penalty_is_the_inverse_of_scikit_learns_strength(n_classes):
    case = problem(1, n_features=6, n_train=120, n_classes=n_classes)
    weights = lasso_path(case, np.array([0.1]))[0]
    model = LogisticRegression(C=10, solver="saga", tol=1e-9, max_iter=100_000, **L1)
    model.fit(case.train.T, case.y_train)
    assert_allclose(weights[:, :-1], model.coef_, atol=1e-4)
    assert_array_equal(weights[:, :-1] != 0, model.coef_ != 0)


def test_no_penalty_is_plain_maximum_likelihood():
    case = problem(1, n_features=6, n_train=400)
    weights = lasso_path(case, np.zeros(1))[0]
    assert violations(case, weights, 0.0).max() < 1e-4
    assert_array_equal(weights != 0, True)


def test_nothing_is_read_beyond_the_largest_penalty_and_something_just_below():
    case = problem(2, n_features=8, n_train=100)
    edge = largest_penalty(case)
    beyond, below = lasso_path(case, np.array([1.001, 0.999]) * edge)[:, 0, :-1]
    assert_array_equal(beyond, 0)
    assert np.count_nonzero(below) == 1


def test_fewer_weights_are_left_as_the_penalty_grows():
    case = problem(3, n_features=20, n_train=200)
    counts = np.count_nonzero(lasso_path(case, np.geomspace(100, 0.1, 60))[:, 0, :-1], axis=1)
    assert (np.diff(counts) >= -1).all()  # weights may leave a path for a while
    assert counts[0] < counts[-1] == 20


def test_a_point_does_not_depend_on_the_path_to_it():
    case = problem(4, n_features=15, n_train=100, n_classes=3)
    alone, last = lasso_path(case, np.array([2.0]))[0], lasso_path(case, np.geomspace(50, 2, 20))[-1]
    assert_allclose(alone, last, atol=1e-5)
    assert_array_equal(alone != 0, last != 0)


def test_the_chosen_penalty_is_the_best_of_the_table_and_costs_the_same_for_all():
    X, y = data(n_classes=3)
    fitted = CaCTLasso(threshold=0.6, random_state=0).fit(X, y, costs_of())
    scores = [row["score"] for row in fitted.table_]
    best = max(fitted.table_, key=lambda row: (row["score"], -row["mean_cost"], row["penalty"]))
    assert fitted.settings_["penalty"] == best["penalty"]
    assert len(set(scores)) > 1
    assert len(set(fitted.decide(X).cost)) == 1


def test_the_mean_convention_multiplies_the_penalty_by_the_rows():
    X, y = data()
    arguments = (X[:160], y[:160], costs_of(), X[160:], y[160:])
    by_sum = CaCTLasso(penalties=[8.0]).fit(*arguments)
    by_mean = CaCTLasso(penalties=[8.0 / 160], convention="mean").fit(*arguments)
    assert_allclose(by_mean.predict_proba(X), by_sum.predict_proba(X), atol=1e-9)


def test_the_empty_model_is_chosen_only_if_allowed_or_alone():
    X, y = data()
    keep = (y == 0) | (np.arange(y.size) % 4 == 0)  # a frequent class, which the empty model names
    X, y = X[keep], y[keep]
    share = max(np.bincount(y)) / y.size
    settings = {"threshold": share - 0.05, "penalties": [0.1, 1000], "random_state": 0}
    assert CaCTLasso(**settings).fit(X, y, costs_of()).settings_ == {"penalty": 0.1}
    for fitted in (
        CaCTLasso(**settings, allow_empty=True).fit(X, y, costs_of()),
        CaCTLasso(**{**settings, "penalties": [500, 1000]}).fit(X, y, costs_of()),
    ):
        decisions = fitted.decide(X)
        assert fitted.settings_ == {"penalty": 1000}
        assert_array_equal(decisions.cost, 0)
        assert_allclose(decisions.confidence, share, atol=0.02)


def test_a_column_of_a_unit_that_says_nothing_is_never_read():
    case = problem(5)
    silent = replace(case, train=np.vstack([case.train[:3], np.zeros((1, case.y_train.size))]))
    assert_array_equal(lasso_path(silent, np.array([1.0, 0.0]))[:, :, 3], 0)


def test_bad_settings_are_refused():
    X, y = data()
    with pytest.raises(InvalidParameterError, match="penalties must be numbers of at least 0"):
        CaCTLasso(penalties=[-1.0]).fit(X, y)
    with pytest.raises(InvalidParameterError, match="penalties"):
        CaCTLasso(penalties=[]).fit(X, y)
    with pytest.raises(InvalidParameterError, match="'sum' or 'mean'"):
        CaCTLasso(convention="median").fit(X, y)


def test_the_order_of_columns_does_not_matter():
    X, y = data(n_classes=3)
    order = np.array([4, 2, 5, 0, 3, 1])
    first = CaCTLasso(penalties=GRID, random_state=0).fit(X, y, costs_of()).decide(X)
    second = CaCTLasso(penalties=GRID, random_state=0).fit(X[:, order], y, np.array(costs_of())[order])
    assert_array_equal(second.decide(X[:, order]).bought, first.bought[:, order])
    assert_allclose(second.decide(X[:, order]).confidence, first.confidence, atol=1e-5)
