import numpy as np
from numpy.random import default_rng
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import MultiStageClassifier
from emsco.baselines.generic_ga import Generic, GenericGA, breed, cross
from emsco.designs.partition import all_designs
from emsco.exceptions import InvalidParameterError
from emsco.scoring.objectives import combined_score
from tests.baselines.contract import check_contract, costs_of, data
from tests.scoring.test_cascade import make_cascade
from tests.strategies import problem

QUICK = GenericGA(population_size=20, max_generations=5, random_state=0)


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("seed", range(3))
def test_it_finds_the_best_design_of_a_small_space(seed):
    p = problem(seed, n_features=5)
    cascade, _ = make_cascade(p, 0.7)

    def fitness(designs):
        return combined_score(cascade.tally(designs), p.prices.total)

    best, history = breed(fitness, Generic(60, 40, 0.1, 0.8, 1), 5, 3, default_rng(seed))
    assert_allclose(history[-1], fitness(all_designs(5, 3)).max())
    assert_allclose(fitness(best[None])[0], history[-1])
    assert (np.diff(history) >= 0).all()  # the fittest survives


def test_without_elites_the_fittest_may_be_lost():
    values = default_rng(0).random(4**4)

    def fitness(designs):
        return values[designs @ 4 ** np.arange(4)]

    _, history = breed(fitness, Generic(6, 40, 0.5, 0.8, 0), 4, 4, default_rng(0))
    assert (np.diff(history) < 0).any()


def test_one_point_crossover_keeps_the_beginning_of_the_first_parent():
    first, second = np.zeros((200, 6), dtype=np.int64), np.ones((200, 6), dtype=np.int64)
    children = cross(first, second, 1.0, default_rng(0))
    assert (np.diff(children, axis=1) >= 0).all()
    assert set(children.sum(axis=1)) == {1, 2, 3, 4, 5}
    assert_array_equal(cross(first, second, 0.0, default_rng(0)), first)


def test_its_design_decides_as_a_multi_stage_classifier():
    X, y = data()
    fitted = clone(QUICK).fit(X[:160], y[:160], costs_of(), X[160:], y[160:])
    ours = MultiStageClassifier(fitted.settings_["design"], costs_of()).fit(X[:160], y[:160])
    assert_allclose(fitted.decide(X).cost, ours.decide(X).cost)


@pytest.mark.parametrize("wrong", [{"population_size": 1}, {"mutation_rate": 2}, {"crossover_rate": "x"}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        GenericGA(**wrong).fit(*data(n_rows=60))
