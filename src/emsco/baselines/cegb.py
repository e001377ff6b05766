"""CEGB: gradient boosting that pays for the features its trees read, as implemented in LightGBM (BASELINES §4)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, softmax

from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers, whole_numbers
from emsco.baselines.trees import Trees
from emsco.exceptions import InvalidParameterError, MissingDependencyError
from emsco.stages.problem import Problem

PRICE_WEIGHTS = (0.0, *np.logspace(-3, 1.5, 14).tolist())
_ROUNDS_PER_STEP = 10  # between two tried lengths of the same ensemble
_FULL, _SHARED = "full", "shared"
_LINES = "num_leaves", "split_feature", "threshold", "left_child", "right_child", "leaf_value"  # of LightGBM's files


class CEGB(Rival):
    """Cost-efficient gradient boosting (Peter, Diego, Hamprecht & Nadler, NIPS 2017), by LightGBM.

    The gain of a split is reduced by ``price_weight`` times the price of its column, for every training row that would
    read this column for the first time. Prices are shares of the price of everything, so one grid fits all tables. A
    case pays for the columns on its way through all trees. It is rejected if the top class probability stays below the
    threshold; the publication has no reject. Needs LightGBM.

    LightGBM tracks the columns that a row has read, not the units. If a unit yields several columns (a panel, a
    category, a number with an indicator of missing values), its price is assigned to each of them in one of two ways:
    "full" charges a row that reads two of them twice; "shared" divides the price by their number and charges a row that
    reads one too little. Both are tried, and validation chooses. The final cost of a case is exact in either case: each
    unit is paid once.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : sequence of float
        LightGBM's ``cegb_tradeoff``, with the prices as ``cegb_penalty_feature_lazy``; 0 is plain boosting.
    learning_rates : sequence of float
    n_rounds : int
        Largest number of rounds; every tenth number up to it is tried, without training again.
    num_leaves : sequence of int
        Largest number of leaves of a tree.
    min_rows_in_leaf : sequence of int
    column_prices : sequence of {"full", "shared"}
        How the price of a unit is assigned to several columns.
    criterion, validation, random_state
        As in every method.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "price_weight": "price_weights", "learning_rate": "learning_rates", "num_leaves": "num_leaves",
        "min_rows_in_leaf": "min_rows_in_leaf", "column_prices": "column_prices", "n_rounds": "n_rounds",
    }  # fmt: skip

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: Sequence[float] = PRICE_WEIGHTS,
        learning_rates: Sequence[float] = (0.03, 0.1),
        n_rounds: int = 200,
        num_leaves: Sequence[int] = (4, 8, 16, 31),
        min_rows_in_leaf: Sequence[int] = (5, 20),
        column_prices: Sequence[str] = (_FULL, _SHARED),
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.learning_rates = learning_rates
        self.n_rounds = n_rounds
        self.num_leaves = num_leaves
        self.min_rows_in_leaf = min_rows_in_leaf
        self.column_prices = column_prices
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        weights = sorted(numbers(self.price_weights, "price_weights"), reverse=True)
        grid = product(
            numbers(self.learning_rates, "learning_rates", least=1e-6),
            whole_numbers(self.num_leaves, "num_leaves", least=2),
            whole_numbers(self.min_rows_in_leaf, "min_rows_in_leaf"),
        )
        (n_rounds,) = whole_numbers([self.n_rounds], "n_rounds")
        ways = self.column_prices
        if not isinstance(ways, list | tuple) or not ways or any(way not in (_FULL, _SHARED) for way in ways):
            raise InvalidParameterError(f"column_prices must list 'full', 'shared' or both; got {ways!r}.")
        booster = Booster(problem, seed)
        priced = {way: column_prices(problem, way) for way in ways}
        if len(priced) == 2 and np.array_equal(priced[_FULL], priced[_SHARED]):
            priced.popitem()
        for weight, (learning_rate, num_leaves, min_rows) in product(weights, list(grid)):
            for way in list(priced)[: None if weight > 0 else 1]:
                settings = {
                    "price_weight": weight, "learning_rate": learning_rate, "num_leaves": num_leaves,
                    "min_rows_in_leaf": min_rows, "column_prices": way,
                }  # fmt: skip
                trees = booster.train(
                    weight * priced[way], n_rounds=n_rounds, learning_rate=learning_rate, num_leaves=num_leaves,
                    min_data_in_leaf=min_rows,
                )  # fmt: skip
                for n, score, read in growing(trees, problem.validation):
                    model = _Boosted(trees.first(n * score.shape[1]))
                    yield Candidate({**settings, "n_rounds": n}, model, partial(answer, score, read))


def growing(trees: Trees, Z: FloatArray) -> Iterator[tuple[int, FloatArray, BoolArray]]:
    """Yield numbers of rounds to try, in steps up to all, with the scores after them and the columns read."""
    n_outputs = trees.value.shape[1]
    n_done = trees.roots.size // n_outputs
    sizes = [*range(_ROUNDS_PER_STEP, n_done, _ROUNDS_PER_STEP), n_done]
    for n, score, read in trees.walks(Z, [n * n_outputs for n in sizes]):
        yield n // n_outputs, score, read


