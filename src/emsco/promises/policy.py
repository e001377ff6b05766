"""Threshold policies: what a user's ``threshold`` means before, during and after a search.

Four kinds of threshold answer the same questions: which rule designs are searched with, whether rows are set aside to
calibrate it, which rule each point has in the end, and what to say of it. Nobody else asks which kind it is.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.exceptions import InvalidParameterError
from emsco.promises.guarantee import Guarantee, Plan, Promise, plan
from emsco.promises.own import AUTO, searched_at
from emsco.scoring.answers import Answers
from emsco.scoring.rejection import RejectRule, as_rule, check_rule, resolve_rule, rule_of

Asked = Callable[[IntArray], Answers]


class ThresholdPolicy(ABC):
    """When a label is given.

    Attributes
    ----------
    threshold : Any
        The user's parameter.
    tunes : bool
        Whether each point gets thresholds of its own, chosen on the rows that judge.
    word : str
        Where the thresholds in use come from, if they were not given.
    """

    threshold: Any
    tunes: ClassVar[bool] = False
    word: ClassVar[str] = ""

    @property
    def searched_with(self) -> float | None:
        """The one threshold of the search, if points have others in the end; else None."""
        return None

    @property
    def set_aside(self) -> float | None:
        """Share of the rows that calibrates, out of reach of training and search; None: no rows do."""
        return None

    @abstractmethod
    def search_rule(self, classes: NDArray[Any], base_rate: float) -> RejectRule:
        """Return the rule that designs are searched with, given the share of the largest class."""

    def plans(self, designs: IntArray, pilot: Asked, *, n_classes: int, n_rows: int) -> list[Plan]:
        """Decide, by what designs say of pilot rows, how the promise of each will be checked: none, if none is made."""
        return []

    @abstractmethod
    def rules(
        self, classes: NDArray[Any], designs: IntArray, own: FloatArray | None, promises: Sequence[Promise]
    ) -> tuple[RejectRule, ...]:
        """Return the rule of each design.

        Parameters
        ----------
        classes : ndarray of shape (n_classes,)
        designs : ndarray of shape (n_points, n_units)
        own : ndarray of shape (n_points, n_bars) or None
            Thresholds that were chosen with the designs.
        promises : sequence of Promise
            What was promised of the designs.
        """


@dataclass(frozen=True)
class Fixed(ThresholdPolicy):
    """Thresholds that the user gave: one number, one per class, or one per stage."""

    threshold: Any

    def search_rule(self, classes: NDArray[Any], base_rate: float) -> RejectRule:
        """Return the rule that designs are searched with."""
        return resolve_rule(self.threshold, classes)

    def rules(
        self, classes: NDArray[Any], designs: IntArray, own: FloatArray | None, promises: Sequence[Promise]
    ) -> tuple[RejectRule, ...]:
        """Return the same rule for each design."""
        return (resolve_rule(self.threshold, classes),) * len(designs)


@dataclass(frozen=True)
class Own(ThresholdPolicy):
    """Thresholds that are chosen with each design: one for its early exits, one for its last stage."""

    threshold: str | None = None
    tunes: ClassVar[bool] = True
    word: ClassVar[str] = "of its own"

    @property
    def searched_with(self) -> float | None:
        """What points are compared with: a label for everybody."""
        return 0.0

    def search_rule(self, classes: NDArray[Any], base_rate: float) -> RejectRule:
        """Return the rule that designs are searched with."""
        return as_rule(searched_at(base_rate))

    def rules(
        self, classes: NDArray[Any], designs: IntArray, own: FloatArray | None, promises: Sequence[Promise]
    ) -> tuple[RejectRule, ...]:
        """Return the rule that was chosen with each design."""
        if own is None:
            raise InvalidParameterError(
                f"was set to {self.threshold!r} after fit; fit again to choose it.", parameter="threshold"
            )
        n_stages = (designs.max(axis=1) + 1).tolist()
        return tuple(rule_of(bars, n) for bars, n in zip(own.tolist(), n_stages, strict=True))


@dataclass(frozen=True)
class Calibrated(ThresholdPolicy):
    """Thresholds that are calibrated on rows set aside, so that a ``Guarantee`` holds."""

    threshold: Guarantee
    word: ClassVar[str] = "calibrated"

    @property
    def searched_with(self) -> float | None:
        """The one threshold of the search."""
        return self.threshold.searched

    @property
    def set_aside(self) -> float | None:
        """Share of the rows that calibrates."""
        return float(self.threshold.calibration)

    def search_rule(self, classes: NDArray[Any], base_rate: float) -> RejectRule:
        """Return the rule that designs are searched with."""
        return as_rule(self.threshold.searched)

    def plans(self, designs: IntArray, pilot: Asked, *, n_classes: int, n_rows: int) -> list[Plan]:
        """Decide which thresholds of each design will be looked at, in which order."""
        return [plan(self.threshold, pilot(design), n_classes=n_classes, n_rows=n_rows) for design in designs]

    def rules(
        self, classes: NDArray[Any], designs: IntArray, own: FloatArray | None, promises: Sequence[Promise]
    ) -> tuple[RejectRule, ...]:
        """Return the calibrated rule of each design."""
        if not promises or promises[0].guarantee != self.threshold:
            raise InvalidParameterError(
                f"was set to {self.threshold!r} after fit; a promise needs calibration: fit again.",
                parameter="threshold",
            )
        return tuple(promise.rule for promise in promises)


def policy_of(threshold: Any) -> ThresholdPolicy:
    """Return the policy that a user's threshold stands for; whether its classes are those of the data is seen later."""
    if isinstance(threshold, Guarantee):
        return Calibrated(threshold)
    if threshold is None or (isinstance(threshold, str) and threshold == AUTO):
        return Own(threshold)
    check_rule(threshold)
    return Fixed(threshold.tolist() if isinstance(threshold, np.ndarray) else threshold)
