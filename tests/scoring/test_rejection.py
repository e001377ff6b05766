"""Every way to apply a rule, against a walk in plain Python."""

from hashlib import sha256
import json

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from emsco import Accept, Acquire, BestFirst, Evolution, Exact, MultiStageClassifier, load
from emsco.data.table import Table
from emsco.deployed.session import Session
from emsco.designs.partition import all_designs, compress
from emsco.exceptions import InvalidParameterError, SessionError
from emsco.report.summary import stage_reliability, summarise, threshold_sweep
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.scoring.rejection import NEVER, RejectRule, as_rule, check_rule, resolve_rule
from emsco.stages.logistic import LogisticTrainer
from tests.classifiers import fixed
from tests.strategies import problem, seeds

PAPER = {"search": "auto", "preset": "paper"}

BARS = st.sampled_from([0.0, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.97, 1.0, NEVER])


@st.composite
def rules(draw, n_classes):
    n_columns = draw(st.sampled_from([1, n_classes]))
    row = st.lists(BARS, min_size=n_columns, max_size=n_columns)
    return draw(st.lists(row, min_size=1, max_size=4))


def bar_of(matrix, stage, label):
    row = matrix[stage] if stage < len(matrix) else matrix[-1]
    return row[label] if len(row) > 1 else row[0]


def flowers(n_classes, seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=90)
    y[:n_classes] = np.arange(n_classes)
    return pd.DataFrame(rng.normal(size=(90, 4)) + 0.9 * y[:, None], columns=list("abcd")), y


# ---------------------------------------------------------------- one walk everywhere


@settings(max_examples=60, deadline=None)
@given(st.data(), seeds(), st.sampled_from([2, 3]))
def test_counts_of_the_search_equal_a_walk_in_plain_python(data, seed, n_classes):
    p = problem(seed, n_classes=n_classes)
    matrix = data.draw(rules(n_classes))
    trainer = LogisticTrainer(p)
    rule = RejectRule.of(matrix)
    cache = StageCache(trainer, p.y_validation, n_units=4, threshold=rule, max_bytes=2**20)
    population = compress(np.random.default_rng(seed).integers(0, 4, size=(6, 4)))
    tally = Cascade(cache, p.prices).tally(population)
    for design, vector, reached in zip(population, tally.vectors.tolist(), tally.reached.tolist(), strict=True):
        n_stages = design.max() + 1
        sets = np.array([design <= j for j in range(n_stages)])
        outcomes = trainer.outcomes(sets, trainer.train(sets))
        n_conclusive = n_correct = 0
        waiting = [0] * len(reached)
        for i, truth in enumerate(p.y_validation.tolist()):
            for j in range(n_stages):
                waiting[j] += 1
                label = int(outcomes.label[j, i])
                if outcomes.confidence[j, i] >= bar_of(matrix, j, label):
                    n_conclusive += 1
                    n_correct += label == truth
                    break
        assert (vector[0], vector[1], reached) == (n_conclusive, n_correct, waiting)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(0, 5), st.sampled_from([2, 3]), st.booleans(), st.booleans())
def test_decide_and_sessions_equal_a_walk_in_plain_python(data, seed, n_classes, own_estimator, objects):
    X, y = flowers(n_classes, seed)
    design = data.draw(st.sampled_from([[0, 0, 0, 0], [0, 1, 1, 0], [2, 0, 1, 0], [3, 2, 1, 0]]))
    clf = MultiStageClassifier(design, estimator=GaussianNB() if own_estimator else None).fit(X, y)
    matrix = data.draw(rules(n_classes))
    rule = RejectRule.of(matrix)
    rows = X.astype(object) if objects else X  # objects do not take the compiled walk
    decisions = clf.deployed_.decisions(Table(rows), clf.deployed_.cascade, rule)
    Z = clf.deployed_.encoder.encode(Table(X), slice(None))
    answers = [np.asarray(stage.model.predict_proba(Z[stage.encoded_columns].T)) for stage in clf.stages_]
    itinerary = clf.deployed_.itinerary
    for i in range(len(X)):
        for stage, probabilities in enumerate(answers):
            label = int(probabilities[i].argmax())
            confidence = probabilities[i, label]
            conclusive = confidence >= bar_of(matrix, stage, label)
            if conclusive:
                break
        expected = (bool(conclusive), label, float(confidence), stage, float(clf.deployed_.paid[stage]))
        given_label = int(decisions.label.data[i])
        assert (decisions.conclusive[i], given_label, decisions.confidence[i], decisions.stage[i],
                decisions.cost[i]) == expected  # fmt: skip
        if i < 15:
            session = Session(itinerary, rule)
            while isinstance(answer := session.step(), Acquire):
                session.give({column: X[column].iloc[i] for column in answer.columns})
            guess = answer.label if isinstance(answer, Accept) else answer.best_guess
            assert (isinstance(answer, Accept), guess, answer.confidence, answer.stage, answer.cost) == expected


