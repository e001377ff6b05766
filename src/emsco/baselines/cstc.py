"""CSTC*: a tree of linear classifiers, trained jointly, in which a case pays for its path.

Nodes are numbered from the root, 0, level by level; the children of k are 2k + 1, below the threshold, and 2k + 2.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from emsco.baselines._soft_tree import Task, descend, route
from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined, measure
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import PriceList
from emsco.stages import _logistic as kernel
from emsco.stages.problem import Problem

_SMOOTHINGS = (1e-2, 1e-4, 1e-6)
_RELATIVE_FLOOR = 1e-2  # of the largest weight
_ABSOLUTE_FLOOR = 10 * _SMOOTHINGS[-1] ** 0.5  # a large price weight leaves only tiny weights, which are dropped
_INITIAL_C = 0.1
_MAX_STEPS = 1000  # of a logistic regression
_LEAST_WEIGHT = 1e-9  # of a row in a node it does not reach
_PRICE_WEIGHTS = (0.0, *np.logspace(-2, 2, 15).tolist())


class CSTC(Rival):
    """Cost-Sensitive Tree of Classifiers (Xu, Kusner, Weinberger, Chen and Chapelle, JMLR 2014), with the reject.

    A complete binary tree of linear models. An inner node routes a case by the sign of its score, and an exit
    classifies it. The case pays for all features that the nodes on its path read. All nodes are trained jointly: the
    routing is soft, and the price of a path is relaxed to a norm over its nodes, so that reading a feature again is
    cheap.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : sequence of float
        Weights of the expected price (λ); prices are shares of their total.
    levels : sequence of int
        Levels of the tree, exits included; 1 is a single linear classifier.
    omegas : sequence of {"leaves", "all"}
        Nodes that are trained to classify: only the exits, or also the inner nodes. We assume that the latter is the
        published form (not checked against its text).
    sparsities : sequence of float
        Weights of the l1 norm (ρ).
    temperatures : sequence of float
        Softness of the routing (τ).
    C : sequence of float
        Inverse regularisation strengths of the final classifiers.
    prune : bool
        Whether to turn inner nodes into exits, from the bottom up, if the criterion on validation rows falls by at most
        ``prune_tolerance``. Noisy on fewer than 200 rows.
    prune_tolerance : float
    max_steps : int
        Steps of L-BFGS per smoothing.
    criterion, validation, random_state
        As in every method; the training itself is deterministic.

    Notes
    -----
    Node k scores s = β_k·x + b_k and sends a case up with probability q = σ((β_k·x + a_k)/τ), where a_k = b_k − θ_k
    is a parameter of its own; p_ik is the product of these along the path to k. The objective is

    (1/N) Σ_k ω_k Σ_i p_ik loss(s_ik, y_i) + ρ Σ_k ‖β_k‖₁ + λ Σ_exits mean(p) Σ_u price_u √(Σ_{k on the path} ‖β_ku‖²).

    Absolute values and norms are smoothed, with decreasing strength. Then small weights become 0, and each exit gets an
    l2 logistic regression on the features paid for on its path, which corrects the shrinkage at no cost.

    Differences from the publication: the loss is the log-loss, which gives confidences; the inputs are standardised
    columns, not outputs of boosted trees; all nodes are optimised together, not in turn; ω = "leaves" is our addition,
    which is better if a cheap column indicates which expensive one to buy; the final logistic regression is our
    addition, too. A unit of several columns enters the norm as a whole, and the shared cost of a group is a separate
    charge. With more than two classes, a classifier has one weight vector per class, and an inner node has one for
    routing. Each price weight starts from the solution of the next smaller one; the reverse order would start near 0,
    where all nodes are equal: a saddle point. A path of price weights ends when nothing is bought.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "levels": "levels", "omega": "omegas", "sparsity": "sparsities", "temperature": "temperatures", "C": "C",
    }  # not the price weights: each starts from the one before  # fmt: skip

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: Sequence[float] = _PRICE_WEIGHTS,
        levels: Sequence[int] = (1, 2, 3, 4),
        omegas: Sequence[str] = ("leaves", "all"),
        sparsities: Sequence[float] = (1e-4, 1e-3, 1e-2),
        temperatures: Sequence[float] = (0.5, 1.0),
        C: Sequence[float] = (0.1, 1.0, 10.0),
        prune: bool = False,
        prune_tolerance: float = 0.0,
        max_steps: int = 300,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.levels = levels
        self.omegas = omegas
        self.sparsities = sparsities
        self.temperatures = temperatures
        self.C = C
        self.prune = prune
        self.prune_tolerance = prune_tolerance
        self.max_steps = max_steps
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        paths = list(self._settings())
        price_weights = sorted(_grid("price_weights", self.price_weights, _not_negative, "numbers of at least 0"))
        strengths = _grid("C", self.C, _positive, "positive numbers")
        if not (isinstance(self.max_steps, Integral) and self.max_steps >= 1):
            raise InvalidParameterError(f"max_steps must be a whole number of at least 1; got {self.max_steps!r}.")
        if not _not_negative(self.prune_tolerance):
            raise InvalidParameterError(f"prune_tolerance must be at least 0; got {self.prune_tolerance!r}.")
        candidates = [c for path in paths for c in self._along_prices(problem, price_weights, strengths, *path)]
        return sorted(candidates, key=lambda candidate: -candidate.settings["price_weight"])

    def _settings(self) -> Iterator[tuple[int, str, float, float]]:
        """Give levels, ω, ρ and τ; a single node is an exit and routes nothing, so it needs one ω and one τ."""
        levels = _grid("levels", self.levels, lambda d: isinstance(d, Integral) and d in range(1, 9), "of 1 to 8")
        omegas = _grid("omegas", self.omegas, lambda omega: omega in ("leaves", "all"), "of 'leaves' and 'all'")
        sparsities = _grid("sparsities", self.sparsities, _not_negative, "numbers of at least 0")
        temperatures = _grid("temperatures", self.temperatures, _positive, "positive numbers")
        for n_levels in levels:
            several = slice(None) if n_levels > 1 else slice(1)
            for omega, sparsity, temperature in product(omegas[several], sparsities, temperatures[several]):
                yield n_levels, omega, sparsity, temperature

    def _along_prices(
        self,
        problem: Problem,
        price_weights: list[float],
        strengths: list[float],
        levels: int,
        omega: str,
        sparsity: float,
        temperature: float,
    ) -> Iterator[Candidate]:
        """Train for each price weight, from the smallest on, until nothing is bought."""
        training = Training(problem, Shape(levels, problem.n_classes, omega == "all"), sparsity, temperature)
        vector = initial(training)
        for price_weight in map(float, price_weights):
            for smoothing in _SMOOTHINGS:
                descend(vector, training.task, price_weight, smoothing, self.max_steps)
            supports = supports_of(training, vector)
            for C in strengths:
                tree = finish(training, vector, supports, C, prunable=self.prune)
                settings = {
                    "price_weight": price_weight,
                    "levels": levels,
                    "omega": omega,
                    "sparsity": sparsity,
                    "temperature": temperature,
                    "C": C,
                }
                yield Candidate(settings, self._pruned(tree, problem) if self.prune else tree)
            charged = training.task.charges[training.task.charge_of].any(axis=0)
            if not supports[:, charged].any():
                break

    def _pruned(self, tree: "Tree", problem: Problem) -> "Tree":
        """Turn inner nodes with two exits below into exits, the last first, while the criterion allows it."""

        def score(tree: Tree) -> float:
            trace = tree.trace(problem.validation)
            cost = self._cost(trace)[1]
            return float(self.criterion(measure(trace, problem.y_validation, cost, self.threshold, problem.prices)))

        best = score(tree)
        for k in sorted(tree.routers, reverse=True):
            if 2 * k + 1 in tree.routers or 2 * k + 2 in tree.routers:
                continue
            shorter = Tree({j: router for j, router in tree.routers.items() if j != k}, tree.classifiers)
            shorter_score = score(shorter)
            if shorter_score >= best - self.prune_tolerance:
                tree, best = shorter, shorter_score
        return tree


