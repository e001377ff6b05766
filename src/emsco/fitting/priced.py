"""From rows to a front where errors have prices: learners compared by money, designs searched for what counts."""

from dataclasses import dataclass

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.designs.branch import Branch
from emsco.exceptions import InvalidParameterError
from emsco.fitting.branching import LEANING, unit_named
from emsco.fitting.final import Finished
from emsco.fitting.forks import NEEDED, find_fork, routes_of
from emsco.fitting.money import Priced, Purse, explore, front_of, levels_of, pick
from emsco.fitting.rehearsal import Rehearsal, Setup
from emsco.fitting.settings import Settings
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList
from emsco.scoring.forked import Forked
from emsco.scoring.gains import Branches, Gain
from emsco.scoring.judge import Judge, Task
from emsco.scoring.rejection import RejectRule
from emsco.search.auto import Auto
from emsco.search.base import Run, Searched
from emsco.search.bestfirst import BestFirst
from emsco.stages.logistic import training_seconds
from emsco.stages.recipe import Recipe
from emsco.stages.shrunken import shrunken_tree, tree_seconds

_LOOKED_AT = 40  # designs of logistic stages that a slower learner begins with
_FEW_ROUNDS = 3
_LEAD = 0.3  # standard errors by which another learner must cost less than logistic stages
_SECONDS = 6.0  # that a learner may take to train feature sets, about
_FEWEST_SETS, _MOST_SETS, _GIVEN_SETS = 60, 4_000, 250
_TYPICAL = 4  # units of a feature set
_SLOW = 8.0  # times as slow as the other learner: then it comes second
_SEARCHED = 0.5  # share of what a constant label costs: the bar of a search that the user asked for


def searched_by(errors: ErrorPrices, y: IntArray) -> RejectRule:
    """Return the rule that designs are searched with: a bar for all stages but the last, where everybody leaves."""
    levels = levels_of(errors, y, (_SEARCHED,))
    return RejectRule(((float(levels[0]),), (0.0,)))


@dataclass(frozen=True, eq=False)
class _Tried:
    """A learner, and what designs cost with it."""

    setup: Setup
    purse: Purse
    priced: Priced
    chosen: int

    @property
    def money(self) -> float:
        return float(self.priced.money[self.chosen])

    @property
    def rows(self) -> FloatArray:
        """What each row costs with the chosen design."""
        return np.asarray(self.purse.money(self.priced.designs[[self.chosen]])[1][0])


def finish_priced(
    settings: Settings, rehearsal: Rehearsal, task: Task, run: Run
) -> tuple[Finished, Searched, Branches]:
    """Search designs and bars with each learner, and return the front of the one with which they cost least.

    Where designs may branch, what was tried is returned, too.
    """
    clock = rehearsal.clock
    clock.begin("searching")
    given = not isinstance(settings.search, Auto)
    tried: list[_Tried] = []
    found: Searched | None = None
    for recipe, n_sets in recipes(settings, rehearsal):
        if tried and not clock.affords_all():
            clock.cut("one kind of learner was tried")
            break
        setup = rehearsal.prepared(recipe, seed=settings.seed, n_jobs=settings.n_jobs)
        judge = Judge(task, setup.trainer, fast=recipe.estimator is None)
        purse = Purse(judge)
        if given and not tried:
            found = settings.search.search(judge, run)
            priced = purse.priced(np.concatenate([found.front.designs, np.full_like(found.front.designs[:1], -1)]))
        elif tried:  # a slower learner looks at what a faster one found
            first = tried[0].priced
            begin = first.designs[np.argsort(first.money, kind="stable")[:_LOOKED_AT]]
            priced = explore(purse, clock, n_sets, begin=begin, n_rounds=_FEW_ROUNDS, n_expanded=1)
        else:
            priced = explore(purse, clock, n_sets)
        tried.append(_Tried(setup, purse, priced, pick(purse, priced)))
    best = _winner(tried)
    forked, branches = _look_for_fork(settings, best, rehearsal)
    with clock.must():
        front, point = front_of(best.purse, best.priced, best.chosen, forked)
    finished = Finished(front, point, best.purse.judge, best.setup, rehearsal, complete=True)
    n_sets = best.purse.judge.cache.n_trained
    if found is None:
        found = Searched(front, BestFirst(max_designs=len(best.priced.designs)), 0, n_sets, run.seconds, "")
    return finished, found, branches


