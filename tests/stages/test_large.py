"""Folds that are solved together have the solutions of folds that are solved one by one."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from emsco.prices.prices import resolve
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.large import LargeLogisticTrainer
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem


def problem(n_rows, n_columns, n_classes, seed, dtype=np.float64):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n_columns, n_rows)).astype(dtype)
    weights = rng.normal(size=(n_classes, n_columns))
    y = (weights @ Z + 2 * rng.gumbel(size=(n_classes, n_rows))).argmax(axis=0)
    y[:n_classes] = np.arange(n_classes)
    prices = resolve(np.ones(n_columns), tuple(f"x{i}" for i in range(n_columns)))
    return Problem(Z, y, Z[:, :0].copy(), y[:0].copy(), n_classes, np.eye(n_columns, dtype=np.bool_), prices)


def part(whole, train, judges):
    arrays = (whole.train[:, train], whole.y_train[train], whole.train[:, judges], whole.y_train[judges])
    return Problem(*arrays, whole.n_classes, whole.unit_columns, whole.prices)


def one_by_one(whole, starts, C):
    everyone = np.arange(whole.y_train.size)
    folds = [everyone[a:b] for a, b in pairwise(starts)]
    trainers = [LogisticTrainer(part(whole, np.setdiff1d(everyone, fold), fold), C=C) for fold in folds]
    return CrossFitTrainer(trainers, LogisticTrainer(whole, C=C))


@settings(max_examples=15)
@given(st.integers(300, 2_000), st.integers(1, 5), st.integers(2, 4), st.integers(2, 5), st.sampled_from([0.1, 1, 100]))
def test_folds_together_are_folds_one_by_one(n_rows, n_columns, n_classes, n_folds, C):
    whole = problem(n_rows, n_columns, n_classes, seed=n_rows)
    starts = np.linspace(0, n_rows, n_folds + 1).round().astype(np.int64)
    rng = np.random.default_rng(0)
    sets = np.unique(np.vstack([np.ones(n_columns, dtype=bool), rng.random((3, n_columns)) < 0.6]), axis=0)
    sets = sets[sets.any(axis=1)]
    together, slow = LargeLogisticTrainer(whole, starts, np.diff(starts), C=C), one_by_one(whole, starts, C)
    memory, expected = together.train(sets), slow.train(sets)
    said, wanted = together.outcomes(sets, memory), slow.outcomes(sets, expected)
    assert_allclose(said.confidence, wanted.confidence, atol=2e-6)
    clear = wanted.confidence > 1 / n_classes + 1e-4
    ties = np.abs(wanted.confidence - 0.5) < 1e-4
    assert (said.label == wanted.label)[clear & ~ties].mean() > 0.999
    for model, other in zip(together.models(sets, memory), slow.models(sets, expected), strict=True):
        assert_allclose(model.predict_proba(whole.train.T[:, :len(model.coef_[0])]),
                        other.predict_proba(whole.train.T[:, :len(model.coef_[0])]), atol=2e-6)  # fmt: skip


def test_the_model_of_all_rows_is_that_of_scikit_learn():
    whole = problem(5_000, 4, 3, seed=1)
    trainer = LargeLogisticTrainer(whole, np.array([0, 2_000, 5_000]), np.array([2_000, 3_000]), C=0.5)
    everything = np.ones((1, 4), dtype=np.bool_)
    (model,) = trainer.models(everything, trainer.train(everything))
    twin = LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000).fit(whole.train.T, whole.y_train)
    assert_allclose(model.predict_proba(whole.train.T), twin.predict_proba(whole.train.T), atol=1e-6)


def test_the_first_rows_of_each_fold_judge():
    whole = problem(900, 3, 2, seed=2)
    starts, everything = np.array([0, 300, 900]), np.ones((1, 3), dtype=np.bool_)
    some = LargeLogisticTrainer(whole, starts, np.array([10, 20]))
    everyone = LargeLogisticTrainer(whole, starts, np.diff(starts))
    memory = some.train(everything)
    assert_array_equal(memory, everyone.train(everything))
    rows = np.r_[0:10, 300:320]
    assert_array_equal(
        some.outcomes(everything, memory).confidence, everyone.outcomes(everything, memory).confidence[:, rows]
    )


def test_threads_and_single_precision_change_nothing_that_matters():
    whole = problem(3_000, 5, 2, seed=3)
    starts, sets = np.array([0, 1_000, 3_000]), np.tril(np.ones((5, 5), dtype=np.bool_))
    alone, beside = (LargeLogisticTrainer(whole, starts, np.diff(starts), n_jobs=n).train(sets) for n in (1, 2))
    assert_array_equal(alone, beside)
    single = problem(3_000, 5, 2, seed=3, dtype=np.float32)
    assert_allclose(LargeLogisticTrainer(single, starts, np.diff(starts)).train(sets), alone, atol=1e-4)


def test_many_sets_are_not_all_kept(monkeypatch):
    monkeypatch.setattr("emsco.stages.large._KNOWN_BYTES", 5 * 600 * 2)
    whole = problem(600, 4, 2, seed=4)
    starts, sets = np.array([0, 300, 600]), np.tril(np.ones((4, 4), dtype=np.bool_))
    trainer = LargeLogisticTrainer(whole, starts, np.diff(starts))
    memory = trainer.train(sets)
    first = trainer.outcomes(sets, memory)
    again = trainer.outcomes(sets, memory)
    assert_array_equal(first.confidence.astype(np.float32), again.confidence.astype(np.float32))


def test_what_does_not_converge_is_said(monkeypatch):
    monkeypatch.setattr("emsco.stages.large._STEPS", 1)
    whole = problem(600, 4, 2, seed=5)
    with pytest.warns(ConvergenceWarning, match="1 of 1 logistic regressions"):
        LargeLogisticTrainer(whole, np.array([0, 300, 600]), np.array([300, 300])).train(np.ones((1, 4), dtype=bool))