@dataclass(frozen=True)
class Linear:
    """A linear model of some of the encoded columns."""

    columns: NDArray[np.intp]
    coef: FloatArray  # (n_scores, n_columns)
    intercept: FloatArray  # (n_scores,)


@dataclass(frozen=True)
class Tree:
    """A trained tree: a node routes if it has a router, and else classifies.

    Attributes
    ----------
    routers, classifiers : dict of int to Linear
        By node. Inner nodes have a classifier too, in case they are pruned.
    """

    routers: dict[int, Linear]
    classifiers: dict[int, Linear]

    def trace(self, Z: FloatArray) -> Trace:
        """Send encoded inputs, (n_encoded, n_rows), to their exits; no node looks at what it does not read."""
        n_encoded, n_rows = Z.shape
        n_logits = len(next(iter(self.classifiers.values())).intercept)
        trace = Trace(
            np.empty((n_rows, max(n_logits, 2))),
            np.zeros((n_rows, n_encoded), dtype=np.bool_),
            np.zeros(n_rows, dtype=np.intp),
        )
        waiting = [(0, np.arange(n_rows))]
        while waiting:
            k, rows = waiting.pop()
            node = self.routers[k] if k in self.routers else self.classifiers[k]
            trace.read[np.ix_(rows, node.columns)] = True
            Z_node = np.ascontiguousarray(Z[:, rows])
            if k in self.routers:
                score = np.empty((1, rows.size))
                route(Z_node, node.columns, node.coef, node.intercept, score)
                waiting += [(2 * k + 1, rows[score[0] <= 0]), (2 * k + 2, rows[score[0] > 0])]
            else:
                trace.probabilities[rows] = kernel.predict(Z_node, node.columns, node.coef, node.intercept).T
                trace.exit[rows] = k
        return trace


