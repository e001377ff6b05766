import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.ji_carin import Density, JiCarin, Policy, fit_density
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

QUICK = JiCarin(price_weights=(0.05, 0.5), max_components=2, random_state=0)


@pytest.mark.parametrize("policy", ["myopic", "look-ahead"])
def test_it_keeps_the_contract_of_rivals(policy):
    check_contract(clone(QUICK).set_params(policies=(policy,), price_weights=(0.3,)))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([JiCarin(price_weights=(0.001,), max_components=1, random_state=0)])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_on_gaussian_data_the_posterior_is_that_of_a_quadratic_discriminant():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [120, 80, 100])
    Z = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 3)) + y[:, None]
    density = fit_density(Z.T, y, 3, 1, 1e-9, 0)
    known = np.array([0, 2])
    theirs = QuadraticDiscriminantAnalysis().fit(Z[:, known], y)
    # Theirs divides by n - 1; with 80 rows that is visible in the third digit.
    ours = density.posterior(density.log_joint(known, Z[:, known].T))
    assert_allclose(ours, theirs.predict_proba(Z[:, known]), atol=0.01)
    assert_array_equal(ours.argmax(axis=1), theirs.predict(Z[:, known]))


def two_gaussians(apart=2.0):
    """Two classes, the second column tells them apart, the first tells nothing; unit variances."""
    means = np.array([[0.0, -apart / 2], [0.0, apart / 2]])
    return Density(np.log([0.5, 0.5]), means, np.stack([np.eye(2), np.eye(2)]), np.array([0, 1]), 2)


def policy(density, prices=(0.0, 0.0), n_draws=400, n_ahead=0):
    return Policy(density, [np.array([0]), np.array([1])], np.array(prices), n_draws, n_ahead)


def test_the_expected_risk_is_the_overlap_of_two_normals():
    from scipy.stats import norm

    density = two_gaussians(apart=2.0)
    nothing = np.empty(0, dtype=np.intp)
    prior = density.log_joint(nothing, np.empty((0, 1)))
    risk = policy(density).expected_risk(prior, nothing, np.empty((0, 1)), np.array([1]))
    assert_allclose(risk, norm.cdf(-1), atol=1e-3)
    useless = policy(density).expected_risk(prior, nothing, np.empty((0, 1)), np.array([0]))
    assert_allclose(useless, 0.5, atol=1e-12)


def test_conditional_densities_are_those_of_the_joint_one():
    rng = np.random.default_rng(3)
    root = rng.normal(size=(3, 3))
    density = Density(np.zeros(1), rng.normal(size=(1, 3)), (root @ root.T)[None], np.zeros(1, np.intp), 1)
    known, new = np.array([0, 2]), np.array([1])
    values = rng.normal(size=(2, 4))
    means, roots = density.conditional(known, values, new)
    x = rng.normal(size=(1, 4))
    joint = density.log_joint(np.array([0, 2, 1]), np.vstack([values, x]))[0]
    alone = density.log_joint(known, values)[0]
    conditional = -0.5 * ((x - means[0]) / roots[0]) ** 2 - np.log(roots[0]) - 0.5 * np.log(2 * np.pi)
    assert_allclose(joint - alone, conditional[0], atol=1e-8)


def test_it_buys_only_what_is_worth_its_price():
    density = two_gaussians(apart=2.0)
    Z = np.array([[0.3, -1.0, 2.0], [3.0, -0.1, 0.0]])
    assert_array_equal(policy(density).trace(Z).read, [[False, True]] * 3)  # for nothing, only what is useful
    assert_array_equal(policy(density, (0.0, 0.33)).trace(Z).read, [[False, True]] * 3)  # 0.5 - 0.1587 is 0.341
    assert_array_equal(policy(density, (0.0, 0.35)).trace(Z).read, [[False, False]] * 3)


def test_two_values_that_only_tell_something_together_need_the_look_ahead():
    """Exclusive or: four Gaussians, no column alone tells the classes apart."""
    corners = 2.0 * np.array([[-1.0, -1], [1, 1], [-1, 1], [1, -1]])
    density = Density(np.log(np.full(4, 0.25)), corners, np.stack([0.1 * np.eye(2)] * 4), np.array([0, 0, 1, 1]), 2)
    Z = corners.T.copy()
    prices = (0.05, 0.05)
    assert not policy(density, prices).trace(Z).read.any()
    seen = policy(density, prices, n_ahead=2).trace(Z)
    assert seen.read.all()
    assert_array_equal(seen.probabilities.argmax(axis=1), [0, 0, 1, 1])


def test_a_huge_weight_buys_nothing():
    X, y = data(n_classes=3)
    fitted = clone(QUICK).set_params(price_weights=(1e3,)).fit(X, y, costs_of())
    assert_array_equal(fitted.decide(X).cost, 0)
    assert_allclose(fitted.predict_proba(X)[0], np.bincount(y) / y.size, atol=0.02)


@pytest.mark.parametrize("wrong", [{"policies": ("greedy",)}, {"ridge": 0}, {"n_draws": 1}, {"n_ahead": 1}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        JiCarin(**wrong).fit(*data(n_rows=60))
