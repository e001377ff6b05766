from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal

from emsco import reference
from emsco.designs.partition import compress
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.stages.logistic import LogisticTrainer
from tests.search.exact.test_proof import IN_GROUPS
from tests.strategies import bill, problem, seeds


def make_cascade(p, threshold, max_bytes=2**24):
    n_units = p.prices.n_units
    cache = StageCache(LogisticTrainer(p), p.y_validation, n_units=n_units, threshold=threshold, max_bytes=max_bytes)
    return Cascade(cache, p.prices), cache


def draw_population(seed, n_rows=8, n_features=4, max_stages=4):
    rng = np.random.default_rng(seed)
    return compress(rng.integers(0, max_stages, size=(n_rows, n_features)))


@settings(max_examples=40)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.4, 0.6, 0.75, 0.9, 1.0]),
       st.sampled_from([None, IN_GROUPS]))  # fmt: skip
def test_counts_equal_the_paper_in_plain_python_design_by_design(seed, n_classes, threshold, costs):
    p = problem(seed, n_classes=n_classes, costs=costs)
    population = draw_population(seed)
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    tally = make_cascade(p, threshold)[0].tally(population)
    for design, vector in zip(population.tolist(), tally.vectors.tolist(), strict=True):
        truth = p.y_validation.tolist()
        assert tuple(vector) == reference.walk(design, outcome, truth, *bill(p.prices, threshold))


@settings(max_examples=20)
@given(seeds())
def test_a_cache_that_holds_few_sets_changes_nothing(seed):
    p = problem(seed, n_features=6)
    population = draw_population(seed, n_rows=30, n_features=6)
    plenty, cache = make_cascade(p, 0.75)
    tight, small = make_cascade(p, 0.75, max_bytes=7 * cache._slot_bytes)
    assert_array_equal(tight.tally(population).vectors, plenty.tally(population).vectors)
    assert_array_equal(tight.tally(population).reached, plenty.tally(population).reached)
    assert small.capacity == 7


def test_everyone_reaches_stage_one_and_pays_for_it():
    p = problem(0, costs=[7, 1, 1, 1])
    tally = make_cascade(p, 0.0)[0].tally(np.array([[0, 1, 2, 3]]))
    assert_array_equal(tally.reached, [[30, 0, 0, 0]])
    assert tally.n_conclusive[0] == 30
    assert tally.total_ticks[0] == 7 * 30


def test_rejected_samples_pay_for_everything():
    p = problem(0, costs=[7, 1, 1, 1])
    tally = make_cascade(p, 1.0)[0].tally(np.array([[0, 1, 2, 3]]))
    assert tally.n_conclusive[0] == tally.n_correct[0] == 0
    assert tally.total_ticks[0] == 10 * 30
