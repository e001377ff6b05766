"""Stages in the order of prices, and models that use them; shared by CO-T and the learned reject rules."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from emsco.arrays import IntArray
from emsco.baselines.base import BoolArray, FloatArray, Trace
from emsco.designs.partition import acquired_sets
from emsco.prices.prices import PriceList
from emsco.stages.base import StageModel
from emsco.stages.logistic import LogisticModel, LogisticTrainer
from emsco.stages.problem import Problem


@dataclass(frozen=True)
class PriceStages:
    """Classifiers on growing sets of units, the cheapest units first.

    Attributes
    ----------
    sets : ndarray of shape (n_stages, n_units)
        Units known at each stage.
    columns : list of ndarray of shape (n_known,)
        Their encoded columns, in ascending order.
    shares : ndarray of shape (n_stages,)
        Total paid by the end of each stage, as a share of the price of everything.
    models : list of StageModel
    """

    sets: BoolArray
    columns: list[IntArray]
    shares: FloatArray
    models: list[StageModel]


class Gate(Protocol):
    """Decides which cases continue to the next stage."""

    def continues(self, known: FloatArray, probabilities: FloatArray) -> BoolArray:
        """Return which cases continue, from known columns (n_known, n_rows) and probabilities (n_rows, n_classes)."""


class LinearGate:
    """Continues if a linear function of the known values of a stage is above 0.

    Parameters
    ----------
    weights : ndarray of shape (n_known + 2,)
        Weights of the known columns, of the top probability, and of its lead over the second (``gate_inputs``).
    intercept : float
    """

    def __init__(self, weights: FloatArray, intercept: float) -> None:
        self._model = LogisticModel(weights[None], np.array([intercept]))

    def continues(self, known: FloatArray, probabilities: FloatArray) -> BoolArray:
        """Return where the function is above 0."""
        chance = self._model.predict_proba(gate_inputs(known, probabilities).T)[:, 1]
        return np.asarray(chance > 0.5)


class Walk:
    """A model with stages; at each except the last, a gate decides which cases continue."""

    def __init__(self, stages: PriceStages, gates: Sequence[Gate], models: Sequence[StageModel] | None = None) -> None:
        self._columns = stages.columns
        self._models = list(stages.models if models is None else models)
        self._gates = list(gates)

    def trace(self, Z: FloatArray) -> Trace:
        """Decide encoded cases, (n_encoded, n_rows)."""
        n_rows = Z.shape[1]
        waiting = np.arange(n_rows)
        read = np.zeros((n_rows, len(Z)), dtype=np.bool_)
        stage_of = np.zeros(n_rows, dtype=np.intp)
        parts = []
        for k, (columns, model) in enumerate(zip(self._columns, self._models, strict=True)):
            known = Z[np.ix_(columns, waiting)]
            read[np.ix_(waiting, columns)] = True
            stage_of[waiting] = k
            probabilities = model.predict_proba(known.T)
            parts.append((waiting, probabilities))
            if k == len(self._gates):
                break
            waiting = waiting[self._gates[k].continues(known, probabilities)]
            if not waiting.size:
                break
        answers = np.empty((n_rows, parts[0][1].shape[1]))
        for rows, probabilities in parts:  # later stages overwrite the prediction of cases that continued
            answers[rows] = probabilities
        return Trace(answers, read, stage_of, self._columns)


def gate_inputs(known: FloatArray, probabilities: FloatArray) -> FloatArray:
    """Return the inputs of a gate, (n_known + 2, n_rows): columns, top probability, its lead over the second."""
    ordered = np.sort(probabilities, axis=1)
    return np.vstack([known, ordered[:, -1], ordered[:, -1] - ordered[:, -2]])


def price_order(prices: PriceList, max_stages: int | None = None) -> IntArray:
    """Return the stage of each unit: one stage per distinct price, the cheapest first.

    Parameters
    ----------
    prices : PriceList
    max_stages : int or None
        If there are more distinct prices, neighbouring prices share a stage, so that stages have similar numbers of
        units.

    Examples
    --------
    >>> from emsco.prices.prices import resolve
    >>> price_order(resolve([100, 10, 100, 50], "abcd"))
    array([2, 0, 2, 1])
    >>> price_order(resolve([100, 10, 100, 50], "abcd"), max_stages=2)
    array([1, 0, 1, 0])
    """
    shares = prices.prices / (prices.total or 1.0)
    rounded = np.round(shares, 12)  # prices that differ only by rounding are equal
    design = np.unique(rounded, return_inverse=True)[1]
    if max_stages is not None and design.max() >= max_stages:
        n_cheaper = (rounded[None, :] < rounded[:, None]).sum(axis=1)
        design = np.unique(n_cheaper * max_stages // prices.n_units, return_inverse=True)[1]
    return design.astype(np.int64)


def train_by_price(problem: Problem, *, C: float, max_stages: int | None = None) -> PriceStages:
    """Train the stages of ``price_order`` on the training rows."""
    sets = acquired_sets(price_order(problem.prices, max_stages)[None])[0][0]
    trainer = LogisticTrainer(problem, C=C)
    total = problem.prices.total or 1.0
    return PriceStages(
        sets=sets,
        columns=[np.flatnonzero(columns) for columns in sets @ problem.unit_columns],
        shares=problem.prices.paid(sets) / total,
        models=trainer.models(sets, trainer.train(sets)),
    )


def held_out(problem: Problem, stages: PriceStages, folds: IntArray, *, C: float) -> FloatArray:
    """Return cross-validated probabilities of the training rows, (n_stages, n_samples, n_classes).

    Parameters
    ----------
    problem : Problem
    stages : PriceStages
    folds : ndarray of shape (n_samples,)
        From ``make_folds``. Rows in no fold are predicted by the stages trained on all rows.
    C : float
    """
    answers = np.stack(
        [m.predict_proba(problem.train[c].T) for m, c in zip(stages.models, stages.columns, strict=True)]
    )
    for fold in np.unique(folds[folds >= 0]):
        held = folds == fold
        rest = replace(problem, train=problem.train[:, ~held], y_train=problem.y_train[~held])
        trainer = LogisticTrainer(rest, C=C)
        models = trainer.models(stages.sets, trainer.train(stages.sets))
        for k, (model, columns) in enumerate(zip(models, stages.columns, strict=True)):
            answers[k, held] = model.predict_proba(problem.train[np.ix_(columns, held)].T)
    return answers


def make_folds(y: IntArray, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Return a fold for each row, each class in proportion; -1, in none, for a class of a single row."""
    folds = np.full(y.size, -1, dtype=np.int64)
    start = 0
    for count, code in zip(np.bincount(y), range(y.size), strict=False):
        if count > 1:
            folds[rng.permutation(np.flatnonzero(y == code))] = (start + np.arange(count)) % n_folds
            start += int(count)
    return folds
