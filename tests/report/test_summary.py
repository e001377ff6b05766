from dataclasses import replace
import json

import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.naive_bayes import GaussianNB

from emsco import Evaluation, Exact, MultiStageClassifier, Prices, __version__
from emsco.exceptions import InvalidInputError
from emsco.report.learning import learning_record
from emsco.report.summary import stage_flow, stage_reliability, summarise, threshold_sweep
from emsco.scoring.intervals import binomial_interval
from emsco.scoring.thresholds import rule_words
from tests.classifiers import fixed
from tests.report.conftest import HEART

ROUNDED = {"rel": 1e-5}


def test_it_is_plain_json(fitted, evaluation):
    summary = summarise(
        fitted.deployed_, evaluation=evaluation, notes={"rows": np.int64(299), "share": np.float32(0.5)}
    )
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["notes"] == {"rows": 299, "share": 0.5}


def test_every_point_has_the_figures_of_the_front(fitted):
    front, summary = fitted.front_, summarise(fitted.deployed_)
    assert len(summary["points"]) == len(front)
    assert summary["in_use"] == fitted.point_
    assert summary["n_validation"] == front.n_samples
    for i, point in enumerate(summary["points"]):
        shown = point["validation"]
        cascade = fitted.deployed_.cascade_of(front.designs[i])
        stages, paid = cascade.stages, cascade.paid
        assert point["design"] == front.designs[i].tolist()
        assert point["price"] == [stage.price for stage in stages]
        assert point["paid"] == paid.tolist()
        assert point["test"] is None
        assert shown["coverage"] == pytest.approx(front.coverage[i], **ROUNDED)
        assert shown["accuracy"] == pytest.approx(front.accuracy[i], **ROUNDED)
        assert shown["cost"] == pytest.approx(front.mean_cost[i], **ROUNDED)
        assert shown["saving"] == pytest.approx(1 - front.mean_cost[i] / 750, **ROUNDED)
        assert shown["ties"] == front.n_ties[i]
        assert shown["extra"] == []
        for name in ("coverage", "accuracy", "cost"):
            assert shown[f"{name}_interval"] == pytest.approx([end[i] for end in front.interval(name)], **ROUNDED)
        assert shown["reached"] == front.reached[i, : len(stages)].tolist()
        assert sum(shown["answered"]) + shown["rejected"] == front.n_samples
        assert np.dot(shown["reached"], point["price"]) / front.n_samples == pytest.approx(front.mean_cost[i])


def test_other_objectives_are_told(fitted):
    search = {"search": fitted.search, "random_state": 0, "max_stages": 2}
    clf = fixed(HEART.prices, objectives=["fpr", "stages", "cost"], **search).fit(HEART.data, HEART.target)
    summary = summarise(clf.deployed_)
    assert (summary["objectives"], summary["extra"]) == (["fpr", "stages", "cost"], ["fpr"])
    told = [point["validation"]["extra"] for point in summary["points"]]
    assert told == [[pytest.approx(value, **ROUNDED)] for value in clf.front_.values[:, 0]]


def test_every_point_has_the_counts_of_the_evaluation(fitted, evaluation):
    summary = summarise(fitted.deployed_, evaluation=evaluation)
    assert summary["n_test"] == 99
    shown = [*(point["test"] for point in summary["points"]), summary["everything"], summary["always"]]
    for part, result in zip(shown, [*evaluation.points, evaluation.everything, evaluation.always], strict=True):
        assert part["answered"] == list(result.answered)
        assert part["right"] == list(result.right)
        assert part["rejected"] == result.n_rejected
        assert part["reached"] == [99 - sum(result.answered[:j]) for j in range(len(result.answered))]
        assert part["confusion"] == [list(row) for row in result.confusion]
        for name, figure in (("coverage", "coverage"), ("accuracy", "accuracy"), ("cost", "mean_cost")):
            assert part[name] == pytest.approx(getattr(result, figure), **ROUNDED)
            interval = (1.0, 1.0) if result is evaluation.always and name == "coverage" else result.interval(figure)
            assert part[f"{name}_interval"] == pytest.approx(interval, **ROUNDED)


