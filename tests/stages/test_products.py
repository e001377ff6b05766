"""Products of columns in logistic stages: as scikit-learn has them, and wherever stages go."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import emsco
from emsco import BestFirst, EMSCOClassifier, MultiStageClassifier
from emsco.exceptions import InvalidParameterError
from emsco.stages import recipe
from emsco.stages.logistic import LogisticTrainer
from tests.classifiers import fixed
from tests.deployed.test_session import answers, assert_is_row
from tests.strategies import problem, seeds


@settings(max_examples=25, deadline=None)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([0.1, 1.0, 10.0]))
def test_a_stage_with_products_is_scikit_learns(seed, n_classes, C):
    p = problem(seed, n_classes=n_classes)
    trainer = LogisticTrainer(p, C=C, products=True)
    sets = np.array([[1, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 1, 1]], dtype=bool)
    memory = trainer.train(sets)
    outcomes = trainer.outcomes(sets, memory)
    for i, model in enumerate(trainer.models(sets, memory)):
        twin = make_pipeline(
            PolynomialFeatures(2, interaction_only=True, include_bias=False),
            LogisticRegression(C=C, tol=1e-12, max_iter=10_000, solver="newton-cholesky"),
        ).fit(p.train[sets[i]].T, p.y_train)
        expected = twin.predict_proba(p.validation[sets[i]].T)
        assert_allclose(model.predict_proba(p.validation[sets[i]].T), expected, atol=1e-7)
        assert_allclose(outcomes.confidence[i], expected.max(axis=1), atol=1e-7)


@pytest.fixture(scope="module")
def crossed():
    """Two columns that say nothing alone and everything together."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4))
    return X, np.where(X[:, 1] * X[:, 3] + 0.2 * rng.normal(size=400) > 0, "yes", "no")


QUICK = {"search": BestFirst(max_designs=200), "encoding": "linear", "C": 1.0, "random_state": 0}


def test_two_columns_that_say_nothing_alone_are_bought_together(crossed, tmp_path):
    X, y = crossed
    plain, multiplied = (fixed(products=p, **QUICK).fit(X[:300], y[:300]) for p in (False, True))
    assert multiplied.front_.combined.max() > plain.front_.combined.max() + 0.3
    assert_array_equal(np.flatnonzero(multiplied.design_ >= 0), [1, 3])
    decisions = multiplied.decide(X[300:])
    assert (decisions.label.data == y[300:])[decisions.conclusive].mean() > 0.9
    for i in range(20):  # BLAS may sum one row otherwise than many
        answer = answers(multiplied, {f"x{j}": v for j, v in enumerate(X[300 + i])})[-1]
        assert answer.confidence == pytest.approx(decisions.confidence[i], rel=1e-14)
        decisions.confidence[i] = answer.confidence
        assert_is_row(answer, decisions, i)
    multiplied.save(tmp_path / "m.emsco")
    again = emsco.load(tmp_path / "m.emsco").decide(X[300:])
    assert_array_equal(again.confidence, multiplied.decide(X[300:]).confidence)
    assert_array_equal(fixed(products=True, n_jobs=2, **QUICK).fit(X[:300], y[:300]).design_,
                       multiplied.design_)  # fmt: skip


def test_they_can_be_exported(crossed, tmp_path):
    pytest.importorskip("skl2onnx")
    X, y = crossed
    MultiStageClassifier(design=[0, 1, 0, 1], products=True).fit(X, y).export_onnx(tmp_path / "onnx")
    assert (tmp_path / "onnx" / "manifest.json").exists()


def test_with_more_weights_than_newtons_method_likes_scikit_learn_trains_them(crossed, monkeypatch):
    X, y = crossed
    few = MultiStageClassifier(design=[0, 1, 0, 1], products=True).fit(X, y)
    monkeypatch.setattr(recipe, "_LARGEST_NEWTON", 9)  # four columns have six products
    many = MultiStageClassifier(design=[0, 1, 0, 1], products=True).fit(X, y)
    assert_allclose(few.predict_proba(X), many.predict_proba(X), atol=1e-4)


def test_calibrated_stages_have_them_too(crossed):
    X, y = crossed
    clf = fixed(products=True, calibration="sigmoid", validation=1 / 3, **QUICK).fit(X, y)
    assert np.nanmax(clf.front_.accuracy) > 0.9


def test_what_cannot_be_is_told(crossed):
    X, y = crossed
    for kind in (EMSCOClassifier, MultiStageClassifier):
        with pytest.raises(InvalidParameterError, match="PolynomialFeatures"):
            kind(products=True, estimator=RandomForestClassifier()).fit(X, y)
        with pytest.raises(InvalidParameterError, match="products must be True or False; got 2"):
            kind(products=2).fit(X, y)
