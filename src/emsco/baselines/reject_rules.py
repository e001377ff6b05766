"""Learned reject rules between stages in the order of prices (BASELINES §5.1)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from emsco.arrays import IntArray
from emsco.baselines.base import BoolArray, Candidate, Figures, FloatArray, Rival, combined
from emsco.baselines.price_stages import (
    Gate,
    LinearGate,
    PriceStages,
    Walk,
    gate_inputs,
    held_out,
    make_folds,
    train_by_price,
)
from emsco.baselines.settings import check_count, check_grid, check_positive
from emsco.baselines.weighted_logistic import fit_weighted
from emsco.exceptions import InvalidParameterError
from emsco.stages.base import StageModel
from emsco.stages.logistic import LogisticModel
from emsco.stages.problem import Problem

_SHIFTS = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the decision thresholds of a first pair, in log-odds; one restart each
_MAX_SWEEPS = 20
_MAX_ALTERNATIONS = 5
_LEAST_DROP = 1e-4  # of the risk in a sweep, relative


class RejectRules(Rival):
    """Stage-wise empirical risk minimisation of Trapeznikov, Saligrama & Castañón (2013).

    Stages are fixed, the cheapest features first; the method learns which cases continue. A case pays 1 for a wrong
    label, and a price for each further stage: the share of the total that the stage adds, times a price weight, which
    is tuned. A case whose last stage is not confident is rejected, as in every method.

    ``rule="gates"`` learns one linear gate per stage, from the last stage back: a weighted classification of the cases
    that gain by continuing, given the rules learned so far. It supports any number of classes and is our form of the
    method.

    ``rule="pairs"``, for two classes, is closer to the publication: a stage has two linear classifiers. If they agree,
    they give the label; if they differ, the case continues. They are trained alternately, each by a weighted
    classification given the other, and kept if the risk drops; the best of five starts is used. The publication boosts
    weak learners; we use l2 logistic regressions. If the stage's own classifier, which gives the confidence,
    contradicts the label of the pair, the confidence is one half.

    The predictions of stages and pairs for training rows are cross-validated; otherwise their errors would be too few
    to justify the price of continuing.

    Parameters
    ----------
    threshold : float
        Least confidence of a label.
    price_weights : array-like
        Values to choose from.
    rule : "gates" or "pairs"
    max_stages : int or None
        If there are more distinct prices, neighbouring prices share a stage. None: one stage per price.
    C, rule_C : float
        Inverse regularisation strength of the stages and of the rules.
    n_folds : int
        Number of cross-validation folds of the training rows.
    criterion : callable
        Function of `Figures` to maximise on the validation rows.
    validation : float
        Share of validation rows, unless ``fit`` receives validation rows.
    random_state : int, RandomState or None
        Seeds the split and the folds.
    """

    grids: ClassVar[Mapping[str, str]] = {"price_weight": "price_weights"}

    def __init__(
        self,
        threshold: float = 0.75,
        price_weights: ArrayLike = (0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1),
        rule: str = "gates",
        max_stages: int | None = 5,
        C: float = 1.0,
        rule_C: float = 0.1,
        n_folds: int = 5,
        criterion: Callable[[Figures], float] = combined,
        validation: float = 1 / 3,
        random_state: Any = None,
    ) -> None:
        self.threshold = threshold
        self.price_weights = price_weights
        self.rule = rule
        self.max_stages = max_stages
        self.C = C
        self.rule_C = rule_C
        self.n_folds = n_folds
        self.criterion = criterion
        self.validation = validation
        self.random_state = random_state

    def _candidates(self, problem: Problem, seed: int) -> Iterable[Candidate]:
        grid = check_grid(self.price_weights, "price_weights")
        most = None if self.max_stages is None else check_count(self.max_stages, "max_stages", 1)
        C, rule_C = check_positive(self.C, "C"), check_positive(self.rule_C, "rule_C")
        n_folds = check_count(self.n_folds, "n_folds", 2)
        if self.rule not in ("gates", "pairs"):
            raise InvalidParameterError(f"rule must be 'gates' or 'pairs'; got {self.rule!r}.")
        if self.rule == "pairs" and problem.n_classes > 2:
            raise InvalidParameterError(f"rule='pairs' is for two classes, y has {problem.n_classes}; use 'gates'.")
        stages = train_by_price(problem, C=C, max_stages=most)
        folds = make_folds(problem.y_train, n_folds, np.random.default_rng(seed))
        answers = held_out(problem, stages, folds, C=C)
        steps = np.diff(stages.shares)
        for weight in grid:
            model: Walk
            if self.rule == "gates":
                model = Walk(stages, learn_gates(problem, stages, answers, weight * steps, C=rule_C))
            else:
                pairs = learn_pairs(problem, stages, answers, weight * steps, folds, C=rule_C)
                voting: list[StageModel] = [_Voting(m, p) for m, p in zip(stages.models, pairs, strict=False)]
                model = Walk(stages, pairs, [*voting, stages.models[-1]])
            yield Candidate({"price_weight": float(weight)}, model)


def learn_gates(
    problem: Problem, stages: PriceStages, answers: FloatArray, prices: FloatArray, *, C: float
) -> list[Gate]:
    """Return a gate for each stage except the last, learned from the last one back.

    Parameters
    ----------
    problem : Problem
    stages : PriceStages
    answers : ndarray of shape (n_stages, n_samples, n_classes)
        Cross-validated class probabilities of the training rows.
    prices : ndarray of shape (n_stages - 1,)
        Prices of continuing, in units of an error.
    C : float
    """
    wrong = (answers.argmax(axis=2) != problem.y_train).astype(np.float64)
    to_go = wrong[-1]  # loss of a case from the next stage on
    gates: list[Gate] = []
    for k in range(len(prices) - 1, -1, -1):
        known = problem.train[stages.columns[k]]
        going_on = prices[k] + to_go
        gate = _fit_gate(gate_inputs(known, answers[k]), going_on < wrong[k], np.abs(going_on - wrong[k]), C)
        to_go = np.where(gate.continues(known, answers[k]), going_on, wrong[k])
        gates.insert(0, gate)
    return gates


def _fit_gate(inputs: FloatArray, gains: BoolArray, weights: FloatArray, C: float) -> Gate:
    """Train on inputs (n_inputs, n_rows); the last two are scaled like the others, which are standardised."""
    scale = np.ones(len(inputs))
    deviations = inputs[-2:].std(axis=1)
    scale[-2:] = np.where(deviations > 1e-9, deviations, 1.0)
    theta = fit_weighted((inputs / scale[:, None]).T, gains, weights[None], C=C)[0]
    return LinearGate(theta[:-1] / scale, float(theta[-1]))


@dataclass(frozen=True)
class _Linear:
    """A linear classifier of a pair, and what it says of the training rows, held out."""

    coef: FloatArray
    intercept: float
    says: BoolArray


class Pair:
    """Two linear classifiers: a label where they agree, going on where they differ."""

    def __init__(self, first: _Linear, second: _Linear) -> None:
        self._models = [LogisticModel(c.coef[None], np.array([c.intercept])) for c in (first, second)]

    def votes(self, known: FloatArray) -> BoolArray:
        """Return the labels of both, (2, n_rows)."""
        return np.stack([model.predict_proba(known.T)[:, 1] > 0.5 for model in self._models])

    def continues(self, known: FloatArray, probabilities: FloatArray) -> BoolArray:
        """Return where the two differ."""
        first, second = self.votes(known)
        return np.asarray(first != second)


class _Voting:
    """A stage's classifier, bound to the labels of a pair where the two agree."""

    def __init__(self, model: StageModel, pair: Pair) -> None:
        self._model = model
        self._pair = pair

    def predict_proba(self, X: FloatArray) -> FloatArray:
        probabilities = self._model.predict_proba(X).copy()
        rows = np.arange(len(X))
        label = self._pair.votes(X.T)[0].astype(np.intp)
        confidence = np.maximum(probabilities[rows, label], np.nextafter(0.5, 1))
        probabilities[rows, label] = confidence
        probabilities[rows, 1 - label] = 1 - confidence
        return probabilities


