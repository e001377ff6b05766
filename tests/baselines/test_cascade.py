import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.cascade import DetectorCascade, dismissal_levels
from emsco.baselines.single_stage import SingleStage
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, costs_of, data

QUICK = DetectorCascade(detections=(0.9, 0.99), max_stages=(3,), C=(1.0,), random_state=0)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("detection", [0.0, 0.3, 0.9, 1.0])
def test_each_stage_passes_on_as_few_as_it_may(seed, detection):
    rng = np.random.default_rng(seed)
    background, wanted = rng.random((3, 40)).round(1), rng.random(40) < 0.4
    reached = np.ones(40, dtype=bool)
    for stage, level in zip(background, dismissal_levels(background, wanted, detection), strict=True):
        here = reached & wanted
        if here.any():
            allowed = [x for x in [-np.inf, *np.unique(stage[here])]
                       if (stage[here] <= x).mean() >= detection - 1e-9]  # fmt: skip
            assert level == min(allowed)
        reached &= stage <= level


def test_only_the_background_leaves_early():
    X, y = data(n_rows=400)
    y = np.where(X[:, 1] > 0.7, 1, 0) * (y == 1)  # one class is rare
    fitted = clone(QUICK).set_params(threshold=0.0).fit(X, y, [1, 1, 2, 2, 9, 9])
    early = fitted.decide(X).cost < 24
    assert early.any()
    dismissed = fitted.trace(X).probabilities[early, 0]
    assert (dismissed > 0).all()
    stages = fitted.decide(X).stage
    assert_array_equal(early, stages < stages.max())


def test_if_everything_must_pass_it_buys_nearly_everything():
    X, y = data()
    fitted = clone(QUICK).set_params(detections=(1.0,), C=(1.0,)).fit(X[:160], y[:160], costs_of(), X[160:], y[160:])
    single = SingleStage().fit(X[:160], y[:160], costs_of())
    last = fitted.decide(X).stage == 2
    wanted = y[:160] != np.bincount(y[:160]).argmax()
    assert last[:160][wanted].mean() > 0.95  # all of them by folds
    assert_allclose(fitted.predict_proba(X)[last], single.predict_proba(X)[last], atol=1e-9)


@pytest.mark.parametrize("wrong", [{"detections": (1.2,)}, {"max_stages": (0,)}, {"C": (0,)}, {"n_folds": 1}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        DetectorCascade(**wrong).fit(*data(n_rows=60))
