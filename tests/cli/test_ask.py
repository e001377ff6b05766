import json
import os
import subprocess
import sys

import click
import numpy as np
import pandas as pd
import pytest

import emsco
from emsco import MultiStageClassifier
from tests.cli.calls import HEART, SMALL, TARGET, call


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
    os.mkfifo(tmp_path / "pipe")
    assert "is no regular file" in ask(model, [], "--state", str(tmp_path / "pipe")).stderr  # it would wait for ever
    assert "is not the state of a case" in ask(model, [], "--state", str(state)).stderr


def test_a_promise_that_cannot_be_made_is_a_warning_and_an_answer(folder, tmp_path, capsys, monkeypatch):
    path = tmp_path / "m.emsco"
    printed = call(capsys, "fit", folder / "heart.csv", "--target", TARGET, *SMALL, "--guarantee", "0.99", "-o", path)
    assert "warning: no label will be given: the calibration rows cannot support" in printed.err
    assert "no label is ever given" in printed.out
    call(capsys, "predict", path, folder / "heart.csv", "-o", tmp_path / "out.csv")
    assert (pd.read_csv(tmp_path / "out.csv")["label"] == "inconclusive").all()
    answers = iter([""] * HEART.data.shape[1])
    monkeypatch.setattr("click.prompt", lambda *_, **__: next(answers))
    assert "no confidence is enough" in call(capsys, "ask", path).out


def answering(monkeypatch, *answers):
    """Give answers one after the other, then end the input; return the questions that will have been asked."""
    left, asked = iter(answers), []

    def prompt(question, **_):
        asked.append(question.strip())
        try:
            return str(next(left))
        except StopIteration:
            raise click.Abort from None

    monkeypatch.setattr("click.prompt", prompt)
    return asked


@pytest.fixture(scope="module")
def lettered(tmp_path_factory):
    """A model that asks for a category, then a number; nothing is ever certain enough."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"letter": rng.choice(["p", "q"], 200), "amount": rng.normal(1000, 500, 200)})
    y = ((frame["letter"] == "q") ^ (rng.random(200) < 0.2)).astype(int)
    clf = MultiStageClassifier([0, 1], costs=[3, 4], threshold=1.0).fit(frame, y)
    path = tmp_path_factory.mktemp("ask") / "m.emsco"
    clf.save(path)
    return path, clf


@pytest.mark.parametrize(
    ("typed", "number"),
    [("1.5", 1.5), ("1,5", 1.5), ("0,500", 0.5), ("1500", 1500), ("-12,25", -12.25), ("1e3", 1000), ("1,2345", 1.2345)],
)
def test_a_comma_may_be_a_decimal_one(lettered, capsys, monkeypatch, typed, number):
    path, clf = lettered
    answering(monkeypatch, "p", typed)
    confidence = clf.decide(pd.DataFrame({"letter": ["p"], "amount": [number]})).confidence[0]
    assert f"confidence {confidence:.1%}" in call(capsys, "ask", path).out


@pytest.mark.parametrize("typed", ["1,500", "-1,500", "12,000,000"])
def test_a_number_that_may_be_one_of_two_is_asked_for_again(lettered, capsys, monkeypatch, typed):
    asked = answering(monkeypatch, "p", typed, 1500)
    printed = call(capsys, "ask", lettered[0]).out
    assert f"'{typed}' may be {typed.replace(',', '')}" in printed
    assert asked[1:] == ["amount", "amount"]


def test_a_category_named_q_is_an_answer_where_it_is_one(lettered, capsys, monkeypatch):
    answering(monkeypatch, "q", 1000)
    assert "7 paid" in call(capsys, "ask", lettered[0]).out
    answering(monkeypatch, "p", "q")
    call(capsys, "ask", lettered[0], expect=130)


def test_a_case_that_is_continued_shows_what_was_paid(lettered, tmp_path, capsys, monkeypatch):
    state = tmp_path / "case.json"
    answering(monkeypatch, "p")  # then the input ends
    call(capsys, "ask", lettered[0], "--state", state, expect=130)
    answering(monkeypatch, 1000)
    printed = call(capsys, "ask", lettered[0], "--state", state).out
    assert "Buy amount for 4 (3 paid so far)" in printed
    assert "7 paid." in printed


def test_ask_says_what_buying_saves_where_errors_have_prices(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    clf = emsco.EMSCOClassifier([1], errors=[[0, 50], [50, 0]], random_state=0).fit(
        (y + rng.normal(0, 0.3, 200))[:, None], y
    )
    clf.save(tmp_path / "m.emsco")
    saves = clf.session().step().saves
    assert saves > 0
    assert f"for 1; buying saves {saves:,.4g} on average" in " ".join(ask(tmp_path / "m.emsco", ["0.5"]).stdout.split())
