"""MAPIE's Learn-then-Test, written by others, comes to the same p-values and the same thresholds."""

from hypothesis import given, settings
from hypothesis import strategies as st
from mapie.risk_control import BinaryClassificationController, BinaryRisk, control_fwer, precision
from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from benchmarks.guarantee import CASES
from emsco.promises.guarantee import Guarantee, _Counted, check, p_values, plan
from emsco.scoring.answers import Answers

conclusive_accuracy = BinaryRisk(
    risk_occurrence=lambda y_true, y_pred: y_pred == y_true,
    risk_condition=lambda y_true, y_pred: ~np.isnan(y_pred),
    higher_is_better=True,
)
coverage = BinaryRisk(
    risk_occurrence=lambda y_true, y_pred: ~np.isnan(y_pred),
    risk_condition=lambda y_true, y_pred: np.ones(len(y_true), dtype=bool),
    higher_is_better=True,
)


def walk(rows, threshold):
    """A cascade for MAPIE: the label of the first confident stage, NaN where none is."""
    n_stages = rows.shape[1] // 2
    confidence, label = rows[:, :n_stages].T, rows[:, n_stages:].T
    confident = confidence >= threshold
    first = np.take_along_axis(label, confident.argmax(axis=0)[None], axis=0)[0]
    return np.where(confident.any(axis=0), first, np.nan)


def for_mapie(answers):
    return np.vstack([answers.confidence, answers.label]).T


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 500), st.data(), st.sampled_from([0.6, 0.8, 0.9, 0.95]))
def test_p_values_agree(n, data, accuracy):
    e = data.draw(st.integers(0, n))
    theirs = compute_hoeffding_bentkus_p_value(np.array([e / n]), np.array([n]), 1 - accuracy, binary=True)[0, 0]
    # They multiply the share by n again, which may come out just above a whole number, and round up.
    counted = np.ceil(n * (e / n))
    assert counted in (e, e + 1)
    assert_allclose(p_values(np.array([n]), np.array([counted]), accuracy)[0], theirs, rtol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_a_cascade_calibrated_by_mapie_has_our_p_values_and_thresholds(seed):
    world, _ = CASES["two classes"]
    rng = np.random.default_rng(seed)
    pilot, rows = world.draw(200, rng), world.draw(400, rng)
    planned = plan(Guarantee(0.88, 0.9), pilot, n_classes=2, n_rows=400)
    promise = check(planned, rows, [0, 1])
    thresholds = planned.sequences[0].thresholds
    controller = BinaryClassificationController(
        walk, conclusive_accuracy, 0.88, 0.9, coverage, thresholds[:, None], fwer_method="bonferroni"
    ).calibrate(for_mapie(rows), rows.truth)
    theirs = controller.p_values.ravel()
    n_rows, n_errors, _ = _Counted.of_all(rows).at(thresholds)
    ours = p_values(n_rows, n_errors, 0.88)
    exact = np.ceil(n_rows * (1 - (n_rows - n_errors) / n_rows)) == n_errors
    assert exact.mean() > 0.3
    assert_allclose(ours[exact], theirs[exact], rtol=1e-9)
    assert (theirs[~exact] >= ours[~exact]).all()
    passed = control_fwer(ours, 0.1, "fixed_sequence")
    assert_array_equal(passed, np.arange(passed.size))
    if passed.size:
        assert promise.checks[0].threshold == thresholds[passed[-1]]
    else:
        assert not promise.passed
    split = thresholds[control_fwer(np.where(exact, ours, theirs), 0.1, "bonferroni")]
    assert_array_equal(np.sort(split), np.sort(np.asarray(controller.valid_predict_params, dtype=float).ravel()))


def test_precision_of_one_class_is_our_accuracy_of_its_labels():
    world, _ = CASES["two classes, each"]
    everyone = world.draw(400, np.random.default_rng(0))
    rows = Answers(everyone.confidence[-1:], everyone.label[-1:], everyone.truth)  # one stage, as MAPIE has it
    score = np.where(rows.label[0] == 1, rows.confidence[0], 1 - rows.confidence[0])
    thresholds = np.linspace(0.99, 0.55, 45)
    controller = BinaryClassificationController(
        lambda X: np.column_stack([1 - X, X]), precision, 0.85, 0.95, list_predict_params=thresholds,
        fwer_method="bonferroni",
    ).calibrate(score, rows.truth)  # fmt: skip
    n_rows, n_errors, n_lost = _Counted.of_class(rows, 1, np.array([0.5, 0.5])).at(thresholds)
    assert not n_lost.any()
    exact = np.ceil(n_rows * (1 - (n_rows - n_errors) / n_rows)) == n_errors
    assert exact.sum() > 10
    assert_allclose(p_values(n_rows, n_errors, 0.85)[exact], controller.p_values.ravel()[exact], rtol=1e-9)
    assert len(controller.valid_predict_params)
