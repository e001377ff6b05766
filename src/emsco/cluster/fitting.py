"""Tables that do not fit into memory: a sample is searched; what it finds is trained and judged on all rows.

Logistic stages are trained on all rows of all partitions. Other learners are trained on the sample, and judged on all
rows that are not in it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.cluster.newton import N_FOLDS, Encoded, extended, solve
from emsco.cluster.partitions import Parts, codes_of, labels_of
from emsco.data.files import MAX_ROWS
from emsco.data.labels import plain_classes
from emsco.data.table import Table
from emsco.deployed.model import Deployed
from emsco.designs.partition import acquired_sets, set_key
from emsco.exceptions import InvalidInputError, InvalidTargetError
from emsco.fitting.clock import Clock
from emsco.fitting.pipeline import Fitted, Given, fit
from emsco.fitting.retraining import counted
from emsco.fitting.settings import Settings
from emsco.scoring.answers import Answers
from emsco.scoring.objectives import check_objectives
from emsco.scoring.rejection import as_rule
from emsco.stages.base import StageModel, outcomes_of
from emsco.stages.large import probabilities
from emsco.stages.logistic import LogisticModel

_RARE = 1_000  # rows of each class that the sample has, if there are as many
_SAMPLE_ROWS, _SAMPLE_BYTES = MAX_ROWS, 2**30  # at most
_ROWS_AT_ONCE = 2**15  # judged


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of a table in partitions, in memory.

    Attributes
    ----------
    X, y
        The rows.
    rows : tuple of ndarray
        Which rows of each partition they are.
    classes : ndarray
        Labels of the whole table.
    n_rows : int
        Rows of the whole table.
    """

    X: Any
    y: NDArray[Any]
    rows: tuple[IntArray, ...]
    classes: NDArray[Any]
    n_rows: int


def fit_partitions(
    settings: Settings,
    parts: Parts,
    sample: Sample,
    given: Given,
    clock: Clock,
    fit_sample: Callable[..., Fitted] = fit,
) -> Fitted:
    """Search designs by a sample, then train and judge the front on all rows.

    Parameters
    ----------
    settings : Settings
    parts : Parts
    sample : Sample
    given : Given
        The sample, as it is given to a fit.
    clock : Clock
    fit_sample : callable
        Fits the sample.
    """
    if settings.errors is not None or settings.policy.set_aside is not None or given.X_val is not None:
        raise InvalidInputError(
            "X is a Dask DataFrame, for which prices of errors, a Guarantee and rows of their own for validation are "
            "not there yet; fit a sample: X.sample(frac=...).compute()."
        )
    if settings.branch is not None:
        raise InvalidInputError(
            "X is a Dask DataFrame, for which designs that branch are not there yet; leave branch=None, or fit a "
            "sample: X.sample(frac=...).compute()."
        )
    fitted = fit_sample(settings, given, clock)
    deployed = fitted.deployed
    if len(sample.y) == sample.n_rows:  # everybody was there
        return fitted
    clock.begin("training the front")
    n_rows = f"{sample.n_rows:,} rows"
    if learns_from_all(deployed):
        clock("training the front", 0.0, f"{n_rows} in {len(parts):,} parts")
        how = Encoded(deployed.encoder, deployed.classes, settings.seed)
        deployed = _trained(parts, deployed, how, deployed.origin.C)
    elif parts.judges_others:
        clock("training the front", 0.5, f"judging on {n_rows}; stages are those of {len(sample.y):,}")
        deployed = _judged(parts, deployed, partial(_said_by_models, deployed, sample.rows), deployed.models)
    return Fitted(deployed, fitted.choose)


def learns_from_all(deployed: Deployed) -> bool:
    """Return whether the stages of a front are trained on all rows: logistic ones."""
    return all(isinstance(model, LogisticModel) for model in deployed.models.values())


def fitting_all(parts: Parts, sample: Sample) -> Callable[..., Fitted]:
    """Return what fits a sample as ``fit`` does, and then trains and judges the front on all rows."""

    def run(settings: Settings, given: Given, clock: Clock, memory: Any = None, workers: Any = None) -> Fitted:
        return fit_partitions(settings, parts, sample, given, clock, partial(fit, memory=memory, workers=workers))

    return run


