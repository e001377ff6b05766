"""Designs that leave features out, from fit to file, page and command line."""

import json

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest

import emsco
from emsco import Accept, Acquire, BestFirst, Evolution, Exact, MultiStageClassifier, Reject
from emsco.cli.app import run
from emsco.data.files import TableFile
from emsco.deployed.streaming import predict_file
from emsco.designs.partition import count_solutions
from emsco.exceptions import CheckpointError, InvalidInputError, MissingColumnError, SpaceTooLargeError
from emsco.report import StagesDisplay, render_report
from emsco.report.records import facts_record, point_record
from emsco.report.summary import summarise
from emsco.scoring.words import describe
from tests.classifiers import fixed
from tests.deployed.test_export import assert_same_walk
from tests.search.exact.test_proof import picked
from tests.storage.test_storage import GROUPED, assert_same, round_trip
from tests.test_estimators import PANEL, patients

SEARCHES = [Exact(), BestFirst(), Evolution(population_size=40, max_generations=10)]


def fit(search="auto", costs=PANEL, **kwargs):
    X, y = patients()
    return fixed(costs, threshold=0.8, search=search, max_stages=3, removal=True, random_state=0, **kwargs).fit(X, y)


@pytest.fixture(scope="module")
def fitted():
    clf = fit()
    smallest = int(((clf.front_.designs >= 0).sum(axis=1)).argmin())
    return clf.use(smallest)


@pytest.fixture
def blood():
    """A design that never buys age, ward and visits."""
    X, y = patients()
    clf = MultiStageClassifier([["blood panel"], ["smokes"]], PANEL, threshold=0.8).fit(X, y)
    assert 0 < clf.decide(X).stage.sum() < len(X)
    return clf, X, y


@pytest.mark.parametrize("search", SEARCHES, ids=lambda search: type(search).__name__)
@pytest.mark.parametrize("costs", [PANEL, GROUPED], ids=["panel", "groups"])
def test_the_front_is_what_decide_does_on_the_validation_rows(search, costs):
    X, y = patients()
    X_val, y_val = patients(150, seed=1)
    clf = fixed(costs, threshold=0.8, search=search, max_stages=3, removal=True, random_state=0)
    clf.fit(X, y, X_val=X_val, y_val=y_val)
    assert (clf.front_.designs == -1).any()
    for i, point in enumerate(clf.front_):
        decisions = clf.use(i).decide(X_val)
        assert decisions.conclusive.mean() == pytest.approx(point.coverage)
        assert decisions.cost.mean() == pytest.approx(point.mean_cost)
        right = (decisions.label.data == y_val)[decisions.conclusive]
        assert right.mean() == pytest.approx(point.accuracy) if right.size else np.isnan(point.accuracy)
        assert not decisions.bought[:, point.design < 0].any()


def test_the_front_with_removal_is_at_least_as_good_everywhere():
    X, y = patients()
    whole = fixed(PANEL, threshold=0.8, search=Exact(), max_stages=3, random_state=0).fit(X, y).front_
    front = fit(Exact()).front_
    assert front.certificate.proven
    assert front.certificate.n_designs == count_solutions(5, 3, removal=True)
    for point in whole:
        accuracy = np.nan_to_num(front.accuracy)
        as_good = (front.coverage >= point.coverage) & (accuracy >= np.nan_to_num(point.accuracy))
        assert (as_good & (front.mean_cost <= point.mean_cost)).any()


def test_auto_proves_it_where_that_takes_seconds_and_a_large_space_is_refused():
    assert picked(6, 6, n_samples=100) == Exact()
    assert picked(16, 10, n_samples=100) == BestFirst(max_designs=30_000, focus=0.5)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 20)), rng.integers(2, size=60)
    with pytest.raises(SpaceTooLargeError, match="buy every feature \\(no removal\\), allow fewer stages"):
        fixed(removal=True, search=Exact()).fit(X, y)


