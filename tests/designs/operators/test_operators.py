from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import betabinom, chisquare

from emsco import reference
from emsco.designs.operators.elitism import best_first, count_elite, next_size, unique_vectors
from emsco.designs.operators.mutation import mutate, stage_distribution
from emsco.designs.operators.recombination import recombine, rescale
from emsco.designs.operators.removal import leave_out
from emsco.designs.operators.selection import select
from emsco.designs.partition import compress, stage_counts
from tests.strategies import populations, seeds


@given(populations(max_stages=5), seeds(), st.integers(5, 8))
def test_mutation_yields_partitions_and_leaves_its_input_alone(population, seed, max_stages):
    before = population.copy()
    child = mutate(population, rate=1.0, stage_bias=2.0, max_stages=max_stages, rng=default_rng(seed))
    assert_array_equal(compress(child), child)
    assert stage_counts(child).max() <= max_stages
    assert_array_equal(population, before)


@given(populations(max_stages=5, removal=True), seeds(), st.integers(5, 8), st.floats(0, 1))
def test_mutation_with_removal_always_buys_something(population, seed, max_stages, rate):
    before = population.copy()
    rates = {"rate": rate, "stage_bias": 2.0, "max_stages": max_stages, "rng": default_rng(seed)}
    child = mutate(population, **rates, removal=True)
    assert (stage_counts(child) >= 1).all()
    assert stage_counts(child).max() <= max_stages
    assert_array_equal(population, before)


@given(populations(max_stages=6, removal=True), seeds(), st.floats(0, 1), st.floats(0.5, 4))
def test_mutation_with_removal_equals_the_reference(population, seed, rate, stage_bias):
    rates = {"rate": rate, "stage_bias": stage_bias, "max_stages": 6}
    fast = mutate(population, **rates, rng=default_rng(seed), removal=True)
    rng = default_rng(seed)
    chosen, draws = rng.random(population.shape) <= rate, rng.random(population.shape)
    fates = rng.random(population.shape)
    for row, child, c, d, f in zip(population.tolist(), fast.tolist(), chosen, draws, fates, strict=True):
        assert child == reference.mutate(row, c, d, stage_bias, 6, f)


def test_small_designs_of_many_features_stay_small():
    rng = default_rng(0)
    for n_bought in (4, 15):
        population = np.full((4000, 60), -1)
        population[:, :n_bought] = 0
        child = mutate(population, rate=0.1, stage_bias=2.0, max_stages=5, rng=rng, removal=True)
        assert abs((child >= 0).sum(axis=1).mean() - n_bought - 0.3) < 0.1


@given(populations(), seeds())
def test_leaving_out_keeps_the_order_of_what_is_bought(population, seed):
    before = population.copy()
    child = leave_out(population, rng=default_rng(seed))
    assert (stage_counts(child) >= 1).all()
    assert_array_equal(compress(np.where(child < 0, -1, population)), child)
    assert_array_equal(population, before)
    assert ((child >= 0).sum(axis=1)[: min(population.shape[1], len(population) // 2)] == 1).all()


@given(populations(max_stages=6), seeds(), st.floats(0, 1), st.floats(0.5, 4))
def test_mutation_equals_the_reference_feature_by_feature(population, seed, rate, stage_bias):
    fast = mutate(population, rate=rate, stage_bias=stage_bias, max_stages=6, rng=default_rng(seed))
    rng = default_rng(seed)
    chosen, draws = rng.random(population.shape) <= rate, rng.random(population.shape)
    for row, child, c, d in zip(population.tolist(), fast.tolist(), chosen, draws, strict=True):
        assert child == reference.mutate(row, c, d, stage_bias, 6)


def test_stage_distribution_is_scipys_beta_binomial():
    cdf = stage_distribution(7, 2.5)
    for h in range(7):
        assert_allclose(cdf[h, : h + 1], betabinom(h, 1, 2.5).cdf(np.arange(h + 1)), rtol=1e-12)


@given(st.booleans().flatmap(lambda removal: populations(max_stages=6, removal=removal)), seeds(), st.floats(0, 1))
def test_recombination_equals_the_reference(population, seed, rate):
    second = population[::-1].copy()
    fast = recombine(population, second, rate=rate, rng=default_rng(seed))
    rng = default_rng(seed)
    m, n = population.shape
    recombined, choice = rng.random((m, 1)) <= rate, rng.integers(3, size=(m, 1))
    from_first, copies_first = rng.random((m, n)) < 0.5, rng.random((m, 1)) < 0.5
    for i, (a, b, child) in enumerate(zip(population.tolist(), second.tolist(), fast.tolist(), strict=True)):
        mixed = reference.recombine(a, b, int(choice[i, 0]), from_first[i])
        if recombined[i, 0] and max(mixed) >= 0:
            assert child == mixed
        else:
            assert child == (a if copies_first[i, 0] else b)


@given(st.integers(1, 12), st.integers(1, 12), st.data())
def test_rescaled_stages_exist_in_the_child_and_keep_their_order(n_from, n_to, data):
    stages = np.sort(data.draw(st.lists(st.integers(0, n_from - 1), min_size=1, max_size=8)))
    child = rescale(stages, np.array(n_from), np.array(n_to))
    assert child.min() >= 0
    assert child.max() < n_to
    assert (np.diff(child) >= 0).all()
    assert_array_equal(child, [reference.rescale(int(s), n_from, n_to) for s in stages])


def test_parents_are_drawn_in_proportion_to_their_share():
    shares = np.array([0.5, 0.0, 0.2, 0.3])
    pairs = select(shares, n_pairs=20_000, rng=default_rng(0))
    counts = np.bincount(pairs.ravel(), minlength=4)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2, 3]], 40_000 * shares[[0, 2, 3]]).pvalue > 1e-3


def test_ties_go_to_the_simplest_design():
    population = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0], [0, 1, 2]])
    order = best_first(population, np.zeros(4, dtype=int), np.ones(4))
    assert_array_equal(population[order], [[0, 0, 0], [0, 1, 1], [1, 0, 0], [0, 1, 2]])
    same = np.array([[5, 5, 5], [5, 5, 5], [1, 1, 1], [5, 5, 5]])
    assert_array_equal(unique_vectors(order, same), [2, 0])
    population = np.array([[0, 0, 0], [0, -1, 0], [-1, 0, 0], [1, 0, -1]])
    order = best_first(population, np.zeros(4, dtype=int), np.ones(4))
    assert_array_equal(population[order], [[-1, 0, 0], [0, -1, 0], [0, 0, 0], [1, 0, -1]])


def test_elites_are_all_non_dominated_vectors_or_the_best_fraction():
    assert count_elite(100, 7, elite_fraction=0.2, population_size=300) == 20
    assert count_elite(101, 7, elite_fraction=0.2, population_size=300) == 21
    assert count_elite(100, 70, elite_fraction=0.2, population_size=300) == 70
    assert count_elite(300, 7, elite_fraction=1.0, population_size=300) == 240
    assert count_elite(300, 290, elite_fraction=1.0, population_size=300) == 290
    assert count_elite(100, 0, elite_fraction=0.07, population_size=300) == 7
    assert count_elite(300, 7, elite_fraction=1.0) == 300


@given(st.integers(1, 2000), st.integers(2, 600))
def test_a_fifth_of_the_next_population_are_children_at_least(n_elite, population_size):
    size = next_size(n_elite, population_size)
    assert size >= population_size
    assert size - n_elite >= size / 5 or n_elite <= 0.8 * population_size
    assert 5 * (size - n_elite) >= size - 4
