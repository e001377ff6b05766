import json
import re

from numpy.testing import assert_array_equal
import pandas as pd
import pytest

import emsco
from emsco import Loss
from emsco.scoring.thresholds import rule_words
from tests.cli.calls import FIT, HEART, SMALL, TARGET, call


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        (["--preset", "worst"], 2, "'worst' is not one of 'best', 'paper'"),
        (["--validation", "half"], 2, "--validation half: give a share such as 0.33, or a number of folds such as 5"),
        (
            ["--validation", "1"],
            1,
            "--validation must be a share of the rows strictly between 0 and 1, such as 1/3, a "
            "whole number of folds, such as 5, or (in Python) a splitter; got 1.",
        ),
        (["--validation", "1.5"], 1, "error: --validation must be"),
        (["--encoding", "ranks"], 2, "'ranks' is not one of 'linear', 'rank', 'spline', 'raw', 'auto'."),
        (["--encoding", "latin-1"], 2, "For the encoding of the file, give --file-encoding latin-1."),
        (["--regularisation", "strong"], 2, "--regularisation strong: give a number, or auto"),
        (["--regularisation", "0"], 1, "--regularisation must be a positive number or auto; got 0"),
        (["--regularisation", "nan"], 1, "--regularisation must be a positive number or auto; got nan"),
        (["--final", "logistic"], 2, "'logistic' is not one of 'auto', 'search', 'tree', 'forest', 'boosting'"),
        (["--calibration", "platt"], 2, "'platt' is not one of 'sigmoid', 'isotonic', 'temperature'"),
        (["--stage-bias", "1", "--search", "evolution"], 1, "--stage-bias must be a number above 1"),
        (["--population", "50"], 2, "--population: for the evolution only; give --search evolution, too."),
        (["--time-limit", "soon"], 2, "'soon' is not a valid float"),
    ],
)
def test_learning_that_makes_no_sense_is_one_line(options, code, says, folder, tmp_path, capsys):
    fit = ["fit", folder / "heart.csv", "--target", TARGET, "-o", tmp_path / "m.emsco", *options]
    printed = call(capsys, *fit, expect=code).err
    assert says in " ".join(printed.split())
    assert len([line for line in printed.splitlines() if line.lower().startswith("error")]) == 1


def test_objectives_can_be_chosen(folder, tmp_path, capsys):
    out, loss = tmp_path / "m.emsco", tmp_path / "loss.csv"
    loss.write_text("true,0,1,reject\n1,5,0,0.5\n0,0,1,0.25\n")
    objectives = ["--objective", "loss", "--objective", "cost", "--objective", "fnr", "--loss", loss]
    printed = call(capsys, "fit", folder / "heart.csv", *FIT, "-o", out, *objectives, "--knee")
    assert "Better designs may exist" in printed.out
    clf = emsco.load(out)
    assert clf.front_.objectives == ("loss", "cost", "fnr")
    assert clf.objectives[0] == Loss([[0, 1], [5, 0]], reject=[0.25, 0.5])
    assert clf.point_ == clf.front_.knee()
    header = next(line for line in call(capsys, "front", out, "--all").out.splitlines() if "coverage" in line)
    figures = ["point", "stages", "coverage", "accuracy", "mean", "cost", "worst", "recall"]
    assert header.split()[:8] == figures
    assert "(loss " in call(capsys, "front", out).out
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
        (["--objective", "fpr", "--objective", "fpr"], 1, "error: --objective has fpr twice"),
        (
            ["--objective", "fpr", "--objective", "cost", "--search", "exact"],
            1,
            "error: --search cannot be exact",
        ),
        (["--knee", "--max-cost", "3"], 2, "--knee chooses by itself"),
        (["--best", "no_worse", "--max-cost", "3"], 2, "--best no_worse chooses by itself; leave out limits"),
        (["--best", "no_worse", "--one-standard-error"], 2, "--one-standard-error needs --best accuracy"),
        (["--best", "no_worse", "--knee"], 2, "--knee chooses by itself"),
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


@pytest.mark.parametrize(
    ("options", "threshold"),
    [
        (["--threshold", "0=0.9,1=0.6"], {"0": 0.9, "1": 0.6}),
        (["--threshold", "1=0.6", "--threshold", "0=0.9"], {"1": 0.6, "0": 0.9}),
        (["--threshold", "0.9,0.8,0.7"], [0.9, 0.8, 0.7]),
        (["--threshold", "0.9"], 0.9),
        (["--threshold", "auto"], "auto"),
        ([], None),
        (["--preset", "paper"], None),
        (["--guarantee", "0.7"], emsco.Guarantee(0.7)),
        (["--guarantee", "0.7", "--confidence", "0.8", "--threshold", "0.8"], emsco.Guarantee(0.7, 0.8, threshold=0.8)),
    ],
)
def test_a_threshold_may_be_one_per_class_one_per_stage_of_each_point_or_a_promise(
    options, threshold, folder, tmp_path, capsys
):
    path = tmp_path / "m.emsco"
    fit = ["fit", folder / "heart.csv", "--target", TARGET, *SMALL, *options, "-o", path]
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
    elif threshold == "auto" or options == []:
        assert record["threshold"] == f"of its own: {rule_words(clf.deployed_.rule, len(clf.stages_), [0, 1])}"
    elif threshold is None:
        assert record["threshold"] == 0.75, "of the paper"
    else:
        words = rule_words(clf.deployed_.rule, len(clf.stages_), [0, 1])
        assert record["threshold"] == (threshold if isinstance(threshold, float) else words)
    call(capsys, "predict", path, folder / "heart.csv", "-o", tmp_path / "out.csv")
    decided = pd.read_csv(tmp_path / "out.csv")
    expected = clf.decide(HEART.data)
    assert_array_equal(decided["label"] != "inconclusive", expected.conclusive)
    assert_array_equal(decided["stage"] - 1, expected.stage)
    call(capsys, "report", path, "-o", tmp_path / "report.html")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--threshold", "high"], "give numbers such as 0.9, CLASS=NUMBER for each class, or auto"),
        (["--threshold", "0=0.9,0.8"], "give numbers such as 0.9, CLASS=NUMBER for each class, or auto"),
        (["--threshold", "0=0.9,0=0.8"], "a class has two numbers"),
        (["--best", "fnr"], "--best fnr: the search has no such objective"),
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


def test_the_evolution_is_set_by_options(folder, tmp_path, capsys):
    chosen = [
        "--population",
        "20",
        "--generations",
        "3",
        "--patience",
        "2",
        "--mutation-rate",
        "0.1",
        "--unique",
        "rows",
        "--recombination-rate",
        "0.7",
        "--elite-fraction",
        "0.3",
        "--stage-bias",
        "3",
        "--init-rate",
        "0.4",
    ]
    made = tmp_path / "m.emsco"
    call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "--preset", "paper", *chosen, "-o", made)
    assert emsco.load(made).search_ == emsco.Evolution(
        population_size=20, max_generations=3, patience=2, mutation_rate=0.1, unique="rows", recombination_rate=0.7,
        elite_fraction=0.3, stage_bias=3.0, init_rate=0.4,
    )  # fmt: skip