def draw(parts: Parts, seed: int) -> Sample:
    """Return rows of all partitions, drawn at random, each class in proportion; of rare classes more, or all.

    How many each partition gives is drawn here, which rows by the partition itself: no list of all rows is made.
    """
    found = [*parts.each(_counts)]
    counter: Counter[Any] = Counter()
    for part, _ in found:
        counter.update(part)
    n_rows = sum(counter.values())
    if not n_rows:
        raise InvalidInputError("X has no rows in any partition.")
    try:
        classes = np.unique(np.array([*counter]))
    except TypeError as error:
        raise InvalidTargetError(f"cannot be used as class labels: {error}", parameter="y") from error
    width = sum(size for _, size in found) / n_rows
    most = int(max(min(_SAMPLE_ROWS, _SAMPLE_BYTES / max(width, 1)), 1))
    counts = np.array([[part.get(label, 0) for label in classes.tolist()] for part, _ in found], dtype=np.int64)
    totals = counts.sum(axis=0)
    wanted = totals.copy()
    if n_rows > most:
        wanted = np.minimum(np.maximum(np.round(most * totals / n_rows).astype(np.int64), _RARE), totals)
    rng, quota = np.random.default_rng(seed), np.zeros_like(counts)
    for c, n in enumerate(wanted.tolist()):
        quota[:, c] = _allotted(rng, counts[:, c], n)
    drawn = [*parts.each(_drawn, quota, classes, seed)]
    import pandas

    X = pandas.concat([frame for frame, _, _ in drawn], ignore_index=True)
    y = np.concatenate([labels for _, labels, _ in drawn if len(labels)])
    return Sample(X, y, tuple(rows for _, _, rows in drawn), classes, n_rows)


def _allotted(rng: np.random.Generator, counts: IntArray, n: int) -> IntArray:
    """Return how many of ``n`` rows fall into each partition if they are drawn from all without replacement."""
    taken, left, rest = np.zeros_like(counts), n, int(counts.sum())
    for i, count in enumerate(counts.tolist()):
        rest -= count
        taken[i] = rng.hypergeometric(count, rest, left) if left and count + rest else 0
        left -= int(taken[i])
    return taken


def _counts(X: Any, y: Any, number: int) -> tuple[dict[Any, int], int]:
    """Return how often each label occurs in a partition, and how many bytes its rows take."""
    labels, counts = np.unique(labels_of(y, len(X), number), return_counts=True) if len(X) else ([], [])
    size = int(X.memory_usage(index=False, deep=True).sum())
    return dict(zip(np.asarray(labels).tolist(), np.asarray(counts).tolist(), strict=True)), size


def _drawn(
    X: Any, y: Any, number: int, quota: IntArray, classes: NDArray[Any], seed: int
) -> tuple[Any, NDArray[Any], IntArray]:
    """Return the rows of a partition that are in the sample, their labels, and which they are."""
    codes, rng = codes_of(y, classes, len(X), number), np.random.default_rng([seed, number, 1])
    rows = [rng.permutation(np.flatnonzero(codes == c))[:n] for c, n in enumerate(quota[number].tolist())]
    chosen = np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *rows]))
    return X.iloc[chosen], classes[codes[chosen]], chosen


def _trained(parts: Parts, deployed: Deployed, how: Encoded, C: float) -> Deployed:
    """Return a front whose logistic stages are trained on all rows, and judged by folds of all rows."""
    sets = _sets(deployed)
    columns = [_columns(deployed, units) for units in sets.values()]
    begin = [_weights(deployed.models[key]) for key in sets]
    solved = solve(parts, how, columns, begin, C=C)
    models: dict[bytes, StageModel] = {
        key: LogisticModel(theta[-1, :, :-1], theta[-1, :, -1]) for key, theta in zip(sets, solved.weights, strict=True)
    }
    said = partial(_said_by_folds, how, dict(zip(sets, zip(columns, solved.weights, strict=True), strict=True)))
    return _judged(parts, deployed, said, models, n_folds=N_FOLDS)


def _weights(model: Any) -> FloatArray:
    return np.column_stack([model.coef_, model.intercept_])


def _sets(deployed: Deployed) -> dict[bytes, BoolArray]:
    """Return the sets of units that the points need, and that of all units."""
    acquired, exists = acquired_sets(deployed.designs)
    everything = np.ones((1, deployed.prices.n_units), dtype=np.bool_)
    return {set_key(units): units for units in np.concatenate([everything, acquired[exists]])}


def _columns(deployed: Deployed, units: BoolArray) -> NDArray[np.intp]:
    owned = [c for unit in np.flatnonzero(units) for c in deployed.prices.unit_columns[unit]]
    return deployed.encoder.positions(owned).astype(np.intp)


