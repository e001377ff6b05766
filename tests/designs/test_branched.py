from bisect import bisect_right
import math

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco.designs.branched import Branched, Route, expert_key
from emsco.designs.partition import acquired_sets, set_key
from emsco.exceptions import InvalidDesignError
from emsco.scoring.rejection import RejectRule

CELLS = st.one_of(
    st.sampled_from([0, 1, 2.0, 2.5, -1, True, False, "2", "0", None, math.nan]), st.floats(-3, 3), st.integers(-3, 3)
)


def number(cell):
    return None if cell is None or cell != cell else float(cell)


def slowly(route, cells, leaning):
    """The branch of one row, as the interface says it in words."""
    numbers = [number(cell) for cell in cells] if route.kind in ("cut", "largest", "pattern") else []
    if route.kind == "cut":
        return route.default if numbers[0] is None else bisect_right(route.cuts, numbers[0])
    if route.kind == "largest":
        known = [value for value in numbers if value is not None]
        return next(b for b, value in enumerate(numbers) if value == max(known)) if known else route.default
    if route.kind == "leaning":
        value = leaning
    elif route.kind == "pattern":
        value = None if None in numbers else tuple(int(bit > 0.5) for bit in numbers)
    elif isinstance(route.groups[0][0], str):
        is_whole = isinstance(cells[0], float) and cells[0].is_integer()
        value = None if cells[0] is None or cells[0] != cells[0] else str(int(cells[0]) if is_whole else cells[0])
    else:
        value = number(cells[0])
    return next((b for b, group in enumerate(route.groups) if value in group), route.default)


ROUTES = (
    Route("cut", 0, (0,), cuts=(-1.0, 0.0, 2.5), default=3, n_branches=4),
    Route("cut", 0, (0,), cuts=(0.5,), default=0, n_branches=2),
    Route("largest", 0, (0, 1, 2), default=2, n_branches=3),
    Route("pattern", 0, (0, 1), groups=(((0, 0), (1, 1)), (), ((0, 1),)), default=1, n_branches=3),
    Route("category", 0, (0,), groups=((2, 0.0), (2.5, 1), ()), default=2, n_branches=3),
    Route("category", 0, (0,), groups=(("2", "True"), ("0", "2.5")), default=1, n_branches=2),
    Route("leaning", -1, groups=((0, 2), (1,)), default=0, n_branches=2),
)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.kind}{route.n_branches}")
@given(st.lists(st.tuples(CELLS, CELLS, CELLS, st.integers(0, 3)), max_size=12))
def test_rows_take_the_branch_that_plain_python_says(route, rows):
    route.check()
    columns = [np.array([row[k] for row in rows] + [None], dtype=object)[:-1] for k in range(len(route.columns))]
    leaning = np.array([row[3] for row in rows], dtype=np.intp)
    wanted = [slowly(route, row[: len(columns)], row[3]) for row in rows]
    assert route.branch(columns, leaning).tolist() == wanted
    assert [route.branch_of(row[: len(columns)], row[3]) for row in rows] == wanted


@pytest.mark.parametrize("route", ROUTES[:5], ids=lambda route: f"{route.kind}{route.n_branches}")
@given(st.lists(st.tuples(*[st.sampled_from([-1.5, 0.0, 0.5, 1.0, 2.0, 2.5, math.nan])] * 3), min_size=1, max_size=9))
def test_columns_of_numbers_and_of_objects_take_the_same_branches(route, rows):
    numbers = [np.array([row[k] for row in rows]) for k in range(len(route.columns))]
    assert_array_equal(route.branch(numbers), route.branch([column.astype(object) for column in numbers]))


def test_every_branch_has_a_phrase():
    names, classes = ["age", "thal", "sex"], ["well", "sick", "dead"]
    for route in ROUTES:
        words = route.words(names, classes)
        assert len(set(words)) == route.n_branches
        assert all(words)
    assert ROUTES[3].words(names, classes)[0] == "age = 0 and thal = 0, or age = 1 and thal = 1"
    assert ROUTES[4].words(names, classes) == ("age is 2 or 0", "age is 2.5 or 1", "age is anything else")
    assert ROUTES[6].words(names, classes)[0] == "the root leans to well or dead"


