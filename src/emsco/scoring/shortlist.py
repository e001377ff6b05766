"""A few points of a front, spread over the trade-off, each with the reason why one would take it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray
from emsco.data.table import data_frame
from emsco.exceptions import InvalidParameterError
from emsco.markup import Sheet
from emsco.scoring.choice import no_worse
from emsco.scoring.words import NEVER_FOUND, tenths, tenths_of_worst

if TYPE_CHECKING:
    from emsco.scoring.front import Front

ALL_LABELLED = 0.99  # coverage that counts as a label for everyone
_HALF = 0.5  # coverage below which a high accuracy is of little use
_SHARE_APART = 0.01  # difference in coverage or accuracy of clearly different points
_RECALL_APART = 0.05  # difference in the recall of the worst class
_COST_APART = 0.05  # share of the range of costs
_GAINS = {"coverage": 0.01, "accuracy": 0.005, "worst_recall": 0.05}  # that are worth a higher cost
_MUCH_CHEAPER, _FEW_LOST = 0.5, 0.01  # share of the cost in use, and of all rows, at which a cheaper point is named
_NEAR_GAP = 0.7  # of the widest distance in cost; among points that far away, the best is taken


@dataclass(frozen=True)
class Pick:
    """A point of a shortlist.

    Attributes
    ----------
    point : int
        Its number in the front.
    reason : str
        Why one would take it, in a sentence.
    """

    point: int
    reason: str


@dataclass(frozen=True, eq=False, repr=False)
class Shortlist(Sequence[Pick]):
    """Clearly different points of a front, cheapest first; made by ``Front.shortlist``.

    Attributes
    ----------
    front : Front
    picks : tuple of Pick
    in_use : int or None
        The point in use, which is marked.
    """

    front: "Front"
    picks: tuple[Pick, ...]
    in_use: int | None = None

    @property
    def points(self) -> list[int]:
        """Numbers of the points in the front."""
        return [pick.point for pick in self.picks]

    def __len__(self) -> int:
        return len(self.picks)

    @overload
    def __getitem__(self, index: int) -> Pick: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Pick, ...]: ...
    def __getitem__(self, index: int | slice) -> Pick | tuple[Pick, ...]:
        return self.picks[index]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per point: number, reason, figures and purchases."""
        front, points = self.front, self.points
        figures = {name: getattr(front, name)[points] for name in ("mean_cost", "coverage", "accuracy", "worst_recall")}
        return data_frame(
            {
                "point": points,
                "reason": [pick.reason for pick in self.picks],
                **figures,
                "design": [front.in_words(i) for i in points],
            }
        )

    def sheet(
        self,
        facts: Mapping[str, Sequence[str]] = MappingProxyType({}),
        rest: str = "all in front_.to_frame(), and by emsco front --all",
    ) -> Sheet:
        """Return the table that is printed.

        Parameters
        ----------
        facts : mapping of str to sequence of str
            Further facts by name, one of each per point of the list.
        rest : str
            How to see all points.
        """
        front, by_class = self.front, self.front.confusion is not None
        rows = []
        for k, pick in enumerate(self.picks):
            i = pick.point
            worst = [tenths_of_worst(front.worst_recall[i])] if by_class else []
            extra = [f"{name} {values[i]:.4g}" for name, values in front.extra.items()]
            extra += [f"{name} {said[k]}" for name, said in facts.items()]
            design, when = front.in_words(i), front.when_labelled(i)
            words = [pick.reason, f"{design} ({', '.join(extra)})" if extra else design]
            words += [f"{when[0].upper()}{when[1:]}."] if when else []
            figures = [f"{front.mean_cost[i]:,.2f}", tenths(front.coverage[i]), tenths(front.accuracy[i]), *worst]
            rows.append((f"{'*' if i == self.in_use else ''}{i}", *figures, "\n".join(words)))
        names = ("point", "mean cost", "coverage", "accuracy", *(["worst recall"] if by_class else []))
        marked = tuple(k for k, pick in enumerate(self.picks) if pick.point == self.in_use)
        never = [NEVER_FOUND] if by_class and (front.worst_recall[self.points] == 0).any() else []
        shown = f"{len(self)} of {len(front)} points" + (", * in use" if marked else "")
        notes = (*never, f"{shown}; {rest}." if len(self) < len(front) else f"{shown}.")
        return Sheet((*names, "reason, and what is bought, stage | stage"), tuple(rows), (len(names),), marked, notes)

    def to_text(self, width: int | None = None) -> str:
        """Return the points as a table; None: as wide as the terminal, or 110 characters without one."""
        return self.sheet().to_text(width)

    def __repr__(self) -> str:
        return f"<Shortlist of {len(self)} of {len(self.front)} points: {', '.join(map(str, self.points))}>"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.sheet().to_html()