def _judged(
    parts: Parts, deployed: Deployed, said: Any, models: Mapping[bytes, StageModel], *, n_folds: int | None = None
) -> Deployed:
    """Return a front with its figures on the rows that judge, by what stages say of them."""
    front = deployed.front
    assert front is not None
    reached, confusion, against, (n_wrong,) = parts.total(_counted_part, deployed, said)
    truth = confusion[0].sum(axis=1)
    aims = check_objectives(deployed.objectives, truth, plain_classes(deployed.classes))
    again = replace(
        counted(front, deployed.prices, aims, reached, confusion),
        thresholds=front.thresholds,
        outlook=front.outlook,
        classes=front.classes,
        confusion=confusion,
        against=against,
        n_wrong_with_everything=int(n_wrong),
    )
    for array in (confusion, against):
        array.setflags(write=False)
    origin = deployed.origin if n_folds is None else replace(deployed.origin, validation=n_folds)
    return replace(deployed, models=models, front=again, origin=origin)


def _counted_part(X: Any, y: Any, number: int, deployed: Deployed, said: Any) -> list[IntArray]:
    """Return the counts of each point on the rows of a partition: reached, by class, against buying everything."""
    front, n_classes = deployed.front, deployed.classes.size
    assert front is not None
    reached = np.zeros_like(front.reached)
    confusion = np.zeros((len(front), n_classes, n_classes + 1), dtype=np.int64)
    against, wrong = np.zeros((len(front), n_classes, 2), dtype=np.int64), np.zeros(1, dtype=np.int64)
    for start in range(0, len(X), _ROWS_AT_ONCE):
        ask, truth = said(X, y, number, slice(start, min(start + _ROWS_AT_ONCE, len(X))))
        at_once = np.zeros(deployed.prices.n_units, dtype=np.int64)
        rule = as_rule(0.0) if front.thresholds is not None else deployed.rule_of_everything
        labelled, other = _answers(at_once, ask, truth).results(rule)
        wrong += int((labelled & ~other).sum())
        for i, design in enumerate(deployed.designs):
            answers = _answers(design, ask, truth)
            stage, _ = answers.leaving(deployed.rules[i])
            left = np.bincount(stage, minlength=reached.shape[1])
            reached[i] += left[::-1].cumsum()[::-1]
            confusion[i] += answers.confusion(deployed.rules[i], n_classes)
            right = answers.results(deployed.rules[i])[1]
            against[i, :, 0] += np.bincount(truth[other & ~right], minlength=n_classes)
            against[i, :, 1] += np.bincount(truth[right & ~other], minlength=n_classes)
    return [reached, confusion, against, wrong]


def _answers(design: IntArray, ask: Callable[[bytes], tuple[FloatArray, NDArray[Any]]], truth: IntArray) -> Answers:
    said = [ask(set_key(units)) for units in acquired_sets(design[None])[0][0]]
    return Answers(np.array([sure for sure, _ in said]), np.array([label for _, label in said]), truth)


def _said_by_folds(
    how: Encoded, solved: Mapping[bytes, tuple[NDArray[np.intp], FloatArray]], X: Any, y: Any, number: int, rows: slice
) -> tuple[Any, IntArray]:
    """Return what stages trained without the fold of each row say of it."""
    n_before = np.random.default_rng([how.seed, number]).integers(N_FOLDS, size=len(X))  # of all rows, as in training
    fold, columns = n_before[rows], how.encoder.encode(Table(X.iloc[rows]), slice(None))
    truth = codes_of(y, how.classes, len(X), number)[rows]
    known: dict[bytes, tuple[FloatArray, NDArray[Any]]] = {}

    def ask(key: bytes) -> tuple[FloatArray, NDArray[Any]]:
        if key not in known:
            own, thetas = solved[key]
            part, n_logits = extended(columns, own), thetas.shape[1]
            P = np.empty((n_logits, fold.size))
            for k in range(N_FOLDS):
                P[:, fold == k] = probabilities(thetas[k] @ part[:, fold == k])
            known[key] = outcomes_of((np.concatenate([1 - P, P]) if n_logits == 1 else P).T)
        return known[key]

    return ask, truth


def _said_by_models(
    deployed: Deployed, sampled: tuple[IntArray, ...], X: Any, y: Any, number: int, rows: slice
) -> tuple[Any, IntArray]:
    """Return what the models of a sample say of the rows that are not in it."""
    new = np.setdiff1d(np.arange(rows.start, rows.stop), sampled[number])
    columns = deployed.encoder.encode(Table(X.iloc[new]), slice(None))
    truth = codes_of(y, deployed.classes, len(X), number)[new]
    sets, known = _sets(deployed), dict[bytes, tuple[FloatArray, NDArray[Any]]]()

    def ask(key: bytes) -> tuple[FloatArray, NDArray[Any]]:
        if key not in known:
            own = _columns(deployed, sets[key])
            if new.size:
                answers = np.asarray(deployed.models[key].predict_proba(columns[own].T), dtype=np.float64)
                known[key] = outcomes_of(answers)
            else:
                known[key] = np.zeros(0), np.zeros(0, dtype=np.intp)
        return known[key]

    return ask, truth
