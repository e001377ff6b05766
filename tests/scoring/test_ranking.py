from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from emsco import reference
from emsco.scoring.objectives import inverse_cost, measure
from emsco.scoring.ranking import log_fitness, norm, pareto_rank, selection_probabilities
from emsco.scoring.tally import Tally
from tests.strategies import vectors


def tally_of(rows, n_samples):
    return Tally(n_samples, np.empty((len(rows), 0), np.int64), rows[:, 0], rows[:, 1], rows[:, 2], 1.0, 2.0)


@given(vectors())
def test_objectives_rank_and_fitness_equal_the_reference(drawn):
    rows, n_samples = drawn
    points = [reference.objectives(tuple(row), n_samples) for row in rows.tolist()]
    objectives = measure(tally_of(rows, n_samples))
    assert_array_equal(objectives.coverage, [float(p[0]) for p in points])
    assert_array_equal(objectives.accuracy, [float(p[1]) for p in points])
    assert_array_equal(objectives.mean_cost, [float(p[2]) for p in points])
    rank = reference.ranks(points)
    norms = reference.norms(points, 2.0)
    assert_array_equal(pareto_rank(objectives), rank)
    assert_array_equal(norm(objectives), norms)
    assert_allclose(
        log_fitness(pareto_rank(objectives), norm(objectives), epsilon=0.01),
        reference.log_fitness(rank, norms, 0.01),
        rtol=1e-12, atol=1e-12,
    )  # fmt: skip


@given(st.lists(st.integers(0, 20), min_size=1, max_size=10))
def test_inverse_cost_is_one_for_the_cheapest_and_falls_strictly_with_cost(costs):
    costs = np.array(costs, dtype=float)
    gain = inverse_cost(costs, 3.0)
    assert gain.max() == 1
    assert gain.min() > 0
    for a, b in zip(costs, gain, strict=True):
        assert_array_equal(gain[costs > a] < b, True)
        assert_array_equal(gain[costs == a] == b, True)


def test_hundreds_of_levels_do_not_overflow():
    rank = np.arange(2000)
    fitness = log_fitness(rank, np.linspace(0.1, 1.7, 2000), epsilon=0.01)
    probabilities = selection_probabilities(fitness)
    assert np.isfinite(fitness).all()
    assert_allclose(probabilities.sum(), 1)
