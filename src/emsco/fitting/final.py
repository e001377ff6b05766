"""Final stages: designs that a search found get their last learner, all rows, and thresholds of their own."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from emsco.arrays import IntArray
from emsco.exceptions import SearchInterruptedWarning
from emsco.fitting.finishing import Asked, Asking, pool, pool_in_time
from emsco.fitting.large import FEWEST_SETS, LargeRehearsal, affordable_large_sets
from emsco.fitting.limited import LimitedPace
from emsco.fitting.memory import Memory
from emsco.fitting.no_worse import MARGIN, choose_no_worse
from emsco.fitting.proxy import Proxy
from emsco.fitting.race import Quick, affordable_sets
from emsco.fitting.rehearsal import Rehearsal, Setup
from emsco.fitting.settings import Settings
from emsco.fitting.tuning import EXITS, tune
from emsco.promises.own import untuned
from emsco.scoring.choice import NO_WORSE
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.search.base import TimeUpError
from emsco.stages.recipe import Recipe


@dataclass(frozen=True, eq=False)
class Found:
    """A front as the search left it, and what judged it: with a final learner, by some of the folds."""

    front: Front
    judge: Judge
    setup: Setup
    rehearsal: Rehearsal
    proxy: Proxy | None
    pace: LimitedPace


@dataclass(frozen=True, eq=False)
class Finished:
    """A front whose designs have their final learner and thresholds, and the default choice, if there is one."""

    front: Front
    pick: int | None
    judge: Judge
    setup: Setup
    rehearsal: Rehearsal
    complete: bool


def finish_front(
    settings: Settings,
    found: Found,
    final: Recipe | None,
    wide: Rehearsal,
    task_of: Callable[[Rehearsal], Task],
    memory: Memory | None,
) -> Finished:
    """Give the designs of a front their final learner and their thresholds, by the rows of ``wide``.

    Ctrl-C leaves those of the search, and so does a time limit if it is too short.
    """
    clock, complete = wide.clock, True
    if final is not None:
        clock.begin("ordering features")
        try:
            try:
                kept = None if isinstance(wide, LargeRehearsal) else memory  # which knows the rows of the sample alone
                return _with_final(settings, found, final, wide, task_of(wide), kept)
            except TimeUpError:
                if not isinstance(wide, LargeRehearsal):
                    raise
            sample = found.rehearsal
            clock.begin("ordering features")
            finished = _with_final(settings, found, final, sample, found.judge.task, None)
            clock.cut(f"final stages are those of a sample of {sample.n_trained[1]:,} rows")
            return finished
        except TimeUpError:
            complete = False
            clock.cut("final stages were not trained; those in use are of the search")
        except KeyboardInterrupt:
            complete = False
            clock.warn(
                "interrupted while the final stages were trained; those in use are of the search.",
                SearchInterruptedWarning,
            )
    front, judge = found.front, found.judge
    finished = Finished(front, None, judge, found.setup, found.rehearsal, complete)
    if not settings.policy.tunes:
        return finished
    clock.begin("ordering features")
    try:
        designs = None
        if clock.affords_all():
            with suppress(TimeUpError):
                designs = pool(front, judge, judge, chains=judge.fast, clock=clock, proxy=found.proxy)
        if designs is None:
            designs = pool_in_time(front, judge, clock=clock, searching=found.pace)
        front, pick = _front_of(settings, designs, judge, found.rehearsal)
        return replace(finished, front=front, pick=pick)
    except KeyboardInterrupt:
        bar = judge.task.rule.bars[0][0]
        clock.warn(
            f"interrupted while thresholds were chosen; all are {bar:.4g}, as in the search.", SearchInterruptedWarning
        )
        return replace(finished, front=untuned(front, bar))


def _with_final(
    settings: Settings, found: Found, final: Recipe, wide: Rehearsal, task: Task, memory: Memory | None
) -> Finished:
    """Give the designs of a front a final learner."""
    clock, seed, n_jobs, scout = wide.clock, settings.seed, settings.n_jobs, found.rehearsal
    front, judge = found.front, found.judge
    clock.check(wide.encoding_seconds(final.encoding))
    again = wide.prepared(final, seed=seed, n_jobs=n_jobs)
    strong = Judge(task, again.trainer, None if memory is None else memory.store(final), fast=False)
    asked: Asked | None = None
    n_sets: int | None = None
    if final.kind is not None:
        n_sets = affordable_sets(wide, final.kind)
        asked = Quick(scout, final.kind, n_sets, seed=seed, n_jobs=n_jobs)
    elif again.trainer.timing.n_large:
        n_sets = affordable_large_sets(wide, final)
    elif isinstance(wide, LargeRehearsal):
        quick = scout.prepared(final, seed=seed, n_jobs=n_jobs).trainer
        asked, n_sets = Asking(Judge(judge.task, quick, fast=False), quick.timing), FEWEST_SETS
    else:
        asked = Asking(strong, again.trainer.timing)
    designs = None
    if clock.affords_all():
        chains, proxy = judge.fast, found.proxy
        with suppress(TimeUpError):
            designs = pool(front, judge, strong, chains=chains, clock=clock, asked=asked, n_sets=n_sets, proxy=proxy)
    if designs is None:
        finishing = LimitedPace(clock, strong, again.trainer.timing, partial(Proxy, scout, final.encoding))
        paces = {"searching": found.pace, "finishing": finishing}
        designs = pool_in_time(front, strong, clock=clock, asked=asked, n_sets=n_sets, **paces)
    return Finished(*_front_of(settings, designs, strong, wide), strong, again, wide, complete=True)


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
