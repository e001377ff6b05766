"""STreeD: the decision tree of least errors and prices, proven optimal for its depth, with a reject."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.trees import Trees
from emsco.prices.prices import PriceList
from emsco.stages.problem import Problem


class OptimalTree(Rival):
    """Optimal cost-sensitive trees (van der Linden, de Weerdt & Demirović, NeurIPS 2023), with the reject.

    Of all trees up to a depth, STreeD finds the one with the least sum of errors and prices on the training rows: an
    error costs 1, a unit its share of the price of everything, times a weight, once on a path; a unit of a group that
    was opened on the path before costs its own price only. A leaf answers with the shares of its training rows, and
    cases in a leaf below the threshold are rejected. Needs pystreed.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : sequence of float
        Weights of prices against errors to choose from.
    max_depths : sequence of int
    min_rows_in_leaf : sequence of int
    smoothings : sequence of float
        Rows of each class that are added to a leaf before its shares are taken.
    max_tests : int
        About how many tests (a column and a threshold) a tree chooses from. Each column has at most ten thresholds, at
        quantiles, and at least one.
    criterion, validation, random_state
        As in every method.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "price_weight": "price_weights", "max_depth": "max_depths", "min_rows_in_leaf": "min_rows_in_leaf",
        "smoothing": "smoothings",
    }  # fmt: skip

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: Sequence[float] = (0.0, *np.logspace(-2, 1, 10)),
        max_depths: Sequence[int] = (1, 2, 3),
        min_rows_in_leaf: Sequence[int] = (1, 5, 20),
        smoothings: Sequence[float] = (0.0, 1.0),
        max_tests: int = 300,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.max_depths = max_depths
        self.min_rows_in_leaf = min_rows_in_leaf
        self.smoothings = smoothings
        self.max_tests = max_tests
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        (max_tests,) = whole_numbers([self.max_tests], "max_tests")
        smoothings = numbers(self.smoothings, "smoothings")
        grid = product(
            sorted(numbers(self.price_weights, "price_weights"), reverse=True),
            whole_numbers(self.max_depths, "max_depths"),
            whole_numbers(self.min_rows_in_leaf, "min_rows_in_leaf"),
        )
        tests = Cuts.of(problem, max_tests)
        for weight, depth, min_rows in grid:
            grown = grow(problem, tests, weight, depth, min(min_rows, max(problem.y_train.size // 2, 1)))
            for smoothing in smoothings:
                settings = {"price_weight": weight, "max_depth": depth, "min_rows_in_leaf": min_rows,
                            "smoothing": smoothing}  # fmt: skip
                yield Candidate(settings, _Tree(grown.trees(smoothing)))


@dataclass(frozen=True)
class Cuts:
    """The tests that trees choose from: whether a column is above a threshold, in the order of units.

    Attributes
    ----------
    column, threshold : ndarray of shape (n_tests,)
    first : ndarray of shape (n_units + 1,)
        Where the tests of each unit begin.
    """

    column: NDArray[np.intp]
    threshold: FloatArray
    first: NDArray[np.intp]

    @classmethod
    def of(cls, problem: Problem, max_tests: int) -> "Cuts":
        """Return tests at quantiles of the training rows; a threshold lies between two values."""
        n_each = int(np.clip(max_tests // max(len(problem.train), 1), 1, 10))
        owner = problem.unit_columns.argmax(axis=0)
        columns: list[int] = []
        thresholds: list[float] = []
        first = [0]
        for unit in range(problem.prices.n_units):
            for column in np.flatnonzero(problem.unit_columns[unit] & (owner == unit)):
                cuts = between(problem.train[column], n_each)
                columns += [int(column)] * cuts.size
                thresholds += cuts.tolist()
            first.append(len(columns))
        return cls(np.array(columns, dtype=np.intp), np.array(thresholds), np.array(first, dtype=np.intp))

    def answers(self, Z: FloatArray) -> BoolArray:
        """Return the answer of each row to each test, (n_rows, n_tests)."""
        return np.asarray(Z[self.column] > self.threshold[:, None]).T


def between(values: FloatArray, n_most: int) -> FloatArray:
    """Return thresholds between neighbouring values, at most ``n_most``, nearest to even quantiles.

    Examples
    --------
    >>> between(np.array([1.0, 2.0, 2.0, 4.0]), 5).tolist()
    [1.5, 3.0]
    >>> between(np.arange(10.0), 1).tolist()
    [4.5]
    """
    distinct, counts = np.unique(values, return_counts=True)
    cuts = (distinct[1:] + distinct[:-1]) / 2
    if cuts.size <= n_most:
        return np.asarray(cuts)
    share = counts.cumsum()[:-1] / values.size
    wanted = np.arange(1, n_most + 1) / (n_most + 1)
    return np.asarray(cuts[np.unique(np.abs(share[:, None] - wanted).argmin(axis=0))])


@dataclass
class Grown:
    """A tree in the order of its growth: the tests of nodes, and the training rows of each class that reach them."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    counts: list[NDArray[np.int64]] = field(default_factory=list)

    def add(self, node: Any, tests: Cuts, answers: BoolArray, y: NDArray[np.int64], n_classes: int) -> int:
        """Add a node of STreeD with everything below it; return its number."""
        number = len(self.feature)
        leaf = node.is_leaf_node()
        self.feature.append(-1 if leaf else int(tests.column[node.feature]))
        self.threshold.append(0.0 if leaf else float(tests.threshold[node.feature]))
        self.left.append(-1)
        self.right.append(-1)
        self.counts.append(np.bincount(y, minlength=n_classes))
        if not leaf:
            yes = answers[:, node.feature]
            self.left[number] = self.add(node.left_child, tests, answers[~yes], y[~yes], n_classes)
            self.right[number] = self.add(node.right_child, tests, answers[yes], y[yes], n_classes)
        return number

    def trees(self, smoothing: float) -> Trees:
        """Return the tree with the shares of the classes in its leaves."""
        counts = np.array(self.counts) + smoothing
        value = counts / counts.sum(axis=1, keepdims=True)
        ints = (np.array(part, dtype=np.intp) for part in (self.feature, self.left, self.right))
        feature, left, right = ints
        return Trees(feature, np.array(self.threshold), left, right, value, np.zeros(1, dtype=np.intp))


def grow(problem: Problem, tests: Cuts, weight: float, depth: int, min_rows: int) -> Grown:
    """Return the tree of least errors and weighted prices on the training rows."""
    grown = Grown()
    answers = tests.answers(problem.train)
    tree = _solve(problem, tests, answers, weight, depth, min_rows) if tests.column.size else _Leaf()
    grown.add(tree, tests, answers, problem.y_train, problem.n_classes)
    return grown


def _solve(problem: Problem, tests: Cuts, answers: BoolArray, weight: float, depth: int, min_rows: int) -> Any:
    from pystreed import STreeDCostSensitiveClassifier
    from pystreed.data import CostSpecifier, FeatureCostSpecifier

    prices, p = problem.prices, path_prices(problem.prices)
    group = np.where(prices.groups.any(axis=1), prices.groups.argmax(axis=1), -1) if prices.group_names else None
    units = [
        FeatureCostSpecifier(
            weight * p[u, 0], weight * p[u, 1],
            f"unit {u}" if group is None or group[u] < 0 else f"group {group[u]}",
            int(tests.first[u]), int(tests.first[u + 1]) - 1,
        )
        for u in np.flatnonzero(np.diff(tests.first))  # a unit without tests has no range, which includes its end
    ]  # fmt: skip
    errors = (1.0 - np.eye(problem.n_classes)).tolist()
    solver = STreeDCostSensitiveClassifier(max_depth=depth, min_leaf_node_size=min_rows, time_limit=1e6, random_seed=0)
    solver.fit(answers.astype(np.int64), np.asarray(problem.y_train), CostSpecifier(errors, units))
    return solver.tree_


def path_prices(prices: PriceList) -> FloatArray:
    """Return the price of each unit alone, and where its group is open, as shares of the total, (n_units, 2)."""
    total = prices.total if prices.total > 0 else 1.0
    return np.column_stack([prices.prices, prices.own_prices]) / total


class _Leaf:
    """The tree without a test."""

    def is_leaf_node(self) -> bool:
        return True


class _Tree:
    """One tree that buys what it tests on the way."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def trace(self, Z: FloatArray) -> Trace:
        probabilities, read = self._trees.walk(Z)
        return Trace(probabilities, read, np.zeros(Z.shape[1], dtype=np.intp))
