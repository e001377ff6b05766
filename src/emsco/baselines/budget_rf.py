"""BudgetRF: a random forest whose trees buy cheap splits, as many trees as the budget allows (BASELINES §6.1)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined, cost_of
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.trees import Trees
from emsco.exceptions import InvalidParameterError
from emsco.stages.problem import Problem

MINIMAX, EXPECTED = "pairs-minimax", "entropy-expected"
_LEAST_DROP = 1e-7  # of the impurity by a split
_FREE = 1e-3  # price of a free column, as a share of the least price above 0


class BudgetRF(Rival):
    """Feature-budgeted random forest (Nan, Wang & Saligrama, ICML 2015), with the reject.

    A tree is grown greedily: each node takes the split with the least price per drop of its impurity. The impurity is
    the number of pairs of rows of different classes, in the worse child, or the expected entropy of the children. Trees
    on bootstrapped rows are added while the mean cost of the validation rows stays within a budget. A case pays for the
    units tested on its way through all trees.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    budgets : sequence of float
        Budgets to choose from, as shares of the price of everything.
    splits : sequence of {"pairs-minimax", "entropy-expected"}
    slacks : sequence of float
        The threshold a of the pairs impurity: classes with at most so many rows in a node do not count. For
        "entropy-expected" there is none.
    price_powers : sequence of float
        Powers of the price in the ratio; 0 ignores prices in a split. The cost of a case always counts the true prices.
    max_trees, max_depth : int
    criterion, validation, random_state
        As in every method.

    Notes
    -----
    Prices are not zeroed along a path, as in the authors' program. With costs that differ by a factor of ten, the pairs
    prefer the cheapest column even if it is noise, because any balanced split quarters the pairs of the worse child;
    hence the entropy and the powers. The reject is our addition.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "split": "splits", "slack": "slacks", "price_power": "price_powers", "budget": "budgets"
    }  # fmt: skip

    def __init__(
        self,
        threshold: float = 0.75,
        budgets: Sequence[float] = (0.05, 0.1, 0.2, 0.4, 0.8),
        splits: Sequence[str] = (MINIMAX, EXPECTED),
        slacks: Sequence[float] = (0.0, 2.0, 5.0),
        price_powers: Sequence[float] = (0.0, 0.25, 0.5, 1.0),
        max_trees: int = 50,
        max_depth: int = 20,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.budgets = budgets
        self.splits = splits
        self.slacks = slacks
        self.price_powers = price_powers
        self.max_trees = max_trees
        self.max_depth = max_depth
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        budgets = sorted(numbers(self.budgets, "budgets"))
        (max_trees,) = whole_numbers([self.max_trees], "max_trees")
        total = problem.prices.total if problem.prices.total > 0 else 1.0
        for split, slack, power in self._forests():
            grown: list[Trees] = []
            costs: list[float] = []
            read = np.zeros((problem.y_validation.size, len(problem.train)), dtype=np.bool_)
            for tree in self._grow(problem, seed, split, slack, power, max_trees):
                read |= tree.walk(problem.validation)[1]
                bought = (read.astype(np.float64) @ problem.unit_columns.T.astype(np.float64)) > 0
                grown.append(tree)
                costs.append(float(cost_of(bought, problem.prices).mean()) / total)
                if costs[-1] > budgets[-1]:
                    break
            for budget in budgets:
                n_trees = int(np.searchsorted(costs, budget + 1e-12, side="right"))
                settings = {
                    "split": split, "slack": slack, "price_power": power, "budget": budget, "n_trees": n_trees
                }  # fmt: skip
                yield Candidate(settings, _Forest(grown[:n_trees], problem))

    def _again(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        """Grow the chosen number of trees; the budget has done its work."""
        chosen = self.settings_
        shape = chosen["split"], chosen["slack"], chosen["price_power"]
        trees = list(self._grow(problem, seed, *shape, chosen["n_trees"]))
        yield Candidate(dict(chosen), _Forest(trees, problem))

    def _forests(self) -> Iterator[tuple[str, float, float]]:
        """Give the kinds of trees; the entropy has no slack."""
        if not isinstance(self.splits, list | tuple) or any(s not in (MINIMAX, EXPECTED) for s in self.splits):
            raise InvalidParameterError(f"splits must list {MINIMAX!r}, {EXPECTED!r} or both; got {self.splits!r}.")
        slacks, powers = numbers(self.slacks, "slacks"), numbers(self.price_powers, "price_powers")
        for split in self.splits:
            yield from product([split], slacks if split == MINIMAX else slacks[:1], powers)

    def _grow(
        self, problem: Problem, seed: int, split: str, slack: float, power: float, n_trees: int
    ) -> Iterator[Trees]:
        (max_depth,) = whole_numbers([self.max_depth], "max_depth")
        rng = np.random.default_rng(seed)
        prices = column_prices(problem) ** power
        impurity = Impurity(split, slack)
        for _ in range(n_trees):
            rows = rng.integers(problem.y_train.size, size=problem.y_train.size)
            is_class = (problem.y_train[rows, None] == np.arange(problem.n_classes)).astype(np.float64)
            yield grow(problem.train[:, rows], is_class, prices, impurity, max_depth)


class Impurity:
    """How mixed a node is, and how mixed its two children are.

    Parameters
    ----------
    split : "pairs-minimax" or "entropy-expected"
    slack : float
        The threshold of the pairs.
    """

    def __init__(self, split: str, slack: float = 0.0) -> None:
        self._minimax, self._slack = split == MINIMAX, slack

    def of(self, counts: FloatArray) -> FloatArray:
        """Return the impurity of class counts, (..., n_classes).

        Examples
        --------
        >>> Impurity("pairs-minimax").of(np.array([3.0, 2.0])), Impurity("pairs-minimax", 1).of(np.array([3.0, 2.0]))
        (np.float64(6.0), np.float64(1.0))
        """
        if self._minimax:
            over = np.maximum(counts - self._slack, 0.0)
            total = np.zeros(counts.shape[:-1])
            for i in range(counts.shape[-1]):
                for j in range(i):
                    total = total + np.maximum(over[..., i] * over[..., j] - self._slack**2, 0.0)
            return np.asarray(total)[()]
        share = counts / np.maximum(counts.sum(axis=-1, keepdims=True), 1e-300)
        return np.asarray(-(share * np.log2(np.maximum(share, 1e-300))).sum(axis=-1))[()]

    def of_children(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return the impurity of the worse child, or the expected one."""
        if self._minimax:
            return np.maximum(self.of(left), self.of(right))
        n_left, n_right = left.sum(axis=-1), right.sum(axis=-1)
        return np.asarray((n_left * self.of(left) + n_right * self.of(right)) / (n_left + n_right))


def column_prices(problem: Problem) -> FloatArray:
    """Return the price of the unit of each encoded column; nothing is free."""
    prices = problem.prices.prices @ problem.unit_columns
    positive = prices[prices > 0]
    return np.maximum(prices, _FREE * (positive.min() if positive.size else 1.0))


def best_split(Z: FloatArray, is_class: FloatArray, prices: FloatArray, impurity: Impurity) -> tuple[int, float] | None:
    """Return column and threshold of the split with the least price per drop of impurity; None if nothing drops.

    Of each column, the threshold with the purest children is taken, the lowest on a tie; of equal columns, the first.
    """
    order = np.argsort(Z, axis=1, kind="stable")
    ascending = np.take_along_axis(Z, order, axis=1)
    below = np.cumsum(is_class[order], axis=1)
    total = below[0, -1]
    left = below[:, :-1]
    children = impurity.of_children(left, total - left)
    children = np.where(ascending[:, 1:] > ascending[:, :-1], children, np.inf)
    at = children.argmin(axis=1)
    columns = np.arange(len(Z))
    drop = impurity.of(total) - children[columns, at]
    price = np.where(drop > _LEAST_DROP, prices / np.maximum(drop, _LEAST_DROP), np.inf)
    best = int(price.argmin())
    if not np.isfinite(price[best]):
        return None
    lower, upper = ascending[best, at[best]], ascending[best, at[best] + 1]
    middle = lower + (upper - lower) / 2
    return best, float(middle if lower <= middle < upper else lower)


def grow(Z: FloatArray, is_class: FloatArray, prices: FloatArray, impurity: Impurity, max_depth: int) -> Trees:
    """Return a tree of one root; leaves hold class shares.

    Parameters
    ----------
    Z : ndarray of shape (n_encoded, n_rows)
    is_class : ndarray of shape (n_rows, n_classes)
        1 at the class of a row.
    prices : ndarray of shape (n_encoded,)
    impurity : Impurity
    max_depth : int
    """
    nodes: list[list[float]] = []
    values: list[FloatArray] = []
    waiting: list[tuple[NDArray[np.intp], int, int, int]] = [(np.arange(Z.shape[1]), 0, -1, 0)]
    while waiting:
        rows, depth, parent, side = waiting.pop()
        here = len(nodes)
        if parent >= 0:
            nodes[parent][2 + side] = here
        counts = is_class[rows].sum(axis=0)
        nodes.append([-1, 0.0, -1, -1])
        values.append(counts / counts.sum())
        if depth == max_depth or rows.size < 2 or impurity.of(counts) <= 0:
            continue
        found = best_split(Z[:, rows], is_class[rows], prices, impurity)
        if found is None:
            continue
        nodes[here][:2] = found
        goes_left = Z[found[0], rows] <= found[1]
        waiting += [(rows[~goes_left], depth + 1, here, 1), (rows[goes_left], depth + 1, here, 0)]
    feature, threshold, left, right = np.array(nodes).T
    return Trees(
        feature.astype(np.intp), threshold, left.astype(np.intp), right.astype(np.intp), np.array(values),
        np.zeros(1, dtype=np.intp),
    )  # fmt: skip


class _Forest:
    """The mean of trees; without any, the shares of the classes in training."""

    def __init__(self, trees: list[Trees], problem: Problem) -> None:
        self._trees = trees
        self._prior = np.bincount(problem.y_train, minlength=problem.n_classes) / problem.y_train.size

    def trace(self, Z: FloatArray) -> Trace:
        n_rows = Z.shape[1]
        read: BoolArray = np.zeros((n_rows, len(Z)), dtype=np.bool_)
        total = np.zeros((n_rows, self._prior.size))
        for tree in self._trees:
            value, tested = tree.walk(Z)
            total += value
            read |= tested
        probabilities = total / len(self._trees) if self._trees else np.tile(self._prior, (n_rows, 1))
        return Trace(probabilities, read, np.zeros(n_rows, dtype=np.intp))
