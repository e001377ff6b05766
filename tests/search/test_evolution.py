import dataclasses
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_array_equal
import pytest

from emsco import reference
from emsco.exceptions import InvalidParameterError
from emsco.search.evolution import Evolution, evolve
from tests.scoring.test_cascade import make_cascade
from tests.strategies import problem, seeds


@settings(max_examples=25, deadline=None)
@given(
    seeds(),
    st.sampled_from([2, 3]),
    st.integers(1, 5),
    st.sampled_from([4, 12, 30]),
    st.booleans(),
    st.sampled_from([0.0, 0.2, 0.5, 1.0]),
    st.sampled_from([1.01, 2.0, 3.5]),
    st.booleans(),
    st.sampled_from([("vectors", 0.5), ("vectors", None), ("rows", None)]),
)
def test_every_generation_equals_the_paper_in_plain_python(
    seed, n_classes, max_stages, population_size, free, elite_fraction, stage_bias, removal, published
):
    p = problem(seed, n_features=5, n_classes=n_classes, costs=[0, 0, 2, 1, 3] if free else None)
    chosen = Evolution(
        population_size=population_size,
        max_generations=12,
        patience=5,
        elite_fraction=elite_fraction,
        stage_bias=stage_bias,
        unique=published[0],
        init_rate=published[1],
    )
    cascade, _ = make_cascade(p, 0.7)
    generations = []
    found = evolve(
        cascade.tally, chosen, n_features=5, max_stages=max_stages, rng=default_rng(seed),
        removal=removal, on_generation=generations.append,
    )  # fmt: skip
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    remembered = {}

    def evaluate(design):
        key = tuple(design)
        if key not in remembered:
            costs = p.prices.own_ticks.tolist()
            remembered[key] = reference.walk(design, outcome, p.y_validation.tolist(), costs, 0.7)
        return remembered[key]

    history = reference.evolve(
        evaluate,
        reference.Settings(**dataclasses.asdict(chosen)),
        5,
        max_stages,
        p.n_validation,
        p.prices.least,
        default_rng(seed),
        removal,
    )
    assert len(generations) == len(history) == found.n_generations + 1
    for state, expected in zip(generations, history, strict=True):
        assert state.population.tolist() == expected.population
        assert list(map(tuple, state.tally.vectors.tolist())) == expected.vectors
        assert state.unique.tolist() == expected.unique
        assert state.n_nondominated == expected.n_nondominated
    last = history[-1]
    first = {last.vectors[i]: last.population[i] for i in reversed(last.unique[: last.n_nondominated])}
    assert found.designs.tolist() == list(first.values())[::-1]


def search(p=None, n_features=6, seed=0, **kwargs):
    p = p or problem(1, n_features=n_features)
    cascade, cache = make_cascade(p, 0.7)
    settings_ = Evolution(population_size=20, max_generations=15, **kwargs)
    return evolve(cascade.tally, settings_, n_features=n_features, max_stages=4, rng=default_rng(seed)), cache


def test_the_first_generation_with_removal_has_all_sizes_and_every_single_feature():
    cascade, _ = make_cascade(problem(1, n_features=9), 0.7)
    chosen, states = Evolution(population_size=100, max_generations=0), []
    evolve(
        cascade.tally, chosen, n_features=9, max_stages=4, rng=default_rng(0), removal=True,
        on_generation=states.append,
    )  # fmt: skip
    bought = states[0].population >= 0
    assert set(bought.sum(axis=1)) == set(range(1, 10))
    assert bought[bought.sum(axis=1) == 1].any(axis=0).all()


def test_the_same_seed_gives_the_same_designs():
    assert_array_equal(search(seed=3)[0].designs, search(seed=3)[0].designs)


def test_ties_are_counted_not_bred():
    # The first feature decides everything alone: what later stages hold is never reached, so many designs tie.
    p = problem(0, n_features=5, costs=[1, 50, 50, 50, 50])
    train, validation = p.train.copy(), p.validation.copy()
    train[0], validation[0] = 20 * (p.y_train * 2 - 1), 20 * (p.y_validation * 2 - 1)
    p = dataclasses.replace(p, train=train, validation=validation)
    found, _ = search(p, n_features=5, init_rate=0.5)
    best = found.tally.vectors.tolist().index([30, 30, 30])
    assert_array_equal(found.designs[best], [0, 1, 1, 1, 1])
    ties = found.ties[best]
    assert len(ties) > 5
    assert len(np.unique(ties, axis=0)) == len(ties)
    assert_array_equal(ties[0], found.designs[best])
    assert (ties[:, 0] == 0).all()  # the deciding feature is bought first,
    assert ((ties == 0).sum(axis=1) == 1).all()  # and alone
    assert len(np.unique(found.tally.vectors, axis=0)) == len(found.designs)


