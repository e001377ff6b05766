import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import expit, logsumexp
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from emsco import Prices
from emsco.baselines._soft_tree import descend, objective
from emsco.baselines.cstc import CSTC, Shape, Training, finish, initial, supports_of
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import resolve
from emsco.stages.problem import Problem
from tests.baselines.contract import check_contract, costs_of, data


def small(**settings):
    """One path of three price weights."""
    path = {"price_weights": [0.0, 0.3, 3.0], "levels": [2], "omegas": ["leaves"], "sparsities": [1e-3]}
    return CSTC(**{**path, "temperatures": [1.0], "C": [1.0], "random_state": 0, **settings})


def task(n_classes=2, n_rows=70, seed=0, *, costs=None, levels=3, every=False, sparsity=1e-2, temperature=0.7):
    """Six columns: two of them in one unit, which shares a cost with another."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(6, n_rows))
    y = rng.integers(n_classes, size=n_rows)
    if costs is None:
        costs = Prices(
            units={"panel": ["b", "c"]},
            price={"a": 3, "panel": 4, "d": 2, "e": 5, "f": 0},
            groups={"visit": ["panel", "d"]},
            discount={"panel": 3, "d": 1},
        )
    prices = resolve(costs, list("abcdef"))
    unit_columns = np.zeros((prices.n_units, 6), dtype=np.bool_)
    for unit, columns in enumerate(prices.unit_columns):
        unit_columns[unit, list(columns)] = True
    problem = Problem(Z, y, Z.copy(), y.copy(), n_classes, unit_columns, prices)
    return Training(problem, Shape(levels, n_classes, every), sparsity, temperature)


def slow_objective(training, vector, price_weight, smoothing):
    """The formula, input by input and path by path."""
    shape, problem, prices = training.shape, training.problem, training.problem.prices
    weights, offsets, biases = training.unpack(vector)

    def smooth(square):
        return np.sqrt(square + smoothing) - np.sqrt(smoothing)

    def path(k):
        return [k] if k == 0 else [*path((k - 1) // 2), k]

    def path_price(k):
        squares = sum(weights[v] ** 2 for v in range(shape.n_vectors) if shape.nodes[v] in path(k))
        own = sum(p * smooth(squares[c].sum()) for p, c in zip(prices.own_prices, problem.unit_columns, strict=True))
        shared = 0.0
        for price, members in zip(prices.shared_prices, prices.groups.T, strict=True):
            shared += price * smooth(squares[problem.unit_columns[members].any(axis=0)].sum())
        return (own + shared) / prices.total

    total = training.task.sparsity * sum(smooth(w**2) for w in weights.ravel())
    n_rows = problem.y_train.size
    for x, y in zip(problem.train.T, problem.y_train, strict=True):
        for k in range(shape.n_nodes):
            reach = 1.0
            for parent, child in zip(path(k), path(k)[1:], strict=False):
                up = expit((weights[parent] @ x + offsets[parent]) / training.temperature)
                reach *= up if child % 2 == 0 else 1 - up
            if k >= shape.first_judged:
                m = k - shape.first_judged
                scores = biases[m] + weights[shape.first_class + m * shape.n_logits :][: shape.n_logits] @ x
                scores = scores if shape.n_logits > 1 else np.array([0.0, scores[0]])
                total += reach * (logsumexp(scores) - scores[y]) / n_rows
            if k >= shape.n_inner:
                total += price_weight * reach * path_price(k) / n_rows
    return total


def gate(seed, n_rows=800, n_classes=2):
    """The sign of the first column says whether the second or the third decides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    X[:, 0] = np.sign(X[:, 0]) + 0.1 * rng.normal(size=n_rows)
    decisive = np.where(X[:, 0] > 0, X[:, 1], X[:, 2])
    return X, np.digitize(decisive, [0.0] if n_classes == 2 else [-0.6, 0.6])


def judge(rival, X, y):
    return (rival.predict(X) == y).mean(), rival.decide(X).cost.mean()


