"""ASTC: a tree of classifiers grown greedily, by forward selection under a budget (BASELINES §3)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.exceptions import InvalidParameterError
from emsco.stages.base import StageModel
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem

RATIO, PLAIN = "gain per price", "gain"
_LEAST_GAIN = 1e-6  # rise of R² below which a unit is not bought
_LEAST_SHARE = 1e-9  # of a column's variance that owned columns leave: less is rounding
_FREE = 1e-3  # price of a free unit, as a share of the least price above 0
_FEWEST_ROWS = 10  # that a node must have to be split further


class ASTC(Rival):
    """Approximately submodular tree of classifiers (Kusner et al., AAAI 2014), with the reject.

    The tree and its use are those of CSTC, but each node is trained once, from the root down: forward selection buys
    the units that raise the R² of a linear regression of the labels most, within the budget of the node; units of nodes
    above are free. Half of the rows go to each child, by the regression's score. The exits classify by logistic
    regression on the units of their path.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    budgets : sequence of float
        Largest price of a path, as a share of the price of everything; each level may spend an equal part of it.
    levels : sequence of int
        Levels of nodes; 1 is a single forward selection.
    rules : sequence of {"gain per price", "gain"}
        What forward selection maximises. The ratio alone can be misled by very cheap, weak units.
    C : sequence of float
        Inverse regularisation strengths of the classifiers.
    criterion, validation, random_state
        As in every method; the training itself is deterministic.

    Notes
    -----
    Equal parts of the budget are our choice. With three classes and more, the regression has one output per class, and
    rows are routed along its leading direction. The logistic regressions, which give confidences, and the reject are
    our additions. What a level leaves of its budget, the next one may spend.
    """

    grids: ClassVar[Mapping[str, str]] = {"budget": "budgets", "levels": "levels", "rule": "rules", "C": "C"}

    def __init__(
        self,
        threshold: float = 0.75,
        budgets: Sequence[float] = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8),
        levels: Sequence[int] = (1, 2, 3),
        rules: Sequence[str] = (RATIO, PLAIN),
        C: Sequence[float] = (0.1, 1.0, 10.0),
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.budgets = budgets
        self.levels = levels
        self.rules = rules
        self.C = C
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        if not isinstance(self.rules, list | tuple) or any(rule not in (RATIO, PLAIN) for rule in self.rules):
            raise InvalidParameterError(f"rules must list {RATIO!r}, {PLAIN!r} or both; got {self.rules!r}.")
        strengths = numbers(self.C, "C", least=1e-12)
        grid = product(numbers(self.budgets, "budgets"), whole_numbers(self.levels, "levels"), self.rules)
        for budget, levels, rule in grid:
            nodes = grow(problem, budget * problem.prices.total, levels, by_ratio=rule == RATIO)
            for C in strengths:
                settings = {"budget": budget, "levels": levels, "rule": rule, "C": C}
                yield Candidate(settings, _Tree(nodes, _classifiers(problem, nodes, C)))


@dataclass(frozen=True)
class Node:
    """A node of the tree.

    Attributes
    ----------
    units : ndarray of shape (n_units,)
        Units known here: its own and those of the nodes above.
    rows : ndarray
        Training rows that reach it.
    columns : ndarray
        Encoded columns of the known units, in ascending order.
    direction : ndarray of shape (n_columns,) or None
        Weights of the routing score; None at an exit.
    middle : float
        Rows with a score of at most this go to the first child.
    children : tuple of int
        Indices of the nodes below; empty at an exit.
    """

    units: BoolArray
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    direction: FloatArray | None
    middle: float
    children: tuple[int, ...]


def grow(problem: Problem, budget: float, levels: int, *, by_ratio: bool) -> list[Node]:
    """Return the nodes of a tree, the root first."""
    nodes: list[Node | None] = []
    prices = problem.prices
    targets = (problem.y_train[:, None] == np.arange(problem.n_classes)).astype(np.float64)
    nobody = np.zeros(prices.n_units, dtype=np.bool_)
    waiting = [(0, 1, np.arange(problem.y_train.size), nobody)]
    nodes.append(None)
    while waiting:
        index, level, rows, owned = waiting.pop(0)
        allowance = budget * level / levels  # of the whole path down to here
        units = select(problem, rows, targets[rows], owned, allowance, by_ratio=by_ratio)
        columns = np.flatnonzero(units @ problem.unit_columns)
        leaf = Node(units, rows, columns, None, 0.0, ())
        if level == levels or rows.size < _FEWEST_ROWS or not columns.size:
            nodes[index] = leaf
            continue
        direction = route(problem.train[np.ix_(columns, rows)], targets[rows])
        score = direction @ problem.train[np.ix_(columns, rows)]
        middle = float(np.median(score))
        low, high = rows[score <= middle], rows[score > middle]
        if min(low.size, high.size) < _FEWEST_ROWS // 2:
            nodes[index] = leaf
            continue
        children = (len(nodes), len(nodes) + 1)
        nodes[index] = Node(units, rows, columns, direction, middle, children)
        nodes += [None, None]
        waiting += [(child, level + 1, part, units) for child, part in zip(children, (low, high), strict=True)]
    return [node for node in nodes if node is not None]


def select(
    problem: Problem, rows: NDArray[np.intp], targets: FloatArray, owned: BoolArray, allowance: float, *, by_ratio: bool
) -> BoolArray:
    """Return the units known after forward selection; the price of all of them stays within the allowance.

    The gain of a unit is the rise of R² of a least-squares regression, with intercept, of the centred targets.
    """
    prices = problem.prices
    Z = problem.train[:, rows]
    Z = Z - Z.mean(axis=1, keepdims=True)
    residual = targets - targets.mean(axis=0)
    variance = float((residual**2).sum())
    before = (Z**2).sum(axis=1)
    units = owned.copy()
    if variance <= 0:
        return units
    for unit in np.flatnonzero(owned):
        Z, residual = deflate(Z, residual, np.flatnonzero(problem.unit_columns[unit]), before)
    free = _FREE * min(prices.prices[prices.prices > 0], default=1.0)
    while True:
        spent = prices.price_of(units) if units.any() else 0.0
        best: tuple[float, int] | None = None
        for unit in np.flatnonzero(~units):
            more = units.copy()
            more[unit] = True
            price = prices.price_of(more)
            gain = _gain(Z, residual, np.flatnonzero(problem.unit_columns[unit]), before) / variance
            if price > allowance + 1e-9 or gain <= _LEAST_GAIN:
                continue
            value = gain / max(price - spent, free) if by_ratio else gain
            if best is None or value > best[0]:
                best = value, int(unit)
        if best is None:
            return units
        units[best[1]] = True
        Z, residual = deflate(Z, residual, np.flatnonzero(problem.unit_columns[best[1]]), before)


def _gain(Z: FloatArray, residual: FloatArray, columns: NDArray[np.intp], before: FloatArray) -> float:
    """Return the drop of the squared residual by some deflated columns together."""
    return float((residual**2).sum() - (deflate(Z[columns], residual, np.arange(columns.size), before[columns])[1] ** 2)
                 .sum())  # fmt: skip


def deflate(
    Z: FloatArray, residual: FloatArray, columns: NDArray[np.intp], before: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Remove the parts along some columns from all columns, (n_columns, n_rows), and from the residual.

    ``before`` has the squared norms before any deflation: a column of which nothing but rounding is left is no
    direction.
    """
    for column in columns:
        size = float((Z[column] ** 2).sum())
        if size > _LEAST_SHARE * before[column] and size > 0:
            q = Z[column] / np.sqrt(size)
            residual = residual - np.outer(q, q @ residual)
            Z = Z - np.outer(Z @ q, q)
    return Z, residual


