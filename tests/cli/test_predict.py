from concurrent.futures import ThreadPoolExecutor
import json
import os

from numpy.testing import assert_array_equal
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
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


def test_kept_cells_are_written_as_they_are(model, tmp_path, capsys):
    frame = HEART.data.head(4).assign(id=["NA", "null", "?", "007"])
    frame.to_csv(tmp_path / "in.csv", index=False)
    for name in ("out.csv", "out.parquet"):
        call(capsys, "predict", model, tmp_path / "in.csv", "-o", tmp_path / name, "--keep", "id", "--keep", "age")
    cells = pd.read_csv(tmp_path / "in.csv", dtype=str, keep_default_na=False)[["id", "age"]]
    written = pd.read_csv(tmp_path / "out.csv", dtype=str, keep_default_na=False)
    pd.testing.assert_frame_equal(written[["id", "age"]], cells)
    assert pd.read_parquet(tmp_path / "out.parquet")[["id", "age"]].to_dict() == cells.to_dict()


def test_a_kept_feature_may_be_text_in_a_later_block(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.data.files._BLOCK_BYTES", 2000)
    bought = {name for stage in emsco.load(model).stages_ for name in stage.features}
    unused = next(name for name in HEART.data if name not in bought)
    frame = HEART.data.astype({unused: object})
    frame.loc[298, unused] = "unknown"
    frame.to_csv(tmp_path / "in.csv", index=False)
    call(capsys, "predict", model, tmp_path / "in.csv", "-o", tmp_path / "out.parquet", "--keep", unused)
    assert pd.read_parquet(tmp_path / "out.parquet")[unused].tolist() == [str(cell) for cell in frame[unused]]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([b"\xff", b"a"]),
        pa.array([[("a", 1)], []], pa.map_("string", "int8")),
    ],
    ids=lambda column: str(column.type).partition("<")[0],
)
def test_what_csv_cannot_hold_is_refused_and_parquet_keeps_it(column, model, tmp_path, capsys):
    table = pa.Table.from_pandas(HEART.data.head(2)).append_column("extra", column)
    parquet.write_table(table, tmp_path / "in.parquet")
    predict = ["predict", model, tmp_path / "in.parquet", "--keep", "extra", "-o"]
    printed = call(capsys, *predict, tmp_path / "out.csv", expect=1).err
    assert "which CSV cannot hold; write a Parquet file" in printed
    assert not (tmp_path / "out.csv").exists()
    call(capsys, *predict, tmp_path / "out.parquet")
    assert parquet.read_table(tmp_path / "out.parquet").column("extra").to_pylist() == column.to_pylist()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_gets_the_rows_and_stays_a_pipe(folder, model, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(pipe.read_bytes)
        call(capsys, "predict", model, folder / "heart.csv", "-o", pipe)
        assert len(read.result(timeout=60).splitlines()) == 300
    assert pipe.is_fifo()


def test_formulas_are_written_as_they_are_or_escaped(model, tmp_path, capsys):
    frame = HEART.data.head(4).assign(**{"=note": ["=1+1", "@sum", "-5.5", "well"]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    predict = ["predict", model, tmp_path / "in.csv", "-o", tmp_path / "out.csv", "--keep", "=note"]
    call(capsys, *predict)
    assert pd.read_csv(tmp_path / "out.csv")["=note"].tolist() == ["=1+1", "@sum", "-5.5", "well"]
    call(capsys, *predict, "--escape-formulas")
    assert pd.read_csv(tmp_path / "out.csv")["'=note"].tolist() == ["'=1+1", "'@sum", "-5.5", "well"]