@pytest.mark.parametrize("settings", [{"threshold": 0.0, "levels": [3]}, {"omegas": ["all"], "prune": True}])
def test_it_keeps_the_contract_of_rivals(settings):
    check_contract(small(**settings))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([small(price_weights=[0.1])])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("every", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_value_is_the_formula_and_the_gradient_its_derivative(n_classes, every):
    training = task(n_classes, every=every, n_rows=300 if n_classes == 2 else 70)  # one block of rows, and two
    vector = np.random.default_rng(1).normal(size=training.size)
    gradient, unused = np.empty(training.size), np.empty(training.size)
    value = objective(vector, training.task, 0.6, 1e-3, gradient)
    assert_allclose(value, slow_objective(training, vector, 0.6, 1e-3), rtol=1e-12)
    numeric = approx_fprime(vector, lambda x: objective(x, training.task, 0.6, 1e-3, unused), 1e-7)
    assert_allclose(gradient, numeric, atol=3e-7)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_descent_never_rises_and_ends_as_low_as_scipys(n_classes):
    training = task(n_classes, levels=3)
    start = initial(training)
    found = start.copy()
    values = descend(found, training.task, 0.3, 1e-4, 300)
    assert len(values) > 10
    assert (np.diff(values) <= 0).all()
    gradient = np.empty_like(start)
    assert objective(found, training.task, 0.3, 1e-4, gradient) == values[-1]

    single = task(n_classes, levels=1)  # convex: there is one minimum
    found = initial(single)
    values = descend(found, single.task, 0.3, 1e-4, 500)

    def function(x):
        gradient = np.empty_like(x)
        return objective(x, single.task, 0.3, 1e-4, gradient), gradient

    expected = minimize(function, np.zeros(single.size), jac=True, method="L-BFGS-B", options={"ftol": 1e-12})
    assert_allclose(values[-1], expected.fun, atol=1e-7)


def test_a_descent_that_starts_at_the_minimum_stays():
    training = task(levels=1)
    vector = initial(training)
    descend(vector, training.task, 0.1, 1e-2, 1000)
    again = vector.copy()
    assert len(descend(again, training.task, 0.1, 1e-2, 1000)) <= 5
    assert_allclose(again, vector, atol=1e-3)


def test_one_level_is_a_weighted_lasso():
    X, y = data(n_rows=400)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    sparsity, price_weight = 1e-3, 0.1
    problem = Problem(
        np.ascontiguousarray(X.T),
        y,
        X.T.copy(),
        y.copy(),
        2,
        np.eye(6, dtype=bool),
        resolve(costs_of(), list("abcdef")),
    )
    training = Training(problem, Shape(1, 2, False), sparsity, 1.0)
    vector = initial(training)
    for smoothing in (1e-2, 1e-4, 1e-6):
        descend(vector, training.task, price_weight, smoothing, 1000)
    penalties = sparsity + price_weight * np.array(costs_of()) / sum(costs_of())
    lasso = {"l1_ratio": 1.0} if parse_version(sklearn.__version__) >= parse_version("1.8") else {"penalty": "l1"}
    model = LogisticRegression(
        C=1 / 400, solver="liblinear", intercept_scaling=1e4, tol=1e-9, max_iter=10_000, random_state=0, **lasso
    ).fit(X / penalties, y)
    expected = model.coef_[0] / penalties
    assert 0 < (expected == 0).sum() < 6
    assert_array_equal(supports_of(training, vector)[0], expected != 0)

    def value(coef, intercept):
        margin = np.where(y == 1, 1, -1) * (X @ coef + intercept)
        return np.logaddexp(0, -margin).mean() + penalties @ np.abs(coef)

    weights, _, biases = training.unpack(vector)
    assert_allclose(value(weights[0], biases[0, 0]), value(expected, model.intercept_[0]), rtol=2e-4)


@pytest.mark.parametrize("levels", [1, 2, 4])
def test_every_row_ends_in_some_exit(levels):
    training = task(levels=levels)
    weights, offsets, _ = training.unpack(np.random.default_rng(0).normal(size=training.size))
    reached = training.reached(weights, offsets)
    assert_allclose(reached[training.shape.n_inner :].sum(axis=0), 1)


def test_the_start_halves_the_rows_and_tells_siblings_apart():
    training = task(n_rows=201)
    weights, offsets, _ = training.unpack(initial(training))
    up = weights[:1] @ training.problem.train + offsets[0] > 0
    assert up.sum() == 100
    assert np.abs(weights[1] - weights[2]).max() > 0.01


@pytest.mark.parametrize("omega", ["leaves", "all"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_a_large_price_weight_nothing_is_bought(n_classes, omega):
    X, y = data(n_classes=n_classes)
    fitted = small(price_weights=[300.0], levels=[3], omegas=[omega]).fit(X, y, costs_of(), X, y)
    assert_array_equal(fitted.decide(X).cost, 0)
    assert_allclose(fitted.predict_proba(X), np.tile(np.bincount(y) / len(y), (len(y), 1)), atol=1e-6)


def test_a_path_of_price_weights_ends_when_nothing_is_bought():
    X, y = data()
    # At 1 a weight is a hundred times the least one kept; at 10 all are a tenth of it.
    fitted = small(price_weights=[1000.0, 0.0, 10.0, 1.0]).fit(X, y, costs_of())
    assert [row["price_weight"] for row in fitted.table_] == [10.0, 1.0, 0.0]
    free = small(price_weights=[0.0, 100.0]).fit(X, y, [0.0] * 6)
    assert len(free.table_) == 1


def test_free_columns_are_never_given_up():
    X, y = data()
    costs = costs_of()
    costs[int(np.abs(np.corrcoef(X.T, y)[-1, :-1]).argmax())] = 0
    fitted = small(price_weights=[100.0], levels=[1]).fit(X, y, costs)
    assert_array_equal(fitted.decide(X).bought, np.tile(np.array(costs) == 0, (len(X), 1)))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_cheap_gate_chooses_which_dear_column_to_buy(n_classes):
    X, y = gate(1, n_classes=n_classes)
    X_new, y_new = gate(101, n_classes=n_classes)
    for price_weight in (0.0, 0.03, 0.1) if n_classes == 2 else (0.03, 0.1):
        tree = small(threshold=0.0, price_weights=[price_weight]).fit(X, y, [1, 10, 10], X_new, y_new)
        accuracy, cost = judge(tree, X_new, y_new)
        assert accuracy > 0.98 - 0.02 * (n_classes == 3)
        assert_allclose(cost, 11)
        single = small(threshold=0.0, price_weights=[price_weight], levels=[1]).fit(X, y, [1, 10, 10], X_new, y_new)
        accuracy, cost = judge(single, X_new, y_new)
        assert accuracy < 0.8
        assert cost >= 20


def test_final_classifiers_are_logistic_regressions_on_all_that_is_paid_for():
    training = task(3, n_rows=200, sparsity=1e-3)
    vector = initial(training)
    descend(vector, training.task, 0.3, 1e-6, 300)
    supports = supports_of(training, vector)
    tree = finish(training, vector, supports, 2.0, prunable=True)
    weights, offsets, _ = training.unpack(vector)
    reached = training.reached(np.where(supports, weights, 0), offsets)
    problem = training.problem
    for k, found in tree.classifiers.items():
        path = {k, (k - 1) // 2, ((k - 1) // 2 - 1) // 2} - {-1}
        read = {j for i in path if i in tree.routers for j in tree.routers[i].columns}
        read |= set(np.flatnonzero(supports[training.shape.nodes == k].any(axis=0)))
        if read & {1, 2}:  # two columns of one unit
            read |= {1, 2}
        assert_array_equal(found.columns, sorted(read))
        expected = LogisticRegression(C=2.0, tol=1e-8, max_iter=1000)
        expected.fit(problem.train[found.columns].T, problem.y_train, reached[k] + 1e-9)
        assert_allclose(found.coef, expected.coef_, atol=2e-3)


def test_a_model_does_not_change_when_training_goes_on_from_it():
    X, y = data(n_rows=160)
    path = small(threshold=0.0, criterion=lambda figures: figures.mean_cost).fit(X, y, costs_of())
    alone = small(threshold=0.0, price_weights=[0.0]).fit(X, y, costs_of())
    assert path.settings_["price_weight"] == 0
    assert_array_equal(path.predict_proba(X), alone.predict_proba(X))
    assert_array_equal(path.trace(X).exit, alone.trace(X).exit)


def test_pruning_takes_a_node_that_brings_nothing_and_leaves_one_that_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = (X[:, 0] > 0).astype(int)
    plain = {"threshold": 0.0, "price_weights": [0.0], "levels": [3], "omegas": ["all"]}
    bare = small(**plain, prune=True, prune_tolerance=0.02).fit(X, y, [1, 10, 10])
    assert_array_equal(bare.trace(X).exit, 0)
    assert small(**plain).fit(X, y, [1, 10, 10]).trace(X).exit.min() >= 3
    X, y = gate(0)
    kept = small(threshold=0.0, price_weights=[0.1], prune=True).fit(X, y, [1, 10, 10])
    assert_array_equal(np.unique(kept.trace(X).exit), [1, 2])
    bare = small(threshold=0.0, price_weights=[0.1], prune=True, prune_tolerance=3.0).fit(X, y, [1, 10, 10])
    assert_array_equal(bare.trace(X).exit, 0)


def test_permuted_columns_are_bought_as_before():
    X, y = data(n_rows=300)
    order = np.array([3, 0, 5, 1, 4, 2])
    settings = {"price_weights": [0.3], "threshold": 0.0}
    first = small(**settings).fit(X, y, costs_of()).decide(X)
    second = small(**settings).fit(X[:, order], y, np.array(costs_of())[order]).decide(X[:, order])
    assert_array_equal(second.bought, first.bought[:, order])
    assert_allclose(second.confidence, first.confidence, atol=1e-3)


@pytest.mark.parametrize("omega", ["leaves", "all"])
def test_on_average_less_is_bought_where_prices_weigh_more(omega):
    paid = []
    for seed in range(5):
        X, y = data(seed)
        fitted = small(price_weights=[0.0, 0.1, 1.0, 10.0], levels=[3], omegas=[omega]).fit(X, y, costs_of())
        costs = {row["price_weight"]: row["mean_cost"] for row in fitted.table_}
        paid.append([costs.get(weight, 0.0) for weight in (0.0, 0.1, 1.0, 10.0)])
    means = np.mean(paid, axis=0)
    assert (np.diff(means) <= 0.05 * sum(costs_of())).all()
    assert means[-1] < 0.5 * means[0]


def test_every_setting_is_tried_once():
    X, y = data()
    grid = small(levels=[1, 2], omegas=["leaves", "all"], sparsities=[1e-3, 1e-2], temperatures=[0.5, 1.0], C=[1, 10])
    table = grid.set_params(price_weights=[0.0, 0.1]).fit(X, y, costs_of()).table_
    assert len(table) == (2 + 2 * 2 * 2) * 2 * 2
    names = ["price_weight", "levels", "omega", "sparsity", "temperature", "C"]
    assert len({tuple(row[name] for name in names) for row in table}) == len(table)
    assert [row["price_weight"] for row in table] == sorted((row["price_weight"] for row in table), reverse=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"price_weights": [-1.0]},
        {"price_weights": []},
        {"price_weights": 0.1},
        {"levels": [0]},
        {"levels": [2.0]},
        {"omegas": "leaves"},
        {"omegas": ["exits"]},
        {"sparsities": [np.nan]},
        {"temperatures": [0.0]},
        {"C": [0.0]},
        {"max_steps": 0},
        {"prune_tolerance": -0.1},
    ],
)
def test_settings_outside_their_range_are_refused(wrong):
    X, y = data()
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        small(**wrong).fit(X, y)
