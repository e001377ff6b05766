from pathlib import Path
import re

import pytest

from emsco.exceptions import FileError
from emsco.experiments import comparison, page
from emsco.experiments.__main__ import main
from emsco.experiments.comparison import Outcome, Trial
from emsco.experiments.methods import RIVALS

ROOT = Path(__file__).parents[2]
PAGE = "Text.\n\n<!-- table: losses equal -->\nold\n<!-- end -->\n\nMore, with 12 numbers.\n"


def trial(method, score, split, coverage=0.9, setting="equal", **more):
    return Outcome(Trial(setting, "heart", method, split, 0, **more), coverage, 0.8, 10.0, score, 2.0, "{}")


def test_a_page_gets_the_tables_it_asks_for_and_keeps_its_text():
    trials = [trial("EMSCO", 2.6, 0), trial("worse", 2.0, 0), trial("better", 2.7, 0, coverage=0.95)]
    filled = page.fill(PAGE, trials)
    assert "| heart | better | 0.100 | 1 | 0.950 (0.900) | 0.800 (0.800) | 10.0 (10.0) |" in filled.splitlines()
    assert "worse" not in filled
    assert "old" not in filled
    assert filled.startswith("Text.\n\n<!-- table: losses equal -->\n\n|")
    assert filled.endswith("|\n\n<!-- end -->\n\nMore, with 12 numbers.\n")
    assert page.fill(filled, trials) == filled
    assert page.fill(filled, [*trials, trial("quick", 3.0, 0, quick=True)]) == filled


def test_the_figures_of_a_loss_are_those_of_the_shared_splits():
    trials = [trial("EMSCO", 2.6, s, coverage=0.5 + s / 10) for s in range(4)] + [trial("better", 2.8, 1, coverage=0.7)]
    assert "| heart | better | 0.200 | 1 | 0.700 (0.600) |" in page.loss_table(trials, "equal")
    assert page.loss_table(trials[:4], "equal") == "No method is ahead.\n"


def test_verdicts_count_the_methods_ahead_and_behind():
    trials = [trial("EMSCO", 2.6, s) for s in range(2)]
    trials += [trial("far", 2.0 + s / 100, s) for s in range(2)] + [trial("near", 2.5 + s / 5, s) for s in range(2)]
    trials += [trial("once", 2.7, 0)]
    *_, line = page.verdict_table(trials, "equal").splitlines()
    assert line == "| heart | 2 | 2.600 | 3 | 1 | 0 | 2 | 1 | once | -0.100 (1) |"


def test_pages_without_places_and_tables_that_do_not_exist_are_refused():
    with pytest.raises(FileError, match="the page has no line <!-- table: NAME -->"):
        page.fill("no places", [])
    with pytest.raises(FileError, match="there is no table magic; tables: "):
        page.fill(PAGE.replace("losses equal", "magic"), [])


def test_the_command_fills_a_page_and_draws(tmp_path, capsys):
    path = tmp_path / "trials.csv"
    comparison.write_outcomes([trial("EMSCO", 2.6, s) for s in range(2)] + [trial("b", 2.7, s) for s in range(2)], path)
    (tmp_path / "page.md").write_text(PAGE)
    assert main(["page", "--trials", str(path), "--page", str(tmp_path / "page.md"), "--out", str(tmp_path)]) == 0
    assert "| heart | b | 0.100 ± 0.000 | 2 |" in (tmp_path / "page.md").read_text()
    assert "has the tables of 4 trials" in capsys.readouterr().out
    assert (tmp_path / "comparison-bars.png").exists()
    assert main(["page", "--trials", str(tmp_path / "none"), "--page", str(path), "--out", str(tmp_path)]) == 1
    assert "there is no file" in capsys.readouterr().err


def test_the_tables_of_the_docs_are_those_of_the_trials_in_the_repository():
    text = (ROOT / "docs" / "baselines.md").read_text(encoding="utf-8")
    trials = comparison.read_outcomes(ROOT / "docs" / "tables" / "comparison-trials.csv")
    assert page.fill(text, trials) == text
    assert {o.trial.method for o in trials} >= {"EMSCO", *RIVALS}
    assert len({o.trial for o in trials}) == len(trials)
    outside = re.sub(r"<!-- table.*?<!-- end -->", "", text, flags=re.DOTALL)
    assert "EMSCO ahead of" not in outside  # every table of leads is computed
