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
from emsco.data.table import Table, check_size
from emsco.deployed.model import Deployed, Origin
from emsco.designs.partition import check_max_stages
from emsco.exceptions import BaseRateWarning, InvalidInputError, SearchInterruptedWarning, TimeLimitWarning
from emsco.fitting.aside import SetAside, set_aside
from emsco.fitting.choosing import by_class, chosen
from emsco.fitting.clock import Clock
from emsco.fitting.finishing import pool, pool_in_time
from emsco.fitting.forecast import forecast
from emsco.fitting.limited import LimitedPace, counted_in_time, first_choice, search_in_time, trained_in_time
from emsco.fitting.memory import Memory
from emsco.fitting.no_worse import MARGIN, choose_no_worse
from emsco.fitting.probes import probing, settle
from emsco.fitting.promising import promise_of_each
from emsco.fitting.proxy import Proxy
from emsco.fitting.race import Quick, final_stages, race, race_seconds
from emsco.fitting.rehearsal import Rehearsal, Setup, check_calibrable, prepare
from emsco.fitting.settings import Settings, check_chosen
from emsco.fitting.training import Trained, train_front
from emsco.fitting.tuning import EXITS, tune
from emsco.prices.prices import PriceList, check_validation_size, resolve
from emsco.promises.guarantee import hopeful
from emsco.promises.own import untuned
from emsco.scoring.choice import NO_WORSE
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import PAPER, check_objectives
from emsco.scoring.rejection import RejectRule
from emsco.search.auto import BARELY, BRIEFLY, Auto
from emsco.search.base import OUT_OF_TIME, History, Run, Search, Searched, TimeUpError
from emsco.stages.estimator import check_estimator_usable
from emsco.stages.recipe import Recipe

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
class Streams:
    """Random numbers: one stream per step, so that one step's draws do not change another's."""

    split: np.random.Generator
    search: np.random.Generator
    calibration: np.random.Generator
    recipe: np.random.Generator

    @classmethod
    def of(cls, seed: int) -> "Streams":
        """Return the streams of a seed."""
        return cls(*(np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(4)))


@dataclass(frozen=True, eq=False)
class Finished:
    """A front whose designs have their final learner and thresholds, and the default choice, if there is one."""

    front: Front
    pick: int | None
    judge: Judge
    setup: Setup
    complete: bool


@dataclass(frozen=True, eq=False)
class Fitted:
    """A deployed front, any point of which can be put into use, and how to choose one."""

    deployed: Deployed
    choose: Callable[[], int]


