import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from scipy.special import expit
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.greedy_miser import GreedyMiser
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

QUICK = {"price_weights": (1.0, 0.1, 0.01, 0.0), "rounds": (10, 20), "random_state": 0}


def fit_on(X, y, costs=None, **parameters):
    """Train on all rows; what is chosen, if anything, is chosen on them too."""
    return GreedyMiser(**{"threshold": 0.75, "rounds": 30, "random_state": 0, **parameters}).fit(X, y, costs, X, y)


def read_by(model, X):
    return model.trace(X).read


@pytest.mark.parametrize("variant", ["logistic", "reference"])
@pytest.mark.parametrize("cost_scope", ["path", "ensemble"])
def test_it_keeps_the_contract_of_rivals(variant, cost_scope):
    check_contract(GreedyMiser(variant=variant, cost_scope=cost_scope, **QUICK))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([GreedyMiser(**QUICK), GreedyMiser(variant="reference", **QUICK)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("split_levels", [1, 3])
def test_without_prices_it_is_scikit_learns_gradient_boosting(n_classes, split_levels):
    # Data without ties: where two splits are equally good, scikit-learn takes one of them by chance.
    X, y = data(seed=3, n_classes=n_classes, n_rows=600)
    X = X.astype(np.float32).astype(np.float64)  # scikit-learn's trees see single precision
    ours = fit_on(X, y, price_weights=0.0, rounds=50, split_levels=split_levels, min_samples_leaf=20)
    theirs = GradientBoostingClassifier(
        n_estimators=50, max_depth=split_levels, min_samples_leaf=20, random_state=0
    ).fit(X, y)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_without_a_bound_of_steps_small_leaves_agree_with_scikit_learn_too(n_classes):
    X, y = data(seed=3, n_classes=n_classes, n_rows=600)
    X = X.astype(np.float32).astype(np.float64)
    options = {"price_weights": 0.0, "learning_rates": 0.3, "split_levels": 2, "min_samples_leaf": 1}
    theirs = GradientBoostingClassifier(n_estimators=30, learning_rate=0.3, max_depth=2, random_state=0).fit(X, y)
    unbound = fit_on(X, y, largest_step=np.inf, **options)
    assert_allclose(unbound.predict_proba(X), theirs.predict_proba(X), atol=1e-12)
    assert abs(fit_on(X, y, **options).predict_proba(X) - theirs.predict_proba(X)).max() > 1e-3


def test_without_prices_the_reference_is_scikit_learns_least_squares_boosting():
    X, y = data(seed=3, n_rows=600)
    X = X.astype(np.float32).astype(np.float64)
    ours = fit_on(X, y, variant="reference", price_weights=0.0, rounds=40, learning_rates=0.1, min_samples_leaf=20)
    theirs = GradientBoostingRegressor(n_estimators=40, min_samples_leaf=20, random_state=0).fit(X, 2.0 * y - 1)
    scores, _ = ours._model.scores(ours._encode(X)[0])
    assert_allclose(scores[0], theirs.predict(X), atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_of_the_reference_are_platts(n_classes):
    X, y = data(n_classes=n_classes)
    fitted = GreedyMiser(variant="reference", price_weights=0.1, rounds=20).fit(
        X[:160], y[:160], None, X[160:], y[160:]
    )
    scores, _ = fitted._model.scores(fitted._encode(X[160:])[0])
    curves = expit(fitted._model.sigmoids[:, :1] * scores + fitted._model.sigmoids[:, 1:])
    for c, score, curve in zip([1] if n_classes == 2 else range(3), scores, curves, strict=True):
        n_true = (y[160:] == c).sum()
        error = curve - np.where(y[160:] == c, (n_true + 1) / (n_true + 2), 1 / (80 - n_true + 2))
        assert abs(error.sum()) < 1e-4  # where the loss is least, its slopes are 0
        assert abs(error @ score) < 1e-4
    expected = np.vstack([1 - curves, curves]) if n_classes == 2 else curves / curves.sum(axis=0)
    assert_allclose(fitted.predict_proba(X[160:]), expected.T, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_beyond_the_largest_useful_weight_nothing_is_bought(n_classes):
    X, y = data(n_classes=n_classes)
    frequencies = np.bincount(y) / y.size
    largest = max(frequencies * (1 - frequencies)) / (min(costs_of()) / sum(costs_of()))
    fitted = fit_on(X, y, costs_of(), price_weights=1.0001 * largest)
    assert not read_by(fitted, X).any()
    assert_array_equal(fitted.decide(X).cost, 0)
    assert_allclose(fitted.predict_proba(X), np.tile(frequencies, (y.size, 1)), atol=1e-12)


def test_a_model_that_reads_nothing_is_chosen_only_if_allowed():
    X, y = data()
    assert fit_on(X, y, costs_of(), threshold=0.4, price_weights=(100.0, 0.1)).settings_["price_weight"] == 0.1
    empty = fit_on(X, y, costs_of(), threshold=0.4, price_weights=(100.0, 0.1), allow_empty=True, criterion=cheapest)
    assert empty.settings_["price_weight"] == 100.0
    assert empty.ensemble_cost_ == 0


def cheapest(figures):
    return -figures.mean_cost


@pytest.mark.parametrize("variant", ["logistic", "reference"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("price_weight", [1e-3, 0.1])
def test_a_dearer_copy_of_a_column_is_never_read(variant, n_classes, price_weight):
    X, y = data(n_classes=n_classes)
    costs = np.array(costs_of())
    fitted = fit_on(np.hstack([X, X]), y, [*costs, *10 * costs], variant=variant, price_weights=price_weight)
    read = read_by(fitted, np.hstack([X, X]))
    assert read[:, :6].any()
    assert not read[:, 6:].any()


@pytest.mark.parametrize("variant", ["logistic", "reference"])
def test_costs_times_seven_change_nothing(variant):
    X, y = data()
    parameters = {"variant": variant, "price_weights": (0.3, 0.03), "rounds": (10, 30)}
    first = fit_on(X, y, costs_of(), **parameters)
    second = fit_on(X, y, [7 * cost for cost in costs_of()], **parameters)
    assert first.settings_ == second.settings_
    assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert_allclose(second.decide(X).cost, 7 * first.decide(X).cost)


@pytest.mark.parametrize("variant", ["logistic", "reference"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_paths_cost_at_most_the_ensemble_which_grows_with_the_rounds(variant, n_classes):
    X, y = data(n_classes=n_classes)
    cost, used = {}, np.zeros(6, dtype=bool)
    for n_rounds in (1, 2, 5, 20):
        for scope in ("path", "ensemble"):
            fitted = fit_on(
                X, y, costs_of(), variant=variant, price_weights=0.02, rounds=n_rounds, cost_scope=scope
            )  # fmt: skip
            cost[scope] = fitted.decide(X).cost
            assert (cost[scope] <= fitted.ensemble_cost_).all()
        assert (cost["path"] <= cost["ensemble"]).all()
        assert_array_equal(cost["ensemble"], fitted.ensemble_cost_)
        assert fitted.ensemble_cost_ <= sum(costs_of())
        assert (fitted._model.used >= used).all()
        used = fitted._model.used
    assert (cost["path"] > 0).all()


def test_an_ensemble_cut_short_is_the_one_trained_for_so_long():
    X, y = data(n_classes=3)
    long = fit_on(X, y, costs_of(), price_weights=0.05, rounds=40)
    short = fit_on(X, y, costs_of(), price_weights=0.05, rounds=15)
    Z = long._encode(X)[0]
    cut, whole = long._model.first(15).trace(Z), short._model.trace(Z)
    assert_array_equal(cut.probabilities, whole.probabilities)
    assert_array_equal(cut.read, whole.read)


def test_free_columns_are_never_penalised():
    X, y = data()
    fitted = fit_on(X, y, [3, 0, 4, 0, 5, 9], price_weights=1e6)
    alone = fit_on(X[:, [1, 3]], y, price_weights=0.0)
    assert_array_equal(read_by(fitted, X)[:, [0, 2, 4, 5]], False)
    assert_array_equal(fitted.predict_proba(X), alone.predict_proba(X[:, [1, 3]]))
    nothing_costs, nothing_weighs = fit_on(X, y, np.zeros(6), price_weights=1e6), fit_on(X, y, price_weights=0.0)
    assert_array_equal(nothing_costs.predict_proba(X), nothing_weighs.predict_proba(X))


def test_columns_in_another_order_buy_the_same():
    X, y = data(seed=3, n_rows=600)
    order = np.array([4, 2, 0, 5, 1, 3])
    costs = np.array(costs_of())
    first = fit_on(X, y, costs, price_weights=0.03, min_samples_leaf=20)
    second = fit_on(X[:, order], y, costs[order], price_weights=0.03, min_samples_leaf=20)
    bought = first.decide(X).bought
    assert_array_equal(second.decide(X[:, order]).bought, bought[:, order])
    assert bought.any(axis=0).sum() in range(2, 6)


def test_on_average_a_larger_weight_costs_less():
    weights = (0.0, 0.01, 0.1, 1.0)
    cost = np.zeros(len(weights))
    for seed in range(5):
        X, y = data(seed=seed)
        for i, weight in enumerate(weights):
            fitted = fit_on(X[:160], y[:160], costs_of(), price_weights=weight)
            cost[i] += fitted.decide(X[160:]).cost.mean() / sum(costs_of()) / 5
    assert (np.diff(cost) < 0.05).all()
    assert cost[-1] < cost[0] / 2


def test_the_best_of_the_grid_is_chosen_larger_weights_and_fewer_rounds_first():
    X, y = data()
    grid = {"price_weights": (0.01, 0.1), "rounds": (20, 10), "learning_rates": (0.1, 0.3), "split_levels": (1, 2)}
    fitted = fit_on(X, y, costs_of(), min_samples_leaf=(1, 5), **grid)
    assert len(fitted.table_) == 32
    keys = [(-row["price_weight"], row["n_rounds"]) for row in fitted.table_]
    assert keys[:3] == [(-0.1, 10), (-0.1, 20), (-0.1, 10)]
    assert keys[-1] == (-0.01, 20)
    best = max(fitted.table_, key=lambda row: (row["score"], -row["mean_cost"]))
    assert fitted.settings_ == {name: best[name] for name in fitted.settings_}


@pytest.mark.parametrize(
    ("parameter", "value", "message"),
    [
        ("variant", "logit", "variant must be one of"),
        ("cost_scope", "tree", "cost_scope must be one of"),
        ("price_weights", (), "price_weights is empty"),
        ("price_weights", (0.1, -1.0), "numbers of at least 0 "),
        ("price_weights", np.inf, "at most 1e"),
        ("rounds", 0, "whole numbers of at least 1; got 0"),
        ("rounds", 2.5, "whole numbers of at least 1; got 2.5"),
        ("learning_rates", np.nan, "at most 1; got nan"),
        ("split_levels", 11, "at most 10; got 11"),
        ("min_samples_leaf", "five", "got 'five'"),
        ("largest_step", -1.0, "largest_step"),
    ],
)
def test_a_setting_out_of_range_is_an_error(parameter, value, message):
    with pytest.raises(InvalidParameterError, match=message):
        fit_on(*data(), **{parameter: value})
