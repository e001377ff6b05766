"""Designs that branch, proven, against brute force over the reference."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco import reference
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import resolve
from emsco.search.exact.branched import prove_branched
from emsco.search.exact.proof import Exact
from tests.search.exact.test_lattice import charge_of, random_bits
from tests.search.exact.test_proof import all_designs
from tests.strategies import bill, examples, price_models, seeds


def brute_force(outcome, root, branch, n_branches, max_stages, *bill, removal):
    """All vectors (labels, wrong, ticks) of designs that buy the root first, those that no other one beats."""
    n_units, n_samples = root.size, branch.size
    chains = [
        design
        for design in all_designs(n_units, max_stages, removal=removal)
        if [stage == 0 for stage in design] == root.tolist()
    ]
    by_branch = []
    for b in range(n_branches):
        rows = np.flatnonzero(branch == b)

        def of_rows(features, rows=rows):
            confidences, labels = outcome(features)
            return np.array(confidences)[rows].tolist(), np.array(labels)[rows].tolist()

        by_branch.append({reference.walk(design, of_rows, [0] * rows.size, *bill) for design in chains})
    counts = {(sum(v[0] for v in p), sum(v[0] - v[1] for v in p), sum(v[2] for v in p)) for p in product(*by_branch)}
    assert n_samples == sum((branch == b).sum() for b in range(n_branches))

    def beats(one, other):
        return one != other and one[0] >= other[0] and one[1] <= other[1] and one[2] <= other[2]

    return {one for one in counts if not any(beats(other, one) for other in counts)}


@examples(150)
@given(
    seeds(),
    st.integers(2, 4).flatmap(lambda n: st.tuples(st.just(n), price_models(n), st.integers(1, 2**n - 1))),
    st.integers(2, 4),
    st.sampled_from([1, 3, 12, 70]),
    st.sampled_from([0.02, 0.2, 0.4, 0.7, 1.0]),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    st.integers(1, 3),
    st.booleans(),
)
def test_all_that_is_best_with_a_root_is_found(
    seed, units_and_costs, max_stages, n_samples, confidence, skill, n_branches, removal
):
    n_units, costs, owned = units_and_costs
    n_samples = min(n_samples, 12) if removal and n_units == 4 else n_samples  # the reference is slow
    prices = resolve(costs, [f"x{i}" for i in range(n_units)])
    bits, outcome = random_bits(seed, n_units, n_samples, [], confidence, skill, charge_of(prices))
    root = (owned >> np.arange(n_units) & 1).astype(bool)
    branch = np.random.default_rng(seed).integers(n_branches, size=n_samples)
    n_branches = int(branch.max()) + 1
    proof = prove_branched(bits, prices, root, branch, max_stages=max_stages, removal=removal)
    costs_, bar, *model = bill_ = bill(prices, 0.5)
    bars = [[bar] * n_units] * n_branches
    expected = brute_force(outcome, root, branch, n_branches, max_stages, *bill_, removal=removal)
    assert sorted(map(tuple, proof.counts.tolist())) == sorted(expected)
    for (labels, wrong, ticks), designs in zip(proof.counts.tolist(), proof.designs, strict=True):
        assert ((designs == 0) == root).all()
        walked = reference.walk_branched(
            designs.tolist(), branch.tolist(), lambda _, features: outcome(features), costs_, bars, *model
        )
        given = [label for label, _, _, enough, _ in walked if enough]
        assert (len(given), sum(label != 0 for label in given)) == (labels, wrong)
        assert sum(paid for *_, paid in walked) == ticks
    certificate = proof.certificate
    assert certificate.proven
    assert certificate.n_walked + certificate.n_ruled_out == certificate.n_designs


def test_every_design_is_counted_and_a_proof_that_ends_early_says_so():
    prices = resolve(np.array([1, 2, 3, 4, 5]), list("abcde"))
    bits, _ = random_bits(1, 5, 40, [1, 2, 3, 4, 5], 0.4, 0.8)
    root, branch = np.arange(5) == 2, np.arange(40) % 2
    proof = prove_branched(bits, prices, root, branch, max_stages=3, removal=True)
    chains = sum([s == 0 for s in design] == root.tolist() for design in all_designs(5, 3, removal=True))
    assert proof.certificate.n_designs == chains**2
    cut = prove_branched(bits, prices, root, branch, Exact(time_limit=1e-9), max_stages=3, removal=True)
    assert not cut.certificate.proven or len(cut.counts) == len(proof.counts)
    again = prove_branched(bits, prices, root, branch, max_stages=3, removal=True, n_jobs=2)
    assert_array_equal(again.counts, proof.counts)


def test_a_root_and_enough_stages_are_asked_for():
    prices = resolve(np.ones(2), list("ab"))
    bits, _ = random_bits(0, 2, 4, [1, 1], 0.4, 0.8)
    branch = np.zeros(4, dtype=int)
    for root, max_stages in (([False, False], 2), ([True, False], 1)):
        with pytest.raises(InvalidParameterError, match="a root, and stages enough"):
            prove_branched(bits, prices, np.array(root), branch, max_stages=max_stages)
    alone = prove_branched(bits, prices, np.array([True, False]), branch, max_stages=1, removal=True)
    assert alone.designs.tolist() == [[[0, -1]]]
