"""The default stage classifier: l2 logistic regressions, many feature sets trained as one batch."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.stages import _logistic as kernel
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, outcomes_of
from emsco.stages.problem import Problem

_TASKS_PER_THREAD = 4  # enough to even out the load, few enough not to be felt
_LABEL = np.uint8
_LEAST_SHARE = 1e-12  # of a class that no training row has


class LogisticModel:
    """A trained logistic regression, with scikit-learn's attributes.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_columns) for two classes, else (n_classes, n_columns)
        Weights of the encoded columns.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    """

    def __init__(self, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> None:
        self.coef_ = np.ascontiguousarray(coef)
        self.intercept_ = np.ascontiguousarray(intercept)
        self.classes_ = np.arange(max(len(self.intercept_), 2))

    def predict_proba(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return class probabilities of encoded rows (n_rows, n_columns); fastest on a Fortran-ordered X."""
        Z = np.ascontiguousarray(X.T)
        probabilities = kernel.predict(Z, np.arange(len(Z)), self.coef_, self.intercept_)
        return np.asarray(probabilities).T

    def predict(self, X: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the index of the most probable class."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))


def constant_model(codes: NDArray[Any], n_classes: int) -> LogisticModel:
    """Return the model that knows no column: for every row the shares of the classes.

    Examples
    --------
    >>> constant_model(np.array([0, 1, 1, 1]), 2).predict_proba(np.empty((1, 0)))
    array([[0.25, 0.75]])
    """
    shares = np.bincount(codes, minlength=n_classes) / codes.size
    logits = np.log(np.maximum(shares, _LEAST_SHARE))
    intercept = logits[1:] - logits[:1] if n_classes == 2 else logits
    return LogisticModel(np.zeros((intercept.size, 0)), intercept)


class LogisticTrainer:
    """Batched l2 logistic regressions: scikit-learn's objective, intercept unpenalised.

    Parameters
    ----------
    problem : Problem
    C : float
        Inverse strength of the regularisation.
    n_jobs : int
        Threads. The result is the same for any number.
    products : bool
        Whether a set has the products of any two of its columns, too.

    Attributes
    ----------
    n_jobs : int
        As given.
    """

    def __init__(self, problem: Problem, *, C: float = 1.0, n_jobs: int = 1, products: bool = False) -> None:
        self._columns_of = problem.columns
        self._pairs = np.triu_indices(len(problem.train), 1) if products else None
        self._train = self._extended(problem.train)
        self._validation = self._extended(problem.validation)
        classes = [1] if problem.n_classes == 2 else list(range(problem.n_classes))
        self._targets = np.array([problem.y_train == c for c in classes], dtype=np.float64)
        n_rows = len(self._train)
        self._gram, self._cross = np.zeros((n_rows, n_rows)), np.zeros((len(classes), n_rows))
        kernel.moments(self._train, self._targets, np.arange(n_rows), self._gram, self._cross)
        self._ridge = 1.0 / C
        self._errors = problem.errors
        self.n_jobs = n_jobs
        self._pool: ThreadPoolExecutor | None = None  # its threads end with the trainer
        self.memory_dtype = np.dtype((np.float64, (len(classes), len(self._train))))

    def with_strength(self, C: float) -> "LogisticTrainer":
        """Return the same trainer with another strength of regularisation; the arrays are shared."""
        other = copy(self)
        other._ridge = 1.0 / C
        other._pool = None
        return other

    def alone(self) -> "LogisticTrainer":
        """Return the same trainer with one thread, to be sent to another process."""
        other = copy(self)
        other.n_jobs, other._pool = 1, None
        return other

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Return weights (n_sets, n_logits, n_encoded + 1), the intercept last."""
        theta = np.zeros(len(feature_sets), dtype=self.memory_dtype)
        members, starts = self._members(feature_sets)

        n_failed: list[int] = []

        def task(sets: slice) -> None:
            part = starts[sets.start : sets.stop + 1]
            work = kernel.workspace(len(self._targets), self._targets.shape[1], int(np.diff(part).max(initial=1)))
            arguments = (self._train, self._targets, self._gram, self._cross, members, part, self._ridge, theta[sets])
            n_failed.append(kernel.fit(*arguments, work))

        self._run(task, len(feature_sets))
        warn_of_failed(sum(n_failed), len(feature_sets))
        return theta

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return what the weights say of the validation samples."""
        shape = (len(feature_sets), self._validation.shape[1])
        confidence = np.empty(shape)
        label = np.empty(shape, dtype=_LABEL)
        members, starts = self._members(feature_sets)

        def by_price(sets: slice) -> None:
            for i in range(sets.start, sets.stop):
                columns = members[starts[i] : starts[i + 1] - 1]
                weights, intercept = np.ascontiguousarray(memory[i][:, columns]), np.ascontiguousarray(memory[i][:, -1])
                answers = kernel.predict(self._validation, columns, weights, intercept).T
                confidence[i], label[i] = outcomes_of(answers, self._errors)

        def task(sets: slice) -> None:
            if self._errors is not None:
                by_price(sets)
                return
            kernel.outcomes(
                self._validation,
                members,
                starts[sets.start : sets.stop + 1],
                memory[sets],
                confidence[sets],
                label[sets],
            )

        self._run(task, len(feature_sets))
        return StageOutcomes(confidence, label)

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return a model per set, over its encoded columns in ascending order, from its weights."""
        columns = self._columns(feature_sets)
        weights = [(t[:, :-1][:, c], t[:, -1]) for t, c in zip(memory, columns, strict=True)]
        if self._pairs is None:
            return [LogisticModel(*each) for each in weights]
        n_columns = self._columns_of(feature_sets).sum(axis=1).tolist()
        return [product_model(n, *w) if n else LogisticModel(*w) for n, w in zip(n_columns, weights, strict=True)]

    def _extended(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return columns with their products, and a last one of ones."""
        products = [] if self._pairs is None else [columns[self._pairs[0]] * columns[self._pairs[1]]]
        return np.vstack([columns, *products, np.ones((1, columns.shape[1]))])

    def _columns(self, feature_sets: FeatureSets) -> NDArray[np.bool_]:
        columns = self._columns_of(feature_sets)
        if self._pairs is None:
            return columns
        return np.hstack([columns, columns[:, self._pairs[0]] & columns[:, self._pairs[1]]])

    def _members(self, feature_sets: FeatureSets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        columns = self._columns(feature_sets)
        present = np.hstack([columns, np.ones((len(columns), 1), dtype=np.bool_)])
        return np.ascontiguousarray(np.nonzero(present)[1]), np.concatenate([[0], np.cumsum(present.sum(axis=1))])

    def _run(self, task: Callable[[slice], None], n_sets: int) -> None:
        if self.n_jobs == 1 or n_sets == 1:
            task(slice(0, n_sets))
            return
        step = -(-n_sets // (self.n_jobs * _TASKS_PER_THREAD))
        tasks = [slice(i, min(i + step, n_sets)) for i in range(0, n_sets, step)]
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.n_jobs)  # the kernels release the interpreter lock
        list(self._pool.map(task, tasks))


def warn_of_failed(n_failed: int, n_sets: int) -> None:
    """Warn if regressions did not converge."""
    if n_failed:
        from sklearn.exceptions import ConvergenceWarning  # here: serving does without scikit-learn

        warnings.warn(
            f"{n_failed} of {n_sets} logistic regressions did not converge; is a column on a scale of its own?",
            ConvergenceWarning,
            stacklevel=3,
        )


def training_seconds(n_classes: int, n_rows: int, n_columns: Any) -> Any:
    """Return about how many seconds a logistic regression takes to train on one core, by numbers of columns.

    Newton's method sums products of columns for all pairs of logits, then solves for all weights.
    """
    n_logits, m = 1 if n_classes == 2 else n_classes, n_columns + 1.0
    sums = n_rows * n_logits * ((n_logits + 1) / 2 * m * (m + 1) / 2 + 10 * m + 30)
    return 2.5e-9 * (sums + (n_logits * m) ** 3 / 6)


def scikit_twin(C: float, *, products: bool = False, tol: float = 1e-8) -> Any:
    """Return scikit-learn's twin of our logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    logistic = LogisticRegression(C=C, tol=tol, max_iter=10_000)
    if not products:
        return logistic
    return make_pipeline(PolynomialFeatures(2, interaction_only=True, include_bias=False), logistic)


def product_model(n_columns: int, coef: NDArray[np.float64], intercept: NDArray[np.float64]) -> StageModel:
    """Return a trained regression on columns and their products, as scikit-learn has it: files and exports know it."""
    model = scikit_twin(1.0, products=True)
    model[0].fit(np.zeros((1, n_columns)))
    model[1].coef_, model[1].intercept_ = coef.copy(), intercept.copy()
    model[1].classes_ = np.arange(max(len(intercept), 2))
    model[1].n_features_in_ = coef.shape[1]
    return model  # type: ignore[no-any-return]
