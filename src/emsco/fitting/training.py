"""The models of a front: all feature sets that its points need, trained on all rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray
from emsco.designs.partition import acquired_sets, set_key
from emsco.exceptions import SearchInterruptedWarning, SuspiciousColumnWarning
from emsco.fitting.aside import SetAside
from emsco.fitting.clock import Clock
from emsco.fitting.finishing import SETS_AT_ONCE
from emsco.fitting.rehearsal import Rehearsal, Setup
from emsco.fitting.settings import Settings
from emsco.promises.guarantee import Plan
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge
from emsco.search.base import TimeUpError
from emsco.stages.base import StageModel, StageTrainer

_FEW_AT_ONCE = 2  # where there is a time limit


@dataclass(frozen=True, eq=False)
class Trained:
    """The points whose stages are trained, with the models of these stages."""

    front: Front
    plans: list[Plan]
    setup: Setup
    models: Mapping[bytes, StageModel]
    train: Callable[[BoolArray], list[StageModel]]


def train_front(
    settings: Settings, front: Front, first: int, judge: Judge, setup: Setup, aside: SetAside, rehearsal: Rehearsal
) -> Trained:
    """Plan what can be promised of each point by rows that do not calibrate, then train its stages.

    Whatever happens, the ``first`` point is trained.
    """
    rows = aside.calibration
    plans: list[Plan] = []
    if rows is not None:
        n_classes = aside.classes.size
        plans = settings.policy.plans(front.designs, judge.answers, n_classes=n_classes, n_rows=rows.truth.size)
    train = judge.cache.models
    if settings.refit and not rehearsal.crosses:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
            setup = rehearsal.everything().prepared(setup.recipe, seed=settings.seed, n_jobs=settings.n_jobs)
        train = partial(train_sets, setup.trainer)
    models, ready = _train_points(front, first, train, rehearsal.clock)
    if len(ready) < len(front):
        front, plans = replace(front[ready], certificate=None), [plans[i] for i in ready if plans]
    return Trained(front, plans, setup, models, train)


def train_sets(trainer: StageTrainer, sets: BoolArray) -> list[StageModel]:
    """Train feature sets without validation samples: there is nothing to score."""
    return trainer.models(sets, trainer.train(sets))


def _train_points(
    front: Front, first: int, train: Callable[[BoolArray], list[StageModel]], clock: Clock
) -> tuple[dict[bytes, StageModel], NDArray[np.intp]]:
    """Return the models of all sets that the front needs, and the points that have theirs: all, unless interrupted.

    The set of everything comes first, then those of the first point, then those of point after point.
    """
    needed = [sets_of(front, point) for point in range(len(front))]
    begin = np.concatenate([np.ones((1, front.designs.shape[1]), dtype=np.bool_), needed[first]])
    sets = _distinct(np.concatenate([begin, *needed]))
    models: dict[bytes, StageModel] = {}

    def add(part: BoolArray) -> None:
        models.update(zip(map(set_key, part), train(part), strict=True))
        clock("training the front", len(models) / len(sets))

    try:
        n_begun, step = len(_distinct(begin)), _FEW_AT_ONCE if clock.is_limited else SETS_AT_ONCE
        with clock.must():
            add(sets[:n_begun])
        for i in range(n_begun, len(sets), step):
            add(sets[i : i + step])
    except (KeyboardInterrupt, TimeUpError) as reason:
        lacks = [any(set_key(units) not in models for units in sets) for sets in needed]
        ready = np.flatnonzero(~np.array(lacks))
        if not ready.size:
            raise
        if isinstance(reason, KeyboardInterrupt):
            clock.warn(
                f"interrupted while the front was trained; {ready.size} of its {len(front)} points are there.",
                SearchInterruptedWarning,
            )
        return models, ready
    return models, np.arange(len(front))


def sets_of(front: Front, point: int) -> BoolArray:
    """Return the feature sets of the stages of a point; of one that branches, those of all branches."""
    branched = front.branched[point] if front.branched else None
    acquired, exists = acquired_sets(front.designs[[point]] if branched is None else branched.rows)
    return np.asarray(acquired[exists])


def _distinct(sets: BoolArray) -> BoolArray:
    """Return each set once, in the order in which they come first."""
    return sets[np.sort(np.unique(sets, axis=0, return_index=True)[1])]
