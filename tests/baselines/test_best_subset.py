from itertools import combinations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import Prices
from emsco.baselines.best_subset import BestSubset
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

pytest.importorskip("abess")
QUICK = BestSubset(n_units=(1, 3), C=(1.0,), random_state=0)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([clone(QUICK).set_params(n_units=(3,))])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_subset_is_the_most_likely_of_all(n_classes, k):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(400, 6))
    scores = X[:, [5, 1, 3]] @ np.array([[3.0, -1, 0], [1, 2, -2], [0, 1, 2]])[:, :n_classes]
    y = (scores + rng.gumbel(size=(400, n_classes))).argmax(axis=1)
    fitted = BestSubset(n_units=(k,), C=(1.0,), random_state=0).fit(X, y, costs_of(), X, y)

    def loss(columns):
        part = X[:, list(columns)]
        return log_loss(y, LogisticRegression(C=1e6, max_iter=1000).fit(part, y).predict_proba(part))

    best = min(combinations(range(6), k), key=loss)
    assert_array_equal(np.flatnonzero(fitted.decide(X).bought[0]), best)


def test_the_answers_are_those_of_a_logistic_regression_on_the_subset():
    X, y = data()
    fitted = clone(QUICK).set_params(n_units=(2,)).fit(X, y, costs_of(), X, y)
    Z = ((X - X.mean(axis=0)) / X.std(axis=0))[:, fitted.decide(X).bought[0]]
    assert Z.shape[1] == 2
    wanted = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(Z, y).predict_proba(Z)
    assert_allclose(fitted.predict_proba(X), wanted, atol=1e-5)


def test_a_panel_is_bought_as_a_whole():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = (X[:, 0] + X[:, 3] + 0.3 * X[:, 1] + 0.2 * rng.normal(size=300) > 0).astype(int)
    prices = Prices(units={"panel": ["0", "3"]}, price={"1": 1, "2": 1, "panel": 5})
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("0123"))
    fitted = BestSubset(n_units=(1,), C=(1.0,), random_state=0).fit(frame, y, prices)
    assert (fitted.decide(frame).cost == 5).all()


@pytest.mark.parametrize("wrong", [{"n_units": (0,)}, {"C": (0.0,)}, {"C": 1.0}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        BestSubset(**wrong).fit(*data(n_rows=60))
