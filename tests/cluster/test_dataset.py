"""Folders of files: decided part by part, with a manifest; what is there is not done again."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
from pyarrow import parquet
import pytest

import emsco
from emsco import MultiStageClassifier
from emsco.cluster.crew import Crew
from emsco.cluster.dataset import MANIFEST, How, found_files, predict_files
from emsco.exceptions import FileError
from tests.cli.calls import call
from tests.cluster.conftest import need_loopback
from tests.service.conftest import DESIGN, PRICES, mixed_cases


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """A model, and a folder of three files, one of them without rows and one of three row groups."""
    folder = tmp_path_factory.mktemp("rows")
    X, y = mixed_cases(900)
    MultiStageClassifier(DESIGN, PRICES, threshold=0.85).fit(X[:300], y[:300]).save(folder / "model.emsco")
    X["id"] = [f"case {i}" for i in range(len(X))]
    (folder / "in").mkdir()
    X[300:500].to_parquet(folder / "in/a.parquet", index=False)
    X[:0].astype({"country": "str", "id": "str"}).to_parquet(folder / "in/b.parquet", index=False)
    X[500:].to_parquet(folder / "in/c.parquet", index=False, row_group_size=150)
    return folder, X[300:]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def decided(rows, target, **options):
    folder, _ = rows
    clf = emsco.load(folder / "model.emsco")
    how, files = How(keep=("id",)), found_files(f"{folder}/in/*.parquet")
    return predict_files(clf.deployed_, "digest", files, target, how=how, part_rows=100, **options)


def test_parts_say_what_decide_says(rows, tmp_path):
    folder, X = rows
    totals, n_before = decided(rows, tmp_path / "out")
    assert n_before == 0
    decisions = emsco.load(folder / "model.emsco").decide(X)
    assert totals.n_rows == len(X) == 600
    assert totals.n_conclusive == decisions.conclusive.sum()
    assert totals.cost == pytest.approx(decisions.cost.sum())
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [MANIFEST, *(f"part-{i:07}.parquet" for i in range(5))]
    table = pd.concat([pd.read_parquet(tmp_path / "out" / name) for name in names[1:]], ignore_index=True)
    assert table["id"].tolist() == X["id"].tolist()
    np.testing.assert_array_equal(table["confidence"], decisions.confidence)
    np.testing.assert_array_equal(table["label"] == "inconclusive", ~decisions.conclusive)
    manifest = json.loads((tmp_path / "out" / MANIFEST).read_text())
    assert [part["n_rows"] for part in manifest["parts"]] == [200, 0, 150, 150, 100]
    assert manifest["totals"]["n_rows"] == 600
    assert parquet.read_table(tmp_path / "out").num_rows == 600  # other readers take the folder for a data set


def test_a_cluster_writes_the_same_bytes(rows, tmp_path, client):
    decided(rows, tmp_path / "one")
    shown = []
    crew = Crew(client)
    totals, _ = decided(rows, tmp_path / "two", crew=crew, on_progress=lambda *each: shown.append(each))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert totals.n_rows == 600
    assert crew.totals.tasks == 5
    assert shown[-1][1] == 1.0
    assert "2 workers, 5 tasks" in shown[-1][2]


def test_a_run_that_was_ended_goes_on(rows, tmp_path, monkeypatch):
    from emsco.cluster import dataset

    decided(rows, tmp_path / "whole")
    done = []

    def failing(model, part, *rest):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(part.name)
        return original(model, part, *rest)

    original = dataset.decide_part
    monkeypatch.setattr(dataset, "decide_part", failing)
    with pytest.raises(KeyboardInterrupt):
        decided(rows, tmp_path / "out")
    assert not (tmp_path / "out" / MANIFEST).exists()
    monkeypatch.setattr(dataset, "decide_part", lambda *each: [done.append(each[1].name), original(*each)][1])
    done.clear()
    assert decided(rows, tmp_path / "out")[1] == 2
    assert len(done) == 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    done.clear()
    assert decided(rows, tmp_path / "out")[1] == 5
    assert not done
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_folder_of_something_else_is_refused(rows, tmp_path):
    folder, _ = rows
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("hello")
    with pytest.raises(FileError, match="not an empty folder"):
        decided(rows, tmp_path / "full")
    decided(rows, tmp_path / "out")
    clf = emsco.load(folder / "model.emsco")
    with pytest.raises(FileError, match="another run, of model and how"):
        predict_files(clf.deployed_, "other", found_files(f"{folder}/in/*.parquet"), tmp_path / "out", part_rows=100)
    with pytest.raises(FileError, match="there is no file"):
        found_files(f"{folder}/out/*.parquet")


def test_the_command(rows, tmp_path, capsys):
    folder, _ = rows
    printed = call(capsys, "predict", folder / "model.emsco", f"{folder}/in/*.parquet", "-o", tmp_path / "out")
    assert "600 cases" in printed.out
    assert call(capsys, "predict", folder / "model.emsco", folder / "in", "-o", tmp_path / "out", "--json").err == (
        "3 parts were there already.\n"
    )
    message = call(capsys, "predict", folder / "model.emsco", folder / "in", "-o", tmp_path / "out", "--cluster",
                   "nowhere", expect=1).err  # fmt: skip
    assert "--cluster must be local, local:N, the address" in message


def test_the_command_on_a_running_cluster(rows, tmp_path, capsys, client):
    folder, _ = rows
    arguments = ("predict", folder / "model.emsco", folder / "in", "-o", tmp_path / "out", "--cluster")
    printed = call(capsys, *arguments, client.scheduler.address)
    assert f"Cluster {client.scheduler.address}: 2 workers, 4 threads" in printed.err
    assert "600 cases" in printed.out
    (tmp_path / "scheduler.json").write_text(json.dumps({"address": client.scheduler.address}))
    again = call(capsys, *arguments, tmp_path / "scheduler.json")
    assert "3 parts were there already." in again.err


@pytest.mark.slow
def test_a_command_that_is_killed_with_its_cluster_goes_on(rows, tmp_path):
    """The process that is killed holds the scheduler; its workers end with it."""
    need_loopback()
    folder, X = rows
    (tmp_path / "in").mkdir()
    for i in range(30):
        X.to_parquet(tmp_path / f"in/{i:02}.parquet", index=False, row_group_size=60)
    command = [sys.executable, "-m", "emsco", "predict", str(folder / "model.emsco"), str(tmp_path / "in"), "-o"]
    subprocess.run([*command, str(tmp_path / "whole")], check=True, capture_output=True)
    running = subprocess.Popen([*command, str(tmp_path / "out"), "--cluster", "local:2"], start_new_session=True)
    while running.poll() is None and not [*tmp_path.glob("out/_done/*")]:
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    done = subprocess.run([*command, str(tmp_path / "out"), "--cluster", "local:2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
