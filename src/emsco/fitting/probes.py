"""Probes: random designs on which encodings and strengths of regularisation are compared, before the search."""

from collections.abc import Callable
from dataclasses import replace
import warnings

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.data.encoding import ENCODINGS
from emsco.designs.partition import compress, distinct_sets
from emsco.fitting.rehearsal import Rehearsal
from emsco.scoring.judge import Judge, Task, worth
from emsco.stages.base import StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.recipe import Recipe

_STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # values of C that "auto" tries
_MOST_SPLINES = 150  # weights of all columns, from which on "auto" does not try splines: they take too long
_N_PROBES = 40
_FEW_PROBES = 6  # whose sets are compared where thresholds come later
_MOST_STAGES = 6
_MOST_BOUGHT = 15  # units, as many as good designs buy: large sets take long


def probing(
    task: Task, rng: np.random.Generator, *, by_sureness: bool, by_worth: bool, fast: bool
) -> Callable[[StageTrainer], float]:
    """Return how good a learner is: by the combined score of the best quarter of some random designs.

    Where thresholds come later: for a promise ``by_sureness``, how sure the feature sets are of the truth; where points
    have thresholds of their own ``by_worth``, at several thresholds, and beside some sets that of everything; that one
    alone unless the learner is ``fast``.
    """
    designs = _probes(task, rng)
    task = replace(task, aims=None)
    everything = np.ones((1, task.prices.n_units), dtype=np.bool_)
    few = np.concatenate([everything, distinct_sets(designs[:_FEW_PROBES])]) if fast else everything

    def score(trainer: StageTrainer) -> float:
        if by_worth:
            reached = worth(trainer.outcomes(few, trainer.train(few)), task.y)
            return float(reached[0] + (reached[1:].mean() if fast else 0.0))
        judge = Judge(task, trainer)
        if by_sureness:
            return float(judge.sureness(distinct_sets(designs)).mean())
        reached = np.sort(task.score(judge.tally(designs)))
        return float(reached[-_N_PROBES // 4 :].mean())

    return score


def _probes(task: Task, rng: np.random.Generator) -> IntArray:
    n_units, most = task.prices.n_units, min(task.max_stages, _MOST_STAGES)
    n_stages = rng.integers(min(2, most), most, size=_N_PROBES, endpoint=True)
    stages = rng.integers(n_stages[:, None], size=(_N_PROBES, n_units))
    if task.removal:
        n_bought = rng.integers(1, min(n_units, _MOST_BOUGHT), size=(_N_PROBES, 1), endpoint=True)
        order = rng.permuted(np.tile(np.arange(n_units), (_N_PROBES, 1)), axis=1)
        stages = np.where(order < n_bought, stages, -1)
    return compress(stages)


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
    if not needs_settling(recipe, encoding, C):
        plain = "linear" if encoding == "auto" else encoding
        return replace(recipe, encoding=plain, C=1.0 if C == "auto" else float(C))
    encodings = ENCODINGS if encoding == "auto" else (encoding,)
    strengths = _STRENGTHS if C == "auto" else (float(C),)
    best, most = recipe, -np.inf
    first = rehearsal.problems(encodings[0])[0][0]
    for e in encodings:
        problem = rehearsal.problems(e)[0][0]
        if e != encodings[0] and _is_alike(problem.train, first.train):
            continue
        if e == "spline" and encoding == "auto" and recipe.n_weights(problem) > _MOST_SPLINES:
            continue
        for c in strengths:
            tried = replace(recipe, encoding=e, C=c)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                folds = rehearsal.trainers(tried, seed=0, n_jobs=n_jobs)
                reached = score(CrossFitTrainer(folds, folds[0]))
            if reached > most:
                best, most = tried, reached
    return best


def _is_alike(encoded: FloatArray, other: FloatArray) -> bool:
    """Return whether two encodings are the same: of columns with two values, which no curve bends."""
    return encoded.shape == other.shape and np.allclose(encoded, other)


def needs_settling(recipe: Recipe, encoding: str, C: float | str) -> bool:
    """Return whether anything is left to choose: an estimator of somebody's own is taken as it is."""
    return recipe.estimator is None and (encoding == "auto" or C == "auto")
