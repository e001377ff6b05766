import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.linear_model import LogisticRegression

from emsco.baselines.weighted_logistic import fit_weighted


@pytest.mark.parametrize("C", [0.1, 1.0, 1000.0])
@pytest.mark.parametrize("separable", [False, True])
def test_each_weighting_equals_scikit_learn(C, separable):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6)) * [1, 1, 1, 5, 0.1, 1]
    labels = X[:, 0] + (0 if separable else rng.normal(size=150)) > 0.5
    weights = rng.random((4, 150)) * (rng.random((4, 150)) < 0.6) * [[1], [0.01], [1], [30]]
    for theta, w in zip(fit_weighted(X, labels, weights, C=C), weights, strict=True):
        model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-10, max_iter=1000)
        model.fit(X, labels, sample_weight=w)
        assert_allclose(X @ theta[:-1] + theta[-1], model.decision_function(X), atol=1e-5)


def test_rows_of_one_label_or_none_make_it_constant():
    X = np.random.default_rng(0).normal(size=(6, 2))
    labels = np.array([True, True, True, False, False, False])
    theta = fit_weighted(X, labels, np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [0.0] * 6]), C=1.0)
    assert_array_equal(theta, [[0, 0, 1], [0, 0, -1], [0, 0, -1]])
