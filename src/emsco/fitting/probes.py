"""Probes: random designs on which encodings and strengths of regularisation are compared, before the search."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
import warnings

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.data.encoding import ENCODINGS
from emsco.designs.partition import compress, distinct_sets
from emsco.fitting.rehearsal import Rehearsal
from emsco.scoring.judge import Judge, Task, worth
from emsco.search.base import TimeUpError
from emsco.stages.base import StageTrainer
from emsco.stages.recipe import Recipe

_STRENGTHS = (0.1, 1.0, 10.0, 100.0)  # values of C that "auto" tries
_MOST_SPLINES = 150  # weights of all columns, from which on "auto" does not try splines: they take too long
_N_PROBES = 40
_FEW_PROBES = 6  # whose sets are compared where thresholds come later
_MOST_STAGES = 6
_MOST_BOUGHT = 15  # units, as many as good designs buy: large sets take long
_FIRST = (1.0, 10.0, 0.1, 100.0)  # which values of C are tried first, where there may not be time for all
_SLOWER = {
    "raw": 1.0,
    "linear": 1.0,
    "rank": 1.2,
    "spline": 6.0,
}  # time of training, relative to lines
_SETS = 60  # feature sets that a search should have the time for

Scores = dict[tuple[str, float], float]  # by encoding and strength


@dataclass(frozen=True, eq=False)
class Probing:
    """How good a learner is on some random designs.

    Attributes
    ----------
    sets : ndarray of shape (n_sets, n_units)
        The feature sets that are trained to tell.
    score : callable
        The more, the better.
    """

    sets: BoolArray
    score: Callable[[StageTrainer], float]


def probing(task: Task, rng: np.random.Generator, *, by_sureness: bool, by_worth: bool, fast: bool) -> Probing:
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

    return Probing(few if by_worth else distinct_sets(designs), score)


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
    sets: BoolArray | None = None,
    known: Scores | None = None,
) -> Recipe:
    """Return the recipe with "auto" replaced by what scores best on the rows that judge; of equals, the simplest.

    With a time limit, the first ones to be compared are the encodings, with C = 1.

    Parameters
    ----------
    rehearsal : Rehearsal
    recipe : Recipe
    encoding : str
    C : float or "auto"
    score : callable
        How good the feature sets are that a trainer trains: the more, the better.
    n_jobs : int
    sets : ndarray of shape (n_sets, n_units) or None
        The feature sets that a score takes: they tell how long. None: everything.
    known : dict or None
        Scores by encoding and strength, from a run before this one; new ones are added.
    """
    if not needs_settling(recipe, encoding, C):
        plain = "linear" if encoding == "auto" else encoding
        return replace(recipe, encoding=plain, C=1.0 if C == "auto" else float(C))
    encodings = ENCODINGS if encoding == "auto" else (encoding,)
    strengths = _STRENGTHS if C == "auto" else (float(C),)
    candidates = [(e, c) for e in encodings for c in strengths]
    scores = {} if known is None else known
    sets = np.ones((1, rehearsal.prices.n_units), dtype=np.bool_) if sets is None else sets
    for e, c in _affordable(rehearsal, recipe, [each for each in candidates if each not in scores], sets, n_jobs):
        problem, first = (rehearsal.problems(each)[0][0] for each in (e, encodings[0]))
        if e != encodings[0] and _is_alike(problem.train, first.train):
            continue
        tried = replace(recipe, encoding=e, C=c)
        if e == "spline" and encoding == "auto" and recipe.n_weights(problem) > _MOST_SPLINES:
            continue
        with warnings.catch_warnings(), suppress(TimeUpError):
            warnings.simplefilter("ignore")
            scores[e, c] = score(rehearsal.crossed(tried, seed=0, n_jobs=n_jobs))
    best, most = (encodings[0], 1.0 if 1.0 in strengths else strengths[0]), -np.inf
    for each in candidates:
        if scores.get(each, -np.inf) > most:
            best, most = each, scores[each]
    return replace(recipe, encoding=best[0], C=best[1])


def _affordable(
    rehearsal: Rehearsal, recipe: Recipe, candidates: list[tuple[str, float]], sets: BoolArray, n_jobs: int
) -> Iterator[tuple[str, float]]:
    """Yield the candidates that there is time for, and tell the clock how long all of them will take."""
    if not candidates:
        return
    clock, base = rehearsal.clock, candidates[0][0]
    rehearsal.problems(base)
    if clock.is_limited:
        candidates = sorted(candidates, key=lambda each: _FIRST.index(each[1]) if each[1] in _FIRST else 0)
    n_tried = 0
    for i, (e, c) in enumerate(candidates):
        encoding, training = {}, {}
        for other in {other for other, _ in candidates[i:]}:
            encoding[other] = rehearsal.encoding_seconds(other)
            known = base if encoding[other] else other
            timing = rehearsal.timing(replace(recipe, encoding=known), n_jobs=n_jobs)
            training[other] = float(timing.seconds(sets).sum()) * (1.0 if known == other else _SLOWER[other])
        clock.tell(sum(encoding.values()) + sum(training[other] for other, _ in candidates[i:]), f"{e}, C = {c:g}")
        searchable = e == base or _SETS * training[e] / len(sets) <= clock.left_in_all()
        if searchable and clock.affords(encoding[e] + training[e]):
            n_tried += 1
            yield e, c
    if n_tried < len(candidates):
        clock.cut(f"{n_tried} of {len(candidates)} encodings and strengths of regularisation were compared")


def _is_alike(encoded: FloatArray, other: FloatArray) -> bool:
    """Return whether two encodings are the same: of columns with two values, which no curve bends."""
    return encoded.shape == other.shape and np.allclose(encoded, other)


def needs_settling(recipe: Recipe, encoding: str, C: float | str) -> bool:
    """Return whether anything is left to choose: an estimator of somebody's own is taken as it is."""
    return recipe.estimator is None and (encoding == "auto" or C == "auto")
