"""Common base of the competing methods: encoded table, prices, reject rule and accounting of purchases.

A method trains models. A model returns, for each case, class probabilities and the encoded columns it has read
(`Trace`). Labels, rejects and costs are derived here, in one place, so that all methods are charged in the same way.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from emsco.checks import check_seed
from emsco.data.encoding import Encoder
from emsco.data.labels import check_target, plain_labels
from emsco.data.splits import check_columns, split_rows
from emsco.data.table import Rows, Table, check_size
from emsco.deployed.decide import Decisions
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidPricesError, InvalidTargetError
from emsco.prices.prices import Costs, PriceList, resolve
from emsco.scoring.rejection import check_threshold, is_confident
from emsco.stages.base import outcomes_of
from emsco.stages.learners import check_learning
from emsco.stages.problem import Problem, unit_membership

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Trace:
    """Predictions of a model, and the columns it has read for them.

    Attributes
    ----------
    probabilities : ndarray of shape (n_rows, n_classes)
    read : ndarray of shape (n_rows, n_encoded)
        Encoded columns read; reading one buys the unit that yields it.
    exit : ndarray of shape (n_rows,)
        Stage, leaf or tree where the case left; 0 if there is none.
    stages : sequence of ndarray of int, or None
        For a model with stages, the encoded columns known at each; cases then pay stage by stage. None: a case pays for
        all columns that it reads as for one stage.
    """

    probabilities: FloatArray
    read: BoolArray
    exit: NDArray[np.intp]
    stages: Sequence[NDArray[np.intp]] | None = None


class Model(Protocol):
    """A trained model of a method."""

    def trace(self, Z: FloatArray) -> Trace:
        """Decide encoded cases, (n_encoded, n_rows); a column that a case does not read must not affect it."""


@dataclass(frozen=True)
class Candidate:
    """A model and its settings, to be evaluated on validation rows.

    Attributes
    ----------
    settings : dict
    model : Model
    answer : callable, optional
        Gives what ``model.trace`` gives for the validation rows, if other candidates have done a part of it.
    """

    settings: dict[str, Any]
    model: Model
    answer: Callable[[], Trace] | None = None


@dataclass(frozen=True)
class Figures:
    """Figures of a model on labelled rows.

    Attributes
    ----------
    coverage, accuracy, mean_cost : float
        The accuracy is NaN if no label is given.
    total : float
        Price of everything.
    """

    coverage: float
    accuracy: float
    mean_cost: float
    total: float

    @property
    def combined(self) -> float:
        """The paper's combined score: coverage + accuracy (0 if undefined) + saved share of the price."""
        saved = 1 - self.mean_cost / self.total if self.total > 0 else 1.0
        return float(self.coverage + np.nan_to_num(self.accuracy) + saved)


def combined(figures: Figures) -> float:
    """Return the paper's combined score, the default criterion for tuning."""
    return figures.combined


def accuracy_within(budget: float) -> Callable[[Figures], float]:
    """Return a criterion: the accuracy of models whose mean cost is within a budget."""

    def criterion(figures: Figures) -> float:
        return float(np.nan_to_num(figures.accuracy)) if figures.mean_cost <= budget else -figures.mean_cost

    return criterion


