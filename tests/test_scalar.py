from hypothesis import given
from hypothesis import strategies as st
from numba import njit
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from emsco._scalar import exponential, logistic, popcount


@njit
def _exponentials(x):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = exponential(x[i])
    return out


@njit
def _count(word):
    return popcount(word)


@given(st.integers(0, 2**32 - 1))
def test_exponential_is_within_two_units_in_the_last_place(seed):
    x = np.random.default_rng(seed).uniform(-700, 700, size=257)
    assert_allclose(_exponentials(x), np.exp(x), rtol=5e-16)


@given(st.integers(0, 2**32 - 1), st.integers(0, 30))
def test_a_value_has_the_same_bits_alone_as_in_a_vector(seed, start):
    x = np.random.default_rng(seed).normal(scale=20, size=64)
    assert_array_equal(_exponentials(x)[start:], _exponentials(x[start:].copy()))
    assert _exponentials(x[start : start + 1].copy())[0] == _exponentials(x)[start]


def test_exponential_is_clipped_instead_of_overflowing():
    assert_array_equal(np.isfinite(_exponentials(np.array([1e4, -1e4, 1e308]))), True)
    assert logistic(1e6) == 1.0
    assert 0 < logistic(-1e6) < 1e-300


@given(st.integers(0, 2**64 - 1))
def test_popcount_counts_bits(word):
    assert _count(np.uint64(word)) == word.bit_count()
