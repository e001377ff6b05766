"""Trees that are asked once answer as LightGBM's classifier does."""

from hypothesis import given, settings
from hypothesis import strategies as st
from lightgbm import LGBMClassifier
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline

from emsco.stages import estimator as module
from emsco.stages.boosted import boosted_probabilities, plain_parameters
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.learners import BOOSTED, boosted
from tests.strategies import problem, seeds


@settings(max_examples=25, deadline=None)
@given(
    seeds(),
    st.integers(2, 4),
    st.sampled_from(BOOSTED),
    st.integers(12, 150),
    st.sampled_from(["numbers", "codes", "gaps"]),
)
def test_probabilities_are_those_of_the_classifier(seed, n_classes, kind, n_rows, columns):
    rng = np.random.default_rng(seed)
    X, asked = rng.normal(size=(n_rows, 3)), rng.normal(scale=3, size=(40, 3))
    if columns == "codes":
        X, asked = rng.integers(0, 3, X.shape).astype(float), rng.integers(-1, 5, asked.shape).astype(float)
    elif columns == "gaps":
        X[rng.random(X.shape) < 0.2] = asked[rng.random(asked.shape) < 0.2] = np.nan
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n_rows - n_classes)])
    model = boosted(kind, share=0.2).set_params(random_state=seed % 1000)
    said = boosted_probabilities(plain_parameters(model), X, y, asked, n_classes)
    assert_allclose(said, model.fit(X, y).predict_proba(asked), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    "estimator",
    [
        HistGradientBoostingClassifier(),
        make_pipeline(LGBMClassifier()),
        LGBMClassifier(class_weight="balanced"),
        LGBMClassifier(boosting_type="dart"),
        LGBMClassifier(objective="cross_entropy"),
        type("Own", (LGBMClassifier,), {})(),
    ],
    ids=repr,
)
def test_any_other_classifier_is_trained_by_itself(estimator):
    assert plain_parameters(estimator) is None


@pytest.mark.parametrize("n_classes", [2, 3])
def test_sets_are_judged_as_by_the_classifier(n_classes, monkeypatch):
    p = problem(3, n_classes=n_classes)
    sets = np.array([[1, 0, 0, 0], [0, 1, 1, 0], [1, 1, 1, 1], [0, 0, 0, 0]], dtype=bool)
    model = boosted("light", share=0.2)
    fast = EstimatorTrainer(p, model, seed=5, n_jobs=2).train(sets)
    monkeypatch.setattr(module, "plain_parameters", lambda estimator: None)
    slow = EstimatorTrainer(p, model, seed=5).train(sets)
    assert_array_equal(fast["label"], slow["label"])
    assert_allclose(fast["confidence"], slow["confidence"], rtol=1e-12)