def answer(score: FloatArray, read: BoolArray) -> Trace:
    """Return class probabilities from scores, (n_rows, n_outputs): one for two classes, else one per class."""
    if score.shape[1] == 1:
        second = expit(score[:, 0])
        probabilities = np.column_stack([1 - second, second])
    else:
        probabilities = softmax(score, axis=1)
    return Trace(probabilities, read, np.zeros(len(score), dtype=np.intp))


def column_prices(problem: Problem, way: str) -> FloatArray:
    """Return the price of each encoded column as a share of the price of everything."""
    columns, prices = problem.unit_columns, problem.prices
    share = prices.prices / prices.total if prices.total > 0 else np.zeros(prices.n_units)
    if way == _SHARED:
        share = share / np.maximum(columns.sum(axis=1), 1)
    return np.asarray(share @ columns)


class Booster:
    """LightGBM on the training rows of a problem."""

    def __init__(self, problem: Problem, seed: int) -> None:
        try:
            import lightgbm
        except ImportError as error:
            raise MissingDependencyError(
                "CEGB needs LightGBM, which is not installed: pip install 'emsco[baselines]'."
            ) from error
        self._lightgbm = lightgbm
        self._n_outputs = 1 if problem.n_classes == 2 else problem.n_classes
        # No sampling of rows or columns, because a tree would have to buy the columns in its sample.
        self._fixed: dict[str, Any] = {
            "objective": "binary" if self._n_outputs == 1 else "multiclass", "num_class": self._n_outputs,
            "seed": seed, "deterministic": True, "force_col_wise": True, "num_threads": 1, "feature_pre_filter": False,
            "verbose": -1,
        }  # fmt: skip
        self._rows = lightgbm.Dataset(problem.train.T, problem.y_train, params=self._fixed, free_raw_data=False)

    def train(self, penalties: FloatArray, *, n_rounds: int, **settings: Any) -> Trees:
        """Return boosted trees, round after round, in each the classes in order (for two classes, one tree).

        Parameters
        ----------
        penalties : ndarray of shape (n_encoded,)
            What the first read of a column takes from the gain, per row.
        n_rounds : int
        **settings
            LightGBM's.
        """
        return read_trees(self._train(penalties, n_rounds, settings).model_to_string(), self._n_outputs)

    def gains(self, penalties: FloatArray, *, n_rounds: int, **settings: Any) -> FloatArray:
        """Return the gain of all splits on each encoded column, (n_encoded,)."""
        model = self._train(penalties, n_rounds, settings)
        return np.asarray(model.feature_importance("gain"), dtype=np.float64)

    def _train(self, penalties: FloatArray, n_rounds: int, settings: dict[str, Any]) -> Any:
        parameters = {**self._fixed, **settings}
        if penalties.any():
            parameters["cegb_penalty_feature_lazy"] = penalties.tolist()
        return self._lightgbm.train(parameters, self._rows, n_rounds, keep_training_booster=True)


def read_trees(text: str, n_outputs: int) -> Trees:
    """Return the trees of a LightGBM model file as arrays; tree t adds to output t modulo n_outputs.

    A tree's inner nodes are numbered from 0; child -1 is leaf 0, child -2 leaf 1, and so on. A tree that never split
    is a single leaf.
    """
    lines: dict[str, list[str]] = {name: [] for name in _LINES}
    for line in text.partition("end of trees")[0].splitlines():
        name, _, numbers = line.partition("=")
        if name in lines:
            lines[name].append(numbers)
    n_leaves, feature, threshold, left, right, leaf_value = (
        np.array([float(number) for number in " ".join(lines[name]).split()]) for name in _LINES
    )
    n_leaves = n_leaves.astype(np.intp)
    n_nodes = 2 * n_leaves - 1  # the inner nodes of a tree come before its leaves
    roots = np.cumsum(n_nodes) - n_nodes
    tree = np.repeat(np.arange(roots.size), n_nodes)
    is_leaf = np.arange(tree.size) - roots[tree] >= n_leaves[tree] - 1
    first, first_leaf = roots[tree[~is_leaf]], (roots + n_leaves - 1)[tree[~is_leaf]]
    value = np.zeros((tree.size, n_outputs))
    value[np.flatnonzero(is_leaf), tree[is_leaf] % n_outputs] = leaf_value
    children = [np.where(child < 0, first_leaf - 1 - child, first + child) for child in (left, right)]
    feature, threshold, left, right = (_at_inner(is_leaf, part) for part in (feature, threshold, *children))
    return Trees(feature.astype(np.intp), threshold, left.astype(np.intp), right.astype(np.intp), value, roots)


def _at_inner(is_leaf: BoolArray, values: FloatArray) -> FloatArray:
    """Return values of all nodes from those of the inner ones; -1 at a leaf."""
    everywhere = np.full(is_leaf.size, -1.0)
    everywhere[~is_leaf] = values
    return everywhere


class _Boosted:
    """Boosted trees: every input goes through all of them."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees

    def trace(self, Z: FloatArray) -> Trace:
        return answer(*self._trees.walk(Z))
