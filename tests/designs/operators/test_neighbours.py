from functools import partial

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal

from emsco.designs.operators.neighbours import far_swaps, jumps, near_swaps, steps
from emsco.designs.partition import acquired_sets, compress, stage_counts
from tests.strategies import populations


def sets_of(design):
    acquired, exists = acquired_sets(np.array([design]))
    return {tuple(row) for row in acquired[exists].tolist()}


@given(populations(max_stages=4, max_rows=5), st.integers(4, 5))
def test_neighbours_are_designs_and_leave_their_input_alone(population, max_stages):
    before = population.copy()
    for neighbours in (steps, near_swaps, far_swaps):
        children = neighbours(population, max_stages)
        assert_array_equal(compress(children), children)
        assert (stage_counts(children) <= max_stages).all() if len(children) else True
    assert_array_equal(population, before)


@given(populations(max_stages=4, max_rows=5, removal=True), st.integers(4, 5))
def test_neighbours_with_removal_are_designs_that_buy_something(population, max_stages):
    before = population.copy()
    for neighbours in (partial(steps, removal=True), near_swaps, far_swaps, jumps):
        children = neighbours(population, max_stages)
        assert_array_equal(compress(children), children)
        assert (stage_counts(children) <= max_stages).all() if len(children) else True
        assert (stage_counts(children) >= 1).all() if len(children) else True
    assert_array_equal(population, before)


def test_a_feature_is_left_out_or_taken_in_by_a_step_at_the_last_stage_and_by_a_jump_elsewhere():
    near = steps(np.array([[0, 1, -1]]), 3, removal=True).tolist()
    far = jumps(np.array([[0, 1, -1]]), 3).tolist()
    assert {tuple(child) for child in near if child[2] >= 0 or -1 in child[:2]} == {(0, 1, 1), (0, 1, 2), (0, -1, -1)}
    assert sorted(far) == [[-1, 0, -1], [0, 1, 0], [0, 2, 1], [1, 2, 0]]
    assert [0, -1, -1] not in steps(np.array([[0, 1, -1]]), 3).tolist()
    assert steps(np.array([[0, -1]]), 1, removal=True).tolist() == [[0, 0]]  # the last one stays


@given(populations(max_stages=3, min_features=2, max_features=4, max_rows=1, removal=True))
def test_every_place_is_a_step_or_a_jump_away(population):
    design = population[0]
    reached = {tuple(row) for row in [*steps(population, 4, removal=True).tolist(), *jumps(population, 4).tolist()]}
    for feature in range(design.size):
        place = np.arange(-1, 2 * design.max() + 3) if design[feature] < 0 else [-1]
        for p in place:
            child = 2 * design + 1
            child[feature] = p
            child = compress(child[None])[0]
            if child.max() >= 0 and tuple(child) != tuple(design):
                assert tuple(child) in reached


def test_a_feature_left_out_takes_the_place_of_any_other():
    assert near_swaps(np.array([[0, 1, -1]]), 3).tolist() == [[1, 0, -1], [0, -1, 1]]
    assert far_swaps(np.array([[0, 1, -1]]), 3).tolist() == [[-1, 1, 0]]


@given(populations(max_stages=4, min_features=2, max_rows=1))
def test_a_step_changes_at_most_one_feature_set(population):
    design = population[0]
    reached = {tuple(child) for child in steps(population, 5).tolist()}
    for child in reached:
        assert len(sets_of(child) - sets_of(design)) <= 1
        assert len(sets_of(design) - sets_of(child)) <= 1


def test_swaps_exchange_two_features():
    assert near_swaps(np.array([[0, 1, 2]]), 3).tolist() == [[1, 0, 2], [0, 2, 1]]
    assert far_swaps(np.array([[0, 1, 2]]), 3).tolist() == [[2, 1, 0]]
