"""BudgetPrune: a random forest, pruned for the cost of the features it reads (BASELINES §6.2)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.ensemble import RandomForestClassifier

from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.trees import Trees
from emsco.stages.problem import Problem

PRICE_WEIGHTS = (0.0, *np.logspace(-3, 0.5, 10).tolist())
_FLOAT32 = float(np.finfo(np.float32).max)


class BudgetPrune(Rival):
    """Pruning of a random forest for error and cost together (Nan, Wang & Saligrama, NIPS 2016).

    scikit-learn grows a forest without regard to prices. One linear program then decides for all trees where each
    stops. It minimises the mean error of single trees plus ``price_weight`` times the mean cost, with prices as shares
    of the price of everything. Its optimum is integral. A case pays for the units tested on its way through all trees.
    The class probabilities are the means of the training shares where it stops.

    Our choices: errors are counted out of bag, on the rows that did not train a tree; the cost is counted on the
    training rows, at most ``max_rows`` of them; HiGHS solves the program instead of the publication's dual ascent.
    Units of several columns and shared costs of groups are in the program as they are paid, each once per case. The
    reject is our addition, too.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : sequence of float
        Weights of the price of everything, relative to the mean error of a tree.
    n_trees, max_depths : sequence of int
        Forests to prune.
    max_rows : int
        Largest number of training rows for estimating the cost of a pruning.
    criterion, validation, random_state
        As in every method.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "price_weight": "price_weights",
        "n_trees": "n_trees",
        "max_depth": "max_depths",
    }

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: Sequence[float] = PRICE_WEIGHTS,
        n_trees: Sequence[int] = (10, 40),
        max_depths: Sequence[int] = (6, 10),
        max_rows: int = 1000,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.n_trees = n_trees
        self.max_depths = max_depths
        self.max_rows = max_rows
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        weights = sorted(numbers(self.price_weights, "price_weights"), reverse=True)
        forests = product(whole_numbers(self.n_trees, "n_trees"), whole_numbers(self.max_depths, "max_depths"))
        (max_rows,) = whole_numbers([self.max_rows], "max_rows")
        return _prunings(problem, seed, weights, list(forests), max_rows)


def _prunings(
    problem: Problem, seed: int, weights: list[float], forests: list[tuple[int, int]], max_rows: int
) -> Iterator[Candidate]:
    for n_trees, max_depth in forests:
        forest = Forest(problem, n_trees=n_trees, max_depth=max_depth, seed=seed)
        program = Program(forest, problem, max_rows=max_rows, seed=seed)
        for weight in weights:
            pruned = forest.trees.stopped(program.solve(weight) < 0.5)
            yield Candidate({"price_weight": weight, "n_trees": n_trees, "max_depth": max_depth}, _Pruned(pruned))


