from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_array_equal
import pytest

from emsco import BestFirst
from emsco.designs.partition import all_designs, count_solutions
from emsco.exceptions import InvalidParameterError
from emsco.scoring.objectives import measure
from emsco.scoring.ranking import pareto_rank
from emsco.scoring.tally import join_tallies
from emsco.search.bestfirst import search_best_first
from tests.classifiers import fixed
from tests.scoring.test_cascade import make_cascade
from tests.search.exact.test_proof import exact
from tests.strategies import problem, seeds


def search(p, max_stages=4, seed=0, evaluate=None, removal=False, **kwargs):
    n_features = p.prices.n_units
    batches = []
    tally = make_cascade(p, 0.7)[0].tally

    def remember(designs):
        batches.append(designs.copy())
        return (evaluate or tally)(designs)

    found = search_best_first(
        remember, BestFirst(**kwargs), n_features=n_features, max_stages=max_stages, rng=default_rng(seed),
        removal=removal,
    )  # fmt: skip
    return found, np.concatenate(batches), tally


@settings(max_examples=60)
@given(seeds(), st.integers(1, 5), st.integers(1, 5), st.sampled_from([2, 3]), st.booleans())
def test_a_space_within_the_budget_is_searched_completely(seed, n_features, max_stages, n_classes, removal):
    p = problem(seed, n_features=n_features, n_classes=n_classes)
    found, looked_at, tally = search(p, max_stages, removal=removal)
    assert len(looked_at) == count_solutions(n_features, max_stages, removal=removal)
    proof = exact(p, max_stages, 0.7, removal=removal)
    order, expected = found.designs.tolist(), proof.designs.tolist()
    assert sorted(order) == sorted(expected)
    ties = {tuple(design): len(tied) for design, tied in zip(order, found.ties, strict=True)}
    assert ties == {tuple(d): n for d, n in zip(expected, proof.n_ties.tolist(), strict=True)}
    assert_array_equal(tally(found.designs).vectors, found.tally.vectors)


@settings(max_examples=25)
@given(seeds(), st.integers(2, 5), st.sampled_from([1, 7, 300, 900, 2500]), st.sampled_from([0, 3, 50]), st.booleans())
def test_beyond_it_no_more_designs_are_looked_at_than_allowed_and_none_of_the_best_is_lost(
    seed, max_stages, max_designs, start, removal
):
    p = problem(seed, n_features=8)
    found, looked_at, tally = search(
        p, max_stages, seed, removal=removal, max_designs=max_designs, start=start, patience=None
    )
    allowed = min(max_designs, count_solutions(8, max_stages, removal=removal))
    assert len(looked_at) <= allowed + 75 * (start != 0)  # an evolution whose front outgrows it adds children
    if start == 0:
        assert len(np.unique(looked_at, axis=0)) == len(looked_at) == allowed
    vectors = tally(looked_at).vectors
    accuracy = np.divide(vectors[:, 1], vectors[:, 0], out=np.zeros(len(vectors)), where=vectors[:, 0] > 0)
    points = np.column_stack([vectors[:, 0], accuracy, -vectors[:, 2]])
    beaten = [((points >= point).all(axis=1) & (points > point).any(axis=1)).any() for point in points]
    best = {tuple(v) for v, lost in zip(vectors.tolist(), beaten, strict=True) if not lost}
    assert {tuple(v) for v in found.tally.vectors.tolist()} == best


def test_it_misses_little_of_a_space_beyond_its_budget():
    p = problem(5, n_features=9, n_validation=80)
    truth = {tuple(v) for v in make_cascade(p, 0.7)[0].tally(exact(p, 4, 0.7).designs).vectors.tolist()}
    found, looked_at, _ = search(p, max_designs=20_000)
    assert len(looked_at) <= 20_000 < count_solutions(9, 4) / 9
    held = {tuple(v) for v in found.tally.vectors.tolist()} & truth
    assert len(held) >= 0.9 * len(truth)
    only_best, _, _ = search(p, max_designs=20_000, max_level=0, swap_delay=None, start=0)
    assert len({tuple(v) for v in only_best.tally.vectors.tolist()} & truth) < len(held)


