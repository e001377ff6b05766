"""Logistic regressions of all rows of a table in partitions: curvature and gradients are sums over partitions.

The solution of a sample is close to that of all rows, and that of all to those without one fold. So curvature is summed
once, fold by fold, where the former is, or again if that is too far away; what is left are a few passes that sum
gradients. Sums run over partitions in
their order, and over their rows in blocks: the result is the same for any workers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from emsco.arrays import FloatArray, IntArray
from emsco.cluster.partitions import Parts, codes_of
from emsco.data.encoding import Encoder
from emsco.data.table import Table
from emsco.stages.large import FLAT, add_curvature, probabilities
from emsco.stages.logistic import warn_of_failed

N_FOLDS = 5
_BLOCK = 8192  # rows at a time
_PASSES = 60
_SLOW = 0.05  # of its size that a step may keep, before curvature is summed again
_TOLERANCE = 1e-11  # of the weights


@dataclass(frozen=True, eq=False)
class Encoded:
    """How the rows of a partition are read.

    Attributes
    ----------
    encoder : Encoder
    classes : ndarray
    seed : int
        Of the draw of folds.
    """

    encoder: Encoder
    classes: NDArray[Any]
    seed: int

    def read(self, X: Any, y: Any, number: int) -> tuple[FloatArray, IntArray, IntArray]:
        """Return the encoded columns of a partition, the class and the fold of each row."""
        table = Table(X)
        fold = np.random.default_rng([self.seed, number]).integers(N_FOLDS, size=table.n_rows)
        columns = self.encoder.encode(table, slice(None))
        return columns, codes_of(y, self.classes, table.n_rows, number), fold


@dataclass(frozen=True, eq=False)
class Solved:
    """Weights of feature sets, of each an array of shape (n_folds + 1, n_logits, n_columns + 1): without each fold, and
    of all rows; intercepts last.
    """  # noqa: D205

    weights: tuple[FloatArray, ...]
    n_passes: int


def solve(
    parts: Parts, how: Encoded, columns: Sequence[NDArray[np.intp]], begin: Sequence[FloatArray], *, C: float
) -> Solved:
    """Return the weights of feature sets.

    Parameters
    ----------
    parts : Parts
    how : Encoded
    columns : sequence of ndarray
        Encoded columns of each set.
    begin : sequence of ndarray of shape (n_logits, n_columns + 1)
        Weights of a sample.
    C : float
        Inverse strength of the regularisation.
    """
    penalties = [np.full(theta.shape, 1.0 / C) for theta in begin]
    for penalty in penalties:
        penalty[:, -1] = 0.0
    thetas = [np.repeat(theta[None], N_FOLDS + 1, axis=0) for theta in begin]
    sizes, factors = np.full(len(thetas), np.inf), dict[int, Any]()
    open_ones, stale, n_passes = list(range(len(thetas))), list(range(len(thetas))), 0
    while open_ones and n_passes < _PASSES:
        if stale:
            chosen = [columns[i] for i in stale], [thetas[i][-1] for i in stale]
            *curvatures, (n_rows,) = parts.total(_curvature, how, *chosen)
            for i, parted in zip(stale, curvatures, strict=True):
                factors[i] = _factors(parted, np.diag(penalties[i].ravel() + FLAT * n_rows))
        chosen = [columns[i] for i in open_ones], [thetas[i] for i in open_ones]
        gradients = parts.total(_gradients, how, *chosen)
        n_passes, stale = n_passes + 1 + bool(stale), []
        for i, summed in zip([*open_ones], gradients, strict=True):
            gradient = summed + penalties[i] * thetas[i]
            step = np.array([cho_solve(f, g.ravel()) for f, g in zip(factors[i], gradient, strict=True)])
            step = step.reshape(thetas[i].shape)
            if len(begin[i]) > 1:  # what is added to all intercepts alike changes nothing
                step[..., -1] -= step[..., -1].mean(axis=1, keepdims=True)
            size = float(np.abs(step).max())
            if size > sizes[i]:
                step *= 0.5
            thetas[i] = thetas[i] - step
            if size < _TOLERANCE * max(float(np.abs(thetas[i]).max()), 1.0):
                open_ones.remove(i)
            elif size > _SLOW * min(sizes[i], 1.0):  # the curvature here is another one
                stale.append(i)
            sizes[i] = size
    warn_of_failed(len(open_ones), len(thetas))
    return Solved(tuple(thetas), n_passes)


def _factors(curvature: FloatArray, ridge: FloatArray) -> list[Any]:
    """Return the factors of the curvature without each fold, and of all rows."""
    whole = curvature.sum(axis=0)
    return [cho_factor(whole - part + ridge) for part in curvature] + [cho_factor(whole + ridge)]


def extended(Z: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
    """Return some encoded columns of rows, and one of ones."""
    X = np.ones((columns.size + 1, Z.shape[1]))
    X[:-1] = Z[columns]
    return X


def _blocks(n_rows: int) -> list[slice]:
    return [slice(i, min(i + _BLOCK, n_rows)) for i in range(0, n_rows, _BLOCK)]


def _curvature(
    X: Any, y: Any, number: int, how: Encoded, columns: Sequence[NDArray[np.intp]], begin: Sequence[FloatArray]
) -> list[Any]:
    """Return the curvature of each fold for each set, and the number of rows."""
    Z, _, fold = how.read(X, y, number)
    found = [np.zeros((N_FOLDS, theta.size, theta.size)) for theta in begin]
    for rows in _blocks(fold.size):
        for own, theta, out in zip(columns, begin, found, strict=True):
            part = extended(Z[:, rows], own)
            for k in range(N_FOLDS):
                inside = part[:, fold[rows] == k]
                add_curvature(probabilities(theta @ inside), inside, out[k])
    return [*found, np.array([fold.size])]


def _gradients(
    X: Any, y: Any, number: int, how: Encoded, columns: Sequence[NDArray[np.intp]], thetas: Sequence[FloatArray]
) -> list[FloatArray]:
    """Return the gradients of the losses without each fold, and of all rows, for each set."""
    Z, codes, fold = how.read(X, y, number)
    found = [np.zeros(theta.shape) for theta in thetas]
    for rows in _blocks(fold.size):
        outside = np.ones((N_FOLDS + 1, 1, rows.stop - rows.start))
        outside[:-1, 0] = fold[rows] != np.arange(N_FOLDS)[:, None]
        for own, theta, out in zip(columns, thetas, found, strict=True):
            n, n_logits, m = theta.shape
            classes = np.array([1]) if n_logits == 1 else np.arange(n_logits)
            part = extended(Z[:, rows], own)
            rest = probabilities((theta.reshape(-1, m) @ part).reshape(n, n_logits, -1))
            rest = (rest - (codes[rows] == classes[:, None])) * outside
            out += (rest.reshape(n * n_logits, -1) @ part.T).reshape(theta.shape)
    return found
