import json
import os
from pathlib import Path
import re
import signal
import subprocess
import sys
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

import emsco
from emsco import EMSCOClassifier
from emsco.cli.app import emsco as emsco_command
from emsco.cli.app import run
from emsco.cli.fit import SECTIONS
from emsco.exceptions import GuaranteeWarning
from emsco.fitting.settings import read_settings
from emsco.report.learning import learning_record
from emsco.report.outlook import outlook_record, outlook_words
from emsco.scoring.choice import no_worse
from emsco.scoring.thresholds import rule_words
from tests.cli.calls import FEW, FIT, HEART, SMALL, TARGET, call
from tests.data.test_files import mutations


def test_fit_does_what_python_does_and_prints_honest_figures(folder, tmp_path, capsys):
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, "--costs", folder / "prices.csv",
                   "-o", tmp_path / "m.emsco").out  # fmt: skip
    assert "target DEATH_EVENT, 224 training rows, 75 test rows;" in printed
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
    assert "The model was written, with point 0 in use." in printed.err
    assert clf.point_ == 0
    nearest = re.search("set --max-cost (.*) instead", printed.err)[1]
    assert clf.front_.order(max_cost=float(nearest)).size


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
    assert "These rows also selected the designs, so the figures are optimistic." in printed.out
    assert emsco.load(out).evaluation_ is None
    call(capsys, "fit", tmp_path / "train.csv", "--target", TARGET, "-o", out, "--max-stages", 2, "--estimator",
         "naive-bayes", "--search", "best-first", *[x for c in list(frame)[:8] for x in ("--drop", c)])  # fmt: skip
    assert type(emsco.load(out).stages_[0].model).__name__ == "GaussianNB"


def test_a_preset_says_what_is_not_given(folder, tmp_path, capsys):
    out = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", out, *FEW]
    names = ("threshold", "removal", "search", "validation", "encoding", "C", "choose", "final_estimator",
             "calibration")  # fmt: skip
    for preset in ("best", "paper"):
        printed = call(capsys, *fit, "--preset", preset)
        clf = emsco.load(out)
        assert clf.preset == preset
        assert all(getattr(clf, name) is None for name in names)
        assert read_settings(clf.get_params(deep=False)).removal == (preset == "best")
        assert clf.point_ == (no_worse(clf.front_)[0] if preset == "best" else 0)
        for sentence in learning_record(clf.deployed_)["in_words"]:
            assert sentence in printed.out
            assert sentence in " ".join(call(capsys, "inspect", out).out.split())
    assert type(clf.search_).__name__ == "Evolution"
    assert (clf.encoding_, clf.C_, round(clf.validation_, 2)) == ("raw", 1.0, 0.33)
    shown = json.loads(call(capsys, *fit, "--preset", "paper", "--no-removal", "--json").out)["learning"]
    assert shown == json.loads(call(capsys, "inspect", out, "--json").out)["learning"] == learning_record(clf.deployed_)
    command = emsco.load(out).notes_["command"]
    assert command.endswith("--preset paper --max-stages 2 --no-removal --output m.emsco --json"), command


def test_fit_says_what_to_expect_on_new_cases_beside_the_test(folder, tmp_path, capsys):
    out = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", out, *SMALL]
    printed = call(capsys, *fit).out
    clf = emsco.load(out)
    record = outlook_record(clf.deployed_, clf.evaluation_)
    assert "Expected on 75 new cases (95 % intervals; from 224 training rows" in printed
    for sentence in outlook_words(record):
        assert sentence in printed
    low, high = clf.outlook_.interval("accuracy", n_rows=75)
    assert f": accuracy {100 * low:.1f} to {100 * high:.1f} %, coverage " in printed
    words = rule_words(clf.deployed_.rule, len(clf.stages_), clf.classes_)
    assert f"Labels: {words}." in printed
    shown = json.loads(call(capsys, *fit, "--json").out)["outlook"]
    assert shown["point"] == clf.point_
    assert shown["new_rows"]["rows"] == 75
    assert shown["new_rows"]["accuracy"]["interval_95"] == list(clf.outlook_.interval("accuracy", n_rows=75))
    assert shown["new_rows"]["accuracy"]["found"] == clf.evaluation_.in_use.accuracy
    printed = call(capsys, *fit, "--no-test").out
    assert "Expected on new cases, in the long run" in printed
    assert json.loads(call(capsys, *fit, "--threshold", 0.9, "--json").out)["outlook"] is None


