from itertools import product

from hypothesis import given
from hypothesis import strategies as st
import numpy as np

from emsco.scoring.compose import best_counts, compose


@st.composite
def branches(draw):
    """Counts of up to three branches: labels, wrong ones among them, ticks."""
    rows = st.tuples(*(st.integers(0, most) for most in (4, 4, 6))).map(lambda r: (r[0], min(r[:2]), r[2]))
    parts = draw(st.lists(st.lists(rows, min_size=1, max_size=7), min_size=1, max_size=3))
    return [np.array(part, dtype=np.int64) for part in parts]


def beats(one, other):
    at_least = one[0] >= other[0] and one[1] <= other[1] and one[2] <= other[2]
    return at_least and tuple(one) != tuple(other)


def sums(parts):
    return {tuple(np.sum(rows, axis=0).tolist()) for rows in product(*parts)}


def nondominated(counts):
    return {one for one in counts if not any(beats(other, one) for other in counts)}


@given(branches())
def test_the_front_of_sums_is_the_sum_of_fronts(parts):
    composed = compose(parts)
    assert set(map(tuple, composed.counts.tolist())) == nondominated(sums(parts))
    assert len(np.unique(composed.counts, axis=0)) == len(composed.counts)
    for counts, picks in zip(composed.counts, composed.picks, strict=True):
        assert (sum(part[i] for part, i in zip(parts, picks, strict=True)) == counts).all()


@given(branches())
def test_sums_that_are_best_by_coverage_accuracy_and_cost_are_never_lost(parts):
    def by_share(counts):
        return (counts[0], 1 - counts[1] / counts[0] if counts[0] else 0.0, -counts[2])

    everyone = {by_share(each) for each in sums(parts)}
    best = {one for one in everyone if not any(o != one and all(a >= b for a, b in zip(o, one, strict=True))
                                               for o in everyone)}  # fmt: skip
    assert best <= {by_share(each) for each in compose(parts).counts.tolist()}


@given(branches(), st.integers(1, 3))
def test_thinned_sums_are_true_ones_and_some_label_as_many_as_possible(parts, most):
    composed = compose(parts, most=most)
    for counts, picks in zip(composed.counts, composed.picks, strict=True):
        assert (sum(part[i] for part, i in zip(parts, picks, strict=True)) == counts).all()
    assert composed.counts[:, 0].max() == sum(part[:, 0].max() for part in parts)
    assert len(composed.counts) <= 2 * most


def test_sums_in_several_goes_are_those_in_one(monkeypatch):
    rng = np.random.default_rng(0)
    parts = [np.column_stack([rng.integers(5, 30, 60), rng.integers(0, 5, 60), rng.integers(0, 99, 60)]) for _ in "abc"]
    at_once = compose(parts)
    monkeypatch.setattr("emsco.scoring.compose._AT_ONCE", 300)
    bit_by_bit = compose(parts)
    assert (at_once.counts == bit_by_bit.counts).all()
    assert len(best_counts(at_once.counts)) == len(at_once.counts)
