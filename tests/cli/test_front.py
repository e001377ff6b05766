import json
import re

import numpy as np
import pytest
from rich.console import Console

import emsco
from emsco.cli.app import run
from tests.cli.calls import FIT, SMALL, TARGET, call


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


def test_points_are_chosen_and_sorted_by_objectives(folder, tmp_path, capsys):
    path = tmp_path / "m.emsco"
    objectives = ["--objective", "fnr", "--objective", "cost", "--objective", "coverage"]
    call(capsys, "fit", folder / "heart.csv", *FIT, "-o", path, *objectives, "--best", "fnr")
    clf = emsco.load(path)
    assert clf.front_.values[clf.point_, 0] == clf.front_.values[:, 0].min()
    listed = json.loads(call(capsys, "front", path, "--sort", "fnr", "--json").out)
    assert np.all(np.diff([point["objectives"]["fnr"] for point in listed]) >= 0)
    assert "error: --best must be one of" in call(capsys, "use", path, "--best", "loss", expect=1).err
    assert "error: --sort must be one of" in call(capsys, "front", path, "--sort", "loss", expect=1).err
    assert "objectives" in call(capsys, "inspect", path).out


@pytest.fixture(scope="module")
def many_objectives(folder, tmp_path_factory):
    """A model with thresholds of its own and further figures."""
    path = tmp_path_factory.mktemp("front") / "m.emsco"
    objectives = ["--objective", "fpr", "--objective", "fnr", "--objective", "cost", "--objective", "coverage"]
    fit = ["fit", str(folder / "heart.csv"), "--target", TARGET, *SMALL, "--threshold", "auto", "-o", str(path)]
    assert run([*fit, *objectives]) == 0
    return path


@pytest.mark.parametrize("width", [80, 100, 140])
def test_figures_of_a_front_are_whole_in_a_narrow_terminal(width, many_objectives, capsys, monkeypatch):
    path = many_objectives
    clf = emsco.load(path)
    monkeypatch.setattr("emsco.report.console.console", lambda: Console(width=width, highlight=False))
    printed = call(capsys, "front", path, "--all").out
    lines = [line for line in printed.splitlines() if re.match(r" *\*?\d+ +\d+ +[\d.]+ % +[\d.]+ % ", line)]
    assert max(map(len, lines)) <= width
    numbers = [line.split()[0].lstrip("*") for line in lines]
    assert sorted(map(int, numbers)) == list(range(len(clf.front_)))
    words = " ".join(printed.split())
    assert "early exit at" in words
    assert "fnr" in words


def test_promises_that_are_not_kept_are_marked(folder, tmp_path, capsys):
    path = tmp_path / "m.emsco"
    call(
        capsys,
        "fit",
        folder / "heart.csv",
        "--target",
        TARGET,
        "--final",
        "search",
        "--max-stages",
        2,
        "--guarantee",
        0.8,
        "-o",
        path,
    )
    clf = emsco.load(path)
    kept = [promise.passed for promise in clf.deployed_.promises]
    listed = [line.split() for line in call(capsys, "front", path, "--all").out.splitlines() if line.count(" %") == 3]
    shown = {int(words[0].lstrip("*")): "not kept" not in " ".join(words) for words in listed}
    assert [shown[i] for i in range(len(kept))] == kept
    used = call(capsys, "use", path, kept.index(False)).out
    assert "Asked for, but not promised: at least 80 %" in used
    assert "Labels (calibrated): no case gets a label." in used
    assert json.loads(call(capsys, "inspect", path, "--json").out)["threshold"] == "calibrated: no case gets a label"


def test_without_options_it_is_a_shortlist_with_reasons(model, capsys):
    clf = emsco.load(model)
    printed = call(capsys, "front", model).out
    picked = clf.front_.shortlist(in_use=clf.point_)
    assert f"{len(picked)} of {len(clf.front_)} points, * in use; all with --all." in printed
    words = " ".join(printed.split())
    assert all(pick.reason in words or pick.reason[:30] in words for pick in picked)
    listed = json.loads(call(capsys, "front", model, "--json").out)
    assert len(listed) == len(clf.front_)
    assert {p["point"]: p["shortlisted"] for p in listed if p["shortlisted"]} == {p.point: p.reason for p in picked}


def test_points_are_listed_by_class(model, capsys):
    front = emsco.load(model).front_
    least = float(np.median(front.recall[:, 1]))
    listed = json.loads(call(capsys, "front", model, "--min-recall", f"1={least}", "--json").out)
    assert sorted(p["point"] for p in listed) == np.flatnonzero(front.recall[:, 1] >= least).tolist()
    assert all(p["recall"]["1"] >= least for p in listed)
    point = listed[0]
    assert point["confusion"] == front.confusion[point["point"]].tolist()
    error = call(capsys, "front", model, "--min-recall", "1=1", "--min-coverage", 1, expect=1).err
    assert "--min-recall 1=" in error
    assert "--min-precision names ['2']" in call(capsys, "front", model, "--min-precision", "2=0.5", expect=1).err
    assert "give a share" in call(capsys, "front", model, "--min-recall", "high", expect=2).err


def test_the_recall_of_a_class_is_a_figure_if_the_search_had_it(folder, model, tmp_path, capsys):
    assert "--sort must be one of" in call(capsys, "front", model, "--sort", "recall_1", expect=1).err
    fit = ["fit", folder / "heart.csv", *FIT, "-o", tmp_path / "m.emsco", "--best", "recall_1"]
    assert "the search has no such objective" in call(capsys, *fit, expect=2).err
    assert "'speed' is not one of" in call(capsys, "front", model, "--sort", "speed", expect=2).err
