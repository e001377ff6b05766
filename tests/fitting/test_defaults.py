"""What a fit comes to if nothing is set: on rare classes, and again on the same rows."""

import warnings

import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco import BestFirst, EMSCOClassifier
from emsco.exceptions import BaseRateWarning, NoPointWarning
from emsco.scoring.choice import no_worse
from tests.classifiers import fixed

SMALL = BestFirst(max_designs=200)
PRICES = [1, 5, 20, 2]


def rare(n=1500, seed=0):
    """Three of a hundred rows are positive; a dear column tells them best, a cheap one somewhat."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 100 < 3).astype(int)
    X = rng.normal(size=(n, 4))
    X[:, 0] += 1.5 * y
    X[:, 1] += 2.0 * y
    X[:, 2] += 4.5 * y
    return X, y


def recall(labels, y):
    return (labels[y == 1] == 1).mean()


@pytest.fixture(scope="module")
def by_default():
    return EMSCOClassifier(PRICES, search=SMALL, random_state=0).fit(*rare())


def test_a_rare_class_is_found_about_as_often_as_by_buying_everything(by_default):
    X, y = rare(seed=1)
    front, point = by_default.front_, by_default.point_
    lost, gained = front.against[point, 1].tolist()
    assert lost - gained <= np.sqrt(lost + gained), "out of fold, by at most one paired standard error"
    everything = front.confusion[point, 1, 1] + lost - gained
    assert everything > 30, "buying everything finds most of the 45"
    assert recall(by_default.predict(X), y) > 0.6
    assert by_default.decide(X).cost.mean() < sum(PRICES) / 2
    assert front.outlook.recall[1] > 0.6


def test_a_threshold_below_the_share_of_the_largest_class_is_warned_of():
    X, y = rare()
    with pytest.warns(BaseRateWarning, match=r"0\.75 is not above the share of 0, 0\.97: always answering 0"):
        clf = fixed(PRICES, search=SMALL, random_state=0, encoding="linear", C=1.0).fit(X, y)
    assert recall(clf.predict(X), y) < 0.5, "it is what the warning says"


@pytest.mark.parametrize(("threshold", "warns"), [(0.6, True), ({"a": 0.61, "b": 0.5}, False), ([0.9, 0.6], True)])
def test_the_threshold_of_the_largest_class_counts(threshold, warns):
    rng = np.random.default_rng(0)
    y = np.array(["a", "a", "a", "b", "b"] * 20)
    X = rng.normal(size=(100, 2)) + (y == "b")[:, None]
    clf = fixed(threshold=threshold, search=SMALL, encoding="linear", C=1.0, validation=5, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", BaseRateWarning)
        clf.fit(X, y)
    assert [warning.category for warning in caught] == [BaseRateWarning] * warns


def test_if_no_point_is_as_good_as_buying_everything_the_nearest_is_taken_and_said():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X.sum(axis=1) > 0).astype(int)
    settings = {"search": SMALL, "encoding": "linear", "C": 1e4, "random_state": 0, "objectives": ["stages", "cost"]}
    with pytest.warns(NoPointWarning, match="no point of the front is as good as buying everything, for every class"):
        clf = fixed(choose="no_worse", **settings).fit(X, y)
    assert (clf.point_, False) == no_worse(clf.front_)
    lost = clf.front_.against[:, :, 0] - clf.front_.against[:, :, 1]
    assert (lost.max(axis=1) > 0).all()


def flowers():
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=120)
    return rng.normal(size=(120, 4)) + y[:, None] * [1.2, 0.8, 0.2, 0], y


def test_the_same_seed_gives_the_same_front_and_decisions_with_any_number_of_workers():
    X, y = flowers()
    one, again, two = (EMSCOClassifier([1, 2, 3, 4], random_state=7, n_jobs=n).fit(X, y) for n in (1, 1, 2))
    for other in (again, two):
        assert (one.point_, one.learner_, one.encoding_, one.C_) == (
            other.point_, other.learner_, other.encoding_, other.C_,
        )  # fmt: skip
        for name in ("designs", "thresholds", "coverage", "accuracy", "mean_cost", "confusion", "against"):
            assert_array_equal(getattr(one.front_, name), getattr(other.front_, name))
        assert (one.front_.outlook, one.front_.margin) == (other.front_.outlook, other.front_.margin)
        for name in ("label", "confidence", "stage", "cost", "conclusive"):
            assert_array_equal(getattr(one.decide(X), name), getattr(other.decide(X), name))


def test_every_count_of_a_front_is_that_of_its_figures(by_default):
    front = by_default.front_
    labelled = front.confusion[:, :, :-1].sum(axis=(1, 2))
    right = np.trace(front.confusion, axis1=1, axis2=2)
    assert_array_equal(front.confusion.sum(axis=(1, 2)), np.full(len(front), front.n_samples))
    assert_array_equal(labelled, np.round(front.coverage * front.n_samples))
    assert_array_equal(right, np.round(np.nan_to_num(front.accuracy) * labelled))
    lost, gained = front.against.sum(axis=1).T
    n_right = front.n_samples - front.n_wrong_with_everything  # everything labels everybody
    assert_array_equal(n_right - lost + gained, right)
