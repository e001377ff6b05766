import signal

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
