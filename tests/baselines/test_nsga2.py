from dataclasses import replace
import sys

import moocore
import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import MultiStageClassifier
from emsco.baselines.nsga2 import NSGA2, operators, search_nsga2
from emsco.designs.partition import all_designs, compress
from emsco.exceptions import InvalidParameterError, MissingDependencyError
from emsco.scoring.objectives import measure
from emsco.search.evolution import Evolution
from tests.baselines.contract import check_contract, costs_of, data
from tests.scoring.test_cascade import make_cascade
from tests.strategies import problem

QUICK = NSGA2(population_size=10, max_generations=2, random_state=0)
SMALL = Evolution(population_size=40, max_generations=12)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def search(seed, max_stages, settings=SMALL, n_features=6, on_generation=None, **kinds):
    cascade, _ = make_cascade(problem(seed, n_features=n_features, **kinds), 0.7)
    found = search_nsga2(
        cascade.tally, settings, n_features=n_features, max_stages=max_stages, rng=default_rng(seed),
        on_generation=on_generation,
    )  # fmt: skip
    return found, cascade


@pytest.mark.parametrize("seed", range(3))
def test_it_reaches_the_enumerated_frontier_of_a_small_space(seed):
    found, cascade = search(seed, 2)
    every = cascade.tally(all_designs(6, 2))
    best = moocore.is_nondominated(measure(every).to_minimise, keep_weakly=True)
    assert {tuple(v) for v in cascade.tally(found).vectors} == {tuple(v) for v in every.vectors[best]}
    assert len(np.unique(cascade.tally(found).vectors, axis=0)) == len(found)


@pytest.mark.parametrize("max_stages", [1, 2, 4, 9])
def test_every_design_is_without_gaps_and_within_the_stages(max_stages):
    sizes, evaluated = [], []

    def check(n_evaluated, designs, vectors):
        assert_array_equal(compress(designs), designs)
        assert designs.min() >= 0
        assert designs.max() < max_stages
        assert len(np.unique(designs, axis=0)) == len(designs) == len(vectors)
        sizes.append(len(designs))
        evaluated.append(n_evaluated)

    found, _ = search(0, max_stages, on_generation=check)
    assert_array_equal(compress(found), found)
    assert evaluated == sorted(evaluated)
    assert max(sizes) == (1 if max_stages == 1 else 40)
    assert len(sizes) == (2 if max_stages == 1 else 13)


def test_what_is_told_are_the_counts_of_the_designs():
    told = []
    _, cascade = search(1, 3, on_generation=lambda n, designs, vectors: told.append((designs, vectors)))
    for designs, vectors in told[::7]:
        assert_array_equal(cascade.tally(designs).vectors, vectors)


def test_the_same_seed_gives_the_same_designs():
    assert_array_equal(search(3, 4)[0], search(3, 4)[0])
    assert not np.array_equal(search(3, 4)[0], search(4, 4)[0])


def test_a_longer_search_dominates_no_less():
    """Hypervolume beyond the worst corner: no coverage, no accuracy, the price of everything."""

    def volume(generations):
        found, cascade = search(5, 5, replace(SMALL, max_generations=generations), n_features=9)
        objectives = measure(cascade.tally(found))
        total = problem(5, n_features=9).prices.total
        return moocore.hypervolume(objectives.to_minimise / [1, 1, total], ref=[0, 0, 1])

    assert 0 < volume(0) < volume(30) < 1


def test_children_of_two_equal_parents_are_that_parent():
    parents = compress(default_rng(0).integers(0, 4, size=(30, 7)))
    crossover, mutation = operators(replace(SMALL, mutation_rate=0.0), 4, default_rng(1))
    children = crossover._do(None, np.stack([parents, parents]))
    assert_array_equal(children, np.stack([parents, parents]))
    assert_array_equal(mutation._do(None, parents), parents)
    assert (crossover.n_parents, crossover.n_offsprings, crossover.prob.value) == (2, 2, 0.8)


def test_candidates_are_judged_as_the_search_has_counted_them():
    X, y = data(n_classes=3)
    fitted = clone(QUICK).set_params(max_generations=8, threshold=0.6).fit(X[:160], y[:160], costs_of())
    figures = np.array([[-row["coverage"], -np.nan_to_num(row["accuracy"]), row["mean_cost"]] for row in fitted.table_])
    assert len(figures) > 3
    assert moocore.is_nondominated(figures, keep_weakly=False).all()
    assert max(row["score"] for row in fitted.table_) == next(
        row["score"] for row in fitted.table_ if row["design"] == fitted.settings_["design"]
    )


def test_the_chosen_design_decides_as_our_classifier_does():
    X, y = data(n_classes=3)
    fitted = clone(QUICK).set_params(threshold=0.6).fit(X[:160], y[:160], costs_of(), X[160:], y[160:])
    ours = MultiStageClassifier(design=fitted.settings_["design"], costs=costs_of(), threshold=0.6)
    expected, decisions = ours.fit(X[:160], y[:160]).decide(X), fitted.decide(X)
    assert_array_equal(decisions.stage, expected.stage)
    assert_array_equal(decisions.conclusive, expected.conclusive)
    assert_array_equal(decisions.label.data, expected.label.data)
    assert_allclose(decisions.cost, expected.cost)
    assert_allclose(decisions.confidence, expected.confidence, rtol=1e-9)


def test_one_feature_and_free_features_are_legal():
    X, y = data(n_rows=90)
    assert clone(QUICK).fit(X[:, :1], y).settings_["design"] == [0]
    free = clone(QUICK).fit(X, y, np.zeros(6))
    assert (free.decide(X).cost == 0).all()


@pytest.mark.parametrize(
    "wrong", [{"max_stages": 0}, {"population_size": 1}, {"mutation_rate": 2}, {"stage_bias": 0}, {"n_jobs": "many"}]
)
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        clone(QUICK).set_params(**wrong).fit(*data(n_rows=60))


def test_without_pymoo_it_says_what_to_install(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pymoo.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pymoo", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'emsco\[baselines\]'"):
        clone(QUICK).fit(*data(n_rows=60))
