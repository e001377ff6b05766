"""Which rows train and which judge, how columns are encoded, and what learns from them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.encoding import ENCODINGS, Encoder
from emsco.exceptions import InvalidParameterError, SuspiciousColumnWarning
from emsco.partition import IntArray
from emsco.prices import PriceList
from emsco.problem import Problem, count_classes, unit_membership
from emsco.stages.base import StageOutcomes, StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer, scikit_twin
from emsco.table import Rows, StackedTable, Table

_LARGEST_NEWTON = 600  # weights of one stage; beyond, scikit-learn's solver is faster than ours
_STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # values of C that "auto" tries
_MOST_SPLINES = 150  # weights of all columns, from which on "auto" does not try splines: they take too long
_LEAST_PROBABILITY = 1e-6

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


@dataclass(frozen=True)
class Recipe:
    """How stages learn.

    Attributes
    ----------
    estimator : classifier or None
        None: l2 logistic regression.
    encoding : str
        Of the columns of numbers.
    C : float
        Inverse strength of the regularisation of the logistic regression.
    products : bool
        Whether it has the products of any two columns, too.
    """

    estimator: Any = None
    encoding: str = "linear"
    C: float = 1.0
    products: bool = False

    def trainer(self, problem: Problem, *, seed: int, n_jobs: int) -> StageTrainer:
        """Return what trains feature sets of a problem."""
        estimator = self.estimator
        if estimator is None:
            if self.n_weights(problem) <= _LARGEST_NEWTON:
                return LogisticTrainer(problem, C=self.C, n_jobs=n_jobs, products=self.products)
            # Newton's method solves for all weights of a set at once; with many classes and columns that does not pay.
            estimator = self.logistic()
        return EstimatorTrainer(problem, estimator, seed=seed, n_jobs=n_jobs)

    def logistic(self) -> Any:
        """Return scikit-learn's twin of our logistic regression."""
        return scikit_twin(self.C, products=self.products)

    def n_weights(self, problem: Problem) -> int:
        """Return the weights of a logistic regression on everything."""
        n_columns = int(problem.train.shape[0])
        if self.products:
            n_columns += n_columns * (n_columns - 1) // 2
        return n_columns * (1 if problem.n_classes == 2 else problem.n_classes)