def _look_for_fork(settings: Settings, best: _Tried, rehearsal: Rehearsal) -> tuple[Forked | None, Branches]:
    """Return a design that branches, if one was asked for and costs less than the chosen chain by more than luck.

    What was tried is returned, too.
    """
    asked, clock = settings.branch, rehearsal.clock
    if asked is None:
        return None, Branches()
    if not isinstance(settings.search, Auto):
        return None, Branches(note="they are not looked for with a search of your own where errors have prices")
    if not clock.affords_all():
        clock.cut("designs that branch were not tried")
        return None, Branches(note="there was no time")
    find = routes_of(rehearsal, best.setup.encoder, asked.min_rows, _checked(asked, rehearsal.prices))
    found = find_fork(best.purse, best.priced, best.chosen, find, rehearsal.parts())
    if found is None:
        return None, Branches()
    fork, saved = found
    branched = fork.branched(best.purse.levels)
    names, table = rehearsal.prices.unit_names, rehearsal.table
    gain = Gain(
        root=tuple(names[unit] for unit in np.flatnonzero(branched.rows[0] == 0)),
        branches=branched.route.words(table.names, ()),
        budget=best.money,
        gain=float(saved.unseen.mean()),
        error=float(saved.unseen.std() / np.sqrt(saved.unseen.size)),
        needed=NEEDED,
        kept=saved.pays,
        why="" if saved.pays else "less than luck explains",
    )
    return (Forked(best.purse.judge, branched, fork.branch) if saved.pays else None), Branches((gain,), 1)


def _checked(asked: Branch, prices: PriceList) -> tuple[tuple[int, ...], int | None]:
    """Return what the root must buy, empty if that is free, and the unit that must lead the way, if one must."""
    if asked.by == LEANING or asked.experts not in ("auto", "shared"):
        raise InvalidParameterError(
            "Branch: where errors have prices, designs branch by a value, and branches share their classifiers; leave "
            'experts at "auto", and name a unit in by, or none.'
        )
    by = None if asked.by is None else unit_named(asked.by, prices)
    return tuple(unit_named(name, prices) for name in asked.units), by


def _winner(tried: list[_Tried]) -> _Tried:
    """Return the learner with which the chosen design costs least; not the first one only by a clear lead."""
    first, best = tried[0], min(tried, key=lambda each: each.money)
    lead = first.rows - best.rows
    return first if lead.mean() <= _LEAD * lead.std() / np.sqrt(lead.size) else best


def recipes(settings: Settings, rehearsal: Rehearsal) -> list[tuple[Recipe, int]]:
    """Return the learners that are compared by money, the fastest first, and how many feature sets each may train.

    A slow one that could train only a few does not take part, nor do logistic stages with so many weights that each is
    trained by itself. Work is counted, not timed: the result does not depend on the machine.
    """
    encoding = "linear" if settings.encoding == "auto" else settings.encoding
    C = 1.0 if isinstance(settings.C, str) else float(settings.C)
    if settings.estimator is not None:
        return [(Recipe(settings.estimator, encoding, C), _GIVEN_SETS)]
    logistic = Recipe(None, encoding, C, settings.products)
    n_folds, n_rows = rehearsal.n_trained
    bought = min(rehearsal.prices.n_units, _TYPICAL)
    problem = rehearsal.problems(encoding)[0][0]
    width = problem.train.shape[0] / rehearsal.prices.n_units * bought
    width *= (width + 1) / 2 if settings.products else 1
    seconds = n_folds * np.array([training_seconds(rehearsal.n_classes, n_rows, width), tree_seconds(n_rows, width)])
    entries = [(logistic, seconds[0]), (Recipe(shrunken_tree(), "linear"), seconds[1])]
    if settings.final_estimator != "auto":
        entries = entries[:1]
    elif not logistic.is_batched(problem):
        entries = entries[1:]
    entries.sort(key=lambda entry: float(entry[1]) > _SLOW * float(seconds.min()))
    allowed = [(recipe, int(np.clip(_SECONDS / each, _FEWEST_SETS, _MOST_SETS))) for recipe, each in entries]
    return [allowed[0], *(entry for entry in allowed[1:] if entry[1] > _FEWEST_SETS)]
