"""Scorers for ``cross_val_score`` and ``GridSearchCV``: ``scorer(estimator, X, y)``; larger is better.

``scoring="accuracy"`` gives every row a label and ignores the cost; these see what ``decide`` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from emsco.deployed.decide import Decisions
from emsco.exceptions import InvalidInputError, InvalidParameterError
from emsco.metrics.decided import coverage_score, mean_cost, money_per_case, recall_by_class, selective_accuracy
from emsco.metrics.ranked import accuracy_at_coverage, area_under_risk_coverage
from emsco.scoring.objectives import Loss
from emsco.stages.base import outcomes_of


class Scorer(Protocol):
    """A number for a fitted estimator on labelled rows; larger is better."""

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        """Return the score."""


def coverage_scorer() -> Scorer:
    """Return a scorer: the share of the rows that get a label."""
    return _Coverage()


def selective_accuracy_scorer(*, min_coverage: float = 0.0) -> Scorer:
    """Return a scorer: the accuracy of the labels given, 0 if there are too few.

    Parameters
    ----------
    min_coverage : float
        Share of the rows that must get a label, else the score is 0. Without it, an estimator that labels one row,
        correctly, has the best score.
    """
    return _SelectiveAccuracy(_share(min_coverage, "min_coverage"))


def accuracy_at_coverage_scorer(*, coverage: float = 0.9) -> Scorer:
    """Return a scorer: the accuracy of the most confident labels that cover a share of the rows.

    It does not depend on the threshold of the last stage, so it suits the choice of an encoding or a learner. It works
    with any classifier that has ``predict_proba``.

    Parameters
    ----------
    coverage : float
    """
    return _AccuracyAtCoverage(_share(coverage, "coverage"))


def area_under_risk_coverage_scorer(*, excess: bool = False) -> Scorer:
    """Return a scorer: minus the area under the risk-coverage curve.

    It works with any classifier that has ``predict_proba``.

    Parameters
    ----------
    excess : bool
        As in ``area_under_risk_coverage``.
    """
    return _RiskCoverage(excess)


def mean_cost_scorer() -> Scorer:
    """Return a scorer: minus the mean cost per row."""
    return _MeanCost()


def recall_scorer(label: Any = None) -> Scorer:
    """Return a scorer: the share of the rows of a class that get its label.

    Parameters
    ----------
    label : Any
        The class. None: the least recall of all classes.
    """
    return _Recall(label)


def money_per_case_scorer(errors: ArrayLike | Loss, reject: float | Sequence[float] = 0.0) -> Scorer:
    """Return a scorer: minus the mean price of a case, its features and its errors.

    Parameters
    ----------
    errors : array-like of shape (n_classes, n_classes), or Loss
        Price of each label in the unit of the feature prices: one row per true class, one column per label, both in
        the order of ``classes_``.
    reject : float or sequence of shape (n_classes,)
        Price of giving no label.
    """
    return _Money(errors if isinstance(errors, Loss) else Loss(errors, reject))


def make_scorers(
    errors: ArrayLike | Loss | None = None, reject: float | Sequence[float] = 0.0, *, coverage: float = 0.9
) -> dict[str, Scorer]:
    """Return all scorers by name, for ``cross_validate(clf, X, y, scoring=make_scorers())``.

    Parameters
    ----------
    errors, reject
        As in ``money_per_case_scorer``; None: without that scorer.
    coverage : float
        As in ``accuracy_at_coverage_scorer``.

    Returns
    -------
    dict
        Names that begin with ``neg_`` are those of scorers whose figure has a minus sign, as in scikit-learn.
    """
    scorers: dict[str, Scorer] = {
        "coverage": coverage_scorer(),
        "selective_accuracy": selective_accuracy_scorer(),
        "accuracy_at_coverage": accuracy_at_coverage_scorer(coverage=coverage),
        "neg_area_under_risk_coverage": area_under_risk_coverage_scorer(),
        "worst_recall": recall_scorer(),
        "neg_mean_cost": mean_cost_scorer(),
    }
    if errors is not None:
        scorers["neg_money_per_case"] = money_per_case_scorer(errors, reject)
    return scorers


# Each scorer is a small class, not a closure: cross_val_score(n_jobs=2) has to send it to another process.


@dataclass(frozen=True)
class _Coverage:
    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        return coverage_score(_decide(estimator, X))


@dataclass(frozen=True)
class _SelectiveAccuracy:
    min_coverage: float

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        decisions = _decide(estimator, X)
        accuracy = selective_accuracy(y, decisions)
        return accuracy if coverage_score(decisions) >= self.min_coverage and not np.isnan(accuracy) else 0.0


@dataclass(frozen=True)
class _AccuracyAtCoverage:
    coverage: float

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        return accuracy_at_coverage(y, *_guesses(estimator, X), coverage=self.coverage)


@dataclass(frozen=True)
class _RiskCoverage:
    excess: bool

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        return -area_under_risk_coverage(y, *_guesses(estimator, X), excess=self.excess)


@dataclass(frozen=True)
class _MeanCost:
    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        return -mean_cost(_decide(estimator, X))


@dataclass(frozen=True)
class _Recall:
    label: Any

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        recalls = recall_by_class(y, _decide(estimator, X))
        if self.label is None:
            return min(recalls.values())
        if self.label not in recalls:
            raise InvalidParameterError(
                f"must be one of the labels of the rows, {list(recalls)}; got {self.label!r}.", parameter="label"
            )
        return recalls[self.label]


@dataclass(frozen=True)
class _Money:
    loss: Loss

    def __call__(self, estimator: Any, X: Any, y: ArrayLike) -> float:
        return -money_per_case(y, _decide(estimator, X), self.loss, labels=estimator.classes_)


def _share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
        raise InvalidParameterError(f"must be a share between 0 and 1; got {value!r}.", parameter=name)
    return float(value)


def _decide(estimator: Any, X: Any) -> Decisions:
    """Return the decisions of an estimator, or of the last step of a pipeline."""
    if hasattr(estimator, "decide"):
        return estimator.decide(X)  # type: ignore[no-any-return]
    if hasattr(estimator, "steps") and hasattr(estimator[-1], "decide"):
        return estimator[-1].decide(estimator[:-1].transform(X))  # type: ignore[no-any-return]
    raise InvalidInputError(
        f"{type(estimator).__name__} has no decide; this scorer needs an EMSCOClassifier or a MultiStageClassifier, or "
        "a pipeline that ends in one."
    )


def _guesses(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Return the best guess of each row, and its confidence."""
    confidence, codes = outcomes_of(np.asarray(estimator.predict_proba(X), dtype=np.float64))
    return np.asarray(estimator.classes_)[codes], confidence
