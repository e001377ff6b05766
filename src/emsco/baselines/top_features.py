"""LightGBM on its k most important features, with a reject: the simplest strong method of today."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.cegb import Booster
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.trees import Trees
from emsco.stages.problem import Problem

_ROUNDS_PER_STEP = 10  # between two tried lengths of the same ensemble


class TopFeatures(Rival):
    """LightGBM trained on the k units that matter most to it; every case pays for these k.

    An ensemble on all columns gives the gain of each unit: the sum over its columns and all splits. For each k, another
    ensemble is trained on the columns of the k units with the largest gain, or with the largest gain per price. Cases
    below the threshold are rejected. Needs LightGBM.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    n_units : sequence of int
        Numbers of units (k) to choose from; those above the number of units count once, as all of them.
    orders : sequence of {"gain", "gain per price"}
    learning_rates : sequence of float
    n_rounds : int
        Largest number of rounds; every tenth number up to it is tried.
    num_leaves : sequence of int
    min_rows_in_leaf : sequence of int
    criterion, validation, random_state
        As in every method.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "n_units": "n_units", "order": "orders", "learning_rate": "learning_rates", "num_leaves": "num_leaves",
        "min_rows_in_leaf": "min_rows_in_leaf", "n_rounds": "n_rounds",
    }  # fmt: skip

    def __init__(
        self,
        threshold: float = 0.75,
        n_units: Sequence[int] = (1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50),
        orders: Sequence[str] = ("gain", "gain per price"),
        learning_rates: Sequence[float] = (0.03, 0.1),
        n_rounds: int = 200,
        num_leaves: Sequence[int] = (4, 8, 16),
        min_rows_in_leaf: Sequence[int] = (5, 20),
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.n_units = n_units
        self.orders = orders
        self.learning_rates = learning_rates
        self.n_rounds = n_rounds
        self.num_leaves = num_leaves
        self.min_rows_in_leaf = min_rows_in_leaf
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        most = problem.prices.n_units
        sizes = sorted({min(k, most) for k in whole_numbers(self.n_units, "n_units")})
        grid = product(
            numbers(self.learning_rates, "learning_rates", least=1e-6),
            whole_numbers(self.num_leaves, "num_leaves", least=2),
            whole_numbers(self.min_rows_in_leaf, "min_rows_in_leaf"),
        )
        (n_rounds,) = whole_numbers([self.n_rounds], "n_rounds")
        booster = Booster(problem, seed)
        none = np.zeros(len(problem.train))
        for learning_rate, num_leaves, min_rows in grid:
            shape: dict[str, Any] = {
                "learning_rate": learning_rate, "num_leaves": num_leaves, "min_data_in_leaf": min_rows
            }  # fmt: skip
            gain = booster.gains(none, n_rounds=n_rounds, **shape) @ problem.unit_columns.T
            for order, size in product(self.orders, sizes):
                columns = np.flatnonzero(problem.unit_columns[best_units(gain, problem, order)[:size]].any(axis=0))
                trees = restricted(problem, columns, seed, n_rounds, shape)
                n_done = trees.roots.size // trees.value.shape[1]
                for n in [*range(_ROUNDS_PER_STEP, n_done, _ROUNDS_PER_STEP), n_done]:
                    settings = {"n_units": size, "order": order, "learning_rate": learning_rate,
                                "num_leaves": num_leaves, "min_rows_in_leaf": min_rows, "n_rounds": n}  # fmt: skip
                    yield Candidate(settings, _Few(trees.first(n * trees.value.shape[1]), columns))


def best_units(gain: FloatArray, problem: Problem, order: str) -> NDArray[np.intp]:
    """Return the units by falling gain, or by falling gain per price; on a tie the cheaper one first."""
    prices = problem.prices.prices
    floor = 1e-3 * min(prices[prices > 0], default=1.0)  # what is free is nearly free
    value = gain if order == "gain" else gain / np.maximum(prices, floor)
    return np.lexsort((prices, -value))


def restricted(problem: Problem, columns: NDArray[np.intp], seed: int, n_rounds: int, shape: dict[str, Any]) -> Trees:
    """Train on some columns; the trees read the columns of the whole problem."""
    part = replace(problem, train=problem.train[columns], unit_columns=problem.unit_columns[:, columns])
    trees = Booster(part, seed).train(np.zeros(columns.size), n_rounds=n_rounds, **shape)
    return replace(trees, feature=np.where(trees.feature >= 0, columns[trees.feature], -1))


class _Few:
    """Boosted trees that buy all their columns for every case."""

    def __init__(self, trees: Trees, columns: NDArray[np.intp]) -> None:
        self._trees, self._columns = trees, columns

    def trace(self, Z: FloatArray) -> Trace:
        score, _ = self._trees.walk(Z)
        if score.shape[1] == 1:
            second = expit(score[:, 0])
            probabilities = np.column_stack([1 - second, second])
        else:
            probabilities = softmax(score, axis=1)
        read = np.zeros((Z.shape[1], len(Z)), dtype=np.bool_)
        read[:, self._columns] = True
        return Trace(probabilities, read, np.zeros(len(score), dtype=np.intp))