def boosting() -> Any:
    """Return what the name "boosting" stands for: histogram gradient boosting, with trees small enough for few rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=120, learning_rate=0.08, max_leaf_nodes=12, min_samples_leaf=10, l2_regularization=2.0,
        max_features=0.6, early_stopping=False,
    )  # fmt: skip


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


def sureness(outcomes: StageOutcomes, y: IntArray, n_classes: int) -> NDArray[np.float64]:
    """Return the mean log probability that feature sets give to the truth, as far as outcomes tell it.

    Of a wrong label, what is left is shared by the other classes.
    """
    right = outcomes.label == y
    chance = np.where(right, outcomes.confidence, (1 - outcomes.confidence) / (n_classes - 1))
    return np.asarray(np.log(np.maximum(chance, _LEAST_PROBABILITY)).mean(axis=1))


def make_folds(validation: Any, codes: IntArray, classes: NDArray[Any], rng: np.random.Generator) -> Folds:
    """Return the folds of a cross-validation: by number, each class in proportion, or those of a splitter.

    A class of a single row is always trained and never judged; that is warned of.
    """
    n_rows = codes.size
    if not hasattr(validation, "split"):
        return _stratified(int(validation), codes, classes, rng)
    try:
        pairs: Iterable[Any] = list(validation.split(np.zeros((n_rows, 1)), codes))
        folds = [(np.asarray(train, dtype=np.intp), np.asarray(judges, dtype=np.intp)) for train, judges in pairs]
    except Exception as error:  # of somebody else's splitter
        raise InvalidParameterError(f"{validation!r} cannot split {n_rows} rows: {error}") from error
    if not folds:
        raise InvalidParameterError(f"{validation!r} gives no folds.")
    last = max(int(rows.max(initial=0)) for fold in folds for rows in fold)
    if last >= n_rows:
        raise InvalidParameterError(
            f"{validation!r} knows a row {last}, but only {n_rows} rows are split. If a promise has set others aside "
            "to calibrate it, give these as X_cal and y_cal."
        )
    for train, judges in folds:
        absent = np.setdiff1d(np.arange(classes.size), codes[train])
        if absent.size or not judges.size or np.intersect1d(train, judges).size:
            raise InvalidParameterError(
                f"a fold of {validation!r} has {judges.size} rows that judge, {np.intersect1d(train, judges).size} of "
                f"which train too, and none of the classes {classes[absent].tolist()} to train on; use a stratified "
                "splitter, or fewer folds."
            )
    n_judged = np.bincount(np.concatenate([judges for _, judges in folds]), minlength=n_rows)
    if n_judged.max() > 1:
        raise InvalidParameterError(
            f"{validation!r} lets {int((n_judged > 1).sum())} rows judge more than once, which would make figures look "
            "surer than they are; use a splitter with which each row judges once at most, such as StratifiedKFold."
        )
    return folds


def _stratified(n_folds: int, codes: IntArray, classes: NDArray[Any], rng: np.random.Generator) -> Folds:
    counts = count_classes(codes, classes)
    number = np.full(codes.size, -1)
    dealt = 0
    for code, count in enumerate(counts):
        if count > 1:
            number[rng.permutation(np.flatnonzero(codes == code))] = (dealt + np.arange(count)) % n_folds
            dealt += count
    return [(np.flatnonzero(number != i), np.flatnonzero(number == i)) for i in range(n_folds) if (number == i).any()]


def is_folds(validation: Any) -> bool:
    """Return whether rows are to take turns: a whole number of at least 2, or a splitter."""
    if hasattr(validation, "split") and not isinstance(validation, str):
        return True
    whole = isinstance(validation, int | np.integer) and not isinstance(validation, bool)
    return bool(whole and validation >= 2)


def check_learning(encoding: Any, C: Any, *, automatic: bool = True) -> None:
    """Raise unless encoding and C are among what is known."""
    known = (*ENCODINGS, "auto") if automatic else ENCODINGS
    if not isinstance(encoding, str) or encoding not in known:
        raise InvalidParameterError(f"encoding must be one of {', '.join(known)}; got {encoding!r}.")
    number = isinstance(C, int | float | np.integer | np.floating) and not isinstance(C, bool)
    if not (automatic and isinstance(C, str) and C == "auto") and not (number and 0 < C < np.inf):
        raise InvalidParameterError(f"C must be a positive number{' or auto' if automatic else ''}; got {C!r}.")


def check_products(products: Any, estimator: Any) -> bool:
    """Return whether stages have products of columns."""
    if not isinstance(products, bool | np.bool_):
        raise InvalidParameterError(f"products must be True or False; got {products!r}.")
    if products and estimator is not None:
        raise InvalidParameterError(
            "products are for logistic stages; an estimator of your own gets them from scikit-learn's "
            "PolynomialFeatures(interaction_only=True) in a pipeline before it."
        )
    return bool(products)


def check_calibrable(rehearsal: Rehearsal, classes: NDArray[Any], n_folds: int) -> None:
    """Raise unless every class has a row for each fold that calibrates, whichever rows train."""
    trained = [rehearsal.learn] if rehearsal.folds is None else [train for train, _ in rehearsal.folds]
    counts = np.min([np.bincount(rehearsal.codes[rows], minlength=classes.size) for rows in trained], axis=0)
    if counts.min() < n_folds:
        raise InvalidParameterError(
            f"calibration takes {n_folds} training rows of each class, but {classes.tolist()[counts.argmin()]!r} has "
            f"{counts.min()}; add rows, or leave calibration at None."
        )


def check_estimator(estimator: Any, name: str) -> Any:
    """Return the classifier that a parameter stands for."""
    if isinstance(estimator, str):
        if estimator != "boosting":
            raise InvalidParameterError(f"{name} must be a classifier, 'boosting' or None; got {estimator!r}.")
        return boosting()
    return estimator