def fit(settings: Settings, given: Given, clock: Clock, memory: Memory | None = None) -> Fitted:
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
    """
    streams = Streams.of(settings.seed)
    read = read_table(settings, given)
    aside = set_aside(
        settings.policy, read.table, read.codes, read.classes, given.X_cal, given.y_cal, streams.calibration
    )
    rehearsal = rehearse(settings, aside, read.prices, given, streams.split, clock)
    task = make_task(settings, rehearsal, aside.classes, read.max_stages)
    if memory is not None:
        memory.claim(settings, task, rehearsal)
    setup, final = settle_recipe(settings, rehearsal, task, aside.classes, streams.recipe, memory)
    store = None if memory is None else memory.store()
    judge = Judge(task, setup.trainer, store, fast=settings.estimator is None)
    history: History = []
    journal = None if memory is None else memory.journal(history)
    run = Run(streams.search, n_threads(settings.n_jobs), clock, history, journal)
    proxy = make_proxy(settings, task, setup, rehearsal)
    pace = LimitedPace(clock, judge, setup.trainer.timing, partial(Proxy, rehearsal, setup.recipe.encoding), proxy)
    searched = search(settings, judge, run, setup, pace, _picked(settings, task, proxy, takes_over=final is not None))
    finished = finish_front(settings, searched.front, judge, setup, final, rehearsal, memory, proxy, pace)
    conclude = partial(deploy, settings, given, read, aside, rehearsal, run, searched, finished)
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
    table, codes, classes, learn = aside.table, aside.codes, aside.classes, aside.learn
    if (given.X_val is None) != (given.y_val is None):
        raise InvalidInputError("give X_val and y_val together, or neither.")
    if given.X_val is not None:
        judges = Table(given.X_val)
        check_size(judges)
        check_columns(judges, table)
        judged = known_codes(given.y_val, classes, judges.n_rows)
        return Rehearsal(table, codes, classes.size, prices, None, (judges, judged), learn, clock)
    if is_folds(settings.validation):
        folds = make_folds(settings.validation, codes[learn], classes, rng)
    else:
        folds = [split_rows(codes[learn], settings.validation, rng, classes)]
    if not isinstance(learn, slice):
        folds = [(learn[train], learn[judges]) for train, judges in folds]
    return Rehearsal(table, codes, classes.size, prices, folds, learn=learn, clock=clock)


def make_task(settings: Settings, rehearsal: Rehearsal, classes: NDArray[Any], max_stages: int) -> Task:
    """Say which designs are looked for, and what they are to be good at."""
    y = rehearsal.y
    check_validation_size(y.size)
    aims = check_objectives(settings.objectives, np.bincount(y, minlength=classes.size), plain_classes(classes))
    check_chosen(settings.choose, settings.best, PAPER if aims is None else aims.names, plain_classes(classes))
    shares = np.bincount(y, minlength=classes.size) / y.size
    rule = RejectRule.of(settings.policy.search_rule(classes, float(shares.max())).bars[:max_stages])
    if not settings.policy.tunes:
        _warn_of_base_rate(rule, classes, shares, rehearsal.clock)
    tunes, removal = settings.policy.tunes, settings.removal
    task = Task(y, classes.size, rehearsal.prices, rule, aims, max_stages, removal, settings.cache_bytes, tunes)
    settings.search.check(task)
    return task


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
    task: Task,
    classes: NDArray[Any],
    rng: np.random.Generator,
    memory: Memory | None,
) -> tuple[Setup, Recipe | None]:
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
        _expect(settings, task, rehearsal, plain, chance=0.5)
        clock.begin("comparing learners")
        scores = {} if memory is None else memory.scores()
        options: dict[str, Any] = {"encoding": settings.encoding, "C": settings.C, "n_jobs": n_jobs}
        recipe = settle(rehearsal, plain, **options, score=probes.score, sets=probes.sets, known=scores)
        if memory is not None:
            memory.keep_recipe(recipe, scores, settled="comparing learners" not in clock.cuts)
    _expect(settings, task, rehearsal, recipe, chance=0.5)
    final = _final_recipe(settings, recipe, rehearsal, classes)  # what is wrong with it is said before the search
    rehearsal.forget(but=recipe.encoding)
    _expect(settings, task, rehearsal, recipe, final)
    return prepare(rehearsal, recipe, seed=settings.seed, n_jobs=n_jobs), final


def _races(settings: Settings) -> bool:
    """Return whether the learner of the final stages is found by a race."""
    auto = isinstance(settings.final_estimator, str) and settings.final_estimator == "auto"
    return auto and settings.estimator is None and settings.calibration is None


def _expect(
    settings: Settings,
    task: Task,
    rehearsal: Rehearsal,
    recipe: Recipe,
    final: Recipe | None = None,
    *,
    chance: float = 1.0,
) -> None:
    """Tell the clock how long the phases from the search on will take; before the race with a chance of each end."""
    n_jobs, fast = settings.n_jobs, settings.estimator is None
    searching = _picked(settings, task, None, takes_over=final is not None)
    if isinstance(searching, Auto):
        searching = searching.picked(task, fast=fast)
    timing, stages = rehearsal.timing(recipe, n_jobs=n_jobs), None
    if final is not None or (chance < 1 and _races(settings)):
        stages = final_stages(rehearsal, final, n_jobs=n_jobs)
    seconds = forecast(task, searching, timing, fast=fast, final=stages, chance=chance)
    if chance < 1 and _races(settings):
        seconds["racing final learners"] = race_seconds(rehearsal, recipe, n_jobs=n_jobs)
    rehearsal.clock.expect(seconds | {"calibrating": 0.0 if settings.policy.set_aside is None else 1.0})


def _final_recipe(settings: Settings, recipe: Recipe, rehearsal: Rehearsal, classes: NDArray[Any]) -> Recipe | None:
    final, encoding = settings.final_estimator, recipe.encoding
    if isinstance(final, str):
        final = None
        if _races(settings):
            rehearsal.clock.begin("racing final learners")
            tunes = settings.policy.tunes
            winner = race(rehearsal, recipe, tunes=tunes, seed=settings.seed, n_jobs=settings.n_jobs)[0]
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
    """Return what orders units where logistic stages have so many weights that they are slow to train, if so."""
    recipe = setup.recipe
    slow = settings.estimator is None and not recipe.is_batched(rehearsal.problems(recipe.encoding)[0][0])
    return Proxy(rehearsal, recipe.encoding) if slow and task.tunes else None


def _picked(settings: Settings, task: Task, proxy: Proxy | None, *, takes_over: bool) -> Search:
    """Return the search: that of the user, or the one that suits; a brief one where another learner takes over."""
    if not isinstance(settings.search, Auto) or not task.tunes:
        return settings.search
    if proxy is not None:
        return BARELY
    return BRIEFLY if takes_over else settings.search


def search(settings: Settings, judge: Judge, run: Run, setup: Setup, pace: LimitedPace, searching: Search) -> Searched:
    """Search designs; where that ended early, the front is the best found so far."""
    clock = setup.trainer.clock
    clock.begin("searching")
    if clock.is_limited:
        searching = _in_time(settings, judge, run, setup, pace, searching)
    try:
        searched = searching.search(judge, run)
    except TimeUpError:
        with clock.must():
            at_once = np.zeros((1, judge.task.prices.n_units), dtype=np.int64)
            front = judge.task.front(at_once, judge.tally(at_once))
        ended = f"{OUT_OF_TIME} before its first designs were there"
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


def finish_front(
    settings: Settings,
    front: Front,
    judge: Judge,
    setup: Setup,
    final: Recipe | None,
    rehearsal: Rehearsal,
    memory: Memory | None,
    proxy: Proxy | None,
    pace: LimitedPace,
) -> Finished:
    """Give the designs of a front their final learner and their thresholds.

    Ctrl-C leaves those of the search, and so does a time limit if it is too short.
    """
    clock, complete = rehearsal.clock, True
    if final is not None:
        clock.begin("ordering features")
        try:
            return _with_final(settings, front, judge, final, rehearsal, memory, proxy, pace)
        except TimeUpError:
            complete = False
            clock.cut("final stages were not trained; those in use are of the search")
        except KeyboardInterrupt:
            complete = False
            clock.warn(
                "interrupted while the final stages were trained; those in use are of the search.",
                SearchInterruptedWarning,
            )
    if not settings.policy.tunes:
        return Finished(front, None, judge, setup, complete)
    clock.begin("ordering features")
    try:
        if clock.affords_all():
            designs = pool(front, judge, judge, chains=judge.fast, quick=None, clock=clock, proxy=proxy)
        else:
            designs = pool_in_time(front, judge, quick=None, clock=clock, searching=pace, finishing=None)
        return Finished(*_front_of(settings, designs, judge, rehearsal), judge, setup, complete)
    except KeyboardInterrupt:
        bar = judge.task.rule.bars[0][0]
        clock.warn(
            f"interrupted while thresholds were chosen; all are {bar:.4g}, as in the search.", SearchInterruptedWarning
        )
        return Finished(untuned(front, bar), None, judge, setup, complete)


def _with_final(
    settings: Settings,
    front: Front,
    judge: Judge,
    final: Recipe,
    rehearsal: Rehearsal,
    memory: Memory | None,
    proxy: Proxy | None,
    pace: LimitedPace,
) -> Finished:
    """Give the designs of a front a final learner."""
    clock = rehearsal.clock
    again = prepare(rehearsal, final, seed=settings.seed, n_jobs=settings.n_jobs)
    strong = Judge(judge.task, again.trainer, None if memory is None else memory.store(final), fast=False)
    quick = None
    if final.kind is not None:
        quick = Quick(rehearsal, final.kind, seed=settings.seed, n_jobs=settings.n_jobs)
    if clock.affords_all():
        designs = pool(front, judge, strong, chains=judge.fast, quick=quick, clock=clock, proxy=proxy)
    else:
        finishing = LimitedPace(clock, strong, again.trainer.timing, partial(Proxy, rehearsal, final.encoding))
        designs = pool_in_time(front, strong, quick=quick, clock=clock, searching=pace, finishing=finishing)
    return Finished(*_front_of(settings, designs, strong, rehearsal), strong, again, complete=True)


def _front_of(settings: Settings, designs: IntArray, judge: Judge, rehearsal: Rehearsal) -> tuple[Front, int | None]:
    """Return the front of designs with their final learner, and the default choice if there is one.

    Designs get thresholds of their own if the policy says so.
    """
    clock = rehearsal.clock
    with clock.must():
        if not settings.policy.tunes:
            return judge.task.front(designs, judge.tally(designs)), None
        clock.begin("choosing thresholds")
        if settings.choose != NO_WORSE:
            return tune(designs, judge, clock=clock), None
        pick = choose_no_worse(designs, judge, rehearsal.parts(), EXITS, clock)
        front = tune(designs, judge, kept=[(pick.design, pick.exit_at)], clock=clock)
    rule = (pick.exit_at if pick.design.max() > 0 else 0.0, 0.0)
    kept = (front.designs == pick.design).all(axis=1) & (np.asarray(front.thresholds) == rule).all(axis=1)
    return replace(front, margin=MARGIN, outlook=pick.outlook), int(kept.argmax())


def deploy(
    settings: Settings,
    given: Given,
    read: Read,
    aside: SetAside,
    rehearsal: Rehearsal,
    run: Run,
    searched: Searched,
    finished: Finished,
) -> Fitted:
    """Train the points of the front, look at the calibration rows, once, and put all together."""
    clock, classes, policy = rehearsal.clock, aside.classes, settings.policy
    trained = _trained(settings, finished, aside, rehearsal)
    if aside.calibration is not None:
        clock.begin("calibrating")
    front, recipe = trained.front, trained.setup.recipe
    origin = Origin(
        kind="EMSCOClassifier",
        parameters=settings.given,
        preset=settings.from_preset,
        encoding=recipe.encoding,
        C=recipe.C,
        validation=rehearsal.judged_by,
        finished=finished.complete,
        learner=recipe.kind,
        search=searched.search,
        search_seconds=searched.seconds,
        n_generations=searched.n_steps,
        n_feature_sets=searched.n_feature_sets,
        history=np.array(run.history, dtype=np.int64).reshape(-1, 3),
        names_are_text=given.names_are_text,
        timed_out=tuple(clock.cuts.values()) if clock.limit is not None else (),
    )
    encoder, named, designs = trained.setup.encoder, read.table.named, front.designs
    deployed = Deployed(
        classes, encoder, named, read.prices, designs, trained.models, policy, rules=(), origin=origin, front=front
    )
    promises = promise_of_each(deployed, trained.plans, aside)
    rules = policy.rules(classes, designs, front.thresholds, promises)
    deployed = replace(deployed, promises=promises, rules=rules)
    n_rows = 0 if aside.calibration is None else aside.calibration.truth.size
    if origin.timed_out:
        clock.warn(clock.in_words, TimeLimitWarning)
    return Fitted(deployed, partial(chosen, settings, front, hopeful(trained.plans, n_rows)))


def _trained(settings: Settings, finished: Finished, aside: SetAside, rehearsal: Rehearsal) -> Trained:
    """Count the points of a front by class and train their stages; with a time limit, of as many as there is time."""
    clock, front, judge, setup = rehearsal.clock, finished.front, finished.judge, finished.setup
    clock.begin("training the front")
    if clock.is_limited:
        front = counted_in_time(settings, front, finished.pick, judge.task, clock)
    with clock.must():
        front = by_class(front, judge, aside.classes)
    first = first_choice(settings, front)
    if clock.is_limited:
        front, first = trained_in_time(front, first, setup.trainer.timing, clock)
    trained = train_front(settings, front, first, judge, setup, aside, rehearsal)
    if len(trained.front) < len(finished.front):
        clock.cut(f"{len(trained.front):,} of {len(finished.front):,} points of the front were trained")
    return trained