def learn_pairs(
    problem: Problem, stages: PriceStages, answers: FloatArray, prices: FloatArray, folds: IntArray, *, C: float
) -> list[Pair]:
    """Return a pair of classifiers for each stage but the last: the best of several local searches.

    Parameters
    ----------
    problem, stages, answers, prices, C
        As of ``learn_gates``.
    folds : ndarray of shape (n_samples,)
        As of ``make_folds``.
    """
    truth = problem.y_train == 1
    wrong_at_last = answers[-1].argmax(axis=1) != problem.y_train
    known = [problem.train[columns].T for columns in stages.columns[:-1]]
    best: tuple[float, list[list[_Linear]]] | None = None
    for shift in _SHIFTS:
        pairs = [_shifted(stages.models[k], answers[k], shift) for k in range(len(prices))]
        risk = float(_to_go(pairs, truth, wrong_at_last, prices)[0].mean())
        for _ in range(_MAX_SWEEPS):
            before = risk
            for k in range(len(prices) - 1, -1, -1):
                risk = _improve(pairs, k, risk, known[k], truth, wrong_at_last, prices, folds, C)
            if before - risk <= _LEAST_DROP * before:
                break
        if best is None or risk < best[0]:
            best = risk, pairs
    assert best is not None
    return [Pair(*pair) for pair in best[1]]


