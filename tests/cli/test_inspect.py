import json
import re

import numpy as np
import pytest
from rich.console import Console

import emsco
from emsco import MultiStageClassifier, Prices
from tests.classifiers import fixed
from tests.cli.calls import HEART, call


def test_inspect_says_what_is_in_a_file(model, capsys):
    printed = call(capsys, "inspect", model).out
    for expected in ("EMSCOClassifier", "proven", "heart.csv", "serum_creatinine", "emsco fit heart.csv"):
        assert expected in printed
    record = json.loads(call(capsys, "inspect", model, "--json").out)
    assert record["prices"] == {k: float(v) for k, v in HEART.prices.items()}
    clf = emsco.load(model)
    assert record["in use"]["recall"] == dict(zip("01", clf.front_.recall[clf.point_].tolist(), strict=True))
    assert record["test"]["base_rate"] == clf.evaluation_.base_rate
    assert clf.evaluation_.base_rate in printed


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


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """A model whose every name tries to control the terminal."""
    bad = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202e"
    names = [f"{bad}a", f"b{bad}", "c\rd"]
    frame = HEART.data[["age", "sex", "platelets"]].set_axis(names, axis=1)
    y = np.where(HEART.target == 1, f"ill{bad}", f"well{bad}")
    shared = {"groups": {f"g{bad}": names[:2]}, "discount": dict.fromkeys(names[:2], 0.5)}
    clf = fixed(Prices(price=dict.fromkeys(names, 1), **shared), max_stages=2, random_state=0).fit(frame, y)
    path = tmp_path_factory.mktemp("hostile") / "m.emsco"
    clf.save(path, notes={"data": bad, bad: "text", "target": "y"})
    frame.assign(y=y).to_parquet(path.with_name("t.parquet"))
    return path


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


@pytest.mark.parametrize(
    "command", [["inspect"], ["front"], ["use", "--knee"], ["inspect", "--json"], ["front", "--json"]]
)
def test_no_text_of_a_model_file_controls_the_terminal(hostile, capsys, command):
    printed = call(capsys, command[0], hostile, *command[1:])
    assert not CONTROLS.search(printed.out + printed.err)


def test_no_text_of_a_model_file_controls_the_terminal_of_other_commands(hostile, tmp_path, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr("click.prompt", lambda question, **_: asked.append(question) or "")
    printed = [call(capsys, "ask", hostile), call(capsys, "evaluate", hostile, hostile.with_name("t.parquet"))]
    (tmp_path / "o.csv").write_text("nothing\n1\n")
    printed.append(call(capsys, "predict", hostile, tmp_path / "o.csv", "-o", tmp_path / "p.csv", expect=1))
    assert not CONTROLS.search("".join([*asked, *(part.out + part.err for part in printed)]))


def test_half_a_character_in_the_notes_is_shown_as_its_number(tmp_path, capsys):
    clf = MultiStageClassifier([0]).fit([[0.0], [1.0]] * 5, [0, 1] * 5)
    clf.save(tmp_path / "m.emsco", notes={"by": "\ud800 alone"})
    assert "\\ud800 alone" in call(capsys, "inspect", tmp_path / "m.emsco").out
