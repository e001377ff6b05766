from threading import get_ident

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from emsco.exceptions import InvalidEstimatorError
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer
from tests.strategies import problem

SETS = ((np.arange(1, 16)[:, None] >> np.arange(4)) & 1).astype(np.bool_)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_logistic_regression_through_the_general_trainer_equals_the_batched_one(n_classes):
    p = problem(3, n_classes=n_classes)
    batched = LogisticTrainer(p)
    general = EstimatorTrainer(p, LogisticRegression(solver="newton-cholesky", tol=1e-12), seed=0)
    a = batched.outcomes(SETS, batched.train(SETS))
    b = general.outcomes(SETS, general.train(SETS))
    assert_allclose(a.confidence, b.confidence, atol=1e-6)
    assert_array_equal(a.label, b.label)


def test_random_estimators_give_the_same_outcomes_for_any_workers_and_order():
    p = problem(4)
    forest = RandomForestClassifier(n_estimators=5)
    one = EstimatorTrainer(p, forest, seed=1, n_jobs=1).train(SETS)
    two = EstimatorTrainer(p, forest, seed=1, n_jobs=2).train(SETS[::-1])[::-1]
    assert_array_equal(one, two)
    other = EstimatorTrainer(p, forest, seed=2).train(SETS)
    assert not np.array_equal(one["confidence"], other["confidence"])


def test_lightgbm_gives_the_same_outcomes_in_any_number_of_threads(monkeypatch):
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1, subsample=0.5)
    folds = [EstimatorTrainer(problem(seed), trees, seed=1) for seed in (4, 5, 6)]
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one = [fold.train(SETS) for fold in folds]
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    trained_by = set()
    begin = lightgbm.Booster.__init__

    def noted(self, *arguments, **keywords):
        trained_by.add(get_ident())
        begin(self, *arguments, **keywords)

    monkeypatch.setattr(lightgbm.Booster, "__init__", noted)
    crossed = CrossFitTrainer(folds, folds[0]).train(SETS)
    for i, memory in enumerate(one):
        assert_array_equal(crossed[f"fold{i}"], memory)
    assert len(trained_by) == 3


def test_a_deployed_model_is_the_one_that_was_searched():
    p = problem(4)
    trainer = EstimatorTrainer(p, make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=5)), seed=1)
    memory = trainer.train(SETS)
    for units, seen, model in zip(SETS, memory, trainer.models(SETS, memory), strict=True):
        assert_array_equal(model.predict_proba(p.validation[units].T).max(axis=1), seen["confidence"])


def test_the_users_estimator_is_left_alone():
    forest = RandomForestClassifier(n_estimators=2)
    EstimatorTrainer(problem(0), forest, seed=1).train(SETS[:2])
    assert forest.random_state is None
    assert not hasattr(forest, "estimators_")


@pytest.mark.parametrize("estimator", [Perceptron(), LinearSVC(), "logistic", LogisticRegression])
def test_a_classifier_without_probabilities_is_explained(estimator):
    with pytest.raises(InvalidEstimatorError, match=r"predict_proba|instance|has no fit"):
        EstimatorTrainer(problem(0), estimator, seed=0)
