"""The last step before the choice: the calibration rows are looked at, once."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.data.labels import plain_classes
from emsco.deployed.model import Deployed
from emsco.fitting.aside import SetAside, n_shared_rows
from emsco.promises.guarantee import Plan, Promise, check
from emsco.scoring.answers import Answers
from emsco.stages.base import outcomes_of

_MOST_ANSWERS = 2**24  # of feature sets on rows, remembered together


def promise_of_each(deployed: Deployed, plans: Sequence[Plan], aside: SetAside) -> tuple[Promise, ...]:
    """Look at the calibration rows, and return what can be promised of each design; nothing where none are there."""
    rows = aside.calibration
    if rows is None:
        return ()
    answers = answering(deployed, deployed.encoder.encode(rows.table, rows.rows), rows.truth)
    labels, n_shared = plain_classes(deployed.classes), n_shared_rows(rows, aside.table)
    promises = (check(plan, answers(design), labels) for plan, design in zip(plans, deployed.designs, strict=True))
    return tuple(replace(promise, given=rows.given, n_shared=n_shared) for promise in promises)


def answering(deployed: Deployed, encoded: NDArray[np.float64], truth: IntArray) -> Callable[[IntArray], Answers]:
    """Return a function of a design: what all its stages say of encoded rows; each model is asked once."""
    asked: dict[int, tuple[NDArray[np.float64], NDArray[np.uint8]]] = {}

    def answers(design: IntArray) -> Answers:
        if len(asked) * truth.size > _MOST_ANSWERS:
            asked.clear()
        stages = deployed.cascade_of(design).stages
        for stage in stages:
            if id(stage.model) not in asked:
                X = encoded[stage.encoded_columns].T
                confidence, label = outcomes_of(
                    np.asarray(stage.model.predict_proba(X), dtype=np.float64), deployed.errors
                )
                asked[id(stage.model)] = confidence, label.astype(np.uint8)
        confidences, labels = zip(*(asked[id(stage.model)] for stage in stages), strict=True)
        n_classes = None if deployed.errors is None else deployed.errors.n_classes
        return Answers(np.array(confidences), np.array(labels), truth, n_classes)

    return answers
