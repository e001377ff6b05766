import json

import numpy as np
import pytest

from emsco import Guarantee, Monitor, MultiStageClassifier
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidTargetError
from emsco.scoring.intervals import binomial_interval
from tests.classifiers import fixed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(900, 4))
Y = np.where(X.sum(axis=1) + RNG.normal(size=900) > 0, "sick", "well")
DESIGN, PRICES = [0, 0, 1, 2], [1, 1, 5, 10]


@pytest.fixture(scope="module")
def clf():
    return MultiStageClassifier(DESIGN, PRICES, threshold=0.8).fit(X[:300], Y[:300])


@pytest.fixture(scope="module")
def evaluated(clf, tmp_path_factory):
    from emsco import load

    path = tmp_path_factory.mktemp("monitor") / "model.emsco"
    clf.save(path, evaluation=clf.evaluate(X[300:600], Y[300:600]))
    return load(path)


def watch_of(monitor, name):
    (found,) = [watch for watch in monitor.watches if watch.name == name]
    return found


def test_limits_come_from_the_evaluation_with_its_uncertainty(evaluated):
    monitor = Monitor(evaluated, false_alarms=0.06)
    assert [watch.name for watch in monitor.watches] == ["coverage", "accuracy", "mean_cost"]
    result = evaluated.evaluation_.points[0]
    for name, (hits, n) in {
        "coverage": (sum(result.answered), result.n_rows),
        "accuracy": (sum(result.right), sum(result.answered)),
    }.items():
        watch = watch_of(monitor, name)
        assert watch.limit == binomial_interval(hits, n, 1 - 0.02)[0]
        assert watch.level == pytest.approx(0.01)
        assert watch.source == "300 held-out rows"
    cost = watch_of(monitor, "mean_cost")
    assert result.mean_cost < cost.limit < result.mean_cost + 3


def test_figures_found_are_those_of_the_decisions(clf):
    monitor = Monitor(clf, coverage=0.3, accuracy=0.3, mean_cost=16)
    decisions = clf.decide(X[600:])
    assert monitor.add(decisions) == []
    assert monitor.add_truth(decisions, Y[600:]) == []
    assert watch_of(monitor, "coverage").found == pytest.approx(decisions.conclusive.mean())
    assert watch_of(monitor, "mean_cost").found == pytest.approx(decisions.cost.mean())
    right = (decisions.label.data == Y[600:])[decisions.conclusive]
    assert watch_of(monitor, "accuracy").found == pytest.approx(right.mean())
    assert watch_of(monitor, "accuracy").n == right.size
    assert watch_of(monitor, "coverage").n == 300


def test_each_drop_raises_its_own_alarm_once(clf):
    decisions = clf.decide(X[300:])
    coverage, cost = decisions.conclusive.mean(), decisions.cost.mean()
    accuracy = (decisions.label.data == Y[300:])[decisions.conclusive].mean()
    monitor = Monitor(clf, coverage=min(coverage + 0.15, 0.99), accuracy=accuracy - 0.2, mean_cost=cost + 5)
    (alarm,) = monitor.add(decisions)
    assert (alarm.watch, alarm.limit) == ("coverage", min(coverage + 0.15, 0.99))
    assert alarm.n <= 600
    assert monitor.add(decisions) == []
    assert monitor.add_truth(decisions, Y[300:]) == []
    other = np.where(Y[300:] == "sick", "well", "sick")
    (alarm,) = monitor.add_truth(decisions, other)
    assert alarm.watch == "accuracy"
    assert [alarm.watch for alarm in monitor.alarms] == ["coverage", "accuracy"]
    dear = Monitor(clf, mean_cost=cost - 3)
    assert [alarm.watch for alarm in dear.add(decisions)] == ["mean_cost"]


def test_the_alarm_comes_at_the_observation_that_completes_the_evidence(clf):
    decisions = clf.decide(X[300:])
    monitor = Monitor(clf, coverage=0.97)
    (alarm,) = monitor.add(decisions)
    step_by_step = Monitor(clf, coverage=0.97)
    sure = decisions.conclusive
    stages = np.where(sure, decisions.stage, 3)
    for i in range(600):
        if step_by_step.add_exits(np.bincount([stages[i]], minlength=4)):
            break
    assert step_by_step.alarms == (alarm,)
    assert alarm.n == i + 1
    assert alarm.found == pytest.approx(sure[: i + 1].mean())


def test_blocks_of_unknown_order_count_as_much(clf):
    decisions = clf.decide(X[300:])
    monitor = Monitor(clf, coverage=0.97)
    exits = np.where(decisions.conclusive, decisions.stage, 3)
    for part in np.array_split(exits, 20):
        monitor.add_exits(np.bincount(part, minlength=4))
    assert watch_of(monitor, "coverage").n == 600
    assert watch_of(monitor, "coverage").found == pytest.approx(decisions.conclusive.mean())
    assert [alarm.watch for alarm in monitor.alarms] == ["coverage"]
    monitor.add_exits([0, 0, 0, 0])
    assert watch_of(monitor, "coverage").n == 600


@pytest.mark.parametrize("per_class", [False, True])
def test_a_promise_is_watched(per_class):
    promise = Guarantee(0.7, 0.8, per_class=per_class)
    clf = MultiStageClassifier(DESIGN, PRICES, threshold=promise, random_state=0).fit(X[:600], Y[:600])
    monitor = Monitor(clf)
    names = ["promise: sick", "promise: well"] if per_class else ["promise"]
    assert [watch.name for watch in monitor.watches] == names
    assert {watch.limit for watch in monitor.watches} == {0.7}
    decisions = clf.decide(X[600:])
    assert monitor.add_truth(decisions, Y[600:]) == []
    broken = np.where(decisions.label.data == "sick", "well", Y[600:])
    alarms = monitor.add_truth(decisions, broken)
    assert [alarm.watch for alarm in alarms][:1] == names[:1]
    if per_class:
        assert len(alarms) == 1


