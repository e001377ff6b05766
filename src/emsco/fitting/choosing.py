"""What becomes of each class at each point of a front, and which point is put into use."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.data.labels import plain_classes
from emsco.designs.branched import Route
from emsco.exceptions import NoPointWarning, NoSuchPointError, WeakEvidenceWarning, warn
from emsco.fitting.settings import Settings
from emsco.scoring.choice import NO_WORSE, choose_point, no_worse
from emsco.scoring.forked import Forked
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge
from emsco.scoring.rejection import as_rule, rule_of


def by_class(
    front: Front,
    judge: Judge,
    classes: NDArray[Any],
    branch_of: Callable[[Route], NDArray[np.intp]] | None = None,
) -> Front:
    """Return the front with its counts by class, also against buying everything; points of one design together.

    ``branch_of`` gives the branch of each sample that judges, for points that branch.
    """
    task = judge.task
    confusion = np.empty((len(front), classes.size, classes.size + 1), dtype=np.int64)
    against = np.empty((len(front), classes.size, 2), dtype=np.int64)
    at_once = judge.answers(np.zeros(task.prices.n_units, dtype=np.int64))
    labelled, other = at_once.results(as_rule(0.0) if front.thresholds is not None else task.rule)
    for i in np.lexsort(front.designs.T[::-1]).tolist():
        branched = front.branched[i] if front.branched else None
        if branched is not None:
            assert branch_of is not None
            forked = Forked(judge, branched, branch_of(branched.route))
            right, confusion[i] = forked.right, forked.confusion()
        else:
            rule = task.rule
            if front.thresholds is not None:
                rule = rule_of(front.thresholds[i].tolist(), n_stages=int(front.designs[i].max()) + 1)
            answers = judge.answers(front.designs[i])
            right, confusion[i] = answers.results(rule)[1], answers.confusion(rule, classes.size)
        against[i, :, 0] = np.bincount(task.y[other & ~right], minlength=classes.size)
        against[i, :, 1] = np.bincount(task.y[right & ~other], minlength=classes.size)
    for array in (confusion, against):
        array.setflags(write=False)
    return replace(
        front,
        classes=tuple(plain_classes(classes)),
        confusion=confusion,
        against=against,
        n_wrong_with_everything=int((labelled & ~other).sum()),
    )


def chosen(settings: Settings, front: Front, promising: NDArray[np.intp]) -> int:
    """Return the point to use: of those whose promise will probably hold, if there are any.

    Pilot rows tell, not those that calibrate: a choice by these would make the promise void. If the promise of every
    point is hopeless, no label will be given, and each case pays for all stages: then the cheapest design is best.
    """
    if callable(settings.choose):
        return settings.choose(front)  # type: ignore[no-any-return]
    if settings.policy.set_aside is not None and not promising.size and isinstance(settings.choose, str):
        return int(np.lexsort([front.mean_cost, front.paid[:, -1]])[0])
    if settings.choose == NO_WORSE:
        among = promising if promising.size else np.arange(len(front))
        among = among[[not front.branched or front.branched[i] is None for i in among.tolist()]]
        point, holds = no_worse(front[among])
        if not holds:
            warn(
                f"no point of the front is as good as buying everything, for every class; point {among[point]} is the "
                "nearest. Look at clf.front_.recall, or choose another one.",
                NoPointWarning,
            )
        _warn_of_weak_evidence(front, int(among[point]))
        return int(among[point])
    if promising.size:
        with suppress(NoSuchPointError):
            return int(promising[choose_point(front[promising], settings.choose, best=settings.best)])
    return choose_point(front, settings.choose, best=settings.best)


def same_point(front: Front, point: int, part: Front) -> int:
    """Return where a point of a front is in a part of it; the one of least money if it is not there."""
    same = (part.designs == front.designs[point]).all(axis=1)
    if front.thresholds is not None and part.thresholds is not None:
        same &= (part.thresholds == front.thresholds[point]).all(axis=1)
    return int(same.argmax()) if same.any() else int(part.total.argmin())


def _warn_of_weak_evidence(front: Front, point: int) -> None:
    """Warn if what is expected of new rows may be no better than always answering the largest class."""
    outlook = front.outlook
    if outlook is None:
        return
    largest = int(np.argmax(outlook.n_rows))
    share, (low, high) = outlook.n_rows[largest] / sum(outlook.n_rows), outlook.interval("accuracy")
    if low <= share:
        warn(
            "too few rows to tell whether labels are right more often than a constant answer: the point in use is "
            f"right for {front.accuracy[point]:.1%} of the rows that chose it and for {outlook.accuracy:.1%} "
            f"({low:.1%} to {high:.1%}) of rows that did not; always answering {front.classes[largest]!r} is right for "
            f"{share:.1%}. Add rows, or features that tell more.",
            WeakEvidenceWarning,
        )
