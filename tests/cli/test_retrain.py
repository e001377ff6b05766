import json

import numpy as np
import pandas as pd
import pytest

import emsco
from emsco import MultiStageClassifier
from tests.cli.calls import HEART, SMALL, TARGET, call


def test_retrain_replaces_the_stages_and_keeps_the_rest(folder, model, capsys):
    before = emsco.load(model)
    printed = call(capsys, "retrain", model, folder / "heart.csv")
    assert "out-of-fold rows of the fit" in printed.out
    assert "299 new rows, out-of-fold" in printed.out
    assert "warning: model.emsco was trained on cases of" in printed.err
    after = emsco.load(model)
    assert after.front_.n_samples == 299
    assert after.evaluation_ is None
    assert after.notes_["target"] == TARGET
    assert after.notes_["retrained on"] == "heart.csv"
    assert after.notes_["retrained rows"] == 299
    np.testing.assert_array_equal(after.front_.designs, before.front_.designs)
    assert after.deployed_.prices.total == before.deployed_.prices.total
    expected = before.retrain(HEART.data, HEART.target)
    np.testing.assert_array_equal(after.predict_proba(HEART.data), expected.predict_proba(HEART.data))


def test_retrain_writes_another_file_and_tests_it(folder, model, tmp_path, capsys):
    held, new = model.read_bytes(), tmp_path / "new.emsco"
    rows = folder / "heart.csv"
    record = json.loads(call(capsys, "retrain", model, rows, "--test", rows, "-o", new, "--json").out)
    assert model.read_bytes() == held
    assert [(f["stages"], f["on"]) for f in record["figures"]][1:] == [
        ("before", "299 new rows"),
        ("after", "299 new rows, out-of-fold"),
        ("after", "299 test rows"),
    ]
    clf = emsco.load(new)
    assert record["figures"][3]["accuracy"] == clf.evaluation_.points[clf.point_].accuracy
    assert record["figures"][2]["coverage"] == clf.front_.coverage[clf.point_]
    assert clf.notes_["test file"] == "heart.csv"


def test_retrain_of_a_given_design_says_how_to_test_it(folder, tmp_path, capsys):
    path = tmp_path / "given.emsco"
    MultiStageClassifier([["age"], ["serum_creatinine"]], HEART.prices).fit(HEART.data, HEART.target).save(path)
    printed = call(capsys, "retrain", path, folder / "heart.csv", "--target", TARGET).out
    assert "give --test FILE" in printed


def test_retrain_calibrates_a_guarantee_again(folder, tmp_path, capsys):
    path, data = tmp_path / "m.emsco", folder / "heart.csv"
    call(capsys, "fit", data, "--target", TARGET, *SMALL, "--guarantee", 0.7, "-o", path)
    first = emsco.load(path).guarantee_
    assert "search threshold" in call(capsys, "retrain", path, data).out
    assert emsco.load(path).guarantee_.n_rows > first.n_rows


def test_retrain_calibrates_a_guarantee_on_rows_of_another_file(folder, model, tmp_path, capsys):
    path, data, cal = tmp_path / "m.emsco", folder / "heart.csv", tmp_path / "cal.csv"
    frame = pd.read_csv(data)
    frame[:150].to_csv(tmp_path / "new.csv", index=False)
    frame[150:].to_csv(cal, index=False)
    call(capsys, "fit", tmp_path / "new.csv", "--target", TARGET, *SMALL, "--guarantee", 0.7, "--guarantee-rows", cal,
         "--no-test", "-o", path)  # fmt: skip
    promise = emsco.load(path).guarantee_
    assert (promise.given, promise.n_rows, promise.n_shared) == (True, 149, 0)
    call(capsys, "retrain", path, tmp_path / "new.csv", "--guarantee-rows", cal)
    assert emsco.load(path).guarantee_ == promise
    said = call(capsys, "retrain", path, data, "--guarantee-rows", cal).err
    assert "149 of the 149 calibration rows are also training rows" in said
    held = path.read_bytes()
    for change, message in [
        (frame.drop(columns=list(frame)[8]), "error: --guarantee-rows lacks the columns"),
        (frame.assign(**{TARGET: 7}), "error: --guarantee-rows holds none of the classes [0, 1]"),
    ]:
        change.to_csv(cal, index=False)
        assert message in call(capsys, "retrain", path, data, "--guarantee-rows", cal, expect=1).err
    assert path.read_bytes() == held
    assert (
        "has no guarantee to calibrate" in call(capsys, "retrain", model, data, "--guarantee-rows", data, expect=2).err
    )
    fit = ["fit", data, "--target", TARGET, *SMALL, "-o", path]
    assert "go with --guarantee." in call(capsys, *fit, "--guarantee-rows", cal, expect=2).err
    message = call(capsys, *fit, "--guarantee", 0.7, "--guarantee-rows", tmp_path / "none.csv", expect=1).err
    assert "there is no file" in message


def test_figures_after_retraining_are_not_called_optimistic(folder, model, capsys, tmp_path):
    path = tmp_path / "new.emsco"
    call(capsys, "retrain", model, folder / "heart.csv", "-o", path)
    truth = "These rows did not select the designs, unless the first fit used them, too."
    report = tmp_path / "report.html"
    call(capsys, "report", path, "-o", report)
    for command in (["front", path], ["front", path, "--all"], ["inspect", path], ["use", path, 0]):
        words = " ".join(call(capsys, *command).out.split())
        assert truth in words
        assert "optimistic" not in words
    page = report.read_text(encoding="utf-8")
    assert f'"selected":"{truth}"' in page
    assert "optimistic" not in page
    assert "designs are those of the first fit" in " ".join(call(capsys, "inspect", path).out.split())
    assert "rows of the last retraining" in call(capsys, "retrain", path, folder / "heart.csv").out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="age"), "lacks the columns ['age']"),
        (lambda f: f.assign(**{TARGET: f[TARGET] + 1}), "holds the classes [2]"),
        (lambda f: f.assign(**{TARGET: 1}), "one class only"),
        (lambda f: f.assign(age="old"), "age"),
        (lambda f: f[:0], "error: "),
    ],
)
def test_retrain_refuses_wrong_rows_in_one_line_and_leaves_the_model(folder, model, tmp_path, capsys, change, message):
    held, path = model.read_bytes(), tmp_path / "rows.csv"
    change(pd.read_csv(folder / "heart.csv")).to_csv(path, index=False)
    error = call(capsys, "retrain", model, path, expect=1).err
    assert message in error
    assert error.strip().splitlines()[-1].startswith("error: ")
    assert model.read_bytes() == held


def test_retrain_refuses_wrong_files(folder, model, tmp_path, capsys):
    data = folder / "heart.csv"
    assert "error: " in call(capsys, "retrain", folder / "prices.csv", data, expect=1).err
    assert "error: " in call(capsys, "retrain", tmp_path / "none.emsco", data, expect=1).err
    assert "no such folder" in call(capsys, "retrain", model, data, "-o", tmp_path / "a" / "b", expect=2).err
    assert "is read by the command" in call(capsys, "retrain", model, data, "-o", data, expect=2).err
    assert "no column 'lived'" in call(capsys, "retrain", model, data, "--target", "lived", expect=1).err