def test_it_misses_little_where_features_may_be_left_out():
    p = problem(5, n_features=9, n_validation=80)
    truth = exact(p, 3, 0.7, removal=True)
    vectors = {tuple(v) for v in make_cascade(p, 0.7)[0].tally(truth.designs).vectors.tolist()}
    found, looked_at, _ = search(p, 3, removal=True, max_designs=20_000)
    assert len(looked_at) <= 20_000 < count_solutions(9, 3, removal=True) / 9
    assert len({tuple(v) for v in found.tally.vectors.tolist()} & vectors) >= 0.8 * len(vectors)


def test_with_many_features_of_one_price_the_best_single_ones_and_pairs_are_found():
    p = problem(3, n_features=40, n_train=120, n_validation=80, costs=np.ones(40))
    found, _, tally = search(p, 2, removal=True)
    small = np.full((40 + 40 * 39 // 2, 40), -1)
    first, second = np.triu_indices(40)
    small[np.arange(len(small)), first] = small[np.arange(len(small)), second] = 0
    scored = tally(small)
    rank = pareto_rank(measure(join_tallies(found.tally, scored)))[len(found.designs) :]
    best = {tuple(v) for v in scored.vectors[rank == rank.max()].tolist()}
    assert len(best) >= 5
    assert best <= {tuple(v) for v in found.tally.vectors.tolist()}


def test_the_same_seed_gives_the_same_designs():
    p = problem(1, n_features=9)
    results = [search(p, seed=seed, max_designs=3000)[0] for seed in (3, 3, 4)]
    assert_array_equal(results[0].designs, results[1].designs)
    assert results[0].designs.tolist() != results[2].designs.tolist()


def test_patience_ends_a_search_that_finds_nothing_new():
    p = problem(1, n_features=9)
    _, patient, _ = search(p, max_designs=30_000, patience=None)
    _, hasty, _ = search(p, max_designs=30_000, patience=4000)
    assert len(hasty) < len(patient) == 30_000


def test_many_features_and_stages_are_sampled():
    p = problem(0, n_features=60, n_train=80)
    found, looked_at, _ = search(p, max_stages=20, max_designs=4000)
    assert len(looked_at) <= 4000
    assert len(found.designs) >= 1


@pytest.mark.parametrize("call", [3, 12])
def test_an_interrupt_returns_the_last_batch(call):
    p = problem(1, n_features=9)
    tally = make_cascade(p, 0.7)[0].tally
    calls = []

    def evaluate(designs):
        calls.append(1)
        if len(calls) == call:  # in the evolution that it starts from, and after it
            raise KeyboardInterrupt
        return tally(designs)

    found, _, _ = search(p, evaluate=evaluate, max_designs=20_000, start=6)
    assert found.ended == "interrupted"
    assert len(calls) == call
    assert len(found.designs) > 0


def test_an_interrupt_before_anything_is_known_is_passed_on():
    def evaluate(designs):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(problem(1, n_features=9), evaluate=evaluate, max_designs=3000)


def test_the_classifier_searches_with_it(capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 9))
    y = X[:, 0] + X[:, 1] + rng.normal(size=120) > 0
    clf = fixed(search=BestFirst(max_designs=4000), max_stages=5, random_state=0, verbose=True).fit(X, y)
    assert clf.search_ == BestFirst(max_designs=4000)
    assert clf.n_generations_ > 1
    assert clf.front_.certificate is None
    assert "on the front" in capsys.readouterr().err
    assert len(clf.decide(X)) == 120


@pytest.mark.parametrize(
    "wrong",
    [{"max_designs": 0}, {"patience": 0}, {"pool_size": True}, {"max_level": -1}, {"swap_delay": 1.5}, {"start": -1}],
)
def test_settings_out_of_range_are_explained(wrong):
    (name,) = wrong
    with pytest.raises(InvalidParameterError, match=name):
        BestFirst(**wrong)


@given(st.integers(1, 6), st.integers(1, 6))
def test_all_designs_are_each_there_once(n_features, max_stages):
    designs = all_designs(n_features, max_stages)
    assert len(np.unique(designs, axis=0)) == len(designs) == count_solutions(n_features, max_stages)
