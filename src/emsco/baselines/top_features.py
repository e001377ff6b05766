"""LightGBM on its k most important features, with a reject: the simplest strong method of today."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.cegb import Booster, answer, growing
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.trees import Trees
from emsco.stages.problem import Problem


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
        few = Restricted(problem, seed)
        none = np.zeros(len(problem.train))
        for learning_rate, num_leaves, min_rows in grid:
            shape: dict[str, Any] = {
                "learning_rate": learning_rate, "num_leaves": num_leaves, "min_data_in_leaf": min_rows
            }  # fmt: skip
            gain = booster.gains(none, n_rounds=n_rounds, **shape) @ problem.unit_columns.T
            grown: dict[tuple[int, ...], Trees] = {}  # both orders may give the same columns
            for order, size in product(self.orders, sizes):
                columns = np.flatnonzero(problem.unit_columns[best_units(gain, problem, order)[:size]].any(axis=0))
                key = tuple(columns.tolist())
                trees = grown[key] = grown.get(key) or few.train(columns, n_rounds, shape)
                for n, score, _ in growing(trees, problem.validation):
                    settings = {"n_units": size, "order": order, "learning_rate": learning_rate,
                                "num_leaves": num_leaves, "min_rows_in_leaf": min_rows, "n_rounds": n}  # fmt: skip
                    model = _Few(trees.first(n * score.shape[1]), columns)
                    yield Candidate(settings, model, partial(model.answer, score, len(problem.train)))


def best_units(gain: FloatArray, problem: Problem, order: str) -> NDArray[np.intp]:
    """Return the units by falling gain, or by falling gain per price; on a tie the cheaper one first."""
    prices = problem.prices.prices
    floor = 1e-3 * min(prices[prices > 0], default=1.0)  # what is free is nearly free
    value = gain if order == "gain" else gain / np.maximum(prices, floor)
    return np.lexsort((prices, -value))


class Restricted:
    """LightGBM on some columns of a problem; rows are binned once for each choice of columns."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._problem, self._seed = problem, seed
        self._boosters: dict[tuple[int, ...], Booster] = {}

    def train(self, columns: NDArray[np.intp], n_rounds: int, shape: dict[str, Any]) -> Trees:
        """Train on some columns; the trees read the columns of the whole problem."""
        key, problem = tuple(columns.tolist()), self._problem
        if key not in self._boosters:
            part = replace(problem, train=problem.train[columns], unit_columns=problem.unit_columns[:, columns])
            self._boosters[key] = Booster(part, self._seed)
        trees = self._boosters[key].train(np.zeros(columns.size), n_rounds=n_rounds, **shape)
        return replace(trees, feature=np.where(trees.feature >= 0, columns[trees.feature], -1))


class _Few:
    """Boosted trees that buy all their columns for every case."""

    def __init__(self, trees: Trees, columns: NDArray[np.intp]) -> None:
        self._trees, self._columns = trees, columns

    def trace(self, Z: FloatArray) -> Trace:
        return self.answer(self._trees.walk(Z)[0], len(Z))

    def answer(self, score: FloatArray, n_encoded: int) -> Trace:
        """Return class probabilities from the scores; every case reads all columns."""
        read = np.zeros((len(score), n_encoded), dtype=np.bool_)
        read[:, self._columns] = True
        return answer(score, read)
