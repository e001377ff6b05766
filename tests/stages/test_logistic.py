from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

from emsco.prices.prices import resolve
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem
from tests.strategies import problem, seeds


def make_problem(X, y, X_val=None):
    n_features = X.shape[1]
    X_val = X if X_val is None else X_val
    return Problem(
        np.ascontiguousarray(X.T),
        y.astype(np.int64),
        np.ascontiguousarray(X_val.T),
        np.resize(y, len(X_val)).astype(np.int64),
        int(y.max()) + 1,
        np.eye(n_features, dtype=np.bool_),
        resolve(None, [f"x{i}" for i in range(n_features)]),
    )


def scikit_learn(X, y, X_val, units, C=1.0):
    model = LogisticRegression(C=C, solver="newton-cholesky", tol=1e-12, max_iter=10_000)
    return model.fit(X[:, units], y).predict_proba(X_val[:, units])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_200_random_feature_sets_equal_scikit_learn(n_classes):
    X, y = make_classification(
        500, 12, n_informative=8, n_redundant=2, n_classes=n_classes, flip_y=0.1, random_state=n_classes
    )
    sets = np.random.default_rng(0).random((200, 12)) < 0.5
    sets[:, 0] |= ~sets.any(axis=1)
    trainer = LogisticTrainer(make_problem(X[:300], y[:300], X[300:]))
    memory = trainer.train(sets)
    outcomes = trainer.outcomes(sets, memory)
    for units, confidence, label, model in zip(
        sets, outcomes.confidence, outcomes.label, trainer.models(sets, memory), strict=True
    ):
        expected = scikit_learn(X[:300], y[:300], X[300:], units)
        assert_allclose(confidence, expected.max(axis=1), atol=1e-6)
        assert_array_equal(label, expected.argmax(axis=1))
        assert_allclose(model.predict_proba(X[300:, units]), expected, atol=1e-6)


def hard_problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    noise = rng.normal(size=120)
    yield "separable", X, (X[:, 0] > 0)
    yield "separable by far", X * 100, (X[:, 0] > 0)
    collinear = np.column_stack([X[:, :3], X[:, :3] + 1e-9 * rng.normal(size=(120, 3))])
    yield "collinear", collinear, (X[:, 0] + noise > 0)
    constant = X.copy()
    constant[:, 2] = 0.0
    constant[:, 4] = 5.0
    yield "constant columns", constant, (X[:, 0] + noise > 0)
    yield "badly scaled", X * 10.0 ** np.array([-6, -3, 0, 2, 3, 4]), (X[:, 0] + X[:, 3] + noise > 0)
    yield "imbalanced", X, (np.arange(120) < 2)
    yield "outlier", np.vstack([X[:-1], np.full(6, 1e4)]), (X[:, 0] + noise > 0)
    yield "three classes, one rare", X, np.where(np.arange(120) < 2, 2, X[:, 1] > 0)
    yield "three separable classes", X, np.digitize(X[:, 0], [-0.5, 0.5])


@pytest.mark.parametrize(("X", "y"), [pytest.param(X, y.astype(int), id=name) for name, X, y in hard_problems()])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_hard_problems_equal_scikit_learn(X, y, C):
    sets = ((np.arange(1, 64)[:, None] >> np.arange(6)) & 1).astype(np.bool_)
    trainer = LogisticTrainer(make_problem(X, y), C=C)
    for units, model in zip(sets, trainer.models(sets, trainer.train(sets)), strict=True):
        assert_allclose(model.predict_proba(X[:, units]), scikit_learn(X, y, X, units, C), atol=1e-6)


@settings(max_examples=25)
@given(seeds(), st.sampled_from([2, 3, 5]))
def test_rows_far_outside_the_training_data_equal_scikit_learn_too(seed, n_classes):
    rng = np.random.default_rng(seed)
    X = rng.lognormal(sigma=1.5, size=(60, 6)) * (rng.random((60, 6)) < 0.4)
    y = rng.integers(n_classes, size=60)
    y[:n_classes] = np.arange(n_classes)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-9)
    far = X * rng.lognormal(sigma=3, size=(60, 1))
    sets = np.ones((1, 6), dtype=np.bool_)
    trainer = LogisticTrainer(make_problem(X, y, far))
    model = trainer.models(sets, trainer.train(sets))[0]
    assert_allclose(model.predict_proba(far), scikit_learn(X, y, far, sets[0]), atol=1e-6)


@settings(max_examples=25)
@given(seeds(), st.sampled_from([2, 3, 4]))
def test_the_gradient_vanishes_at_the_solution(seed, n_classes):
    p = problem(seed, n_classes=n_classes, n_features=5)
    sets = np.ones((1, 5), dtype=np.bool_)
    trainer = LogisticTrainer(p)
    model = trainer.models(sets, trainer.train(sets))[0]
    residual = model.predict_proba(p.train.T).T - (p.y_train == np.arange(n_classes)[:, None])
    gradient = residual @ p.train.T
    assert_allclose(gradient[-len(model.coef_) :] + model.coef_, 0, atol=1e-6)
    assert_allclose(residual.sum(axis=1), 0, atol=1e-6)  # the intercepts are not penalised


@given(seeds(), st.integers(1, 3), st.sampled_from([2, 3]))
@settings(max_examples=20)
def test_a_set_has_the_same_bits_whatever_the_batch_and_the_threads(seed, n_jobs, n_classes):
    p = problem(seed, n_features=7, n_classes=n_classes)
    sets = ((np.arange(1, 128)[:, None] >> np.arange(7)) & 1).astype(np.bool_)
    whole = LogisticTrainer(p, n_jobs=1).train(sets)
    order = np.random.default_rng(seed).permutation(len(sets))
    assert_array_equal(LogisticTrainer(p, n_jobs=n_jobs).train(sets[order]), whole[order])
    assert_array_equal(LogisticTrainer(p).train(sets[5:6]), whole[5:6])


@given(seeds(), st.sampled_from([2, 3]))
@settings(max_examples=20)
def test_a_deployed_model_says_what_the_search_saw_to_the_bit(seed, n_classes):
    p = problem(seed, n_features=6, n_classes=n_classes)
    sets = np.random.default_rng(seed).random((4, 6)) < 0.6
    sets[:, 0] = True
    trainer = LogisticTrainer(p)
    memory = trainer.train(sets)
    outcomes = trainer.outcomes(sets, memory)
    for units, confidence, model in zip(sets, outcomes.confidence, trainer.models(sets, memory), strict=True):
        assert_array_equal(model.predict_proba(p.validation[units].T).max(axis=1), confidence)
        one_row = model.predict_proba(p.validation[units][:, 3:4].T)
        assert one_row.max() == confidence[3]


def test_a_unit_of_several_columns_is_trained_with_all_of_them():
    X, y = make_classification(100, 4, n_informative=3, n_redundant=0, random_state=0)
    base = make_problem(X, y)
    units = np.array([[True, True, False, False], [False, False, True, True]])
    paired = Problem(base.train, base.y_train, base.validation, base.y_validation, 2, units, base.prices)
    first = LogisticTrainer(paired).train(np.array([[True, False]]))
    assert_array_equal(first, LogisticTrainer(base).train(units[:1]))