@pytest.mark.parametrize("threshold", [{"a": 0.9, "b": 0.6, "c": 0.7}, [0.95, 0.8, 0.6]])
def test_all_roads_of_a_classifier_lead_to_the_same_decisions(threshold, tmp_path):
    X, y = flowers(3, 1)
    y = np.array(["a", "b", "c"])[y]
    clf = fixed([1, 2, 3, 4], threshold=threshold, max_stages=3, random_state=0, **PAPER).fit(X, y)
    clf.use(int(clf.front_.n_stages.argmax()))
    decisions = clf.decide(X)
    clf.save(tmp_path / "m.emsco")
    again = load(tmp_path / "m.emsco")
    assert again.threshold == threshold
    assert_array_equal(again.decide(X).conclusive, decisions.conclusive)
    assert_array_equal(again.decide(X).stage, decisions.stage)
    ran = clf.run(lambda i, request: X.iloc[i][list(request.columns)].to_dict(), range(len(X)))
    assert_array_equal(ran.conclusive, decisions.conclusive)
    assert_array_equal(ran.stage, decisions.stage)
    point = clf.evaluate(X, y).points[clf.point_]
    assert sum(point.answered) == decisions.conclusive.sum()
    assert point.left == tuple(np.bincount(decisions.stage, minlength=len(clf.stages_)))
    session = clf.session()
    session.give({column: X[column].iloc[3] for column in session.step().columns})
    state = json.loads(json.dumps(session.state))
    assert again.session(state).step() == session.step()
    with pytest.raises(SessionError, match="another design, threshold"):
        clone(clf).set_params(threshold=0.8).fit(X, y).session(state)
    assert summarise(clf.deployed_)["threshold"] is None
    assert summarise(clf.deployed_)["thresholds"] == clf.deployed_.rule.in_words(["a", "b", "c"])
    assert len(stage_reliability(clf.deployed_, X, y, 3)) == len(clf.stages_)
    assert threshold_sweep(clf.deployed_, X, y, [0.0])[0].coverage == 1


# ---------------------------------------------------------------- searches


@pytest.mark.parametrize("threshold", [{0: 0.9, 1: 0.6, 2: 0.75}, [0.9, 0.7, 0.6]])
def test_searches_find_the_front_of_the_rule(threshold):
    X, y = flowers(3, 2)
    searches = [BestFirst(), *([Exact()] if isinstance(threshold, dict) else [])]
    fronts = []
    for search in searches:
        clf = fixed([1, 2, 3, 4], threshold=threshold, search=search, random_state=0, preset="paper")
        front = clf.fit(X[:60], y[:60], X[60:], y[60:]).front_
        fronts.append(set(zip(front.coverage, front.accuracy, front.mean_cost, strict=True)))
    found = []
    for design in all_designs(4, 4):  # the same rule, deployed instead of searched
        given_design = MultiStageClassifier(design, [1, 2, 3, 4], threshold=threshold, encoding="raw")
        given_design.fit(X[:60], y[:60])
        result = given_design.evaluate(X[60:], y[60:]).points[0]
        accuracy = result.accuracy if sum(result.answered) else 0.0
        found.append((result.coverage, accuracy, result.mean_cost))
    best = {
        v for v in found
        if not any(w[0] >= v[0] and w[1] >= v[1] and w[2] <= v[2] and w != v for w in found)
    }  # fmt: skip
    for front in fronts:
        assert {tuple(np.round(v, 9)) for v in front} == {tuple(np.round(v, 9)) for v in best}


def test_a_threshold_per_stage_is_refused_by_exact_and_searched_by_auto():
    X, y = flowers(2, 0)
    with pytest.raises(InvalidParameterError, match=r"cannot be exact with a threshold per stage .*BestFirst"):
        fixed(threshold=[0.9, 0.8], search=Exact()).fit(X, y)
    fit = fixed(threshold=[0.9, 0.8], random_state=0, **PAPER).fit(X, y)
    assert isinstance(fit.search_, BestFirst)
    assert isinstance(fixed(threshold={0: 0.9, 1: 0.8}, random_state=0, **PAPER).fit(X, y).search_, Exact)
    one_stage = fixed(threshold=[0.9, 0.8], max_stages=1, random_state=0, **PAPER).fit(X, y)
    assert isinstance(one_stage.search_, Exact), "with one stage there is one threshold"
    few = fixed(
        threshold=[0.9, 0.8], search=Evolution(population_size=8, max_generations=2), random_state=0, preset="paper"
    )
    assert len(few.fit(X, y).front_)


