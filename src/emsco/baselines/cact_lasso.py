"""CaCT LASSO: an l1 logistic regression with a penalty chosen by coverage, accuracy and cost (BASELINES §8.2)."""

from collections.abc import Callable, Iterable
from typing import Any
import warnings

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from emsco.baselines import _lasso as kernel
from emsco.baselines.base import Candidate, Figures, FloatArray, Rival, Trace, combined
from emsco.baselines.settings import check_grid
from emsco.exceptions import InvalidParameterError
from emsco.stages.logistic import LogisticModel, LogisticTrainer
from emsco.stages.problem import Problem

PAPER_GRID = np.arange(1001) / 10  # 0, 0.1, ..., 100
_TOLERANCE = 1e-8  # of the optimality conditions, per training row
_NEXT_TO_NO_RIDGE = 1e-6


class CaCTLasso(Rival):
    """Cost-and-coverage-tuned LASSO of Hamilton & Fulp (2021): one stage with the features that an l1 penalty keeps.

    Every case buys each unit that has a column with a non-zero weight in any class. Prices do not influence the
    training. They influence the choice of the penalty, by the paper's combined score on validation rows.

    The paper does not define its penalty. Here the objective is the *sum* of the log-losses plus penalty times the l1
    norm, so a penalty is 1 / C of scikit-learn. With the mean of the losses, nearly all of the paper's grid would give
    empty models. All penalties are solved along one path with warm starts, up to the optimality conditions.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    penalties : array-like or None
        Values to choose from. None: the paper's grid, 0, 0.1, ..., 100. At 0, a ridge of 1e-6 keeps the weights finite
        if the classes are separable.
    convention : "sum" or "mean"
        Whether the penalty is added to the sum of the log-losses, or to their mean.
    allow_empty : bool
        Whether a model that reads nothing and predicts the class frequencies may be chosen. If the share of the most
        frequent class reaches the threshold, such a model is hard to beat, and the paper evidently did not choose it.
        (Nearly empty models are as hard to beat, and are allowed.) If all models are empty, one of them is used.
    criterion : callable
        Function of `Figures` to maximise on the validation rows.
    validation : float
        Share of validation rows, unless ``fit`` receives validation rows.
    random_state : int, RandomState or None
        Seeds the split.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> CaCTLasso(penalties=[30], random_state=0).fit(X, y, costs=[1, 1, 5, 5]).decide(X).cost[:2]
    array([10., 10.])
    """

    def __init__(
        self,
        threshold: float = 0.75,
        penalties: ArrayLike | None = None,
        convention: str = "sum",
        allow_empty: bool = False,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.penalties = penalties
        self.convention = convention
        self.allow_empty = allow_empty
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        grid = check_grid(PAPER_GRID if self.penalties is None else self.penalties, "penalties")
        if self.convention not in ("sum", "mean"):
            raise InvalidParameterError(f"convention must be 'sum' or 'mean'; got {self.convention!r}.")
        factor = 1.0 if self.convention == "sum" else float(problem.y_train.size)
        weights = lasso_path(problem, grid * factor)
        reads = (weights[:, :, :-1] != 0).any(axis=1)
        offered = np.ones(grid.size, dtype=np.bool_) if self.allow_empty else reads.any(axis=1)
        if not offered.any():
            offered[0] = True
        for i in np.flatnonzero(offered):
            yield Candidate({"penalty": float(grid[i])}, _Sparse(weights[i], np.flatnonzero(reads[i])))


class _Sparse:
    """A linear model that reads the columns with non-zero weights."""

    def __init__(self, weights: FloatArray, columns: Any) -> None:
        self._columns = columns
        self._model = LogisticModel(weights[:, columns], weights[:, -1])

    def trace(self, Z: FloatArray) -> Trace:
        n_encoded, n_rows = Z.shape
        read = np.zeros((n_rows, n_encoded), dtype=np.bool_)
        read[:, self._columns] = True
        return Trace(self._model.predict_proba(Z[self._columns].T), read, np.zeros(n_rows, dtype=np.intp))


def lasso_path(problem: Problem, penalties: FloatArray) -> FloatArray:
    """Return the minimisers of sum of log-losses + penalty * ||coefficients||_1 on the training rows.

    Parameters
    ----------
    problem : Problem
    penalties : ndarray of shape (n_penalties,)
        Descending, at least 0.

    Returns
    -------
    ndarray of shape (n_penalties, n_logits, n_encoded + 1)
        The intercept last; one logit for two classes, else one per class.
    """
    Z = np.vstack([problem.train, np.ones(problem.y_train.size)])
    classes = [1] if problem.n_classes == 2 else list(range(problem.n_classes))
    targets = np.array([problem.y_train == c for c in classes], dtype=np.float64)
    priors = targets.mean(axis=1)
    weights = np.zeros((penalties.size, len(classes), len(Z)))
    weights[0, :, -1] = np.log(priors / (1 - priors)) if len(classes) == 1 else np.log(priors)
    above = np.ascontiguousarray(penalties[penalties > 0])
    tolerance = _TOLERANCE * problem.y_train.size
    n_failed = kernel.path(Z, targets, np.arange(len(Z)), above, tolerance, weights[: above.size])
    if n_failed:
        warnings.warn(
            f"{n_failed} of {above.size} l1 logistic regressions did not converge; is a column on a scale of its own?",
            ConvergenceWarning,
            stacklevel=2,
        )
    if above.size < penalties.size:
        everything = np.ones((1, problem.prices.n_units), dtype=np.bool_)
        weights[-1] = LogisticTrainer(problem, C=1 / _NEXT_TO_NO_RIDGE).train(everything)[0]
    if len(classes) > 1:
        weights[:, :, -1] -= weights[:, :, -1].mean(axis=1, keepdims=True)  # adding to all of them changes nothing
    return weights