def test_every_point_has_its_counts_by_class(fitted, evaluation):
    front, summary = fitted.front_, summarise(fitted.deployed_, evaluation=evaluation)
    for i, point in enumerate(summary["points"]):
        for shown, counts, recall in (
            (point["validation"], front.confusion[i], front.recall[i]),
            (point["test"], evaluation.points[i].confusion, evaluation.points[i].recall),
        ):
            assert shown["confusion"] == np.asarray(counts).tolist()
            assert [row[0] for row in shown["by_class"]] == [0, 1]
            assert [row[1] for row in shown["by_class"]] == np.sum(counts, axis=1).tolist()
            assert [row[3] for row in shown["by_class"]] == pytest.approx(recall, rel=1e-3)
            assert shown["worst_recall"] == pytest.approx(recall.min(), **ROUNDED)
    assert summary["base_rate"]["test"] == evaluation.base_rate
    assert summary["base_rate"]["validation"].startswith('Always answering "0": 68.0 % correct, 0 % of "1" found.')


def test_the_shortlist_has_reasons(fitted):
    picks = fitted.front_.shortlist(in_use=fitted.point_)
    assert summarise(fitted.deployed_)["shortlist"] == [{"point": p.point, "reason": p.reason} for p in picks]


def test_the_outlook_and_the_thresholds_are_told(by_default):
    summary, outlook = summarise(by_default.deployed_), by_default.outlook_
    assert summary["outlook"]["point"] == by_default.point_
    assert summary["outlook"]["rows"] == 200
    assert summary["outlook"]["accuracy"]["value"] == pytest.approx(outlook.accuracy, **ROUNDED)
    assert summary["outlook"]["accuracy"]["interval_95"] == pytest.approx(outlook.interval("accuracy"), **ROUNDED)
    assert summary["outlook"]["new_rows"] is None
    assert summary["extra"] == []  # thresholds are told in words
    words = [point["thresholds"] for point in summary["points"]]
    assert words == [
        rule_words(rule, int(n), ["0", "1"])
        for rule, n in zip(by_default.deployed_.rules, by_default.front_.n_stages, strict=True)
    ]
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_a_label_for_every_case_is_no_matter_of_chance_and_has_no_interval(by_default, held_out):
    evaluation = by_default.evaluate(*held_out)
    summary = summarise(by_default.deployed_, evaluation=evaluation)
    n_all = 0
    for i, point in enumerate(summary["points"]):
        everyone = by_default.front_.thresholds[i, 1] <= 0.5 or (
            len(point["price"]) > 1 and by_default.front_.thresholds[i, 0] <= 0.5
        )
        assert point["labels_all"] == everyone
        for figures, interval in (
            (point["test"], evaluation.points[i].interval("coverage")),
            (point["validation"], [end[i] for end in by_default.front_.interval("coverage")]),
        ):
            assert figures["coverage_interval"] == pytest.approx([1.0, 1.0] if everyone else interval, **ROUNDED)
        n_all += everyone
    assert 0 < n_all < len(summary["points"])
    assert summary["everything"]["coverage_interval"] == summary["always"]["coverage_interval"] == [1.0, 1.0]


def test_how_stages_learn_is_told(fitted):
    summary = summarise(fitted.deployed_)
    assert summary["judged"] == "out-of-fold"
    assert summary["learning"] == " ".join(learning_record(fitted.deployed_)["in_words"])
    assert "by 5-fold cross-validation: each row by stages trained without it" in summary["learning"]
    settings = summary["settings"]
    assert (settings["removal"], settings["validation"], settings["choose"]) == ("True", "5", "combined")
    assert settings["encoding"] == f"auto, which used {fitted.encoding_}"
    assert settings["C"] == f"auto, which used {fitted.C_}"
    given = fixed(search=fitted.search, max_stages=2, encoding="rank", C=2, removal=False, random_state=0)
    given.set_params(threshold=0.95).fit(HEART.data[:200], HEART.target[:200], HEART.data[200:], HEART.target[200:])
    summary = summarise(given.deployed_)
    assert summary["judged"] == "validation"
    assert summary["learning"] == (
        "Stage classifier: logistic regression with C = 2; numbers are encoded as ranks. Designs were validated on the "
        "rows given for it, by stages trained on the other rows."
    )
    assert (summary["settings"]["encoding"], summary["settings"]["C"]) == ("rank", "2")
    alone = MultiStageClassifier(estimator=GaussianNB(), encoding="spline").fit(HEART.data, HEART.target)
    words = "Stage classifier: GaussianNB; numbers are encoded as ranks with spline terms."
    assert summarise(alone.deployed_)["learning"] == words


