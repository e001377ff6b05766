"""Trained stages and new rows -> Decisions. A row is read no further than it has paid."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.encoding import Encoder
from emsco.exceptions import MissingColumnError
from emsco.front import data_frame
from emsco.objectives import FloatArray
from emsco.rejection import is_confident
from emsco.stages.base import StageModel, outcomes_of
from emsco.table import Table

_ROWS_AT_ONCE = 2**14  # a few encoded columns of so many rows fit the second-level cache; also bounds the memory


@dataclass(frozen=True, eq=False)
class Stage:
    """One trained stage.

    Attributes
    ----------
    features : tuple of str
        Units bought on reaching the stage.
    price : float
        What an input that reaches it pays.
    model : classifier
        Trained on all features bought so far; its ``predict_proba`` takes the encoded columns ``encoded_columns``.
    new_columns : tuple of int
        Columns of the table that the new units yield.
    encoded_columns : ndarray of int
        Encoded columns the model sees, in ascending order.
    """

    features: tuple[str, ...]
    price: float
    model: StageModel
    new_columns: tuple[int, ...]
    encoded_columns: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Stage(features={list(self.features)}, price={self.price:g}, model={type(self.model).__name__})"


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a classifier decided of each row.

    Attributes
    ----------
    label : masked array of shape (n_rows,)
        The class; masked where the row was rejected (the best guess stays readable in ``label.data``).
    conclusive : ndarray of shape (n_rows,)
        Whether the row got a label.
    confidence : ndarray of shape (n_rows,)
        Top class probability at the stage where the row left.
    stage : ndarray of shape (n_rows,)
        That stage, from 0; of a rejected row the last one.
    cost : ndarray of shape (n_rows,)
        Price of all features bought.
    """

    label: np.ma.MaskedArray[Any, Any]
    conclusive: NDArray[np.bool_]
    confidence: FloatArray
    stage: NDArray[np.int64]
    cost: FloatArray

    def __len__(self) -> int:
        return int(self.conclusive.size)

    def __repr__(self) -> str:
        n = len(self)
        if not n:
            return "<Decisions of 0 rows>"
        return (
            f"<Decisions of {n} rows: {int(self.conclusive.sum())} conclusive, mean cost {self.cost.mean():g}, "
            f"left at stages {np.bincount(self.stage).tolist()}>"
        )

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per input; the label of a rejected one is missing."""
        frame = data_frame({"conclusive": self.conclusive, "confidence": self.confidence, "stage": self.stage,
                            "cost": self.cost})  # fmt: skip
        import pandas

        frame.insert(0, "label", pandas.array(self.label.tolist()))
        return frame


def walk(
    table: Table,
    column_of: Sequence[int | None],
    encoder: Encoder,
    stages: Sequence[Stage],
    threshold: float,
    *,
    n_classes: int,
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Send rows through the stages until they are confident.

    Parameters
    ----------
    table : Table
    column_of : sequence
        Where each column of the training table is in this one; None where it is not.
    encoder, stages, threshold
        The trained classifier.
    n_classes : int

    Returns
    -------
    probabilities : ndarray of shape (n_rows, n_classes)
        Of the stage where the row left; of the last one if it never was confident.
    exit_stage : ndarray of shape (n_rows,)
    """
    probabilities = np.empty((n_classes, table.n_rows)).T
    exit_stage = np.empty(table.n_rows, dtype=np.int64)
    columns: dict[int, NDArray[Any]] = {}
    for start in range(0, table.n_rows, _ROWS_AT_ONCE):
        block = slice(start, min(start + _ROWS_AT_ONCE, table.n_rows))
        waiting = np.arange(block.start, block.stop)
        rows: NDArray[np.intp] | slice = block
        Z = np.empty((encoder.n_encoded, waiting.size))
        for j, stage in enumerate(stages):
            for c in stage.new_columns:
                if c not in columns:
                    columns[c] = _column(table, column_of[c], encoder.codes[c].name, waiting.size, j)
                encoder.encode_column(c, columns[c], rows, Z)
            answers = stage.model.predict_proba(Z[stage.encoded_columns].T)
            if j == len(stages) - 1:
                probabilities[rows] = answers
                exit_stage[rows] = j
                break
            confident = is_confident(outcomes_of(answers)[0], threshold)
            leaving = waiting[confident]
            probabilities[leaving] = answers[confident]
            exit_stage[leaving] = j
            rows = waiting = waiting[~confident]
            if not waiting.size:
                break
            kept = np.empty((encoder.n_encoded, waiting.size))
            kept[stage.encoded_columns] = Z[stage.encoded_columns][:, ~confident]
            Z = kept
    return probabilities, exit_stage


def _column(table: Table, position: int | None, name: str, n_waiting: int, stage: int) -> NDArray[Any]:
    if position is None:
        raise MissingColumnError(
            f"column {name!r} is not in the table, but {n_waiting} rows are still undecided when stage {stage + 1} "
            "buys it; add it (missing values are allowed)."
        )
    return table.column(position)