class Shape:
    """Which weight vector belongs to which node.

    The first ``n_inner`` vectors route. Those from ``first_class`` on give class scores, ``n_logits`` for each node
    from ``first_judged`` on. With two classes an inner node classifies, if at all, by the vector it routes by.

    Parameters
    ----------
    levels : int
    n_classes : int
    all_judged : bool
        Whether inner nodes classify in training.
    """

    def __init__(self, levels: int, n_classes: int, all_judged: bool) -> None:
        self.n_nodes = 2**levels - 1
        self.n_inner = self.n_nodes // 2
        self.n_logits = 1 if n_classes == 2 else n_classes
        self.first_judged = 0 if all_judged else self.n_inner
        self.n_judged = self.n_nodes - self.first_judged
        self.first_class = 0 if all_judged and n_classes == 2 else self.n_inner
        self.n_vectors = self.first_class + self.n_judged * self.n_logits
        node = np.arange(self.n_vectors)  # the node of each vector
        node[self.first_class :] = np.repeat(np.arange(self.first_judged, self.n_nodes), self.n_logits)
        self.nodes = node
        self.on_path = np.array([np.isin(node, [k, *ancestors(k)]) for k in range(self.n_inner, self.n_nodes)])


def ancestors(k: int) -> list[int]:
    """Return the nodes above a node, the root last."""
    above = []
    while k > 0:
        k = (k - 1) // 2
        above.append(k)
    return above


