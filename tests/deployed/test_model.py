"""Deployed is frozen: another point or threshold is another object, whole for whoever holds it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import FrozenInstanceError, replace
import pickle

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from emsco import BestFirst, EMSCOClassifier, MultiStageClassifier
from emsco.deployed.model import the_front
from emsco.exceptions import InvalidInputError, InvalidParameterError
from emsco.report.learning import selected
from emsco.scoring.outlook import Outlook
from tests.classifiers import fixed


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    risk = rng.normal(size=150)
    X = pd.DataFrame({"age": risk + rng.normal(size=150), "ward": rng.choice(["a", "b"], 150), "salt": risk})
    y = risk > rng.normal(scale=0.5, size=150)
    settings = {"search": BestFirst(max_designs=60), "encoding": "linear", "C": 1.0, "max_stages": 2}
    return fixed([1, 2, 3], threshold="auto", random_state=0, **settings).fit(X, y), X, y


def test_nothing_of_it_can_be_set(fitted):
    with pytest.raises(FrozenInstanceError):
        fitted[0].deployed_.point = 1


def test_another_point_is_another_object_and_shares_the_models(fitted):
    deployed = fitted[0].deployed_
    other = deployed.use(1)
    assert (deployed.point, other.point) == (fitted[0].point_, 1)
    assert other.models is deployed.models
    with pytest.raises(InvalidParameterError, match="point must be one of the points"):
        deployed.use(len(deployed.designs))


def test_another_threshold_is_another_object_and_back_again(fitted):
    deployed, X = fitted[0].deployed_, fitted[1]
    fixed = deployed.with_threshold(0.5)
    assert fixed.decide(X).conclusive.all()
    again = fixed.with_threshold("auto")
    assert again.rules == deployed.rules
    assert_array_equal(again.decide(X).confidence, deployed.decide(X).confidence)


def test_what_was_measured_at_other_thresholds_does_not_describe_what_is_in_use(fitted):
    clf, X, y = fitted
    deployed = clf.deployed_
    outlook = Outlook((60, 60), (70, 70), (75, 75), (1.0,), (150,))
    known = replace(deployed, front=replace(deployed.front, outlook=outlook), evaluation=clf.evaluate(X, y))
    assert known.outlook == known.with_threshold(None).outlook == outlook
    other = known.with_threshold(0.9)
    assert (other.outlook, other.evaluation) == (None, None)
    assert "other thresholds are in use now" in selected(other)
    assert "optimistic" in selected(other.with_threshold("auto"))
    assert "other thresholds" in selected(other.with_threshold(0.8).with_threshold(0.9))
    assert other.with_threshold("auto").outlook == outlook
    same = known.with_threshold("auto")
    assert same.evaluation == known.evaluation
    assert known.front[:3].outlook is None  # the point that it describes may not be among these


def test_decisions_made_while_points_are_switched_are_those_of_one_point(fitted):
    clf, X, _ = fitted
    alone = [clf.deployed_.use(point).decide(X) for point in range(len(clf.front_))]
    known = {(tuple(d.stage), tuple(d.cost), tuple(d.conclusive)) for d in alone}
    stop = False

    def switch():
        points = np.random.default_rng(1)
        while not stop:
            clf.use(int(points.integers(len(clf.front_))))

    with ThreadPoolExecutor(2) as pool:
        switching = pool.submit(switch)
        try:
            for _ in range(150):
                d = clf.decide(X)
                assert (tuple(d.stage), tuple(d.cost), tuple(d.conclusive)) in known
                deployed = clf.deployed_
                assert deployed.session().state["classifier"] == deployed.session().state["classifier"]
        finally:
            stop = True
        switching.result()


def test_a_pickle_decides_alike_and_is_not_recomputed(fitted):
    clf, X, _ = fitted
    again = pickle.loads(pickle.dumps(clf))
    assert again.deployed_.rules == clf.deployed_.rules
    assert_array_equal(again.decide(X).confidence, clf.decide(X).confidence)


def test_a_given_design_has_no_front(fitted):
    _, X, y = fitted
    clf = MultiStageClassifier([0, 1, 1]).fit(X, y)
    assert clf.deployed_.front is None
    with pytest.raises(InvalidInputError, match="has no front"):
        the_front(clf.deployed_)


def test_before_fit_there_is_nothing_deployed():
    with pytest.raises(NotFittedError, match="not fitted"):
        _ = EMSCOClassifier().deployed_
    assert not hasattr(EMSCOClassifier(), "front_")
