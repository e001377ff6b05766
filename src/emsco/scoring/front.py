"""Front: the answer of a search, best first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.designs.operators.elitism import best_first
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.exceptions import InvalidParameterError, MissingDependencyError, NoSuchPointError
from emsco.prices.prices import PriceList
from emsco.scoring.cascade import Tally
from emsco.scoring.intervals import binomial_intervals, mean_and_error, mean_intervals
from emsco.scoring.objectives import PAPER, PAPER_MAXIMISE, Aims, measure
from emsco.scoring.ranking import norm

if TYPE_CHECKING:
    from emsco.report.plots import FrontDisplay


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """One point of a front: a design and what it achieves on the validation samples."""

    design: IntArray
    coverage: float
    accuracy: float
    mean_cost: float
    fitness: float
    n_stages: int
    n_ties: int
    values: FloatArray


@dataclass(frozen=True, eq=False)
class Front:
    """Non-dominated designs, one per objective vector, fittest first.

    Attributes
    ----------
    designs : ndarray of shape (n_points, n_features)
        ``designs[i, f]`` is the stage, from 0, in which design i buys feature f, -1 if it never does: the simplest
        design met with its objective vector (fewest stages, then fewest features, then the smaller row).
    coverage, accuracy, mean_cost : ndarray of shape (n_points,)
        On the validation samples. Accuracy is of the labels given, NaN where none is.
    fitness : ndarray of shape (n_points,)
        Norm of (coverage, accuracy, least cost / cost): the paper's fitness of the front as a generation of its own.
        With other objectives, norm of their gains.
    n_ties : ndarray of shape (n_points,)
        Designs that share the objective vector, this one included: all of them after an exact search, else those met.
        After an exact search by two of the paper's objectives, those of them that are best in the third.
    ties : tuple of iterable
        Of each point, these designs; after an exact search they are found as they are asked for.
    feature_names : tuple of str
        What the columns of ``designs`` buy.
    n_samples : int
        Validation samples behind the figures.
    reached : ndarray of shape (n_points, n_stages)
        How many of them reach each stage.
    paid : ndarray of shape (n_points, n_stages)
        What one has paid by the end of each stage.
    total_price : float
        Price of everything.
    objectives : tuple of str
        Names of the objectives searched by.
    maximise : tuple of bool
        Of which of them more is better.
    values : ndarray of shape (n_points, n_objectives)
        Their values.
    certificate : Certificate or None
        What an exact search looked at, and whether the frontier is proven to be the true one.
    thresholds : ndarray of shape (n_points, 2) or None
        Where thresholds were chosen with the designs: that of the stages before the last, and that of the last.
    """

    designs: IntArray
    coverage: FloatArray
    accuracy: FloatArray
    mean_cost: FloatArray
    fitness: FloatArray
    n_ties: IntArray
    ties: tuple[Iterable[IntArray], ...]
    feature_names: tuple[str, ...]
    n_samples: int
    reached: IntArray
    paid: FloatArray
    total_price: float
    objectives: tuple[str, ...]
    maximise: tuple[bool, ...]
    values: FloatArray
    certificate: Any = None
    thresholds: FloatArray | None = None

    @property
    def n_stages(self) -> IntArray:
        """Stages of each design."""
        return stage_counts(self.designs)

    @property
    def extra(self) -> dict[str, FloatArray]:
        """Further figures of each point under their names, such as other objectives and thresholds of its own."""
        known = (*PAPER, "stages")
        extra = {n: values for n, values in zip(self.objectives, self.values.T, strict=True) if n not in known}
        if self.thresholds is not None:
            extra |= {"exits at": self.thresholds[:, 0], "last at": self.thresholds[:, 1]}
        return extra

    def __len__(self) -> int:
        return len(self.designs)

    @overload
    def __getitem__(self, index: int) -> FrontPoint: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> "Front": ...
    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> "FrontPoint | Front":
        """Return a point, or of a slice, a mask or a list of indices the front of those points."""
        if isinstance(index, slice | Sequence | np.ndarray):
            return self._select(np.arange(len(self))[index])
        return FrontPoint(
            self.designs[index],
            float(self.coverage[index]),
            float(self.accuracy[index]),
            float(self.mean_cost[index]),
            float(self.fitness[index]),
            int(self.n_stages[index]),
            int(self.n_ties[index]),
            self.values[index],
        )

    def _select(self, points: NDArray[np.intp]) -> "Front":
        names = (name for name in _PER_POINT if getattr(self, name) is not None)
        arrays: dict[str, Any] = {name: _frozen(getattr(self, name)[points]) for name in names}
        return replace(self, ties=tuple(self.ties[i] for i in points), **arrays)

    def interval(self, figure: str, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper ends of the confidence intervals of a figure, on the rows that scored the points.

        Exact binomial (Clopper and Pearson) for shares, normal for the cost. They tell how much the number of rows
        leaves open for a design fixed beforehand; that the points were selected on these rows is not in them.

        Parameters
        ----------
        figure : "coverage", "accuracy" or "cost"
        level : float
            Confidence, between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (n_points,)
        """
        if isinstance(level, bool) or not isinstance(level, int | float | np.number) or not 0 < level < 1:
            raise InvalidParameterError(f"level must be a share between 0 and 1, such as 0.95; got {level!r}.")
        if figure == "coverage":
            return binomial_intervals(self._n_conclusive, np.full(len(self), self.n_samples), level)
        if figure == "accuracy":
            return binomial_intervals(self._n_correct, self._n_conclusive, level)
        if figure in ("cost", "mean_cost"):
            return mean_intervals(self._left, self.paid, level)
        raise InvalidParameterError(f"figure must be coverage, accuracy or cost; got {figure!r}.")

    @property
    def _n_conclusive(self) -> IntArray:
        return np.rint(self.coverage * self.n_samples).astype(np.int64)

    @property
    def _n_correct(self) -> IntArray:
        return np.rint(np.nan_to_num(self.accuracy) * self._n_conclusive).astype(np.int64)

    @property
    def _left(self) -> IntArray:
        """Rows that leave at each stage, with or without a label."""
        return -np.diff(self.reached, axis=1, append=0)

    @property
    def combined(self) -> FloatArray:
        """Coverage + accuracy + the share of the price of everything that is saved, the paper's combined score."""
        spent = self.mean_cost / self.total_price if self.total_price > 0 else np.zeros(len(self))
        return np.asarray(self.coverage + np.nan_to_num(self.accuracy) + 1 - spent)

    def choose(
        self,
        *,
        max_cost: float | None = None,
        min_coverage: float | None = None,
        min_accuracy: float | None = None,
        best: str = "fitness",
        one_standard_error: bool = False,
    ) -> int:
        """Return the point that is best of those within the limits, ready for ``EMSCOClassifier.use``.

        Parameters
        ----------
        max_cost : float or None
            Most mean cost.
        min_coverage, min_accuracy : float or None
            Least coverage and accuracy, between 0 and 1.
        best : "accuracy", "coverage", "cost", "fitness", "combined", or the name of an objective searched by
            What decides between several; on a tie the other figures do, in this order: accuracy, coverage, cost.
        one_standard_error : bool
            Return not the best, but the simplest point (fewest stages, then cheapest) that is worse by no more than one
            standard error of the difference. For accuracy, coverage, cost and combined.

        Raises
        ------
        NoSuchPointError
            No point is within the limits; the message says how near the front comes to each.

        Notes
        -----
        The error of a share is the standard deviation of its posterior under a flat prior, which is not 0 where three
        of three labels are right. Points are scored on the same rows, but which rows each gets right is not kept: the
        error of a difference is that of independent rows, which is rather too large than too small. The error of the
        combined score is at most the sum of the errors of its parts, and that is used.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from emsco import EMSCOClassifier
        >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], random_state=0).fit(*load_iris(return_X_y=True))
        >>> point = clf.front_[clf.front_.choose(max_cost=6, best="accuracy")]
        >>> point.mean_cost <= 6
        True
        """
        check_choice({"best": best, "one_standard_error": one_standard_error}, self.objectives)
        order = self.order(max_cost=max_cost, min_coverage=min_coverage, min_accuracy=min_accuracy, best=best)
        if one_standard_error:
            key, error = self._keys()[best], self._errors(best)
            order = order[(key - key[order[0]])[order] <= np.hypot(error, error[order[0]])[order]]
            order = order[np.lexsort((self.mean_cost[order], self.n_stages[order]))]
        return int(order[0])

    def order(
        self,
        *,
        max_cost: float | None = None,
        min_coverage: float | None = None,
        min_accuracy: float | None = None,
        best: str = "fitness",
    ) -> NDArray[np.intp]:
        """Return all points within the limits, best first; the arguments, and the error, are those of ``choose``."""
        limits = {"max_cost": max_cost, "min_coverage": min_coverage, "min_accuracy": min_accuracy}
        check_choice({**limits, "best": best}, self.objectives)
        within = {
            "max_cost": self.mean_cost <= (np.inf if max_cost is None else max_cost),
            "min_coverage": self.coverage >= (min_coverage or 0.0),
            "min_accuracy": np.nan_to_num(self.accuracy, nan=-1.0) >= (-1.0 if min_accuracy is None else min_accuracy),
        }
        allowed = np.flatnonzero(np.logical_and.reduce(list(within.values())))
        if not allowed.size:
            asked = {name: value for name, value in limits.items() if value is not None}
            raise NoSuchPointError(asked, self._nearest_miss(asked, within))
        keys = self._keys()
        return allowed[np.lexsort([keys[name][allowed] for name in ("cost", "coverage", "accuracy", best)])]

    def _keys(self) -> dict[str, FloatArray]:
        """Return what points may be ordered by, the less the better."""
        return {
            **dict(zip(self.objectives, np.where(self.maximise, -self.values, self.values).T, strict=True)),
            "accuracy": -np.nan_to_num(self.accuracy, nan=-1.0),
            "coverage": -self.coverage,
            "cost": self.mean_cost,
            "fitness": -self.fitness,
            "combined": -self.combined,
        }

    def _errors(self, figure: str) -> FloatArray:
        """Return the standard error of a figure, point by point."""
        if figure == "combined":
            cost = self._errors("cost") / self.total_price if self.total_price > 0 else np.zeros(len(self))
            return np.asarray(self._errors("coverage") + self._errors("accuracy") + cost)
        if figure == "cost":
            return mean_and_error(self._left, self.paid)[1]
        n_hits, n = self._n_correct, self._n_conclusive
        if figure == "coverage":
            n_hits, n = self._n_conclusive, np.full(len(self), self.n_samples)
        share = (n_hits + 1) / (n + 2)
        return np.asarray(np.sqrt(share * (1 - share) / (n + 3)))

    def knee(self) -> int:
        """Return the point where the front bends most, ready for ``EMSCOClassifier.use``.

        Every objective is scaled to run from 0, the best of the front, to 1, the worst. The best points of each
        objective span a line (two objectives), a plane (three) or more; the knee is the point farthest from it on the
        side of better values, where a little more of one objective costs much of the others. If no point is on that
        side, it is the fittest of those on the plane.
        """
        values = np.nan_to_num(self.values)  # an accuracy of nothing counts as 0, as in the search
        losses = np.where(self.maximise, -values, values)
        losses = losses - losses.min(axis=0)
        span = losses.max(axis=0)
        losses /= np.where(span > 0, span, 1)
        extremes = losses[[np.lexsort((losses.sum(axis=1), column))[0] for column in losses.T]]
        offsets = losses - extremes[0]
        _, sizes, directions = np.linalg.svd(extremes[1:] - extremes[0], full_matrices=False)
        plane = directions[sizes > 1e-9]  # one point may be the best in two objectives: then it is a smaller one
        beyond = offsets - offsets @ plane.T @ plane
        distance = np.sqrt((beyond**2).sum(axis=1)) * -np.sign(beyond.sum(axis=1))
        return int(np.argmax(distance.round(9)))

    def _nearest_miss(self, limits: Iterable[str], within: dict[str, NDArray[np.bool_]]) -> dict[str, float]:
        """Return for each limit the value that meets it if the others hold, to four digits; none if there is none."""
        figure = {"max_cost": self.mean_cost, "min_coverage": self.coverage, "min_accuracy": self.accuracy}
        nearest = {}
        for name in limits:
            others = np.logical_and.reduce([held for other, held in within.items() if other != name])
            possible = figure[name][others & ~np.isnan(figure[name])]
            if possible.size:
                upwards = name == "max_cost"
                nearest[name] = _to_four_digits(possible.min() if upwards else possible.max(), upwards=upwards)
        return nearest

    def __iter__(self) -> Iterator[FrontPoint]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        designs = "1 design" if len(self) == 1 else f"{len(self)} designs"
        return (
            f"<Front of {designs}: coverage {_span(self.coverage)}, accuracy {_span(self.accuracy)}, "
            f"mean cost {_span(self.mean_cost)}>"
        )

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, most: int = 12, width: int | None = None) -> str:
        """Return the best points as a table, a line each.

        Parameters
        ----------
        most : int
            How many points to show.
        width : int or None
            How many characters a line may have; what is bought is cut to fit. None: the width of the terminal, 110
            where there is none.
        """
        if width is None:
            width = get_terminal_size((110, 24)).columns
        extra = {name: (values, max(len(name), 8)) for name, values in self.extra.items()}
        names = "".join(f"{name:>{room}}  " for name, (_, room) in extra.items())
        lines = [
            f"point  fitness  stages  coverage  accuracy   mean cost  {names}what is bought, stage | stage"[:width]
        ]
        for i, point in enumerate(self[:most]):
            figures = (
                f"{i:5d}  {point.fitness:7.3f}  {point.n_stages:6d}  {percent(point.coverage):>8}  "
                f"{percent(point.accuracy):>8}  {point.mean_cost:10,.2f}  "
            ) + "".join(f"{values[i]:{room}.4g}  " for values, room in extra.values())
            design = describe(point.design, self.feature_names)
            room = max(width - len(figures), 10)
            lines.append(figures + (design if len(design) <= room else design[: room - 3] + "..."))
        if len(self) > most:
            lines.append(f"... and {len(self) - most} more")
        return "\n".join(lines)

    def plot(self, ax: Any = None, highlight: int | None = None) -> "FrontDisplay":
        """Draw accuracy against mean cost, coloured by coverage; needs matplotlib.

        Parameters
        ----------
        ax : Axes or None
            Where. None: a new figure.
        highlight : int or None
            A point to mark, such as ``clf.point_``.

        Returns
        -------
        FrontDisplay
            With the axes as ``ax_`` and the figure as ``figure_``.
        """
        from emsco.report.plots import FrontDisplay

        return FrontDisplay.from_front(self, ax=ax, highlight=highlight)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per point: its figures, and what it buys, stage after stage.

        ``_low`` and ``_high`` are the ends of 95 % intervals, see ``interval``.
        """
        figures: dict[str, Any] = {}
        for figure in ("coverage", "accuracy", "mean_cost"):
            low, high = self.interval(figure)
            figures |= {figure: getattr(self, figure), f"{figure}_low": low, f"{figure}_high": high}
        return data_frame(
            {
                "stages": self.n_stages,
                **figures,
                **self.extra,
                "fitness": self.fitness,
                "ties": self.n_ties,
                "design": [describe(design, self.feature_names) for design in self.designs],
            }
        )


def spread(front: Front, n_points: int) -> NDArray[np.intp]:
    """Return up to so many points, each of another design, that stand for all.

    A third have the best combined scores, a third are the fittest, and the others lie evenly over the costs.
    """
    by_score = np.argsort(-front.combined, kind="stable")
    first = np.unique(front.designs[by_score], axis=0, return_index=True)[1]
    points = by_score[np.sort(first)]  # of each design that with the best score
    if points.size <= n_points:
        return points
    best, others = np.split(points, [n_points // 3])
    fittest, others = np.split(others[np.argsort(-front.fitness[others], kind="stable")], [n_points // 3])
    others = others[np.argsort(front.mean_cost[others], kind="stable")]
    even = np.linspace(0, others.size - 1, n_points - best.size - fittest.size).round().astype(np.intp)
    return np.concatenate([best, fittest, others[even]])


_PER_POINT = (
    "designs", "coverage", "accuracy", "mean_cost", "fitness", "n_ties", "reached", "paid", "values", "thresholds",
)  # fmt: skip


def check_choice(choice: Mapping[str, Any], objectives: tuple[str, ...]) -> None:
    """Raise unless these are arguments for ``Front.choose`` on a front of these objectives."""
    with_error = ("accuracy", "coverage", "cost", "combined")
    bests = tuple(dict.fromkeys((*with_error, "fitness", *objectives)))
    names = ("max_cost", "min_coverage", "min_accuracy", "best", "one_standard_error")
    unknown = sorted(str(name) for name in choice if name not in names)
    if unknown:
        raise InvalidParameterError(f"a point is chosen by {', '.join(names)}; got {', '.join(unknown)}.")
    for name in names[:3]:
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


def _to_four_digits(value: float, *, upwards: bool) -> float:
    """Return a number of four digits that is not below, or not above, a value."""
    with localcontext(prec=4, rounding=ROUND_CEILING if upwards else ROUND_FLOOR):
        return float(+Decimal(repr(float(value))))


def describe(design: IntArray, feature_names: tuple[str, ...]) -> str:
    """Return a design in words.

    Examples
    --------
    >>> describe(np.array([0, 1, 0]), ("age", "blood", "sex"))
    'age, sex | blood'
    >>> describe(np.array([0, -1, 1]), ("age", "blood", "sex"))
    'age | sex; never blood'
    """
    bought = " | ".join(
        ", ".join(name for name, stage in zip(feature_names, design, strict=True) if stage == j)
        for j in range(int(design.max()) + 1)
    )
    never = never_bought(design, feature_names)
    return f"{bought}; never {in_brief(never)}" if never else bought


def never_bought(design: IntArray, feature_names: tuple[str, ...]) -> list[str]:
    """Return what a design leaves out."""
    return [name for name, stage in zip(feature_names, design, strict=True) if stage < 0]


def in_brief(names: Sequence[str], most: int = 3) -> str:
    """Return names in a row, or of many how many they are.

    Examples
    --------
    >>> in_brief(["age", "sex"]), in_brief(["age", "sex"], most=1)
    ('age, sex', '2 others')
    """
    return ", ".join(names) if len(names) <= most else f"{len(names)} others"


def percent(share: float) -> str:
    """Return a share as a percentage for people, a dash where it is undefined."""
    return "-" if np.isnan(share) else f"{100 * share:.0f} %"


def data_frame(columns: dict[str, Any]) -> Any:
    """Return a pandas DataFrame, or say how to get pandas."""
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError("to_frame needs pandas: pip install 'emsco[pandas]'.") from error
    return pandas.DataFrame(columns)


def make_front(
    designs: IntArray,
    tally: Tally,
    n_ties: IntArray,
    ties: Sequence[Iterable[IntArray]],
    prices: PriceList,
    certificate: Any = None,
    aims: Aims | None = None,
    thresholds: FloatArray | None = None,
) -> Front:
    """Return the front of designs known to be non-dominated and of distinct vectors, fittest first."""
    figures = measure(tally)
    norms = norm(figures if aims is None else aims.measure(tally))
    accuracy = np.where(tally.n_conclusive > 0, figures.accuracy, np.nan)
    values = tally.values
    if aims is None or values is None:
        values = np.column_stack([figures.coverage, accuracy, figures.mean_cost])
    elif "accuracy" in aims.names:
        values = np.where(np.array(aims.names) == "accuracy", accuracy[:, None], values)
    front = Front(
        designs, figures.coverage, accuracy, figures.mean_cost, norms, n_ties, tuple(ties), prices.unit_names,
        tally.n_samples, tally.reached, stages_paid(designs, prices, tally.reached.shape[1]), prices.total,
        PAPER if aims is None else aims.names, PAPER_MAXIMISE if aims is None else aims.maximise, values, certificate,
        thresholds,
    )  # fmt: skip
    return front._select(best_first(designs, np.zeros(len(designs), dtype=np.int64), norms))


def stages_paid(designs: IntArray, prices: PriceList, n_stages: int) -> FloatArray:
    """Return what an input has paid by the end of each stage, (n_designs, n_stages); nobody gets beyond the last."""
    paid = np.cumsum(prices.stage_ticks(acquired_sets(designs)[0]), axis=1) / prices.scale
    return np.pad(paid, ((0, 0), (0, n_stages - paid.shape[1])), mode="edge")


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _span(values: FloatArray) -> str:
    known = values[~np.isnan(values)]
    return f"{known.min():.4g} to {known.max():.4g}" if known.size else "undefined"
