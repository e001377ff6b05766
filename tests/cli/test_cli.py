"""The command line as a user has it: files in, files and words out, one line for a mistake."""

import json
import re
import signal
import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from rich.console import Console
from sklearn.ensemble import HistGradientBoostingClassifier

import emsco
from emsco import EMSCOClassifier, Loss, MultiStageClassifier
from emsco.cli.main import _SECTIONS, run
from emsco.cli.main import emsco as emsco_command
from emsco.datasets import load_heart_failure
from emsco.report.learning import learning_record
from tests.data.test_files import mutations

HEART = load_heart_failure()
TARGET = "DEATH_EVENT"
FIT = ["--target", TARGET, "--threshold", "0.8", "--max-stages", "3"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The heart data, prices and a fitted model."""
    here = tmp_path_factory.mktemp("cli")
    frame = HEART.data.assign(**{TARGET: HEART.target})
    frame.to_csv(here / "heart.csv", index=False)
    frame.to_parquet(here / "heart.parquet")
    prices = pd.DataFrame({"feature": HEART.prices.keys(), "price": HEART.prices.values()})
    prices.to_csv(here / "prices.csv", index=False)
    fit = ["fit", str(here / "heart.csv"), *FIT, "--costs", str(here / "prices.csv"), "-o", str(here / "model.emsco")]
    assert run(fit) == 0
    return here


@pytest.fixture
def model(folder, tmp_path):
    path = tmp_path / "model.emsco"
    path.write_bytes((folder / "model.emsco").read_bytes())
    return path


def call(capsys, *arguments, expect=0):
    capsys.readouterr()
    code = run([str(a) for a in arguments])
    printed = capsys.readouterr()
    assert code == expect, printed.err
    return printed


def test_fit_does_what_python_does_and_prints_honest_figures(folder, tmp_path, capsys):
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, "--costs", folder / "prices.csv",
                   "-o", tmp_path / "m.emsco").out  # fmt: skip
    assert "target DEATH_EVENT, 224 training rows, 75 test rows" in printed
    assert "on 75 test cases" in printed
    assert "buy everything, always answer" in printed
    clf = emsco.load(tmp_path / "m.emsco")
    assert clf.front_.certificate.proven
    assert clf.notes_["target"] == TARGET
    assert clf.notes_["command"].startswith("emsco fit heart.csv --target DEATH_EVENT")
    assert clf.evaluation_.n_rows == 75
    again = EMSCOClassifier(**clf.get_params())
    rest = [i for i in range(299) if i not in set(_held_out())]
    X = HEART.data.astype(float)
    again.fit(X.iloc[rest], HEART.target.iloc[rest])
    assert_array_equal(again.front_.designs, clf.front_.designs)
    assert_array_equal(again.front_.coverage, clf.front_.coverage)


def _held_out():
    from emsco.data.splits import split_rows

    return split_rows(HEART.target.to_numpy(), 0.25, np.random.default_rng(0), np.array([0, 1]))[1]


def test_json_of_fit_says_the_same(folder, tmp_path, capsys):
    printed = call(capsys, "fit", folder / "heart.parquet", *FIT, "--costs", folder / "prices.csv", "--json",
                   "-o", tmp_path / "m.emsco", "--max-cost", 400, "--best", "accuracy")  # fmt: skip
    assert printed.err == ""
    record = json.loads(printed.out)
    clf = emsco.load(tmp_path / "m.emsco")
    assert record["points"] == len(clf.front_)
    assert record["in_use"]["point"] == clf.point_ == clf.front_.choose(max_cost=400, best="accuracy")
    assert record["in_use"]["mean_cost"] <= 400
    assert record["certificate"]["proven"]
    test = clf.evaluation_.points[clf.point_]
    assert record["test"]["in_use"]["accuracy"]["value"] == (test.accuracy if sum(test.answered) else None)
    assert [record["test"]["in_use"]["coverage"]["interval_95"][i] for i in (0, 1)] == list(test.interval("coverage"))


def test_a_limit_that_nothing_meets_loses_no_work(folder, tmp_path, capsys):
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, "--max-cost", 0.01, "-o", tmp_path / "m.emsco", expect=1)
    assert "error: no point of the front has --max-cost 0.01; set --max-cost " in printed.err
    clf = emsco.load(tmp_path / "m.emsco")
    assert f"The model was written, with point {clf.point_} in use." in printed.err
    assert clf.point_ == clf.front_.choose(best="combined")


def test_searches_estimators_and_tests_can_be_chosen(folder, tmp_path, capsys):
    out = tmp_path / "m.emsco"
    frame = pd.read_csv(folder / "heart.csv")
    frame.iloc[:100].to_csv(tmp_path / "test.csv", index=False)
    frame.iloc[100:].to_csv(tmp_path / "train.csv", index=False)
    call(capsys, "fit", tmp_path / "train.csv", *FIT, "-o", out, "--search", "exact", "--time-limit", 60,
         "--test", tmp_path / "test.csv", "--drop", "time", "--drop", "sex", "--refit", "--seed", 3)  # fmt: skip
    clf = emsco.load(out)
    assert clf.evaluation_.n_rows == 100
    assert clf.n_features_in_ == 10
    assert clf.refit
    printed = call(capsys, "fit", tmp_path / "train.csv", *FIT, "-o", out, "--search", "best-first", "--no-test")
    assert "(optimistic)" in printed.out
    assert emsco.load(out).evaluation_ is None
    call(capsys, "fit", tmp_path / "train.csv", "--target", TARGET, "-o", out, "--max-stages", 2, "--estimator",
         "naive-bayes", "--search", "best-first", *[x for c in list(frame)[:8] for x in ("--drop", c)])  # fmt: skip
    assert type(emsco.load(out).stages_[0].model).__name__ == "GaussianNB"


SMALL = ["--max-stages", "2", *[x for c in list(HEART.data)[:7] for x in ("--drop", c)]]


def test_a_preset_says_what_is_not_given(folder, tmp_path, capsys):
    out = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", out, *SMALL]
    names = ("removal", "search", "validation", "encoding", "C", "choose", "final_estimator", "calibration")
    for preset in ("best", "paper"):
        printed = call(capsys, *fit, "--preset", preset)
        clf = emsco.load(out)
        assert clf.preset == preset
        assert all(getattr(clf, name) is None for name in names)
        assert clf._set_to("removal") == (preset == "best")
        assert clf.point_ == (clf.front_.choose(best="combined") if preset == "best" else 0)
        for sentence in learning_record(clf)["in_words"]:
            assert sentence in printed.out
            assert sentence in " ".join(call(capsys, "inspect", out).out.split())
    assert type(clf.search_).__name__ == "Evolution"
    assert (clf.encoding_, clf.C_, round(clf.validation_, 2)) == ("linear", 1.0, 0.33)
    shown = json.loads(call(capsys, *fit, "--preset", "paper", "--no-removal", "--json").out)["learning"]
    assert shown == json.loads(call(capsys, "inspect", out, "--json").out)["learning"] == learning_record(clf)
    command = emsco.load(out).notes_["command"]
    assert command.endswith("--preset paper --max-stages 2 --no-removal --output m.emsco --json"), command


def test_how_stages_learn_can_be_chosen(folder, tmp_path, capsys):
    out = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", out, *SMALL, "--search", "evolution"]
    printed = call(capsys, *fit, "--validation", 3, "--encoding", "spline", "--regularisation", 0.3, "--removal",
                   "--no-test").out  # fmt: skip
    clf = emsco.load(out)
    assert (clf.validation, clf.encoding, clf.C, clf.removal) == (3, "spline", 0.3, True)
    assert "logistic regression with C = 0.3; numbers are encoded as ranks with spline terms." in printed
    assert "by 3-fold cross-validation: each row by stages trained without it" in printed
    assert f"On {clf.front_.n_samples} out-of-fold rows, which also selected the design (optimistic)" in printed
    assert f"Figures of {clf.front_.n_samples} out-of-fold rows" in " ".join(call(capsys, "front", out).out.split())
    assert "validation rows" not in printed
    printed = call(capsys, *fit, "--validation", "0.4", "--regularisation", "auto", "--final", "boosting", "--refit",
                   "--no-test").out  # fmt: skip
    clf = emsco.load(out)
    assert (clf.validation, clf.C, clf.final_estimator) == (0.4, "auto", "boosting")
    assert type(clf.stages_[0].model).__name__ == "HistGradientBoostingClassifier"
    assert "The stages of the front were then trained with gradient boosting and validated again" in printed
    assert "on 40% of the rows, by stages trained on the other rows." in printed
    assert "The stages in use were trained on both parts." in printed
    assert f"On {clf.front_.n_samples} validation rows" in printed
    printed = call(capsys, *fit, "--validation", "0.4", "--calibration", "sigmoid").out
    assert "calibrated (sigmoid)" in printed
    assert emsco.load(out).calibration == "sigmoid"


def test_boosting_in_the_search_is_boosting_by_name(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.stages.recipe.boosting", lambda: HistGradientBoostingClassifier(max_iter=3))
    call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "-o", tmp_path / "m.emsco", "--estimator", "boosting",
         "--search", "exact", "--validation", "0.4", "--max-stages", 1, *SMALL[2:], "--drop", "sex", "--drop",
         "smoking")  # fmt: skip
    clf = emsco.load(tmp_path / "m.emsco")
    assert clf.estimator == "boosting"
    assert learning_record(clf)["in_words"][0] == "Stage classifier: gradient boosting; numbers are standardised."


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--preset", "worst"], 2, "'worst' is not one of 'best', 'paper'"),
        (["--validation", "half"], 2, "--validation half: give a share such as 0.33, or a number of folds such as 5"),
        (
            ["--validation", "1"],
            1,
            "--validation must be a share of the rows strictly between 0 and 1, such as 1/3, or a "
            "whole number of folds, such as 5; got 1.",
        ),
        (["--validation", "1.5"], 1, "validation must be"),
        (["--encoding", "ranks"], 2, "'ranks' is not one of 'linear', 'rank', 'spline', 'auto'."),
        (["--encoding", "latin-1"], 2, "For the encoding of the file, give --file-encoding latin-1."),
        (["--regularisation", "strong"], 2, "--regularisation strong: give a number, or auto"),
        (["--regularisation", "0"], 1, "--regularisation must be a positive number or auto; got 0"),
        (["--regularisation", "nan"], 1, "--regularisation must be a positive number or auto; got nan"),
        (["--final", "logistic"], 2, "'logistic' is not one of 'tree', 'forest', 'boosting', 'naive-bayes'"),
        (["--calibration", "platt"], 2, "'platt' is not one of 'sigmoid', 'isotonic', 'temperature'"),
        (["--time-limit", "3", "--preset", "paper"], 2, "goes with --search exact"),
    ],
)
def test_learning_that_makes_no_sense_is_one_line(options, code, says, folder, tmp_path, capsys):
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", tmp_path / "m.emsco", *options]
    printed = call(capsys, *fit, expect=code).err
    assert says in " ".join(printed.split())
    assert len([line for line in printed.splitlines() if line.lower().startswith("error")]) == 1


def test_without_skops_it_is_said_before_the_search(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.cli.main.find_spec", lambda name: None)
    for options in (["--final", "boosting"], ["--calibration", "sigmoid"], ["--estimator", "tree"]):
        fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", tmp_path / "m.emsco", *options]
        assert "pip install 'emsco[skops]'" in call(capsys, *fit, expect=1).err


def test_the_options_of_fit_stand_under_headings(capsys):
    printed = call(capsys, "fit", "--help").out
    headings = [line for line in printed.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [f"{title}:" for title in _SECTIONS.values()]
    for option in emsco_command.commands["fit"].params[1:]:
        assert len(re.findall(rf"^  {option.opts[0]}(?![\w-])", printed, re.MULTILINE)) == 1, option.name


def test_objectives_can_be_chosen(folder, tmp_path, capsys):
    out, loss = tmp_path / "m.emsco", tmp_path / "loss.csv"
    loss.write_text("true,0,1,reject\n1,5,0,0.5\n0,0,1,0.25\n")
    objectives = ["--objective", "loss", "--objective", "cost", "--objective", "fnr", "--loss", loss]
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, "-o", out, *objectives, "--knee")
    assert "Pareto-optimal points in" in printed.out
    clf = emsco.load(out)
    assert clf.front_.objectives == ("loss", "cost", "fnr")
    assert clf.objectives[0] == Loss([[0, 1], [5, 0]], reject=[0.25, 0.5])
    assert clf.point_ == clf.front_.knee()
    header = next(line for line in call(capsys, "front", out).out.splitlines() if "coverage" in line)
    assert header.split()[:8] == ["point", "stages", "coverage", "accuracy", "mean", "cost", "loss", "fnr"]
    points = json.loads(call(capsys, "front", out, "--json").out)
    assert points[0]["objectives"] == dict(zip(clf.front_.objectives, clf.front_.values[0].tolist(), strict=True))
    (tmp_path / "loss.json").write_text('{"0": {"0": 0, "1": 1, "reject": 0.25}, "1": {"0": 5, "1": 0, "reject": 0.5}}')
    again = tmp_path / "again.emsco"
    call(capsys, "fit", folder / "heart.csv", *FIT, "-o", again, *objectives[:-1], tmp_path / "loss.json")
    assert_array_equal(emsco.load(again).front_.values, clf.front_.values)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--objective", "loss", "--objective", "cost"], 2, "--objective loss and --loss FILE go together"),
        (["--objective", "fpr"], 2, "give --objective twice or more"),
        (["--objective", "fpr", "--objective", "fpr"], 1, "holds fpr twice"),
        (["--objective", "fpr", "--objective", "cost", "--search", "exact"], 1, "not of fpr; use --search best-first"),
        (["--knee", "--max-cost", "3"], 2, "--knee chooses by itself"),
        (["--one-standard-error"], 2, "--one-standard-error needs --best accuracy"),
        (["--objective", "speed"], 2, "'speed' is not one of"),
    ],
)
def test_objectives_and_choices_that_make_no_sense_are_one_line(options, code, says, folder, tmp_path, capsys):
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, "-o", tmp_path / "m", *options, expect=code)
    assert says in " ".join(printed.err.split())


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("loss.csv", "true,0,1\n0,0,1\n1,5,0\n", "each with a price for each of 0, 1, reject"),
        ("loss.csv", "class,0,1,reject\n0,0,1,1\n", "whose first column is named true"),
        ("loss.csv", "true,0,1,reject\n0,0,1\n1,5,0,0\n", "whose first column is named true"),
        ("loss.csv", "true,0,1,reject\n0,0,x,1\n1,5,0,1\n", "loss of '1' for '0' in .* is 'x'"),
        ("loss.csv", "true,0,1,reject\n0,0,-1,1\n1,5,0,1\n", "numbers of at least 0"),
        ("loss.csv", "", "whose first column is named true"),
        ("loss.json", "[[0, 1], [5, 0]]", "must have a line per true class, 0, 1"),
        ("loss.json", "{", "is not JSON"),
        ("loss.json", '{"0": 3, "1": 4}', "must have a line per true class, 0, 1"),
    ],
)
def test_loss_files_that_make_no_sense_are_explained(name, text, says, folder, tmp_path, capsys):
    (tmp_path / name).write_text(text)
    options = ["--objective", "loss", "--objective", "cost", "--loss", tmp_path / name, "-o", tmp_path / "m.emsco"]
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, *options, expect=1)
    assert re.search(says, printed.err)


def test_use_takes_the_knee_and_the_simplest(model, capsys):
    front = emsco.load(model).front_
    call(capsys, "use", model, "--knee")
    assert emsco.load(model).point_ == front.knee()
    call(capsys, "use", model, "--best", "accuracy", "--one-standard-error", "--max-cost", 500)
    assert emsco.load(model).point_ == front.choose(best="accuracy", one_standard_error=True, max_cost=500)
    call(capsys, "use", model, "--best", "combined")
    assert emsco.load(model).point_ == front.combined.argmax()
    assert "not both" in call(capsys, "use", model, 1, "--knee", expect=2).err


def test_front_lists_points_within_limits(model, capsys):
    clf = emsco.load(model)
    printed = call(capsys, "front", model, "--all").out
    assert f"{len(clf.front_)} of {len(clf.front_)} designs" in printed
    assert f"*{clf.point_}" in printed
    points = json.loads(call(capsys, "front", model, "--max-cost", 400, "--sort", "cost", "--json").out)
    assert [p["point"] for p in points] == clf.front_.order(max_cost=400, best="cost").tolist()
    assert np.all(np.diff([p["mean_cost"] for p in points]) >= 0)
    assert len(points) == (clf.front_.mean_cost <= 400).sum()
    assert points[0]["thresholds"] == [[0.8]]
    assert points[0]["stages"] == [[n for n, s in zip(clf.front_.feature_names, clf.front_.designs[points[0]["point"]],
                                    strict=True) if s == j] for j in range(len(points[0]["stages"]))]  # fmt: skip
    assert "set --max-cost" in call(capsys, "front", model, "--max-cost", 0.1, expect=1).err


def test_use_puts_another_point_into_use_and_keeps_the_rest(model, capsys):
    before = emsco.load(model)
    call(capsys, "use", model, 3)
    after = emsco.load(model)
    assert after.point_ == 3
    assert after.evaluation_ == before.evaluation_
    assert after.notes_ == before.notes_
    assert json.loads(call(capsys, "use", model, "--best", "cost", "--json").out)["in_use"]
    assert emsco.load(model).point_ == before.front_.choose(best="cost")
    assert "no point of the front" in call(capsys, "use", model, 999, expect=1).err
    assert "give the number of a point, limits" in call(capsys, "use", model, expect=2).err
    assert "not both" in call(capsys, "use", model, 1, "--max-cost", 3, expect=2).err


def test_predict_writes_a_row_per_case(folder, model, tmp_path, capsys):
    out = tmp_path / "out.csv"
    printed = call(capsys, "predict", model, folder / "heart.csv", "-o", out, "--keep", "age")
    decisions = emsco.load(model).decide(HEART.data)
    table = pd.read_csv(out)
    assert_array_equal(table["cost"], decisions.cost)
    assert_array_equal(table["label"] == "inconclusive", ~decisions.conclusive)
    assert f"299 cases: {decisions.conclusive.sum()} with a label" in printed.out
    record = json.loads(call(capsys, "predict", model, folder / "heart.csv", "-o", out, "--json").out)
    assert record["conclusive"] == decisions.conclusive.sum()
    assert record["mean_cost"] == pytest.approx(decisions.cost.mean())


def test_evaluate_knows_the_target(folder, model, capsys):
    record = json.loads(call(capsys, "evaluate", model, folder / "heart.csv", "--json").out)
    clf = emsco.load(model)
    expected = clf.evaluate(HEART.data, HEART.target).points[clf.point_]
    assert record["rows"] == 299
    assert record["in_use"]["accuracy"]["value"] == expected.accuracy
    assert "on 299 test cases" in call(capsys, "evaluate", model, folder / "heart.csv").out
    assert (
        "no column 'lived'" in call(capsys, "evaluate", model, folder / "heart.csv", "--target", "lived", expect=1).err
    )


def test_labels_that_are_text_or_missing(tmp_path, capsys):
    frame = HEART.data.assign(outcome=np.where(HEART.target == 1, "died", "lived"))
    frame.loc[:4, "outcome"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    printed = call(capsys, "fit", tmp_path / "t.csv", "--target", "outcome", "--max-stages", 2, "-o", tmp_path / "m")
    assert "warning: 5 rows of" in printed.err
    assert emsco.load(tmp_path / "m").classes_.tolist() == ["died", "lived"]
    assert "on 294 test cases" in call(capsys, "evaluate", tmp_path / "m", tmp_path / "t.csv").out


def test_inspect_says_what_is_in_a_file(model, capsys):
    printed = call(capsys, "inspect", model).out
    for expected in ("EMSCOClassifier", "proven", "heart.csv", "serum_creatinine", "emsco fit heart.csv"):
        assert expected in printed
    record = json.loads(call(capsys, "inspect", model, "--json").out)
    assert record["prices"] == {k: float(v) for k, v in HEART.prices.items()}


def test_the_price_model_is_given_by_options_or_in_a_file(folder, tmp_path, capsys):
    fit = ["fit", folder / "heart.csv", *FIT, "--search", "evolution", "-o", tmp_path / "m.emsco"]
    printed = call(capsys, *fit, "--costs", folder / "prices.csv", "--overhead", "2.5", "--parallel").out
    rule = "A stage takes as long as its slowest purchase, plus an overhead of 2.5."
    assert rule in printed
    assert rule in " ".join(call(capsys, "inspect", tmp_path / "m.emsco").out.split())
    assert json.loads(call(capsys, "inspect", tmp_path / "m.emsco", "--json").out)["price model"] == rule
    assert emsco.load(tmp_path / "m.emsco")._prices.total == 102.5
    content = {"prices": HEART.prices, "overhead": 2.5, "parallel": True}
    (tmp_path / "p.json").write_text(json.dumps(content), encoding="utf-8")
    assert rule in call(capsys, *fit, "--costs", tmp_path / "p.json").out
    assert "plus an overhead of 4" in call(capsys, *fit, "--costs", tmp_path / "p.json", "--overhead", "4").out
    assert "total price 13." in call(capsys, *fit, "--overhead", "1").out
    assert "'overhead' is -1" in call(capsys, *fit, "--overhead", "-1", expect=1).err


def test_a_model_of_a_given_design_has_no_front(tmp_path, capsys):
    clf = MultiStageClassifier([["age"], ["sex"]]).fit(HEART.data[["age", "sex"]], HEART.target)
    clf.save(tmp_path / "m.emsco")
    assert "no front" in call(capsys, "front", tmp_path / "m.emsco", expect=2).err
    assert "MultiStageClassifier" in call(capsys, "inspect", tmp_path / "m.emsco").out
    call(capsys, "report", tmp_path / "m.emsco", "-o", tmp_path / "r.html")


def test_report_writes_a_page(folder, model, tmp_path, capsys):
    page = tmp_path / "r.html"
    call(capsys, "report", model, "-o", page, "--data", folder / "heart.csv")
    assert page.read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_export_writes_graphs(model, tmp_path, capsys):
    call(capsys, "export", model, tmp_path / "onnx")
    assert (tmp_path / "onnx" / "manifest.json").exists()


def ask(model, answers, *options):
    return subprocess.run(
        [sys.executable, "-m", "emsco", "ask", str(model), *options],
        input="".join(f"{answer}\n" for answer in answers), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_ask_decides_as_decide_does(model):
    clf = emsco.load(model)
    decisions = clf.decide(HEART.data)
    for row in (0, int(np.argmax(~decisions.conclusive))):
        columns = [c for s in clf.stages_[: decisions.stage[row] + 1] for c in s.new_columns]
        done = ask(model, [HEART.data.iloc[row, c] for c in columns])
        assert done.returncode == 0, done.stderr
        last = done.stdout.strip().splitlines()[-1]
        assert f"{decisions.cost[row]:,.6g} paid" in last
        assert f"{decisions.confidence[row]:.1%} sure" in last
        assert ("inconclusive" in last) == (not decisions.conclusive[row])


def test_ask_asks_again_takes_nothing_for_an_answer_and_goes_on_from_a_file(model, tmp_path):
    state = tmp_path / "case.json"
    done = ask(model, ["much", "", "q"], "--state", str(state))
    assert done.returncode == 130
    assert "'much' is not a number" in done.stdout
    first = emsco.load(model).stages_[0].features
    assert json.loads(state.read_text())
    again = ask(model, ["1"] * 20, "--state", str(state))
    assert again.returncode == 0, again.stderr
    assert "paid." in again.stdout
    assert f"  {first[0]}:" not in again.stdout, "it was answered before"
    state.write_text("{")
    assert "is not the state of a case" in ask(model, [], "--state", str(state)).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["fit", "none.csv", "--target", "x"], 1, "there is no file none.csv"),
        (["fit", "heart.csv", "--target", "x"], 1, "no column 'x'; its columns: age"),
        (["fit", "heart.csv"], 2, "Missing option '--target'"),
        (["fit", "heart.csv", "--target", TARGET, "--costs", "heart.csv"], 1, "a price list has the columns"),
        (["fit", "heart.csv", "--target", TARGET, "--drop", "nothing"], 1, "no column 'nothing'"),
        (["fit", "heart.csv", "--target", TARGET, "--threshold", "80"], 1, "threshold must be a probability"),
        (["fit", "heart.csv", "--target", TARGET, "--test-size", "25"], 2, "--test-size must be a share"),
        (["fit", "heart.csv", "--target", TARGET, "--time-limit", "3"], 2, "goes with --search exact"),
        (["fit", "heart.csv", "--target", TARGET, "-o", "no/m.emsco"], 2, "no such folder"),
        (["fit", "heart.csv", "--target", "age"], 1, "y cannot be used as class labels"),
        (["fit", "heart.csv", "--target", TARGET, "--jobs", "0"], 1, "--jobs must be"),
        (["fit", "heart.csv", "--target", TARGET, "--max-cost", "cheap"], 2, "is not a valid float"),
        (["front", "heart.csv"], 1, "not a model file"),
        (["front", "none.emsco"], 1, "there is no file"),
        (["predict", "model.emsco", "prices.csv", "-o", "o.csv"], 1, "is not in the table"),
        (["predict", "model.emsco", "heart.csv", "-o", "no/o.csv"], 1, "cannot be written"),
        (["evaluate", "model.emsco", "prices.csv", "--target", "price"], 2, "none of the columns"),
        (["report", "model.emsco", "-o", "no/r.html"], 1, "no/r.html"),
        (["sing"], 2, "No such command 'sing'"),
    ],
)
def test_mistakes_end_in_one_line(folder, monkeypatch, capsys, arguments, code, says):
    monkeypatch.chdir(folder)
    printed = call(capsys, *arguments, expect=code)
    assert says in printed.err
    assert "Traceback" not in printed.err
    errors = [line for line in printed.err.splitlines() if line.lower().startswith("error")]
    assert len(errors) == 1


def test_help_is_a_manual(capsys):
    assert "emsco fit patients.csv" in call(capsys, "--help").out
    for command in ("fit", "front", "use", "predict", "evaluate", "report", "ask", "inspect", "export", "demo"):
        printed = call(capsys, command, "--help").out
        assert f"Usage: emsco {command}" in printed
        assert len(printed.splitlines()) > 5
    assert call(capsys, "--version").out.strip() == f"emsco, version {emsco.__version__}"
    assert "global" in call(capsys, "experiments", "--help").out


def test_help_is_there_at_once():
    code = "import sys; from emsco.cli.main import run; run(['fit', '--help']); " \
           "sys.exit(any(m in sys.modules for m in ('sklearn', 'numba', 'pandas', 'pyarrow', 'scipy')))"  # fmt: skip
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0


def test_without_the_extra_it_says_what_to_install():
    code = "import sys; sys.modules['click'] = None; from emsco.__main__ import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: the command line needs some packages more: pip install 'emsco[cli]'\n"


def test_it_is_silent_on_standard_error_when_piped(folder, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "emsco", "fit", str(folder / "heart.csv"), *FIT, "-o", str(tmp_path / "m.emsco")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr == ""


def test_ctrl_c_keeps_what_was_found_and_the_same_command_goes_on(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 24))
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(24)]).assign(y=(X[:, :6].sum(axis=1) > 0).astype(int))
    frame.to_csv(tmp_path / "t.csv", index=False)
    base = ["fit", "t.csv", "--target", "y", "--search", "evolution", "--max-stages", "8", "--jobs", "1"]
    command = [sys.executable, "-m", "emsco", *base, "-o", "a.emsco", "--checkpoint", "run.ckpt", "--estimator", "tree"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not (tmp_path / "run.ckpt").exists() or (tmp_path / "run.ckpt").stat().st_size < 400_000:
        assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode == 130 and not (tmp_path / "a.emsco").exists():
        assert "interrupted" in err  # before the first generation
    else:
        assert process.returncode == 130, err
        assert "The same command goes on where it was, from run.ckpt." in err
        assert emsco.load(tmp_path / "a.emsco").n_generations_ < 150
    assert (tmp_path / "run.ckpt").exists()


@settings(max_examples=120)
@given(st.data())
def test_mutated_files_never_end_in_a_traceback(folder, tmp_path_factory, data):
    """Whatever is in the files, there is one line or an answer."""
    here = tmp_path_factory.getbasetemp()
    table = pd.read_csv(folder / "heart.csv", nrows=40).iloc[:, [0, 1, 3, -1]].to_csv(index=False).encode()
    prices = b"feature,price,unit,group,discount\nage,1,,,\nanaemia,2,,g,1\ndiabetes,3,,g,2\n"
    which = data.draw(st.integers(0, 1))
    for name, content, mutated in (("t.csv", table, which == 0), ("p.csv", prices, which == 1)):
        (here / name).write_bytes(data.draw(mutations(content)) if mutated else content)
    code = run(["fit", str(here / "t.csv"), "--target", TARGET, "--costs", str(here / "p.csv"), "--max-stages", "2",
                "-o", str(here / "m.emsco"), "--jobs", "1"])  # fmt: skip
    assert code in (0, 1)


@pytest.mark.parametrize("width", [72, 80, 110])
def test_no_figure_is_cut_off_in_a_narrow_terminal(model, capsys, monkeypatch, width):
    monkeypatch.setattr("emsco.report.console.console", lambda: Console(width=width, highlight=False))
    shown = call(capsys, "inspect", model).out
    clf = emsco.load(model)
    result = clf.evaluation_.points[clf.point_]
    low, high = result.interval("mean_cost")
    assert f"{result.mean_cost:,.2f}" in shown
    assert f"({low:,.1f}-{high:,.1f})" in shown
    low, high = result.interval("coverage")
    assert f"({100 * low:.0f}-{100 * high:.0f})" in shown


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        (["--threshold", "0=0.9,1=0.6"], {"0": 0.9, "1": 0.6}),
        (["--threshold", "1=0.6", "--threshold", "0=0.9"], {"1": 0.6, "0": 0.9}),
        (["--threshold", "0.9,0.8,0.7"], [0.9, 0.8, 0.7]),
        (["--threshold", "0.9"], 0.9),
        ([], 0.75),
        (["--guarantee", "0.7"], emsco.Guarantee(0.7)),
        (["--guarantee", "0.7", "--confidence", "0.8", "--threshold", "0.8"], emsco.Guarantee(0.7, 0.8, False, 0.8)),
    ],
)
def test_a_threshold_may_be_one_per_class_one_per_stage_or_a_promise(options, threshold, folder, tmp_path, capsys):
    path = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "--max-stages", 2, *options, "-o", path]
    printed = call(capsys, *fit)
    clf = emsco.load(path)
    assert clf.threshold == threshold
    shown = call(capsys, "inspect", path).out
    record = json.loads(call(capsys, "inspect", path, "--json").out)
    if isinstance(threshold, emsco.Guarantee):
        for line in str(clf.guarantee_).splitlines():
            assert line in printed.out
            assert line.split(":")[0] in " ".join(shown.split())
        assert record["guarantee"] == str(clf.guarantee_)
        summary = json.loads(call(capsys, *fit, "--json").out)
        assert summary["guarantee"]["checks"][0]["n_errors"] == clf.guarantee_.checks[0].n_errors
        assert "threshold 0.7" in printed.out or "threshold 0.8" in printed.out
    else:
        assert record["threshold"] == (threshold if isinstance(threshold, float) else clf._rule().in_words([0, 1]))
    call(capsys, "predict", path, folder / "heart.csv", "-o", tmp_path / "out.csv")
    decided = pd.read_csv(tmp_path / "out.csv")
    expected = clf.decide(HEART.data)
    assert_array_equal(decided["label"] != "inconclusive", expected.conclusive)
    assert_array_equal(decided["stage"] - 1, expected.stage)
    call(capsys, "report", path, "-o", tmp_path / "report.html")


def test_a_promise_that_cannot_be_made_is_a_warning_and_an_answer(folder, tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.emsco"
    printed = call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "--max-stages", 2, "--guarantee", "0.99",
                   "-o", path)  # fmt: skip
    assert "warning: no label will be given: the calibration rows cannot support" in printed.err
    assert "no label is ever given" in printed.out
    call(capsys, "predict", path, folder / "heart.csv", "-o", tmp_path / "out.csv")
    assert (pd.read_csv(tmp_path / "out.csv")["label"] == "inconclusive").all()
    answers = iter([""] * HEART.data.shape[1])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(answers))
    assert "which is never enough" in call(capsys, "ask", path).out


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--threshold", "high"], "give numbers such as 0.9, CLASS=NUMBER for each class, or auto"),
        (["--threshold", "0=0.9,0.8"], "give numbers such as 0.9, CLASS=NUMBER for each class, or auto"),
        (["--threshold", "0=0.9,0=0.8"], "a class has two numbers"),
        (["--best", "fnr"], "--best fnr: designs are not searched by it"),
        (["--test", "heart.csv", "--no-test"], "--test FILE and --no-test contradict each other"),
        (["--threshold", "0=0.9", "--threshold", "0.8"], "a number for each class"),
        (["--threshold", "0.9,0.8", "--guarantee", "0.9"], "that of the search"),
        (["--confidence", "0.9"], "go with --guarantee"),
        (["--guarantee-per-class"], "go with --guarantee"),
    ],
)
def test_thresholds_that_make_no_sense_are_wrong_usage(options, says, folder, tmp_path, capsys):
    fit = ["fit", folder / "heart.csv", "--target", TARGET, *options, "-o", tmp_path / "m.emsco"]
    assert says in " ".join(call(capsys, *fit, expect=2).err.split())


def test_no_command_writes_over_what_it_reads(folder, model, tmp_path, capsys):
    table = tmp_path / "own.csv"
    table.write_bytes((folder / "heart.csv").read_bytes())
    link = tmp_path / "link.csv"
    link.symlink_to(table)
    for arguments in (
        ["fit", table, *FIT, "-o", table],
        ["fit", table, *FIT, "-o", link],
        ["predict", model, table, "-o", table],
        ["predict", model, table, "-o", model],
        ["report", model, "-o", model],
        ["report", model, "--data", table, "-o", table],
    ):
        before = table.read_bytes(), model.read_bytes()
        assert "this file is read by the command" in call(capsys, *arguments, expect=2).err
        assert (table.read_bytes(), model.read_bytes()) == before


def test_buying_everything_is_counted_alike_whatever_the_point_in_use(folder, tmp_path, capsys):
    path, data = tmp_path / "m.emsco", folder / "heart.csv"
    fit = ["fit", data, "--target", TARGET, "--threshold", "auto", "--max-stages", 2, "--test", data, "-o", path]
    call(capsys, *fit, "--best", "accuracy", "--min-coverage", 0.8)
    for use in ([], ["--best", "cost"], ["--best", "coverage"]):
        if use:
            assert "buy everything, threshold 0.85" in call(capsys, "use", path, *use).out
        fresh = json.loads(call(capsys, "evaluate", path, data, "--json").out)
        kept = emsco.load(path).evaluation_
        assert fresh["buy_everything"]["answered"] == list(kept.everything.answered)
        assert fresh["in_use"]["answered"] == list(kept.points[emsco.load(path).point_].answered)


def test_points_are_chosen_and_sorted_by_objectives(folder, tmp_path, capsys):
    path = tmp_path / "m.emsco"
    objectives = ["--objective", "fnr", "--objective", "cost", "--objective", "coverage"]
    call(capsys, "fit", folder / "heart.csv", *FIT, "-o", path, *objectives, "--best", "fnr")
    clf = emsco.load(path)
    assert clf.front_.values[clf.point_, 0] == clf.front_.values[:, 0].min()
    listed = json.loads(call(capsys, "front", path, "--sort", "fnr", "--json").out)
    assert np.all(np.diff([point["objectives"]["fnr"] for point in listed]) >= 0)
    assert "best must be one of" in call(capsys, "use", path, "--best", "loss", expect=1).err
    assert "objectives" in call(capsys, "inspect", path).out


@pytest.mark.parametrize("width", [80, 100, 140])
def test_figures_of_a_front_are_whole_in_a_narrow_terminal(width, folder, tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.emsco"
    objectives = ["--objective", "fpr", "--objective", "fnr", "--objective", "cost", "--objective", "coverage"]
    call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "--max-stages", 2, "--threshold", "auto", "-o", path,
         *objectives)  # fmt: skip
    clf = emsco.load(path)
    monkeypatch.setattr("emsco.report.console.console", lambda: Console(width=width, highlight=False))
    printed = call(capsys, "front", path, "--all").out
    lines = [line for line in printed.splitlines() if line.count(" %") == 2]
    assert max(map(len, lines)) <= width
    numbers = [line.split()[0].lstrip("*") for line in lines]
    assert sorted(map(int, numbers)) == list(range(len(clf.front_)))
    words = " ".join(printed.split())
    assert "exits at" in words
    assert "fnr" in words


def test_promises_that_are_not_kept_are_marked(folder, tmp_path, capsys):
    path = tmp_path / "m.emsco"
    call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "--max-stages", 2, "--guarantee", 0.8, "-o", path)
    clf = emsco.load(path)
    kept = [promise.passed for promise in clf._promises]
    listed = [line.split() for line in call(capsys, "front", path, "--all").out.splitlines() if line.count(" %") == 2]
    shown = {int(words[0].lstrip("*")): "not kept" not in " ".join(words) for words in listed}
    assert [shown[i] for i in range(len(kept))] == kept
    used = call(capsys, "use", path, kept.index(False)).out
    assert "Asked for, but not promised: at least 80 %" in used
    assert "calibrated): never" in used
    assert json.loads(call(capsys, "inspect", path, "--json").out)["threshold"] == "calibrated: never"