class Forest:
    """A random forest as arrays, with the error of each node.

    Attributes
    ----------
    trees : Trees
        The value of a node: its class shares in training, divided by the number of trees.
    parent : ndarray of shape (n_nodes,)
        -1 for a root.
    error : ndarray of shape (n_nodes,)
        Share of a tree's out-of-bag rows that reach a node and are not in its majority class, divided by the number of
        trees.
    """

    def __init__(self, problem: Problem, *, n_trees: int, max_depth: int, seed: int) -> None:
        rows = to_float32(problem.train)
        forest = RandomForestClassifier(n_trees, max_depth=max_depth, random_state=seed).fit(rows.T, problem.y_train)
        grown = [tree.tree_ for tree in forest.estimators_]
        starts = np.cumsum([0, *(tree.node_count for tree in grown)])
        shift = np.repeat(starts[:-1], np.diff(starts))
        left, right = (
            np.concatenate([getattr(tree, name) for tree in grown]) + shift
            for name in ("children_left", "children_right")
        )
        self.trees = Trees(
            np.maximum(np.concatenate([tree.feature for tree in grown]), -1),
            np.concatenate([tree.threshold for tree in grown]),
            left,
            right,
            np.concatenate([tree.value[:, 0] for tree in grown]) / n_trees,
            starts[:-1],
        )
        inner = np.flatnonzero(self.trees.feature >= 0)
        self.parent = np.full(left.size, -1)
        self.parent[left[inner]] = self.parent[right[inner]] = inner
        self.error = np.zeros(left.size)
        majority = self.trees.value.argmax(axis=1)
        for root, in_bag in zip(self.trees.roots, forest.estimators_samples_, strict=True):
            outside = np.setdiff1d(np.arange(problem.y_train.size), in_bag)
            for row, node in self.visits(rows[:, outside], root):
                wrong = majority[node] != problem.y_train[outside[row]]
                np.add.at(self.error, node, wrong / (outside.size * n_trees))

    def visits(self, Z: FloatArray, root: np.intp) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield rows and their nodes, level by level down a tree."""
        trees = self.trees
        row = np.arange(Z.shape[1])
        node = np.full(row.size, root)
        while row.size:
            yield row, node
            inner = trees.feature[node] >= 0
            row, node = row[inner], node[inner]
            goes_left = Z[trees.feature[node], row] <= trees.threshold[node]
            node = np.where(goes_left, trees.left[node], trees.right[node])


class Program:
    """The linear program of a forest: where to stop, for a given weight of the cost.

    One variable per node is 1 if its tree continues there, which requires that it continues at the parent. One variable
    per payable thing and row is 1 if the row pays for it; every node where the row would first pay for the thing forces
    it to 1. This is the published program after a change of variables, z = r(parent) - r: all rows are differences of
    two variables, so the matrix is totally unimodular.
    """

    def __init__(self, forest: Forest, problem: Problem, *, max_rows: int, seed: int) -> None:
        trees, error = forest.trees, forest.error
        n_nodes = error.size
        inner = trees.feature >= 0
        self._highest = inner.astype(np.float64)
        # Continuing replaces the error of the node by the errors of both children.
        self._errors = np.where(inner, error[trees.left] + error[trees.right] - error, 0.0)
        rows = to_float32(problem.train)
        if rows.shape[1] > max_rows:
            rows = rows[:, np.random.default_rng(seed).choice(rows.shape[1], max_rows, replace=False)]
        prices, things = things_to_pay(problem)
        below = np.flatnonzero(inner & (forest.parent >= 0))
        lower = [below]
        upper = [forest.parent[below]]
        bills: list[float] = []
        for price, nodes in zip(prices, _first_nodes(forest, rows, things, prices.size), strict=True):
            met, n_rows = np.unique(nodes, axis=0, return_counts=True)  # rows that meet the same nodes pay the same
            payer, tree = np.nonzero(met >= 0)
            lower.append(met[payer, tree])
            upper.append(n_nodes + len(bills) + payer)
            bills += (price * n_rows / rows.shape[1]).tolist()
        self._bills = np.array(bills)
        smaller, larger = np.concatenate(lower), np.concatenate(upper)
        at = np.tile(np.arange(smaller.size), 2)
        signs = np.repeat([1.0, -1.0], smaller.size)
        shape = (smaller.size, n_nodes + len(bills))
        self._differences: Any = csr_array((signs, (at, np.concatenate([smaller, larger]))), shape=shape)
        # HiGHS treats coefficients below 1e-7 as 0, so errors are counted in rows of trees instead of shares.
        self._unit = problem.y_train.size * trees.roots.size

    def solve(self, price_weight: float) -> FloatArray:
        """Return which nodes continue, (n_nodes,): 1 or 0."""
        objective = np.concatenate([self._errors, price_weight * self._bills]) * self._unit
        highest = np.concatenate([self._highest, np.ones(self._bills.size)])
        bounds: Any = np.column_stack([np.zeros(highest.size), highest])
        no_more = np.zeros(self._differences.shape[0])
        result = linprog(objective, A_ub=self._differences, b_ub=no_more, bounds=bounds, method="highs-ds")
        assert result.success, result.message  # stopping everywhere is feasible, and the variables are bounded
        return np.asarray(result.x)[: self._errors.size]


def things_to_pay(problem: Problem) -> tuple[FloatArray, list[NDArray[np.intp]]]:
    """Return the payable things: units, and shared costs of groups.

    Returns
    -------
    prices : ndarray of shape (n_things,)
        As shares of the price of everything.
    things : list of ndarray of shape (n_encoded,)
        Two arrays: the unit of each encoded column, and the group that shares a cost with it; -1 if there is none, or
        if it is free.
    """
    units, bill = problem.unit_columns, problem.prices
    groups = (bill.groups.T.astype(np.intp) @ units) > 0
    prices = np.concatenate([bill.own_prices, bill.shared_prices])
    number = np.where(prices > 0, np.cumsum(prices > 0) - 1, -1)
    of_unit = number[: len(units)][units.argmax(axis=0)]
    of_group = np.full(units.shape[1], -1)
    for g, columns in enumerate(groups):
        of_group[columns] = number[len(units) + g]
    return prices[prices > 0] / max(bill.total, 1e-300), [of_unit, of_group]


def _first_nodes(forest: Forest, rows: FloatArray, things: list[NDArray[np.intp]], n_things: int) -> NDArray[np.int32]:
    """Return the first node of each tree that makes a row pay for a thing, (n_things, n_rows, n_trees); -1: none."""
    trees = forest.trees
    first = np.full((n_things, rows.shape[1], trees.roots.size), -1, dtype=np.int32)
    for t, root in enumerate(trees.roots):
        for row, node in reversed(list(forest.visits(rows, root))):  # earlier nodes on the way are written last
            for thing_of in things:
                thing = np.where(trees.feature[node] >= 0, thing_of[trees.feature[node]], -1)
                first[thing[thing >= 0], row[thing >= 0], t] = node[thing >= 0]
    return first


def to_float32(Z: FloatArray) -> FloatArray:
    """Return the numbers in single precision, as scikit-learn's trees compare them."""
    return np.clip(Z, -_FLOAT32, _FLOAT32).astype(np.float32).astype(np.float64)


class _Pruned:
    """A pruned forest."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def trace(self, Z: FloatArray) -> Trace:
        probabilities, read = self._trees.walk(to_float32(Z))
        return Trace(probabilities, read, np.zeros(len(read), dtype=np.intp))
