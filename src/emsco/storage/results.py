"""Evaluations and promises <-> JSON, every count checked against the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.deployed.evaluation import Evaluation
from emsco.designs.branched import Branched
from emsco.designs.partition import stage_counts
from emsco.exceptions import InvalidParameterError, shown
from emsco.promises.guarantee import Check, Guarantee, Promise, p_values
from emsco.scoring.front import Front
from emsco.scoring.rejection import NEVER
from emsco.storage.container import damaged
from emsco.storage.fields import Fields


def evaluation_to_json(
    evaluation: Any, designs: IntArray, n_classes: int, branches: Sequence[Branched | None] = ()
) -> dict[str, Any] | None:
    """Return the counts of an evaluation, which must be one of these designs."""
    if evaluation is None:
        return None
    depths = _depths(designs, branches)
    n_stages = [sum(each) for each in depths]
    if (
        not isinstance(evaluation, Evaluation)
        or len(evaluation.classes) != n_classes
        or [result.branches or (len(result.paid),) for result in evaluation.points] != depths
    ):
        raise InvalidParameterError(
            f"evaluation is {shown(evaluation)}; give what this classifier's evaluate returned, {len(n_stages)} points "
            f"with {n_classes} classes."
        )
    record = evaluation.to_dict()
    return {name: record[name] for name in ("points", "everything", "always")}


def evaluation_from_json(
    record: Fields,
    designs: IntArray,
    classes: NDArray[Any],
    front: Front | None,
    point: int,
    branches: Sequence[Branched | None] = (),
) -> Evaluation | None:
    """Return the evaluation of a file, if it holds one; the front and the point in use are kept elsewhere."""
    if record.raw("evaluation") is None:
        return None
    part = record.part("evaluation")
    points = part.parts("points")
    if len(points) != len(designs):
        part.refuse("points", f"a list of {len(designs)}")
    for result, depths in zip(points, _depths(designs, branches), strict=True):
        _check_result(result, depths, classes.size)
    for name in ("everything", "always"):
        _check_result(part.part(name), (1,), classes.size)
    return Evaluation.from_dict(record.raw("evaluation"), classes.tolist(), front=front, point=point)


def _depths(designs: IntArray, branches: Sequence[Branched | None]) -> list[tuple[int, ...]]:
    """Return the number of stages of each point, of one that branches that of each branch."""
    depths: list[tuple[int, ...]] = [(max(n, 1),) for n in stage_counts(designs).tolist()]
    for i, branched in enumerate(branches):
        if branched is not None:
            depths[i] = tuple(stage_counts(branched.rows).tolist())
    return depths


def _check_result(record: Fields, depths: tuple[int, ...], n_classes: int) -> None:
    n_stages = sum(depths)
    if len(depths) > 1:
        silent = record.wholes("silent", len(depths))
        if record.wholes("branches", len(depths)) != depths or sum(silent) != record.raw("n_rejected"):
            raise damaged("the counts of an evaluation are not those of the branches")
    elif "branches" in record or "silent" in record:
        raise damaged("the counts of an evaluation are by branch, but the design is a chain")
    answered, right = record.wholes("answered", n_stages), record.wholes("right", n_stages)
    paid = Fields(dict(enumerate(record.items("paid", n_stages))), "paid")
    for stage in paid:
        paid.number(stage, 0)
    confusion = Fields(dict(enumerate(record.items("confusion", n_classes))), "confusion")
    counted = sum(sum(confusion.wholes(label, n_classes + 1)) for label in confusion)
    for name in ("amounts", "squares"):
        if name in record:
            sums = Fields(dict(enumerate(record.items(name, n_classes))), name)
            if any(len(values) != n_classes + 1 or min(values) < 0 for values in map(sums.numbers, sums)):
                record.refuse(name, "sums by class")
    n_rows = sum(answered) + record.whole("n_rejected", most=2**53)
    if not n_rows or counted != n_rows or any(r > a for r, a in zip(right, answered, strict=True)):
        raise damaged("the counts of an evaluation do not add up")


def promise_to_json(promise: Promise) -> dict[str, Any]:
    """Return what was promised of a design, and how it was checked."""
    names = ("threshold", "n_rows", "n_errors", "n_lost", "n_thresholds", "n_needed")
    return {
        "n_rows": promise.n_rows,
        "given": promise.given,
        "n_shared": promise.n_shared,
        "coverage": promise.coverage,
        "searched_coverage": promise.searched_coverage,
        "checks": [{name: getattr(check, name) for name in names} for check in promise.checks],
    }


def promises_from_json(record: Fields, guarantee: Guarantee, labels: list[Any], n_designs: int) -> tuple[Promise, ...]:
    """Return what was promised of each design."""
    promises = record.parts("promises")
    if len(promises) != n_designs:
        record.refuse("promises", f"a list of {n_designs}")
    return tuple(_promise_from_json(part, guarantee, labels) for part in promises)


def _promise_from_json(record: Fields, guarantee: Guarantee, labels: list[Any]) -> Promise:
    """Return a promise; its p-values are computed again, and must say what the thresholds say."""
    each = labels if guarantee.per_class else [None]
    level = (1 - guarantee.confidence) / len(each)
    n_calibration = record.whole("n_rows", 1)
    checks = []
    if len(record.items("checks")) != len(each):
        record.refuse("checks", f"a list of {len(each)}")
    for label, part in zip(each, record.parts("checks"), strict=True):
        threshold = part.number("threshold", 0, NEVER)
        n_rows = part.whole("n_rows", most=n_calibration)
        n_errors = part.whole("n_errors", most=n_rows)
        n_lost = part.whole("n_lost", most=n_rows - n_errors)
        n_needed = None if part.raw("n_needed") is None else part.whole("n_needed")
        p_value = float(p_values(np.array(n_rows - n_lost), np.array(n_errors), guarantee.accuracy))
        if not (threshold <= 1 if p_value <= level else threshold == NEVER):
            part.refuse("threshold", f"one that {n_errors} errors in {n_rows - n_lost} rows support")
        n_thresholds = part.whole("n_thresholds")
        checks.append(Check(label, threshold, n_rows, n_errors, n_lost, p_value, level, n_thresholds, n_needed))
    coverage, searched = (record.number(name, 0, 1) for name in ("coverage", "searched_coverage"))
    given = record.flag("given") if "given" in record else False  # older files do not say
    n_shared = record.whole("n_shared", most=n_calibration) if "n_shared" in record else 0
    return Promise(guarantee, tuple(checks), n_calibration, coverage, searched, given, n_shared)
