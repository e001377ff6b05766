import numpy as np
import pytest

from emsco.experiments.__main__ import main
from emsco.experiments.comparison import Outcome, Trial, write_outcomes
from emsco.experiments.splits import spreads


def trials(n_splits, *, slope=-0.001):
    rng = np.random.default_rng(0)
    for split in range(n_splits):
        cost = 300.0 + 10 * split
        for method, combined, paid in (("CO-T", 2.1, cost), ("EMSCO", 2.8 + slope * cost, rng.uniform(50, 90))):
            yield Outcome(Trial("paper", "heart", method, split, 0), 0.9, 0.85, paid, combined, 0.1, "{}")


def test_what_to_expect_on_a_split_as_easy_as_the_papers():
    (spread,) = spreads(trials(12))
    assert spread.paper_cost == 255.3
    assert spread.easier == 0
    assert spread.expected == pytest.approx(2.8 - 0.2553)


def test_two_splits_are_not_enough_and_the_command_says_so(tmp_path, capsys):
    assert spreads(trials(2)) == []
    write_outcomes(trials(2), tmp_path / "trials.csv")
    assert main(["splits", "--out", str(tmp_path)]) == 1
    assert "three splits or more" in capsys.readouterr().err


def test_the_command_prints_and_draws(tmp_path, capsys):
    write_outcomes(trials(6), tmp_path / "trials.csv")
    assert main(["splits", "--out", str(tmp_path)]) == 0
    assert "heart, EMSCO: 6 splits; paper 2.605" in capsys.readouterr().out
    assert (tmp_path / "splits.png").stat().st_size > 5_000
