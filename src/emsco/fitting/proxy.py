"""A proxy for learners that are slow to train: ridge regression of the classes, from products of columns."""

import numpy as np

from emsco.arrays import BoolArray, FloatArray
from emsco.fitting.rehearsal import Rehearsal

_RIDGE = 1.0  # added to the products of each standardised column with itself
_LEAST = 1e-3  # least probability of a class


class Proxy:
    """How sure ridge regressions of the class indicators are of the truth: good enough to order units by.

    A set of columns takes one small solve, whatever the number of classes: the products of all columns are computed
    once.

    Parameters
    ----------
    rehearsal : Rehearsal
    encoding : str
    """

    def __init__(self, rehearsal: Rehearsal, encoding: str) -> None:
        self._clock = rehearsal.clock
        problem = rehearsal.problems(encoding)[0][0]
        self._columns = problem.columns
        ones = np.ones((1, problem.y_train.size))
        train = np.concatenate([problem.train, ones])
        self._judges = np.concatenate([problem.validation, np.ones((1, problem.n_validation))])
        self._y = problem.y_validation
        self._products = train @ train.T
        self._products[np.diag_indices(len(train) - 1)] += _RIDGE
        self._sums = train @ np.eye(problem.n_classes)[problem.y_train]

    def __call__(self, sets: BoolArray) -> FloatArray:
        """Return the mean log probability of the true class, set by set."""
        began = self._clock.elapsed
        sure = np.array([self._sureness(np.append(self._columns(units), True)) for units in sets])
        self._clock.speed.learn("proxy", self._clock.elapsed - began, float(self._expected(sets).sum()))
        return sure

    def seconds(self, sets: BoolArray) -> FloatArray:
        """Return how long each set will take."""
        return self._expected(sets) * self._clock.speed.of("proxy")

    def _expected(self, sets: BoolArray) -> FloatArray:
        """Return how long each set takes on a usual machine."""
        n_columns = self._columns(sets).sum(axis=1)
        return np.asarray(1e-4 + self._y.size * (2e-9 * n_columns + 2e-8 * self._sums.shape[1]))

    def _sureness(self, columns: BoolArray) -> float:
        weights = np.linalg.solve(self._products[np.ix_(columns, columns)], self._sums[columns])
        share = np.maximum(self._judges[columns].T @ weights, _LEAST)
        chance = share[np.arange(self._y.size), self._y] / share.sum(axis=1)
        return float(np.log(chance).mean())
