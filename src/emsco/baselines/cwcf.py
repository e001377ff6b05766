"""CWCF: a network that learns by trial and error when to buy which unit, and when to stop (BASELINES §7.2)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.baselines._network import Adam, Network
from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined, cost_of
from emsco.baselines.grid import numbers, whole_numbers
from emsco.prices.prices import PriceList
from emsco.stages.problem import Problem

_FORBIDDEN = -1e6  # the value of buying what is owned
_LEAST_CHANCE = 1e-6
_TARGET_STEP = 0.01  # of the target network towards the trained one, per update
_BEHAVIOUR = 1.0, 0.1  # share of random actions in new episodes, at first and in the end
_TARGET = 0.5, 0.0  # the same of the policy whose value is learned


class CWCF(Rival):
    """Classification with costly features by deep Q-learning (Janisch, Pevný & Lisý, AAAI 2019), with the reject.

    A state is what is known of a case. An action buys a unit, for its price, or ends the episode with a label, for 1 if
    it is wrong. A network of three layers estimates the value of every action: duelling outputs, double Q-learning,
    Retrace targets on whole episodes, a slowly following target network, values of at most 0. The values of the labels
    are trained first, on random sets of known units. A case follows the actions of the highest value. One plus the
    value of a label estimates its probability, which the reject compares with the threshold.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : sequence of float
        Prices of everything to choose from, in errors.
    n_updates : int
        Largest number of updates; every ``n_updates / 8`` of them, the network is a candidate, which stops the training
        early.
    n_warm : int
        Updates of the values of labels before.
    n_episodes : int
        Episodes that are played before each update, and that it learns from.
    n_remembered : int
        Episodes to draw from.
    width : int
        Of each layer.
    learning_rate : float
    n_exploring : int
        Updates after which the share of random actions stays at its end.
    criterion, validation, random_state
        As in every method.

    Notes
    -----
    The publication plays a thousand cases at a time and learns from 50,000 steps at once. Here 64 episodes are played
    to their end before each update, and the validation rows choose when to stop. The reject is our addition.
    """

    grids: ClassVar[Mapping[str, str]] = {"price_weight": "price_weights", "n_updates": "n_updates"}

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: Sequence[float] = tuple(np.logspace(-4, 0, 9)),
        n_updates: int = 800,
        n_warm: int = 200,
        n_episodes: int = 64,
        n_remembered: int = 4000,
        width: int = 128,
        learning_rate: float = 5e-4,
        n_exploring: int = 400,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.n_updates = n_updates
        self.n_warm = n_warm
        self.n_episodes = n_episodes
        self.n_remembered = n_remembered
        self.width = width
        self.learning_rate = learning_rate
        self.n_exploring = n_exploring
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        weights = sorted(numbers(self.price_weights, "price_weights"), reverse=True)
        (n_updates,) = whole_numbers([self.n_updates], "n_updates")
        for weight in weights:
            game = Game(problem, weight)
            for n, network in self._trained(game, n_updates, np.random.default_rng(seed)):
                yield Candidate({"price_weight": weight, "n_updates": n}, _Player(game, network))

    def _trained(self, game: "Game", n_updates: int, rng: np.random.Generator) -> Iterator[tuple[int, Network]]:
        """Train one network; yield copies of it on the way, with the number of updates."""
        sizes = ("n_warm", "n_episodes", "n_remembered", "width", "n_exploring")
        n_warm, n_episodes, n_remembered, width, n_exploring = (
            whole_numbers([getattr(self, name)], name)[0] for name in sizes
        )
        (rate,) = numbers([self.learning_rate], "learning_rate", least=1e-12)
        network = Network.random(game.n_inputs, width, game.n_actions, rng)
        adam = Adam(network, rate)
        for _ in range(n_warm):
            _warm(game, network, adam, n_episodes, rng)
        target = network.copy()
        memory = Memory(n_remembered, game.n_units + 1)
        step = max(n_updates // 8, 1)
        for n in range(1, n_updates + 1):
            along = min(n / n_exploring, 1.0)
            memory.add(game.play(network, n_episodes, _between(_BEHAVIOUR, along), rng))
            episodes = memory.draw(n_episodes, rng)
            _update(game, network, target, adam, episodes, _between(_TARGET, along))
            target.follow(network, _TARGET_STEP)
            if n % step == 0 or n == n_updates:
                yield n, network.exact()


def _between(ends: tuple[float, float], along: float) -> float:
    return ends[0] + along * (ends[1] - ends[0])


@dataclass(frozen=True)
class Episodes:
    """Played cases.

    Attributes
    ----------
    row : ndarray of shape (n_episodes,)
        Training row of each.
    action : ndarray of shape (n_episodes, n_units + 1)
        A label, or the number of labels plus the unit bought; -1 after the end.
    chance : ndarray of shape (n_episodes, n_units + 1)
        Probability with which the action was taken.
    """

    row: NDArray[np.intp]
    action: NDArray[np.intp]
    chance: FloatArray


class Memory:
    """The last episodes."""

    def __init__(self, size: int, length: int) -> None:
        self._kept = Episodes(
            np.zeros(size, dtype=np.intp), np.full((size, length), -1, dtype=np.intp), np.ones((size, length))
        )
        self._n_seen = 0

    def add(self, new: Episodes) -> None:
        """Keep episodes in place of the oldest ones."""
        places = (self._n_seen + np.arange(new.row.size)) % self._kept.row.size
        for kept, fresh in zip(vars(self._kept).values(), vars(new).values(), strict=True):
            kept[places] = fresh
        self._n_seen += new.row.size

    def draw(self, n: int, rng: np.random.Generator) -> Episodes:
        """Return random episodes."""
        chosen = rng.integers(0, min(self._n_seen, self._kept.row.size), n)
        return Episodes(self._kept.row[chosen], self._kept.action[chosen], self._kept.chance[chosen])


class Game:
    """The training rows as a game: what is known, what can be done, what it costs."""

    def __init__(self, problem: Problem, weight: float) -> None:
        self.prices: PriceList = problem.prices
        self.n_units, self.n_classes = problem.prices.n_units, problem.n_classes
        self.n_actions = self.n_classes + self.n_units
        self.n_inputs = len(problem.train) + self.n_units
        self.rows, self.y = np.ascontiguousarray(problem.train.T), problem.y_train
        self._units = problem.unit_columns.astype(np.float32)
        self._scale = weight / self.prices.total if self.prices.total > 0 else 0.0

    def inputs(self, rows: FloatArray, owned: BoolArray) -> FloatArray:
        """Return states, (n_rows, n_inputs): known values, 0 for others, and the units owned."""
        return np.hstack([np.where(self.columns(owned), rows, 0.0), owned])

    def columns(self, owned: BoolArray) -> BoolArray:
        """Return the encoded columns that owned units yield."""
        return (owned.astype(np.float32) @ self._units) > 0

    def forbid(self, values: FloatArray, owned: BoolArray) -> FloatArray:
        """Return action values at most 0; those of buying owned units are very low."""
        allowed = np.minimum(values, 0.0)
        allowed[:, self.n_classes :][owned] = _FORBIDDEN
        return allowed

    def rewards(self, row: NDArray[np.intp], owned: BoolArray, action: NDArray[np.intp]) -> FloatArray:
        """Return the reward of each action: minus the weighted price of the unit, or -1 for a wrong label."""
        label = action < self.n_classes
        after = self.bought(owned, action)
        paid = (cost_of(after, self.prices) - cost_of(owned, self.prices)) * self._scale
        return np.where(label, -(self.y[row] != action).astype(np.float64), -paid)

    def bought(self, owned: BoolArray, action: NDArray[np.intp]) -> BoolArray:
        """Return the units owned after the actions."""
        after = owned.copy()
        buys = np.flatnonzero(action >= self.n_classes)
        after[buys, action[buys] - self.n_classes] = True
        return after

    def play(self, network: Network, n: int, random_share: float, rng: np.random.Generator) -> Episodes:
        """Play random rows to their end; a share of the actions is random."""
        row = rng.integers(0, len(self.rows), n)
        action = np.full((n, self.n_units + 1), -1, dtype=np.intp)
        chance = np.ones((n, self.n_units + 1))
        owned = np.zeros((n, self.n_units), dtype=np.bool_)
        playing = np.arange(n)
        for t in range(self.n_units + 1):
            mine = owned[playing]
            values = self.forbid(network.values(self.inputs(self.rows[row[playing]], mine)), mine)
            odds = policy(values, random_share)
            drawn = (rng.random((playing.size, 1)) < odds.cumsum(axis=1)).argmax(axis=1)
            action[playing, t], chance[playing, t] = drawn, odds[np.arange(playing.size), drawn]
            owned[playing] = self.bought(mine, drawn)
            playing = playing[drawn >= self.n_classes]
            if not playing.size:
                break
        return Episodes(row, action, chance)

    def states(self, episodes: Episodes) -> BoolArray:
        """Return the units owned before each action, (n_episodes, n_units + 1, n_units)."""
        buys = episodes.action[:, :-1, None] == self.n_classes + np.arange(self.n_units)
        owned = np.zeros((*episodes.action.shape, self.n_units), dtype=np.bool_)
        owned[:, 1:] = buys.cumsum(axis=1) > 0
        return owned


def policy(values: FloatArray, random_share: float) -> FloatArray:
    """Return the probability of each action: the best one, except for a share of random allowed ones."""
    allowed = values > _FORBIDDEN / 2
    odds = random_share * allowed / allowed.sum(axis=1, keepdims=True)
    odds[np.arange(len(values)), values.argmax(axis=1)] += 1 - random_share
    return np.asarray(odds)


def retrace(
    reward: FloatArray, value: FloatArray, expected: FloatArray, trust: FloatArray, ends: NDArray[np.intp]
) -> FloatArray:
    """Return the targets of Retrace (Munos et al. 2016) for each step of episodes, without discount.

    Parameters
    ----------
    reward, value, expected, trust : ndarray of shape (n_episodes, n_steps)
        Of each step: its reward, the value of its action, the expected value of its state under the policy, and how
        much what follows is trusted: min(1, probability of its action in the policy / as played).
    ends : ndarray of shape (n_episodes,)
        Last step of each.
    """
    targets = np.zeros_like(reward)
    for t in range(reward.shape[1] - 1, -1, -1):
        targets[:, t] = reward[:, t]
        on = t < ends
        later = expected[on, t + 1] + trust[on, t + 1] * (targets[on, t + 1] - value[on, t + 1]) if on.any() else 0.0
        targets[on, t] += later
    return np.minimum(targets, 0.0)


def _warm(game: Game, network: Network, adam: Adam, n: int, rng: np.random.Generator) -> None:
    """Fit the values of labels on random known units; a unit is known with a probability of u³, u uniform."""
    row = rng.integers(0, len(game.rows), n)
    owned = rng.random((n, game.n_units)) < rng.random((n, 1)) ** 3
    values, layers = network.forward(game.inputs(game.rows[row], owned))
    wanted = (game.y[row][:, None] == np.arange(game.n_classes)) - 1.0
    slope = np.zeros_like(values)
    slope[:, : game.n_classes] = (values[:, : game.n_classes] - wanted) / n
    adam.step(network.gradient(layers, slope))


def _update(game: Game, network: Network, target: Network, adam: Adam, episodes: Episodes, random_share: float) -> None:
    """Move the values of the actions of episodes towards their targets."""
    e, t = np.nonzero(episodes.action >= 0)
    action, owned = episodes.action[e, t], game.states(episodes)[e, t]
    row = episodes.row[e]
    inputs = game.inputs(game.rows[row], owned)
    values, layers = network.forward(inputs)
    odds = policy(game.forbid(values, owned), random_share)  # the trained network chooses, the other one values
    known = game.forbid(target.values(inputs), owned)
    steps = np.arange(e.size)
    parts = (
        game.rewards(row, owned, action), known[steps, action], (odds * known).sum(axis=1),
        np.minimum(odds[steps, action] / episodes.chance[e, t], 1.0),
    )  # fmt: skip
    reward, value, expected, trust = np.zeros((4, *episodes.action.shape))
    for square, part in zip((reward, value, expected, trust), parts, strict=True):
        square[e, t] = part
    ends = (episodes.action >= 0).sum(axis=1) - 1
    goal = retrace(reward, value, expected, trust, ends)[e, t]
    slope = np.zeros_like(values)
    slope[steps, action] = (values[steps, action] - goal) / e.size
    adam.step(network.gradient(layers, slope))


class _Player:
    """A trained network that plays the best actions."""

    def __init__(self, game: Game, network: Network) -> None:
        self._game, self._network = game, network

    def trace(self, Z: FloatArray) -> Trace:
        game, rows = self._game, np.ascontiguousarray(Z.T)
        owned = np.zeros((len(rows), game.n_units), dtype=np.bool_)
        answers = np.empty((len(rows), game.n_classes))
        playing = np.arange(len(rows))
        while playing.size:
            values = game.forbid(self._network.values(game.inputs(rows[playing], owned[playing])), owned[playing])
            answers[playing] = values[:, : game.n_classes]
            action = values.argmax(axis=1)
            owned[playing] = game.bought(owned[playing], action)
            playing = playing[action >= game.n_classes]
        chances = np.clip(1 + answers, _LEAST_CHANCE, 1.0)
        chances /= chances.sum(axis=1, keepdims=True)
        return Trace(chances, game.columns(owned), np.zeros(len(rows), dtype=np.intp))
