"""What tells deployed classifiers apart: numbers and text that are the same in every process."""

from typing import Any

import numpy as np

from emsco.arrays import FloatArray
from emsco.data.encoding import ColumnCode, CurveCode, NumberCode
from emsco.stages.base import StageModel
from emsco.stages.logistic import LogisticModel

_N_PROBES = 32


def recipe(code: ColumnCode) -> tuple[Any, ...]:
    """Return all that matters of how a column is encoded, in a fixed order."""
    if isinstance(code, CurveCode):
        return code.name, code.knots, code.curves, code.at_zero, code.flags_missing
    if isinstance(code, NumberCode):
        return code.name, code.mean, code.inverse_scale, code.flags_missing
    return code.name, code.categories, sorted(str(category) for category in code.rare)


def weights(model: StageModel, n_columns: int) -> FloatArray:
    """Return numbers that tell trained models apart: the weights, or what an estimator answers to fixed rows.

    Answers do not depend on how an estimator was stored and loaded; they are rounded because the order of a sum may.
    """
    if isinstance(model, LogisticModel):
        return np.column_stack([model.coef_, model.intercept_])
    spread = np.array([4.0 * (i * 0.6180339887498949 % 1.0) - 2.0 for i in range(_N_PROBES * n_columns)])
    answers = model.predict_proba(spread.reshape(_N_PROBES, n_columns))
    return np.asarray(answers, dtype=np.float64).round(9)