def test_thresholds_that_do_not_differ_are_the_number_to_the_bit():
    X, y = load_iris(return_X_y=True)
    number = fixed([1, 1, 5, 5], threshold=0.8, random_state=0, **PAPER).fit(X, y)
    for same in ({0: 0.8, 1: 0.8, 2: 0.8}, [0.8, 0.8], np.array([0.8])):
        clf = fixed([1, 1, 5, 5], threshold=same, random_state=0, **PAPER).fit(X, y)
        assert_array_equal(clf.front_.designs, number.front_.designs)
        assert_array_equal(clf.decide(X).confidence, number.decide(X).confidence)
        assert clf.session().state == number.session().state
        assert isinstance(clf.search_, Exact)


def test_the_fingerprint_of_a_number_is_that_of_earlier_releases():
    X, y = load_iris(return_X_y=True)
    deployed = MultiStageClassifier([0, 0, 1, 1], threshold=0.8).fit(X, y).deployed_
    itinerary = deployed.itinerary
    assert itinerary.fingerprint(deployed.rule) == sha256(itinerary._digest + b"0.8").hexdigest()[:16]


# ---------------------------------------------------------------- what a user may give


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        (1.5, "between 0 and 1"),
        (True, "between 0 and 1"),
        ("0.8", "between 0 and 1"),
        ([], "is empty"),
        ({}, "is empty"),
        ([0.9, "high"], "between 0 and 1"),
        ([0.9, 2.0], "between 0 and 1"),
        ({0: 0.9}, "no entry for the class 1"),
        ({0: 0.9, 1: 0.8, 2: 0.7}, r"names \[2\], but the classes are \[0, 1\]"),
        ({0: 0.9, 1: -0.1}, "between 0 and 1"),
        (np.ones((2, 2)), "between 0 and 1"),
    ],
)
def test_a_threshold_that_makes_no_sense_is_refused_before_training(threshold, message):
    X, y = flowers(2, 0)
    for clf in (MultiStageClassifier(threshold=threshold), fixed(threshold=threshold)):
        with pytest.raises(InvalidParameterError, match=message):
            clf.fit(X, y)
    with pytest.raises(InvalidParameterError):
        resolve_rule(threshold, [0, 1])


def test_a_given_design_needs_a_threshold():
    X, y = flowers(2, 0)
    with pytest.raises(InvalidParameterError, match="threshold cannot be None for a given design"):
        MultiStageClassifier(threshold=None).fit(X, y)


def test_a_class_may_be_named_by_its_text():
    assert resolve_rule({"0": 0.9, "1": 0.8}, np.array([0, 1])) == resolve_rule({0: 0.9, 1: 0.8}, np.array([0, 1]))
    assert resolve_rule({"True": 0.9, "False": 0.8}, np.array([False, True])).bars == ((0.8, 0.9),)


@given(st.lists(st.lists(st.sampled_from([0.0, 0.2, 1 / 3, 0.34, 0.5, 0.9, NEVER]), min_size=3, max_size=3), min_size=1,
                max_size=3), st.integers(1, 4))  # fmt: skip
def test_a_rule_labels_all_if_the_least_confident_case_gets_a_label(bars, n_stages):
    rule = RejectRule.of(bars)
    least = np.array([1 / 3, 0.334, 0.4])  # of three classes, no top class has less
    left = [rule.confident(least, np.full(3, label), n_stages - 1) for label in range(3)]
    assert rule.labels_all(n_stages, 3) == bool(np.all(left))


def test_rules_are_shown_and_compared_in_their_simplest_form():
    assert RejectRule.of([[0.9, 0.9], [0.8, 0.8], [0.8, 0.8]]) == resolve_rule([0.9, 0.8], "ab")
    assert as_rule(0.5).number == 0.5
    assert repr(as_rule(0.5)) == "0.5"
    rule = RejectRule.of([[0.9, NEVER], [0.8, 0.7]])
    assert rule.number is None
    assert repr(rule) == "per stage per class 0.9/never, then 0.8/0.7"
    assert rule.in_words(["a", "b"]) == (
        "90 % (a, stage 1), never (b, stage 1), 80 % (a, from stage 2 on), 70 % (b, from stage 2 on)"
    )
    assert_array_equal(rule.matrix(3), [[0.9, NEVER], [0.8, 0.7], [0.8, 0.7]])
    check_rule((0.9, 0.8))
