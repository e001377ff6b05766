import json

import pytest
from rich.console import Console

import emsco
from emsco.report import console
from tests.cli.calls import HEART, SMALL, TARGET, call


def test_evaluate_knows_the_target(folder, model, capsys):
    record = json.loads(call(capsys, "evaluate", model, folder / "heart.csv", "--json").out)
    clf = emsco.load(model)
    expected = clf.evaluate(HEART.data, HEART.target).points[clf.point_]
    assert record["rows"] == 299
    assert record["in_use"]["accuracy"]["value"] == expected.accuracy
    assert "on 299 test cases" in call(capsys, "evaluate", model, folder / "heart.csv").out
    seen = "warning: model.emsco was trained on cases of"
    assert seen in call(capsys, "evaluate", model, folder / "heart.csv").err
    report = ["report", model, "-o", model.parent / "report.html"]
    assert seen in call(capsys, *report, "--data", folder / "heart.csv").err
    assert call(capsys, *report).err == ""
    assert (
        "no column 'lived'" in call(capsys, "evaluate", model, folder / "heart.csv", "--target", "lived", expect=1).err
    )


def test_buying_everything_is_counted_alike_whatever_the_point_in_use(folder, tmp_path, capsys):
    path, data = tmp_path / "m.emsco", folder / "heart.csv"
    fit = ["fit", data, "--target", TARGET, *SMALL, "--test", data, "-o", path]
    assert "holds the cases of training" in call(capsys, *fit, "--best", "accuracy", "--min-coverage", 0.8).err
    for use in ([], ["--best", "cost"], ["--best", "coverage"]):
        if use:
            assert "buy everything" in call(capsys, "use", path, *use).out
        fresh = json.loads(call(capsys, "evaluate", path, data, "--json").out)
        kept = emsco.load(path).evaluation_
        assert fresh["buy_everything"]["answered"] == list(kept.everything.answered) == list(kept.always.answered)
        assert fresh["in_use"]["answered"] == list(kept.points[emsco.load(path).point_].answered)


def test_each_class_has_its_recall_and_precision(folder, model, capsys):
    record = json.loads(call(capsys, "evaluate", model, folder / "heart.csv", "--json").out)
    confusion = record["in_use"]["confusion"]
    assert record["in_use"]["recall"]["1"]["value"] == confusion[1][1] / sum(confusion[1])
    low, high = record["in_use"]["recall"]["1"]["interval_95"]
    assert low < record["in_use"]["recall"]["1"]["value"] < high
    assert record["in_use"]["precision"]["1"] == confusion[1][1] / (confusion[0][1] + confusion[1][1])
    printed = call(capsys, "evaluate", model, folder / "heart.csv").out
    assert record["base_rate"] in printed
    assert "no label" in printed
    assert "as 1" in printed


@pytest.mark.parametrize("colour", ["always", ""])
def test_a_class_that_is_never_found_is_red_and_said_in_words(capsys, monkeypatch, colour):
    monkeypatch.setattr("emsco.report.console.console", lambda: Console(
        width=100, highlight=False, force_terminal=bool(colour), color_system="standard" if colour else None
    ))  # fmt: skip
    console.print_classes([[90, 0, 0], [9, 0, 1]], ["well", "sick"])
    printed = capsys.readouterr().out
    assert "! a class is never found." in printed
    assert 'Always answering "well": 90.0 % correct, 0 % of "sick" found.' in printed
    assert "0.0 % !" in printed
    assert ("\x1b[1;31m0.0 % !" in printed) == bool(colour)
    assert "32m" not in printed  # nothing is green