class Rival(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A competing method as a scikit-learn classifier.

    A subclass stores its parameters in ``__init__`` (at least ``threshold``, ``criterion``, ``validation`` and
    ``random_state``) and yields the models to choose from in ``_candidates``.

    Attributes
    ----------
    settings_ : dict
        Settings of the chosen model.
    table_ : list of dict
        Settings and validation figures of every candidate.
    prices_ : PriceList
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    """

    tunes: ClassVar[bool] = True  # whether it needs validation rows; otherwise it trains on all rows
    grids: ClassVar[Mapping[str, str]] = {}  # by setting, the parameter that lists its values

    threshold: float
    criterion: Callable[[Figures], float]
    validation: float
    random_state: Any
    settings_: dict[str, Any]

    @abstractmethod
    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        """Train models; among equal ones, the first is preferred."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        costs: Costs = None,
        X_val: Any = None,
        y_val: ArrayLike | None = None,
        *,
        encoding: str = "linear",
    ) -> Self:
        """Train, and choose the settings on validation rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)
        costs : None, array-like, mapping or Prices
            As for `EMSCOClassifier`.
        X_val, y_val : like X and y, optional
            Rows for choosing the settings. Without them, a share ``validation`` of X.
        encoding : "linear", "rank", "spline" or "raw"
            Encoding of numbers, as in `EMSCOClassifier`.

        Returns
        -------
        self
        """
        threshold = check_threshold(self.threshold)
        seed = check_seed(self.random_state)
        if not callable(self.criterion):
            raise InvalidParameterError(f"criterion must be a function of Figures; got {self.criterion!r}.")
        if (X_val is None) != (y_val is None):
            raise InvalidInputError("give X_val and y_val together, or neither.")
        problem = self._problem(X, y, costs, X_val, y_val, seed, encoding)
        self._choose(self._candidates(problem, seed), problem, threshold)
        return self

    def refit(self, X: Any, y: ArrayLike, costs: Costs = None) -> Self:
        """Train the chosen settings again, on other rows: usually on the training and validation rows together.

        The settings stay as they are; nothing is tuned again. If a method cannot offer the same settings on these rows
        (a path of penalties that ends earlier), it trains the nearest ones.

        Parameters
        ----------
        X, y, costs
            As for ``fit``.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        seed = check_seed(self.random_state)
        problem = self._problem(X, y, costs, X, y, seed, self._encoding)
        best: tuple[int, float] | None = None
        for candidate in self._again(problem, seed):
            nearness = _nearness(candidate.settings, self.settings_)
            if best is None or nearness > best:
                best, self._model = nearness, candidate.model
            if nearness[0] == len(self.settings_):
                break
        return self

    def _again(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        """Train models with the chosen settings, and perhaps others."""
        narrow = copy(self)  # which knows the prices and columns of the problem
        for setting, parameter in self.grids.items():
            value, single = self.settings_[setting], isinstance(getattr(self, parameter), int | float)
            narrow.set_params(**{parameter: value if single else (value,)})
        return narrow._candidates(problem, seed)

    def _problem(
        self, X: Any, y: ArrayLike, costs: Costs, X_val: Any, y_val: ArrayLike | None, seed: int, encoding: str
    ) -> Problem:
        """Return encoded rows and prices, and remember how they were encoded."""
        check_learning(encoding, 1.0, automatic=False)
        table = Table(X)
        check_size(table)
        self._check_names(X, reset=True)
        codes, classes = check_target(y, table.n_rows)
        prices = resolve(costs, table.names)
        if prices.sources:
            raise InvalidPricesError(
                "has derived units, which the baselines do not know; give prices.", parameter="costs"
            )
        train_rows: Rows = slice(None)
        validation_rows: Rows = slice(None)
        validation_table, validation_codes = table, codes
        if X_val is not None:
            validation_table = Table(X_val)
            check_size(validation_table)
            check_columns(validation_table, table)
            validation_codes = _known_codes(y_val, classes, validation_table.n_rows)
        elif self.tunes:
            train_rows, validation_rows = split_rows(codes, self.validation, np.random.default_rng(seed), classes)
            validation_codes = codes[validation_rows]
        encoder = Encoder(table, train_rows, validation_table, encoding=encoding)
        problem = Problem(
            train=encoder.encode(table, train_rows),
            y_train=codes[train_rows].copy(),
            validation=encoder.encode(validation_table, validation_rows),
            y_validation=validation_codes.copy(),
            n_classes=classes.size,
            unit_columns=unit_membership(encoder, prices),
            prices=prices,
        )
        self._encoder, self._named, self._unit_columns = encoder, table.named, problem.unit_columns
        self._encoding, self.prices_, self.classes_ = encoding, prices, classes
        return problem

    def _choose(self, candidates: Iterable[Candidate], problem: Problem, threshold: float) -> None:
        """Keep the best candidate by the criterion; on a tie the cheaper one, then the first.

        A model that reads nothing predicts the class prior for every case. If the prior reaches the threshold (Pima),
        it would have the best combined score; it is kept only if there is no other.
        """
        best: tuple[bool, float, float] | None = None
        self.table_: list[dict[str, Any]] = []
        for candidate in candidates:
            trace = candidate.answer() if candidate.answer else candidate.model.trace(problem.validation)
            figures = measure(trace, problem.y_validation, self._cost(trace)[1], threshold, problem.prices)
            reads = bool(trace.read.any()) or getattr(self, "allow_empty", False)
            score = reads, float(self.criterion(figures)), -figures.mean_cost
            self.table_.append({**candidate.settings, **vars(figures), "score": score[1]})
            if best is None or score > best:
                best = score
                self._model, self.settings_ = candidate.model, candidate.settings
        if best is None:
            raise InvalidParameterError("there are no settings to choose from.")

    def trace(self, X: Any) -> Trace:
        """Return class probabilities, the encoded columns read, and the exit of each row."""
        check_is_fitted(self)
        return self._model.trace(self._encode(X)[0])

    def decide(self, X: Any) -> Decisions:
        """Decide or reject each row; the result includes the purchases.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            All columns of the training table.

        Returns
        -------
        Decisions
        """
        check_is_fitted(self)
        encoded, index = self._encode(X)
        trace = self._model.trace(encoded)
        bought, cost = self._cost(trace)
        confidence, code = outcomes_of(trace.probabilities)
        conclusive = is_confident(confidence, check_threshold(self.threshold))
        label = np.ma.MaskedArray(self.classes_.take(code), mask=~conclusive)
        rows = np.arange(len(code))
        return Decisions(label, conclusive, confidence, trace.exit, cost, index, bought, rows)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return class probabilities, confident or not.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        encoded = self._encode(X)[0]
        self._check_names(X, reset=False)
        return np.ascontiguousarray(self._model.trace(encoded).probabilities)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class for every row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        code = outcomes_of(self.predict_proba(X))[1]
        labels: NDArray[Any] = self.classes_[code]
        return labels

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _encode(self, X: Any) -> tuple[FloatArray, Any]:
        """Return the encoded table, (n_encoded, n_rows), and its index; columns are matched by name."""
        table = Table(X)
        check_size(table)
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.isinf(X).any():
            raise InvalidInputError("X contains inf; replace it by a finite number, or by NaN if it is unknown.")
        names = [code.name for code in self._encoder.codes]
        if table.named and self._named:
            absent = [name for name in names if name not in table.names]
            if absent:
                raise InvalidInputError(f"X has no column {absent}; {type(self).__name__} needs all of them.")
            positions = [table.names.index(name) for name in names]
        elif len(table.names) == len(names):
            positions = list(range(len(names)))
        else:
            raise InvalidInputError(
                f"X has {len(table.names)} features, but {type(self).__name__} is expecting {len(names)} features as "
                "input; give all of them, in the same order."
            )
        encoded = np.empty((self._encoder.n_encoded, table.n_rows))
        for c, position in enumerate(positions):
            self._encoder.encode_column(c, table.column(position), slice(None), encoded)
        return encoded, table.index

    def _cost(self, trace: Trace) -> tuple[BoolArray, FloatArray]:
        """Return the units that each case has bought, and its cost."""
        bought = self._units(trace.read)
        if trace.stages is None:
            return bought, cost_of(bought, self.prices_)
        known = np.zeros((len(trace.stages), trace.read.shape[1]), dtype=np.bool_)
        for stage, columns in zip(known, trace.stages, strict=True):
            stage[columns] = True
        return bought, self.prices_.paid(self._units(known)).take(trace.exit)

    def _units(self, columns: BoolArray) -> BoolArray:
        """Return the units that yield encoded columns, (n, n_units)."""
        return (columns.astype(np.float64) @ self._unit_columns.T.astype(np.float64)) > 0

    def _check_names(self, X: Any, *, reset: bool) -> None:
        try:
            validate_data(self, X, reset=reset, skip_check_array=True)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(str(error)) from error


def cost_of(bought: BoolArray, prices: PriceList) -> FloatArray:
    """Return the cost of buying units in one stage, for each case."""
    return np.asarray(prices.stage_ticks(bought[:, None, :])[:, 0] / prices.scale)


def measure(trace: Trace, truth: NDArray[np.int64], cost: FloatArray, threshold: float, prices: PriceList) -> Figures:
    """Return coverage, accuracy and mean cost at a threshold."""
    confidence, code = outcomes_of(trace.probabilities)
    given = is_confident(confidence, threshold)
    accuracy = float((code == truth)[given].mean()) if given.any() else np.nan
    return Figures(float(given.mean()), accuracy, float(cost.mean()), prices.total)


def _nearness(settings: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[int, float]:
    """Return how many settings are as wanted, and the negative sum of the differences of the numbers among them."""
    apart = sum(
        abs(settings[name] - value)
        for name, value in wanted.items()
        if isinstance(value, int | float) and isinstance(settings.get(name), int | float)
    )
    return sum(settings.get(name) == value for name, value in wanted.items()), -float(apart)


def _known_codes(y: Any, classes: NDArray[Any], n_rows: int) -> NDArray[np.int64]:
    """Return labels as indices of the training classes; a class may be absent."""
    labels = plain_labels(y)
    if labels.shape != (n_rows,):
        raise InvalidTargetError(f"y_val has the shape {labels.shape}, X_val has {n_rows} rows; give a label per row.")
    known = np.isin(labels, classes)
    if not known.all():
        raise InvalidTargetError(f"y_val holds {labels[~known][0]!r}, which y does not; leave such rows out.")
    return np.searchsorted(classes, labels).astype(np.int64)
