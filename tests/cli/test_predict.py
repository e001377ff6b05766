import json

from numpy.testing import assert_array_equal
import pandas as pd
import pytest

import emsco
from tests.cli.calls import HEART, call


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
