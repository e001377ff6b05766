import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import MultiStageClassifier
from emsco.baselines.co_t import CostOrdered
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data


@pytest.mark.parametrize("threshold", [0.6, 0.9])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(CostOrdered(threshold=threshold, random_state=0))


@parametrize_with_checks([CostOrdered()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_decides_as_that_design_does(n_classes):
    X, y = data(n_classes=n_classes)
    rival = CostOrdered(threshold=0.8).fit(X[:160], y[:160], costs_of()).decide(X[160:])
    design = MultiStageClassifier([1, 0, 2, 0, 3, 4], costs_of(), threshold=0.8).fit(X[:160], y[:160]).decide(X[160:])
    assert_array_equal(rival.stage, design.stage)
    assert_array_equal(rival.confidence, design.confidence)
    assert_array_equal(rival.label.data, design.label.data)
    assert_allclose(rival.cost, design.cost)
    assert len(set(rival.stage)) == 5


def test_without_a_threshold_all_leave_at_the_first_stage():
    X, y = data()
    decisions = CostOrdered(threshold=0.0).fit(X, y, costs_of()).decide(X)
    assert_array_equal(decisions.stage, 0)
    assert_array_equal(decisions.cost, 2.0)


def test_a_threshold_that_nobody_reaches_rejects_all_at_the_price_of_everything():
    X, y = data()
    decisions = CostOrdered(threshold=1.0).fit(X, y, costs_of()).decide(X)
    assert not decisions.conclusive.any()
    assert_array_equal(decisions.cost, sum(costs_of()))


def test_equal_prices_make_one_stage():
    X, y = data()
    assert CostOrdered().fit(X, y).settings_ == {"n_stages": 1}
    assert CostOrdered().fit(X, y, np.zeros(6)).settings_ == {"n_stages": 1}


@pytest.mark.parametrize("C", [0, -1.0, np.inf, True, "one"])
def test_a_bad_strength_is_refused(C):
    X, y = data()
    with pytest.raises(InvalidParameterError, match="C must be a positive number"):
        CostOrdered(C=C).fit(X, y)


def test_the_order_of_columns_does_not_matter():
    X, y = data(n_classes=3)
    order = np.array([4, 2, 5, 0, 3, 1])
    first = CostOrdered().fit(X, y, costs_of()).decide(X)
    second = CostOrdered().fit(X[:, order], y, np.array(costs_of())[order]).decide(X[:, order])
    assert_array_equal(second.bought, first.bought[:, order])
    assert_allclose(second.confidence, first.confidence, atol=1e-6)
