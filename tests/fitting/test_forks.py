"""Designs that branch, where errors have prices: the search, the gate, and what is deployed."""

from itertools import product
from types import SimpleNamespace

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest

import emsco
from emsco import Branch, EMSCOClassifier
from emsco.designs.branched import Route
from emsco.exceptions import InvalidParameterError
from emsco.fitting.forks import NEEDED, Forks, Saved, errors_of_gain
from emsco.prices.prices import Prices, resolve

N_LEVELS = 4


def _purse(rng, n_units, n_samples):
    """Feature sets with random answers: all of them are known."""
    sets = ((np.arange(2**n_units)[:, None] >> np.arange(n_units)) & 1).astype(bool)
    level = rng.integers(0, N_LEVELS + 1, (len(sets), n_samples)).astype(np.uint8)
    price = rng.integers(0, 20, (len(sets), n_samples)).astype(float)
    prices = resolve(rng.integers(1, 6, n_units).astype(float), [str(i) for i in range(n_units)])
    task = SimpleNamespace(prices=prices, max_stages=4)
    levels = np.linspace(1, 0, N_LEVELS)
    return SimpleNamespace(known=lambda: (sets, level, price), levels=levels, judge=SimpleNamespace(task=task))


def _routes(rng, n_units, n_samples):
    """One route by the value of each unit, to two branches."""
    by_unit = [rng.integers(0, 2, n_samples) for _ in range(n_units)]
    route = [Route("category", unit=u, columns=(u,), groups=((0.0,), (1.0,)), n_branches=2) for u in range(n_units)]
    return lambda units: [(route[u], by_unit[u]) for u in np.flatnonzero(units)]


def _walk(purse, sets, bars, samples):
    """Return the money of samples with a chain, one sample after the other."""
    known, level, price = purse.known()
    slots = [int(np.flatnonzero((known == units).all(axis=1))[0]) for units in sets]
    total = 0.0
    for i in samples:
        owned = np.zeros(known.shape[1], dtype=bool)
        for j, slot in enumerate(slots):
            total += purse.judge.task.prices.prices[known[slot] & ~owned].sum()
            owned = known[slot]
            if j == len(slots) - 1 or level[slot, i] <= bars[j]:
                total += price[slot, i]
                break
    return total


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_with_two_units_the_best_branched_design_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    purse, routes_of = _purse(rng, 2, 12), _routes(rng, 2, 12)
    forks = Forks(purse, routes_of, limit=1e9)
    fork = forks.best(np.arange(12))
    least = np.inf
    for root in ([True, False], [False, True], [True, True]):
        chains = [[np.array(root)]] + ([[np.array(root), np.ones(2, dtype=bool)]] if not all(root) else [])
        for _, branch in routes_of(np.array(root)):
            total = 0.0
            for b in range(2):
                rows = np.flatnonzero(branch == b)
                ways = [(chain, [bar]) for chain, bar in product(chains, range(N_LEVELS))]
                total += min(_walk(purse, chain, bars, rows) for chain, bars in ways)
            least = min(least, total)
    assert_allclose(forks.money(fork, np.arange(12)).sum(), least)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000))
def test_money_is_what_each_sample_pays_on_its_way(seed):
    rng = np.random.default_rng(seed)
    purse, routes_of = _purse(rng, 4, 25), _routes(rng, 4, 25)
    forks = Forks(purse, routes_of, limit=1e9)
    some = np.flatnonzero(rng.random(25) < 0.7)
    fork = forks.best(some)
    branched = fork.branched(purse.levels)
    branched.check([(u,) for u in range(4)])
    for b, row in enumerate(fork.rows):
        sets = [(row >= 0) & (row <= j) for j in range(row.max() + 1)]
        rows = some[fork.branch[some] == b]
        assert_allclose(forks.money(fork, rows).sum(), _walk(purse, sets, fork.numbers[b], rows))


def test_both_gains_count_and_both_must_be_positive():
    some, much = np.array([1.0, 0.9, 1.1, 1.0] * 10), np.zeros(40)
    assert errors_of_gain(some) > NEEDED
    assert not Saved(some, much).pays
    assert not Saved(some, -some).pays
    noise = np.array([1.0, -1.0, 1.2, -1.0] * 10)
    assert 0 < errors_of_gain(noise) < 1
    assert not Saved(noise, noise).pays
    assert Saved(some, some).pays


def _in_context(n, rng):
    """A kind that says which of two dear values is the class."""
    kind, a, b = rng.integers(0, 2, n), rng.integers(0, 2, n), rng.integers(0, 2, n)
    return pd.DataFrame({"kind": kind, "a": a, "b": b}), np.where(kind == 0, a, b)


IN_CONTEXT, WRONG = {"kind": 0.1, "a": 3, "b": 3}, [[0, 20], [20, 0]]


