"""From a table to a front, one value per step.

read -> set aside -> rehearse -> task -> settle the recipe -> search -> finish -> train -> promise -> choose
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.checks import n_threads
from emsco.data.labels import check_target, known_codes, plain_classes
from emsco.data.splits import check_columns, is_folds, make_folds, split_rows
from emsco.data.table import Table, check_size
from emsco.deployed.model import Deployed, Origin
from emsco.designs.partition import acquired_sets, check_max_stages, set_key
from emsco.exceptions import (
    BaseRateWarning,
    InvalidInputError,
    SearchInterruptedWarning,
    SuspiciousColumnWarning,
    warn,
)
from emsco.fitting.aside import SetAside, set_aside
from emsco.fitting.choosing import by_class, chosen
from emsco.fitting.finishing import SETS_AT_ONCE, pool
from emsco.fitting.memory import Memory
from emsco.fitting.no_worse import MARGIN, choose_no_worse
from emsco.fitting.probes import probing, settle
from emsco.fitting.progress import PhaseLine
from emsco.fitting.promising import promise_of_each
from emsco.fitting.proxy import Proxy
from emsco.fitting.race import Quick, race
from emsco.fitting.rehearsal import Rehearsal, Setup, check_calibrable, prepare
from emsco.fitting.settings import Settings, check_chosen
from emsco.fitting.tuning import EXITS, tune
from emsco.prices.prices import PriceList, check_validation_size, resolve
from emsco.promises.guarantee import Plan, hopeful
from emsco.promises.own import untuned
from emsco.scoring.choice import NO_WORSE
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import PAPER, check_objectives
from emsco.scoring.rejection import RejectRule
from emsco.search.auto import BARELY, BRIEFLY, Auto
from emsco.search.base import History, Run, Searched
from emsco.stages.base import StageModel, StageTrainer
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
    """A front whose designs have their final learner and thresholds."""

    front: Front
    judge: Judge
    setup: Setup
    complete: bool


@dataclass(frozen=True, eq=False)
class Trained:
    """The points whose stages are trained, with the models of these stages."""

    front: Front
    plans: list[Plan]
    setup: Setup
    models: Mapping[bytes, StageModel]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A deployed front, any point of which can be put into use, and how to choose one."""

    deployed: Deployed
    choose: Callable[[], int]


def fit(settings: Settings, given: Given, memory: Memory | None = None) -> Fitted:
    """Search designs and train the stages of all that are on the front.

    Parameters
    ----------
    settings : Settings
    given : Given
        Rows.
    memory : Memory or None
        The checkpoint of the run.
    """
    line = PhaseLine(shown=settings.verbose)
    streams = Streams.of(settings.seed)
    read = read_table(settings, given)
    aside = set_aside(
        settings.policy, read.table, read.codes, read.classes, given.X_cal, given.y_cal, streams.calibration
    )
    rehearsal = rehearse(settings, aside, read.prices, given, streams.split)
    task = make_task(settings, rehearsal, aside.classes, read.max_stages)
    if memory is not None:
        memory.claim(settings, task, rehearsal)
    setup, final = settle_recipe(settings, rehearsal, task, aside.classes, streams.recipe, memory, line)
    store = None if memory is None else memory.store()
    judge = Judge(task, setup.trainer, store, fast=settings.estimator is None)
    history: History = []
    journal = None if memory is None else memory.journal(history)
    run = Run(streams.search, n_threads(settings.n_jobs), line, history, journal)
    proxy = make_proxy(settings, task, setup, rehearsal)
    if isinstance(settings.search, Auto) and (proxy is not None or (final is not None and task.tunes)):
        settings = replace(settings, search=BARELY if proxy is not None else BRIEFLY)
    searched = search(settings, judge, run, line)
    finished = finish_front(settings, searched.front, judge, setup, final, rehearsal, memory, line, proxy)
    finished = replace(finished, front=by_class(finished.front, finished.judge, aside.classes))
    trained = train_front(settings, finished, aside, rehearsal)
    return deploy(settings, given, read, aside, rehearsal, run, searched, finished, trained)


def read_table(settings: Settings, given: Given) -> Read:
    """Check the labels of the training table, and its prices."""
    table = given.table
    codes, classes = check_target(given.y, table.n_rows)
    prices = resolve(settings.costs, table.names)
    return Read(table, codes, classes, prices, check_max_stages(settings.max_stages, prices.n_units))


