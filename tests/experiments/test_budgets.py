import numpy as np
import pytest

from emsco.experiments import budgets
from emsco.experiments.__main__ import main
from emsco.experiments.budgets import Spent, Wanted

pytest.importorskip("lightgbm")
QUICK = ["budgets", "--quick", "--data", "heart", "--splits", "1", "--budget", "40", "200"]


def test_the_quick_experiment_spends_no_more_than_it_may_and_goes_on_where_it_was(tmp_path, capsys, monkeypatch):
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "EMSCO, trained on half" in printed.out
    assert printed.err == ""
    assert (tmp_path / "budgets.png").read_bytes().startswith(b"\x89PNG")
    spent = budgets.read(tmp_path / "budgets.csv")
    assert {(s.method, s.budget) for s in spent} == {(name, b) for name in budgets.METHODS for b in (40, 200)}
    assert all(0 <= s.coverage <= 1 and s.mean_cost <= 750 for s in spent)
    budgets.write([s for s in spent if s.method != "CEGB*"], tmp_path / "budgets.csv")
    ran = []
    original = budgets._run_one
    monkeypatch.setattr(budgets, "_run_one", lambda *job: ran.append(job[-1]) or original(*job))
    assert main([*QUICK, "--out", str(tmp_path)]) == 0
    assert ran == ["CEGB*"]

    def plain(rows):
        return {(s.method, s.budget): (s.coverage, s.accuracy, s.mean_cost) for s in rows}

    assert plain(budgets.read(tmp_path / "budgets.csv")) == plain(spent)


def test_both_are_tuned_within_the_limits_on_the_rows_that_tune():
    costs, X, y, X_val, y_val, _, _ = budgets.split("heart", 0)
    wanted = Wanted(0.8, (150.0,))
    theirs = budgets.Theirs(0, quick=True)
    theirs.fit(X, y, costs, X_val, y_val, wanted)
    ours = budgets.OursAsSplit(0, quick=True)
    ours.fit(X, y, costs, X_val, y_val, wanted)
    for method in (theirs, ours):
        decisions = method.decide(X_val, 150.0)
        assert decisions.conclusive.mean() >= 0.8
        assert decisions.cost.mean() <= 150
    assert np.isfinite(ours.classifier.front_.thresholds).all()


def test_where_nothing_is_within_the_budget_the_cheapest_is_used():
    costs, X, y, X_val, y_val, X_test, _ = budgets.split("heart", 0)
    wanted = Wanted(1.0, (0.5,))
    for method in (budgets.Theirs(0, quick=True), budgets.OursAsSplit(0, quick=True)):
        method.fit(X, y, costs, X_val, y_val, wanted)
        assert method.decide(X_test, 0.5).conclusive.all()


def test_the_table_has_the_means_of_the_splits(tmp_path, capsys):
    rows = [Spent(0, "EMSCO", 5.0, 0.9, 0.95, 4.0, 10.0), Spent(1, "EMSCO", 5.0, 0.8, 0.97, 5.0, 20.0)]
    line = budgets.text_table(rows).splitlines()[1].split()
    assert line == ["5", "EMSCO", "2", "0.850", "0.9600", "4.50", "15"]
    (tmp_path / "budgets.csv").write_text("a,b\n1,2\n")
    assert main([*QUICK, "--out", str(tmp_path)]) == 1
    assert "is not a file of this experiment" in capsys.readouterr().err
