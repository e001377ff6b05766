from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
import numpy as np
from numpy.testing import assert_array_equal

from emsco.scoring import _bitset as bitset


@given(hnp.arrays(np.bool_, hnp.array_shapes(min_dims=2, max_dims=2, max_side=200)))
def test_packed_bits_are_the_samples_in_order_and_zero_beyond(bits):
    words = bitset.pack(bits)
    assert words.shape == (len(bits), -(-bits.shape[1] // 64))
    unpacked = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool)
    assert_array_equal(unpacked[:, : bits.shape[1]], bits)
    assert not unpacked[:, bits.shape[1] :].any()


@given(st.integers(1, 150), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_walk_counts_like_a_loop_over_samples(n_samples, n_stages, seed):
    rng = np.random.default_rng(seed)
    confident = rng.random((n_stages, n_samples)) < 0.4
    right = confident & (rng.random((n_stages, n_samples)) < 0.7)
    slots = rng.permutation(n_stages)[None]
    reached, n_conclusive, n_correct = np.zeros((1, n_stages), np.int64), np.empty(1, np.int64), np.empty(1, np.int64)
    everyone = bitset.pack(np.ones((1, n_samples), bool))[0]
    bitset.walk(
        slots, np.array([n_stages]), everyone, bitset.pack(confident), bitset.pack(right), reached, n_conclusive,
        n_correct,
    )  # fmt: skip
    expected_reached, expected_conclusive, expected_correct = [0] * n_stages, 0, 0
    for i in range(n_samples):
        for j, slot in enumerate(slots[0]):
            expected_reached[j] += 1
            if confident[slot, i]:
                expected_conclusive += 1
                expected_correct += right[slot, i]
                break
    assert_array_equal(reached[0], expected_reached)
    assert (n_conclusive[0], n_correct[0]) == (expected_conclusive, expected_correct)


@given(st.integers(1, 150), st.integers(1, 4), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_walks_by_class_count_like_a_loop_over_samples(n_samples, n_stages, n_classes, seed):
    rng = np.random.default_rng(seed)
    confident = rng.random((5, n_samples)) < 0.4
    label, truth = rng.integers(n_classes, size=(5, n_samples)), rng.integers(n_classes, size=n_samples)
    slots = rng.integers(5, size=(3, n_stages))
    n_used = rng.integers(1, n_stages + 1, size=3)
    n_bits = (n_classes - 1).bit_length()
    labels = np.stack([bitset.pack(confident & ((label >> b) & 1 == 1)) for b in range(n_bits)], axis=1)
    classes = bitset.pack(truth == np.arange(n_classes)[:, None])
    expected = np.zeros((3, n_classes, n_classes + 1), np.int64)
    expected_reached = np.zeros((3, n_stages), np.int64)
    for d in range(3):
        for i in range(n_samples):
            told = n_classes
            for j in range(n_used[d]):
                expected_reached[d, j] += 1
                if confident[slots[d, j], i]:
                    told = label[slots[d, j], i]
                    break
            expected[d, truth[i], told] += 1
    for walk in (bitset.walk_by_class, bitset.walk_two_classes)[: 2 if n_classes == 2 else 1]:
        reached, confusion = np.zeros((3, n_stages), np.int64), np.full(expected.shape, -1)
        walk(slots, n_used, classes, bitset.pack(confident), labels, reached, confusion)
        assert_array_equal(confusion, expected)
        assert_array_equal(reached, expected_reached)
