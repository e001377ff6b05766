"""The paper's worked examples and its three guarantees (SPEC section 2)."""

from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco import reference
from emsco.designs.operators.recombination import rescale
from emsco.designs.partition import compress
from emsco.scoring.objectives import measure
from emsco.scoring.ranking import log_fitness, norm, pareto_rank, selection_probabilities
from emsco.search.evolution import Evolution, evolve
from tests.scoring.test_cascade import make_cascade
from tests.scoring.test_ranking import tally_of
from tests.strategies import problem, seeds, vectors


def test_worked_example_of_stage_normalisation():
    assert_array_equal(rescale(np.array([0, 2, 1, 2, 1]), np.array(3), np.array(2)), [0, 1, 0, 1, 0])
    assert [reference.rescale(s, 3, 2) for s in (0, 2, 1, 2, 1)] == [0, 1, 0, 1, 0]


def test_worked_example_of_compression():
    assert_array_equal(compress(np.array([[0, 0, 0, 2]])), [[0, 0, 0, 1]])


def all_designs(n_features, max_stages):
    rows = np.array(list(product(range(min(max_stages, n_features)), repeat=n_features)))
    return rows[(compress(rows) == rows).all(axis=1)]


@settings(max_examples=25, deadline=None)
@given(seeds(), st.sampled_from([2, 3]))
def test_guarantee_1_a_globally_non_dominated_vector_once_met_is_returned(seed, n_classes):
    p = problem(seed, n_features=5, n_classes=n_classes)
    cascade, _ = make_cascade(p, 0.7)
    everything = cascade.tally(all_designs(5, 3))
    optimal = pareto_rank(measure(everything)) == pareto_rank(measure(everything)).max()
    true_front = {tuple(v) for v in everything.vectors[optimal].tolist()}
    met = set()

    def evaluate(population):
        tally = cascade.tally(population)
        met.update(map(tuple, tally.vectors.tolist()))
        return tally

    found = evolve(
        evaluate, Evolution(population_size=15, max_generations=8), n_features=5, max_stages=3,
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    returned = set(map(tuple, found.tally.vectors.tolist()))
    assert true_front & met <= returned
    assert len(returned) == len(found.designs)


@given(vectors())
def test_guarantee_2_selection_grows_strictly_with_rank_then_with_the_norm(drawn):
    objectives = measure(tally_of(*drawn))
    rank, norms = pareto_rank(objectives), norm(objectives)
    fitness = log_fitness(rank, norms, epsilon=0.01)
    for i, j in product(range(rank.size), repeat=2):
        if rank[i] > rank[j] or (rank[i] == rank[j] and norms[i] > norms[j] * (1 + 1e-12)):
            assert fitness[i] > fitness[j]
    probabilities = selection_probabilities(fitness)
    order = np.argsort(fitness)
    grows = np.diff(fitness[order]) > 1e-12
    assert (np.diff(probabilities[order])[grows] > 0).all()  # few levels: nothing underflows


@given(vectors())
def test_guarantee_3_a_design_of_maximal_fitness_is_non_dominated(drawn):
    rows, n_samples = drawn
    objectives = measure(tally_of(rows, n_samples))
    fitness = log_fitness(pareto_rank(objectives), norm(objectives), epsilon=0.01)
    points = [reference.objectives(tuple(row), n_samples) for row in rows.tolist()]
    best = points[int(fitness.argmax())]
    assert not any(reference.dominates(other, best) for other in points)


@pytest.mark.parametrize("stage_bias", [1.5, 2.0, 2.5])
def test_mutation_prefers_early_stages_with_the_papers_mean(stage_bias):
    for n in range(8):
        mass = reference.beta_binomial(n, stage_bias)
        assert sum(mass) == pytest.approx(1)
        assert sum(j * p for j, p in enumerate(mass)) == pytest.approx(n / (stage_bias + 1))
        assert all(a > b for a, b in pairwise(mass))
