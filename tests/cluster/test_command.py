"""``emsco fit --cluster``: one file, and many that are one table."""

import json

import numpy as np
from numpy.testing import assert_array_equal
import pytest

import emsco
from tests.cli.calls import call
from tests.cluster.test_fitting import cases

FIT = ("--target", "label", "--threshold", "0.8", "--final", "search", "--encoding", "linear", "--regularisation", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    frame, y = cases(3000)
    table = frame.assign(label=y.to_numpy())
    (folder / "rows").mkdir()
    for i in range(6):
        table[500 * i : 500 * (i + 1)].to_parquet(folder / f"rows/{i}.parquet", index=False)
    table.to_parquet(folder / "all.parquet", index=False)
    return folder


def test_one_file_gives_the_model_of_one_process(folder, tmp_path, capsys, client):
    one, many = tmp_path / "one.emsco", tmp_path / "many.emsco"
    call(capsys, "fit", folder / "all.parquet", *FIT, "-o", one)
    printed = call(capsys, "fit", folder / "all.parquet", *FIT, "-o", many, "--cluster", client.scheduler.address)
    assert f"Cluster {client.scheduler.address}" in printed.err
    first, second = emsco.load(one), emsco.load(many)
    assert_array_equal(first.front_.designs, second.front_.designs)
    frame, _ = cases(500, seed=1)
    assert_array_equal(first.decide(frame).confidence, second.decide(frame).confidence)


def test_many_files_are_one_table(folder, tmp_path, capsys, client, monkeypatch):
    from emsco.cluster import fitting

    monkeypatch.setattr(fitting, "_SAMPLE_ROWS", 1000)
    monkeypatch.setattr(fitting, "_RARE", 50)
    out, where = tmp_path / "model.emsco", client.scheduler.address
    printed = call(capsys, "fit", f"{folder}/rows/*.parquet", *FIT, "-o", out, "--cluster", where, "--json")
    clf = emsco.load(out)
    assert json.loads(printed.out)["model"] == str(out)
    assert clf.notes_["rows"] == 3000
    assert clf.evaluation_.n_rows in (500, 1000)
    assert clf.front_.n_samples == 3000 - clf.evaluation_.n_rows
    frame, y = cases(1000, seed=1)
    decisions = clf.decide(frame)
    assert np.mean(decisions.label.data[decisions.conclusive] == y[decisions.conclusive]) > 0.8


def test_what_is_missing_is_said(folder, tmp_path, capsys):
    arguments = ("fit", folder / "rows", *FIT, "-o", tmp_path / "model.emsco")
    assert "give --cluster" in call(capsys, *arguments, expect=2).err
