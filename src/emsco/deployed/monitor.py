"""Monitor: watches what a classifier decides, and raises an alarm with a stated rate of false ones."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emsco.arrays import IntArray
from emsco.data.labels import plain_labels
from emsco.deployed.decide import Decisions
from emsco.deployed.evaluation import check_truth
from emsco.deployed.model import Deployed
from emsco.exceptions import InvalidInputError, InvalidParameterError
from emsco.markup import Sheet, line_width
from emsco.promises.evidence import Bets, Wealth, highest_mean
from emsco.scoring.intervals import binomial_interval
from emsco.scoring.words import tenths

_VERSION = 1
_BINARY = (0.0, 1.0)


@dataclass(frozen=True)
class Alarm:
    """A figure is beyond its limit; chance alone hardly explains it.

    Attributes
    ----------
    watch : str
        Which figure.
    n : int
        Observations when the alarm was raised.
    found : float
        The figure over all observations until then; a change may be more recent than most of them.
    limit : float
    """

    watch: str
    n: int
    found: float
    limit: float


@dataclass(frozen=True)
class Watch:
    """One figure that is watched.

    Attributes
    ----------
    name : str
        "coverage", "mean_cost", "accuracy", "promise", or "promise: LABEL".
    limit : float
        What the figure is at least, or for a cost at most, if nothing is wrong.
    scale : float
        The figure is a mean of numbers from 0 to this.
    is_least : bool
        Whether the limit is a least value.
    level : float
        Rate of false alarms of this watch alone.
    values : tuple of float
        Numbers that can be observed, as shares of the scale, turned so that large ones are bad.
    source : str
        Where the limit comes from.
    wealth : Wealth
        The evidence.
    counts : tuple of int
        How often each number was observed.
    alarm : Alarm or None
        The first one.
    """

    name: str
    limit: float
    scale: float
    is_least: bool
    level: float
    values: tuple[float, ...]
    source: str
    wealth: Wealth = field(default_factory=Wealth)
    counts: tuple[int, ...] = ()
    alarm: Alarm | None = None

    @property
    def n(self) -> int:
        """Observations."""
        return self.wealth.n

    @property
    def found(self) -> float:
        """The figure over all observations; NaN without any."""
        return self._figure(np.array(self.counts or (0,) * len(self.values)))

    def _figure(self, counts: NDArray[Any]) -> float:
        n = counts.sum()
        bad = float(np.dot(counts, self.values) / n) if n else np.nan
        return self.scale * (1 - bad if self.is_least else bad)

    @property
    def evidence(self) -> float:
        """The evidence against the limit, as a share of what raises an alarm."""
        return exp(min(self.wealth.log + log(self.level), 700.0))

    def _bets(self) -> Bets:
        limit = self.limit / self.scale
        return Bets(self.values, 1 - limit if self.is_least else limit)

    def after(self, observed: IntArray) -> "Watch":
        """Return the watch after observations in order, given by their positions among the values."""
        wealth, path = self.wealth.after(self._bets(), observed)
        counts = np.array(self.counts or (0,) * len(self.values))
        alarm = self.alarm
        (beyond,) = np.nonzero(path >= -log(self.level))
        if alarm is None and beyond.size:
            until = counts + np.bincount(observed[: beyond[0] + 1], minlength=len(counts))
            alarm = Alarm(self.name, int(until.sum()), self._figure(until), self.limit)
        counts = counts + np.bincount(observed, minlength=len(counts))
        return replace(self, wealth=wealth, counts=tuple(counts.tolist()), alarm=alarm)

    def after_block(self, block: ArrayLike) -> "Watch":
        """Return the watch after observations whose order is unknown: how often each value occurred."""
        wealth = self.wealth.after_block(self._bets(), block)
        counts = np.array(self.counts or (0,) * len(self.values)) + np.asarray(block)
        alarm = self.alarm
        if alarm is None and wealth.log >= -log(self.level):
            alarm = Alarm(self.name, wealth.n, self._figure(counts), self.limit)
        return replace(self, wealth=wealth, counts=tuple(counts.tolist()), alarm=alarm)


class Monitor:
    """Watches coverage, cost and accuracy of a classifier in use, and what was promised of it.

    Give it decisions as they are made, and truths as they become known. It says whether coverage or accuracy has
    dropped or cost has risen beyond a limit. Look as often as you like: if nothing has changed, the probability that it
    ever raises an alarm is at most ``false_alarms``.

    Parameters
    ----------
    clf : EMSCOClassifier or MultiStageClassifier
        Fitted.
    coverage, accuracy : float, optional
        Least share of cases with a label, and of right labels among those given.
    mean_cost : float, optional
        Highest mean cost per case.
    false_alarms : float
        Probability of any alarm, ever, if no figure is beyond its limit.
    state : mapping, optional
        ``state`` of a monitor of the same classifier, to continue from.

    Attributes
    ----------
    watches : tuple of Watch
        The figures watched, with limits, counts and evidence.
    alarms : tuple of Alarm
        The first alarm of each figure that has one.

    Raises
    ------
    InvalidInputError
        No limit was given and the classifier has nothing to derive one from.

    Notes
    -----
    A limit that is not given comes from the evaluation that was saved with the classifier (``clf.evaluation_``), or
    else from ``clf.outlook_``. It is the worst value that is still plausible there: the figures of few test rows are
    not exact. Half of ``false_alarms`` is spent on that, the other half on the stream. Without an
    evaluation and an outlook, only limits that are given are watched. A ``Guarantee`` is always watched.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_breast_cancer
    >>> from emsco import Monitor, MultiStageClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = MultiStageClassifier([0, 0, 0, 1, 1, 1], threshold=0.75).fit(X[:300, :6], y[:300])
    >>> monitor = Monitor(clf, coverage=0.9, accuracy=0.85)
    >>> decisions = clf.decide(X[300:, :6])
    >>> monitor.add(decisions), monitor.add_truth(decisions, y[300:])
    ([], [])
    >>> wrong = np.where(np.arange(269) % 2, y[300:], 1 - y[300:])
    >>> [alarm.watch for alarm in monitor.add_truth(decisions, wrong)]
    ['accuracy']
    """

    def __init__(
        self,
        clf: Any,
        *,
        coverage: float | None = None,
        accuracy: float | None = None,
        mean_cost: float | None = None,
        false_alarms: float = 0.05,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        model: Deployed = getattr(clf, "deployed_", clf)
        if not isinstance(false_alarms, float) or not 0 < false_alarms < 1:
            raise InvalidParameterError(
                f"must be a share strictly between 0 and 1, such as 0.05; got {false_alarms!r}.",
                parameter="false_alarms",
            )
        model.require_chain("monitor")
        self._classes = model.classes
        self._paid = model.paid.tolist()
        self.false_alarms = false_alarms
        self.watches = _watches(
            model, _checked(coverage=coverage, accuracy=accuracy, mean_cost=mean_cost), false_alarms
        )
        if not self.watches:
            raise InvalidInputError(
                "there is nothing to compare with: the classifier has no evaluation, no outlook and no guarantee. Give "
                "limits, such as accuracy=0.9, or save an evaluation with it: clf.save(path, evaluation=...)."
            )
        if state is not None:
            self._continue(state)

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """The first alarm of each figure that has one."""
        return tuple(watch.alarm for watch in self.watches if watch.alarm is not None)

    def add(self, decisions: Decisions) -> list[Alarm]:
        """Take note of decisions, in their order; return alarms that are new.

        Parameters
        ----------
        decisions : Decisions
            What ``decide`` or ``run`` of the classifier returned.
        """
        exits = np.where(decisions.conclusive, decisions.stage, len(self._paid))
        return self._update({"coverage": exits, "mean_cost": exits}, Watch.after)

    def add_exits(self, counts: ArrayLike) -> list[Alarm]:
        """Take note of decisions whose order is unknown; return alarms that are new.

        Parameters
        ----------
        counts : array-like of shape (n_stages + 1,)
            How many cases got a label at each stage, and last, how many got none.
        """
        return self._update({"coverage": counts, "mean_cost": counts}, Watch.after_block)

    def add_truth(self, decisions: Decisions, truth: ArrayLike) -> list[Alarm]:
        """Take note of true labels, in their order; return alarms that are new.

        Parameters
        ----------
        decisions : Decisions
            What was decided of these cases; those without a label are passed over.
        truth : array-like of shape (n_rows,)
        """
        labels = check_truth(plain_labels(truth), self._classes, len(decisions))
        sure = decisions.conclusive
        given = np.searchsorted(self._classes, decisions.label.data[sure])
        return self.add_codes(given, np.searchsorted(self._classes, labels[sure]))

    def add_codes(self, given: IntArray, truth: IntArray) -> list[Alarm]:
        """Take note of labels and truths, as positions of the classes, in their order; return alarms that are new."""
        wrong = (given != truth).astype(np.int64)
        observed: dict[str, Any] = {"accuracy": wrong, "promise": wrong}
        for code, label in enumerate(self._classes.tolist()):
            observed[f"promise: {label}"] = wrong[given == code]
        return self._update(observed, Watch.after)

    def _update(self, observed: Mapping[str, Any], after: Any) -> list[Alarm]:
        known = self.alarms
        self.watches = tuple(
            after(watch, observed[watch.name]) if watch.name in observed else watch for watch in self.watches
        )
        return [alarm for alarm in self.alarms if alarm not in known]

    @property
    def state(self) -> dict[str, Any]:
        """Plain values that JSON can hold, with which another monitor continues."""
        return {
            "version": _VERSION,
            "watches": [
                {
                    "name": watch.name,
                    "limit": watch.limit,
                    "level": watch.level,
                    "n": watch.n,
                    "logs": [None if value == -np.inf else value for value in watch.wealth.logs],
                    "counts": list(watch.counts),
                    "alarm": None if watch.alarm is None else asdict(watch.alarm),
                }
                for watch in self.watches
            ],
        }

    def _continue(self, state: Mapping[str, Any]) -> None:
        """Take up the evidence of another monitor."""
        try:
            if state["version"] != _VERSION:
                raise InvalidInputError(f"the state is of version {state['version']}; this release reads {_VERSION}.")
            found = {record["name"]: record for record in state["watches"]}
            same = all(
                (watch.limit, watch.level) == (found[watch.name]["limit"], found[watch.name]["level"])
                for watch in self.watches
            )
            if not same or len(found) != len(self.watches):
                raise InvalidInputError("the state is of a monitor with other limits; begin another.")
            self.watches = tuple(_continued(watch, found[watch.name]) for watch in self.watches)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, InvalidInputError):
                raise
            raise InvalidInputError("a monitor is continued from the state of another; this is none.") from error

    def sheet(self) -> Sheet:
        """Return the table that is printed."""
        rows = []
        for watch in self.watches:
            share = watch.name != "mean_cost"
            shown = tenths if share else (lambda value: f"{value:,.2f}")
            limit = f"{'at least' if watch.is_least else 'at most'} {shown(watch.limit)}"
            found = shown(watch.found) if watch.n else "-"
            said = "none" if watch.alarm is None else f"ALARM after {watch.alarm.n:,}"
            rows.append((watch.name, limit, found, f"{watch.n:,}", _few_digits(watch.evidence), said))
        note = (
            f"Probability of any alarm, ever, if no figure is beyond its limit: {100 * self.false_alarms:g} %. An "
            "evidence of 1 raises one."
        )
        head = ("figure", "limit", "found", "cases", "evidence", "alarm")
        marked = tuple(i for i, watch in enumerate(self.watches) if watch.alarm is not None)
        return Sheet(head, tuple(rows), (0, 1, 5), marked, (note,))

    def __str__(self) -> str:
        return self.sheet().to_text(line_width())

    def __repr__(self) -> str:
        names = ", ".join(watch.name for watch in self.watches)
        alarms = ", ".join(alarm.watch for alarm in self.alarms) or "none"
        return f"<Monitor of {names}; alarms: {alarms}>"

    def _repr_html_(self) -> str:
        return self.sheet().to_html("Monitor")


def _few_digits(value: float) -> str:
    if value < 0.01:
        return "below 0.01"
    return f"{value:.2f}" if value < 1000 else "above 1000"


def _checked(**limits: float | None) -> dict[str, float | None]:
    for name, limit in limits.items():
        if limit is None:
            continue
        number = isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool)
        if not number or not 0 < limit < (np.inf if name == "mean_cost" else 1 + 1e-12):
            wanted = "a price of more than 0" if name == "mean_cost" else "a share above 0, up to 1"
            raise InvalidParameterError(f"must be {wanted}; got {limit!r}.", parameter=name)
    return limits


def _watches(model: Deployed, given: Mapping[str, float | None], false_alarms: float) -> tuple[Watch, ...]:
    """Return what can be watched, with limits; the rate of false alarms is shared out equally."""
    paid = model.paid.tolist()
    dear = paid[-1]
    labelled = (*(0.0 for _ in paid), 1.0)  # large numbers are bad: no label
    spent = tuple(cost / dear if dear else 0.0 for cost in (*paid, dear))
    reference = _Reference.of(model)
    promises = _promised(model)
    figures = ["coverage", "accuracy", *(["mean_cost"] if dear else [])]
    wanted = [name for name in figures if given[name] is not None or reference is not None]
    level = false_alarms / max(len(wanted) + len(promises), 1)
    watches = []
    for name in wanted:
        limit, source, share = given[name], "given", level
        if limit is None and reference is not None:
            limit, source, share = reference.limit(name, level / 2), reference.source, level / 2
        if limit is None:
            continue
        values = {"coverage": labelled, "mean_cost": spent, "accuracy": _BINARY}[name]
        scale = dear if name == "mean_cost" else 1.0
        watches.append(Watch(name, min(float(limit), scale), scale, name != "mean_cost", share, values, source))
    for name, limit in promises.items():
        watches.append(Watch(name, limit, 1.0, True, level, _BINARY, "the guarantee"))
    return tuple(watches)


def _promised(model: Deployed) -> dict[str, float]:
    """Return the promises that are made of the design in use, by the name of their watch."""
    promise = model.promise
    if promise is None or promise.n_shared:
        return {}
    made = [check for check in promise.checks if check.passed]
    accuracy = float(promise.guarantee.accuracy)
    return {"promise" if check.label is None else f"promise: {check.label}": accuracy for check in made}


@dataclass(frozen=True)
class _Reference:
    """Counts of rows that the design in use has not seen, or figures with intervals that allow for that."""

    source: str
    model: Deployed

    @classmethod
    def of(cls, model: Deployed) -> "_Reference | None":
        if model.evaluation is not None:
            return cls(f"{model.evaluation.n_rows:,} held-out rows", model)
        tuned = model.front is not None and model.policy.tunes and model.point == model.chosen
        if tuned and model.front is not None and model.front.outlook is not None:
            return cls("the outlook of fit", model)
        return None

    def limit(self, figure: str, risk: float) -> float | None:
        """Return the worst value of a figure that is plausible: beyond with at most this probability."""
        if self.model.evaluation is None:
            assert self.model.front is not None
            assert self.model.front.outlook is not None
            low, high = self.model.front.outlook.interval(figure, level=1 - 2 * risk)
            return high if figure == "mean_cost" else low
        result = self.model.evaluation.points[self.model.point]
        if figure == "mean_cost":
            dear = result.paid[-1]
            return dear * highest_mean([cost / dear for cost in result.paid], result.left, risk)
        hits, n = sum(result.answered), result.n_rows
        if figure == "accuracy":
            hits, n = sum(result.right), hits
        return binomial_interval(hits, n, 1 - 2 * risk)[0] if n else None


def _continued(watch: Watch, record: Mapping[str, Any]) -> Watch:
    """Return a watch with the evidence of a record."""
    logs: Sequence[float | None] = record["logs"]
    values = [-np.inf if value is None else float(value) for value in logs]
    counts = tuple(int(count) for count in record["counts"])
    n = int(record["n"])
    if len(values) != len(watch.wealth.logs) or any(value == np.inf or value != value for value in values):
        raise InvalidInputError("the state has been damaged: its evidence is no list of numbers.")
    if len(counts) not in (0, len(watch.values)) or sum(counts) != n or min(counts, default=0) < 0:
        raise InvalidInputError("the state has been damaged: its counts do not add up.")
    alarm = None if record["alarm"] is None else Alarm(**record["alarm"])
    return replace(watch, wealth=Wealth(n, tuple(values)), counts=counts, alarm=alarm)
