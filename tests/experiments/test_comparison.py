import csv
import json

import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco.exceptions import FileError
from emsco.experiments import comparison, stages, thresholds
from emsco.experiments.__main__ import main
from emsco.experiments.comparison import Outcome, Trial
from emsco.experiments.published import paper_comparison
from emsco.experiments.setting import PAPER

QUICK = ["comparison", "--quick", "--data", "heart"]


def test_the_quick_comparison_runs_every_method_and_writes_everything(tmp_path, capsys):
    assert main([*QUICK, "--jobs", "2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    outcomes = comparison.read_outcomes(tmp_path / "trials.csv")
    assert {o.trial.method for o in outcomes} == set(comparison.methods("paper")) - set(comparison.ON_REQUEST)
    assert {o.trial.split for o in outcomes} == {0, 1}
    assert "heart, 2 trials" in printed.out
    assert printed.err == ""
    with (tmp_path / "table.csv").open() as file:
        table = {row["method"]: row for row in csv.DictReader(file)}
    assert float(table["Single-Stage"]["mean_cost"]) == 750
    assert float(table["Single-Stage"]["coverage"]) == 1
    for name in ("bars.png", "scatter.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
    for outcome in outcomes:
        saved = 1 - outcome.mean_cost / 750
        assert outcome.combined == pytest.approx(outcome.coverage + np.nan_to_num(outcome.accuracy) + saved)
        assert json.loads(outcome.chosen) is not None


def test_a_run_that_was_cut_off_goes_on_and_ends_alike(tmp_path, capsys, monkeypatch):
    few = [*QUICK, "--method", "EMSCO", "Single-Stage"]
    assert main([*few, "--out", str(tmp_path / "whole")]) == 0
    whole = comparison.read_outcomes(tmp_path / "whole" / "trials.csv")
    cut = tmp_path / "cut"
    cut.mkdir()
    text = (tmp_path / "whole" / "trials.csv").read_text()
    (cut / "trials.csv").write_text(text[: len(text) * 2 // 3])
    ran = []
    original = comparison.run_trial
    monkeypatch.setattr(comparison, "run_trial", lambda trial, **more: ran.append(trial) or original(trial, **more))
    assert main([*few, "--out", str(cut)]) == 0
    again = comparison.read_outcomes(cut / "trials.csv")

    def plain(outcomes):
        return {o.trial: (o.coverage, o.accuracy, o.mean_cost, o.chosen) for o in outcomes}

    assert plain(again) == plain(whole)
    assert 0 < len(ran) < len(whole)
    capsys.readouterr()


def test_splits_are_disjoint_in_proportion_and_repeatable():
    for dataset in PAPER:
        costs, X, y, X_val, y_val, _, y_test = comparison.split(dataset, 3)
        n = len(y) + len(y_val) + len(y_test)
        assert abs(len(y) / n - 0.5) < 0.02
        assert abs(len(y_test) / n - 0.25) < 0.02
        assert len(costs) == X.shape[1]
        assert_array_equal(X_val, comparison.split(dataset, 3)[3])
        assert abs(np.mean(y == y[0]) - np.mean(y_test == y[0])) < 0.02


def outcome(method, coverage, accuracy, cost, split=0, chosen="{}"):
    return Outcome(Trial("paper", "heart", method, split, 0), coverage, accuracy, cost, 0.0, 1.0, chosen)


def test_means_margins_and_dominance():
    rows = comparison.summarise(
        [outcome("EMSCO", 0.8, 0.9, 100), outcome("EMSCO", 0.9, 0.8, 200, 1), outcome("b", 0.9, 0.9, 100),
         outcome("c", 0.5, 0.99, 50), outcome("d", 0.0, float("nan"), 10)]
    )  # fmt: skip
    emsco, b, _, d = rows
    assert emsco.mean["coverage"] == pytest.approx(0.85)
    assert emsco.margin["coverage"] == pytest.approx(12.7062 * 0.1 / 2, rel=1e-4)
    assert np.isnan(b.margin["coverage"])
    assert np.isnan(d.mean["accuracy"])
    assert comparison.dominated(emsco, rows) == ["b"]
    assert comparison.dominated(b, rows) == []
    text = comparison.text_table(rows, {})
    assert "EMSCO is dominated by b." in text


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "trials.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FileError, match="not a file of trials"):
        comparison.read_outcomes(tmp_path / "trials.csv")
    comparison.write_outcomes([outcome("EMSCO", 1, 1, 1), outcome("b", 1, 1, 1)], tmp_path / "trials.csv")
    lines = (tmp_path / "trials.csv").read_text().splitlines()
    (tmp_path / "trials.csv").write_text("\n".join([lines[0], lines[1].replace("1", "x"), lines[2]]))
    with pytest.raises(FileError, match=r"line 2 .* is damaged"):
        comparison.read_outcomes(tmp_path / "trials.csv")


def test_unknown_methods_are_named(tmp_path, capsys):
    assert main([*QUICK, "--method", "magic", "--out", str(tmp_path)]) == 1
    assert "there is no method ['magic']; methods: EMSCO" in capsys.readouterr().err


def test_the_papers_figures_are_carried():
    published = {(result.dataset, result.method): result for result in paper_comparison()}
    assert published["heart", "EMSCO"].mean_cost == 102.4
    assert published["pima", "GM*"].combined == 1.80
    assert {dataset for dataset, _ in published} == {"heart", "pima", "credit", "synthetic30"}
    assert {method for _, method in published} <= set(comparison.methods("paper"))


def test_thresholds_trade_coverage_for_accuracy_and_cost(tmp_path):
    assert main(["thresholds", "--draws", "3", "--out", str(tmp_path)]) == 0
    sweep = thresholds.run(n_draws=3)
    assert (np.diff(sweep.coverage, axis=1) <= 0).all()
    assert (np.diff(sweep.inverse_cost, axis=1) <= 1e-12).all()
    assert np.nanmean(sweep.accuracy[:, -1]) > np.nanmean(sweep.accuracy[:, 0])
    assert (tmp_path / "thresholds.png").exists()
    assert len((tmp_path / "thresholds.csv").read_text().splitlines()) == sweep.thresholds.size + 1


def test_stages_are_counted_from_the_trials(tmp_path, capsys):
    chosen = [json.dumps({"design": [0] * 6 + [1] * 6}), json.dumps({"design": [2] * 6 + [1] * 6})]
    trials = [outcome("EMSCO", 1, 1, 1, split, design) for split, design in enumerate(chosen)]
    comparison.write_outcomes(trials, tmp_path / "trials.csv")
    assert main(["stages", "--out", str(tmp_path)]) == 0
    (found,) = stages.assignments(trials)
    assert_array_equal(found.mean_stage, [2] * 12)
    assert found.n_designs == 2
    assert "price      10: mean stage  2.00" in capsys.readouterr().out
    assert main(["stages", "--out", str(tmp_path / "none")]) == 1
    assert "run the comparison" in capsys.readouterr().err