@pytest.fixture(scope="module")
def forked():
    X, y = _in_context(300, np.random.default_rng(0))
    return EMSCOClassifier(IN_CONTEXT, errors=WRONG, branch="auto", random_state=0).fit(X, y)


def test_a_context_is_found_and_saves_what_other_cases_need(forked):
    branched = forked.front_.branched[forked.point_]
    assert branched is not None
    assert branched.route.columns == (0,)
    assert_array_equal(np.sort(branched.rows, axis=0), [[0, -1, -1], [0, 1, 1]])
    assert_allclose(forked.front_.mean_cost[forked.point_], 3.1)
    assert_allclose(forked.front_.total[forked.point_], 3.1)


def test_new_rows_pay_for_their_own_branch_alone(forked):
    X, y = _in_context(200, np.random.default_rng(1))
    decided = forked.decide(X)
    assert_array_equal(decided.label, y)
    assert_allclose(decided.cost, 3.1)
    assert_array_equal(decided.bought[:, 1], X["kind"] == 0)


def test_a_session_buys_what_decide_buys_and_says_what_it_saves(forked):
    session = forked.session()
    first = session.step()
    assert first.features == ("kind",)
    nothing = forked.front_.total[forked.front_.designs.max(axis=1) < 0]
    assert_allclose(first.saves, nothing[0] - 3.1)
    session.give({"kind": 1})
    assert session.step().features == ("b",)
    session.give({"b": 1})
    assert (session.step().label, session.step().cost) == (1, 3.1)


def test_a_file_keeps_the_branches(forked, tmp_path):
    X, _ = _in_context(50, np.random.default_rng(2))
    forked.save(tmp_path / "model.emsco")
    again = emsco.load(tmp_path / "model.emsco")
    assert_array_equal(again.decide(X).cost, forked.decide(X).cost)
    assert_array_equal(again.decide(X).label, forked.decide(X).label)


@pytest.mark.parametrize("seed", range(3))
def test_where_contexts_tell_nothing_the_design_is_a_chain(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 2, (150, 4)), columns=list("abcd"))
    y = X["a"].to_numpy() ^ (rng.random(150) < 0.1)
    clf = EMSCOClassifier(None, errors=[[0, 9], [9, 0]], branch="auto", random_state=seed).fit(X, y)
    assert not clf.front_.branched


def test_designs_branch_only_if_that_is_asked_for():
    X, y = _in_context(300, np.random.default_rng(0))
    clf = EMSCOClassifier(IN_CONTEXT, errors=WRONG, random_state=0).fit(X, y)
    assert not clf.front_.branched
    assert not len(clf.branches_)


def test_what_was_tried_is_listed(forked):
    gain = forked.branches_[0]
    assert (gain.root, gain.kept) == (("kind",), True)
    assert gain.branches == ("kind is 1 or anything else", "kind is 0")
    assert gain.gain > 2 * gain.error
    assert "kept" in str(forked.branches_)


def test_a_root_that_is_named_is_the_only_one_tried():
    X, y = _in_context(300, np.random.default_rng(0))
    asked = EMSCOClassifier(IN_CONTEXT, errors=WRONG, branch=Branch(on="a"), random_state=0).fit(X, y)
    assert {gain.root for gain in asked.branches_} <= {("a",)}
    assert all(each is None for each in asked.front_.branched)


@pytest.mark.parametrize("branch", [Branch(by="leaning"), Branch(experts="own"), Branch(on="c"), Branch(by="c")])
def test_what_cannot_be_had_with_prices_of_errors_is_refused(branch):
    X, y = _in_context(100, np.random.default_rng(0))
    with pytest.raises(InvalidParameterError, match="Branch: "):
        EMSCOClassifier(IN_CONTEXT, errors=WRONG, branch=branch, random_state=0).fit(X, y)


def test_one_stage_leaves_no_room_for_branches():
    X, y = _in_context(300, np.random.default_rng(0))
    clf = EMSCOClassifier(IN_CONTEXT, errors=WRONG, branch="auto", max_stages=1, random_state=0).fit(X, y)
    assert not clf.front_.branched


def test_prices_of_groups_are_paid_once_by_each_branch():
    rng = np.random.default_rng(3)
    X, y = _in_context(300, rng)
    prices = Prices(
        price={"kind": 1, "a": 3, "b": 3}, groups={"visit": ["kind", "a"]}, discount={"kind": 0.5, "a": 2.5}
    )
    clf = EMSCOClassifier(prices, errors=[[0, 30], [30, 0]], branch="auto", random_state=0).fit(X, y)
    new, truth = _in_context(100, rng)
    decided = clf.decide(new)
    assert_array_equal(decided.label, truth)
    assert_allclose(decided.cost, np.where(new["kind"] == 0, 3.5, 4.0))
