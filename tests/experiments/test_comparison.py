import csv
import json
import re

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco import MultiStageClassifier
from emsco.baselines.base import Rival
from emsco.baselines.optimal_tree import OptimalTree
from emsco.baselines.single_stage import SingleStage
from emsco.exceptions import FileError
from emsco.experiments import comparison, methods, stages, standings, thresholds
from emsco.experiments.__main__ import main
from emsco.experiments.comparison import Outcome, Trial
from emsco.experiments.published import paper_comparison
from emsco.experiments.setting import PAPER

QUICK = ["comparison", "--quick", "--data", "heart"]


def test_the_quick_comparison_runs_every_method_and_writes_everything(tmp_path, capsys):
    assert main([*QUICK, "--jobs", "2", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    outcomes = comparison.read_outcomes(tmp_path / "trials.csv")
    assert {o.trial.method for o in outcomes} == set(methods.methods("paper")) - set(methods.ON_REQUEST)
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
    monkeypatch.setattr(comparison, "run_trial", lambda trial, parts: ran.append(trial) or original(trial, parts))
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
    rows = standings.summarise(
        [outcome("EMSCO", 0.8, 0.9, 100), outcome("EMSCO", 0.9, 0.8, 200, 1), outcome("b", 0.9, 0.9, 100),
         outcome("c", 0.5, 0.99, 50), outcome("d", 0.0, float("nan"), 10)]
    )  # fmt: skip
    emsco, b, _, d = rows
    assert emsco.mean["coverage"] == pytest.approx(0.85)
    assert emsco.margin["coverage"] == pytest.approx(12.7062 * 0.1 / 2, rel=1e-4)
    assert np.isnan(b.margin["coverage"])
    assert np.isnan(d.mean["accuracy"])
    assert standings.dominated(emsco, rows) == ["b"]
    assert standings.dominated(b, rows) == []
    text = standings.text_table(rows, {})
    assert "EMSCO is dominated by b." in text


def test_columns_stay_apart_and_deficits_are_named():
    trials = [
        Outcome(Trial("paper", "heart", method, split, 0), 0.961, 0.82, 1000.0 + split, score + split / 10, 1.0, "{}")
        for method, score in (("EMSCO", 2.6), ("better", 2.7), ("a method of a long name", 1.5))
        for split in range(3)
    ]
    rows, ahead = standings.summarise(trials), standings.leads(trials)
    assert [(lead.method, round(lead.mean, 6), lead.n_pairs) for lead in ahead] == [
        ("better", -0.1, 3), ("a method of a long name", 1.1, 3)
    ]  # fmt: skip
    assert ahead[0].standard_error == pytest.approx(0, abs=1e-9)
    published = {(p.dataset, p.method): p for p in paper_comparison()}
    lines = standings.text_table(rows, published, ahead).splitlines()
    for line in lines[2:5]:
        assert len(re.split("  +", line.strip())) in (
            7,
            10,
        )  # EMSCO: no lead over itself, four figures of the paper
        assert "+-0.0000." not in line
    assert "EMSCO's combined score is below that of better." in lines


def test_the_markdown_table_has_losses_first_and_says_how_many_pairs():
    trials = [
        Outcome(Trial("equal", "heart", method, split, 0), 0.9, 0.8, 10.0, score + split / 10, 2.0, "{}")
        for method, score, n in (("EMSCO", 2.6, 3), ("worse", 2.0, 3), ("better", 2.7, 2))
        for split in range(n)
    ]
    lines = standings.markdown_table(standings.summarise(trials), standings.leads(trials)).splitlines()
    assert lines[0] == "| EMSCO ahead of | heart | seconds |"
    assert lines[2] == "| (score of EMSCO, splits) | 2.700 (3) | 2.0 to 2.0 |"
    assert lines[3] == "| better | -0.100 ± 0.000 (2) | 2.0 to 2.0 |"
    assert lines[4] == "| worse | +0.600 ± 0.000 | 2.0 to 2.0 |"


def test_settings_share_what_they_tune_and_decide_as_alone(tmp_path, capsys, monkeypatch):
    tuned = []
    fit = Rival.fit

    def counted(self, *rows, **how):
        tuned.append((type(self).__name__, how["encoding"]))
        return fit(self, *rows, **how)

    monkeypatch.setattr(Rival, "fit", counted)
    few = [*QUICK, "--method", "STreeD*", "Single-Stage", "--out", str(tmp_path)]
    assert main([*few, "--setting", "equal", "deployed", "paper"]) == 0
    one_split = [("OptimalTree", "linear"), ("SingleStage", "linear"), ("SingleStage", "rank")]
    assert sorted(tuned) == sorted(one_split * 2)
    found = comparison.read_outcomes(tmp_path / "trials.csv")
    assert len(found) == 12
    for outcome in found:
        alone = comparison.run_trial(outcome.trial)
        assert alone.to_row() == outcome.to_row() | {"seconds": alone.seconds}
    assert (tmp_path / "equal" / "table.md").exists()
    assert (tmp_path / "deployed" / "leads.csv").exists()
    capsys.readouterr()


def test_columns_of_0_and_1_have_one_encoding():
    names = ("linear", "rank", "spline")
    _, X, _, X_val, _, _, _ = comparison.split("cs-iris", 0)
    assert list(methods.distinct(names, X, X_val)) == ["linear"]
    _, X, _, X_val, _, _, _ = comparison.split("heart", 0)
    assert list(methods.distinct(names, X, X_val)) == list(names)


def test_a_rival_that_reads_nothing_once_trained_again_keeps_its_tuned_model():
    class Fickle(OptimalTree):
        def refit(self, X, y, costs=None):
            return self.set_params(price_weights=(1e6,)).fit(X, y, costs, X, y)

    costs, X, y, X_val, y_val, X_test, _ = comparison.split("heart", 0)
    grid = {"price_weights": (0.1,), "max_depths": (1,), "min_rows_in_leaf": (5,), "smoothings": (0.0,)}
    kept = methods.Tuned(Fickle(random_state=0, **grid)).fit(X, y, costs, X_val, y_val)
    tuned = OptimalTree(random_state=0, **grid).fit(X, y, costs, X_val, y_val)
    assert kept.decide(X_test).bought.any()
    assert_array_equal(kept.decide(X_test).cost, tuned.decide(X_test).cost)


def test_quick_trials_are_kept_apart_from_full_ones(tmp_path, capsys):
    few = ["comparison", "--data", "heart", "--method", "Single-Stage", "--out", str(tmp_path)]
    assert main([*few, "--splits", "1"]) == 0
    assert main([*few, "--quick"]) == 0
    assert "heart, 2 trials" in capsys.readouterr().out
    found = comparison.read_outcomes(tmp_path / "trials.csv")
    assert [o.trial.quick for o in found] == [False, True, True]
    assert [o.trial.split for o in comparison.in_the_paper(found)] == [0]


def test_like_for_like_everybody_is_trained_on_training_and_validation_rows():
    costs, X, y, X_val, y_val, X_test, _ = comparison.split("heart", 0)
    single = methods.methods("equal")["Single-Stage"](PAPER["heart"], 0, True).fit(X, y, costs, X_val, y_val)
    both, labels = np.vstack([X, X_val]), np.concatenate([y, y_val])
    expected = SingleStage().fit(both, labels, costs, encoding=single.settings_["encoding"])
    assert_allclose(single.rival_.predict_proba(X_test), expected.predict_proba(X_test), atol=1e-9)
    ours = methods.methods("equal")["EMSCO"](PAPER["heart"], 0, True).fit(X, y, costs, X_val, y_val)
    everyone = MultiStageClassifier(
        ours.classifier.design_, costs, threshold=0.75, encoding=ours.classifier.deployed_.origin.encoding,
        C=ours.classifier.deployed_.origin.C,
    ).fit(both, labels)  # fmt: skip
    assert_array_equal(ours.decide(X_test).cost, everyone.decide(X_test).cost)


def test_rivals_have_the_full_grids_of_their_specification():
    made = {name: make(PAPER["heart"], 0) for name, make in methods.RIVALS.items()}
    miser, tree, boosted, forest = (made[name] for name in ("GM*", "CSTC*", "CEGB*", "BudgetPrune"))
    assert miser.learning_rates == (0.05, 0.1, 0.3)
    assert (miser.split_levels, miser.min_samples_leaf) == ((1, 2, 3), (1, 5, 20))
    assert len(miser.price_weights) == 14
    assert (tree.levels, tree.omegas, tree.sparsities) == ((1, 2, 3, 4), ("leaves", "all"), (1e-4, 1e-3, 1e-2))
    assert (tree.temperatures, tree.C, len(tree.price_weights)) == ((0.5, 1.0), (0.1, 1.0, 10.0), 16)
    assert (boosted.learning_rates, boosted.num_leaves) == ((0.03, 0.1), (4, 8, 16, 31))
    assert (boosted.min_rows_in_leaf, len(boosted.price_weights)) == ((5, 20), 15)
    assert (forest.n_trees, forest.max_depths, len(forest.price_weights)) == ((10, 40), (6, 10), 11)


@pytest.mark.parametrize("setting", ["equal", "deployed"])
def test_the_other_settings_run_quickly_too(tmp_path, setting):
    few = ["EMSCO", "CaCT LASSO", "GM*", "CSTC*", "CEGB*", "Reject rules", "Stage LP", "BudgetPrune", "NSGA-II"]
    assert main([*QUICK, "--setting", setting, "--method", *few, "--out", str(tmp_path)]) == 0
    outcomes = comparison.read_outcomes(tmp_path / "trials.csv")
    assert {o.trial.method for o in outcomes} == set(few)
    chosen = {o.trial.method: json.loads(o.chosen) for o in outcomes}
    assert chosen["GM*"]["encoding"] == "linear"
    assert chosen["CSTC*"]["encoding"] in ("linear", "rank")


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
    assert {method for _, method in published} <= set(methods.methods("paper"))


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
