import lightgbm
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.top_features import TopFeatures, best_units
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data
from tests.strategies import problem

QUICK = TopFeatures(
    n_units=(1, 3), orders=("gain",), learning_rates=(0.1,), n_rounds=20, num_leaves=(4,), min_rows_in_leaf=(5,),
    random_state=0,
)  # fmt: skip


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_is_lightgbm_on_the_columns_of_largest_gain(n_classes):
    X, y = data(n_classes=n_classes)
    fitted = clone(QUICK).set_params(n_units=(2,), n_rounds=10).fit(X, y, costs_of(), X, y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    settings = {"n_estimators": 10, "num_leaves": 4, "min_child_samples": 5, "verbose": -1, "n_jobs": 1}
    everything = lightgbm.LGBMClassifier(importance_type="gain", **settings).fit(Z, y)
    best = np.sort(np.argsort(-everything.feature_importances_)[:2])
    assert_array_equal(np.flatnonzero(fitted.decide(X).bought[0]), best)
    few = lightgbm.LGBMClassifier(**settings).fit(Z[:, best], y)
    assert_allclose(fitted.predict_proba(X), few.predict_proba(Z[:, best]), atol=1e-9)
    assert_array_equal(fitted.decide(X).cost, np.array(costs_of())[best].sum())


def test_gain_per_price_prefers_the_cheaper_of_equal_units():
    p = problem(0, n_features=3, costs=[4, 1, 2])
    assert best_units(np.array([8.0, 4.0, 6.0]), p, "gain").tolist() == [0, 2, 1]
    assert best_units(np.array([8.0, 4.0, 6.0]), p, "gain per price").tolist() == [1, 2, 0]
    assert best_units(np.zeros(3), p, "gain").tolist() == [1, 2, 0]


def test_more_units_than_there_are_is_all_of_them():
    X, y = data()
    fitted = clone(QUICK).set_params(n_units=(6, 50)).fit(X, y, costs_of())
    assert {row["n_units"] for row in fitted.table_} == {6}


@pytest.mark.parametrize("wrong", [{"n_units": (0,)}, {"num_leaves": (1,)}, {"n_rounds": 0}, {"learning_rates": 0.1}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        TopFeatures(**wrong).fit(*data(n_rows=60))
