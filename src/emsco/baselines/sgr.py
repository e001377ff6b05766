"""SGR: one classifier on all features that answers only where a bound on its risk allows it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from emsco.arrays import IntArray
from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.grid import numbers
from emsco.baselines.price_stages import make_folds
from emsco.baselines.settings import check_count
from emsco.exceptions import InvalidParameterError
from emsco.scoring.rejection import check_threshold
from emsco.stages.base import StageModel, outcomes_of
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem


class SGR(Rival):
    """Selection with guaranteed risk (Geifman & El-Yaniv, NIPS 2017) with a logistic regression on all features.

    Every case pays for everything. The method looks for the lowest confidence above which the error, with probability
    1 - ``delta``, is at most 1 - ``threshold``: a binary search over the confidences of rows that did not train the
    classifier, each step with its share of ``delta``, by the exact binomial bound. If no confidence keeps the bound,
    nothing gets a label.

    Parameters
    ----------
    threshold : float
        Least accuracy of the labels; 0 gives a label to every case.
    delta : float
        Probability that the bound fails.
    C : sequence of float
        Inverse regularisation strengths to choose from.
    n_folds : int
        The confidences are those of cross-validation with so many folds on the training rows, so that the bound costs
        no rows. The publication uses rows set aside; with folds, its guarantee holds only approximately.
    criterion, validation, random_state
        As in every method.

    Notes
    -----
    The confidence that this method returns is rescaled by a line from the found level on, and by another one below it,
    so that the level becomes ``threshold``. The order of the cases stays the same.
    """

    grids: ClassVar[Mapping[str, str]] = {"C": "C"}

    def __init__(
        self,
        threshold: float = 0.75,
        delta: float = 0.05,
        C: Sequence[float] = (0.1, 1.0, 10.0),
        n_folds: int = 5,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.delta = delta
        self.C = C
        self.n_folds = n_folds
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        threshold = check_threshold(self.threshold)
        strengths = numbers(self.C, "C", least=1e-12)
        n_folds = check_count(self.n_folds, "n_folds", 2)
        if not isinstance(self.delta, float | np.floating) or not 0 < self.delta < 1:
            raise InvalidParameterError(f"delta must be a number between 0 and 1; got {self.delta!r}.")
        folds = make_folds(problem.y_train, n_folds, np.random.default_rng(seed))
        for C in strengths:
            confidence, correct = held_out(problem, folds, C)
            level = least_confidence(confidence, correct, 1 - threshold, float(self.delta))
            yield Candidate({"C": C}, _Selective(_everything(problem, C), level, threshold))


def least_confidence(confidence: FloatArray, correct: NDArray[np.bool_], risk: float, delta: float) -> float:
    """Return the lowest confidence found whose answers keep a risk with probability 1 - delta; infinity if none does.

    Parameters
    ----------
    confidence, correct : ndarray of shape (n_rows,)
        Of rows that did not train the classifier.
    risk : float
        Largest share of errors.
    delta : float

    Notes
    -----
    Algorithm 2 of the publication: a binary search over the sorted confidences, ceil(log2(n)) steps, each with delta
    divided by their number.
    """
    if risk >= 1:
        return 0.0
    order = np.argsort(confidence, kind="stable")
    ascending, wrong = confidence[order], ~correct[order]
    n = ascending.size
    n_steps = max(int(np.ceil(np.log2(n))), 1)
    low, high, best = 0, n - 1, np.inf
    for _ in range(n_steps):
        middle = -(-(low + high) // 2)
        first = int(np.searchsorted(ascending, ascending[middle]))  # all rows of this confidence answer
        if risk_bound(int(wrong[first:].sum()), n - first, delta / n_steps) <= risk:
            best = min(best, float(ascending[middle]))
            high = middle
        else:
            low = middle
    return best


def risk_bound(n_wrong: int, n_rows: int, delta: float) -> float:
    """Return the largest risk that gives so few errors with probability delta (Clopper & Pearson).

    Examples
    --------
    >>> round(risk_bound(0, 10, 0.05), 6) == round(1 - 0.05 ** (1 / 10), 6)
    True
    """
    return 1.0 if n_wrong >= n_rows else float(beta.ppf(1 - delta, n_wrong + 1, n_rows - n_wrong))


def held_out(problem: Problem, folds: IntArray, C: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return confidence and correctness of training rows, each by a classifier that did not see it."""
    confidence, correct = np.empty(folds.size), np.empty(folds.size, dtype=np.bool_)
    for fold in np.unique(folds[folds >= 0]):
        rows = folds == fold
        part = _rows(problem, ~rows)
        answers = _everything(part, C).predict_proba(problem.train[:, rows].T)
        confidence[rows], label = outcomes_of(answers)
        correct[rows] = label == problem.y_train[rows]
    known = folds >= 0  # a class of one row only trains
    return confidence[known], correct[known]


def _rows(problem: Problem, rows: NDArray[np.bool_]) -> Problem:
    return Problem(
        problem.train[:, rows], problem.y_train[rows], problem.validation, problem.y_validation, problem.n_classes,
        problem.unit_columns, problem.prices,
    )  # fmt: skip


def _everything(problem: Problem, C: float) -> StageModel:
    units = np.ones((1, problem.prices.n_units), dtype=np.bool_)
    trainer = LogisticTrainer(problem, C=C)
    return trainer.models(units, trainer.train(units))[0]


class _Selective:
    """A classifier of all columns whose confidence is rescaled."""

    def __init__(self, model: StageModel, level: float, threshold: float) -> None:
        self._model, self._level, self._threshold = model, level, threshold

    def trace(self, Z: FloatArray) -> Trace:
        answers = self._model.predict_proba(Z.T)
        confidence, label = outcomes_of(answers)
        rescaled = rescale(confidence, self._level, self._threshold, 1 / answers.shape[1])
        others = np.where(confidence < 1, (1 - rescaled) / np.maximum(1 - confidence, 1e-300), 1.0)
        answers = answers * others[:, None]
        answers[np.arange(label.size), label] = rescaled
        answers /= answers.sum(axis=1, keepdims=True)
        answers[np.arange(label.size), label] = rescaled  # exactly, for the comparison with the threshold
        read = np.ones((Z.shape[1], len(Z)), dtype=np.bool_)
        return Trace(answers, read, np.zeros(Z.shape[1], dtype=np.intp))


def rescale(confidence: FloatArray, level: float, threshold: float, least: float) -> FloatArray:
    """Return confidences moved so that ``level`` becomes ``threshold``; ``least`` and 1 stay.

    A threshold up to ``least`` is below every confidence, so that nothing needs to be moved. An infinite level puts
    every confidence below the threshold.
    """
    if threshold <= least or level <= least:
        return np.maximum(confidence, threshold) if threshold > least else confidence
    below = np.nextafter(threshold, 0)
    share = np.clip((confidence - least) / (min(level, 1.0) - least), 0, 1)
    low = np.minimum(least + share * (threshold - least), below)
    high = threshold + np.clip((confidence - level) / max(1 - level, 1e-300), 0, 1) * (1 - threshold)
    return np.where(confidence >= level, high, low)
