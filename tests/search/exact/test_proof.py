import dataclasses
from itertools import product
import os
import pickle
import signal
import threading

from hypothesis import assume, given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.linear_model import LogisticRegression

from emsco import BestFirst, Evolution, Exact, Prices, reference
from emsco.designs.partition import compress, count_solutions
from emsco.exceptions import InvalidParameterError, SearchInterruptedWarning, SpaceTooLargeError
from emsco.prices.prices import resolve
from emsco.scoring.judge import Task
from emsco.scoring.rejection import as_rule
from emsco.search.auto import Auto
from emsco.search.exact.lattice import Lattice, all_bits
from emsco.search.exact.proof import check_affordable, search_exactly
from emsco.stages.logistic import LogisticTrainer
from tests.classifiers import fixed
from tests.strategies import bill, examples, problem, seeds
from tests.test_estimators import PANEL, patients


def all_designs(n_features, max_stages, *, removal=False):
    rows = np.array(list(product(range(-removal, min(max_stages, n_features)), repeat=n_features)))
    return rows[(compress(rows) == rows).all(axis=1) & (rows.max(axis=1) >= 0)].tolist()


def brute_force(p, max_stages, threshold, outcome=None, *, removal=False):
    """Every non-dominated vector and all designs that have it, the simplest first, by the paper in plain Python."""
    outcome = outcome or reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    by_vector = {}
    for design in all_designs(p.prices.n_units, max_stages, removal=removal):
        vector = reference.walk(design, outcome, p.y_validation.tolist(), *bill(p.prices, threshold))
        by_vector.setdefault(vector, []).append(design)
    points = {vector: reference.objectives(vector, p.n_validation) for vector in by_vector}
    front = [v for v in points if not any(reference.dominates(other, points[v]) for other in points.values())]
    return {v: sorted(by_vector[v], key=reference.complexity) for v in front}


def exact(p, max_stages, threshold, n_jobs=1, *, removal=False, **limits):
    bits = all_bits(LogisticTrainer(p), p.y_validation, p.prices, threshold=threshold)
    return search_exactly(bits, Exact(**limits), max_stages=max_stages, removal=removal, n_jobs=n_jobs)


def is_clear(p, threshold):
    """Whether no confidence is so near to the threshold, or to that of another class, that rounding decides."""
    n_units = p.prices.n_units
    sets = ((np.arange(1, 2**n_units)[:, None] >> np.arange(n_units)) & 1).astype(bool)
    trainer = LogisticTrainer(p)
    for units, model in zip(sets, trainer.models(sets, trainer.train(sets)), strict=True):
        *_, second, first = np.sort(model.predict_proba(p.validation[units @ p.unit_columns].T), axis=1).T
        if min((first - second).min(), np.abs(first - threshold).min()) < 1e-6:
            return False
    return True


def vectors_of(p, designs, threshold):
    outcome = reference.train_logistic(p.train.T, p.y_train, p.validation.T)
    truth = p.y_validation.tolist()
    return [reference.walk(design, outcome, truth, *bill(p.prices, threshold)) for design in designs.tolist()]


IN_GROUPS = Prices(
    price={"x0": 7.27, "x1": 5.2, "x2": 9, "x3": 4},
    groups={"blood": ["x0", "x1"], "visit": ["x3", "x2"]},
    discount={"x0": 5.17, "x1": 3.1, "x2": 5, "x3": 0},
)
PRICES = [None, [0, 0, 1, 3], [0.1, 0.25, 3.3, 0.07], [2, 2, 2, 2], [0, 0, 0, 0], IN_GROUPS]
FREE = {"x0": 0, "x1": 0, "x2": 1, "x3": 3}
MODELS = [
    Prices(price=FREE, overhead=0.5),
    Prices(price=FREE, parallel=True),
    Prices(price=FREE, overhead=2, parallel=True),
    dataclasses.replace(IN_GROUPS, overhead=1.5),
    dataclasses.replace(IN_GROUPS, parallel=True),
    dataclasses.replace(IN_GROUPS, overhead=1.5, parallel=True),
]


@examples(250)
@given(
    seeds(),
    st.sampled_from([2, 3]),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.5, 0.6, 0.75, 0.9, 0.99, 1.0]),
    st.sampled_from([*PRICES, *MODELS]),
    st.integers(1, 3),
    st.booleans(),
)
def test_it_equals_brute_force_vectors_simplest_designs_ties_and_all(
    seed, n_classes, max_stages, threshold, costs, jobs, removal
):
    p = problem(seed, n_features=4, n_classes=n_classes, n_train=30, n_validation=20, costs=costs)
    assume(is_clear(p, threshold))
    expected = brute_force(p, max_stages, threshold, removal=removal)
    proof = exact(p, max_stages, threshold, jobs, removal=removal)
    vectors = vectors_of(p, proof.designs, threshold)
    assert set(vectors) == set(expected)
    assert len(vectors) == len(expected)
    for vector, design, n_ties, ties in zip(vectors, proof.designs.tolist(), proof.n_ties, proof.ties, strict=True):
        assert design == expected[vector][0]
        assert n_ties == len(expected[vector])
        listed = sorted(row.tolist() for row in ties)
        assert listed == sorted(expected[vector])
    certificate = proof.certificate
    assert certificate.proven
    n_designs = count_solutions(4, max_stages, removal=removal)
    assert certificate.n_designs == certificate.n_walked + certificate.n_ruled_out == n_designs
    assert certificate.n_walked <= certificate.n_designs