def test_units_show_columns_prices_and_groups():
    prices = Prices(
        units={"panel": ["x1", "x2"]},
        price={"x0": 0, "panel": 7.5, "x3": 5},
        groups={"blood": ["panel", "x3"]},
        discount={"panel": 5.5, "x3": 3},
        derived={"x4": ["panel", "x0"]},
    )
    X = np.random.default_rng(0).normal(size=(30, 5))
    summary = summarise(MultiStageClassifier(costs=prices).fit(X, X[:, 0] > 0).deployed_)
    assert summary["units"] == [
        {"name": "x0", "columns": ["x0"], "sources": [], "price": 0, "group": None, "discount": None},
        {"name": "panel", "columns": ["x1", "x2"], "sources": [], "price": 7.5, "group": "blood", "discount": 5.5},
        {"name": "x3", "columns": ["x3"], "sources": [], "price": 5, "group": "blood", "discount": 3},
        {"name": "x4", "columns": ["x4"], "sources": ["panel", "x0"], "price": 7.5, "group": None, "discount": None},
    ]
    assert summary["total"] == 10.5
    assert summary["price_rule"] == (
        "A stage costs the sum of its purchases, including the shared cost of each new group. A derived feature costs "
        "the features that it is computed from."
    )
    assert summary["classes"] == ["False", "True"]


def test_a_given_design_is_a_report_of_one_point(held_out):
    clf = MultiStageClassifier([["age", "sex"], ["time"]], {"age": 1, "sex": 1, "time": 5})
    columns = ["age", "sex", "time"]
    clf.fit(HEART.data[columns], HEART.target)
    alone = summarise(clf.deployed_)
    assert (alone["search"], alone["n_validation"], alone["n_test"], alone["in_use"]) == (None, None, None, 0)
    assert alone["points"] == [
        {
            "design": [0, 0, 1],
            "price": [2.0, 5.0],
            "paid": [2.0, 7.0],
            "thresholds": "a label needs 75 % confidence; the others get none",
            "labels_all": False,
            "validation": None,
            "test": None,
        }
    ]
    assert (alone["shortlist"], alone["outlook"]) == ([], None)
    assert alone["base_rate"] == {"validation": None, "test": None}
    X, y = held_out
    assert summarise(clf.deployed_, evaluation=clf.evaluate(X[columns], y))["points"][0]["test"]["n_rows"] == 99


def test_the_history_of_a_search_is_told(fitted):
    search = summarise(fitted.deployed_)["search"]
    assert search["name"] == "Evolution"
    assert search["certificate"] is None
    assert_array_equal(np.column_stack([search["n_designs"], search["n_front"], search["n_sets"]]), fitted.history_)
    assert search["n_feature_sets"] == fitted.n_feature_sets_


def test_a_long_history_is_thinned_and_keeps_its_ends(fitted):
    deployed = fitted.deployed_
    origin = replace(deployed.origin, history=np.arange(3 * 5000).reshape(5000, 3))
    search = summarise(replace(deployed, origin=origin))["search"]
    assert len(search["n_designs"]) == 300
    assert (search["n_steps"], search["n_designs"][0], search["n_sets"][-1]) == (5000, 0, 14999)


def test_the_certificate_of_an_exact_search_is_told():
    X = HEART.data[["age", "sex", "time"]]
    clf = fixed([1, 1, 5], search=Exact(), random_state=0, preset="paper").fit(X, HEART.target)
    told = summarise(clf.deployed_)["search"]["certificate"]
    assert (told["n_designs"], told["proven"]) == (13, True)
    assert told["n_walked"] + told["n_ruled_out"] == 13


def test_an_accuracy_of_nothing_is_none():
    silent = MultiStageClassifier(costs=HEART.prices, threshold=1.0).fit(HEART.data, HEART.target)
    shown = summarise(silent.deployed_, evaluation=silent.evaluate(HEART.data[:9], HEART.target[:9]))["points"][0][
        "test"
    ]
    assert (shown["coverage"], shown["accuracy"], shown["rejected"]) == (0, None, 9)


def test_a_silent_point_of_a_front_is_none_too():
    clf = fixed(threshold=1.0, search=Exact(), random_state=0).fit(HEART.data[["age", "sex"]], HEART.target)
    assert np.isnan(clf.front_.accuracy).all()
    assert summarise(clf.deployed_)["points"][0]["validation"]["accuracy"] is None


