from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.single_stage import SingleStage
from tests.baselines.contract import check_contract, costs_of, data


@pytest.mark.parametrize("threshold", [0.0, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(SingleStage(threshold=threshold, random_state=0))


@parametrize_with_checks([SingleStage()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_it_is_scikit_learns_logistic_regression():
    X, y = data(n_classes=3)
    fitted = SingleStage(random_state=0).fit(X, y, costs_of())
    expected = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-10, max_iter=10_000)).fit(X, y)
    assert_allclose(fitted.predict_proba(X), expected.predict_proba(X), atol=1e-6)
    assert_array_equal(fitted.decide(X).cost, sum(costs_of()))
    assert fitted.decide(X).conclusive.all()
