import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines._network import Network
from emsco.baselines.cwcf import CWCF, Game, policy, retrace
from emsco.exceptions import InvalidParameterError
from tests.baselines.contract import check_contract, data
from tests.strategies import problem

QUICK = CWCF(
    price_weights=(0.01, 0.1), n_updates=40, n_warm=150, n_episodes=32, n_remembered=500, width=24, learning_rate=5e-3,
    n_exploring=30, random_state=0,
)  # fmt: skip


@pytest.mark.parametrize("threshold", [0.5, 0.75])
def test_it_keeps_the_contract_of_rivals(threshold):
    check_contract(clone(QUICK).set_params(threshold=threshold))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")
@parametrize_with_checks([clone(QUICK).set_params(price_weights=(1e-3,))])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_gradient_is_that_of_finite_differences():
    rng = np.random.default_rng(0)
    network = Network.random(5, 7, 4, rng).exact()
    inputs, wanted = rng.normal(size=(9, 5)), rng.normal(size=(9, 4))

    def loss():
        return 0.5 * ((network.values(inputs) - wanted) ** 2).sum()

    values, layers = network.forward(inputs)
    found = network.gradient(layers, values - wanted)
    for part, gradient in zip(network.parts, found, strict=True):
        slopes = np.empty_like(part)
        for place in np.ndindex(part.shape):
            kept = part[place]
            part[place] = kept + 1e-6
            above = loss()
            part[place] = kept - 1e-6
            slopes[place] = (above - loss()) / 2e-6
            part[place] = kept
        assert_allclose(gradient, slopes, rtol=1e-5, atol=1e-6)


def slow_retrace(reward, value, expected, trust, end):
    """The sum of corrections of Munos et al., equation 4, for one episode."""
    targets = []
    for start in range(end + 1):
        total = value[start]
        product = 1.0
        for t in range(start, end + 1):
            if t > start:
                product *= trust[t]
            later = expected[t + 1] if t < end else 0.0
            total += product * (reward[t] + later - value[t])
        targets.append(total)
    return np.minimum(targets, 0)


def test_targets_are_the_sum_of_corrections_of_the_publication():
    rng = np.random.default_rng(1)
    reward, value, expected = -rng.random((3, 20, 6))
    trust = rng.random((20, 6))
    ends = rng.integers(0, 6, 20)
    found = retrace(reward, value, expected, trust, ends)
    for e in range(20):
        wanted = slow_retrace(reward[e], value[e], expected[e], trust[e], ends[e])
        assert_allclose(found[e, : ends[e] + 1], wanted, atol=1e-12)


def test_targets_are_returns_where_everything_is_trusted_and_values_agree():
    reward = -np.array([[0.1, 0.2, 1.0]])
    value = expected = np.full((1, 3), -0.7)
    assert_allclose(retrace(reward, value, expected, np.ones((1, 3)), np.array([2])), [[-1.3, -1.2, -1.0]])


def test_a_played_episode_ends_with_a_label_and_never_buys_twice():
    game = Game(problem(0, n_features=4), 0.1)
    rng = np.random.default_rng(0)
    played = game.play(Network.random(game.n_inputs, 8, game.n_actions, rng), 200, 1.0, rng)
    for action in played.action:
        steps = action[action >= 0]
        assert steps[-1] < game.n_classes
        assert (steps[:-1] >= game.n_classes).all()
        assert np.unique(steps).size == steps.size
    owned = game.states(played)
    assert_array_equal(owned.sum(axis=2)[:, 1], played.action[:, 0] >= game.n_classes)


def test_a_share_of_the_actions_is_random_among_the_allowed():
    odds = policy(np.array([[-0.5, -0.2, -1e6]]), 0.4)
    assert_allclose(odds, [[0.2, 0.8, 0]])


@pytest.mark.parametrize(("weight", "share"), [(0.1, 1.0), (20.0, 0.0)])
def test_it_buys_the_informative_feature_if_it_is_worth_its_price(weight, share):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = (X[:, 2] > 0).astype(int)
    rival = CWCF(
        threshold=0.0, price_weights=(weight,), n_updates=200, n_warm=200, width=32, learning_rate=3e-3,
        n_exploring=100, random_state=0,
    )  # fmt: skip
    decisions = rival.fit(X[:400], y[:400], [1.0, 1.0, 1.0, 1.0], X[400:], y[400:]).decide(X[400:])
    assert_allclose(decisions.bought[:, 2].mean(), share, atol=0.05)
    if share:
        assert (decisions.label.data == y[400:]).mean() > 0.9
        assert decisions.cost.mean() < 1.5


@pytest.mark.parametrize("wrong", [{"n_updates": 0}, {"width": 0}, {"price_weights": (-1.0,)}, {"learning_rate": 0}])
def test_wrong_parameters_are_explained(wrong):
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        CWCF(**wrong).fit(*data(n_rows=60))
