"""Greedy Miser: boosted trees that pay for a feature at its first split (BASELINES §1)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from emsco.baselines import _boosting as boosting
from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, Trace, combined, cost_of
from emsco.exceptions import InvalidParameterError
from emsco.stages import _logistic as logistic
from emsco.stages.problem import Problem

PRICE_WEIGHTS = (*np.logspace(1, -3, 13).tolist(), 0.0)
_MAX_SPLIT_LEVELS = 10  # trees are stored as full binary trees
_MAX_PRICE_WEIGHT = 1e100
_CALIBRATION_RIDGE = 1e-6  # decides if all scores are equal; negligible otherwise

Numbers = float | Sequence[float]


class GreedyMiser(Rival):
    """Stage-wise boosting of small regression trees; a unit that is not yet bought raises the impurity of its splits.

    Xu, Weinberger and Chapelle, *The Greedy Miser: Learning under Test-time Budgets*, ICML 2012. With the residuals r
    of a node, a split scores

        S_L² / m_L + S_R² / m_R - S² / m - λ N p,

    where S and m are sums and counts of r on the left, on the right and in total, N is the number of training rows, and
    p is the price that the split's unit adds to the cost of the ensemble, as a share of the price of everything; p is 0
    once any tree has read a column of the unit.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    variant : "logistic" or "reference"
        "logistic" is our choice: the logistic loss (softmax for three classes and more, one tree per class and round),
        leaves that are Newton steps, purchases that count from the next node on, and only splits with a positive
        score. "reference" follows the authors' program: squared loss on targets of ±1, leaves that are means,
        purchases that count from the next tree on, and a split at every node where one is possible. Its probabilities
        are our choice: sigmoids fitted to the validation rows; with three classes and more, one against the rest,
        class by class in each round, normalised to a sum of 1. Its λ was in raw units: ours times N, divided by the
        price of everything.
    cost_scope : "path" or "ensemble"
        Units that a case pays for: those on its own paths through the trees, or, as in the authors' program, all units
        of the ensemble.
    price_weights : float or sequence of float
        Values of λ to choose from.
    rounds : int, sequence of int or None
        Numbers of rounds to choose from; the longest is trained. None: 10, 20, ..., 200, up to 100 for the reference.
    learning_rates : float, sequence of float or None
        None: 0.1, for the reference 0.01. The specification's grid is 0.05, 0.1, 0.3.
    split_levels : int or sequence of int
        Levels of splits in a tree. The grid is 1, 2, 3.
    min_samples_leaf : int, sequence of int or None
        None: 5, for the reference 1. The grid is 1, 5, 20.
    largest_step : float
        Bound of a Newton step, before multiplication by the learning rate. Without it (infinity) and with λ = 0, the
        method is scikit-learn's `GradientBoostingClassifier`.
    allow_empty : bool
        Whether a model that reads nothing can be chosen although others read something. It costs nothing. If the share
        of the most frequent class reaches the threshold, it labels every case, so the combined score overrates it.
    criterion : callable
        Function of `Figures` to maximise on the validation rows.
    validation : float
        Share of validation rows, unless ``fit`` receives validation rows.
    random_state : int, RandomState or None
        Seeds the split of the rows; the method itself is deterministic.

    Notes
    -----
    Units that share a cost are priced as they are charged: the first of a group with the shared cost, the others
    without it. The publication has no groups.
    """

    grids: ClassVar[Mapping[str, str]] = {
        "price_weight": "price_weights", "learning_rate": "learning_rates", "split_levels": "split_levels",
        "min_samples_leaf": "min_samples_leaf", "n_rounds": "rounds",
    }  # fmt: skip

    def __init__(
        self,
        threshold: float = 0.75,
        variant: Literal["logistic", "reference"] = "logistic",
        cost_scope: Literal["path", "ensemble"] = "path",
        price_weights: Numbers = PRICE_WEIGHTS,
        rounds: Numbers | None = None,
        learning_rates: Numbers | None = None,
        split_levels: Numbers = 3,
        min_samples_leaf: Numbers | None = None,
        largest_step: float = 4.0,
        allow_empty: bool = False,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.variant = variant
        self.cost_scope = cost_scope
        self.price_weights = price_weights
        self.rounds = rounds
        self.learning_rates = learning_rates
        self.split_levels = split_levels
        self.min_samples_leaf = min_samples_leaf
        self.largest_step = largest_step
        self.allow_empty = allow_empty
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    @property
    def ensemble_cost_(self) -> float:
        """Price of all units that the chosen ensemble reads: the cost of every case if the scope is "ensemble"."""
        check_is_fitted(self)
        assert isinstance(self._model, _Ensemble)
        units = np.any(self._unit_columns[:, self._model.used], axis=1)
        return float(cost_of(units[None], self.prices_)[0])

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        for name, known in (("variant", ("logistic", "reference")), ("cost_scope", ("path", "ensemble"))):
            if getattr(self, name) not in known:
                raise InvalidParameterError(f"{name} must be one of {known}; got {getattr(self, name)!r}.")
        reference = self.variant == "reference"
        rounds = np.unique(self._grid("rounds", range(10, 101 if reference else 201, 10), 1)).tolist()
        settings = product(
            sorted(self._grid("price_weights", (), 0.0, _MAX_PRICE_WEIGHT), reverse=True),
            self._grid("learning_rates", 0.01 if reference else 0.1, 1e-6, 1.0),
            self._grid("split_levels", (), 1, _MAX_SPLIT_LEVELS),
            self._grid("min_samples_leaf", 1 if reference else 5, 1),
        )
        largest_step = np.inf if reference else self._number("largest_step", self.largest_step, 0.0, np.inf)
        booster = _Booster(problem, reference=reference, largest_step=largest_step)
        empty: Candidate | None = None
        read_something = False
        for price_weight, learning_rate, split_levels, min_samples_leaf in settings:
            longest = booster.train(price_weight, rounds[-1], learning_rate, split_levels, min_samples_leaf)
            longest = replace(longest, everything=self.cost_scope == "ensemble")
            for n_rounds, scores, read in longest.growing(problem.validation, rounds):
                model = longest.first(n_rounds)
                if reference:
                    model = model.calibrated(problem.validation, problem.y_validation)
                candidate = Candidate(
                    {
                        "price_weight": price_weight,
                        "learning_rate": learning_rate,
                        "split_levels": split_levels,
                        "min_samples_leaf": min_samples_leaf,
                        "n_rounds": n_rounds,
                    },
                    model,
                    partial(model.answer, scores, read),
                )
                if self.allow_empty or model.used.any():
                    read_something = True
                    yield candidate
                elif empty is None:
                    empty = candidate
        if empty is not None and not read_something:
            yield empty

    def _again(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        """Train again; the sigmoids of the reference stay, as there are no rows left to fit them to."""
        assert isinstance(self._model, _Ensemble)
        sigmoids = self._model.sigmoids
        for candidate in super()._again(problem, seed):
            assert isinstance(candidate.model, _Ensemble)
            yield Candidate(candidate.settings, replace(candidate.model, sigmoids=sigmoids))

    def _grid(self, name: str, default: Any, least: float, most: float = np.inf) -> list[Any]:
        """Return the values of a parameter to choose from; ``least`` is a whole number where they have to be."""
        given = getattr(self, name)
        values = np.atleast_1d(np.asarray(default if given is None else given, dtype=object)).ravel().tolist()
        if not values:
            raise InvalidParameterError(f"{name} is empty; give at least one value.")
        return [self._number(name, value, least, most) for value in values]

    @staticmethod
    def _number(name: str, value: Any, least: float, most: float) -> Any:
        whole = isinstance(least, int)
        kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
        if isinstance(value, bool) or not isinstance(value, kinds) or not least <= value <= most:
            upper = "" if np.isinf(most) else f" and at most {most:g}"
            raise InvalidParameterError(
                f"{name} must be {'whole numbers' if whole else 'numbers'} of at least {least:g}{upper}; got {value!r}."
            )
        return int(value) if whole else float(value)


@dataclass(frozen=True)
class _Ensemble:
    """Trees of several rounds, and how their sums become probabilities.

    Attributes
    ----------
    start : ndarray of shape (n_scores,)
        One score for two classes, else one per class.
    columns, thresholds : ndarray of shape (n_rounds, n_scores, n_splits)
    values : ndarray of shape (n_rounds, n_scores, n_nodes)
    used : ndarray of shape (n_encoded,)
        Columns that some tree reads.
    everything : bool
        Whether an input pays for all of them.
    sigmoids : ndarray of shape (n_scores, 2) or None
        Slopes and offsets; None: the scores are those of the logistic function or the softmax.
    """

    start: FloatArray
    columns: NDArray[np.int64]
    thresholds: FloatArray
    values: FloatArray
    used: BoolArray
    everything: bool = False
    sigmoids: FloatArray | None = None

    def first(self, n_rounds: int) -> "_Ensemble":
        """Return the ensemble as it was after some rounds."""
        columns = self.columns[:n_rounds]
        used = np.isin(np.arange(self.used.size), columns)
        return replace(
            self, columns=columns, thresholds=self.thresholds[:n_rounds], values=self.values[:n_rounds], used=used
        )

    def scores(self, Z: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the scores, (n_scores, n_rows), and the columns read."""
        ((_, scores, read),) = self.growing(Z, [len(self.columns)])
        return scores, read

    def growing(self, Z: FloatArray, rounds: Iterable[int]) -> Iterator[tuple[int, FloatArray, BoolArray]]:
        """Yield rising numbers of rounds, with what ``scores`` returns for the ensemble as it was after them."""
        scores = np.repeat(self.start[:, None], Z.shape[1], axis=1)
        read = np.zeros((Z.shape[1], Z.shape[0]), dtype=np.bool_)
        n_done = 0
        for n in rounds:
            new = slice(n_done, n)
            boosting.walk(Z, self.columns[new], self.thresholds[new], self.values[new], scores, read)
            n_done = n
            yield n, scores.copy(), read.copy()

    def calibrated(self, Z: FloatArray, labels: NDArray[np.int64]) -> "_Ensemble":
        """Return the ensemble with sigmoids fitted to labelled rows, smoothed as by Platt (1999)."""
        scores, _ = self.scores(Z)
        sigmoids = np.empty((len(scores), 2))
        for score, is_class, sigmoid in zip(scores, _indicators(labels, len(scores)), sigmoids, strict=True):
            n_true = is_class.sum()
            targets = np.where(is_class, (n_true + 1) / (n_true + 2), 1 / (labels.size - n_true + 2))[None]
            rows = np.vstack([score, np.ones(labels.size)])
            gram, cross, both = np.zeros((2, 2)), np.zeros((1, 2)), np.arange(2)
            logistic.moments(rows, targets, both, gram, cross)
            work = logistic.workspace(1, labels.size, 2)
            arguments = (rows, targets, gram, cross, both, np.array([0, 2]), _CALIBRATION_RIDGE)
            logistic.fit(*arguments, sigmoid.reshape(1, 1, 2), work)
        return replace(self, sigmoids=sigmoids)

    def trace(self, Z: FloatArray) -> Trace:
        return self.answer(*self.scores(Z))

    def answer(self, scores: FloatArray, read: BoolArray) -> Trace:
        """Return class probabilities from scores, and what is read for them."""
        if self.everything:
            read[:] = self.used
        if self.sigmoids is None:
            probabilities = np.empty_like(scores)
            boosting.probabilities(scores, np.empty(scores.shape[1]), probabilities)
        else:
            probabilities = expit(self.sigmoids[:, :1] * scores + self.sigmoids[:, 1:])
            probabilities /= probabilities.sum(axis=0) if len(scores) > 1 else 1.0
        if len(scores) == 1:
            probabilities = np.vstack([1.0 - probabilities, probabilities])
        return Trace(np.ascontiguousarray(probabilities.T), read, np.zeros(len(read), dtype=np.intp))


