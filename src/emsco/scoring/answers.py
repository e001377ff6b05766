"""Predictions of the stages of a design."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.scoring.rejection import RejectRule


@dataclass(frozen=True, eq=False)
class Answers:
    """Predictions of every stage of a design for labelled rows, including rows that do not reach the stage.

    Attributes
    ----------
    confidence, label : ndarray of shape (n_stages, n_rows)
        Top class probability, and the position of its class.
    truth : ndarray of shape (n_rows,)
        Position of the true class; -1 if it was not in the training rows.
    n_classes : int or None
        The label that stands for no answer, if there is one.
    """

    confidence: FloatArray
    label: NDArray[Any]
    truth: IntArray
    n_classes: int | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.truth.size)

    def coverage(self, rule: RejectRule) -> float:
        """Return the share of the rows that get a label."""
        return float(self.leaving(rule)[1].mean())

    def confusion(self, rule: RejectRule, n_classes: int) -> IntArray:
        """Return how many rows of each true class (rows) get each label, and last, none.

        Examples
        --------
        >>> answers = Answers(np.array([[0.9, 0.6, 0.8]]), np.array([[0, 1, 1]]), np.array([0, 0, 1]))
        >>> answers.confusion(RejectRule.of([[0.7]]), n_classes=2)
        array([[1, 0, 1],
               [0, 1, 0]])
        """
        stage, given = self.leaving(rule)
        label = np.where(given, self.label[stage, np.arange(self.n_rows)], n_classes)
        cell = self.truth * (n_classes + 1) + label
        return np.bincount(cell, minlength=n_classes * (n_classes + 1)).reshape(n_classes, n_classes + 1)

    def leaving(self, rule: RejectRule) -> tuple[NDArray[np.intp], BoolArray]:
        """Return the stage at which each row leaves, and whether it gets a label there."""
        confident = rule.confident(self.confidence, self.label, np.arange(len(self.confidence))[:, None])
        left = np.asarray(confident.any(axis=0))
        stage: NDArray[np.intp] = np.where(left, confident.argmax(axis=0), len(confident) - 1)
        if self.n_classes is None:
            return stage, left
        return stage, left & (self.label[stage, np.arange(self.n_rows)] < self.n_classes)

    def results(self, rule: RejectRule) -> tuple[BoolArray, BoolArray]:
        """Return which rows get a label, and which the right one."""
        stage, given = self.leaving(rule)
        return given, given & (self.label[stage, np.arange(self.n_rows)] == self.truth)
