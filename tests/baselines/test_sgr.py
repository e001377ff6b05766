import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.sgr import SGR, least_confidence, rescale, risk_bound
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

QUICK = SGR(C=(1.0,), random_state=0)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("n_wrong", "n_rows"), [(0, 20), (3, 50), (49, 50), (10, 400)])
def test_the_bound_is_the_risk_that_gives_so_few_errors_with_probability_delta(n_wrong, n_rows):
    bound = risk_bound(n_wrong, n_rows, 0.01)
    assert_allclose(binom.cdf(n_wrong, n_rows, bound), 0.01, rtol=1e-6)


def test_it_answers_as_much_as_the_bound_allows():
    rng = np.random.default_rng(0)
    confidence = rng.permutation(np.linspace(0.5, 1, 512))
    correct = confidence > 0.7  # below, everything is wrong
    level = least_confidence(confidence, correct, 0.1, 0.05)
    steps = 9
    allowed = [
        c
        for c in np.sort(confidence)
        if risk_bound(int((~correct[confidence >= c]).sum()), int((confidence >= c).sum()), 0.05 / steps) <= 0.1
    ]
    # The bound is monotone here, so a search of all levels finds the same one, up to the last step of the bisection.
    assert min(allowed) <= level <= np.sort(confidence)[np.searchsorted(np.sort(confidence), min(allowed)) + 1]
    assert least_confidence(confidence, ~correct, 0.1, 0.05) == np.inf
    assert least_confidence(confidence, correct, 1.0, 0.05) == 0


def test_the_risk_is_kept_as_often_as_promised():
    """Confidences that say nothing true: the error is 0.3 - 0.25 c. Of 300 data sets at most delta may fail."""
    rng = np.random.default_rng(1)
    n_broken = 0
    for _ in range(300):
        confidence = rng.random(200)
        correct = rng.random(200) > 0.3 - 0.25 * confidence
        level = least_confidence(confidence, correct, 0.15, 0.1)
        if level < 1:
            n_broken += 0.3 - 0.25 * (1 + level) / 2 > 0.15  # the true risk above the level
    assert n_broken <= binom.ppf(0.999, 300, 0.1)


def test_rescaling_keeps_the_order_and_moves_the_level_to_the_threshold():
    confidence = np.linspace(0.5, 1, 101)
    moved = rescale(confidence, 0.8, 0.9, 0.5)
    assert (np.diff(moved) >= 0).all()
    assert ((moved >= 0.9) == (confidence >= 0.8)).all()
    assert (rescale(confidence, np.inf, 0.9, 0.5) < 0.9).all()
    assert (rescale(confidence, 0.0, 0.9, 0.5) >= 0.9).all()


def test_a_stricter_accuracy_answers_less():
    X, y = data(n_rows=600)
    coverage = [clone(QUICK).set_params(threshold=t).fit(X[:400], y[:400], costs_of()).decide(X[400:]).conclusive.mean()
                for t in (0.5, 0.8, 0.9, 0.99)]  # fmt: skip
    assert (np.diff(coverage) <= 0).all()
    assert coverage[0] > 0.9


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"delta": 2}, {"C": (0,)}, {"n_folds": 1}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        SGR(**wrong).fit(*data(n_rows=60))
