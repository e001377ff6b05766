"""From a table to a front, one value per step.

read -> set aside -> rehearse -> task -> settle the recipe -> search -> finish -> train -> promise -> choose
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.checks import n_threads
from emsco.data.labels import check_target, known_codes, plain_classes
from emsco.data.splits import check_columns, is_folds, make_folds, split_rows
from emsco.data.table import ReadTable, Table, check_size
from emsco.deployed.model import Deployed, Origin
from emsco.designs.partition import check_max_stages
from emsco.exceptions import BaseRateWarning, InvalidInputError, SearchInterruptedWarning, TimeLimitWarning
from emsco.fitting.aside import SetAside, set_aside
from emsco.fitting.branching import NO_BRANCHES, Branching, look_for_branches
from emsco.fitting.choosing import by_class, chosen, same_point
from emsco.fitting.clock import Clock
from emsco.fitting.errors import errors_of, savings_of_each
from emsco.fitting.final import Finished, Found, finish_front
from emsco.fitting.forecast import forecast, search_seconds
from emsco.fitting.forks import branch_of_samples
from emsco.fitting.joining import joined
from emsco.fitting.large import RACED, LargeRehearsal, is_many, sampled, widened
from emsco.fitting.limited import LimitedPace, counted_in_time, first_choice, search_in_time, trained_in_time
from emsco.fitting.memory import Memory
from emsco.fitting.priced import finish_priced, searched_by
from emsco.fitting.probes import probing, settle
from emsco.fitting.promising import promise_of_each
from emsco.fitting.proxy import Proxy
from emsco.fitting.race import final_stages, race, race_seconds
from emsco.fitting.rehearsal import Rehearsal, Setup, check_calibrable
from emsco.fitting.settings import Settings, check_chosen
from emsco.fitting.streams import Streams
from emsco.fitting.timing import Workers
from emsco.fitting.training import Trained, train_front
from emsco.prices.errors import resolve_errors
from emsco.prices.prices import PriceList, check_validation_size, resolve
from emsco.promises.guarantee import hopeful
from emsco.scoring.choice import TOTAL
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import PAPER, Aims, Loss, check_objectives
from emsco.scoring.rejection import RejectRule
from emsco.search.auto import BARELY, BRIEFLY, Auto
from emsco.search.base import OUT_OF_TIME, History, Run, Search, Searched, TimeUpError
from emsco.stages.estimator import check_estimator_usable
from emsco.stages.learners import TREE
from emsco.stages.recipe import Recipe
from emsco.stages.shrunken import ShrunkenTree

_RACED_ROWS, _RACED_CELLS = 5_000, 300_000  # of which all folds tell which final learner is best
_BRIEF = 0.2  # share of the time left that a search may take where another learner takes over
_CALIBRATION_FOLDS = 3  # that calibrate the probabilities of final stages


@dataclass(frozen=True, eq=False)
class Given:
    """What was given to fit, besides the settings."""

    table: Table
    y: Any
    X_val: Any = None
    y_val: Any = None
    X_cal: Any = None
    y_cal: Any = None
    names_are_text: bool = False


@dataclass(frozen=True, eq=False)
class Read:
    """A table that can be learned from, with its prices."""

    table: Table
    codes: IntArray
    classes: NDArray[Any]
    prices: PriceList
    max_stages: int


@dataclass(frozen=True, eq=False)
class Fitted:
    """A deployed front, any point of which can be put into use, and how to choose one."""

    deployed: Deployed
    choose: Callable[[], int]
    branching: Branching = NO_BRANCHES


def fit(
    settings: Settings, given: Given, clock: Clock, memory: Memory | None = None, workers: Workers | None = None
) -> Fitted:
    """Search designs and train the stages of all that are on the front.

    Parameters
    ----------
    settings : Settings
    given : Given
        Rows.
    clock : Clock
        Says when it must end, if it must, and shows how far it is.
    memory : Memory or None
        The checkpoint of the run.
    workers : Workers or None
        Who trains. None: this process.
    """
    streams = Streams.of(settings.seed)
    read = read_table(settings, given)
    aside = set_aside(
        settings.policy, read.table, read.codes, read.classes, given.X_cal, given.y_cal, streams.calibration
    )
    everyone = replace(rehearse(settings, aside, read.prices, given, streams.split, clock), workers=workers)
    sample = _sample(settings, everyone)
    task = make_task(settings, sample, aside.classes, read.max_stages)

    def task_of(rehearsal: Rehearsal) -> Task:
        return task if rehearsal is sample else _task_of(settings, task, rehearsal, aside.classes)

    if memory is not None:
        memory.claim(settings, task, sample)
    if settings.errors is not None:
        run = Run(streams.search, n_threads(settings.n_jobs), clock, [], None)
        finished, searched = finish_priced(settings, everyone, task_of(everyone), run)
        return deploy(settings, given, read, aside, run, searched, finished)
    tried = sample.scout()
    raced = sample if sample.is_at_most(_RACED_ROWS, _RACED_CELLS) else tried
    if sample is not everyone:
        raced = sampled(everyone, np.random.default_rng(settings.seed), RACED).scout()
    recipe, final = settle_recipe(settings, tried, raced, task_of(tried), aside.classes, streams.recipe, memory)
    if sample is not everyone and final is None:
        final = recipe
    scout = sample if final is None else sample.scout()
    expect = partial(_expect, settings, task_of(scout), scout, recipe, final=final)
    wide = sample if sample is everyone or final is None else _widened(settings, everyone, tried, final, expect)
    expect(wide)
    for rehearsal in (tried, raced):
        rehearsal.forget(but=[recipe.encoding, *([] if final is None else [final.encoding])])
    setup = scout.prepared(recipe, seed=settings.seed, n_jobs=settings.n_jobs)
    if memory is not None:
        memory.keep_rows(scout.y.size)
    store = None if memory is None else memory.store()
    judge = Judge(task_of(scout), setup.trainer, store, fast=settings.estimator is None)
    history: History = []
    journal = None if memory is None else memory.journal(history)
    run = Run(streams.search, n_threads(settings.n_jobs), clock, history, journal)
    proxy = make_proxy(settings, task, setup, scout)
    pace = LimitedPace(clock, judge, setup.trainer.timing, partial(Proxy, scout, recipe.encoding), proxy)
    picked = _picked(settings, task, slow=proxy is not None, takes_over=final is not None)
    searched = search(settings, judge, run, setup, pace, picked)
    found = Found(searched.front, judge, setup, scout, proxy, pace)
    finished = finish_front(settings, found, final, wide, task_of, memory)
    branching = look_for_branches(settings, finished, aside.codes, plain_classes(aside.classes))
    conclude = partial(deploy, settings, given, read, aside, run, searched, finished, branching)
    try:
        return conclude()
    except KeyboardInterrupt:
        clock.hurry()
        fitted = conclude()
        clock.warn(
            f"interrupted; {len(fitted.deployed.designs)} of the {len(finished.front)} points of the front are there.",
            SearchInterruptedWarning,
        )
        return fitted


def _task_of(settings: Settings, task: Task, rehearsal: Rehearsal, classes: NDArray[Any]) -> Task:
    """Return the same task for the rows of another rehearsal."""
    return replace(task, y=rehearsal.y, aims=aims_of(settings, rehearsal.y, classes), errors=rehearsal.judged_errors)


def _sample(settings: Settings, everyone: Rehearsal) -> Rehearsal:
    """Return the rows that are searched: all, unless there are many and no search was asked for."""
    if not is_many(everyone) or not isinstance(settings.search, Auto):
        return everyone
    return sampled(everyone, np.random.default_rng(settings.seed))


def _widened(
    settings: Settings, everyone: Rehearsal, sample: Rehearsal, final: Recipe, expect: Callable[[Rehearsal], None]
) -> Rehearsal:
    """Return the rows that train and judge final stages: as many as there is time for, with a limit."""
    like, clock, share = sample.problems(final.encoding)[0][0], everyone.clock, 1.0
    while True:
        wide = widened(everyone, final, like, np.random.default_rng(settings.seed), share=share)
        if not isinstance(wide, LargeRehearsal):
            return wide
        expect(wide)
        n_rows = int(wide.starts[-1])
        if clock.affords_later(wide.encoding_seconds(final.encoding)) or n_rows < 2 * sample.n_trained[1]:
            if share < 1:
                clock.cut(f"final stages learn from {n_rows:,} rows", "training the final stages")
            return wide
        share /= 2


def read_table(settings: Settings, given: Given) -> Read:
    """Check the labels of the training table, and its prices."""
    table = given.table
    codes, classes = check_target(given.y, table.n_rows)
    prices = resolve(settings.costs, table.names)
    return Read(table, codes, classes, prices, check_max_stages(settings.max_stages, prices.n_units))


def rehearse(
    settings: Settings, aside: SetAside, prices: PriceList, given: Given, rng: np.random.Generator, clock: Clock
) -> Rehearsal:
    """Decide which rows train and which judge."""
    table, codes, classes, learn = ReadTable.of(aside.table), aside.codes, aside.classes, aside.learn
    errors = None if settings.errors is None else errors_of(settings, aside, prices)
    if (given.X_val is None) != (given.y_val is None):
        raise InvalidInputError("give X_val and y_val together, or neither.")
    if given.X_val is not None:
        judges = Table(given.X_val)
        check_size(judges)
        check_columns(judges, table)
        judged = known_codes(given.y_val, classes, judges.n_rows)
        return Rehearsal(table, codes, classes.size, prices, None, (judges, judged), learn, clock, errors)
    if is_folds(settings.validation):
        folds = make_folds(settings.validation, codes[learn], classes, rng)
    else:
        folds = [split_rows(codes[learn], settings.validation, rng, classes)]
    if not isinstance(learn, slice):
        folds = [(learn[train], learn[judges]) for train, judges in folds]
    return Rehearsal(table, codes, classes.size, prices, folds, learn=learn, clock=clock, errors=errors)


def make_task(settings: Settings, rehearsal: Rehearsal, classes: NDArray[Any], max_stages: int) -> Task:
    """Say which designs are looked for, and what they are to be good at."""
    y = rehearsal.y
    check_validation_size(y.size)
    aims = aims_of(settings, y, classes)
    check_chosen(settings.choose, settings.best, PAPER if aims is None else aims.names, plain_classes(classes))
    shares = np.bincount(y, minlength=classes.size) / y.size
    rule = RejectRule.of(settings.policy.search_rule(classes, float(shares.max())).bars[:max_stages])
    if not settings.policy.tunes:
        _warn_of_base_rate(rule, classes, shares, rehearsal.clock)
    tunes, removal, errors = settings.policy.tunes, settings.removal, rehearsal.judged_errors
    if errors is not None:
        rule = searched_by(errors, y)
    task = Task(y, classes.size, rehearsal.prices, rule, aims, max_stages, removal, settings.cache_bytes, tunes, errors)
    settings.search.check(task)
    return task


def aims_of(settings: Settings, y: IntArray, classes: NDArray[Any]) -> Aims | None:
    """Return what designs are compared by; where errors have prices, money for tests and for errors."""
    objectives = settings.objectives
    if settings.errors is not None:
        errors = resolve_errors(settings.errors, classes)
        objectives = ["cost", Loss(errors.matrix, errors.rejected)]
    return check_objectives(objectives, np.bincount(y, minlength=classes.size), plain_classes(classes))


def _warn_of_base_rate(rule: RejectRule, classes: NDArray[Any], shares: FloatArray, clock: Clock) -> None:
    """Warn if always answering one class would pass for confident."""
    largest = int(shares.argmax())
    bar, label = min(rule.bar(stage, largest) for stage in range(rule.n_rows)), plain_classes(classes)[largest]
    if bar <= shares[largest]:
        others = f"no row of {plain_classes(classes)[1 - largest]!r}" if classes.size == 2 else "none of the others"
        clock.warn(
            f"the threshold {bar:.4g} is not above the share of {label!r}, {shares[largest]:.4g}: always answering "
            f"{label!r} labels everybody, is right for {shares[largest]:.1%}, and finds {others}. Use a higher "
            "threshold, or threshold=None, with which each point has its own.",
            BaseRateWarning,
        )


def settle_recipe(
    settings: Settings,
    rehearsal: Rehearsal,
    raced: Rehearsal,
    task: Task,
    classes: NDArray[Any],
    rng: np.random.Generator,
    memory: Memory | None,
) -> tuple[Recipe, Recipe | None]:
    """Return how stages learn in the search, and how the stages of the front learn if that differs."""
    clock, n_jobs = rehearsal.clock, settings.n_jobs
    plain = Recipe(settings.estimator, products=settings.products)
    recipe = memory.recipe(settings) if memory is not None else None
    if recipe is None:
        probes = probing(
            task,
            rng,
            by_sureness=settings.policy.set_aside is not None,
            by_worth=task.tunes,
            fast=Recipe(products=settings.products).is_batched(rehearsal.problems("linear")[0][0]),
        )
        _expect(settings, task, rehearsal, plain, rehearsal, chance=0.5)
        clock.begin("comparing learners")
        scores = {} if memory is None else memory.scores()
        options: dict[str, Any] = {"encoding": settings.encoding, "C": settings.C, "n_jobs": n_jobs}
        recipe = settle(rehearsal, plain, **options, score=probes.score, sets=probes.sets, known=scores)
        if memory is not None:
            memory.keep_recipe(recipe, scores, settled="comparing learners" not in clock.cuts)
    _expect(settings, task, rehearsal, recipe, rehearsal, chance=0.5, raced=raced)
    final = _final_recipe(settings, recipe, rehearsal, raced, classes)  # what is wrong is said before the search
    return recipe, final


def _races(settings: Settings) -> bool:
    """Return whether the learner of the final stages is found by a race."""
    auto = isinstance(settings.final_estimator, str) and settings.final_estimator == "auto"
    return auto and settings.estimator is None and settings.calibration is None


def _expect(
    settings: Settings,
    task: Task,
    rehearsal: Rehearsal,
    recipe: Recipe,
    wide: Rehearsal,
    final: Recipe | None = None,
    *,
    chance: float = 1.0,
    raced: Rehearsal | None = None,
) -> None:
    """Tell the clock how long the phases from the search on will take; before the race with a chance of each end.

    ``rehearsal`` is that of the search, ``wide`` that of final stages, ``raced`` that of the race if it is another.
    """
    n_jobs, fast = settings.n_jobs, settings.estimator is None
    searching = _picked(settings, task, slow=_is_slow(settings, recipe, rehearsal), takes_over=final is not None)
    if isinstance(searching, Auto):
        searching = searching.picked(task, fast=fast)
    timing, stages = rehearsal.timing(recipe, n_jobs=n_jobs), None
    if final is not None or (chance < 1 and _races(settings)):
        stages = final_stages(wide, final, rehearsal, n_jobs=n_jobs)
    seconds = forecast(task, searching, timing, fast=fast, final=stages, chance=chance)
    if chance < 1 and _races(settings):
        brief = search_seconds(BRIEFLY, task, timing, fast=fast)
        seconds["searching"] = chance * min(brief, seconds["searching"]) + (1 - chance) * seconds["searching"]
        seconds["racing final learners"] = race_seconds(rehearsal, recipe, raced or rehearsal, n_jobs=n_jobs)
    others = {"ordering features": 0.0, "training the final stages": 0.0, "calibrating": 0.0}
    if settings.policy.set_aside is not None:
        others["calibrating"] = 1.0
    rehearsal.clock.expect(others | seconds)


def _final_recipe(
    settings: Settings, recipe: Recipe, rehearsal: Rehearsal, raced: Rehearsal, classes: NDArray[Any]
) -> Recipe | None:
    final, encoding = settings.final_estimator, recipe.encoding
    if isinstance(final, str):
        final = None
        if _races(settings):
            clock, n_jobs = rehearsal.clock, settings.n_jobs
            clock.begin("racing final learners")
            if not clock.affords(race_seconds(rehearsal, recipe, raced, n_jobs=n_jobs)):
                raced = rehearsal
            winner = race(raced, recipe, tunes=settings.policy.tunes, seed=settings.seed, n_jobs=n_jobs)[0]
            if winner.name != "logistic":
                return winner.recipe
    if final is None and settings.calibration is None:
        return None
    if final is None:
        # Compared with None: an untrained forest has no length, so it is neither true nor false.
        final = recipe.logistic() if recipe.estimator is None else recipe.estimator
    else:
        check_estimator_usable(final)
        if settings.encoding == "auto":
            encoding = "linear"
    if settings.calibration is not None:
        from sklearn.calibration import CalibratedClassifierCV

        check_calibrable(rehearsal, classes, _CALIBRATION_FOLDS)
        final = CalibratedClassifierCV(final, method=settings.calibration, cv=_CALIBRATION_FOLDS, ensemble=False)
    return Recipe(final, encoding, recipe.C)


def make_proxy(settings: Settings, task: Task, setup: Setup, rehearsal: Rehearsal) -> Proxy | None:
    """Return what orders units where logistic stages are slow to train, if so."""
    recipe = setup.recipe
    return Proxy(rehearsal, recipe.encoding) if task.tunes and _is_slow(settings, recipe, rehearsal) else None


def _is_slow(settings: Settings, recipe: Recipe, rehearsal: Rehearsal) -> bool:
    """Return whether logistic stages have so many weights that they are slow to train."""
    return settings.estimator is None and not recipe.is_batched(rehearsal.problems(recipe.encoding)[0][0])


def _picked(settings: Settings, task: Task, *, slow: bool, takes_over: bool) -> Search:
    """Return the search: that of the user, or the one that suits; a brief one where another learner takes over."""
    if not isinstance(settings.search, Auto) or not task.tunes:
        return settings.search
    if slow:
        return BARELY
    return BRIEFLY if takes_over else settings.search


def search(settings: Settings, judge: Judge, run: Run, setup: Setup, pace: LimitedPace, searching: Search) -> Searched:
    """Search designs; where that ended early, the front is the best found so far."""
    clock = setup.trainer.clock
    brief = searching is BRIEFLY or searching is BARELY
    clock.begin("searching", most=_BRIEF if brief else 1.0)
    if clock.is_limited:
        searching = _in_time(settings, judge, run, setup, pace, searching)
    try:
        searched = searching.search(judge, run)
    except TimeUpError:
        with clock.must():
            at_once = np.zeros((1, judge.task.prices.n_units), dtype=np.int64)
            front = judge.task.front(at_once, judge.tally(at_once))
        ended = f"{OUT_OF_TIME} before its first designs were there"
        if isinstance(searching, Auto):
            searching = searching.picked(judge.task, fast=judge.fast)
        searched = Searched(front, searching, 0, judge.cache.n_trained, run.seconds, ended, out_of_time=True)
    unproven = "" if searched.front.certificate is None else ", not proven"
    kind = "exact search" if unproven else "search"
    if searched.out_of_time:
        clock.cut("the proof was not finished" if unproven else f"the search was {searched.ended}")
    elif searched.ended:
        message = f"{kind} {searched.ended}; the front is the best found so far{unproven}."
        clock.warn(message, SearchInterruptedWarning)
    return searched


def _in_time(settings: Settings, judge: Judge, run: Run, setup: Setup, pace: LimitedPace, searching: Search) -> Search:
    """Return a search that there is time for; before it, one classifier of all features is trained in any case."""
    clock, task = setup.trainer.clock, judge.task
    with clock.must():  # a front of one point, whatever happens; it also tells how fast the learner is
        judge.cache.slots(np.ones((1, task.prices.n_units), dtype=np.bool_))
    if not clock.affords(0.0):
        clock.cut(f"one classifier of all features, the least that a fit needs, was there after {clock.elapsed:.3g} s")
    picked = searching.picked(task, fast=judge.fast) if isinstance(searching, Auto) else searching
    run.pace = pace
    if run.journal is not None and run.journal.phase == type(picked).__name__:
        return searching  # it goes on
    given = not isinstance(settings.search, Auto)
    short = search_in_time(picked, judge, setup.trainer.timing, clock, given=given)
    if short is picked:
        return searching
    run.journal = None  # which is of the search that a run without a limit would use
    return short


def deploy(
    settings: Settings,
    given: Given,
    read: Read,
    aside: SetAside,
    run: Run,
    searched: Searched,
    finished: Finished,
    branching: Branching = NO_BRANCHES,
) -> Fitted:
    """Train the points of the front, look at the calibration rows, once, and put all together."""
    clock, classes, policy = finished.rehearsal.clock, aside.classes, settings.policy
    trained = joined(_trained(settings, finished, aside), branching, finished)
    if aside.calibration is not None:
        clock.begin("calibrating")
    front, recipe, encoder = trained.front, trained.setup.recipe, trained.setup.encoder
    origin = Origin(
        kind="EMSCOClassifier",
        parameters=settings.given,
        preset=settings.from_preset,
        encoding=recipe.encoding,
        C=recipe.C,
        validation=finished.rehearsal.judged_by,
        finished=finished.complete,
        learner=TREE if isinstance(recipe.estimator, ShrunkenTree) else recipe.kind,
        search=searched.search,
        search_seconds=searched.seconds,
        n_generations=searched.n_steps,
        n_feature_sets=searched.n_feature_sets,
        history=np.array(run.history, dtype=np.int64).reshape(-1, 3),
        names_are_text=given.names_are_text,
        timed_out=tuple(clock.cuts.values()) if clock.limit is not None else (),
    )
    deployed = Deployed(
        classes, encoder, read.table.named, read.prices, front.designs, trained.models, policy, rules=(), origin=origin,
        front=front, errors=finished.rehearsal.errors,
    )  # fmt: skip
    promises = promise_of_each(deployed, trained.plans, aside)
    rules = policy.rules(classes, front.designs, front.thresholds, promises)
    deployed = replace(deployed, promises=promises, rules=rules)
    if deployed.errors is not None:
        branch_of = partial(branch_of_samples, rehearsal=finished.rehearsal)
        deployed = replace(deployed, savings=savings_of_each(deployed, finished.judge, branch_of))
    n_rows = 0 if aside.calibration is None else aside.calibration.truth.size
    if origin.timed_out:
        clock.warn(clock.in_words, TimeLimitWarning)
    if settings.choose == TOTAL and finished.pick is not None:
        return Fitted(deployed, partial(same_point, finished.front, finished.pick, front), branching)
    return Fitted(deployed, partial(chosen, settings, front, hopeful(trained.plans, n_rows)), branching)


def _trained(settings: Settings, finished: Finished, aside: SetAside) -> Trained:
    """Count the points of a front by class and train their stages; with a time limit, of as many as there is time."""
    front, judge, setup, rehearsal = finished.front, finished.judge, finished.setup, finished.rehearsal
    clock = rehearsal.clock
    clock.begin("training the front")
    if clock.is_limited:
        front = counted_in_time(settings, front, finished.pick, judge.task, clock)
    with clock.must():
        front = by_class(front, judge, aside.classes, partial(branch_of_samples, rehearsal=rehearsal))
    first = first_choice(settings, front)
    if clock.is_limited:
        front, first = trained_in_time(front, first, setup.trainer.timing, clock)
    trained = train_front(settings, front, first, judge, setup, aside, rehearsal)
    if len(trained.front) < len(finished.front):
        clock.cut(f"{len(trained.front):,} of {len(finished.front):,} points of the front were trained")
    return trained
