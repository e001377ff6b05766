import os
from threading import Thread

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest

from emsco import MultiStageClassifier
from emsco.data import files
from emsco.data.files import TableFile
from emsco.deployed import streaming
from emsco.deployed.streaming import predict_file
from emsco.exceptions import FileError, InvalidInputError, MissingColumnError


def cases(n=500, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "age": rng.integers(20, 90, n),
            "sex": rng.choice(["m", "f"], n),
            "dose": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "code": rng.choice(["01", "02", "x"], n),
        }
    )
    frame["died"] = np.where(frame["age"] + 20 * frame["dose"].fillna(0) + rng.normal(0, 15, n) > 55, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def fitted():
    frame = cases()
    design = [["age"], ["sex", "code"], ["dose"]]
    return MultiStageClassifier(design, [1, 2, 4, 3], threshold=0.85).fit(
        frame[["age", "sex", "dose", "code"]], frame["died"]
    )


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("n_block", [7, 2**16])
def test_a_file_in_blocks_is_decided_as_the_table_is(fitted, tmp_path, monkeypatch, kind, n_block):
    frame = cases(3000, seed=1)
    source, target = tmp_path / f"in.{kind}", tmp_path / f"out.{kind}"
    frame.to_csv(source, index=False) if kind == "csv" else frame.to_parquet(source)
    monkeypatch.setattr(files, "BLOCK_ROWS", n_block * 10)
    monkeypatch.setattr(files, "_BLOCK_BYTES", n_block * 100)
    totals = predict_file(fitted, TableFile(source), target, keep=["id", "age"])
    out = pd.read_csv(target, dtype={"id": str}) if kind == "csv" else pd.read_parquet(target)
    expected = fitted.decide(frame)
    assert list(out) == ["id", "age", "label", "confidence", "stage", "cost", "bought"]
    assert_array_equal(out["id"], frame["id"])
    assert_array_equal(out["confidence"], expected.confidence)
    assert_array_equal(out["stage"], expected.stage + 1)
    assert_array_equal(out["cost"], expected.cost)
    assert_array_equal(out["label"], np.where(
        expected.conclusive, expected.label.data, "inconclusive"))  # fmt: skip
    bought = ["age", "age; sex; code", "age; sex; code; dose"]
    assert_array_equal(out["bought"], [bought[s] for s in expected.stage])
    assert totals.n_rows == 3000
    assert totals.n_conclusive == expected.conclusive.sum()
    assert totals.left == np.bincount(expected.stage).tolist()
    assert totals.cost == pytest.approx(expected.cost.sum())


def test_a_file_without_rows_gives_one_without_rows(fitted, tmp_path):
    (tmp_path / "in.csv").write_text("age,sex,dose,code,id\n")
    for name in ("out.csv", "out.parquet"):
        totals = predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / name, keep=["id"])
        assert totals.n_rows == 0
    assert (tmp_path / "out.csv").read_text().strip() == '"id","label","confidence","stage","cost","bought"'
    assert list(pd.read_parquet(tmp_path / "out.parquet")) == ["id", *streaming.COLUMNS]


def test_columns_that_nobody_needs_may_be_absent_and_others_not(fitted, tmp_path):
    frame = cases(200).drop(columns=["id", "died", "dose"])
    frame.to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(MissingColumnError, match="'dose' is not in the table"):
        predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / "out.csv")
    assert not list(tmp_path.glob("*out.csv*")), "nothing half-written is left"


def test_a_wrong_cell_is_named_with_its_place_in_the_file(fitted, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_BLOCK_BYTES", 500)
    lines = ["age,sex,dose,code", *["50,m,1,x"] * 100, "old,m,1,x"]
    (tmp_path / "in.csv").write_text("\n".join(lines))
    with pytest.raises(InvalidInputError, match=r"column 'age' holds 'old' in row \d+.*counted from row \d+ of"):
        predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / "out.csv")


def test_outputs_that_cannot_be(fitted, tmp_path):
    cases(5).to_csv(tmp_path / "in.csv", index=False)
    source = TableFile(tmp_path / "in.csv")
    with pytest.raises(FileError, match="no folder"):
        predict_file(fitted, source, tmp_path / "no" / "out.csv")
    with pytest.raises(FileError, match="is a folder"):
        predict_file(fitted, source, tmp_path)
    with pytest.raises(FileError, match="no column 'name'"):
        predict_file(fitted, source, tmp_path / "out.csv", keep=["name"])
    cases(5).assign(cost=1).to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(FileError, match="cannot be kept"):
        predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / "out.csv", keep=["cost"])


def test_progress_reaches_the_end(fitted, tmp_path):
    cases(300).to_csv(tmp_path / "in.csv", index=False)
    seen = []
    predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / "out.csv", on_progress=lambda *a: seen.append(a))
    assert seen[-1] == ("deciding", 1.0, "300 rows")


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_replaced_output_keeps_its_permissions_and_its_link(fitted, tmp_path, name):
    cases(300).to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "private").touch(mode=0o600)
    (tmp_path / name).symlink_to("private")
    predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / name)
    assert (tmp_path / name).is_symlink()
    assert (tmp_path / "private").stat().st_mode & 0o777 == 0o600
    assert len(pd.read_csv(tmp_path / name) if name == "out.csv" else pd.read_parquet(tmp_path / name)) == 300


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_pipe_receives_the_same_bytes_as_a_file(fitted, tmp_path, name):
    cases(300).to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / "pipe").mkdir()
    os.mkfifo(tmp_path / "pipe" / name)
    read = []
    reader = Thread(target=lambda: read.append((tmp_path / "pipe" / name).read_bytes()))
    reader.start()
    for folder in (tmp_path / "pipe", tmp_path):
        predict_file(fitted, TableFile(tmp_path / "in.csv"), folder / name)
    reader.join()
    assert read == [(tmp_path / name).read_bytes()]


@pytest.mark.parametrize("name", ["out.csv", "out.parquet"])
def test_a_full_disk_leaves_the_old_output(fitted, tmp_path, monkeypatch, name):
    cases(300).to_csv(tmp_path / "in.csv", index=False)
    (tmp_path / name).write_bytes(b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"No space left on device. Free some space"):
        predict_file(fitted, TableFile(tmp_path / "in.csv"), tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", name]
