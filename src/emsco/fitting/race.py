"""The race of final learners: logistic stages as in the search, and boosted trees of several sizes, on all features."""

from dataclasses import dataclass
import warnings

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.fitting.rehearsal import Rehearsal
from emsco.scoring.judge import likelihoods, tempered
from emsco.stages.base import StageTrainer
from emsco.stages.crossfit import CrossFitTrainer
from emsco.stages.learners import BOOSTED, boosted, n_trees
from emsco.stages.recipe import Recipe

_LEAD = 0.5  # standard errors by which boosted trees must be better than logistic stages, which are simpler
_QUICK = 0.3  # share of the trees with which units are ordered
_MOST_FOLDS = 2  # by which they are ordered
_TREES = 50_000  # that all sets of the front may take, about: half a minute
_ROWS = 5_000  # beyond which a tree takes accordingly longer
_FEWEST_SETS, _MOST_SETS = 12, 60


@dataclass(frozen=True)
class Entry:
    """A learner in the race: its name, its recipe, and its mean log-likelihood of the rows that judge."""

    name: str
    recipe: Recipe
    log_likelihood: float


def race(rehearsal: Rehearsal, searched: Recipe, *, tunes: bool, seed: int, n_jobs: int) -> tuple[Entry, ...]:
    """Return the learners that took part, the winner first: the one surest of the truth, all features bought.

    Boosted trees must lead by half a standard error: the difference to logistic stages is paired, row by row. If each
    point ``tunes`` thresholds of its own, learners are compared at the temperature that suits each best.
    """
    recipes = {"logistic": searched} | {kind: Recipe(boosted(kind)) for kind in BOOSTED}
    reached = {name: _rows(rehearsal, recipe, tunes, seed=seed, n_jobs=n_jobs) for name, recipe in recipes.items()}
    entries = [Entry(name, recipes[name], float(rows.mean())) for name, rows in reached.items()]
    first = max(entries, key=lambda entry: entry.log_likelihood)
    lead = reached[first.name] - reached["logistic"]
    if lead.mean() <= _LEAD * lead.std() / np.sqrt(lead.size):
        first = entries[0]
    return first, *(entry for entry in entries if entry is not first)


def _rows(rehearsal: Rehearsal, recipe: Recipe, tunes: bool, *, seed: int, n_jobs: int) -> FloatArray:
    """Return the log-likelihood of each row that judges, all features bought."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folds = rehearsal.trainers(recipe, seed=seed, n_jobs=n_jobs)
        trainer = CrossFitTrainer(folds, folds[0])
        everything = np.ones((1, rehearsal.prices.n_units), dtype=np.bool_)
        outcomes = trainer.outcomes(everything, trainer.train(everything))
    measured = tempered if tunes else likelihoods
    return np.asarray(measured(outcomes, rehearsal.y, rehearsal.n_classes)[0])


def affordable_sets(rehearsal: Rehearsal, kind: str) -> int:
    """Return how many feature sets boosted trees train in reasonable time: by counting, not by the clock."""
    n_folds = len(rehearsal.folds or [None])
    work = n_trees(kind, rehearsal.n_classes) * n_folds * max(rehearsal.codes.size / _ROWS, 1.0)
    return int(np.clip(_TREES / work, _FEWEST_SETS, _MOST_SETS))


class Quick:
    """How sure boosted trees are of the truth, approximately: with fewer trees, by some of the folds.

    Parameters
    ----------
    rehearsal : Rehearsal
    kind : str
        Of `BOOSTED`.
    seed, n_jobs : int

    Attributes
    ----------
    n_sets : int
        Feature sets that all trees, on all folds, train in reasonable time.
    """

    def __init__(self, rehearsal: Rehearsal, kind: str, *, seed: int, n_jobs: int) -> None:
        trainers = rehearsal.trainers(Recipe(boosted(kind, share=_QUICK)), seed=seed, n_jobs=n_jobs)
        sizes = [judges.size for _, judges in rehearsal.folds or []] or [rehearsal.y.size]
        n_folds = _MOST_FOLDS if affordable_sets(rehearsal, kind) > _FEWEST_SETS else 1
        self._y: IntArray = rehearsal.y[: sum(sizes[:n_folds])]
        self._n_classes = rehearsal.n_classes
        self._trainer: StageTrainer = CrossFitTrainer(trainers[:n_folds], trainers[0])
        self.n_sets = affordable_sets(rehearsal, kind)
        self._known: dict[bytes, float] = {}

    def __call__(self, sets: BoolArray) -> FloatArray:
        """Return how sure feature sets are; each is trained once."""
        keys = [units.tobytes() for units in np.packbits(sets, axis=1)]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        if new:
            outcomes = self._trainer.outcomes(sets[new], self._trainer.train(sets[new]))
            sure = tempered(outcomes, self._y, self._n_classes).mean(axis=1)
            self._known.update(zip([keys[i] for i in new], sure.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])
