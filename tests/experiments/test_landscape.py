import itertools

import numpy as np
from numpy.testing import assert_allclose
import pytest

from emsco.designs.partition import all_designs, are_designs
from emsco.experiments import landscape, sweep
from emsco.experiments.__main__ import main
from emsco.experiments.sweep import Tried


def test_random_designs_are_uniform_over_the_space():
    designs = landscape.random_designs(4, 3, 20_000, np.random.default_rng(0))
    space = {tuple(row): 0 for row in all_designs(4, 3).tolist()}
    for row in designs.tolist():
        space[tuple(row)] += 1
    expected = 20_000 / len(space)
    chi_square = sum((n - expected) ** 2 / expected for n in space.values())
    assert len(space) == 51
    assert chi_square < 90  # 50 degrees of freedom: the 99.95th percentile


def test_neighbours_are_all_designs_one_step_away():
    design = np.array([0, 2, 1, 1])
    found = landscape.neighbours(design, 4)
    assert are_designs(found).all()
    by_hand = set()
    for feature, step in itertools.product(range(4), (-1, 1)):
        row = design.tolist()
        row[feature] += step
        if 0 <= row[feature] <= 3:
            by_hand.add(tuple(sorted(set(row)).index(stage) for stage in row))
    assert set(map(tuple, found.tolist())) == by_hand
    assert len(found) == 7  # the first feature cannot move before the first stage
    assert landscape.neighbours(design, 3).shape == (6, 4)


def test_the_landscape_is_scored_written_and_drawn(tmp_path, capsys):
    assert main(["landscape", "--data", "pima", "--designs", "300", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "300 random designs of at most 3 stages" in out
    assert "rank correlation of accuracy and inverse cost" in out
    lines = (tmp_path / "landscape.csv").read_text().splitlines()
    values = np.array([line.split(",")[1:] for line in lines[1:]], dtype=float)
    assert values.shape == (300, 3)
    assert values[:, 2].max() == 1  # the cheapest of the sample
    assert (tmp_path / "landscape.png").read_bytes().startswith(b"\x89PNG")


def test_the_neighbourhood_has_global_inverse_costs(tmp_path, capsys):
    assert main(["neighbourhood", "--data", "pima", "--stages", "3", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "moves by one stage" in out
    found = landscape.neighbourhood("pima", 3)
    assert (found.inverse_cost <= 1).all()
    space = landscape._landscape("pima", 3, all_designs(8, 3), landscape.scorer("pima", 0)[0].tally(all_designs(8, 3)),
                                 None)  # fmt: skip
    here = {tuple(row): i for i, row in enumerate(space.designs.tolist())}
    at = [here[tuple(row)] for row in found.designs.tolist()]
    assert_allclose(found.inverse_cost, space.inverse_cost[at])
    assert (tmp_path / "neighbourhood.png").exists()


def test_the_sweep_holds_everything_of_a_small_space(tmp_path, capsys):
    few = ["sweep", "--data", "pima", "--stages", "2", "--runs", "2", "--designs", "12000"]
    assert main([*few, "--setting", "stage_bias", "population_size", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "      2  100.0 % +-0.0  (paper)\n" in out
    assert "the paper's value is the best" in out
    assert (tmp_path / "sweep.png").exists()
    assert len((tmp_path / "sweep.csv").read_text().splitlines()) == 1 + 6 + 5


@pytest.mark.parametrize(
    ("best", "words"),
    [([0.5, 0.5, 0.5], "the paper's value is the best"), ([0.6, 0.7, 0.9], "not distinguishable"),
     ([0.9, 0.91, 0.92], "better than the paper's: +40.0")],
)  # fmt: skip
def test_the_papers_value_is_judged_run_by_run(best, words):
    paper = Tried("heart", "stage_bias", 2.0, True, np.array([0.5, 0.51, 0.52]))
    other = Tried("heart", "stage_bias", 3.0, False, np.array(best))
    assert words in sweep.conclusion([paper, other])