@pytest.mark.parametrize("seed", range(20))
def test_units_of_several_columns_equal_brute_force(seed):
    rng = np.random.default_rng(seed)
    units = {"a": ["x0", "x3"], "b": ["x1"], "c": ["x2", "x4"], "d": ["x5"]}
    costs = Prices(units=units, price=dict(zip(units, rng.integers(0, 5, size=4).tolist(), strict=True)))
    p = problem(seed, n_features=6, n_classes=2 + seed % 2, costs=costs)
    columns = [p.prices.unit_columns[unit] for unit in range(4)]
    membership = np.array([[c in of_unit for c in range(6)] for of_unit in columns])
    p = dataclasses.replace(p, unit_columns=membership)
    by_column = reference.train_logistic(p.train.T, p.y_train, p.validation.T)

    def outcome(features):
        return by_column(tuple(sorted(c for unit in features for c in columns[unit])))

    removal = seed % 4 < 2
    expected = brute_force(p, 4, 0.7, outcome, removal=removal)
    proof = exact(p, 4, 0.7, removal=removal)
    assert {tuple(d): n for d, n in zip(proof.designs.tolist(), proof.n_ties.tolist(), strict=True)} == {
        tuple(designs[0]): len(designs) for designs in expected.values()
    }


@pytest.mark.parametrize(("n_features", "removal"), [(6, False), (5, True)])
def test_deep_chains_of_more_features_equal_brute_force(n_features, removal):
    p = problem(7, n_features=n_features, n_train=40, n_validation=70)  # more than one word of samples
    expected = brute_force(p, 6, 0.7, removal=removal)
    proof = exact(p, 6, 0.7, 2, removal=removal)
    assert dict(zip(vectors_of(p, proof.designs, 0.7), proof.designs.tolist(), strict=True)) == {
        vector: designs[0] for vector, designs in expected.items()
    }
    assert sorted(proof.n_ties) == sorted(len(designs) for designs in expected.values())


def test_ties_nobody_reaches_are_ruled_out_not_walked():
    p = problem(0, n_features=4)
    proof = exact(p, 4, 0.0)  # everyone leaves at the first stage
    assert proof.certificate.n_walked == 15
    assert proof.certificate.n_ruled_out == 75 - 15
    assert proof.n_ties.max() > 1


def test_the_classifier_uses_it_and_its_front_beats_or_ties_any_evolution():
    X, y = patients()
    proven = fixed(PANEL, threshold=0.8, search=Exact(), random_state=0, n_jobs=2, preset="paper").fit(X, y)
    evolved = fixed(PANEL, threshold=0.8, search=Evolution(), random_state=0, preset="paper").fit(X, y)
    front = proven.front_
    assert front.certificate.proven
    assert front.certificate.n_designs == count_solutions(5, 5) == 541
    for point in evolved.front_:
        assert (
            (front.coverage >= point.coverage)
            & (front.accuracy >= point.accuracy)
            & (front.mean_cost <= point.mean_cost)
        ).any()
    for i in range(len(front)):
        assert len(list(front.ties[i])) == front.n_ties[i]
    copy = pickle.loads(pickle.dumps(proven))
    assert_array_equal(copy.decide(X).confidence, proven.decide(X).confidence)
    assert_array_equal(next(iter(copy.front_.ties[0])), next(iter(front.ties[0])))


def picked(n_units, max_stages, n_samples, *, removal=True, fast=True):
    """The search that "auto" picks."""
    prices = resolve(None, [f"x{i}" for i in range(n_units)])
    y = np.zeros(n_samples, dtype=np.int64)
    return Auto().picked(Task(y, 2, prices, as_rule(0.75), None, max_stages, removal, 2**20), fast=fast)


@pytest.mark.parametrize(
    ("n_features", "max_stages", "kind"),
    [(5, None, Exact), (12, 3, Exact), (12, None, Exact), (16, None, BestFirst), (30, 3, BestFirst)],
)
def test_auto_is_exact_where_that_takes_seconds(n_features, max_stages, kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, n_features))
    y = X[:, 0] + rng.normal(size=60) > 0
    clf = fixed(max_stages=max_stages, random_state=0, n_jobs=2)
    assert isinstance(picked(n_features, max_stages or min(n_features, 10), n_samples=20), kind)
    if kind is Exact:
        assert clf.fit(X, y).front_.certificate.proven
        assert clf.search_ == Exact()


