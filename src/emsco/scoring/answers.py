"""What the stages of a design say of rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.scoring.rejection import RejectRule


@dataclass(frozen=True, eq=False)
class Answers:
    """What every stage of a design says of labelled rows, whether they reach it or not.

    Attributes
    ----------
    confidence, label : ndarray of shape (n_stages, n_rows)
        Top class probability, and the position of its class.
    truth : ndarray of shape (n_rows,)
        Position of the true class; -1 if it was never trained.
    """

    confidence: FloatArray
    label: NDArray[Any]
    truth: IntArray

    @property
    def n_rows(self) -> int:
        """Rows answered."""
        return int(self.truth.size)

    def coverage(self, rule: RejectRule) -> float:
        """Return the share of the rows that get a label."""
        stage = np.arange(len(self.confidence))[:, None]
        return float(rule.confident(self.confidence, self.label, stage).any(axis=0).mean())