def shortlist_of(front: "Front", n: int, in_use: int | None) -> Shortlist:
    """Return up to ``n`` clearly different points; see ``Front.shortlist``."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise InvalidParameterError(f"must be a whole number of at least 1; got {n!r}.", parameter="n")
    if in_use is not None and not 0 <= in_use < len(front):
        raise InvalidParameterError(f"must be a point, 0 to {len(front) - 1}; got {in_use!r}.", parameter="in_use")
    reasons: dict[int, list[str]] = {}
    if in_use is not None:
        reasons[int(in_use)] = []
    for point, reason in [*_much_cheaper(front, in_use), *_named(front)]:
        twin = next((known for known in reasons if not _apart(front, known)[point]), None)
        if point in reasons:
            reasons[point].append(reason)
        elif twin is not None:
            reasons[twin].append(f"nearly {reason}")
        elif len(reasons) < n:
            reasons[point] = [reason]
    _fill(front, reasons, int(n))
    points = sorted(reasons, key=lambda i: (front.mean_cost[i], i))
    picks = []
    for k, point in enumerate(points):
        said = reasons[point] or [_gain(front, point, points[k - 1] if k else None)]
        picks.append(Pick(point, _sentence(["in use", *said] if point == in_use else said)))
    return Shortlist(front, tuple(picks), in_use)


def _named(front: "Front") -> list[tuple[int, str]]:
    """Return the points that have a name of their own, most important first."""
    accuracy = np.nan_to_num(front.accuracy, nan=-1.0)
    labels = front.n_conclusive > 0
    everyone, half = front.coverage >= ALL_LABELLED, front.coverage >= _HALF
    named = [
        (_first(front, labels, front.mean_cost, -front.combined), "the cheapest"),
        (_first(front, labels, -front.combined), "the best combined score"),
        (_first(front, everyone, front.mean_cost, -front.combined), "the cheapest that labels at least 99 %"),
        (
            _first(front, half, -accuracy, front.mean_cost),
            "the most accurate" if half.all() else "the most accurate of those that label at least half",
        ),
        (_first(front, labels, -front.coverage, front.mean_cost, -accuracy), "the most coverage"),
    ]
    if front.against is not None:
        point, holds = no_worse(front)
        if holds:
            named.insert(0, (point, "the cheapest that is no worse than buying everything, for any class"))
    if front.confusion is not None:
        worst = -np.nan_to_num(front.worst_recall)
        named.append((_first(front, worst < 0, worst, front.mean_cost), "the best recall of its worst class"))
    if len(front.objectives) > 1 and half[knee := front.knee()]:
        named.append((knee, "the knee: a little better costs much more"))
    return [(point, reason) for point, reason in named if point is not None]


def _much_cheaper(front: "Front", in_use: int | None) -> list[tuple[int, str]]:
    """Return the best point of at most half the cost in use, if it gives nearly as many correct labels."""
    if in_use is None or front.mean_cost[in_use] == 0:
        return []
    n_lost = front.n_correct[in_use] - front.n_correct
    cheap = (front.mean_cost <= _MUCH_CHEAPER * front.mean_cost[in_use]) & (n_lost <= _FEW_LOST * front.n_samples)
    point = _first(front, cheap & (front.n_conclusive > 0) & _apart(front, in_use), n_lost, front.mean_cost)
    if point is None:
        return []
    n, share = int(n_lost[point]), front.mean_cost[point] / front.mean_cost[in_use]
    labels = f"{abs(n):,} {'fewer' if n > 0 else 'more'} correct labels" if n else "as many correct labels"
    return [(point, f"for {tenths(share)} of the cost in use, {labels} of {front.n_samples:,} rows")]


def _first(front: "Front", allowed: BoolArray, *keys: FloatArray) -> int | None:
    """Return the allowed point that is first by the keys, the most important one first."""
    points = np.flatnonzero(allowed)
    if not points.size:
        return None
    return int(points[np.lexsort([key[points] for key in reversed(keys)])[0]])


def _apart(front: "Front", point: int) -> BoolArray:
    """Return which points clearly differ from one."""
    accuracy, worst = np.nan_to_num(front.accuracy), np.nan_to_num(front.worst_recall)
    apart = np.abs(front.coverage - front.coverage[point]) >= _SHARE_APART
    apart |= np.abs(accuracy - accuracy[point]) >= _SHARE_APART
    apart |= np.abs(worst - worst[point]) >= _RECALL_APART
    apart |= np.abs(front.mean_cost - front.mean_cost[point]) >= _COST_APART * np.ptp(front.mean_cost)
    apart[point] = False
    return np.asarray(apart)


def _fill(front: "Front", reasons: dict[int, list[str]], n: int) -> None:
    """Add points where the list has the widest gaps in cost; among points in such a gap, the best one."""
    candidates = (front.coverage >= _HALF) & (np.nan_to_num(front.accuracy) > 0)
    for point in reasons:
        candidates &= _apart(front, point) & _worth_it(front, point)
    worth = front.coverage + np.nan_to_num(front.accuracy) + np.nan_to_num(front.worst_recall)
    while len(reasons) < n and candidates.any():
        points: NDArray[np.intp] = np.flatnonzero(candidates)
        gap = np.abs(front.mean_cost[points, None] - front.mean_cost[list(reasons)]).min(axis=1, initial=np.inf)
        far = points[gap >= _NEAR_GAP * gap.max()]
        point = int(far[np.argmax(worth[far])])
        reasons[point] = []
        candidates &= _apart(front, point) & _worth_it(front, point)


def _worth_it(front: "Front", point: int) -> BoolArray:
    """Return which points are cheaper than one, or give clearly more in some figure."""
    worth_it = front.mean_cost < front.mean_cost[point]
    for name, least in _GAINS.items():
        figure = np.nan_to_num(getattr(front, name))
        worth_it |= figure >= figure[point] + least
    return np.asarray(worth_it)


def _gain(front: "Front", point: int, before: int | None) -> str:
    """Return what a point gives for its cost, beside the next cheaper one of the list."""
    if before is None:
        return "a point in between"
    named = {"coverage": front.coverage, "accuracy": front.accuracy, "worst recall": front.worst_recall}
    changes = {name: 100 * float(values[point] - values[before]) for name, values in named.items()}
    shown = ", ".join(f"{name} {change:+.1f}" for name, change in changes.items() if abs(change) >= 0.05)  # no NaN
    extra_cost = f"{front.mean_cost[point] - front.mean_cost[before]:,.2f}"
    return f"for {extra_cost} more than point {before}: {shown} percentage points"


def _sentence(parts: list[str]) -> str:
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."
