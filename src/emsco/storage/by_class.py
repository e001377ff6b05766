"""Counts of a front by class, against buying everything, and its outlook <-> parts of a model file."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.scoring.front import Front
from emsco.storage.container import damaged
from emsco.storage.fields import Fields
from emsco.storage.outlook import outlook_from_json


class Reading(Protocol):
    """A file being read."""

    left: dict[str, bytes]
    record: Fields

    def array(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        """Return an array of the file."""


def by_class_to_json(front: Front) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return fields and arrays of a front; what it does not have is left out."""
    record: dict[str, Any] = {}
    arrays: dict[str, NDArray[Any]] = {}
    if front.confusion is not None:
        arrays["confusion"] = front.confusion
    if front.against is not None:
        arrays["against"] = front.against
        record["against"] = {"n_wrong": front.n_wrong_with_everything, "margin": front.margin}
    if front.outlook is not None:
        record["outlook"] = front.outlook.to_dict()
    return record, arrays


def by_class(reading: Reading, figures: Mapping[str, Any], n_samples: int, n_classes: int) -> dict[str, Any]:
    """Return the fields of a front; older files do not have them."""
    known = {"confusion": _confusion(reading, figures, n_samples, n_classes)}
    return known | _against(reading, len(figures["coverage"]), n_samples, n_classes)


def _confusion(reading: Reading, figures: Mapping[str, Any], n_samples: int, n_classes: int) -> IntArray | None:
    """Return the counts by class; they must be those of the figures."""
    if "arrays/confusion.npy" not in reading.left:
        return None
    counts: IntArray = reading.array("confusion", "<i8", len(figures["coverage"]), n_classes, n_classes + 1)
    labelled = counts[:, :, :-1].sum(axis=(1, 2))
    right = np.trace(counts, axis1=1, axis2=2)
    accuracy = np.where(np.isnan(figures["accuracy"]), 0.0, figures["accuracy"])
    sound = (
        counts.min() >= 0
        and counts.max() <= n_samples
        and (counts.sum(axis=(1, 2)) == n_samples).all()
        and np.allclose(labelled, figures["coverage"] * n_samples, rtol=0, atol=1e-3)
        and np.allclose(right, accuracy * labelled, rtol=0, atol=1e-3)
    )
    if not sound:
        raise damaged("counts by class are not those of the front")
    counts.setflags(write=False)
    return counts


def _against(reading: Reading, n: int, n_samples: int, n_classes: int) -> dict[str, Any]:
    """Return the counts against buying everything, and the outlook."""
    known: dict[str, Any] = {}
    if "arrays/against.npy" in reading.left:
        counts = reading.array("against", "<i8", n, n_classes, 2)
        record = reading.record.part("against")
        if not 0 <= counts.min() <= counts.max() <= n_samples:
            raise damaged("counts against buying everything are out of range")
        counts.setflags(write=False)
        known = {
            "against": counts,
            "n_wrong_with_everything": record.whole("n_wrong", most=n_samples),
            "margin": record.number("margin", -10, 10),
        }
    if "outlook" in reading.record:
        known["outlook"] = outlook_from_json(reading.record.part("outlook"), n_classes)
    return known
