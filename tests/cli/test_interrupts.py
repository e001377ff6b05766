import os
from pathlib import Path
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from emsco.cli.app import run
from emsco.stages.logistic import LogisticTrainer


@pytest.fixture
def ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ignored")
def test_where_the_shell_ignores_ctrl_c_a_fit_does_too(tmp_path, monkeypatch, capsys):
    """As in the background, and under nohup."""
    original = LogisticTrainer.train

    def interrupted(self, sets):
        signal.raise_signal(signal.SIGINT)
        return original(self, sets)

    monkeypatch.setattr(LogisticTrainer, "train", interrupted)
    X = np.random.default_rng(0).normal(size=(60, 3)).round(3)
    rows = [",".join(map(str, [*row, int(row[0] > 0)])) for row in X]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,y", *rows]))
    command = ["fit", str(tmp_path / "t.csv"), "--target", "y", "-o", str(tmp_path / "m.emsco"), "--jobs", "1"]
    assert run(command) == 0
    assert "interrupted" not in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def children(pid):
    """Ids of the processes that a process has started."""
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes as Linux shows them")
def test_a_run_that_is_terminated_ends_its_workers_and_says_so_in_a_word(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 8)).round(3)
    rows = [
        ",".join(map(str, [*row, int(row[0] + noise > 0)])) for row, noise in zip(X, rng.normal(size=2000), strict=True)
    ]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,c,d,e,f,g,h,y", *rows]))
    fit = ["fit", "t.csv", "--target", "y", "--estimator", "forest", "--jobs", "2"]
    source = str(Path(__file__).parents[2] / "src")
    with subprocess.Popen(
        [sys.executable, "-m", "emsco", *fit], cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as process:  # fmt: skip
        deadline = time.monotonic() + 120
        while len(workers := children(process.pid)) < 3 and time.monotonic() < deadline:  # two, and one that cleans up
            time.sleep(0.2)
        assert len(workers) >= 3
        process.terminate()
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + signal.SIGTERM
    assert said == "\nterminated\n"
    assert not (tmp_path / "model.emsco").exists()
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