def test_an_id_is_noticed_although_rows_are_held_out(folder, tmp_path, capsys):
    frame = pd.read_csv(folder / "heart.csv").sample(frac=1, random_state=0)
    frame.assign(patient=range(299)).sample(frac=1, random_state=1).to_csv(tmp_path / "ids.csv", index=False)
    fit = ["fit", tmp_path / "ids.csv", "--target", TARGET, *SMALL, "-o", tmp_path / "m.emsco"]
    assert "column 'patient' has another value in every row, as an id has" in call(capsys, *fit).err


def test_a_test_file_is_checked_before_the_search(folder, tmp_path, capsys, monkeypatch):
    frame = pd.read_csv(folder / "heart.csv")

    def search(*_, **__):
        raise AssertionError("the search has begun")

    monkeypatch.setattr(EMSCOClassifier, "fit", search)
    for change, message in [
        (None, "there is no file"),
        (frame.drop(columns=TARGET), f"has no column '{TARGET}'"),
        (frame.drop(columns="age"), "has no column 'age'"),
        (frame.assign(**{TARGET: 5}), "--target holds 5 in 299 rows"),
    ]:
        path = tmp_path / "test.csv"
        if change is not None:
            change.to_csv(path, index=False)
        fit = ["fit", folder / "heart.csv", *FIT, "--test", path, "-o", tmp_path / "m.emsco"]
        assert message in call(capsys, *fit, expect=1).err


def test_how_stages_learn_can_be_chosen(folder, tmp_path, capsys):
    out = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", out, *SMALL, "--search", "evolution"]
    printed = call(capsys, *fit, "--validation", 3, "--encoding", "spline", "--regularisation", 0.3, "--removal",
                   "--no-test").out  # fmt: skip
    clf = emsco.load(out)
    assert (clf.validation, clf.encoding, clf.C, clf.removal) == (3, "spline", 0.3, True)
    assert "logistic regression with C = 0.3; numbers are encoded as ranks with spline terms." in printed
    assert "by 3-fold cross-validation: each row by stages trained without it" in printed
    assert f"On {clf.front_.n_samples} out-of-fold rows: coverage" in printed
    assert f"those of {clf.front_.n_samples} out-of-fold rows. These rows also selected the designs" in " ".join(
        call(capsys, "front", out).out.split()
    )
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
    monkeypatch.setattr("emsco.stages.learners.boosting", lambda: HistGradientBoostingClassifier(max_iter=3))
    call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "-o", tmp_path / "m.emsco", "--estimator", "boosting",
         "--search", "exact", "--validation", "0.4", "--max-stages", 1, *SMALL[2:], "--drop", "sex", "--drop",
         "smoking")  # fmt: skip
    clf = emsco.load(tmp_path / "m.emsco")
    assert clf.estimator == "boosting"
    assert (
        learning_record(clf.deployed_)["in_words"][0]
        == "Stage classifier: gradient boosting; numbers are standardised."
    )