class Training:
    """The training rows as a task of the kernel, for one form of tree.

    Parameters
    ----------
    problem : Problem
    shape : Shape
    sparsity, temperature : float
        ρ and τ.
    """

    def __init__(self, problem: Problem, shape: Shape, sparsity: float, temperature: float) -> None:
        self.problem, self.shape, self.temperature = problem, shape, temperature
        self.task = Task(
            Z=np.array(problem.train),  # writable, as for a logistic regression: else another type, compiled apart
            codes=np.array(problem.y_train),
            row_weights=np.full(problem.y_train.size, 1 / problem.y_train.size),
            n_inner=shape.n_inner,
            n_judged=shape.n_judged,
            n_logits=shape.n_logits,
            first_class=shape.first_class,
            temperature=float(temperature),
            on_path=shape.on_path,
            charge_of=charge_of(problem),
            charges=charges_of(problem.prices),
            sparsity=float(sparsity),
            ridge=0.0,
        )

    @property
    def size(self) -> int:
        """Number of parameters."""
        shape = self.shape
        return int(shape.n_vectors * len(self.task.Z) + shape.n_inner + shape.n_judged * shape.n_logits)

    def unpack(self, vector: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return weights (n_vectors, n_encoded), routing offsets (n_inner,) and class biases (n_judged, n_logits)."""
        n_weights = self.shape.n_vectors * len(self.task.Z)
        weights, offsets, biases = np.split(vector, [n_weights, n_weights + self.shape.n_inner])
        return weights.reshape(self.shape.n_vectors, -1), offsets, biases.reshape(self.shape.n_judged, -1)

    def reached(self, weights: FloatArray, offsets: FloatArray) -> FloatArray:
        """Return how probably each row reaches each node, (n_nodes, n_rows)."""
        up = expit((weights[: self.shape.n_inner] @ self.task.Z + offsets[:, None]) / self.temperature)
        reached = np.ones((self.shape.n_nodes, self.task.codes.size))
        for k in range(self.shape.n_inner):
            reached[2 * k + 1], reached[2 * k + 2] = reached[k] * (1 - up[k]), reached[k] * up[k]
        return reached

    def classifier(self, columns: NDArray[np.intp], reached: FloatArray, C: float) -> Linear:
        """Return an l2 logistic regression of some columns, on rows by how much they reach a node."""
        row_weights = reached + _LEAST_WEIGHT
        return weighted_logistic(self.task.Z, self.task.codes, row_weights, self.problem.n_classes, columns, C)


def charges_of(prices: PriceList) -> FloatArray:
    """Return what is paid once on a path, as shares of the price of everything: for units, groups, and nothing."""
    ticks = np.concatenate([prices.own_ticks, prices.shared_ticks, [0]])
    return np.asarray(ticks / max(int(ticks.sum()), 1))


def charge_of(problem: Problem) -> NDArray[np.int64]:
    """Return the charges that each column incurs, (2, n_encoded): of its unit, and of its group, or nothing."""
    unit = problem.unit_columns.argmax(axis=0)
    groups = problem.prices.groups
    group = np.column_stack([groups, ~groups.any(axis=1)]).argmax(axis=1)
    return np.array([unit, len(groups) + group[unit]], dtype=np.int64)


def weighted_logistic(
    Z: FloatArray,
    codes: NDArray[np.int64],
    row_weights: FloatArray,
    n_classes: int,
    columns: NDArray[np.intp],
    C: float,
) -> Linear:
    """Return an l2 logistic regression of some columns with weighted rows: a tree of one node."""
    prior = np.log(np.bincount(codes, row_weights, minlength=n_classes) / row_weights.sum())
    intercept = prior if n_classes > 2 else prior[1:] - prior[:1]
    n_logits, n_columns = intercept.size, columns.size
    vector = np.concatenate([np.zeros(n_logits * n_columns), intercept])
    if n_columns:
        task = Task(
            Z=Z[columns],
            codes=codes,
            row_weights=row_weights,
            n_inner=0,
            n_judged=1,
            n_logits=n_logits,
            first_class=0,
            temperature=1.0,
            on_path=np.ones((1, n_logits), dtype=np.bool_),
            charge_of=np.zeros((2, n_columns), dtype=np.int64),
            charges=np.zeros(1),
            sparsity=0.0,
            ridge=1 / float(C),
        )
        descend(vector, task, 0.0, 1.0, _MAX_STEPS)
    return Linear(columns, vector[:-n_logits].reshape(n_logits, n_columns), vector[-n_logits:])


def initial(training: Training) -> FloatArray:
    """Return parameters to start from: logistic regressions, from the root on, each node halving the rows it gets."""
    shape, Z = training.shape, training.problem.train
    vector = np.zeros(training.size)
    weights, offsets, biases = training.unpack(vector)
    reached = np.ones((shape.n_nodes, Z.shape[1]))
    for k in range(shape.n_nodes):
        start = training.classifier(np.arange(len(Z)), reached[k], _INITIAL_C)
        if k >= shape.first_judged:
            first = shape.first_class + (k - shape.first_judged) * shape.n_logits
            weights[first : first + shape.n_logits] = start.coef
            biases[k - shape.first_judged] = start.intercept
        if k < shape.n_inner:
            weights[k] = start.coef[0] if shape.n_logits == 1 else main_direction(start.coef, Z, reached[k])
            scores = weights[k] @ Z
            offsets[k] = -weighted_median(scores, reached[k])
            up = expit((scores + offsets[k]) / training.temperature)
            reached[2 * k + 1], reached[2 * k + 2] = reached[k] * (1 - up), reached[k] * up
    return vector


def main_direction(coef: FloatArray, Z: FloatArray, row_weights: FloatArray) -> FloatArray:
    """Return the combination of class scores, (n_columns,), that differs most between rows."""
    scores = coef @ Z
    scores -= np.average(scores, axis=1, weights=row_weights)[:, None]
    mixture = np.linalg.eigh((scores * row_weights) @ scores.T)[1][:, -1]
    return np.asarray(mixture * np.sign(mixture[np.abs(mixture).argmax()]) @ coef)


def weighted_median(values: FloatArray, row_weights: FloatArray) -> float:
    """Return the value below which half the weight lies."""
    order = values.argsort(kind="stable")
    below = row_weights[order].cumsum()
    return float(values[order[np.searchsorted(below, below[-1] / 2)]])


def supports_of(training: Training, vector: FloatArray) -> BoolArray:
    """Return which weights are not small, (n_vectors, n_encoded); the class vectors of a node are small together."""
    shape = training.shape
    sizes = np.abs(training.unpack(vector)[0])
    if shape.n_logits > 1:
        by_node = sizes[shape.first_class :].reshape(shape.n_judged, shape.n_logits, -1)
        sizes[shape.first_class :] = np.repeat(np.linalg.norm(by_node, axis=1), shape.n_logits, axis=0)
    return np.asarray(sizes >= max(_RELATIVE_FLOOR * sizes.max(), _ABSOLUTE_FLOOR))


def finish(training: Training, vector: FloatArray, supports: BoolArray, C: float, *, prunable: bool) -> Tree:
    """Return the tree that routes by the weights that are not small, with new classifiers on what is paid for."""
    problem, shape = training.problem, training.shape
    weights, offsets, _ = training.unpack(vector.copy())  # the next descent goes on from the vector, in place
    weights = np.where(supports, weights, 0.0)
    reached = training.reached(weights, offsets)
    routers, classifiers = {}, {}
    for k in range(shape.n_inner):
        columns = np.flatnonzero(supports[k])
        routers[k] = Linear(columns, np.ascontiguousarray(weights[k : k + 1, columns]), offsets[k : k + 1])
    for k in range(0 if prunable else shape.n_inner, shape.n_nodes):
        read = supports[shape.nodes == k].any(axis=0) | supports[ancestors(k)].any(axis=0)
        paid = problem.unit_columns[problem.unit_columns[:, read].any(axis=1)].any(axis=0)
        classifiers[k] = training.classifier(np.flatnonzero(paid), reached[k], C)
    return Tree(routers, classifiers)


def _positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < np.inf


def _not_negative(value: Any) -> bool:
    return isinstance(value, Real) and 0 <= float(value) < np.inf


def _grid(name: str, values: Any, allowed: Callable[[Any], bool], wanted: str) -> list[Any]:
    """Return the values of a setting to try."""
    tried = [] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
    if not tried or not all(allowed(value) for value in tried):
        raise InvalidParameterError(f"{name} must be a list, {wanted}; got {values!r}.")
    return tried
