"""Guarantee: thresholds calibrated so that conclusive accuracy holds on new rows, with a stated confidence.

Two steps that never see each other's rows. ``plan`` looks at pilot rows (those that validate the designs) and writes
down which thresholds will be looked at, in which order. ``check`` walks down that list on the calibration rows until a
threshold fails the exact binomial test, and keeps the last one that passed (fixed-sequence testing, one of the
procedures of *Learn then Test*). ``docs/guarantee.md`` says why that is enough.
"""

from dataclasses import KW_ONLY, dataclass, replace
from math import ceil, floor, log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.exceptions import InvalidParameterError
from emsco.scoring.answers import Answers
from emsco.scoring.rejection import NEVER, RejectRule, as_rule, check_threshold

_CANDIDATES = 100  # thresholds of a sequence at most; of 30 to 100, more keep slightly more coverage (benchmarks)
_HOPELESS = 0.9  # predicted p-value from which on a threshold of a class is not worth a place in its sequence
_HOPES = (2.0, 1.0, 0.0, -1.0)  # standard deviations by which a promise is expected to be kept; below, it is hopeless
_MOST_ROWS = 10**7


@dataclass(frozen=True)
class Guarantee:
    """A promise: on new rows of the same kind, at least this share of the labels given is right.

    Give it as ``threshold`` of a classifier. ``fit`` then sets calibration rows aside that neither training nor search
    sees, and calibrates the thresholds of each design on them.

    Parameters
    ----------
    accuracy : float
        Least share of right labels among all labels given.
    confidence : float
        Least probability, over the draw of the calibration rows, that the promise holds.
    per_class : bool
        Promise it of each class: of all rows that get its label, at least this share is right. All of these hold at
        once with the stated confidence.
    threshold : float or None
        At which designs are searched, and against which the coverage is compared. None: ``accuracy``.
    calibration : float
        Share of the rows given to ``fit`` that calibrates, unless ``fit`` is given others. They are drawn at random,
        not class by class: only so are the counts binomial.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from emsco import Guarantee, MultiStageClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MultiStageClassifier([0, 0, 0, 1, 1, 1], threshold=Guarantee(0.9), random_state=0).fit(X[:, :6], y)
    >>> print(clf.guarantee_)
    Promised: at least 90 % of the labels given are right, with 95 % confidence.
    Checked on 142 rows that nothing else saw.
    threshold 0.7784, 7 of 131 labels wrong, 26 thresholds looked at.
    Coverage of these rows: 92.25 %, against 80.99 % at the threshold 0.9 of the search.
    """

    accuracy: float = 0.9
    confidence: float = 0.95
    _: KW_ONLY
    per_class: bool = False
    threshold: float | None = None
    calibration: float = 0.25

    def __post_init__(self) -> None:
        for name in ("accuracy", "confidence", "calibration"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if not number or not 0 < value < 1:
                raise InvalidParameterError(
                    f"must be a share strictly between 0 and 1, such as 0.9; got {value!r}.", parameter=name
                )
        if not isinstance(self.per_class, bool | np.bool_):
            raise InvalidParameterError(f"must be True or False; got {self.per_class!r}.", parameter="per_class")
        if self.threshold is not None:
            check_threshold(self.threshold)

    @property
    def searched(self) -> float:
        """The threshold of the search."""
        return float(self.accuracy if self.threshold is None else self.threshold)

    def __str__(self) -> str:
        whom = "of the labels of each class" if self.per_class else "of the labels given"
        return f"at least {_percent(self.accuracy)} {whom} are right, with {_percent(self.confidence)} confidence"


@dataclass(frozen=True)
class Check:
    """How a promise was checked: on rows, errors and thresholds that nobody had chosen by them.

    Attributes
    ----------
    label : str, int, float, bool or None
        The class; None: of all classes together.
    threshold : float
        The one calibrated. Above 1 where none passed: such a label is never given.
    n_rows, n_errors : int
        Calibration rows that get the label at this threshold, and how many of them wrongly. Where none passed, at the
        first threshold looked at.
    n_lost : int
        Right ones among these rows that a threshold of another class may take away; they are not counted as evidence.
    p_value : float
        Probability of so few errors if the promise did not hold.
    level : float
        What the p-value must not exceed.
    n_thresholds : int
        Thresholds looked at, the one that failed included.
    n_needed : int or None
        Where none passed, about how many calibration rows would do; None: that cannot be foreseen.
    """

    label: Any
    threshold: float
    n_rows: int
    n_errors: int
    n_lost: int
    p_value: float
    level: float
    n_thresholds: int
    n_needed: int | None

    @property
    def passed(self) -> bool:
        """Whether the promise can be made."""
        return self.threshold < NEVER

    @property
    def supported(self) -> float:
        """The largest share of right labels, to a thousandth, that these counts support; 0 if there are none."""
        n = self.n_rows - self.n_lost
        if n <= self.n_errors:
            return 0.0
        from scipy.special import betaincinv

        return floor(1000 * float(betaincinv(n - self.n_errors, self.n_errors + 1, self.level))) / 1000


@dataclass(frozen=True)
class Promise:
    """What is promised of one design, how it was checked, and the coverage it costs.

    Attributes
    ----------
    guarantee : Guarantee
    checks : tuple of Check
        One; with ``per_class`` one per class, in their order.
    n_rows : int
        Calibration rows.
    coverage, searched_coverage : float
        Share of the calibration rows that get a label, with the calibrated thresholds and with that of the search.
    given : bool
        Whether the calibration rows were given to fit; else they are a share of its rows.
    n_shared : int
        Calibration rows that are also rows of the training table: they are no evidence.
    by_hand : bool
        Whether the design is in use by somebody's choice after the calibration.
    """

    guarantee: Guarantee
    checks: tuple[Check, ...]
    n_rows: int
    coverage: float
    searched_coverage: float
    given: bool = False
    n_shared: int = 0
    by_hand: bool = False

    @property
    def rule(self) -> RejectRule:
        """The calibrated thresholds."""
        return RejectRule.of([[check.threshold for check in self.checks]])

    @property
    def passed(self) -> bool:
        """Whether the promise can be made, of every class if it is one per class."""
        return all(check.passed for check in self.checks)

    def __str__(self) -> str:
        begin = "Promised" if self.passed and not self.n_shared else "Asked for, but not promised"
        lines = [f"{begin}: {self.guarantee}.", self._checked]
        for check in self.checks:
            whose = "" if check.label is None else f"{check.label}: "
            counts = f"{check.n_errors} of {check.n_rows} labels wrong"
            lost = f", {check.n_lost} of them no evidence" if check.n_lost else ""
            looked = f"{check.n_thresholds} threshold{'s' if check.n_thresholds != 1 else ''} looked at"
            if check.passed:
                lines.append(f"{whose}threshold {check.threshold:.4g}, {counts}{lost}, {looked}.")
            else:
                lines.append(f"{whose}no label is ever given: {counts}{lost}, {looked}. {self.shortage(check)}")
        lines.append(
            f"Coverage of these rows: {_percent(self.coverage)}, against {_percent(self.searched_coverage)} at the "
            f"threshold {self.guarantee.searched:g} of the search."
        )
        if self.by_hand:
            lines.append(
                "This point was put into use after the calibration. The confidence holds if it was picked without a "
                "look at calibrated figures; picked by them, it is lower."
            )
        return "\n".join(lines)

    @property
    def _checked(self) -> str:
        if self.n_shared:
            return (
                f"Checked on {self.n_rows:,} rows, {self.n_shared:,} of which are also training rows. These are no "
                "evidence: give calibration rows that fit has not seen."
            )
        return f"Checked on {self.n_rows:,} rows that nothing else saw."

    def shortages(self) -> list[str]:
        """Say what cannot be promised, and what is missing."""
        missing = []
        for check in self.checks:
            if not check.passed:
                what = "no label will be given" if check.label is None else f"the label {check.label!r} is never given"
                missing.append(
                    f"{what}: the calibration rows cannot support that {self.guarantee} ({check.n_errors} of "
                    f"{check.n_rows} labels wrong). {self.shortage(check)}"
                )
        if not any(check.passed for check in self.checks):
            missing[-1] += " Cases pay for their features all the same: use another point, or ask for less."
        if self.n_shared:
            missing.append(
                f"nothing is promised: {self.n_shared:,} of the {self.n_rows:,} calibration rows are also training "
                "rows; give rows that fit has not seen."
            )
        return missing

    def shortage(self, check: Check) -> str:
        """Say what is missing for a check to pass, and what these rows do support."""
        least = least_rows(self.guarantee.accuracy, check.level)
        needed = f"At least {least} without an error are needed; "
        if check.n_needed is None:
            needed += "how many rows would do cannot be foreseen."
        else:
            needed += f"about {check.n_needed:,} calibration rows would do, {self.n_rows:,} were there."
            if not self.given:
                share = self.guarantee.calibration
                needed += f" With {_percent(share)} of the rows calibrating, that is {_rows(check.n_needed, share)}."
        supported = check.supported
        if supported > 0.5:
            needed += f" A promise of {_percent(supported)} would have held at the first threshold looked at."
        return needed


def least_rows(accuracy: float, level: float) -> int:
    """Return how many rows without any error are evidence enough.

    Examples
    --------
    >>> least_rows(0.9, 0.05)
    29
    """
    n = ceil(log(level) / log(accuracy))
    return n if accuracy**n <= level else n + 1  # the quotient is rounded


def p_values(n_rows: IntArray, n_errors: IntArray, accuracy: float) -> FloatArray:
    """Return the probability of at most so many errors among so many rows of which a share ``accuracy`` is right."""
    from scipy.stats import binom  # here: it takes a second to load, and serving makes no promises

    return np.asarray(binom.cdf(n_errors, n_rows, 1 - accuracy))


@dataclass(frozen=True, eq=False)
class _Sequence:
    """Candidates, highest first, of which those from ``first`` to ``last`` are looked at, each at the same level.

    With the counts of the pilot rows at each: labels given, wrong ones, and right ones that may be lost.
    """

    candidates: FloatArray
    level: float
    n_pilot: int
    n_rows: IntArray
    n_errors: IntArray
    n_lost: IntArray
    first: int = 0
    last: int = -1

    @property
    def thresholds(self) -> FloatArray:
        """Those to look at, in this order."""
        return self.candidates[self.first : self.last + 1]

    @property
    def errors(self) -> FloatArray:
        """Share of wrong labels, with half an error more: few rows without one are no proof of none."""
        return (self.n_errors + 0.5) / (self.n_rows + 1)

    def margins(self, n: int, accuracy: float) -> FloatArray:
        """Return by how many standard deviations the errors expected of n calibration rows are fewer than would pass.

        Both samples are noisy: the rows to come, and the pilot rows that predict them.
        """
        from scipy.stats import binom

        n_labelled = n / self.n_pilot * self.n_rows
        evidence = np.round(n / self.n_pilot * (self.n_rows - self.n_lost))
        allowed = binom.ppf(self.level, evidence, 1 - accuracy) - 0.5
        noise = n_labelled * self.errors * (1 - self.errors) * (1 + n / self.n_pilot)
        return np.asarray((allowed - n_labelled * self.errors) / np.sqrt(noise))

    def predicted(self, n: Any, accuracy: float) -> FloatArray:
        """Return the p-values to be expected of n calibration rows."""
        n_errors = np.ceil(np.round(n / self.n_pilot * self.n_rows) * self.errors)
        return p_values(np.round(n / self.n_pilot * (self.n_rows - self.n_lost)), n_errors, accuracy)

    def n_needed(self, counted: "_Counted", accuracy: float) -> int | None:
        """Return how many calibration rows, more than failed, will probably do; None: not even ten million."""
        n = counted.n_samples
        n_rows, n_errors, n_lost = counted.at(self.candidates)
        both = replace(
            self,
            n_pilot=self.n_pilot + n,
            n_rows=self.n_rows + n_rows,
            n_errors=self.n_errors + n_errors,
            n_lost=self.n_lost + n_lost,
        )
        sizes = np.geomspace(1.1 * n, max(_MOST_ROWS, 2 * n), 150).astype(np.int64)[:, None]
        enough = (both.predicted(sizes, accuracy) <= self.level).any(axis=1)
        return _rounded_up(int(sizes[enough.argmax(), 0])) if enough.any() else None


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that is decided before a calibration row is looked at.

    Attributes
    ----------
    guarantee : Guarantee
    sequences : tuple
        One; with ``per_class`` one per class.
    floors : ndarray of shape (n_classes,)
        With ``per_class``, below which the threshold of a class will never be.
    """

    guarantee: Guarantee
    sequences: tuple[_Sequence, ...]
    floors: FloatArray

    def hopes(self, n_rows: int) -> tuple[float, float]:
        """Return how probable it is that so many calibration rows support the promise, in standard deviations.

        Of every class, and of some class: the same if there is one promise for all.
        """
        margins = (s.margins(n_rows, self.guarantee.accuracy)[s.first : s.last + 1] for s in self.sequences)
        best = [float(margin.max(initial=-np.inf)) for margin in margins]
        return min(best), max(best)


def plan(guarantee: Guarantee, pilot: Answers, *, n_classes: int, n_rows: int) -> Plan:
    """Decide on pilot rows which thresholds are looked at, in which order.

    The first is the one that will most probably pass, then the next lower ones follow: each gives more labels than the
    one before.

    Parameters
    ----------
    guarantee : Guarantee
    pilot : Answers
        Of rows that are no calibration rows; else the promise is void.
    n_classes : int
    n_rows : int
        How many calibration rows there are.
    """
    accuracy, budget = guarantee.accuracy, 1 - guarantee.confidence
    floors = np.full(n_classes, NEVER)
    if not guarantee.per_class:
        everyone = _sequence(_Counted.of_all(pilot), budget)
        first = int(everyone.margins(n_rows, accuracy).argmax())
        return Plan(guarantee, (replace(everyone, first=first, last=everyone.candidates.size - 1),), floors)
    classes = range(n_classes)
    alone = [_sequence(_Counted.of_class(pilot, code, floors), budget / n_classes) for code in classes]
    for code, sequence in enumerate(alone):
        p = sequence.predicted(n_rows, accuracy)
        floors[code] = sequence.candidates[p <= max(_HOPELESS, p.min(initial=1.0))].min(initial=NEVER)
    sequences = []
    for code in classes:
        sequence = _sequence(_Counted.of_class(pilot, code, floors), budget / n_classes)
        margins = sequence.margins(n_rows, accuracy)[sequence.candidates >= floors[code]]
        first = int(margins.argmax()) if margins.size else 0
        sequences.append(replace(sequence, first=first, last=margins.size - 1))
    return Plan(guarantee, tuple(sequences), floors)


def hopeful(plans: list[Plan], n_rows: int) -> NDArray[np.intp]:
    """Return the plans that will probably succeed; if there are none, those that may, or may for some class."""
    hopes = np.array([plan.hopes(n_rows) for plan in plans]).reshape(-1, 2)
    found = (np.flatnonzero(hope >= margin) for hope in hopes.T for margin in _HOPES)
    return next((points for points in found if points.size), np.empty(0, dtype=np.intp))


def check(plan: Plan, answers: Answers, labels: list[Any]) -> Promise:
    """Walk down the thresholds of a plan on calibration rows, and return what can be promised.

    Parameters
    ----------
    plan : Plan
    answers : Answers
        Of the calibration rows.
    labels : list
        The classes.
    """
    guarantee = plan.guarantee
    checks = []
    for code, sequence in enumerate(plan.sequences):
        each = guarantee.per_class
        counted = _Counted.of_class(answers, code, plan.floors) if each else _Counted.of_all(answers)
        checks.append(_check(sequence, counted, guarantee.accuracy, labels[code] if each else None))
    searched = answers.coverage(as_rule(guarantee.searched))
    promise = Promise(guarantee, tuple(checks), answers.n_rows, 0.0, searched)
    return replace(promise, coverage=answers.coverage(promise.rule))


def _check(sequence: _Sequence, counted: "_Counted", accuracy: float, label: Any) -> Check:
    n_rows, n_errors, n_lost = counted.at(sequence.thresholds)
    p = p_values(n_rows - n_lost, n_errors, accuracy)
    n_passed = int(np.append(p > sequence.level, True).argmax())
    if not p.size:
        return Check(label, NEVER, 0, 0, 0, 1.0, sequence.level, 0, None)
    at = max(n_passed - 1, 0)
    return Check(
        label=label,
        threshold=float(sequence.thresholds[at]) if n_passed else NEVER,
        n_rows=int(n_rows[at]),
        n_errors=int(n_errors[at]),
        n_lost=int(n_lost[at]),
        p_value=float(p[at]),
        level=sequence.level,
        n_thresholds=min(n_passed + 1, p.size),
        n_needed=None if n_passed else sequence.n_needed(counted, accuracy),
    )


def _sequence(counted: "_Counted", level: float) -> _Sequence:
    """Return the thresholds at which pilot rows differ, highest first, with the counts at each."""
    thresholds = counted.candidates()
    return _Sequence(thresholds, level, counted.n_samples, *counted.at(thresholds))


class _Counted:
    """How many rows get a label, wrongly, and lost to other classes, at any threshold.

    A row leaves at the first stage whose score reaches the threshold, so at stage j if the threshold is above the
    largest score so far and at most that of stage j. Sorted once, that is counted by two searches per stage.
    """

    def __init__(self, scores: FloatArray, wrong: NDArray[np.bool_], lost: NDArray[np.bool_]) -> None:
        self.n_samples = scores.shape[1]
        self._highest = highest = np.maximum.accumulate(scores, axis=0)
        self._ends = [
            [
                (np.sort(highest[j][mask[j]]), np.sort(highest[j - 1][mask[j]]) if j else np.empty(0))
                for j in range(len(scores))
            ]
            for mask in (np.ones_like(wrong), wrong, lost)
        ]

    @classmethod
    def of_all(cls, answers: Answers) -> "_Counted":
        """Count labels of any class, one threshold for all of them."""
        wrong = answers.label != answers.truth
        return cls(answers.confidence, wrong, np.zeros_like(wrong))

    @classmethod
    def of_class(cls, answers: Answers, code: int, floors: FloatArray) -> "_Counted":
        """Count labels of one class, whatever the thresholds of the others are: at least their floors.

        A right one is lost if the row may leave before, with the label of another class; wrong ones are kept.
        """
        mine = answers.label == code
        scores = np.where(mine, answers.confidence, -np.inf)
        taken = ~mine & (answers.confidence >= floors.take(answers.label))
        before = np.zeros_like(taken)
        before[1:] = np.logical_or.accumulate(taken, axis=0)[:-1]
        wrong = np.broadcast_to(answers.truth != code, mine.shape)
        return cls(scores, wrong, before & ~wrong)

    def candidates(self) -> FloatArray:
        """Return the scores of these rows, evenly thinned, highest first: thresholds at which the labels differ."""
        scores = np.unique(self._highest[-1])
        scores = scores[np.isfinite(scores)][::-1]
        places = np.linspace(0, scores.size - 1, min(scores.size, _CANDIDATES)).round().astype(np.intp)
        return np.asarray(scores[places])

    def at(self, thresholds: FloatArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return the rows that get a label, the wrong ones, and the right ones that may be lost."""
        counts: list[IntArray] = []
        for ends in self._ends:
            count = np.zeros(thresholds.size, dtype=np.int64)
            for after, until in ends:
                count += after.size - np.searchsorted(after, thresholds)
                count -= until.size - np.searchsorted(until, thresholds)
            counts.append(count)
        n_rows, n_errors, n_lost = counts
        return n_rows, n_errors, n_lost


def _rounded_up(n: int) -> int:
    """Return a number of rows to two digits: it is a guess."""
    step = 10 ** max(len(str(n)) - 2, 0)
    return int(-(-n // step) * step)


def _rows(n_needed: int, share: float) -> str:
    return f"about {_rounded_up(ceil(n_needed / share)):,} rows in all"


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"
