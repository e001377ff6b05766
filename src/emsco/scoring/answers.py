"""Predictions of the stages of a design."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
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
    """

    confidence: FloatArray
    label: NDArray[Any]
    truth: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.truth.size)

    def coverage(self, rule: RejectRule) -> float:
        """Return the share of the rows that get a label."""
        stage = np.arange(len(self.confidence))[:, None]
        return float(rule.confident(self.confidence, self.label, stage).any(axis=0).mean())
