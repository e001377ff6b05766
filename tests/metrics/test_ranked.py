"""Oracles: all orders of equal rows by brute force, and scikit-learn's precision-recall curve."""

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose
import pytest
from sklearn.datasets import load_iris
from sklearn.metrics import accuracy_score, precision_recall_curve

from emsco import MultiStageClassifier
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidTargetError
from emsco.metrics import accuracy_at_coverage, area_under_risk_coverage, risk_coverage_curve

X, Y = load_iris(return_X_y=True)


@st.composite
def guesses(draw, most=6, levels=3):
    """Labels, guesses, and confidences many of which are equal."""
    n = draw(st.integers(1, most))
    column = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    confidence = st.lists(st.integers(0, levels), min_size=n, max_size=n)
    return np.array(draw(column)), np.array(draw(column)), np.array(draw(confidence)) / levels


def orders(confidence):
    """All orders of rows from the most confident to the least."""
    ranks = range(len(confidence))
    return [list(o) for o in permutations(ranks) if all(confidence[a] >= confidence[b] for a, b in zip(o, o[1:]))]  # noqa: B905, RUF007


@given(guesses(), st.floats(0.01, 1.0))
def test_accuracy_at_coverage_is_the_mean_over_the_orders_of_equal_rows(rows, coverage):
    y, guess, confidence = rows
    n = int(np.ceil(coverage * y.size - 1e-9))
    expected = np.mean([np.mean([y[i] == guess[i] for i in order[:n]]) for order in orders(confidence)])
    assert accuracy_at_coverage(y, guess, confidence, coverage=coverage) == pytest.approx(expected)


@given(guesses())
def test_the_area_is_the_mean_over_coverages_and_orders_of_equal_rows(rows):
    y, guess, confidence = rows
    wrong = y != guess
    areas = [np.mean([np.mean(wrong[order[:k]]) for k in range(1, y.size + 1)]) for order in orders(confidence)]
    assert area_under_risk_coverage(y, guess, confidence) == pytest.approx(np.mean(areas))
    best = [np.mean([np.mean(np.sort(wrong)[:k]) for k in range(1, y.size + 1)])]
    excess = area_under_risk_coverage(y, guess, confidence, excess=True)
    assert excess == pytest.approx(np.mean(areas) - best[0])
    assert excess >= -1e-12


@given(guesses(most=40, levels=10))
def test_the_curve_is_that_of_scikit_learns_precision_of_being_right(rows):
    y, guess, confidence = rows
    right = y == guess
    coverage, risk, thresholds = risk_coverage_curve(y, guess, confidence)
    assert_allclose(coverage, [(confidence >= t).mean() for t in thresholds])
    assert coverage[-1] == 1
    assert risk[-1] == pytest.approx(1 - accuracy_score(y, guess))
    if right.any():
        precision, _, known = precision_recall_curve(right, confidence)
        at = np.searchsorted(known, thresholds)
        assert_allclose(risk, 1 - precision[at])


@given(guesses(most=30))
def test_the_order_of_the_rows_and_the_scale_of_the_confidence_do_not_matter(rows):
    y, guess, confidence = rows
    order = np.random.default_rng(0).permutation(y.size)
    for metric in (accuracy_at_coverage, area_under_risk_coverage):
        assert metric(y[order], guess[order], confidence[order]) == pytest.approx(metric(y, guess, confidence))
        assert metric(y, guess, 5 * confidence - 3) == pytest.approx(metric(y, guess, confidence))


def test_full_coverage_is_plain_accuracy():
    clf = MultiStageClassifier([0, 1, -1, -1]).fit(X[::2], Y[::2])
    guess, confidence = clf.predict(X), clf.predict_proba(X).max(axis=1)
    assert accuracy_at_coverage(Y, guess, confidence, coverage=1) == pytest.approx(accuracy_score(Y, guess))


def test_decisions_hold_guesses_and_confidence():
    clf = MultiStageClassifier([0, 1, -1, -1]).fit(X[::2], Y[::2])
    decisions = clf.decide(X)
    guess, confidence = clf.predict(X), clf.predict_proba(X).max(axis=1)
    assert accuracy_at_coverage(Y, decisions) == pytest.approx(accuracy_at_coverage(Y, guess, confidence))
    assert area_under_risk_coverage(Y, decisions) == pytest.approx(area_under_risk_coverage(Y, guess, confidence))
    assert_allclose(risk_coverage_curve(Y, decisions)[0][-1], 1)
    with pytest.raises(InvalidParameterError, match="leave it out"):
        accuracy_at_coverage(Y, decisions, confidence)


def test_a_share_of_rows_is_rounded_up_but_not_by_rounding_errors():
    y, guess = np.zeros(10), np.array([0] * 3 + [1] * 7)
    confidence = -np.arange(10.0)
    assert accuracy_at_coverage(y, guess, confidence, coverage=0.3) == 1  # 0.3 * 10 is a little more than 3 in floats
    assert accuracy_at_coverage(y, guess, confidence, coverage=0.31) == 0.75
    assert accuracy_at_coverage(y, guess, confidence, coverage=1e-9) == 1


@pytest.mark.parametrize("coverage", [0, 1.1, -1, True, "0.9", float("nan")])
def test_a_coverage_that_is_no_share_is_an_error(coverage):
    with pytest.raises(InvalidParameterError, match="coverage must be above 0 and at most 1"):
        accuracy_at_coverage([0, 1], [0, 1], [0.5, 0.6], coverage=coverage)


def test_rows_that_do_not_match_are_errors():
    with pytest.raises(InvalidTargetError, match="one confidence per row"):
        accuracy_at_coverage([0, 1], [0, 1], [0.5])
    with pytest.raises(InvalidParameterError, match="confidence is missing"):
        area_under_risk_coverage([0, 1], [0, 1])
    with pytest.raises(InvalidParameterError, match="NaN in 1 rows"):
        area_under_risk_coverage([0, 1], [0, 1], [0.5, np.nan])
    with pytest.raises(InvalidInputError, match="no rows"):
        risk_coverage_curve([], [], [])
