"""Objectives of counted designs. Only this module divides counts and defines 0/0."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from emsco.arrays import FloatArray, IntArray
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import to_ticks
from emsco.scoring.tally import Tally


class Vectors(Protocol):
    """The view of designs that the ranking uses."""

    @property
    def to_minimise(self) -> FloatArray:
        """The vectors that dominance compares, (n_designs, n_objectives), all to be minimised."""

    @property
    def gains(self) -> FloatArray:
        """The vectors whose norm is the fitness within a rank, each value in [0, 1]; larger is better."""


Measure = Callable[[Tally], Vectors]


@dataclass(frozen=True)
class Objectives:
    """Raw objective values of designs.

    Attributes
    ----------
    coverage : ndarray of shape (n_designs,)
        Share of samples that get a label (g1, Eq. 4).
    accuracy : ndarray of shape (n_designs,)
        Share of the labels that are correct (g2, Eq. 5); 0 inside the search if there is none.
    mean_cost : ndarray of shape (n_designs,)
        Average cost per sample, rejected samples included (g3*, Eq. 6).
    least_price : float
        The smallest price above 0.
    """

    coverage: FloatArray
    accuracy: FloatArray
    mean_cost: FloatArray
    least_price: float

    @property
    def to_minimise(self) -> FloatArray:
        """The vectors that dominance compares, (n_designs, 3), all to be minimised; cost is raw."""
        return np.column_stack([-self.coverage, -self.accuracy, self.mean_cost])

    @property
    def gains(self) -> FloatArray:
        """(g1, g2, g3) of a generation, (n_designs, 3), each in [0, 1]; larger is better."""
        return np.column_stack([self.coverage, self.accuracy, inverse_cost(self.mean_cost, self.least_price)])


def measure(tally: Tally) -> Objectives:
    """Return the objectives of counted designs.

    Equal counts and equal ratios give equal floats, because each value is one correctly rounded division.
    """
    return Objectives(
        coverage=tally.n_conclusive / tally.n_samples,
        accuracy=_share(tally.n_correct, tally.n_conclusive),
        mean_cost=tally.total_ticks / (tally.scale * tally.n_samples),
        least_price=tally.least_price,
    )


def combined_score(tally: Tally, total: float) -> FloatArray:
    """Return coverage + accuracy + saved share of the price of everything (§4.3), per design."""
    figures = measure(tally)
    spent = figures.mean_cost / total if total > 0 else np.zeros(figures.mean_cost.size)
    return np.asarray(figures.coverage + figures.accuracy + 1 - spent)


def inverse_cost(mean_cost: FloatArray, least_price: float) -> FloatArray:
    """Return g3 = (least cost of the generation) / cost (Eq. 7), in (0, 1].

    If the least cost is 0, the ratio would be 0 for every design that costs anything. Both sides are then increased by
    the smallest price above 0: a free design has 1, a design that costs this price 1/2, and others less.

    Examples
    --------
    >>> inverse_cost(np.array([10.0, 20.0]), 5.0)
    array([1. , 0.5])
    >>> inverse_cost(np.array([0.0, 5.0, 15.0]), 5.0)
    array([1.  , 0.5 , 0.25])
    """
    offset = 0.0 if mean_cost.min() > 0 else least_price
    return np.asarray((mean_cost.min() + offset) / (mean_cost + offset))


# ---------------------------------------------------------------- objectives chosen by the user


@dataclass(frozen=True)
class Counts:
    """Counts of designs on the same samples: the argument of an objective function.

    Attributes
    ----------
    n_samples : int
    n_conclusive, n_correct : ndarray of shape (n_designs,)
        Samples that leave with a label, and with a correct label.
    mean_cost : ndarray of shape (n_designs,)
        Average cost per sample, rejected samples included.
    n_stages : ndarray of shape (n_designs,)
    confusion : ndarray of shape (n_designs, n_classes, n_classes)
        ``confusion[d, t, p]``: samples of class t to which design d gives the label p.
    rejected : ndarray of shape (n_designs, n_classes)
        Samples of each class that get no label.
    """

    n_samples: int
    n_conclusive: IntArray
    n_correct: IntArray
    mean_cost: FloatArray
    n_stages: IntArray
    confusion: IntArray
    rejected: IntArray


@dataclass(frozen=True, repr=False)
class Objective:
    """A user-defined objective for ``EMSCOClassifier(objectives=...)``.

    Parameters
    ----------
    name : str
    function : callable
        Takes the counts of some designs (`Counts`) and returns one finite number per design. Each number must depend
        only on the counts of its design.
    maximise : bool
        Whether larger values are better.

    Examples
    --------
    >>> alarms = Objective("false alarms", lambda counts: counts.confusion[:, 0, 1], maximise=False)
    >>> alarms
    Objective('false alarms', emsco.scoring.objectives.<lambda>, maximise=False)
    """

    name: str
    function: Callable[[Counts], ArrayLike]
    _: KW_ONLY
    maximise: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip() or not self.name.isprintable():
            raise InvalidParameterError(f"the name of an objective must be a word or two; got {self.name!r}.")
        if not callable(self.function):
            raise InvalidParameterError(f"the objective {self.name!r} needs a function; got {self.function!r}.")
        if not isinstance(self.maximise, bool):
            raise InvalidParameterError(f"maximise must be True or False; got {self.maximise!r}.")

    def __repr__(self) -> str:
        kind = self.function if hasattr(self.function, "__qualname__") else type(self.function)  # no memory address
        return f"Objective({self.name!r}, {kind.__module__}.{kind.__qualname__}, maximise={self.maximise})"


@dataclass(frozen=True)
class Loss:
    """The objective "loss": mean price of the label, or of no label, per case.

    Parameters
    ----------
    matrix : array-like of shape (n_classes, n_classes)
        Price of each label: one row per true class, one column per label, both in the order of ``classes_``.
    reject : float or array-like of shape (n_classes,)
        Price of giving no label: one number, or one per true class. At 0, rejecting every case is cheapest.

    Examples
    --------
    >>> Loss([[0, 1], [5, 0]], reject=0.5)
    Loss(matrix=((0.0, 1.0), (5.0, 0.0)), reject=(0.5, 0.5))
    """

    matrix: Any
    reject: Any

    def __post_init__(self) -> None:
        try:
            matrix = np.array(self.matrix, dtype=np.float64)
            reject = np.broadcast_to(np.array(self.reject, dtype=np.float64), len(matrix))
        except (TypeError, ValueError) as error:
            raise InvalidParameterError(
                "a loss is a square matrix of prices, and one price of rejection or one per class; got "
                f"{self.matrix!r} and {self.reject!r}."
            ) from error
        if matrix.ndim != 2 or len(matrix) < 2 or matrix.shape[0] != matrix.shape[1]:
            raise InvalidParameterError(
                f"the matrix of a loss has a row and a column per class; got one of shape {matrix.shape}."
            )
        prices = np.column_stack([matrix, reject])
        if not np.isfinite(prices).all() or prices.min() < 0:
            raise InvalidParameterError(f"the prices of a loss are numbers of at least 0; got {prices.tolist()}.")
        object.__setattr__(self, "matrix", tuple(map(tuple, matrix.tolist())))
        object.__setattr__(self, "reject", tuple(reject.tolist()))


@dataclass(frozen=True)
class Recall:
    """The objective "recall_<label>": share of the cases of a class that get its label; larger is better.

    A case without a label is not found.

    Parameters
    ----------
    label : str, int, float or bool
        The class, or its text.

    Examples
    --------
    >>> Recall("sick").name
    'recall_sick'
    """

    label: Any

    def __post_init__(self) -> None:
        label = self.label.item() if isinstance(self.label, np.generic) else self.label
        if not isinstance(label, str | int | float) or not str(label).strip() or not str(label).isprintable():
            raise InvalidParameterError(f"a recall is that of one class; give its label instead of {self.label!r}.")
        object.__setattr__(self, "label", label)

    @property
    def name(self) -> str:
        """Name of the objective in fronts and tables."""
        return f"recall_{self.label}"


class Aims:
    """The chosen objectives: score and compare designs.

    Parameters
    ----------
    objectives : sequence of str, Loss, Recall or Objective
    class_counts : ndarray of shape (n_classes,)
        Number of validation samples of each class.
    classes : sequence
        Labels, in order; needed by ``Recall`` alone.

    Attributes
    ----------
    names : tuple of str
    maximise : tuple of bool
        Whether larger values are better.
    by_class : bool
        Whether samples must be counted by true class and label.
    """

    def __init__(self, objectives: Sequence[Any], class_counts: IntArray, classes: Sequence[Any] = ()) -> None:
        self._aims = [_aim(objective, class_counts, list(classes)) for objective in objectives]
        self.names = tuple(aim.name for aim in self._aims)
        self.maximise = tuple(aim.maximise for aim in self._aims)
        self.by_class = any(aim.by_class for aim in self._aims)

    def score(self, tally: Tally, n_stages: IntArray, confusion: IntArray) -> FloatArray:
        """Return the values of designs, (n_designs, n_objectives)."""
        counts = Counts(
            tally.n_samples,
            tally.n_conclusive,
            tally.n_correct,
            tally.total_ticks / (tally.scale * tally.n_samples),
            n_stages,
            confusion[:, :, :-1],
            confusion[:, :, -1],
        )
        return self.values(counts)

    def values(self, counts: Counts) -> FloatArray:
        """Return the values of counts, (n_designs, n_objectives)."""
        columns = np.column_stack([aim.values(counts) for aim in self._aims])
        return np.ascontiguousarray(columns) + 0.0  # turns -0.0 into 0.0, because vectors are compared bit by bit

    def measure(self, tally: Tally) -> "Chosen":
        """Return the objectives of scored designs."""
        assert tally.values is not None  # the cascade was created with these aims
        gains = [aim.gain(column, tally.least_price) for aim, column in zip(self._aims, tally.values.T, strict=True)]
        return Chosen(np.where(self.maximise, -tally.values, tally.values), np.column_stack(gains))


@dataclass(frozen=True)
class Chosen:
    """Values for dominance and gains for fitness of chosen objectives, both (n_designs, n_objectives)."""

    to_minimise: FloatArray
    gains: FloatArray


def check_objectives(objectives: Any, class_counts: IntArray, classes: Sequence[Any] = ()) -> Aims | None:
    """Return the objectives of the search; None stands for those of the paper, which have a fast path.

    The classes are the labels, in order, which ``Recall`` needs.
    """
    if objectives is None:
        return None
    if isinstance(objectives, str) or not isinstance(objectives, Sequence) or len(objectives) < 2:
        raise InvalidParameterError(
            f"must list at least two of {_CHOICES}; got {objectives!r}.", parameter="objectives"
        )
    aims = Aims(objectives, class_counts, classes)
    twice = sorted({name for name in aims.names if aims.names.count(name) > 1})
    if twice:
        raise InvalidParameterError(f"has {', '.join(twice)} twice; give each once.", parameter="objectives")
    return None if aims.names == PAPER else aims


@dataclass(frozen=True)
class _Aim:
    """An objective: values from counts, and gains in [0, 1] from the values of a generation and the least price.

    A gain is 0 only for the worst value of a generation. A design whose gains are all 0 is therefore in the last
    non-dominated level, where `emsco.scoring.ranking.log_fitness` may give it a fitness of 0.
    """

    name: str
    values: Callable[[Counts], FloatArray]
    gain: Callable[[FloatArray, float], FloatArray]
    maximise: bool = True
    by_class: bool = False


def _share(n_hits: IntArray, n: IntArray) -> FloatArray:
    return np.divide(n_hits, n, out=np.zeros(n.shape), where=n > 0)


def _error_rate(counts: Counts, true: int) -> FloatArray:
    n_true = counts.confusion[:, true].sum(axis=1) + counts.rejected[:, true]
    return _share(counts.confusion[:, true, 1 - true], n_true)


def _worst_class_accuracy(counts: Counts) -> FloatArray:
    given = counts.confusion.sum(axis=2)
    accuracy = _share(np.diagonal(counts.confusion, axis1=1, axis2=2), given)
    return np.asarray(np.where(given + counts.rejected > 0, accuracy, 1.0).min(axis=1))


def _worst_class_recall(counts: Counts) -> FloatArray:
    n_true = counts.confusion.sum(axis=2) + counts.rejected
    recall = _share(np.diagonal(counts.confusion, axis1=1, axis2=2), n_true)
    return np.asarray(np.where(n_true > 0, recall, 1.0).min(axis=1))


def _itself(values: FloatArray, least_price: float) -> FloatArray:
    return values


def _complement(values: FloatArray, least_price: float) -> FloatArray:
    return 1 - values


_AIMS = {
    aim.name: aim
    for aim in (
        _Aim("coverage", lambda counts: counts.n_conclusive / counts.n_samples, _itself),
        _Aim("accuracy", lambda counts: _share(counts.n_correct, counts.n_conclusive), _itself),
        _Aim("cost", lambda counts: counts.mean_cost, inverse_cost, maximise=False),
        _Aim("stages", lambda c: c.n_stages.astype(np.float64), lambda v, _: 1 / np.maximum(v, 1), maximise=False),
        _Aim("fpr", lambda counts: _error_rate(counts, 0), _complement, maximise=False, by_class=True),
        _Aim("fnr", lambda counts: _error_rate(counts, 1), _complement, maximise=False, by_class=True),
        _Aim("worst_class_accuracy", _worst_class_accuracy, _itself, by_class=True),
        _Aim("worst_class_recall", _worst_class_recall, _itself, by_class=True),
    )
}
LOSS = "loss"
PAPER, PAPER_MAXIMISE = ("coverage", "accuracy", "cost"), (True, True, False)
_TAKEN = (  # names of other figures in a front and its tables
    "loss", "mean_cost", "fitness", "combined", "ties", "design", "early_threshold", "last_threshold",
    "worst_recall",
    *(f"{figure}_{end}" for figure in ("coverage", "accuracy", "mean_cost") for end in ("low", "high")),
)  # fmt: skip
_CHOICES = f"{', '.join(map(repr, _AIMS))}, emsco.Loss(...), emsco.Recall(...) and emsco.Objective(...)"
_BY_CLASS = ("recall_", "precision_")  # begin the names of figures of a class


def _aim(objective: Any, class_counts: IntArray, classes: list[Any]) -> _Aim:
    if isinstance(objective, Loss):
        return _loss_aim(objective, class_counts)
    if isinstance(objective, Recall):
        return _recall_aim(objective, classes)
    if isinstance(objective, Objective):
        if objective.name in (*_AIMS, *_TAKEN) or objective.name.startswith(_BY_CLASS):
            raise InvalidParameterError(
                f"has an Objective named {objective.name!r}, the name of another one; rename it.",
                parameter="objectives",
            )
        return _own_aim(objective)
    if isinstance(objective, str) and objective == "loss":
        raise InvalidParameterError(
            "has 'loss', which needs prices: give emsco.Loss(matrix, reject) in its place.", parameter="objectives"
        )
    aim = _AIMS.get(objective) if isinstance(objective, str) else None
    if aim is None:
        raise InvalidParameterError(
            f"must list at least two of {_CHOICES}; got {objective!r} among them.", parameter="objectives"
        )
    if aim.name in ("fpr", "fnr") and class_counts.size != 2:
        raise InvalidParameterError(
            f"has {aim.name}, which is for two classes; there are {class_counts.size}. Use worst_class_accuracy or a "
            "loss.",
            parameter="objectives",
        )
    return aim


def _loss_aim(loss: Loss, class_counts: IntArray) -> _Aim:
    """Return the aim of a loss; the gain is 0 if every sample has the worst outcome of its class, 1 if the best."""
    if len(loss.matrix) != class_counts.size:
        raise InvalidParameterError(
            f"the matrix of the loss is for {len(loss.matrix)} classes, y has {class_counts.size}."
        )
    ticks, scale = to_ticks(np.column_stack([loss.matrix, loss.reject]))  # equal losses are equal floats
    per_sample = scale * class_counts.sum()
    worst, best = (class_counts @ ticks.max(axis=1) / per_sample, class_counts @ ticks.min(axis=1) / per_sample)

    def values(counts: Counts) -> FloatArray:
        given = (counts.confusion * ticks[:, :-1]).sum(axis=(1, 2))
        return np.asarray((given + (counts.rejected * ticks[:, -1]).sum(axis=1)) / per_sample)

    def gain(values: FloatArray, least_price: float) -> FloatArray:
        return (worst - values) / (worst - best) if worst > best else np.ones(values.size)

    return _Aim(LOSS, values, gain, maximise=False, by_class=True)


def _recall_aim(recall: Recall, classes: list[Any]) -> _Aim:
    names = [str(label) for label in classes]
    if str(recall.label) not in names:
        raise InvalidParameterError(
            f"has Recall({recall.label!r}), but the classes are {classes}.", parameter="objectives"
        )
    true = names.index(str(recall.label))

    def values(counts: Counts) -> FloatArray:
        n_true = counts.confusion[:, true].sum(axis=1) + counts.rejected[:, true]
        return _share(counts.confusion[:, true, true], n_true)

    return _Aim(recall.name, values, _itself, by_class=True)


def _own_aim(objective: Objective) -> _Aim:
    """Return the aim of a user's function; the gain is its position between worst and best of the generation."""

    def values(counts: Counts) -> FloatArray:
        returned = objective.function(counts)
        try:
            numbers = np.asarray(returned, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.empty(0)
        if numbers.shape != counts.n_stages.shape or not np.isfinite(numbers).all():
            raise InvalidParameterError(
                f"the objective {objective.name!r} must return a finite number for each of {counts.n_stages.size} "
                f"designs; got {returned!r}."
            )
        return numbers

    def gain(values: FloatArray, least_price: float) -> FloatArray:
        low, high = values.min() / 2, values.max() / 2  # halves, because the difference could overflow
        if low == high:
            return np.ones(values.size)
        gained = values / 2 - low if objective.maximise else high - values / 2
        return np.asarray(gained / (high - low))

    return _Aim(objective.name, values, gain, objective.maximise, by_class=True)
