"""Rules for giving a label: one threshold for all, one per class, or one per stage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from reprlib import repr as shorten
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidParameterError

NEVER = 2.0  # no probability reaches it; unlike infinity, JSON can store it


@dataclass(frozen=True, repr=False)
class RejectRule:
    """Thresholds by stage and class in their simplest form; created by ``resolve_rule``.

    Attributes
    ----------
    bars : tuple of tuple of float
        One row per stage; the last row applies to all further stages. A row has one threshold per class, or a single
        one for all classes. A plain number is one row with one threshold.

    Examples
    --------
    >>> resolve_rule([0.9, 0.8, 0.8], ["ham", "spam"])
    per stage 0.9, then 0.8
    >>> resolve_rule({"spam": 0.95, "ham": 0.8}, ["ham", "spam"]).bar(stage=3, label=1)
    0.95
    """

    bars: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> "RejectRule":
        """Return the rule of a matrix of thresholds; equivalent rules are equal."""
        bars = [tuple(float(bar) for bar in row) for row in rows]
        if all(len(set(row)) == 1 for row in bars):
            bars = [row[:1] for row in bars]
        while len(bars) > 1 and bars[-1] == bars[-2]:
            bars.pop()
        return cls(tuple(bars))

    @property
    def number(self) -> float | None:
        """The threshold, if there is only one."""
        return self.bars[0][0] if len(self.bars) == 1 == len(self.bars[0]) else None

    @property
    def n_rows(self) -> int:
        """Number of rows: 1 if all stages have the same thresholds."""
        return len(self.bars)

    def bar(self, stage: int, label: int) -> float:
        """Return the threshold of a class, given by its position, at a stage."""
        row = self.bars[stage] if stage < len(self.bars) else self.bars[-1]
        return row[label] if len(row) > 1 else row[0]

    def confident(
        self, confidence: NDArray[np.float64], label: NDArray[Any], stage: int | NDArray[np.intp]
    ) -> NDArray[np.bool_]:
        """Return where the top class probability reaches the threshold of that class at the stage (§2).

        Parameters
        ----------
        confidence, label : ndarray of the same shape
            Top class probability, and the position of its class.
        stage : int or ndarray
            One stage for all, or one for each.
        """
        if (number := self.number) is not None:
            return is_confident(confidence, number)
        table = np.array(self.bars)
        row = np.minimum(stage, len(table) - 1)
        return np.asarray(confidence >= table[row, label if table.shape[1] > 1 else 0])

    def matrix(self, n_stages: int) -> NDArray[np.float64]:
        """Return the thresholds by stage, (n_stages, n_classes), or (n_stages, 1) if all classes have the same."""
        return np.array(self.bars)[np.minimum(np.arange(n_stages), len(self.bars) - 1)]

    def labels_all(self, n_stages: int, n_classes: int) -> bool:
        """Return whether every case gets a label by the end of so many stages: no top class is less probable."""
        return bool((self.matrix(n_stages)[-1] <= 1 / n_classes).all())

    def in_words(self, labels: Sequence[Any]) -> str:
        """Return the thresholds in words, as percentages.

        Examples
        --------
        >>> resolve_rule({"ham": 0.8, "spam": 0.95}, ["ham", "spam"]).in_words(["ham", "spam"])
        '80 % (ham), 95 % (spam)'
        >>> resolve_rule([0.9, 0.8], ["ham", "spam"]).in_words(["ham", "spam"])
        '90 % (stage 1), 80 % (from stage 2 on)'
        """
        parts = []
        for first, n, row in self._runs():
            stage = f"stage {first + 1}" if n == 1 else f"stages {first + 1} to {first + n}"
            if first + n == len(self.bars):  # the last row differs from the one before, or is the only one
                stage = f"from stage {first + 1} on" if first else ""
            for label, bar in zip(labels if len(row) > 1 else [""], row, strict=True):
                where = ", ".join(filter(None, (str(label), stage)))
                share = "never" if bar >= NEVER else f"{100 * bar:.4g} %"
                parts.append(f"{share} ({where})" if where else share)
        return ", ".join(parts)

    def _runs(self) -> list[tuple[int, int, tuple[float, ...]]]:
        """Return runs of stages with equal thresholds: the first stage, the number of stages, and the thresholds."""
        runs: list[tuple[int, int, tuple[float, ...]]] = []
        for row, same in groupby(self.bars):
            first = runs[-1][0] + runs[-1][1] if runs else 0
            runs.append((first, len(list(same)), row))
        return runs

    @property
    def key(self) -> str:
        """Text that identifies the rule, the same in every process."""
        number = self.number
        return repr(self.bars if number is None else number)

    def __repr__(self) -> str:
        rows = []
        for _, n, row in self._runs():
            bars = "/".join("never" if bar >= NEVER else f"{bar:g}" for bar in row)
            rows.append(bars if n == 1 else f"{n} times {bars}")
        classes = "per class " if len(self.bars[0]) > 1 else ""
        return f"per stage {classes}{', then '.join(rows)}" if len(rows) > 1 else classes + rows[0]


def rule_of(bars: Sequence[float], n_stages: int) -> RejectRule:
    """Return the rule of a design that many stages deep, by thresholds that were chosen with it.

    The last one is that of the last stage; the others are those of the stages before, the last of them for all further
    ones.

    Examples
    --------
    >>> rule_of([0.95, 0.8], n_stages=3).in_words(["ham", "spam"])
    '95 % (stages 1 to 2), 80 % (from stage 3 on)'
    >>> rule_of([0.95, 0.9, 0.0], n_stages=3)
    per stage 0.95, then 0.9, then 0
    """
    *early, last = bars
    return RejectRule.of([*([early[min(j, len(early) - 1)]] for j in range(n_stages - 1)), [last]])


Threshold: TypeAlias = float | RejectRule


def as_rule(threshold: Threshold) -> RejectRule:
    """Return a number as a rule, without checks; a rule is returned unchanged."""
    return threshold if isinstance(threshold, RejectRule) else RejectRule(((float(threshold),),))


def check_threshold(threshold: Any) -> float:
    """Return the confidence threshold as a float in [0, 1]."""
    number = isinstance(threshold, int | float | np.integer | np.floating) and not isinstance(threshold, bool)
    if not number or not 0 <= threshold <= 1:
        raise InvalidParameterError(
            f"must be a probability between 0 and 1, such as 0.75; got {threshold!r}.", parameter="threshold"
        )
    return float(threshold)


def check_rule(threshold: Any) -> None:
    """Raise unless this can be a rule; the class labels are checked later."""
    if isinstance(threshold, Mapping):
        entries = list(threshold.values())
    elif isinstance(threshold, list | tuple) or (isinstance(threshold, np.ndarray) and threshold.ndim == 1):
        entries = list(threshold)
    else:
        check_threshold(threshold)
        return
    if not entries:
        raise InvalidParameterError("is empty; give a number, one per class, or one per stage.", parameter="threshold")
    for entry in entries:
        check_threshold(entry)


def resolve_rule(threshold: Any, classes: Sequence[Any] | NDArray[Any]) -> RejectRule:
    """Return the rule for the threshold of a user.

    Parameters
    ----------
    threshold : float, mapping or sequence
        A number; a mapping of class label (or its text) to number; or one number per stage, the last one for all
        further stages.
    classes : sequence
        All labels, in order.

    Raises
    ------
    InvalidParameterError
        It is none of these, a number is not a probability, or a class is unknown or has no threshold.
    """
    if type(threshold) is float and 0 <= threshold <= 1:  # the common case, kept fast for sessions
        return RejectRule(((threshold,),))
    check_rule(threshold)
    if isinstance(threshold, Mapping):
        return RejectRule.of([_by_class(threshold, list(getattr(classes, "tolist", lambda: classes)()))])
    if isinstance(threshold, list | tuple | np.ndarray):
        return RejectRule.of([[bar] for bar in threshold])
    return as_rule(threshold)


def _by_class(threshold: Mapping[Any, float], classes: list[Any]) -> list[float]:
    left = dict(threshold)
    bars = []
    for label in classes:
        key = label if label in left else str(label)
        if key not in left:
            names = [str(known) for known in classes]
            wrong = [other for other in threshold if str(other) not in names]
            stray = f", and names {shorten(wrong)}, which is no class" if wrong else ""
            raise InvalidParameterError(
                f"has no entry for the class {label!r}{stray}; give one for each of {shorten(classes)}.",
                parameter="threshold",
            )
        bars.append(float(left.pop(key)))
    if left:
        raise InvalidParameterError(
            f"names {shorten(list(left))}, but the classes are {shorten(classes)}.", parameter="threshold"
        )
    return bars


def is_confident(confidence: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return where the top class probability reaches the threshold (§2)."""
    return confidence >= threshold
