"""The race of final learners: logistic stages as in the search, and boosted trees of several sizes, on all features."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
import warnings

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.fitting.forecast import WIDE, Final, n_placed
from emsco.fitting.large import LargeRehearsal, affordable_large_sets
from emsco.fitting.rehearsal import Rehearsal
from emsco.scoring.judge import likelihoods, tempered
from emsco.search.base import TimeUpError
from emsco.search.chains import MOST_LOOKED_FOR
from emsco.stages.learners import BOOSTED, boosted, n_trees
from emsco.stages.recipe import Recipe

_LEAD = 0.5  # standard errors by which boosted trees must be better than logistic stages, which are simpler
_HEAT = 2  # folds after which
_OUT = 2.0  # standard errors by which the best leads those that race no further
_QUICK = 0.3  # share of the trees with which units are ordered
_MOST_FOLDS = 2  # by which they are ordered
_TREES = 50_000  # that all sets of the front may take, about: half a minute;
_FEWER_TREES = 30_000  # where there are many rows, on which all is trained again
_ROWS = 5_000  # beyond which a tree takes accordingly longer
_FEWEST_SETS, _MOST_SETS = 12, 60
_WIDE_SETS = 20  # where there are many units
_FINAL = 0.3  # share of the time left that final stages may take
_GIVEN_SETS = 80  # feature sets of final stages of a user's learner
_WORTH_IT = 3  # feature sets, all features bought, that there must be time for


@dataclass(frozen=True)
class Entry:
    """A learner in the race: its name, its recipe, and its mean log-likelihood of the rows that judge."""

    name: str
    recipe: Recipe
    log_likelihood: float


def race(rehearsal: Rehearsal, searched: Recipe, *, tunes: bool, seed: int, n_jobs: int) -> tuple[Entry, ...]:
    """Return the learners that took part, the winner first: the one surest of the truth, all features bought.

    Boosted trees must lead by half a standard error: the difference to logistic stages is paired, row by row. If each
    point ``tunes`` thresholds of its own, learners are compared at the temperature that suits each best. With a time
    limit, those take part whose race and whose final stages there is time for. The race ends for those that are clearly
    behind after two folds.
    """
    recipes = {"logistic": searched} | {kind: boosted_recipe(rehearsal, kind) for kind in BOOSTED}
    reached = {}
    with suppress(TimeUpError):
        for name in _entering(rehearsal, recipes, n_jobs=n_jobs):
            reached[name] = _rows(rehearsal, recipes[name], tunes, seed=seed, n_jobs=n_jobs, n_folds=_HEAT)
    if not reached:
        return (Entry("logistic", searched, np.nan),)
    entries = {name: Entry(name, recipes[name], float(rows.mean())) for name, rows in reached.items()}
    reached = {name: reached[name] for name in _close(reached)}
    with suppress(TimeUpError):
        if len(reached) > 1 and rehearsal.n_trained[0] > _HEAT:
            options = {"seed": seed, "n_jobs": n_jobs}
            reached = {name: _rows(rehearsal, recipes[name], tunes, **options) for name in reached}
            entries |= {name: Entry(name, recipes[name], float(rows.mean())) for name, rows in reached.items()}
    best = max(reached, key=lambda name: entries[name].log_likelihood)
    if "logistic" in reached and not _leads(reached[best], reached["logistic"], _LEAD):
        best = "logistic"
    return entries[best], *(entry for entry in entries.values() if entry.name != best)


def _close(reached: Mapping[str, FloatArray]) -> list[str]:
    """Return the names of the learners that may still win."""
    best = max(reached, key=lambda name: float(reached[name].mean()))
    return [name for name, rows in reached.items() if name == best or not _leads(reached[best], rows, _OUT)]


def _leads(rows: FloatArray, others: FloatArray, errors: float) -> bool:
    """Return whether one learner is better than another by more than so many standard errors, row by row."""
    lead = rows - others
    return bool(lead.mean() > errors * lead.std() / np.sqrt(lead.size))


def boosted_recipe(rehearsal: Rehearsal, kind: str, *, share: float = 1.0) -> Recipe:
    """Return the recipe of boosted trees of a kind, with a share of the trees."""
    return Recipe(boosted(kind, share=share, wide=rehearsal.prices.n_units > WIDE), kind=kind)


def _entering(rehearsal: Rehearsal, recipes: Mapping[str, Recipe], *, n_jobs: int) -> Iterator[str]:
    """Yield the names of the learners that there is time for; logistic stages alone have nobody to race with."""
    clock = rehearsal.clock
    everything = np.ones((1, rehearsal.prices.n_units), dtype=np.bool_)

    def seconds(name: str) -> float:
        return float(rehearsal.timing(recipes[name], n_jobs=n_jobs).seconds(everything)[0])

    def affords(*names: str) -> bool:
        worth_it = _WORTH_IT * seconds(names[-1]) <= _FINAL * clock.left_in_all()
        return worth_it and clock.affords(sum(map(seconds, names)))

    entered = []
    for i, name in enumerate(recipes):
        clock.tell(sum(map(seconds, [*recipes][i:])), f"{name} {'stages' if name == 'logistic' else 'trees'}")
        if affords(*(("logistic", BOOSTED[0]) if name == "logistic" else (name,))):
            entered.append(name)
            yield name
        elif name == "logistic":
            break
    if not entered:
        clock.cut(f"boosted trees were not tried: one feature set takes about {seconds(BOOSTED[0]):.2g} s")
    elif len(entered) < len(recipes):
        clock.cut(f"{len(entered) - 1} of {len(BOOSTED)} kinds of boosted trees were tried")


def race_seconds(rehearsal: Rehearsal, searched: Recipe, raced: Rehearsal, *, n_jobs: int) -> float:
    """Return how long the race takes, if it is by other rows than those at hand."""
    everything = np.ones((1, rehearsal.prices.n_units), dtype=np.bool_)
    recipes = [searched, *(boosted_recipe(rehearsal, kind) for kind in BOOSTED)]
    times = np.prod(raced.n_trained) / np.prod(rehearsal.n_trained)
    return float(times * sum(rehearsal.timing(recipe, n_jobs=n_jobs).seconds(everything)[0] for recipe in recipes))


def _rows(
    rehearsal: Rehearsal, recipe: Recipe, tunes: bool, *, seed: int, n_jobs: int, n_folds: int | None = None
) -> FloatArray:
    """Return the log-likelihood of each row that judges, of all folds or of the first ones, all features bought."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = rehearsal.crossed(recipe, seed=seed, n_jobs=n_jobs, n_folds=n_folds)
        everything = np.ones((1, rehearsal.prices.n_units), dtype=np.bool_)
        outcomes = trainer.outcomes(everything, trainer.train(everything))
    measured = tempered if tunes else likelihoods
    return np.asarray(measured(outcomes, rehearsal.y[: outcomes.label.shape[1]], rehearsal.n_classes)[0])