def test_everything_is_trained_to_compare_with_even_if_no_design_buys_it(blood):
    clf, X, y = blood
    assert_array_equal(clf.design_, [-1, 1, -1, 0, -1])
    evaluation = clf.evaluate(X, y)
    everything = MultiStageClassifier(None, PANEL, threshold=0.8).fit(X, y)
    assert evaluation.everything == everything.evaluate(X, y).points[0]
    assert evaluation.everything.paid == (44.0,)
    assert evaluation.points[0].paid == (40.0, 41.0)
    assert clf.stages_[0].price == 40
    assert clf.stages_[1].price == 1


def test_refit_trains_everything_too():
    X, y = patients()
    evaluation = fit(refit=True, preset="paper").evaluate(X, y)
    everything = MultiStageClassifier(None, PANEL, threshold=0.8, encoding="raw").fit(X, y)
    assert evaluation.everything == everything.evaluate(X, y).points[0]


@pytest.mark.parametrize("module", ["pandas", "polars"])
def test_columns_never_bought_may_be_absent_or_hold_anything(blood, module):
    clf, X, _ = blood
    expected = clf.decide(X)
    lacking = X.drop(columns=["age", "ward", "visits"])
    if module == "polars":
        lacking = pytest.importorskip("polars").from_pandas(lacking)
    else:
        lacking = lacking.assign(ward=object())
    decisions = clf.decide(lacking)
    assert_array_equal(decisions.confidence, expected.confidence)
    assert_array_equal(decisions.cost, expected.cost)
    with pytest.raises(MissingColumnError, match="'creatinine'"):
        clf.decide(X.drop(columns=["creatinine"]))
    with pytest.raises(InvalidInputError, match="2 columns"):
        clf.decide(X[["smokes", "sodium"]].to_numpy(dtype=float))


def test_the_compiled_walk_needs_no_columns_that_are_never_bought():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    y = X["b"] + X["d"] + rng.normal(size=200) > 0
    clf = MultiStageClassifier([["d"], ["b"]], threshold=0.8).fit(X, y)
    expected = clf.decide(X)
    decisions = clf.decide(X[["d", "b"]])
    assert_array_equal(decisions.confidence, expected.confidence)
    assert_array_equal(decisions.stage, expected.stage)
    assert clf.decide(X[["d", "b"]].assign(a=np.inf)).conclusive.sum() == expected.conclusive.sum()
    one = clf.session()
    one.give(X.iloc[0].to_dict())
    assert one.step().confidence == expected.confidence[0]


def test_sessions_never_ask_for_what_is_never_bought(blood):
    clf, X, _ = blood
    expected = clf.decide(X)
    asked = set()

    def acquire(row, request):
        asked.update(request.columns)
        return {name: row[name] for name in request.columns}

    decisions = clf.run(acquire, X.to_dict("records"))
    assert_array_equal(decisions.confidence, expected.confidence)
    assert_array_equal(decisions.cost, expected.cost)
    assert asked == {"smokes", "sodium", "creatinine"}
    session = clf.session()
    assert session.step() == Acquire(("blood panel",), ("sodium", "creatinine"), 40.0, 0)
    session.give({"age": 50, "ward": "a", **X.iloc[1][["smokes", "sodium", "creatinine"]].to_dict()})
    assert isinstance(session.step(), Accept | Reject)
    assert session.step().cost == expected.cost[1]
    assert session.state["given"].keys() == {"smokes", "sodium", "creatinine"}
    with pytest.raises(InvalidInputError, match="there is no column"):
        clf.session().give({"aeg": 50})


def test_a_model_file_keeps_designs_and_the_set_of_everything(fitted, blood, tmp_path):
    X, y = patients()
    evaluation = fitted.evaluate(X, y)
    copy = round_trip(fitted, tmp_path, evaluation=evaluation)
    assert copy.removal is True
    assert_same(fitted, copy, X, y)
    assert copy.evaluate(X, y) == evaluation == copy.evaluation_
    given, _, _ = blood
    copy = round_trip(given, tmp_path)
    assert_same(given, copy, X, y)
    assert copy.design == [["blood panel"], ["smokes"]]
    assert copy.evaluate(X, y) == given.evaluate(X, y)


