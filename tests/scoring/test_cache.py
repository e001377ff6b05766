import re
import tracemalloc

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.naive_bayes import GaussianNB

from emsco.exceptions import InvalidParameterError
from emsco.scoring import _bitset as bitset
from emsco.scoring.cache import StageCache
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer
from tests.strategies import problem

SETS = ((np.arange(1, 64)[:, None] >> np.arange(6)) & 1).astype(np.bool_)
PLENTY = 2**24


class CountingTrainer:
    def __init__(self, trainer):
        self._trainer = trainer
        self.memory_dtype = trainer.memory_dtype
        self.trained = []

    def train(self, feature_sets):
        self.trained.extend(map(tuple, feature_sets.tolist()))
        return self._trainer.train(feature_sets)

    def outcomes(self, feature_sets, memory):
        return self._trainer.outcomes(feature_sets, memory)

    def models(self, feature_sets, memory):
        return self._trainer.models(feature_sets, memory)


def make_cache(threshold=0.7, max_bytes=PLENTY, seed=0):
    p = problem(seed, n_features=6)
    trainer = CountingTrainer(LogisticTrainer(p))
    return p, trainer, StageCache(trainer, p.y_validation, n_units=6, threshold=threshold, max_bytes=max_bytes)


def expected_bits(p, sets, threshold):
    trainer = LogisticTrainer(p)
    outcomes = trainer.outcomes(sets, trainer.train(sets))
    confident = outcomes.confidence >= threshold
    return bitset.pack(confident), bitset.pack(confident & (outcomes.label == p.y_validation))


def test_no_set_is_trained_twice_and_repeats_share_a_slot():
    p, trainer, cache = make_cache()
    first = cache.slots(SETS[[0, 1, 0, 2]])
    second = cache.slots(SETS[[2, 3, 1]])
    assert first[0] == first[2]
    assert second[0] == first[3]
    assert len(trainer.trained) == len(set(trainer.trained)) == cache.n_trained == 4
    confident, right = expected_bits(p, SETS[[2, 3, 1]], 0.7)
    assert_array_equal(cache.confident[second], confident)
    assert_array_equal(cache.right[second], right)


def test_models_are_not_trained_again():
    _, trainer, cache = make_cache()
    cache.slots(SETS)
    models = cache.models(SETS[10:20])
    assert len(models) == 10
    assert len(trainer.trained) == len(SETS)


def test_what_is_held_besides_the_cache_is_bounded():
    p = problem(0, n_features=8, n_validation=30_000)
    sets = ((np.arange(1, 256)[:, None] >> np.arange(8)) & 1).astype(np.bool_)
    trainer = EstimatorTrainer(p, GaussianNB(), seed=0)
    tracemalloc.start()
    cache = StageCache(trainer, p.y_validation, n_units=8, threshold=0.7, max_bytes=2**26)
    assert cache.capacity > 200
    cache.slots(sets[:200])  # 54 MB of confidences and labels
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**26 + 2**26  # the cache, a block of 16 MiB, and what joblib and a copy make of that


def test_fifty_thresholds_train_nothing_again():
    p, trainer, cache = make_cache()
    slots = cache.slots(SETS)
    for threshold in np.linspace(0.5, 1, 50):
        cache.set_threshold(threshold)
        assert_array_equal(cache.slots(SETS), slots)
        confident, right = expected_bits(p, SETS, threshold)
        assert_array_equal(cache.confident[slots], confident)
        assert_array_equal(cache.right[slots], right)
    assert len(trainer.trained) == len(SETS)


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(0, 62), min_size=1, max_size=5), min_size=1, max_size=20), st.integers(5, 12))
def test_a_full_cache_forgets_but_never_lies(batches, room):
    p, _, cache = make_cache()
    _, trainer, cache = make_cache(max_bytes=room * cache._slot_bytes)
    assert cache.capacity == room
    for batch in batches:
        slots = cache.slots(SETS[batch])
        confident, right = expected_bits(p, SETS[batch], 0.7)
        assert_array_equal(cache.confident[slots], confident)
        assert_array_equal(cache.right[slots], right)
        assert len(cache._slot_of) <= room
        assert len(set(cache._slot_of.values())) == len(cache._slot_of)
    assert trainer.trained


def test_an_interrupt_while_training_leaves_the_cache_usable():
    p, trainer, cache = make_cache()
    cache.slots(SETS[:3])
    train = trainer.train
    trainer.train = lambda sets: (_ for _ in ()).throw(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        cache.slots(SETS[:10])
    trainer.train = train
    slots = cache.slots(SETS)
    confident, right = expected_bits(p, SETS, 0.7)
    assert len(set(slots.tolist())) == len(SETS)
    assert_array_equal(cache.confident[slots], confident)
    assert_array_equal(cache.right[slots], right)


def test_too_small_a_cache_says_how_large_it_must_be():
    _, _, cache = make_cache(max_bytes=100)
    with pytest.raises(InvalidParameterError, match="one design needs 3 at once") as caught:
        cache.require(3)
    needed = int(re.search(r"at least ([\d,]+)", str(caught.value))[1].replace(",", ""))
    make_cache(max_bytes=needed)[2].require(3)
    with pytest.raises(InvalidParameterError):
        make_cache(max_bytes=needed - 1)[2].require(3)