def test_auto_goes_over_to_best_first_if_the_proof_needs_too_many_states(monkeypatch):
    monkeypatch.setattr("emsco.search.auto.FEW_STATES", 10_000)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 10))
    y = X[:, 0] + X[:, 1] + rng.normal(size=150) > 0
    clf = fixed(random_state=0).fit(X, y)
    assert clf.search_ == BestFirst(focus=0.5)
    assert clf.front_.certificate is None
    assert clf.n_generations_ > 0
    assert len(clf.decide(X)) == 150


def test_auto_evolves_with_an_estimator_of_ones_own():
    assert picked(4, 4, n_samples=20, fast=False) == Evolution(init_rate=0.5)
    X = np.random.default_rng(0).normal(size=(40, 3))
    clf = fixed(estimator=LogisticRegression(), max_stages=2, random_state=0).fit(X, X[:, 0] > 0)
    assert clf.search_ == Evolution(init_rate=0.5)


def test_a_space_too_large_is_refused_before_any_work():
    with pytest.raises(
        SpaceTooLargeError, match=r"20 features in at most 10 stages make 2\.65e\+19 designs, about .* hours"
    ):
        check_affordable(Exact(), n_units=20, max_stages=10, n_samples=100, n_jobs=2)
    with pytest.raises(SpaceTooLargeError, match="max_designs is 100"):
        check_affordable(Exact(max_designs=100), n_units=5, max_stages=5, n_samples=100, n_jobs=2)
    with pytest.raises(SpaceTooLargeError, match="GiB"):
        check_affordable(Exact(), n_units=10, max_stages=3, n_samples=20_000, n_jobs=2)
    check_affordable(Exact(max_designs=10**20), n_units=20, max_stages=10, n_samples=100, n_jobs=2)
    check_affordable(Exact(), n_units=14, max_stages=4, n_samples=172, n_jobs=2)


@pytest.fixture
def compiled():
    """The kernels are compiled, so that a clock measures the search."""
    proof = exact(problem(0), 3, 0.7)
    assert proof.certificate.proven


@pytest.mark.usefixtures("compiled")
def test_out_of_time_at_once_there_still_is_a_frontier():
    X, y = patients()
    with pytest.warns(SearchInterruptedWarning, match="out of time"):
        clf = fixed(PANEL, search=Exact(time_limit=1e-6), random_state=0).fit(X, y)
    assert clf.front_.certificate.n_walked >= 1
    assert len(clf.decide(X)) == len(X)


@pytest.mark.parametrize("removal", [False, True])
def test_one_feature_has_one_design(removal):
    proof = exact(problem(0, n_features=1), 3, 0.7, removal=removal)
    assert proof.designs.tolist() == [[0]]
    assert proof.certificate.n_walked == proof.certificate.n_designs == 1


@pytest.mark.usefixtures("compiled")
def test_out_of_time_it_returns_what_it_has_not_proven():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 15))
    y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0
    clf = fixed(search=Exact(time_limit=2.0), max_stages=12, random_state=0, preset="paper")
    with pytest.warns(SearchInterruptedWarning, match=r"exact search of [\d,]+ designs out of time"):
        clf.fit(X, y)
    certificate = clf.front_.certificate
    assert not certificate.proven
    assert 0 < certificate.n_walked < certificate.n_designs
    assert certificate.n_ruled_out == 0
    assert len(clf.decide(X)) == 600


@pytest.mark.usefixtures("compiled", "ctrl_c")
def test_ctrl_c_returns_what_it_has_not_proven(monkeypatch):
    original = Lattice._search_once

    def interrupted(self, number, snapshot):
        if number == 1:  # a pass of seconds
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        return original(self, number, snapshot)

    monkeypatch.setattr(Lattice, "_search_once", interrupted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 14))
    y = X[:, 0] + X[:, 1] + rng.normal(size=600) > 0
    with pytest.warns(SearchInterruptedWarning, match="designs interrupted"):
        clf = fixed(search=Exact(), max_stages=12, random_state=0, n_jobs=2, preset="paper").fit(X, y)
    assert not clf.front_.certificate.proven
    assert len(clf.front_) > 0


@pytest.mark.parametrize("wrong", [{"max_designs": 0}, {"max_designs": 1.5}, {"time_limit": 0}, {"time_limit": "1 h"}])
def test_settings_out_of_range_are_explained(wrong):
    (name,) = wrong
    with pytest.raises(InvalidParameterError, match=name):
        Exact(**wrong)