def test_without_skops_it_is_said_before_the_search(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.cli.classifier.find_spec", lambda name: None)
    for options in (["--final", "boosting"], ["--calibration", "sigmoid"], ["--estimator", "tree"]):
        fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", tmp_path / "m.emsco", *options]
        assert "pip install 'emsco[skops]'" in call(capsys, *fit, expect=1).err


def test_the_options_of_fit_stand_under_headings(capsys):
    printed = call(capsys, "fit", "--help").out
    headings = [line for line in printed.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == [f"{title}:" for title in SECTIONS.values()]
    for option in emsco_command.commands["fit"].params[1:]:
        assert len(re.findall(rf"^  {option.opts[0]}(?![\w-])", printed, re.MULTILINE)) == 1, option.name


def test_labels_that_are_text_or_missing(tmp_path, capsys):
    frame = HEART.data.assign(outcome=np.where(HEART.target == 1, "died", "lived"))
    frame.loc[:4, "outcome"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    printed = call(
        capsys,
        "fit",
        tmp_path / "t.csv",
        "--target",
        "outcome",
        "--final",
        "search",
        "--max-stages",
        2,
        "-o",
        tmp_path / "m",
    )
    assert "warning: 5 rows of" in printed.err
    assert emsco.load(tmp_path / "m").classes_.tolist() == ["died", "lived"]
    assert "on 294 test cases" in call(capsys, "evaluate", tmp_path / "m", tmp_path / "t.csv").out


def test_the_price_model_is_given_by_options_or_in_a_file(folder, tmp_path, capsys):
    fit = ["fit", folder / "heart.csv", *FIT, "--search", "evolution", "-o", tmp_path / "m.emsco"]
    printed = call(capsys, *fit, "--costs", folder / "prices.csv", "--overhead", "2.5", "--parallel").out
    rule = "A stage takes as long as its slowest purchase, plus an overhead of 2.5."
    assert rule in printed
    assert rule in " ".join(call(capsys, "inspect", tmp_path / "m.emsco").out.split())
    assert json.loads(call(capsys, "inspect", tmp_path / "m.emsco", "--json").out)["price model"] == rule
    assert emsco.load(tmp_path / "m.emsco").deployed_.prices.total == 102.5
    content = {"prices": HEART.prices, "overhead": 2.5, "parallel": True}
    (tmp_path / "p.json").write_text(json.dumps(content), encoding="utf-8")
    assert rule in call(capsys, *fit, "--costs", tmp_path / "p.json").out
    assert "plus an overhead of 4" in call(capsys, *fit, "--costs", tmp_path / "p.json", "--overhead", "4").out
    assert "total price 13." in call(capsys, *fit, "--overhead", "1").out
    assert (
        "error: --overhead must be a number of at least 0; got -1.0."
        in call(capsys, *fit, "--overhead", "-1", expect=1).err
    )


def test_it_is_silent_on_standard_error_when_piped(folder, tmp_path):
    fit = ["fit", str(folder / "heart.csv"), "--target", TARGET, *SMALL, "-o", str(tmp_path / "m.emsco")]
    done = subprocess.run([sys.executable, "-m", "emsco", *fit], capture_output=True, text=True, check=True)
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
        assert "The same command continues from run.ckpt." in err
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
    code = run(["fit", str(here / "t.csv"), *FIT, "--costs", str(here / "p.csv"), "-o", str(here / "m.emsco"),
                "--jobs", "1"])  # fmt: skip
    assert code in (0, 1)


def test_a_file_with_nothing_but_the_target_is_refused(tmp_path, capsys):
    (tmp_path / "t.csv").write_text("y\n0\n1\n" * 10)
    assert run(["fit", str(tmp_path / "t.csv"), "--target", "y", "-o", str(tmp_path / "m.emsco")]) == 1
    assert "has no column but y" in capsys.readouterr().err


def test_a_choice_within_limits_keeps_the_guarantee_in_mind_as_in_python(tmp_path, capsys):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 6))
    y = (X @ [1, 0.8, 0.5, 0, 0, 0] + rng.normal(scale=0.6, size=400) > 0).astype(int)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    call(capsys, "fit", tmp_path / "t.csv", "--target", "y", "--guarantee", 0.9, "--confidence", 0.9, "--max-cost", 3,
         "--max-stages", 3, "--search", "best-first", "--final", "search", "--no-test", "-o",
         tmp_path / "m.emsco")  # fmt: skip
    clf = emsco.load(tmp_path / "m.emsco")
    assert clf.choose == {"max_cost": 3.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)
        again = EMSCOClassifier(**clf.get_params()).fit(frame, y)
    assert clf.point_ == again.point_


def test_a_limit_outside_its_range_is_refused_before_the_search(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.fitting.pipeline.train_front", lambda *_: pytest.fail("it has searched"))
    fit = ["fit", folder / "heart.csv", *FIT, "-o", tmp_path / "m.emsco"]
    assert "error: --max-cost must be a number of at least 0" in call(capsys, *fit, "--max-cost", "-1", expect=1).err
    assert "error: --min-coverage must be a share" in call(capsys, *fit, "--min-coverage", "80", expect=1).err


def test_columns_that_are_probably_no_features_are_warned_of(tmp_path, capsys):
    frame = HEART.data[["age", "sex"]].assign(id=range(299), site="A", copy=HEART.target, died=HEART.target)
    frame.to_csv(tmp_path / "t.csv", index=False)
    printed = call(capsys, "fit", tmp_path / "t.csv", "--target", "died", "--max-stages", 1, "--no-test",
                   "--final", "search", "-o", tmp_path / "m.emsco").err  # fmt: skip
    assert [line.split("'")[1] for line in printed.splitlines()] == ["id", "site", "copy"]
    assert all(line.startswith("warning: column") for line in printed.splitlines())


def test_a_class_that_predict_cannot_write_is_refused(tmp_path, capsys):
    frame = HEART.data[["age"]].assign(y=np.where(HEART.target == 1, "inconclusive", "well"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    printed = call(capsys, "fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.emsco", expect=1).err
    assert printed.startswith("error: --target has the class 'inconclusive'")


def test_a_column_of_dates_is_refused(tmp_path, capsys):
    frame = HEART.data[["age"]].assign(seen=pd.date_range("2020-01-01", periods=299).astype(str), y=HEART.target)
    frame.to_csv(tmp_path / "t.csv", index=False)
    printed = call(capsys, "fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.emsco", expect=1).err
    assert "column 'seen' holds dates or durations" in printed


def test_text_views_of_a_parquet_file_are_text(tmp_path, capsys):
    sex = pa.array(np.where(HEART.data["sex"] == 1, "m", "f").tolist(), pa.string_view())
    table = pa.table({"age": HEART.data["age"], "sex": sex, "y": HEART.target.to_numpy()})
    parquet.write_table(table, tmp_path / "t.parquet")
    call(
        capsys,
        "fit",
        tmp_path / "t.parquet",
        "--target",
        "y",
        "--final",
        "search",
        "--max-stages",
        1,
        "-o",
        tmp_path / "m.emsco",
    )
    out = tmp_path / "o.csv"
    call(capsys, "predict", tmp_path / "m.emsco", tmp_path / "t.parquet", "-o", out, "--keep", "sex")
    assert pd.read_csv(out)["sex"].tolist() == sex.to_pylist()


def test_a_model_is_written_through_a_link_and_to_a_device_and_keeps_permissions(folder, tmp_path, capsys):
    fit = ["fit", folder / "heart.csv", "--target", TARGET, *SMALL, "--search", "evolution", "--no-test", "-o"]
    link, model = tmp_path / "current.emsco", tmp_path / "model.emsco"
    model.write_bytes(b"old")
    model.chmod(0o600)
    link.symlink_to(model)
    call(capsys, *fit, link)
    assert link.is_symlink()
    assert emsco.load(model).notes_["target"] == TARGET
    assert model.stat().st_mode & 0o777 == 0o600
    call(capsys, *fit, os.devnull)
    assert not Path(os.devnull).is_file()
    call(capsys, "use", link, 0)
    assert link.is_symlink()
    assert emsco.load(model).point_ == 0


def test_of_a_large_file_a_sample_is_used_and_that_is_said(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.data.files.MAX_ROWS", 200)
    monkeypatch.setattr("emsco.data.files._RARE", 10)
    monkeypatch.setattr("emsco.data.files._LARGE_TEXT", 0)  # of Parquet, tests/cluster/test_blocks.py
    out = tmp_path / "m.emsco"
    said = call(capsys, "fit", folder / "heart.csv", *FIT, "-o", out).err
    assert "heart.csv has 299 rows with a label; 200 of them, drawn at random, are used, each" in " ".join(said.split())
    assert emsco.load(out).front_.n_samples == 150


def test_no_more_than_some_rows_are_held_out(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.cli.fit._MOST_TESTED", 30)
    out = tmp_path / "m.emsco"
    call(capsys, "fit", folder / "heart.csv", *FIT, "-o", out)
    assert emsco.load(out).evaluation_.n_rows == 30
