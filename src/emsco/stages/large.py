"""Logistic regressions on many rows: those of all folds for little more than the price of one."""

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import ThreadpoolController

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, outcomes_of
from emsco.stages.logistic import LogisticModel, warn_of_failed
from emsco.stages.problem import Problem

_CHUNK = 8192  # rows at a time: what they need stays in the cache
_PILOT = 20_000  # rows that tell where the weights are, about
_PILOT_STEPS = 30
_STEPS = 60
_TOLERANCE = 1e-7  # of the weights
_HALVINGS = 30
FLAT = 1e-10  # of the curvature, where nothing says how large the sum of all intercepts is
_KNOWN_BYTES = 2**29  # of outcomes that are kept


class LargeLogisticTrainer:
    """Logistic regressions by Newton's method, all folds beside each other; the same solutions as one by one.

    The solution of some rows is close to that of all, and that of all to those without one fold. So the curvature is
    summed once, fold by fold, where the former is; what is left are a few passes that sum gradients.

    Parameters
    ----------
    problem : Problem
        All rows train, fold after fold; the samples that validate are not looked at.
    starts : ndarray of shape (n_folds + 1,)
        Where each fold begins, and the number of rows.
    n_judges : ndarray of shape (n_folds,)
        Rows of each fold that judge, the first ones.
    C : float
        Inverse strength of the regularisation.
    n_jobs : int
        Threads. The result is the same for any number.
    """

    def __init__(
        self, problem: Problem, starts: IntArray, n_judges: IntArray, *, C: float = 1.0, n_jobs: int = 1
    ) -> None:
        self._Z, self._y = problem.train, problem.y_train
        self._columns_of = problem.columns
        self._n_classes = problem.n_classes
        self._n_logits = 1 if problem.n_classes == 2 else problem.n_classes
        self._starts = starts
        self._n_judges = n_judges
        self._ridge = 1.0 / C
        self._n_jobs = n_jobs
        self._known: OrderedDict[bytes, tuple[NDArray[np.float32], NDArray[np.uint8]]] = OrderedDict()
        self.memory_dtype = np.dtype((np.float64, (starts.size, self._n_logits, len(self._Z) + 1)))

    def alone(self) -> "LargeLogisticTrainer":
        """Return the same trainer with one thread, to be sent to another process."""
        other = copy(self)
        other._n_jobs, other._known = 1, OrderedDict()
        return other

    def train(self, feature_sets: FeatureSets) -> NDArray[Any]:
        """Return the weights of each set: without each of the folds, then of all rows; the intercepts last."""
        memory = np.zeros(len(feature_sets), dtype=self.memory_dtype)
        columns = [np.flatnonzero(self._columns_of(units)) for units in feature_sets]

        def task(i: int) -> bool:
            theta, converged = self._solve(columns[i])
            memory[i][..., np.append(columns[i], len(self._Z))] = theta
            return converged

        with ThreadpoolController().limit(limits=1, user_api="blas"), ThreadPoolExecutor(self._n_jobs) as pool:
            converged = list(pool.map(task, range(len(columns))))
        warn_of_failed(len(converged) - sum(converged), len(converged))
        return memory

    def outcomes(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> StageOutcomes:
        """Return what the weights say of each row, those of its own fold excepted."""
        keys = [np.packbits(units).tobytes() for units in feature_sets]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        with ThreadpoolController().limit(limits=1, user_api="blas"), ThreadPoolExecutor(self._n_jobs) as pool:
            said = list(pool.map(lambda i: self._outcomes(self._columns_of(feature_sets[i]), memory[i]), new))
        own = {keys[i]: outcome for i, outcome in zip(new, said, strict=True)}
        confidence = np.empty((len(keys), int(self._n_judges.sum())))
        label = np.empty(confidence.shape, dtype=np.uint8)
        for i, key in enumerate(keys):
            confidence[i], label[i] = own[key] if key in own else self._known[key]
        self._known.update(own)
        while self._known and len(self._known) * 5 * confidence.shape[1] > _KNOWN_BYTES:
            self._known.popitem(last=False)
        return StageOutcomes(confidence, label)

    def models(self, feature_sets: FeatureSets, memory: NDArray[Any]) -> list[StageModel]:
        """Return the models of all rows."""
        columns = self._columns_of(feature_sets)
        return [LogisticModel(t[-1, :, :-1][:, c], t[-1, :, -1]) for t, c in zip(memory, columns, strict=True)]

    def _outcomes(self, columns: BoolArray, theta: FloatArray) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        n_rows = int(self._n_judges.sum())
        confidence, label = np.empty(n_rows, dtype=np.float32), np.empty(n_rows, dtype=np.uint8)
        own = np.flatnonzero(columns)
        weights, done = theta[..., np.append(own, -1)], 0
        for fold, rows in _chunks(self._starts[:-1], self._starts[:-1] + self._n_judges):
            P = probabilities(weights[fold] @ self._extended(own, rows))
            if self._n_logits == 1:
                P = np.concatenate([1 - P, P])
            here = slice(done, done + P.shape[1])
            confidence[here], label[here] = outcomes_of(P.T)
            done = here.stop
        return confidence, label

    def _solve(self, columns: NDArray[np.intp]) -> tuple[FloatArray, bool]:
        """Return the weights without each fold, and of all rows, and whether they converged."""
        n_rows, n_folds, m = self._y.size, self._starts.size - 1, columns.size + 1
        penalty = np.full((self._n_logits, m), self._ridge)
        penalty[:, -1] = 0.0
        begin = self._pilot(columns, penalty)
        curvature = np.zeros((n_folds, begin.size, begin.size))
        for fold, rows in _chunks(self._starts[:-1], self._starts[1:]):
            X = self._extended(columns, rows)
            add_curvature(probabilities(begin @ X), X, curvature[fold])
        whole = curvature.sum(axis=0)
        ridge = np.diag(penalty.ravel() + FLAT * n_rows)
        factors = [cho_factor(whole - part + ridge) for part in curvature] + [cho_factor(whole + ridge)]
        theta, before = np.repeat(begin[None], n_folds + 1, axis=0), np.inf
        for _ in range(_STEPS):
            gradient = self._gradients(columns, theta) + penalty * theta
            step = np.array([cho_solve(factor, g.ravel()) for factor, g in zip(factors, gradient, strict=True)])
            size = float(np.abs(step).max())
            if size > before:  # the curvature there is another one
                step *= 0.5
            theta, before = theta - step.reshape(theta.shape), size
            if size < _TOLERANCE * max(float(np.abs(theta).max()), 1.0):
                return theta, True
        return theta, False

    def _pilot(self, columns: NDArray[np.intp], penalty: FloatArray) -> FloatArray:
        """Return the weights of some rows, from everywhere."""
        stride = max(self._y.size // _PILOT, 1)
        rows = slice(0, None, stride)
        X, y = self._extended(columns, rows), self._y[rows]
        targets, penalty = self._targets(y), penalty * (y.size / self._y.size)
        theta = np.zeros(penalty.shape)
        shares = np.bincount(y, minlength=self._n_classes) / y.size
        theta[:, -1] = np.log(shares[1] / shares[0]) if self._n_logits == 1 else np.log(np.maximum(shares, 1e-9))
        loss = _loss(theta, X, targets, penalty)
        for _ in range(_PILOT_STEPS):
            P = probabilities(theta @ X)
            gradient = (P - targets) @ X.T + penalty * theta
            curvature = np.diag(penalty.ravel() + FLAT * y.size)
            add_curvature(P, X, curvature)
            step = cho_solve(cho_factor(curvature), gradient.ravel()).reshape(theta.shape)
            for _ in range(_HALVINGS):
                tried = _loss(theta - step, X, targets, penalty)
                if tried <= loss:
                    break
                step = step / 2
            theta, loss = theta - step, min(tried, loss)
            if np.abs(step).max() < 1e-4:
                break
        return theta

    def _gradients(self, columns: NDArray[np.intp], theta: FloatArray) -> FloatArray:
        """Return the gradients of the losses without each fold, and of all rows."""
        n, n_logits, m = theta.shape
        gradient = np.zeros((n * n_logits, m))
        for fold, rows in _chunks(self._starts[:-1], self._starts[1:]):
            X = self._extended(columns, rows)
            margins = (theta.reshape(-1, m) @ X).reshape(n, n_logits, -1)
            rest = probabilities(margins) - self._targets(self._y[rows])
            rest[fold] = 0.0
            gradient += rest.reshape(n * n_logits, -1) @ X.T
        return gradient.reshape(theta.shape)

    def _targets(self, y: IntArray) -> FloatArray:
        classes = [1] if self._n_logits == 1 else range(self._n_classes)
        return np.array([y == c for c in classes], dtype=np.float64)

    def _extended(self, columns: NDArray[np.intp], rows: slice) -> FloatArray:
        """Return columns of some rows, and one of ones."""
        part = self._Z[:, rows]
        X = np.ones((columns.size + 1, part.shape[1]))
        X[:-1] = part[columns]
        return X


def _chunks(starts: IntArray, stops: IntArray) -> list[tuple[int, slice]]:
    """Return the number of each fold, and rows of it, a few at a time."""
    bounds = enumerate(zip(starts.tolist(), stops.tolist(), strict=True))
    return [
        (fold, slice(i, min(i + _CHUNK, stop))) for fold, (start, stop) in bounds for i in range(start, stop, _CHUNK)
    ]


def probabilities(margins: FloatArray) -> FloatArray:
    """Return the probabilities of margins (..., n_logits, n_rows): of one logit, that of the second class."""
    if margins.shape[-2] == 1:
        return np.asarray(1 / (1 + np.exp(-np.clip(margins, -500, 500))))
    powers = np.exp(margins - margins.max(axis=-2, keepdims=True))
    return np.asarray(powers / powers.sum(axis=-2, keepdims=True))


def add_curvature(P: FloatArray, X: FloatArray, out: FloatArray) -> None:
    """Add the second derivatives of the loss of some rows."""
    m = len(X)
    for a, p in enumerate(P):
        for b in range(a + 1):
            weight = p * ((a == b) - P[b])
            block = (X * weight) @ X.T
            out[a * m : (a + 1) * m, b * m : (b + 1) * m] += block
            if a != b:
                out[b * m : (b + 1) * m, a * m : (a + 1) * m] += block


def _loss(theta: FloatArray, X: FloatArray, targets: FloatArray, penalty: FloatArray) -> float:
    margins = theta @ X
    if len(margins) == 1:
        fit = np.logaddexp(0.0, margins) - targets * margins
    else:
        top = margins.max(axis=0)
        fit = top + np.log(np.exp(margins - top).sum(axis=0)) - (targets * margins).sum(axis=0)
    return float(fit.sum() + 0.5 * (penalty * theta**2).sum())


def large_seconds(n_classes: int, n_rows: int, n_folds: int, n_columns: Any) -> Any:
    """Return about how many seconds a feature set takes on one core, by numbers of columns."""
    n_logits, m = 1 if n_classes == 2 else n_classes, n_columns + 1.0
    curvature = n_rows * n_logits * (n_logits + 1) / 2 * (m**2 * 1.2e-10 + m * 1e-9)
    gradients = 7 * n_rows * (n_folds + 1) * n_logits * (m * 4e-10 + 2e-8)
    return 0.05 + curvature + gradients + (n_folds + 1) * 1e-10 * (n_logits * m) ** 3