class _Booster:
    """Trains ensembles on one problem; its columns are sorted once."""

    def __init__(self, problem: Problem, *, reference: bool, largest_step: float) -> None:
        self._reference, self._largest_step = reference, largest_step
        self._Z = np.ascontiguousarray(problem.train)
        order = np.argsort(self._Z, axis=1, kind="stable")
        self._order, self._ascending = order.astype(np.uint32), np.take_along_axis(self._Z, order, axis=1)
        is_class = _indicators(problem.y_train, 1 if problem.n_classes == 2 else problem.n_classes)
        prior = is_class.mean(axis=1)
        if reference:
            self._targets, self._start = 2.0 * is_class - 1.0, 2.0 * prior - 1.0
        else:
            self._targets, self._start = is_class, np.log(prior / (1 - prior) if prior.size == 1 else prior)
        prices = problem.prices
        self._unit_of = problem.unit_columns.argmax(axis=0)
        self._group_of = np.where(prices.groups.any(axis=1), prices.groups @ np.arange(prices.groups.shape[1]), -1)
        total = prices.total if prices.total > 0 else 1.0
        self._own, self._shared = prices.own_prices / total, prices.shared_prices / total

    def train(
        self, price_weight: float, n_rounds: int, learning_rate: float, split_levels: int, min_samples_leaf: int
    ) -> _Ensemble:
        """Return the ensemble of all rounds."""
        shape = n_rounds, len(self._targets), 2**split_levels - 1
        columns = np.empty(shape, dtype=np.int64)
        thresholds = np.zeros(shape)
        values = np.zeros((*shape[:2], 2 * shape[2] + 1))
        weight = price_weight * self._Z.shape[1]
        boosting.boost(
            self._Z, self._order, self._ascending, self._targets, self._start, self._unit_of, weight * self._own,
            weight * self._shared, self._group_of, learning_rate, split_levels, min_samples_leaf, self._largest_step,
            self._reference, columns, thresholds, values,
        )  # fmt: skip
        return _Ensemble(self._start, columns, thresholds, values, np.isin(np.arange(len(self._Z)), columns))


def _indicators(labels: NDArray[np.int64], n_scores: int) -> FloatArray:
    """Return where labels are of each score's class, (n_scores, n_rows); a single score is that of class 1."""
    classes = [1] if n_scores == 1 else range(n_scores)
    return np.array([labels == c for c in classes], dtype=np.float64)