ROWS = np.array([[0, 1, -1, -1, 2], [0, -1, -1, 1, -1], [0, -1, -1, -1, -1]])


def three_way(rows=ROWS, experts=("shared", "weighted", "own"), **changes):
    route = {"kind": "cut", "unit": 0, "columns": (0,), "cuts": (1.0, 2.0), "n_branches": 3, **changes}
    return Branched(rows, Route(**route), (RejectRule(((0.9,), (0.0,))),) * 3, experts)


def test_a_summary_has_the_earliest_stage_of_every_unit():
    branched = three_way()
    branched.check([(0,), (1,), (2,), (3,), (4,)])
    assert branched.summary.tolist() == [0, 1, -1, 1, 2]
    assert branched.n_stages == 3
    assert branched.root.tolist() == [True, False, False, False, False]
    with pytest.raises(ValueError, match="read-only"):
        branched.rows[0, 0] = 1


def test_only_classifiers_trained_for_a_branch_have_keys_of_their_own():
    branched, other = three_way(), three_way(cuts=(1.0, 3.0))
    sets = [acquired_sets(row[None])[0][0] for row in ROWS]
    assert branched.keys(0) == [set_key(units) for units in sets[0]]
    assert branched.keys(1)[0] == set_key(branched.root)
    assert branched.keys(1)[1] == expert_key(branched, 1, sets[1][1]) != expert_key(other, 1, sets[1][1])
    keys = {expert_key(b, k, sets[1][1]) for b in (branched, other) for k in range(3)}
    assert len(keys) == 6
    assert all(len(key) > len(set_key(branched.root)) for key in keys)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (lambda: three_way(ROWS[:2]), "has 2 designs"),
        (lambda: three_way(np.array([[0, 1, -1], [1, 0, -1], [0, -1, -1]])), "different units in their first stage"),
        (lambda: three_way(np.array([[0, 2, -1], [0, 1, -1], [0, -1, -1]])), "leaves a stage empty"),
        (lambda: three_way(np.full((3, 4), -1)), "buys nothing"),
        (lambda: three_way(unit=1), "a unit that the root does not buy"),
        (lambda: three_way(columns=(3,)), "which the root does not buy"),
        (lambda: three_way(columns=(0, 1)), "cannot read the columns"),
        (lambda: three_way(cuts=(2.0, 1.0)), "increasing cuts"),
        (lambda: three_way(cuts=(2.0,)), "2 increasing cuts"),
        (lambda: three_way(default=3), "one of them the default"),
        (lambda: three_way(n_branches=1, cuts=()), "two branches or more"),
        (lambda: three_way(kind="cuts"), "a route is one of"),
        (lambda: three_way(kind="category"), "0 groups and 2 cuts"),
        (lambda: three_way(kind="category", cuts=(), groups=((1,), (1,), ())), "only the default may have none"),
        (lambda: three_way(kind="category", cuts=(), groups=((1,), (1,), (2,))), "hold a value twice"),
        (lambda: three_way(kind="category", cuts=(), groups=((1,), ("a",), (2,))), "by category hold"),
        (lambda: three_way(kind="leaning", unit=-1, columns=(), cuts=(), groups=((1,), (-1,), (2,))), "leaning hold"),
        (lambda: three_way(kind="pattern", cuts=(), groups=(((1,),), ((0, 1),), ())), "only the default"),
        (lambda: three_way(kind="pattern", cuts=(), groups=(((1,),), ((0, 1),), ((0,),))), "by pattern hold"),
        (lambda: three_way(kind="largest", cuts=()), "needs as many columns"),
        (lambda: three_way(experts=("shared", "mine", "own")), "classifiers of a branch are"),
    ],
)
def test_what_does_not_fit_together_is_refused(broken, words):
    with pytest.raises(InvalidDesignError, match=words):
        broken().check([(0,), (1,), (2,), (3,), (4,)])