def test_the_default_choice_has_an_outlook_to_compare_with():
    import warnings

    from emsco import EMSCOClassifier, Evolution

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = EMSCOClassifier(
            PRICES, search=Evolution(population_size=20, max_generations=2), final_estimator="search", random_state=0
        ).fit(X[:300], Y[:300])
    monitor = Monitor(clf)
    assert {watch.source for watch in monitor.watches} == {"the outlook of fit"}
    assert watch_of(monitor, "accuracy").limit < clf.outlook_.accuracy
    assert watch_of(monitor, "mean_cost").limit > clf.outlook_.mean_cost


def test_without_anything_to_compare_with_limits_must_be_given(clf):
    with pytest.raises(InvalidInputError, match="nothing to compare with"):
        Monitor(clf)
    searched = fixed(PRICES, random_state=0).fit(X[:200], Y[:200])
    with pytest.raises(InvalidInputError, match="nothing to compare with"):
        Monitor(searched)  # the figures of the front are optimistic
    assert [watch.name for watch in Monitor(clf, accuracy=0.5).watches] == ["accuracy"]


def test_a_classifier_that_is_free_has_no_cost_to_watch():
    free = MultiStageClassifier([0, 0, 0, 1], [0, 0, 0, 0], threshold=0.8).fit(X[:300], Y[:300])
    assert [watch.name for watch in Monitor(free, coverage=0.5, mean_cost=3.0).watches] == ["coverage"]


def test_a_monitor_continues_from_its_state(evaluated):
    decisions = evaluated.decide(X[600:])
    whole, first = Monitor(evaluated), Monitor(evaluated)
    for monitor in (whole, first):
        monitor.add(decisions)
        monitor.add_truth(decisions, Y[600:])
    second = Monitor(evaluated, state=json.loads(json.dumps(first.state)))
    assert second.watches == first.watches
    wrong = np.where(Y[600:] == "sick", "well", "sick")
    assert second.add_truth(decisions, wrong) == whole.add_truth(decisions, wrong) != []
    assert second.state == whole.state
    third = Monitor(evaluated, state=json.loads(json.dumps(second.state)))
    assert third.alarms == second.alarms
    assert third.add_truth(decisions, wrong) == []


def test_other_states_are_refused(evaluated):
    state = Monitor(evaluated).state
    bad = [
        {}, {"version": 2, "watches": []}, {**state, "watches": state["watches"][:2]},
        {**state, "watches": [{**state["watches"][0], "limit": 0.5}, *state["watches"][1:]]},
        {**state, "watches": [{**state["watches"][0], "n": 5}, *state["watches"][1:]]},
        {**state, "watches": [{**state["watches"][0], "logs": [1.0]}, *state["watches"][1:]]},
        {**state, "watches": [{**state["watches"][0], "logs": ["x"] * 10}, *state["watches"][1:]]},
        {**state, "watches": [{**state["watches"][0], "counts": [-1, 1, 0, 0]}, *state["watches"][1:]]},
        {**state, "watches": 5}, [],
    ]  # fmt: skip
    for other in bad:
        with pytest.raises(InvalidInputError):
            Monitor(evaluated, state=other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"false_alarms": 0}, {"false_alarms": 1.0}, {"false_alarms": "5 %"}, {"coverage": 0.0}, {"coverage": 1.1},
        {"accuracy": True}, {"accuracy": "high"}, {"mean_cost": -1}, {"mean_cost": float("nan")},
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(clf, wrong):
    with pytest.raises(InvalidParameterError) as error:
        Monitor(clf, **{"coverage": 0.5, **wrong})
    assert error.value.parameter in wrong


def test_wrong_truths_are_refused_and_change_nothing(clf):
    monitor, decisions = Monitor(clf, accuracy=0.5), clf.decide(X[600:])
    before = monitor.state
    for wrong in (Y[:5], np.full(300, "dead")):
        with pytest.raises(InvalidTargetError):
            monitor.add_truth(decisions, wrong)
    assert monitor.state == before


def test_it_prints_as_a_table(evaluated):
    monitor = Monitor(evaluated)
    decisions = evaluated.decide(X[600:])
    monitor.add(decisions)
    text = str(monitor)
    assert "coverage   at least" in text
    assert "5 %" in text
    monitor.add_truth(decisions, np.where(Y[600:] == "sick", "well", "sick"))
    assert "ALARM after" in str(monitor)
    assert "<table" in monitor._repr_html_()
    assert repr(monitor) == "<Monitor of coverage, accuracy, mean_cost; alarms: accuracy>"


def test_streams_like_the_evaluation_raise_few_alarms(clf):
    """200 pairs of an evaluation of 150 rows and a stream of 600 from the same population, three figures each."""
    from dataclasses import replace

    rng = np.random.default_rng(1)
    big = rng.normal(size=(20_000, 4))
    truth = np.where(big.sum(axis=1) + rng.normal(size=20_000) > 0, "sick", "well")
    n_alarms = 0
    for _ in range(200):
        rows = rng.choice(20_000, 750, replace=False)
        evaluation = clf.evaluate(big[rows[:150]], truth[rows[:150]])
        monitor = Monitor(replace(clf.deployed_, evaluation=evaluation), false_alarms=0.1)
        decisions = clf.decide(big[rows[150:]])
        n_alarms += bool(monitor.add(decisions) + monitor.add_truth(decisions, truth[rows[150:]]))
    assert n_alarms <= 20
