import pytest

from emsco.experiments.setting import PAPER, paper_problem


@pytest.mark.parametrize(
    ("name", "rows", "total"),
    [("heart", 75, 750), ("credit", 173, 1760), ("pima", 192, 1600), ("synthetic30", 249, 8600)],
)
def test_a_quarter_of_the_rows_validates_and_splits_differ(name, rows, total):
    first, again, other = paper_problem(name, 0), paper_problem(name, 0), paper_problem(name, 1)
    assert first.n_validation == rows
    assert (first.validation == again.validation).all()
    assert first.validation.shape != other.validation.shape or (first.validation != other.validation).any()
    assert first.prices.total == total


@pytest.mark.parametrize(
    ("name", "mutation_rate", "recombination_rate", "stage_bias", "threshold"),
    [
        ("heart", 0.075, 0.75, 2.0, 0.75),
        ("pima", 0.075, 0.8, 2.0, 0.65),
        ("synthetic30", 0.05, 0.8, 2.5, 0.65),
        ("credit", 0.075, 0.8, 2.5, 0.75),
    ],
)
def test_settings_are_those_of_the_papers_tables(name, mutation_rate, recombination_rate, stage_bias, threshold):
    evolution = PAPER[name].evolution
    assert (evolution.mutation_rate, evolution.recombination_rate) == (mutation_rate, recombination_rate)
    assert (evolution.stage_bias, PAPER[name].threshold) == (stage_bias, threshold)
    assert (evolution.elite_fraction, evolution.population_size) == (0.2, 300)