def route(Z: FloatArray, targets: FloatArray) -> FloatArray:
    """Return the weights of the leading direction of the least-squares scores, (n_columns,)."""
    centred = Z - Z.mean(axis=1, keepdims=True)
    weights = np.linalg.lstsq(centred.T, targets - targets.mean(axis=0), rcond=1e-9)[0]
    _, _, directions = np.linalg.svd(centred.T @ weights, full_matrices=False)
    direction = np.asarray(weights @ directions[0])
    largest = np.abs(direction).argmax()
    return direction if direction[largest] >= 0 else -direction  # a singular vector has no sign of its own


def _classifiers(problem: Problem, nodes: list[Node], C: float) -> list[StageModel | FloatArray]:
    """Return a classifier for each exit, trained on the rows that reach it; class shares if it knows nothing.

    A class that does not reach an exit keeps a small probability there: one row of it, of the whole table, is added.
    """
    answers: list[StageModel | FloatArray] = []
    for node in nodes:
        absent = np.setdiff1d(np.arange(problem.n_classes), problem.y_train[node.rows])
        if node.children:
            answers.append(np.empty(0))
            continue
        first = [int(np.flatnonzero(problem.y_train == code)[0]) for code in absent]
        rows = np.concatenate([node.rows, np.array(first, dtype=np.intp)])
        if not node.columns.size:
            answers.append(np.bincount(problem.y_train[rows], minlength=problem.n_classes) / rows.size)
            continue
        part = Problem(
            problem.train[:, rows], problem.y_train[rows], problem.validation, problem.y_validation, problem.n_classes,
            problem.unit_columns, problem.prices,
        )  # fmt: skip
        trainer = LogisticTrainer(part, C=C)
        answers.append(trainer.models(node.units[None], trainer.train(node.units[None]))[0])
    return answers


class _Tree:
    """A trained tree: rows walk down to an exit."""

    def __init__(self, nodes: list[Node], answers: list[StageModel | FloatArray]) -> None:
        self._nodes, self._answers = nodes, answers

    def trace(self, Z: FloatArray) -> Trace:
        n_encoded, n_rows = Z.shape
        read = np.zeros((n_rows, n_encoded), dtype=np.bool_)
        exit_of = np.zeros(n_rows, dtype=np.intp)
        parts: list[tuple[NDArray[np.intp], FloatArray]] = []
        waiting = [(0, np.arange(n_rows))]
        while waiting:
            index, rows = waiting.pop()
            node, answer = self._nodes[index], self._answers[index]
            read[np.ix_(rows, node.columns)] = True
            if node.children:
                score = np.zeros(rows.size)
                for weight, column in zip(node.direction if node.direction is not None else (), node.columns,
                                          strict=True):  # fmt: skip
                    score += weight * Z[column, rows]  # column by column: the same for any number of rows
                low = score <= node.middle
                waiting += [(node.children[0], rows[low]), (node.children[1], rows[~low])]
                continue
            exit_of[rows] = index
            known = Z[np.ix_(node.columns, rows)].T
            shown = np.tile(answer, (rows.size, 1)) if isinstance(answer, np.ndarray) else answer.predict_proba(known)
            parts.append((rows, shown))
        probabilities = np.empty((n_rows, max(shown.shape[1] for _, shown in parts)))
        for rows, shown in parts:
            probabilities[rows] = shown
        return Trace(probabilities, read, exit_of)