def test_a_checkpoint_of_designs_that_buy_all_is_another_run(tmp_path):
    X, y = patients()
    clf = fixed(PANEL, search=SEARCHES[2], max_stages=3, random_state=0, removal=False)
    clf.fit(X, y, checkpoint=tmp_path / "run.ckpt")
    with pytest.raises(CheckpointError, match="removal: False there, True here"):
        clf.set_params(removal=True).fit(X, y, checkpoint=tmp_path / "run.ckpt")


def test_onnx_graphs_take_what_is_bought(blood, tmp_path):
    clf, X, _ = blood
    assert_same_walk(clf, X.drop(columns=["age", "ward", "visits"]), tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert [record["features"] for record in manifest["stages"]] == [["blood panel"], ["smokes"]]


def test_a_file_without_the_columns_never_bought_is_decided(blood, tmp_path):
    clf, X, _ = blood
    X.drop(columns=["age", "visits"]).astype({"smokes": int}).to_csv(tmp_path / "in.csv", index=False)
    predict_file(clf.deployed_, TableFile(tmp_path / "in.csv"), tmp_path / "out.csv", keep=["ward"])
    out = pd.read_csv(tmp_path / "out.csv")
    expected = clf.decide(X)
    assert_array_equal(out["confidence"], expected.confidence)
    assert set(out["bought"]) == {"blood panel", "blood panel; smokes"}


def test_what_is_never_bought_is_said_where_a_design_is_shown(fitted, blood):
    names = fitted.front_.feature_names
    assert describe(np.array([-1, 0, -1, 1, -1]), names) == "smokes | blood panel; never age, ward, visits"
    assert describe(np.array([-1, 0, -1, -1, -1]), names) == "smokes; never 4 others"
    text = fitted.front_.to_text(width=200)
    assert "; never " in text
    assert fitted.front_.to_frame()["design"].str.contains("; never ").any()
    clf, X, _ = blood
    record = facts_record(clf.deployed_)
    assert record["never"] == ["age", "ward", "visits"]
    assert point_record(fitted.deployed_, fitted.point_)["never"] == [
        name for name, stage in zip(names, fitted.design_, strict=True) if stage < 0
    ]
    assert summarise(clf.deployed_)["points"][0]["design"] == [-1, 1, -1, 0, -1]
    assert '"design":[-1,1,-1,0,-1]' in render_report(clf)
    display = StagesDisplay.from_estimator(clf, X)
    assert "never bought: age, ward, visits" in display.ax_[0].get_xlabel()


def test_the_command_line_fits_and_shows_it(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = patients()
    X.assign(fate=y).to_csv("patients.csv", index=False)
    fit = ["fit", "patients.csv", "--target", "fate", "--threshold", "0.8", "--max-stages", "2", "--removal"]
    assert run([*fit, "--best", "cost"]) == 0
    assert "Never bought: " in capsys.readouterr().out
    clf = emsco.load("model.emsco")
    assert clf.removal is True
    assert (clf.design_ < 0).sum() == 5  # the cheapest buys one column
    assert run(["inspect", "model.emsco"]) == 0
    assert capsys.readouterr().out.count("Never bought: ") == 1
    assert run(["front", "model.emsco"]) == 0
    assert "never" in capsys.readouterr().out
    X[[name for name, stage in zip(X, clf.design_, strict=True) if stage >= 0]].to_csv("new.csv", index=False)
    assert run(["predict", "model.emsco", "new.csv", "-o", "out.csv"]) == 0
    assert len(pd.read_csv("out.csv")) == len(X)
    assert run([*fit[:-1], "--no-removal"]) == 0
    assert (emsco.load("model.emsco").design_ >= 0).all()