def _shifted(model: Any, answers: FloatArray, shift: float) -> list[_Linear]:
    """Return a stage's classifier twice, with more and with less inclination to the second class."""
    with np.errstate(divide="ignore"):
        odds = np.log(answers[:, 1]) - np.log(answers[:, 0])
    return [_Linear(model.coef_[0], float(model.intercept_[0]) + s, odds + s > 0) for s in (shift, -shift)]


def _to_go(pairs: list[list[_Linear]], truth: BoolArray, wrong_at_last: BoolArray, prices: FloatArray) -> FloatArray:
    """Return what each row loses from each stage on, (n_stages, n_samples)."""
    losses = [wrong_at_last.astype(np.float64)]
    for (first, second), price in zip(pairs[::-1], prices[::-1], strict=True):
        losses.append(np.where(first.says != second.says, price + losses[-1], first.says != truth))
    return np.stack(losses[::-1])


def error_weights(other_wrong: BoolArray, going_on: FloatArray) -> FloatArray:
    """Return what an error of one classifier of a pair adds to the loss, given whether the other errs.

    Both right: 0. One wrong: they differ, and the input loses what going on costs. Both wrong: 1.
    """
    return np.where(other_wrong, 1 - going_on, going_on)


def _improve(
    pairs: list[list[_Linear]],
    k: int,
    risk: float,
    known: FloatArray,
    truth: BoolArray,
    wrong_at_last: BoolArray,
    prices: FloatArray,
    folds: IntArray,
    C: float,
) -> float:
    """Train the two classifiers of stage k in turns while the risk drops; return the risk."""
    reached = np.logical_and.reduce([first.says != second.says for first, second in pairs[:k]], initial=True)
    going_on = np.clip(prices[k] + _to_go(pairs, truth, wrong_at_last, prices)[k + 1], 0, 1)
    for _ in range(_MAX_ALTERNATIONS):
        before = risk
        for i in (0, 1):
            old = pairs[k][i]
            other_wrong = pairs[k][1 - i].says != truth
            weights = reached * error_weights(other_wrong, going_on)
            pairs[k][i] = _fit_linear(known, truth, weights, folds, C)
            new_risk = float(_to_go(pairs, truth, wrong_at_last, prices)[0].mean())
            if new_risk < risk:
                risk = new_risk
            else:
                pairs[k][i] = old
        if risk == before:
            break
    return risk


def _fit_linear(X: FloatArray, truth: BoolArray, weights: FloatArray, folds: IntArray, C: float) -> _Linear:
    """Train on all rows, and for each fold a twin on the rows of the others."""
    names = np.unique(folds[folds >= 0])
    trains = np.vstack([np.ones(folds.size, dtype=np.bool_), folds != names[:, None]])
    theta = fit_weighted(X, truth, weights * trains, C=C)
    judge = np.where(folds >= 0, 1 + np.searchsorted(names, folds), 0)
    says = (X * theta[judge, :-1]).sum(axis=1) + theta[judge, -1] > 0
    return _Linear(theta[0, :-1], float(theta[0, -1]), says)
