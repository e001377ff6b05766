"""Designs, recipe and rules that are there, on other rows: all stages are trained again, and nothing is searched."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any
import warnings

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import PolynomialFeatures

from emsco.arrays import FloatArray, IntArray
from emsco.data.encoding import CategoryCode
from emsco.data.labels import check_target, plain_classes
from emsco.data.table import ArrangedTable, Table, check_size
from emsco.deployed.model import Deployed
from emsco.designs.partition import acquired_sets, distinct_sets, set_key, stage_counts
from emsco.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    InvalidTargetError,
    MissingColumnError,
    SuspiciousColumnWarning,
    shown,
)
from emsco.fitting.aside import SetAside, set_aside
from emsco.fitting.choosing import by_class
from emsco.fitting.clock import Clock
from emsco.fitting.errors import savings_of_each
from emsco.fitting.finishing import SETS_AT_ONCE
from emsco.fitting.forks import branch_of_samples
from emsco.fitting.given import fit_design
from emsco.fitting.large import is_many, sampled, widened
from emsco.fitting.pipeline import Given, aims_of, rehearse
from emsco.fitting.promising import promise_of_each
from emsco.fitting.rehearsal import Rehearsal, Setup, check_calibrable
from emsco.fitting.settings import Settings, read_settings
from emsco.fitting.streams import Streams
from emsco.fitting.training import train_sets
from emsco.prices.prices import PriceList, check_validation_size
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import LOSS, PAPER, Aims, measure
from emsco.scoring.ranking import norm
from emsco.scoring.rejection import RejectRule, as_rule
from emsco.scoring.tally import Tally
from emsco.stages.alike import Alike
from emsco.stages.base import StageModel
from emsco.stages.learners import TREE
from emsco.stages.logistic import LogisticModel
from emsco.stages.recipe import Recipe
from emsco.stages.shrunken import shrunken_tree

_FOLDS = 5  # that judge, if the rows that judged were given to fit
_OF_THE_RUN = ("validation", "refit", "random_state", "n_jobs", "verbose", "cache_bytes")


def retrain(
    deployed: Deployed, parameters: Mapping[str, Any], X: Any, y: Any, X_cal: Any = None, y_cal: Any = None
) -> Deployed:
    """Return the same designs, recipe and rules with all stages trained on other rows.

    Parameters
    ----------
    deployed : Deployed
    parameters : mapping
        Those of the classifier as they are now; how to run is read from them, all else is as it was in fit.
    X, y : array-like or DataFrame, and labels
    X_cal, y_cal : like X and y, or None
        Rows that calibrate a ``Guarantee``.
    """
    run = {name: parameters[name] for name in _OF_THE_RUN if name in parameters}
    given = Given(
        _arranged(deployed, X, "X"),
        y,
        X_cal=None if X_cal is None else _arranged(deployed, X_cal, "X_cal"),
        y_cal=y_cal,
        names_are_text=deployed.origin.names_are_text,
    )
    if any(branched is not None for branched in deployed.branches):
        raise InvalidInputError("a classifier with designs that branch cannot be retrained yet; fit it again.")
    codes, classes = check_target(y, given.table.n_rows)
    _check_classes(plain_classes(classes), deployed)
    if deployed.front is None:
        again = fit_design({**deployed.origin.parameters, **run}, given)
        _check_classes(plain_classes(again.classes), deployed, "the rows that do not calibrate")
        again = replace(again, classes=deployed.classes, named=deployed.named)
    else:
        settings = read_settings({**deployed.origin.parameters, **run})
        with Clock(verbose=settings.verbose) as clock:
            again = _front_again(deployed, settings, given, codes, clock)
    _check_kinds(deployed, again)
    # Nobody has seen the new calibration rows: the point in use is the one that was chosen before.
    return replace(again, notes=deployed.notes, chosen=deployed.point)


def _arranged(deployed: Deployed, X: Any, name: str) -> Table:
    """Return the columns of the training table in another one, in their order."""
    table = Table(X)
    check_size(table)
    positions = deployed.positions(table)
    missing = [column for column, position in zip(deployed.column_names, positions, strict=True) if position is None]
    if missing:
        raise MissingColumnError(
            f"lacks the columns {shown(missing)}; the stages are trained again on the columns of fit.", parameter=name
        )
    known = [position for position in positions if position is not None]
    return ArrangedTable(table, known, deployed.column_names, named=deployed.named)


def _check_classes(found: list[Any], deployed: Deployed, where: str = "y") -> None:
    """Raise unless labels are of the classes that were trained before, all of them."""
    known = plain_classes(deployed.classes)
    unknown, absent = [c for c in found if c not in known], [c for c in known if c not in found]
    if not unknown and not absent:
        return
    new = f"holds the classes {shown(unknown)}, which were not trained before" if unknown else ""
    gone = f"{'and ' if new else ''}has no row of {shown(absent)}" if absent else ""
    raise InvalidTargetError(
        f"{where} {' '.join(filter(None, (new, gone)))}; retraining keeps the classes {shown(known)}. Add or drop "
        "rows, or fit again."
    )


def _check_kinds(before: Deployed, after: Deployed) -> None:
    """Raise if a column of numbers has become one of text: the file is probably another one, or damaged."""
    for old, new in zip(before.encoder.codes, after.encoder.codes, strict=True):
        if isinstance(new, CategoryCode) and not isinstance(old, CategoryCode):
            raise InvalidInputError(
                f"column {old.name!r} held numbers in fit and holds text or categories now; give numbers, or fit again."
            )


def _front_again(deployed: Deployed, settings: Settings, given: Given, codes: IntArray, clock: Clock) -> Deployed:
    """Train and judge every point of a front again; calibrate what is promised of it."""
    assert deployed.front is not None
    policy, classes, designs, streams = deployed.policy, deployed.classes, deployed.designs, Streams.of(settings.seed)
    if deployed.origin.validation == "given":
        settings = replace(settings, validation=_FOLDS)
    aside = set_aside(policy, given.table, codes, classes, given.X_cal, given.y_cal, streams.calibration)
    _check_classes(plain_classes(aside.classes), deployed, "the rows that do not calibrate")
    # Bars are confidences, which prices of errors turn into money: these stay as they were in fit.
    rehearsal = replace(rehearse(settings, aside, deployed.prices, given, streams.split, clock), errors=deployed.errors)
    recipe = kept_recipe(deployed)
    if isinstance(recipe.estimator, CalibratedClassifierCV):
        check_calibrable(rehearsal, classes, int(recipe.estimator.cv))
    if is_many(rehearsal):
        rng = np.random.default_rng(settings.seed)
        like = sampled(rehearsal, rng).problems(recipe.encoding)[0][0]
        rehearsal = widened(rehearsal, recipe, like, rng)
    setup = rehearsal.prepared(recipe, seed=settings.seed, n_jobs=settings.n_jobs)
    judge = Judge(_task(deployed, settings, rehearsal), setup.trainer, fast=False)
    sets, timing = distinct_sets(designs), setup.trainer.timing
    seconds = {"judging the front": timing.seconds(sets).sum(), "training the front": timing.model_seconds(sets).sum()}
    clock.expect(seconds)
    front = by_class(_judged(deployed, judge, clock), judge, classes)
    plans = []
    if aside.calibration is not None:
        n_rows = aside.calibration.truth.size
        plans = policy.plans(designs, judge.answers, n_classes=classes.size, n_rows=n_rows)
    setup, models = _trained(settings, designs, judge, setup, rehearsal)
    again = replace(
        deployed,
        encoder=setup.encoder,
        models=models,
        front=front,
        promises=(),
        evaluation=None,
        origin=replace(deployed.origin, validation=rehearsal.judged_by, retrained=True, other_thresholds=False),
    )
    if again.errors is not None:
        again = replace(again, savings=savings_of_each(again, judge, partial(branch_of_samples, rehearsal=rehearsal)))
    return _promised(again, plans, aside)


def _promised(again: Deployed, plans: list[Any], aside: SetAside) -> Deployed:
    """Calibrate what is promised of each point; thresholds that no promise calibrates stay as they are."""
    if aside.calibration is None:
        return again
    promises = promise_of_each(again, plans, aside)
    rules = again.policy.rules(again.classes, again.designs, None, promises)
    return replace(again, promises=promises, rules=rules)


def kept_recipe(deployed: Deployed) -> Recipe:
    """Return how the stages in use learned, as their models tell.

    A logistic regression of our own does not know its strength, so that comes from the record of the fit. Models of
    scikit-learn know all their settings.
    """
    origin, model = deployed.origin, _a_model(deployed)
    if origin.learner == TREE:
        return Recipe(shrunken_tree(), origin.encoding, origin.C)
    if isinstance(model, LogisticModel):
        return Recipe(None, origin.encoding, origin.C)
    if origin.parameters.get("products") and isinstance(model, Pipeline) and isinstance(model[0], PolynomialFeatures):
        return Recipe(None, origin.encoding, origin.C, products=True)
    return Alike(model, origin.encoding, origin.C, models=deployed.models)


def _a_model(deployed: Deployed) -> StageModel:
    """Return a model that learned from columns; a stage that buys nothing has a constant one, whatever the learner."""
    models = [deployed.stages[0].model, *deployed.models.values()]
    learned = (m for m in models if not (isinstance(m, LogisticModel) and m.coef_.shape[1] == 0))
    return next(learned, models[0])


def _task(deployed: Deployed, settings: Settings, rehearsal: Rehearsal) -> Task:
    """Say what the designs are judged by."""
    y, n_classes = rehearsal.y, deployed.classes.size
    check_validation_size(y.size)
    aims = aims_of(settings, y, deployed.classes)
    if deployed.front is not None and deployed.front.objectives != (PAPER if aims is None else aims.names):
        raise InvalidParameterError(
            f"were {shown(list(deployed.front.objectives))} in fit, but the model does not hold all of them; fit "
            "again.",
            parameter="objectives",
        )
    depth, searched = int(deployed.designs.max()) + 1, deployed.policy.searched_with
    rule = deployed.rules[0]  # that of all points, unless each has its own
    if deployed.policy.set_aside is not None and searched is not None:
        rule = as_rule(searched)
    rule = RejectRule.of(rule.bars[:depth])
    return Task(
        y, n_classes, deployed.prices, rule, aims, depth, settings.removal, settings.cache_bytes,
        errors=rehearsal.judged_errors,
    )  # fmt: skip


def _judged(deployed: Deployed, judge: Judge, clock: Clock) -> Front:
    """Return the front with its figures on the rows of a judge, each point by its own rule; no point moves.

    The thresholds of a promise are calibrated later, so its points are judged by the threshold of the search, as in
    fit.
    """
    front, designs, task = deployed.front, deployed.designs, judge.task
    assert front is not None
    sets = distinct_sets(designs)
    clock.begin("judging the front")
    step = min(SETS_AT_ONCE, judge.cache.capacity)
    for i in range(0, len(sets), step):
        judge.cache.slots(sets[i : i + step])
        clock("judging the front", min((i + step) / len(sets), 1.0))
    reached = np.zeros_like(front.reached)
    confusion = np.empty((len(front), task.n_classes, task.n_classes + 1), dtype=np.int64)
    lost = np.zeros(len(front))
    for i in np.lexsort(designs.T[::-1]).tolist():  # points of equal designs follow each other
        rule = deployed.rules[i] if deployed.policy.set_aside is None else task.rule
        answers = judge.answers(designs[i])
        stage, _ = answers.leaving(rule)
        left = np.bincount(stage, minlength=reached.shape[1])
        reached[i] = left[::-1].cumsum()[::-1]
        confusion[i] = answers.confusion(rule, task.n_classes)
        if task.errors is not None:
            lost[i] = task.errors.price(task.y, answers.label[stage, np.arange(task.y.size)]).mean()
    thresholds = front.thresholds if deployed.policy.tunes else None
    by_row = task.errors is not None and task.errors.amounts is not None
    figures = counted(front, task.prices, task.aims, reached, confusion, lost if by_row else None)
    return replace(figures, thresholds=thresholds)


def counted(
    front: Front,
    prices: PriceList,
    aims: Aims | None,
    reached: IntArray,
    confusion: IntArray,
    lost: FloatArray | None = None,
) -> Front:
    """Return the designs of a front, in their order, with the figures of other counts and nothing else of it.

    ``lost`` is the mean price of errors of each point, where counts cannot tell it.
    """
    designs = front.designs
    ticks = prices.stage_ticks(acquired_sets(designs)[0])
    tally = Tally(
        n_samples=int(confusion[0].sum()),
        reached=reached,
        n_conclusive=confusion[:, :, :-1].sum(axis=(1, 2)),
        n_correct=np.trace(confusion, axis1=1, axis2=2),
        total_ticks=(reached[:, : ticks.shape[1]] * ticks).sum(axis=1),
        scale=prices.scale,
        least_price=prices.least,
    )
    if aims is not None:
        tally = replace(tally, values=aims.score(tally, np.maximum(stage_counts(designs), 1), confusion))
        if lost is not None and tally.values is not None:
            tally.values[:, aims.names.index(LOSS)] = lost
    figures = measure(tally)
    accuracy = np.where(tally.n_conclusive > 0, figures.accuracy, np.nan)
    values = np.column_stack([figures.coverage, accuracy, figures.mean_cost])
    if aims is not None and tally.values is not None:
        values = np.where(np.array(aims.names) == "accuracy", accuracy[:, None], tally.values)
    fitness = norm(measure(tally) if aims is None else aims.measure(tally))
    for array in (accuracy, figures.coverage, figures.mean_cost, fitness, reached, values):
        array.setflags(write=False)
    return Front(
        designs=designs,
        coverage=figures.coverage,
        accuracy=accuracy,
        mean_cost=figures.mean_cost,
        fitness=fitness,
        n_ties=np.ones(len(front), dtype=np.int64),
        ties=tuple(designs[i : i + 1] for i in range(len(front))),
        feature_names=front.feature_names,
        n_samples=tally.n_samples,
        reached=reached,
        paid=front.paid,
        total_price=front.total_price,
        objectives=front.objectives,
        maximise=front.maximise,
        values=values,
        margin=front.margin,
    )


def _trained(
    settings: Settings, designs: IntArray, judge: Judge, setup: Setup, rehearsal: Rehearsal
) -> tuple[Setup, dict[bytes, StageModel]]:
    """Return the models of all feature sets that the designs need, and their encoder."""
    refit = settings.refit and not rehearsal.crosses
    if refit:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SuspiciousColumnWarning)  # said once
            setup = rehearsal.everything().prepared(setup.recipe, seed=settings.seed, n_jobs=settings.n_jobs)
    sets = distinct_sets(designs)
    rehearsal.clock.begin("training the front")
    models: dict[bytes, StageModel] = {}
    for i in range(0, len(sets), SETS_AT_ONCE):
        part = sets[i : i + SETS_AT_ONCE]
        trained = train_sets(setup.trainer, part) if refit else judge.cache.models(part)
        models.update(zip(map(set_key, part), trained, strict=True))
        rehearsal.clock("training the front", len(models) / len(sets))
    return setup, models