def test_the_population_grows_when_the_front_fills_it():
    p = problem(2, n_features=7, n_validation=60)
    cascade, _ = make_cascade(p, 0.75)
    sizes = []
    evolve(
        cascade.tally, Evolution(population_size=10, max_generations=25, patience=None), n_features=7, max_stages=4,
        rng=default_rng(0), on_generation=lambda s: sizes.append((len(s.population), s.n_nondominated)),
    )  # fmt: skip
    assert max(size for size, _ in sizes) > 10
    for (_, before), (size, _) in itertools.pairwise(sizes):
        assert size >= 1.25 * before


@pytest.mark.parametrize("elite_fraction", [0.85, 1.0])
def test_the_population_grows_for_non_dominated_vectors_only(elite_fraction):
    cascade, _ = make_cascade(problem(2, n_features=7, n_validation=60), 0.75)
    states = []
    evolve(
        cascade.tally,
        Evolution(population_size=30, max_generations=30, patience=None, elite_fraction=elite_fraction),
        n_features=7,
        max_stages=4,
        rng=default_rng(0),
        on_generation=states.append,
    )
    for before, after in itertools.pairwise(states):
        assert len(after.population) <= max(30, -(-5 * before.n_nondominated // 4))


def test_patience_ends_a_search_whose_fittest_design_stays():
    found, _ = search(n_features=2, patience=3)
    assert found.n_generations < 15
    found, _ = search(n_features=2, patience=None)
    assert found.n_generations == 15


def test_an_interrupt_returns_the_last_generation():
    cascade, _ = make_cascade(problem(1, n_features=6), 0.7)
    calls = []

    def evaluate(population):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return cascade.tally(population)

    found = evolve(evaluate, Evolution(population_size=20), n_features=6, max_stages=3, rng=default_rng(0))
    assert found.ended == "interrupted"
    assert found.n_generations == 2
    settings_ = Evolution(population_size=20, max_generations=2)
    expected = evolve(cascade.tally, settings_, n_features=6, max_stages=3, rng=default_rng(0))
    assert_array_equal(found.designs, expected.designs)


def test_an_interrupt_before_anything_is_known_is_passed_on():
    def evaluate(population):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evolve(evaluate, Evolution(), n_features=3, max_stages=3, rng=default_rng(0))


@pytest.mark.parametrize(
    "wrong",
    [
        {"population_size": 1},
        {"population_size": 2.5},
        {"max_generations": -1},
        {"patience": 0},
        {"mutation_rate": 1.1},
        {"recombination_rate": "high"},
        {"elite_fraction": -0.1},
        {"stage_bias": 0},
        {"stage_bias": 1},
        {"unique": "columns"},
        {"epsilon": float("inf")},
        {"init_rate": True},
    ],
)
def test_settings_out_of_range_are_explained(wrong):
    (name,) = wrong
    with pytest.raises(InvalidParameterError, match=name):
        Evolution(**wrong)


def test_late_stages_are_never_preferred():
    with pytest.raises(InvalidParameterError, match="prefers early stages"):
        Evolution(stage_bias=0.9)


def test_rows_that_fill_the_population_end_the_published_search():
    """A first feature that decides everybody: all designs that begin with it have the same objectives."""
    rng = default_rng(0)
    p = problem(1, n_features=6)
    sure = np.where(p.y_train == 1, 100.0, -100.0)
    p = dataclasses.replace(
        p,
        train=np.vstack([sure, p.train[1:]]),
        validation=np.vstack([np.where(p.y_validation == 1, 100.0, -100.0), p.validation[1:]]),
    )
    cascade, _ = make_cascade(p, 0.7)
    states = []
    found = evolve(
        cascade.tally, Evolution(population_size=20, patience=None, unique="rows"), n_features=6, max_stages=4, rng=rng,
        on_generation=states.append,
    )  # fmt: skip
    last = states[-1]
    assert found.n_generations < 150
    assert last.n_nondominated >= 20
    assert all(len(state.population) == 20 for state in states)
    assert len(np.unique(found.tally.vectors, axis=0)) == len(found.designs)
