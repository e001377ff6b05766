"""The lattice against brute force over the reference, on bits that no classifier would give."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from emsco import reference
from emsco.prices.prices import Prices, resolve
from emsco.scoring._bitset import pack
from emsco.search.exact import lattice
from emsco.search.exact.incumbents import Incumbents
from emsco.search.exact.lattice import Bits, Lattice
from emsco.search.exact.proof import Exact, search_exactly
from emsco.search.exact.steps import dearest
from tests.search.exact.test_proof import all_designs
from tests.strategies import bill, examples, price_models, seeds


def random_bits(seed, n_units, n_samples, prices, confidence, skill, charge=None):
    """Every set is confident of some samples and right of some of them; larger sets need not be better."""
    rng = np.random.default_rng(seed)
    n_sets = 2**n_units
    confident = rng.random((n_sets, n_samples)) < confidence
    if seed % 3 == 0:  # as real ones: larger sets are confident of more, and most samples are easy or hard for all
        size = np.bitwise_count(np.arange(n_sets))[:, None]
        confident = (
            rng.random(n_samples) * 0.8 + rng.random((n_sets, n_samples)) * 0.2 < confidence * size / n_units * 2
        )
    right = confident & (rng.random((n_sets, n_samples)) < skill)
    confident[0] = right[0] = False
    ticks = np.array([sum(p for u, p in enumerate(prices) if s >> u & 1) for s in range(n_sets)])
    bits = Bits(pack(confident), pack(right), pack(np.ones((1, n_samples), dtype=bool))[0], ticks, n_samples, n_units)
    if charge is not None:
        bits = dataclasses.replace(bits, **charge)

    def outcome(features):
        s = sum(1 << u for u in features)
        return confident[s].astype(float).tolist(), np.where(right[s], 0, 1).tolist()

    return bits, outcome


def brute_force(outcome, n_units, max_stages, n_samples, *bill, removal=False):
    by_vector = {}
    for design in all_designs(n_units, max_stages, removal=removal):
        vector = reference.walk(design, outcome, [0] * n_samples, *bill)
        by_vector.setdefault(vector, []).append(design)
    points = {vector: reference.objectives(vector, n_samples) for vector in by_vector}
    front = [v for v in points if not any(reference.dominates(other, points[v]) for other in points.values())]
    return {v: sorted(by_vector[v], key=reference.complexity) for v in front}


@examples(300)
@given(
    seeds(),
    st.integers(2, 5),
    st.integers(1, 6),
    st.sampled_from([1, 3, 12, 70]),
    st.lists(st.sampled_from([0, 1, 1, 2, 10, 100]), min_size=5, max_size=5),
    st.sampled_from([0.02, 0.2, 0.4, 0.7, 1.0]),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    st.integers(1, 3),
    st.sampled_from([(2**48,), (1, 2**48), (1, 2, 4, 2**48)]),
    st.booleans(),
)
def test_any_bits_give_the_frontier_of_brute_force(
    seed, n_units, max_stages, n_samples, prices, confidence, skill, n_jobs, widths, removal
):
    n_units = min(n_units, 4) if removal and n_samples == 70 else n_units  # the reference is slow
    prices = prices[:n_units]
    bits, outcome = random_bits(seed, n_units, n_samples, prices, confidence, skill)
    check_against_brute_force(bits, outcome, max_stages, n_jobs, widths, prices, 0.5, removal=removal)


def check_against_brute_force(bits, outcome, max_stages, n_jobs, widths, *bill, removal=False):
    """Vectors, simplest designs, counts of ties, and the ties themselves."""
    n_samples = bits.n_samples
    expected = brute_force(outcome, bits.n_units, max_stages, n_samples, *bill, removal=removal)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lattice, "_WIDTHS", widths)
        proof = search_exactly(bits, Exact(), max_stages=max_stages, removal=removal, n_jobs=n_jobs)
    vectors = [reference.walk(d, outcome, [0] * n_samples, *bill) for d in proof.designs.tolist()]
    assert sorted(vectors) == sorted(expected)
    for vector, design, n_ties, ties in zip(vectors, proof.designs.tolist(), proof.n_ties, proof.ties, strict=True):
        assert design == expected[vector][0]
        assert n_ties == len(expected[vector])
        assert sorted(row.tolist() for row in ties) == sorted(expected[vector])


@examples(250)
@given(
    seeds(),
    st.integers(2, 5).flatmap(lambda n: st.tuples(st.just(n), price_models(n))),
    st.integers(1, 6),
    st.sampled_from([1, 3, 12, 70]),
    st.sampled_from([0.02, 0.2, 0.4, 0.7, 1.0]),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    st.integers(1, 3),
    st.sampled_from([(2**48,), (1, 2**48), (1, 2, 4, 2**48)]),
    st.booleans(),
)
def test_any_price_model_gives_the_frontier_of_brute_force(
    seed, units_and_costs, max_stages, n_samples, confidence, skill, n_jobs, widths, removal
):
    n_units, costs = units_and_costs
    n_samples = min(n_samples, 12) if removal else n_samples  # the reference is slow
    prices = resolve(costs, [f"x{i}" for i in range(n_units)])
    bits, outcome = random_bits(seed, n_units, n_samples, [], confidence, skill, charge_of(prices))
    check_against_brute_force(bits, outcome, max_stages, n_jobs, widths, *bill(prices, 0.5), removal=removal)


@pytest.mark.parametrize("seed", [418, 566, 776, 796, 1033, 1751, 1852, 2110, 2954])
def test_ways_of_many_stages_cost_more_than_one_stage(seed):
    """Spaces in which a state is wrongly dropped if the rest is thought to be bought in one stage: 1 in 200 is such."""
    rng = np.random.default_rng(seed)
    max_stages, n_samples = int(rng.integers(4, 6)), int(rng.choice([4, 6, 8, 12]))
    own, of_group = rng.choice([0, 1, 2, 10, 10, 10], 5), rng.integers(0, 3, 5)
    price = own + np.array([0, *rng.choice([0, 1, 5, 20, 50], 2)])[of_group]
    members = {str(g): [f"x{i}" for i in np.flatnonzero(of_group == g)] for g in (1, 2) if (of_group == g).any()}
    costs = Prices(
        price={f"x{i}": int(p) for i, p in enumerate(price)},
        groups=members,
        discount={name: int(own[int(name[1])]) for of in members.values() for name in of},
        overhead=int(rng.choice([0, 10, 30])),
        parallel=bool(rng.integers(4)),
    )
    prices = resolve(costs, list(costs.price))
    confidence, skill = float(rng.choice([0.2, 0.3, 0.4])), float(rng.choice([0.6, 0.8, 0.9]))
    bits, outcome = random_bits(seed, 5, n_samples, [], confidence, skill, charge_of(prices))
    check_against_brute_force(bits, outcome, max_stages, 1, (2**48,), *bill(prices, 0.5))


def charge_of(prices):
    """What ``Bits`` know of prices, one set at a time."""
    n_units = prices.n_units
    units = (np.arange(2**n_units)[:, None] >> np.arange(n_units) & 1).astype(bool)
    members = [int(sum(1 << u for u in np.flatnonzero(group))) for group in prices.groups.T]
    return {
        "ticks": prices.set_ticks(units),
        "overhead": prices.overhead_ticks,
        "parallel": prices.parallel,
        "members": np.array(members, dtype=np.int64),
        "shared": prices.shared_ticks.copy(),
    }


@given(st.integers(2, 5).flatmap(price_models))
def test_the_bounds_of_what_is_to_pay_hold_on_every_way(costs):
    prices = resolve(costs, [f"x{i}" for i in range(len(costs.price) + len(costs.derived))])
    n = prices.n_units
    bits = random_bits(0, n, 1, [], 0.5, 0.5, charge_of(prices))[0]
    cheapest = Lattice(bits, max_stages=n)._bounds[-1]
    for design in all_designs(n, n):
        n_stages = max(design) + 1
        costs, _, *rules = bill(prices, 0.5)
        stages = [reference.stage_price(design, j, costs, *rules) for j in range(n_stages)]
        for j in range(n_stages):
            owned = sum(1 << u for u, s in enumerate(design) if s < j)
            most = dearest(bits.steps, np.array([owned]), n)[0, n_stages - j]
            assert cheapest[owned] <= stages[j]
            assert bits.steps.of_rest[owned] <= sum(stages[j:]) <= most
            if j == n_stages - 1:
                assert bits.steps.of_rest[owned] == stages[j]


@given(st.integers(1, 12), st.data())
def test_the_limit_is_where_strict_domination_begins(n_samples, data):
    def vector():
        q = data.draw(st.integers(0, n_samples))
        return q, data.draw(st.integers(0, q)), data.draw(st.integers(0, 5))

    incumbents = Incumbents(n_samples)
    incumbents.add({vector(): (1,) for _ in range(data.draw(st.integers(1, 5)))})
    known = [reference.objectives((q, q - e, cost), n_samples) for q, e, cost in incumbents.chains]
    for q in range(n_samples + 1):
        for e in range(q + 1):
            for cost in range(7):
                point = reference.objectives((q, q - e, cost), n_samples)
                beaten = any(reference.dominates(other, point) for other in known)
                assert (cost > incumbents.limit[q, e]) == beaten


def test_a_narrow_pass_cuts_and_a_wide_one_proves(monkeypatch):
    monkeypatch.setattr("emsco.search.exact.lattice._WIDTHS", (1, 2**48))
    bits, _ = random_bits(3, 7, 60, [1, 2, 3, 5, 8, 13, 21], 0.4, 0.8)
    search = Lattice(bits, max_stages=7)
    assert search._search_once(0, {}) > 0
    narrow = set(search.incumbents.chains)
    assert search._search_once(1, {}) == 0
    assert set(search.incumbents.chains) != narrow


def test_the_result_does_not_depend_on_the_number_of_threads():
    bits, _ = random_bits(5, 7, 100, [1, 2, 3, 5, 8, 13, 21], 0.3, 0.8)
    proofs = [search_exactly(bits, Exact(), max_stages=5, n_jobs=n_jobs) for n_jobs in (1, 3)]
    assert proofs[0].designs.tolist() == proofs[1].designs.tolist()
    assert proofs[0].n_ties.tolist() == proofs[1].n_ties.tolist()
    assert proofs[0].certificate.n_walked == proofs[1].certificate.n_walked


def test_without_room_for_its_states_a_search_ends_with_what_it_has():
    bits, _ = random_bits(3, 7, 60, [1, 2, 3, 5, 8, 13, 21], 0.4, 0.8)
    proof = search_exactly(bits, Exact(), max_stages=7, max_bytes=10_000)
    assert proof.ended == "out of memory"
    assert not proof.certificate.proven
    assert len(proof.designs) >= 1
    assert all(len(list(ties)) == 1 for ties in proof.ties)


@pytest.mark.slow
def test_ties_beyond_what_an_integer_holds_are_counted_up_to_it():
    n_units = 19
    confident = np.full((2**n_units, 1), 1, dtype=np.uint64)  # one sample, decided by anything
    confident[0] = 0
    ticks = np.bitwise_count(np.arange(2**n_units)).astype(np.int64)
    bits = Bits(confident, confident.copy(), np.ones(1, dtype=np.uint64), ticks, 1, n_units)
    proof = search_exactly(bits, Exact(), max_stages=n_units)
    assert proof.ties[0].n_designs > 2**63
    assert proof.n_ties.tolist() == [2**63 - 1]
    assert next(iter(proof.ties[0])).max() >= 1


@pytest.mark.parametrize("method", ["_add_found", "_graph"])
def test_an_interrupt_between_the_kernels_keeps_what_was_found(method, monkeypatch):
    bits, _ = random_bits(3, 7, 60, [1, 2, 3, 5, 8, 13, 21], 0.4, 0.8)
    unharmed = getattr(Lattice, method)
    calls = []

    def interrupted(self, *args):
        calls.append(1)
        if method == "_graph" or len(calls) == 5:
            raise KeyboardInterrupt
        return unharmed(self, *args)

    monkeypatch.setattr(Lattice, method, interrupted)
    proof = search_exactly(bits, Exact(), max_stages=7)
    assert proof.ended == "interrupted"
    assert not proof.certificate.proven
    assert proof.designs.max() > 0  # better than the one-stage design that it starts with