def affordable_sets(rehearsal: Rehearsal, kind: str) -> int:
    """Return how many feature sets boosted trees train in reasonable time: by counting, not by the clock."""
    n_folds, n_rows = rehearsal.n_trained
    work = n_trees(kind, rehearsal.n_classes) * n_folds * max(n_rows / _ROWS, 1.0)
    trees = _FEWER_TREES if isinstance(rehearsal, LargeRehearsal) else _TREES
    most = _WIDE_SETS if rehearsal.prices.n_units > WIDE else _MOST_SETS
    return int(np.clip(trees / work, _FEWEST_SETS, most))


def final_stages(rehearsal: Rehearsal, final: Recipe | None, scout: Rehearsal, *, n_jobs: int) -> Final:
    """Return how long final stages take; None: those of boosted trees that may win the race."""
    recipe = boosted_recipe(rehearsal, BOOSTED[1]) if final is None else final
    timing = rehearsal.timing(recipe, n_jobs=n_jobs)
    if recipe.kind is None:
        n_sets = affordable_large_sets(rehearsal, recipe) if timing.n_large else _GIVEN_SETS
        return Final(
            timing,
            scout.timing(recipe, n_jobs=n_jobs),
            n_sets,
            min(n_placed(n_sets, rehearsal.prices.n_units), MOST_LOOKED_FOR),
            rehearsal.y.size,
        )
    n_sets = affordable_sets(rehearsal, recipe.kind)
    quick = boosted_recipe(rehearsal, recipe.kind, share=_QUICK)
    asked = scout.timing(quick, n_jobs=n_jobs, n_folds=_quick_folds(n_sets))
    return Final(timing, asked, n_sets, n_placed(n_sets, rehearsal.prices.n_units), rehearsal.y.size)


def _quick_folds(n_sets: int) -> int:
    """Return by how many folds units are ordered, given for how many feature sets there is time."""
    return _MOST_FOLDS if n_sets > _FEWEST_SETS else 1


class Quick:
    """How sure boosted trees are of the truth, approximately: with fewer trees, by some of the folds.

    Parameters
    ----------
    rehearsal : Rehearsal
    kind : str
        Of `BOOSTED`.
    n_sets : int
        Feature sets that all trees, on all folds, train in reasonable time.
    seed, n_jobs : int
    """

    def __init__(self, rehearsal: Rehearsal, kind: str, n_sets: int, *, seed: int, n_jobs: int) -> None:
        recipe = boosted_recipe(rehearsal, kind, share=_QUICK)
        sizes = [judges.size for _, judges in rehearsal.folds or []] or [rehearsal.y.size]
        n_folds = _quick_folds(n_sets)
        self._y: IntArray = rehearsal.y[: sum(sizes[:n_folds])]
        self._n_classes = rehearsal.n_classes
        self._trainer = rehearsal.crossed(recipe, seed=seed, n_jobs=n_jobs, n_folds=n_folds)
        self._known: dict[bytes, float] = {}

    def seconds(self, sets: BoolArray) -> FloatArray:
        """Return how long it will take to ask for each of the sets."""
        new = np.array([units.tobytes() not in self._known for units in np.packbits(sets, axis=1)])
        return new * self._trainer.timing.seconds(sets)

    def __call__(self, sets: BoolArray) -> FloatArray:
        """Return how sure feature sets are; each is trained once."""
        keys = [units.tobytes() for units in np.packbits(sets, axis=1)]
        new = [i for i, key in enumerate(keys) if key not in self._known]
        if new:
            outcomes = self._trainer.outcomes(sets[new], self._trainer.train(sets[new]))
            sure = tempered(outcomes, self._y, self._n_classes).mean(axis=1)
            self._known.update(zip([keys[i] for i in new], sure.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])
