import json
import subprocess
import sys

import numpy as np
import pandas as pd

import emsco
from tests.cli.calls import HEART, TARGET, call


def ask(model, answers, *options):
    return subprocess.run(
        [sys.executable, "-m", "emsco", "ask", str(model), *options],
        input="".join(f"{answer}\n" for answer in answers), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_ask_decides_as_decide_does(model):
    clf = emsco.load(model)
    decisions = clf.decide(HEART.data)
    for row in (0, int(np.argmax(~decisions.conclusive))):
        columns = [c for s in clf.stages_[: decisions.stage[row] + 1] for c in s.new_columns]
        done = ask(model, [HEART.data.iloc[row, c] for c in columns])
        assert done.returncode == 0, done.stderr
        last = done.stdout.strip().splitlines()[-1]
        assert f"{decisions.cost[row]:,.6g} paid" in last
        assert f"confidence {decisions.confidence[row]:.1%}" in last
        assert ("inconclusive" in last) == (not decisions.conclusive[row])


def test_ask_asks_again_takes_nothing_for_an_answer_and_goes_on_from_a_file(model, tmp_path):
    state = tmp_path / "case.json"
    done = ask(model, ["much", "", "q"], "--state", str(state))
    assert done.returncode == 130
    assert "'much' is not a number" in done.stdout
    first = emsco.load(model).stages_[0].features
    assert json.loads(state.read_text())
    again = ask(model, ["1"] * 20, "--state", str(state))
    assert again.returncode == 0, again.stderr
    assert "paid." in again.stdout
    assert f"  {first[0]}:" not in again.stdout, "it was answered before"
    state.write_text("{")
    assert "is not the state of a case" in ask(model, [], "--state", str(state)).stderr


def test_a_promise_that_cannot_be_made_is_a_warning_and_an_answer(folder, tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.emsco"
    printed = call(capsys, "fit", folder / "heart.csv", "--target", TARGET, "--max-stages", 2, "--guarantee", "0.99",
                   "-o", path)  # fmt: skip
    assert "warning: no label will be given: the calibration rows cannot support" in printed.err
    assert "no label is ever given" in printed.out
    call(capsys, "predict", path, folder / "heart.csv", "-o", tmp_path / "out.csv")
    assert (pd.read_csv(tmp_path / "out.csv")["label"] == "inconclusive").all()
    answers = iter([""] * HEART.data.shape[1])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(answers))
    assert "no confidence is enough" in call(capsys, "ask", path).out
