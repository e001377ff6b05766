"""Which point of a front: by name, by limits, by a preset."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.exceptions import InvalidParameterError, NoSuchPointError
from emsco.scoring.classes import check_shares, shares_by_class
from emsco.scoring.intervals import mean_and_error

if TYPE_CHECKING:
    from emsco.scoring.front import Front

# What decides between points within limits, if nothing else is said.
PRESET_CHOICES = {"best": "combined", "paper": "fitness"}
_TOLERATED = 1e-3  # share of the rows beyond so many:
_MANY_ROWS = 12_000
OF_A_CLASS = 0.5  # standard errors by which the recall of one class may be worse than with everything
NO_WORSE = "no_worse"  # the default: the cheapest point that is no worse than buying everything
TOTAL = "total"  # where errors have prices: the least money, tests and errors together
BY_CLASS = ("min_recall", "min_precision")
LIMITS = ("max_cost", "min_coverage", "min_accuracy", *BY_CLASS)


def check_choice(choice: Mapping[str, Any], objectives: tuple[str, ...], classes: Sequence[Any] | None = None) -> None:
    """Raise unless these are valid arguments for ``Front.choose`` on a front with these objectives.

    The labels in limits per class are checked if the classes are given.
    """
    with_error = ("accuracy", "coverage", "cost", "combined")
    bests = tuple(dict.fromkeys((*with_error, "fitness", *objectives)))
    names = (*LIMITS, "best", "one_standard_error")
    unknown = sorted(str(name) for name in choice if name not in names)
    if unknown:
        raise InvalidParameterError(f"a point is chosen by {', '.join(names)}; got {', '.join(unknown)}.")
    for name in BY_CLASS:
        if (value := choice.get(name)) is not None:
            check_shares(value, name)
            if isinstance(value, Mapping) and classes is not None:
                shares_by_class(value, classes, name)
    for name in LIMITS[:3]:
        value = choice.get(name)
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        most = np.inf if name == "max_cost" else 1
        if value is not None and not (number and 0 <= value <= most):
            wanted = "a number of at least 0" if name == "max_cost" else "a share between 0 and 1, such as 0.9"
            raise InvalidParameterError(f"must be {wanted}; got {value!r}.", parameter=name)
    best, one_standard_error = choice.get("best", "fitness"), choice.get("one_standard_error", False)
    if best not in bests:
        raise InvalidParameterError(f"must be one of {', '.join(bests)}; got {best!r}.", parameter="best")
    if not isinstance(one_standard_error, bool | np.bool_):
        raise InvalidParameterError(
            f"must be True or False; got {one_standard_error!r}.", parameter="one_standard_error"
        )
    if one_standard_error and best not in with_error:
        raise InvalidParameterError(
            f"is for the best {', '.join(with_error)}; the error of {best} is not known.",
            parameter="one_standard_error",
        )


def choose_point(front: "Front", choose: Any, *, best: str) -> int:
    """Return the point of a front that ``choose``, a name or limits, stands for."""
    if isinstance(choose, Mapping):
        return front.choose(**{"best": best, **choose})
    if choose == NO_WORSE:
        return no_worse(front)[0]
    if choose == TOTAL:
        return int(front.total.argmin())
    if choose == "fitness":
        return 0
    return front.knee() if choose == "knee" else front.choose(best=choose)


def tolerated(n_rows: IntArray) -> FloatArray:
    """Return how many right labels more may be lost: with many rows a difference can be certain, and still tiny."""
    return np.asarray(_TOLERATED * np.maximum(n_rows - _MANY_ROWS, 0))


def no_worse(front: "Front") -> tuple[int, bool]:
    """Return the cheapest point that is no worse than buying everything, for any class; or the nearest, and False.

    No worse is within ``front.margin`` paired standard errors: of the rows that only one of the two labels correctly,
    by class and together, and of the wrong labels that both give. Of points of the same price, that which labels most
    samples is taken, then that with the fewest stages, then units. Of many rows, a thousandth more may be lost.
    """
    if front.against is None or front.confusion is None:
        raise InvalidParameterError(
            "cannot be 'no_worse': a file of an older version does not have the counts; fit again.", parameter="choose"
        )
    lost, gained = front.against[..., 0], front.against[..., 1]
    counts = np.column_stack([lost, lost.sum(axis=1)]), np.column_stack([gained, gained.sum(axis=1)])
    margins = np.append(np.full(lost.shape[1], OF_A_CLASS), front.margin)
    errors = np.sqrt(counts[0] + counts[1])
    n_rows = front.confusion.sum(axis=2)
    slack = tolerated(np.column_stack([n_rows, n_rows.sum(axis=1)]))
    beyond = (counts[0] - counts[1] - margins * errors - slack) / np.maximum(errors, 1)
    labelled = front.confusion[:, :, :-1].sum(axis=(1, 2))
    n_wrong = labelled - np.trace(front.confusion, axis1=1, axis2=2)
    more = n_wrong - front.n_wrong_with_everything
    luck = np.sqrt(np.maximum(n_wrong + front.n_wrong_with_everything, 0))
    wrong = (more - luck - slack[:, -1]) / np.maximum(np.sqrt(n_wrong), 1)
    worst = np.maximum(beyond.max(axis=1), wrong)
    worst[labelled == 0] = np.inf
    allowed = np.flatnonzero(worst <= 1e-9)
    if not allowed.size:
        return int(np.lexsort((front.mean_cost, worst.round(6)))[0]), False
    n_bought, net = (front.designs >= 0).sum(axis=1), counts[0][:, -1] - counts[1][:, -1]
    keys = (net, n_bought, front.n_stages, -labelled, front.mean_cost)
    return int(allowed[np.lexsort([key[allowed] for key in keys])[0]]), True


@dataclass(frozen=True)
class _Limit:
    """A limit on a figure of each point; a figure that is undefined is not within it."""

    figure: FloatArray
    value: float
    upwards: bool = False

    @property
    def within(self) -> BoolArray:
        held = self.figure <= self.value if self.upwards else self.figure >= self.value
        return np.asarray(held)  # comparisons with NaN are false

    def nearest(self, others: BoolArray) -> float | None:
        """Return the nearest value that a point has which is within the other limits, to four digits."""
        possible = self.figure[others & ~np.isnan(self.figure)]
        if not possible.size:
            return None
        return _to_four_digits(possible.min() if self.upwards else possible.max(), upwards=self.upwards)


def points_within(front: "Front", limits: Mapping[str, Any]) -> NDArray[np.intp]:
    """Return the points within limits, arguments of ``Front.choose``; None stands for no limit.

    Raises
    ------
    NoSuchPointError
        There is none; with the nearest value of each limit.
    """
    asked = _limits(front, {name: value for name, value in limits.items() if value is not None})
    within = {name: limit.within for name, limit in asked.items()}
    everyone = np.ones(len(front), dtype=np.bool_)
    allowed = np.flatnonzero(np.logical_and.reduce([everyone, *within.values()]))
    if allowed.size:
        return allowed
    nearest = {}
    for name, limit in asked.items():
        others = [held for other, held in within.items() if other != name]
        value = limit.nearest(np.logical_and.reduce([everyone, *others]))
        if value is not None:
            nearest[name] = value
    raise NoSuchPointError({name: limit.value for name, limit in asked.items()}, nearest)


def _limits(front: "Front", asked: Mapping[str, Any]) -> dict[str, _Limit]:
    """Return each limit with the figure that it is about; one per class is several."""
    limits = {}
    for name, value in asked.items():
        if name == "max_cost":
            limits[name] = _Limit(front.mean_cost, float(value), upwards=True)
        elif name in ("min_coverage", "min_accuracy"):
            limits[name] = _Limit(getattr(front, name.removeprefix("min_")), float(value))
        else:
            limits |= _limits_by_class(front, name, value)
    return limits


def _limits_by_class(front: "Front", name: str, value: Any) -> dict[str, _Limit]:
    if front.confusion is None:
        raise InvalidParameterError(
            "needs counts by class, which this front does not have: its file is of an older version. Fit again.",
            parameter=name,
        )
    figure = front.recall if name == "min_recall" else front.precision
    if isinstance(value, Mapping):
        shares = shares_by_class(value, front.classes, name)
        return {f"{name}[{front.classes[c]}]": _Limit(figure[:, c], share) for c, share in shares.items()}
    present = front.confusion[0].sum(axis=1) > 0  # a class without rows cannot be found
    return {name: _Limit(figure[:, present].min(axis=1), float(value))}


def order_points(front: "Front", points: NDArray[np.intp], best: str) -> NDArray[np.intp]:
    """Return points best first; ties are broken by accuracy, then coverage, then cost."""
    keys = _keys(front)
    return points[np.lexsort([keys[name][points] for name in ("cost", "coverage", "accuracy", best)])]


def simplest_of(front: "Front", order: NDArray[np.intp], best: str) -> NDArray[np.intp]:
    """Return the points that are at most one standard error of the difference worse than the first, simplest first."""
    key, error = _keys(front)[best], _errors(front, best)
    order = order[(key - key[order[0]])[order] <= np.hypot(error, error[order[0]])[order]]
    return order[np.lexsort((front.mean_cost[order], front.n_stages[order]))]


def _keys(front: "Front") -> dict[str, FloatArray]:
    """Return the keys that points may be sorted by; smaller is better."""
    return {
        **dict(zip(front.objectives, np.where(front.maximise, -front.values, front.values).T, strict=True)),
        "accuracy": -np.nan_to_num(front.accuracy, nan=-1.0),
        "coverage": -front.coverage,
        "cost": front.mean_cost,
        "fitness": -front.fitness,
        "combined": -front.combined,
    }


def _errors(front: "Front", figure: str) -> FloatArray:
    """Return the standard error of a figure, point by point."""
    if figure == "combined":
        cost = _errors(front, "cost") / front.total_price if front.total_price > 0 else np.zeros(len(front))
        return np.asarray(_errors(front, "coverage") + _errors(front, "accuracy") + cost)
    if figure == "cost":
        return mean_and_error(*front.visits)[1]
    n_hits, n = front.n_correct, front.n_conclusive
    if figure == "coverage":
        n_hits, n = front.n_conclusive, np.full(len(front), front.n_samples)
    share = (n_hits + 1) / (n + 2)
    return np.asarray(np.sqrt(share * (1 - share) / (n + 3)))


def knee_of(values: FloatArray, maximise: tuple[bool, ...]) -> int:
    """Return the row of objective values where a front bends most; see ``Front.knee``."""
    values = np.nan_to_num(values)  # without labels the accuracy counts as 0, as in the search
    losses = np.where(maximise, -values, values)
    losses = losses - losses.min(axis=0)
    span = losses.max(axis=0)
    losses /= np.where(span > 0, span, 1)
    extremes = losses[[np.lexsort((losses.sum(axis=1), column))[0] for column in losses.T]]
    offsets = losses - extremes[0]
    _, sizes, directions = np.linalg.svd(extremes[1:] - extremes[0], full_matrices=False)
    plane = directions[sizes > 1e-9]  # if one point is the best in two objectives, the plane has fewer dimensions
    beyond = offsets - offsets @ plane.T @ plane
    distance = np.sqrt((beyond**2).sum(axis=1)) * -np.sign(beyond.sum(axis=1))
    return int(np.argmax(distance.round(9)))


def _to_four_digits(value: float, *, upwards: bool) -> float:
    """Return a number of four digits that is not below, or not above, a value."""
    with localcontext(prec=4, rounding=ROUND_CEILING if upwards else ROUND_FLOOR):
        return float(+Decimal(repr(float(value))))


def spread(front: "Front", n_points: int) -> NDArray[np.intp]:
    """Return up to ``n_points`` points with distinct designs that represent the front.

    A third have the best combined scores, a third are the fittest, and the others are spread evenly over the costs.
    """
    by_score = np.argsort(-front.combined, kind="stable")
    first = np.unique(front.designs[by_score], axis=0, return_index=True)[1]
    points = by_score[np.sort(first)]  # for each design, the point with the best score
    if points.size <= n_points:
        return points
    best, others = np.split(points, [n_points // 3])
    fittest, others = np.split(others[np.argsort(-front.fitness[others], kind="stable")], [n_points // 3])
    others = others[np.argsort(front.mean_cost[others], kind="stable")]
    even = np.linspace(0, others.size - 1, n_points - best.size - fittest.size).round().astype(np.intp)
    return np.concatenate([best, fittest, others[even]])
