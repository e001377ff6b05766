import json

import numpy as np
import pandas as pd
import pytest

import emsco
from emsco import MultiStageClassifier
from tests.cli.calls import HEART, TARGET, call


@pytest.fixture
def other(model, tmp_path, capsys):
    """The same model with another point in use."""
    path = tmp_path / "other.emsco"
    path.write_bytes(model.read_bytes())
    call(capsys, "use", path, "--best", "cost")
    return path


def test_compare_says_which_model_is_cheaper_and_what_the_rows_cannot_tell(folder, model, other, capsys):
    printed = call(capsys, "compare", model, other, folder / "heart.csv")
    assert "299 cases; both models say the same of" in printed.out
    assert "Mean cost: other.emsco is cheaper." in printed.out
    assert "recall of 1" in printed.out
    assert "warning: model.emsco was trained on cases of" in printed.err
    again = call(capsys, "compare", model, model, folder / "heart.csv").out
    assert "Accuracy: these rows cannot tell." in again
    assert "Mean cost: the same on every row." in again


def test_compare_prints_the_figures_of_the_library_as_json(folder, model, other, capsys, tmp_path):
    record = json.loads(call(capsys, "compare", model, other, folder / "heart.parquet", "--json").out)
    expected = emsco.compare(emsco.load(model), emsco.load(other), HEART.data, HEART.target)
    assert record["names"] == ["model.emsco", "other.emsco"]
    assert [f["difference"] for f in record["figures"]] == [f.difference for f in expected.figures]
    HEART.data.assign(**{TARGET: HEART.target})[:1].to_csv(tmp_path / "one.csv", index=False)
    one = json.loads(call(capsys, "compare", model, other, tmp_path / "one.csv", "--json").out)
    assert one["figures"][2]["high"] is None


def test_compare_refuses_wrong_files_in_one_line(folder, model, tmp_path, capsys):
    data = folder / "heart.csv"
    assert "there is no file" in call(capsys, "compare", model, tmp_path / "none.emsco", data, expect=1).err
    assert "error: " in call(capsys, "compare", model, data, data, expect=1).err
    assert "no column 'lived'" in call(capsys, "compare", model, model, data, "--target", "lived", expect=1).err
    frame = pd.read_csv(data)
    frame.drop(columns=["serum_creatinine", "ejection_fraction", "age"]).to_csv(tmp_path / "few.csv", index=False)
    assert "error: " in call(capsys, "compare", model, model, tmp_path / "few.csv", expect=1).err
    frame.assign(**{TARGET: 7}).to_csv(tmp_path / "seven.csv", index=False)
    assert "holds 7" in call(capsys, "compare", model, model, tmp_path / "seven.csv", expect=1).err
    words = tmp_path / "words.emsco"
    labels = np.where(HEART.target == 1, "died", "lived")
    MultiStageClassifier([["age"]], HEART.prices).fit(HEART.data, labels).save(words)
    assert "same classes" in call(capsys, "compare", model, words, data, "--target", TARGET, expect=1).err
    assert "give --target" in call(capsys, "compare", words, words, data, expect=2).err