def rehearse(
    settings: Settings, aside: SetAside, prices: PriceList, given: Given, rng: np.random.Generator
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
        return Rehearsal(table, codes, classes.size, prices, None, (judges, judged), learn)
    if is_folds(settings.validation):
        folds = make_folds(settings.validation, codes[learn], classes, rng)
    else:
        folds = [split_rows(codes[learn], settings.validation, rng, classes)]
    if not isinstance(learn, slice):
        folds = [(learn[train], learn[judges]) for train, judges in folds]
    return Rehearsal(table, codes, classes.size, prices, folds, learn=learn)


def make_task(settings: Settings, rehearsal: Rehearsal, classes: NDArray[Any], max_stages: int) -> Task:
    """Say which designs are looked for, and what they are to be good at."""
    y = rehearsal.y
    check_validation_size(y.size)
    aims = check_objectives(settings.objectives, np.bincount(y, minlength=classes.size), plain_classes(classes))
    check_chosen(settings.choose, settings.best, PAPER if aims is None else aims.names, plain_classes(classes))
    shares = np.bincount(y, minlength=classes.size) / y.size
    rule = RejectRule.of(settings.policy.search_rule(classes, float(shares.max())).bars[:max_stages])
    if not settings.policy.tunes:
        _warn_of_base_rate(rule, classes, shares)
    tunes, removal = settings.policy.tunes, settings.removal
    task = Task(y, classes.size, rehearsal.prices, rule, aims, max_stages, removal, settings.cache_bytes, tunes)
    settings.search.check(task)
    return task


def _warn_of_base_rate(rule: RejectRule, classes: NDArray[Any], shares: FloatArray) -> None:
    """Warn if always answering one class would pass for confident."""
    largest = int(shares.argmax())
    bar, label = min(rule.bar(stage, largest) for stage in range(rule.n_rows)), plain_classes(classes)[largest]
    if bar <= shares[largest]:
        others = f"no row of {plain_classes(classes)[1 - largest]!r}" if classes.size == 2 else "none of the others"
        warn(
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
    line: PhaseLine,
) -> tuple[Setup, Recipe | None]:
    """Return how stages learn in the search, and how the stages of the front learn if that differs."""
    line("comparing learners", 0.0)
    recipe = memory.recipe(settings) if memory is not None else None
    if recipe is None:
        recipe = settle(
            rehearsal,
            Recipe(settings.estimator, products=settings.products),
            encoding=settings.encoding,
            C=settings.C,
            score=probing(
                task,
                rng,
                by_sureness=settings.policy.set_aside is not None,
                by_worth=task.tunes,
                fast=Recipe(products=settings.products).is_batched(rehearsal.problems("linear")[0][0]),
            ),
            n_jobs=settings.n_jobs,
        )
        if memory is not None:
            memory.keep_recipe(recipe)
    final = _final_recipe(settings, recipe, rehearsal, classes)  # what is wrong with it is said before the search
    rehearsal.forget(but=recipe.encoding)
    line("comparing learners", 1.0)
    line.close()
    return prepare(rehearsal, recipe, seed=settings.seed, n_jobs=settings.n_jobs), final


def _final_recipe(settings: Settings, recipe: Recipe, rehearsal: Rehearsal, classes: NDArray[Any]) -> Recipe | None:
    final, encoding = settings.final_estimator, recipe.encoding
    if isinstance(final, str):
        races = final == "auto" and settings.estimator is None and settings.calibration is None
        tunes = settings.policy.tunes
        winner = race(rehearsal, recipe, tunes=tunes, seed=settings.seed, n_jobs=settings.n_jobs)[0] if races else None
        if winner is not None and winner.name != "logistic":
            return replace(winner.recipe, kind=winner.name)
        final = None
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


def search(settings: Settings, judge: Judge, run: Run, line: PhaseLine) -> Searched:
    """Search designs; where that ended early, the front is the best found so far."""
    searched = settings.search.search(judge, run)
    line.close()
    if searched.ended:
        unproven = "" if searched.front.certificate is None else ", not proven"
        kind = "exact search" if unproven else "search"
        message = f"{kind} {searched.ended}; the front is the best found so far{unproven}."
        warn(message, SearchInterruptedWarning)
    return searched


def finish_front(
    settings: Settings,
    front: Front,
    judge: Judge,
    setup: Setup,
    final: Recipe | None,
    rehearsal: Rehearsal,
    memory: Memory | None,
    line: PhaseLine,
    proxy: Proxy | None = None,
) -> Finished:
    """Give the designs of a front their final learner and their thresholds; Ctrl-C leaves those of the search."""
    complete = True
    if final is not None:
        try:
            again = prepare(rehearsal, final, seed=settings.seed, n_jobs=settings.n_jobs)
            store = None if memory is None else memory.store(final)
            strong = Judge(judge.task, again.trainer, store, fast=False)
            quick = None
            if final.kind is not None:
                quick = Quick(rehearsal, final.kind, seed=settings.seed, n_jobs=settings.n_jobs)
            designs = pool(front, judge, strong, chains=judge.fast, quick=quick, line=line, proxy=proxy)
            finished = Finished(_front_of(settings, designs, strong, rehearsal, line), strong, again, complete)
        except KeyboardInterrupt:
            complete = False
            line.close()
            warn(
                "interrupted while the final stages were trained; those in use are of the search.",
                SearchInterruptedWarning,
            )
        else:
            return finished
    if settings.policy.tunes:
        try:
            designs = pool(front, judge, judge, chains=judge.fast, quick=None, line=line, proxy=proxy)
            front = _front_of(settings, designs, judge, rehearsal, line)
        except KeyboardInterrupt:
            line.close()
            bar = judge.task.rule.bars[0][0]
            front = untuned(front, bar)
            warn(
                f"interrupted while thresholds were chosen; all are {bar:.4g}, as in the search.",
                SearchInterruptedWarning,
            )
    return Finished(front, judge, setup, complete)


def _front_of(settings: Settings, designs: IntArray, judge: Judge, rehearsal: Rehearsal, line: PhaseLine) -> Front:
    """Return the front of designs with their final learner; with thresholds of their own, if they get them."""
    if not settings.policy.tunes:
        return judge.task.front(designs, judge.tally(designs))
    line("choosing thresholds", 0.0)
    pick = None
    if settings.choose == NO_WORSE:
        pick = choose_no_worse(designs, judge, rehearsal.parts(), EXITS)
    front = tune(designs, judge, kept=[] if pick is None else [(pick.design, pick.exit_at)])
    line("choosing thresholds", 1.0)
    line.close()
    return front if pick is None else replace(front, margin=MARGIN, outlook=pick.outlook)


def train_front(settings: Settings, finished: Finished, aside: SetAside, rehearsal: Rehearsal) -> Trained:
    """Plan what can be promised of each point by rows that do not calibrate, then train its stages."""
    front, judge, setup = finished.front, finished.judge, finished.setup
    rows = aside.calibration
    plans: list[Plan] = []
    if rows is not None:
        n_classes = aside.classes.size
        plans = settings.policy.plans(front.designs, judge.answers, n_classes=n_classes, n_rows=rows.truth.size)
    train = judge.cache.models
    if settings.refit and not rehearsal.crosses:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
            setup = prepare(rehearsal.everything(), setup.recipe, seed=settings.seed, n_jobs=settings.n_jobs)
        train = partial(train_sets, setup.trainer)
    models, ready = _train_points(front, train, shown=settings.verbose)
    if len(ready) < len(front):
        front, plans = replace(front[ready], certificate=None), [plans[i] for i in ready if plans]
    return Trained(front, plans, setup, models)


def train_sets(trainer: StageTrainer, sets: BoolArray) -> list[StageModel]:
    """Train feature sets without validation samples: there is nothing to score."""
    return trainer.models(sets, trainer.train(sets))


def _train_points(
    front: Front, train: Callable[[BoolArray], list[StageModel]], *, shown: bool
) -> tuple[dict[bytes, StageModel], NDArray[np.intp]]:
    """Return the models of all sets that the front needs, and the points that have theirs: all, unless interrupted.

    The set of everything comes first, then those of point after point.
    """
    acquired, exists = acquired_sets(front.designs)
    needed = np.concatenate([np.ones((1, front.designs.shape[1]), dtype=np.bool_), acquired[exists]])
    sets = needed[np.sort(np.unique(needed, axis=0, return_index=True)[1])]
    models: dict[bytes, StageModel] = {}
    try:
        with PhaseLine(shown=shown) as line:
            for i in range(0, len(sets), SETS_AT_ONCE):
                part = sets[i : i + SETS_AT_ONCE]
                models.update(zip(map(set_key, part), train(part), strict=True))
                line("training the front", len(models) / len(sets))
    except KeyboardInterrupt:
        lacks = [any(set_key(units) not in models for units in sets[has])
                 for sets, has in zip(acquired, exists, strict=True)]  # fmt: skip
        ready = np.flatnonzero(~np.array(lacks))
        if not ready.size:
            raise
        warn(
            f"interrupted while the front was trained; {ready.size} of its {len(front)} points are there.",
            SearchInterruptedWarning,
        )
        return models, ready
    return models, np.arange(len(front))


def deploy(
    settings: Settings,
    given: Given,
    read: Read,
    aside: SetAside,
    rehearsal: Rehearsal,
    run: Run,
    searched: Searched,
    finished: Finished,
    trained: Trained,
) -> Fitted:
    """Look at the calibration rows, once; put all together."""
    front, recipe, classes = trained.front, trained.setup.recipe, aside.classes
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
    )
    encoder, named, designs = trained.setup.encoder, read.table.named, front.designs
    policy = settings.policy
    deployed = Deployed(
        classes, encoder, named, read.prices, designs, trained.models, policy, rules=(), origin=origin, front=front
    )
    promises = promise_of_each(deployed, trained.plans, aside)
    rules = policy.rules(classes, designs, front.thresholds, promises)
    deployed = replace(deployed, promises=promises, rules=rules)
    n_rows = 0 if aside.calibration is None else aside.calibration.truth.size
    return Fitted(deployed, partial(chosen, settings, front, hopeful(trained.plans, n_rows)))
