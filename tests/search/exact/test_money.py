"""The proof by money for tests and errors, against brute force in plain Python."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco.designs.partition import all_designs
from emsco.exceptions import SpaceTooLargeError
from emsco.prices.errors import resolve_errors
from emsco.prices.prices import Prices, resolve
from emsco.reference import least_price, walk_money
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import Loss, check_objectives
from emsco.scoring.rejection import RejectRule
from emsco.search.exact.money import check_few_units, prove_money
from emsco.stages.base import StageOutcomes


class _Given:
    """A trainer whose probabilities are given, set by set."""

    memory_dtype = np.dtype(np.float64)

    def __init__(self, probabilities, errors):
        self.probabilities, self.errors = probabilities, errors

    def train(self, feature_sets):
        return np.zeros(len(feature_sets))

    def outcomes(self, feature_sets, memory):
        numbers = feature_sets @ (1 << np.arange(feature_sets.shape[1]))
        said = [self.errors.outcomes(self.probabilities[n]) for n in numbers]
        return StageOutcomes(np.array([c for c, _ in said]), np.array([a for _, a in said], dtype=np.uint8))


_EITHER, _CLASSES = st.booleans(), st.integers(2, 3)


@st.composite
def problems(draw, n_classes=_CLASSES, reject=_EITHER, grouped=_EITHER, removal=_EITHER):
    """Draw probabilities, whole prices, groups, and whether units may be left out."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_units, n_classes, n_rows = draw(st.integers(1, 4)), draw(n_classes), draw(st.integers(1, 12))
    probabilities = rng.dirichlet(np.ones(n_classes), size=(2**n_units, n_rows))  # without ties, which rounding breaks
    n_answers = n_classes + draw(reject)
    table = rng.integers(1, 9, size=(n_classes, n_answers))
    table[np.arange(n_classes), np.arange(n_classes)] = 0
    costs, shared = (
        rng.integers(0, 6, size=n_units),
        int(rng.integers(1, 4)) if n_units > 1 and draw(grouped) else 0,
    )
    return {
        "probabilities": probabilities,
        "y": rng.integers(0, n_classes, size=n_rows),
        "table": table,
        "costs": costs,
        "shared": shared,
        "bar": draw(st.sampled_from([0.1, 0.9, 1.7, 3.3])),
        "removal": draw(removal),
        "max_stages": draw(st.integers(1, n_units)),
    }


def _judge(problem):
    names = [f"u{i}" for i in range(problem["costs"].size)]
    own = dict(zip(names, problem["costs"].tolist(), strict=True))
    shared = problem["shared"]
    groups = {"group": names[:2]} if shared else {}
    price = {name: p + (shared if name in names[:2] else 0) for name, p in own.items()}
    discount = {name: own[name] for name in names[:2]} if shared else {}
    prices = resolve(Prices(price=price, groups=groups, discount=discount), names)
    n_classes = len(problem["table"])
    errors = resolve_errors(problem["table"], list(range(n_classes)))
    aims = check_objectives(
        ["cost", Loss(errors.matrix, errors.rejected)], np.bincount(problem["y"], minlength=n_classes)
    )
    rule = RejectRule(((1 - problem["bar"] / errors.largest,), (0.0,)))
    task = Task(
        problem["y"], n_classes, prices, rule, aims, problem["max_stages"], problem["removal"], 2**24, True, errors
    )
    return Judge(task, _Given(problem["probabilities"], errors))


def _by_hand(problem, design):
    """Return what a design pays for tests and errors, in plain Python."""
    table = problem["table"].tolist()

    def outcome(features):
        rows = problem["probabilities"][sum(1 << f for f in features)]
        return [least_price(row, table) for row in rows.tolist()]

    shared = [((0, 1), problem["shared"])] if problem["shared"] else []
    return walk_money(
        design.tolist(), outcome, problem["y"].tolist(), problem["costs"].tolist(), table, problem["bar"], shared
    )


def _every_design(problem):
    n_units = problem["costs"].size
    designs = all_designs(n_units, problem["max_stages"], removal=problem["removal"])
    empty = np.full((1, n_units), -1, dtype=np.int64)
    return np.concatenate([designs, empty]) if problem["removal"] else designs


@settings(max_examples=60, deadline=None)
@given(problems())
def test_counts_of_every_design_equal_those_of_the_reference(problem):
    designs = _every_design(problem)
    tally = _judge(problem).tally(designs)
    by_hand = np.array([_by_hand(problem, design) for design in designs])
    assert_array_equal(tally.total_ticks / tally.scale, by_hand[:, 0])
    assert_array_equal(np.rint(tally.values[:, 1] * problem["y"].size), by_hand[:, 1])


@settings(max_examples=60, deadline=None)
@given(problems())
def test_the_proof_finds_every_pair_that_no_design_beats(problem):
    judge = _judge(problem)
    proof = prove_money(judge)
    found = {_by_hand(problem, design) for design in proof.designs}
    pairs = {_by_hand(problem, design) for design in _every_design(problem)}
    beaten = {p for p, q in product(pairs, pairs) if p != q and q[0] <= p[0] and q[1] <= p[1]}
    assert found == pairs - beaten
    assert proof.certificate.proven


@pytest.mark.parametrize("combination", list(product((2, 3), (False, True), (False, True), (False, True))))
def test_the_proof_equals_brute_force_for_every_combination_of_settings(combination):
    """Classes, a price of no answer, a group that shares a cost, units left out: each with and without the others."""
    n_classes, reject, grouped, removal = map(st.just, combination)

    @settings(max_examples=8, deadline=None)
    @given(problems(n_classes, reject, grouped, removal))
    def check(problem):
        found = {_by_hand(problem, design) for design in prove_money(_judge(problem)).designs}
        pairs = {_by_hand(problem, design) for design in _every_design(problem)}
        assert found == {p for p in pairs if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in pairs)}

    check()


def test_many_units_are_refused_with_what_to_do():
    with pytest.raises(SpaceTooLargeError, match=r"11 features are too many.*the limit is 10.*leave search=None"):
        check_few_units(11)
