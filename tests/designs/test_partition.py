from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco import reference
from emsco.designs.partition import (
    acquired_sets,
    all_designs,
    check_design,
    compress,
    count_partitions,
    count_solutions,
    stage_counts,
)
from emsco.exceptions import InvalidDesignError
from tests.strategies import populations


def test_compress_closes_gaps_like_the_papers_example():
    assert_array_equal(compress(np.array([[0, 0, 0, 2]])), [[0, 0, 0, 1]])


@given(st.lists(st.lists(st.integers(-1, 7), min_size=4, max_size=4), min_size=1, max_size=6))
def test_compress_equals_the_reference(rows):
    population = np.array(rows)
    assert_array_equal(compress(population), [reference.compress(row) for row in rows])


@given(populations(removal=True))
def test_compress_leaves_valid_rows_alone(population):
    before = population.copy()
    assert_array_equal(compress(population), before)
    assert_array_equal(population, before)


@given(populations(removal=True))
def test_acquired_sets_are_what_the_reference_knows_at_each_stage(population):
    acquired, exists = acquired_sets(population)
    for row, sets, is_stage in zip(population.tolist(), acquired, exists, strict=True):
        assert is_stage.sum() == reference.stage_count(row)
        for j in range(reference.stage_count(row)):
            assert tuple(np.flatnonzero(sets[j])) == reference.known_features(row, j)
        assert (sets[is_stage.sum() :] == (np.array(row) >= 0)).all()


@pytest.mark.parametrize(("n", "k", "size"), [(12, 4, 15_199_275), (14, 4, 254_152_083), (8, 2, 255), (1, 5, 1)])
def test_space_sizes_are_the_papers(n, k, size):
    assert count_solutions(n, k) == size


@given(st.integers(1, 5), st.integers(1, 5))
def test_space_size_counts_all_valid_rows(n, k):
    rows = np.indices((k,) * n).reshape(n, -1).T
    valid = (compress(rows) == rows).all(axis=1)
    assert count_solutions(n, k) == valid.sum()
    assert count_partitions(n, k) == (valid & (stage_counts(rows) == k)).sum()
    rows = np.indices((k + 1,) * n).reshape(n, -1).T - 1
    valid = (compress(rows) == rows).all(axis=1) & (rows.max(axis=1) >= 0)
    assert count_solutions(n, k, removal=True) == valid.sum()
    assert count_partitions(n, k, removal=True) == (valid & (stage_counts(rows) == k)).sum()
    designs = all_designs(n, k, removal=True)
    assert sorted(designs.tolist()) == sorted(rows[valid].tolist())


NAMES = ("age", "blood", "sex")


def test_a_design_can_be_given_as_names_per_stage():
    assert_array_equal(check_design([["sex", "age"], ["blood"]], NAMES), [0, 1, 0])
    assert_array_equal(check_design((("sex", "age", "blood"),), NAMES), [0, 0, 0])


def test_a_design_may_leave_features_out():
    assert_array_equal(check_design([["sex"], ["blood"]], NAMES), [-1, 1, 0])
    assert_array_equal(check_design([0, -1, 0], NAMES), [0, -1, 0])
    assert_array_equal(check_design(np.array([-1.0, 0.0, 1.0]), NAMES), [-1, 0, 1])


@pytest.mark.parametrize(
    ("design", "message"),
    [
        ([0, 1], "3 features"),
        ([0, 0, 2], "without gaps"),
        ([1, 1, 1], "without gaps"),
        ([0, -2, 0], "without gaps"),
        ([1, -1, 1], "without gaps"),
        ([-1, -1, -1], "buys nothing"),
        ([0, 0.5, 0], "whole stage numbers"),
        ([0, "a", 1], "whole stage numbers"),
        ([], "3 features"),
        ([["age", "sex", "blood"], []], "empty"),
        ([["age", "sex"], ["blood", "age"]], "twice"),
        ([["age", "sex"], ["blod"]], "not a feature"),
        (["age", "sex", "blood"], "put it in a list"),
    ],
)
def test_a_bad_design_is_explained(design, message):
    with pytest.raises(InvalidDesignError, match=message):
        check_design(design, NAMES)