def test_settings_name_versions_and_no_addresses(fitted):
    settings = summarise(fitted.deployed_)["settings"]
    assert settings["emsco"] == __version__
    assert settings["random_state"] == "0"
    assert settings["search"].startswith("Evolution(population_size=40")
    assert "costs" not in settings
    chooser = fixed(search=Exact(), choose=lambda front: 0, random_state=0)
    chooser.fit(HEART.data[["age", "sex"]], HEART.target)
    assert "0x" not in " ".join(summarise(chooser.deployed_)["settings"].values())


def test_evaluation_and_notes_of_the_classifier_are_the_default(fitted, evaluation):
    notes = {"data": "heart", "bound": np.inf, "missing": np.nan}
    summary = summarise(replace(fitted.deployed_, evaluation=evaluation, notes=notes))
    assert summary["n_test"] == 99
    assert summary["notes"] == {"data": "heart", "bound": "inf", "missing": "nan"}


def test_an_evaluation_of_another_classifier_is_an_error(fitted, evaluation):
    other = Evaluation(evaluation.points[:1], evaluation.everything, evaluation.always, evaluation.classes)
    with pytest.raises(InvalidInputError, match=r"evaluation has 1 designs, the classifier has \d+"):
        summarise(fitted.deployed_, evaluation=other)


def test_a_confusion_table_nobody_reads_is_left_out():
    X = np.random.default_rng(0).normal(size=(84, 2))
    y = np.arange(84) % 21
    clf = MultiStageClassifier(threshold=0.0).fit(X, y)
    assert summarise(clf.deployed_, evaluation=clf.evaluate(X, y))["points"][0]["test"]["confusion"] is None


def test_the_flow_is_what_decide_does(fitted, held_out):
    X, y = held_out
    decisions = fitted.decide(X)
    known, unknown = stage_flow(fitted.deployed_, X, y), stage_flow(fitted.deployed_, X)
    assert unknown == {**known, "right": None}
    assert known["reached"] == [int((decisions.stage >= j).sum()) for j in range(len(fitted.stages_))]
    assert known["rejected"] == (~decisions.conclusive).sum()
    assert sum(known["right"]) == (decisions.conclusive & (decisions.label.data == y)).sum()
    assert (
        stage_flow(fitted.deployed_)["reached"] == fitted.front_.reached[fitted.point_, : len(fitted.stages_)].tolist()
    )


def test_a_flow_of_nothing_is_an_error(fitted, held_out):
    X, y = held_out
    with pytest.raises(InvalidInputError, match="y was given without X"):
        stage_flow(fitted.deployed_, y=y)
    with pytest.raises(InvalidInputError, match="no rows"):
        stage_flow(fitted.deployed_, X[:0])
    with pytest.raises(InvalidInputError, match="MultiStageClassifier has no validation rows"):
        stage_flow(MultiStageClassifier().fit(X, y).deployed_)


def test_a_sweep_is_deciding_with_other_thresholds(fitted, held_out):
    X, y = held_out
    results = threshold_sweep(fitted.deployed_, X, y, [0.0, 0.6, 0.75, 1.0])
    assert results[0].answered[0] == 99
    assert results[2].coverage == fitted.decide(X).conclusive.mean()
    assert results[1].coverage > results[2].coverage > results[3].coverage
    assert results[2].paid == tuple(fitted.deployed_.paid)


def test_reliability_is_of_the_rows_that_reach_a_stage(fitted, held_out):
    X, y = held_out
    stages = stage_reliability(fitted.deployed_, X, y, 4)
    assert [sum(stage["count"]) for stage in stages] == stage_flow(fitted.deployed_, X)["reached"]
    for stage in stages:
        assert sorted(stage["confidence"]) == stage["confidence"]
        assert stage["interval"][0] == binomial_interval(stage["right"][0], stage["count"][0])
        assert all(0 <= right <= count for right, count in zip(stage["right"], stage["count"], strict=True))
        assert len(stage["count"]) <= max(sum(stage["count"]) // 10, 1)


def test_at_threshold_one_the_last_stage_answers_for_everyone(held_out):
    X, y = held_out
    clf = MultiStageClassifier([["age"], ["time"]], {"age": 1, "time": 1}, threshold=1.0)
    X = X[["age", "time"]]
    clf.fit(X, y)
    last = stage_reliability(clf.deployed_, X, y, 3)[-1]
    assert sum(last["count"]) == 99
    assert sum(last["right"]) == (clf.predict(X) == y).sum()
    clf.threshold = 0.0
    assert stage_reliability(clf.deployed_, X, y, 3)[-1]["count"] == []
