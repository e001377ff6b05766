"""Which rows train and which judge, how columns are encoded, and what learns from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.data.encoding import ENCODINGS, Encoder
from emsco.data.splits import Folds
from emsco.data.table import Rows, StackedTable, Table
from emsco.exceptions import InvalidParameterError, SuspiciousColumnWarning
from emsco.prices.prices import PriceList
from emsco.stages.base import StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.problem import Problem, unit_membership
from emsco.stages.recipe import Recipe

_STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # values of C that "auto" tries
_MOST_SPLINES = 150  # weights of all columns, from which on "auto" does not try splines: they take too long


@dataclass(frozen=True)
class Rehearsal:
    """The rows that train and judge feature sets: one split into two parts, or folds that take turns.

    Parameters
    ----------
    table : Table
    codes : ndarray of shape (n_rows,)
        Class indices.
    n_classes : int
    prices : PriceList
    folds : list of pairs of arrays, or None
        Rows of ``table`` that train, and that judge. None: all rows train, and ``judges`` are another table.
    judges : tuple of Table and ndarray, or None
        Rows that judge, and their class indices.
    learn : slice or ndarray of int
        Rows of ``table`` to learn from; the others are out of reach.
    """

    table: Table
    codes: IntArray
    n_classes: int
    prices: PriceList
    folds: Folds | None
    judges: tuple[Table, IntArray] | None = None
    learn: Rows = field(default_factory=lambda: slice(None))

    @property
    def y(self) -> IntArray:
        """Class indices of the samples that judge, fold after fold."""
        if self.folds is None:
            return self.judges[1] if self.judges else self.codes[:0].copy()
        return np.concatenate([self.codes[judges] for _, judges in self.folds])

    @property
    def crosses(self) -> bool:
        """Whether folds take turns."""
        return self.folds is not None and len(self.folds) > 1

    @property
    def judged_by(self) -> int | float | str:
        """How rows are judged: the number of folds that take turns, the share of the rows that judge, or "given"."""
        if self.folds is None:
            return "given"
        if self.crosses:
            return len(self.folds)
        ((train, judges),) = self.folds
        return judges.size / (train.size + judges.size)

    def problems(self, encoding: str) -> list[tuple[Problem, Encoder]]:
        """Return the problem of each fold, with columns encoded as its training rows suggest."""
        if self.folds is None:
            judges, codes = self.judges or (self.table, self.codes[:0])
            return [self._problem(self.learn, judges, slice(None) if self.judges else slice(0), codes, encoding)]
        found = []
        for train, rows in self.folds:
            with warnings.catch_warnings():
                if self.crosses:
                    warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once, of all rows
                found.append(self._problem(train, self.table, rows, self.codes[rows], encoding))
        return found

    def everything(self) -> "Rehearsal":
        """Return a rehearsal in which all rows train and none judges."""
        table, codes, learn = self.table, self.codes, self.learn
        if self.judges is not None:
            if not isinstance(learn, slice):
                learn = np.append(learn, table.n_rows + np.arange(self.judges[0].n_rows))
            table, codes = StackedTable(table, self.judges[0]), np.concatenate([codes, self.judges[1]])
        return Rehearsal(table, codes, self.n_classes, self.prices, None, learn=learn)

    def _problem(
        self, train: Rows, judges: Table, rows: Rows, judged: IntArray, encoding: str
    ) -> tuple[Problem, Encoder]:
        others = () if judges is self.table else (judges,)
        encoder = Encoder(self.table, train, *others, encoding=encoding)
        problem = Problem(
            train=encoder.encode(self.table, train),
            y_train=self.codes[train].copy(),
            validation=encoder.encode(judges, rows),
            y_validation=judged.copy(),
            n_classes=self.n_classes,
            unit_columns=unit_membership(encoder, self.prices),
            prices=self.prices,
        )
        return problem, encoder


@dataclass(frozen=True)
class Setup:
    """Everything that a search needs to train and judge feature sets.

    Attributes
    ----------
    recipe : Recipe
    trainer : StageTrainer
    encoder : Encoder
        Of the models to be deployed.
    problems : list of Problem
        One per fold.
    """

    recipe: Recipe
    trainer: StageTrainer
    encoder: Encoder
    problems: list[Problem]


def prepare(rehearsal: Rehearsal, recipe: Recipe, *, seed: int, n_jobs: int) -> Setup:
    """Return the trainer of a rehearsal."""
    parts = rehearsal.problems(recipe.encoding)
    problems = [problem for problem, _ in parts]
    trainers = [recipe.trainer(problem, seed=seed, n_jobs=n_jobs) for problem in problems]
    if not rehearsal.crosses:
        return Setup(recipe, trainers[0], parts[0][1], problems)
    ((whole, encoder),) = rehearsal.everything().problems(recipe.encoding)
    crossed = CrossFitTrainer(trainers, recipe.trainer(whole, seed=seed, n_jobs=n_jobs))
    return Setup(recipe, crossed, encoder, problems)


def settle(
    rehearsal: Rehearsal,
    recipe: Recipe,
    *,
    encoding: str,
    C: float | str,
    score: Callable[[StageTrainer], float],
    n_jobs: int,
) -> Recipe:
    """Return the recipe with "auto" replaced by what scores best on the rows that judge; of equals, the simplest.

    Parameters
    ----------
    rehearsal : Rehearsal
    recipe : Recipe
    encoding : str
    C : float or "auto"
    score : callable
        How good the feature sets are that a trainer trains: the more, the better.
    n_jobs : int
    """
    encodings = ENCODINGS if encoding == "auto" else (encoding,)
    strengths: Sequence[float] = _STRENGTHS if C == "auto" else (float(C),)
    if recipe.estimator is not None:
        C = 1.0 if C == "auto" else C
        return replace(recipe, encoding="linear" if encoding == "auto" else encoding, C=float(C))
    best, most = recipe, -np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for e in encodings:
            if len(encodings) == len(strengths) == 1:
                return replace(recipe, encoding=e, C=strengths[0])
            problems = [problem for problem, _ in rehearsal.problems(e)]
            if e == "spline" and encoding == "auto" and recipe.n_weights(problems[0]) > _MOST_SPLINES:
                continue
            for c in strengths:
                tried = replace(recipe, encoding=e, C=c)
                folds = [tried.trainer(problem, seed=0, n_jobs=n_jobs) for problem in problems]
                reached = score(CrossFitTrainer(folds, folds[0]))
                if reached > most:
                    best, most = tried, reached
    return best


def check_calibrable(rehearsal: Rehearsal, classes: NDArray[Any], n_folds: int) -> None:
    """Raise unless every class has a row for each fold that calibrates, whichever rows train."""
    trained = [rehearsal.learn] if rehearsal.folds is None else [train for train, _ in rehearsal.folds]
    counts = np.min([np.bincount(rehearsal.codes[rows], minlength=classes.size) for rows in trained], axis=0)
    if counts.min() < n_folds:
        raise InvalidParameterError(
            f"needs {n_folds} training rows of each class, but {classes.tolist()[counts.argmin()]!r} has "
            f"{counts.min()}; add rows, or do not calibrate.",
            parameter="calibration",
        )
