import json

import pytest
from rich.console import Console

import emsco
from tests.cli.calls import HEART, call


def test_inspect_says_what_is_in_a_file(model, capsys):
    printed = call(capsys, "inspect", model).out
    for expected in ("EMSCOClassifier", "proven", "heart.csv", "serum_creatinine", "emsco fit heart.csv"):
        assert expected in printed
    record = json.loads(call(capsys, "inspect", model, "--json").out)
    assert record["prices"] == {k: float(v) for k, v in HEART.prices.items()}


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
