"""Promises on the price of errors hold as often as they say."""

import numpy as np
import pytest

from emsco import EMSCOClassifier
from emsco.exceptions import InvalidInputError, InvalidParameterError
from emsco.promises.loss import check_losses, loss_p_value


@pytest.mark.parametrize("values", [(0.0, 1.0), (0.1, 1.0), (0.0, 0.4)])
def test_p_values_are_small_no_more_often_than_they_say(values):
    rng = np.random.default_rng(0)
    low, high = values
    means = np.where(rng.random((4000, 120)) < 0.1, high, low).mean(axis=1)
    truth = low + 0.1 * (high - low)
    for level in (0.05, 0.2):
        rejected = np.mean([loss_p_value(mean, 120, truth) <= level for mean in means])
        assert rejected <= level + 3 * np.sqrt(level * (1 - level) / 4000)


def test_few_losses_are_enough_for_a_promise():
    assert loss_p_value(0.01, 1000, 0.05) < 1e-6
    assert loss_p_value(0.049, 1000, 0.05) > 0.05
    assert loss_p_value(0.2, 10, 0.1) == 1.0
    assert loss_p_value(0.9, 10, 1.0) == 0.0


def test_the_point_in_use_breaks_the_promise_no_more_often_than_said():
    rng = np.random.default_rng(1)
    expected = np.array([0.02, 0.05, 0.08, 0.11, 0.14, 0.2])  # of points whose true losses are known
    preference = -expected  # the riskier, the cheaper
    broken, used = 0, 0
    for _ in range(600):
        losses = 50.0 * (rng.random((6, 300)) < expected[:, None])
        promise = check_losses(losses, np.arange(6), preference, at_most=50 * 0.1, largest=50.0, confidence=0.9)
        used += promise.point is not None
        broken += promise.point is not None and expected[promise.point] > 0.1
        assert promise.passed == tuple(range(len(promise.passed)))
    assert used > 500
    assert broken / 600 <= 0.1 + 3 * np.sqrt(0.1 * 0.9 / 600)


def _rows(n_rows, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n_rows)
    return np.column_stack([y + rng.normal(0, 1.0, n_rows), y + rng.normal(0, 0.4, n_rows)]), y


@pytest.fixture(scope="module")
def clf():
    return EMSCOClassifier([1, 5], errors=[[0, 20], [60, 0]], random_state=0).fit(*_rows(400, 0))


def test_a_promise_puts_a_point_into_use_whose_errors_are_cheap_enough(clf):
    promise = clf.promise_loss(*_rows(1500, 1), at_most=6.0)
    assert promise.point == clf.point_
    assert promise.loss < 6
    assert promise.point in promise.passed
    assert str(promise).startswith("Promised: errors cost at most 6 per case, with 95 % confidence.")
    X, y = _rows(20_000, 2)
    money = clf.evaluate(X, y).money["the design in use"]
    assert money.errors + money.no_answers < 6
    assert clf.front_.total[clf.point_] == min(clf.front_.total[list(promise.passed)])


def test_what_cannot_be_promised_changes_nothing(clf):
    before = clf.point_
    promise = clf.promise_loss(*_rows(100, 3), at_most=0.01)
    assert promise.point is None
    assert promise.passed == ()
    assert clf.point_ == before
    assert "Asked for, but not promised" in str(promise)


def test_limits_that_are_none_and_classifiers_without_prices_are_refused(clf):
    X, y = _rows(100, 4)
    with pytest.raises(InvalidParameterError, match="at_most must be a price above 0"):
        clf.promise_loss(X, y, at_most=-1)
    with pytest.raises(InvalidParameterError, match="confidence must be a share"):
        clf.promise_loss(X, y, at_most=1, confidence=95)
    with pytest.raises(InvalidInputError, match="fitted with errors"):
        EMSCOClassifier([1, 5], random_state=0).fit(X, y).promise_loss(X, y, at_most=1)
