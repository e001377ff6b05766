"""Front: the result of a search, best first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.designs.branched import Branched
from emsco.designs.operators.elitism import best_first
from emsco.designs.partition import acquired_sets, stage_counts
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import PriceList
from emsco.scoring.branches import with_branches
from emsco.scoring.certificate import Certificate
from emsco.scoring.choice import LIMITS, check_choice, knee_of, order_points, points_within, simplest_of
from emsco.scoring.classes import precision_of, recall_intervals, recall_of, worst_recall
from emsco.scoring.intervals import binomial_intervals, check_level, mean_intervals
from emsco.scoring.objectives import LOSS, PAPER, PAPER_MAXIMISE, Aims, measure
from emsco.scoring.outlook import Outlook
from emsco.scoring.ranking import norm
from emsco.scoring.ratio import PriceSteps, price_steps
from emsco.scoring.rejection import rule_of
from emsco.scoring.shortlist import Shortlist, shortlist_of
from emsco.scoring.tables import front_frame, front_text
from emsco.scoring.tally import Tally
from emsco.scoring.thresholds import rule_words, rules_words
from emsco.scoring.words import describe, describe_branched

if TYPE_CHECKING:
    from emsco.scoring.display import FrontDisplay


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """One point of a front: a design and its figures on the validation samples."""

    design: IntArray
    coverage: float
    accuracy: float
    mean_cost: float
    fitness: float
    n_stages: int
    n_ties: int
    values: FloatArray
    branched: Branched | None = None


@dataclass(frozen=True, eq=False)
class Front:
    """Non-dominated designs, one per objective vector, fittest first.

    Attributes
    ----------
    designs : ndarray of shape (n_points, n_features)
        ``designs[i, f]`` is the stage, from 0, in which design i buys feature f, or -1 if it never does. Each row is
        the simplest design with its objective vector (fewest stages, then fewest features, then the smaller row).
    coverage, accuracy, mean_cost : ndarray of shape (n_points,)
        Figures on the validation samples. The accuracy is that of the given labels; NaN if none is given.
    fitness : ndarray of shape (n_points,)
        Norm of (coverage, accuracy, least cost / cost): the paper's fitness of the front as a generation of its own.
        With other objectives, the norm of their gains.
    n_ties : ndarray of shape (n_points,)
        Number of designs that share the objective vector, this one included: all of them after an exact search,
        otherwise those evaluated. After an exact search by two of the paper's objectives, those that are best in the
        third.
    ties : tuple of iterable
        These designs, for each point; after an exact search they are found on demand.
    feature_names : tuple of str
        Features that the columns of ``designs`` stand for.
    n_samples : int
        Number of validation samples behind the figures.
    reached : ndarray of shape (n_points, n_stages)
        Number of samples that reach each stage.
    paid : ndarray of shape (n_points, n_stages)
        Total that a sample has paid by the end of each stage.
    total_price : float
        Price of everything.
    objectives : tuple of str
        Names of the objectives of the search.
    maximise : tuple of bool
        Whether larger values are better, for each objective.
    values : ndarray of shape (n_points, n_objectives)
        Their values.
    certificate : Certificate or None
        Counts of an exact search, and whether the front is proven to be the true one.
    thresholds : ndarray of shape (n_points, n_bars) or None
        If the thresholds were chosen with the designs: those of the stages before the last, one for all or one for
        each, and that of the last.
    classes : tuple
        Labels, in order.
    confusion : ndarray of shape (n_points, n_classes, n_classes + 1) or None
        ``confusion[i, t, p]``: validation samples of class t to which point i gives the label p; last, those to which
        it gives none. None if a file of an older version does not say.
    against : ndarray of shape (n_points, n_classes, 2) or None
        Against buying everything at once: validation samples of each class that only buying everything labels
        correctly, and that only the point does.
    n_wrong_with_everything : int
        Wrong labels of buying everything at once.
    margin : float
        Standard errors by which a point may be worse than buying everything and counts as no worse.
    outlook : Outlook or None
        What to expect on new rows of the point that is no worse, if it was chosen so.
    branched : tuple of Branched or None
        Of each point its branches, None if it is a chain; empty if all are. The row in ``designs`` then is a summary,
        ``reached`` adds up the branches, and ``paid`` is that of the dearest one.
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
    certificate: Certificate | None = None
    thresholds: FloatArray | None = None
    classes: tuple[Any, ...] = ()
    confusion: IntArray | None = None
    against: IntArray | None = None
    n_wrong_with_everything: int = 0
    margin: float = 1.0
    outlook: Outlook | None = None
    branched: tuple[Branched | None, ...] = ()

    @property
    def n_stages(self) -> IntArray:
        """Number of stages of each design; of one that branches, those of its deepest branch."""
        counts = stage_counts(self.designs)
        for i, branched in enumerate(self.branched):
            counts[i] = counts[i] if branched is None else branched.n_stages
        return counts

    def in_words(self, point: int) -> str:
        """Return what a point buys, stage by stage, in words."""
        branched = self.branched[point] if self.branched else None
        names = self.feature_names
        return describe(self.designs[point], names) if branched is None else describe_branched(branched, names)

    @property
    def extra(self) -> dict[str, FloatArray]:
        """Values of each point, by name, of objectives that have no attribute of their own."""
        known = (*PAPER, "stages")
        return {n: values for n, values in zip(self.objectives, self.values.T, strict=True) if n not in known}

    def when_labelled(self, point: int) -> str | None:
        """Return when a point gives a label, in words; None if it has no thresholds of its own."""
        if self.thresholds is None:
            return None
        if self.branched and (branched := self.branched[point]) is not None:
            return rules_words(branched, self.classes)
        n_stages = max(int(self.designs[point].max()) + 1, 1)
        return rule_words(rule_of(self.thresholds[point].tolist(), n_stages), n_stages, self.classes)

    def __len__(self) -> int:
        return len(self.designs)

    @overload
    def __getitem__(self, index: int) -> FrontPoint: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> "Front": ...
    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> "FrontPoint | Front":
        """Return a point; for a slice, a mask or a list of indices, the front of these points."""
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
            self.branched[index] if self.branched else None,
        )

    def _select(self, points: NDArray[np.intp]) -> "Front":
        names = (name for name in _PER_POINT if getattr(self, name) is not None)
        arrays: dict[str, Any] = {name: _frozen(getattr(self, name)[points]) for name in names}
        outlook = self.outlook if points.size == len(self) else None  # its point may not be among these
        branched = tuple(self.branched[i] for i in points) if self.branched else ()
        if not any(branched):
            branched = ()
        return replace(self, ties=tuple(self.ties[i] for i in points), outlook=outlook, branched=branched, **arrays)

    def interval(self, figure: str, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of the confidence intervals of a figure, on the validation rows.

        The intervals are exact binomial (Clopper and Pearson) for shares and normal for the cost. They are valid for a
        design that was fixed beforehand; they do not account for the selection of the points on these rows.

        Parameters
        ----------
        figure : "coverage", "accuracy", "recall" or "cost"
        level : float
            Confidence level, between 0 and 1.

        Returns
        -------
        low, high : ndarray of shape (n_points,), or (n_points, n_classes) for the recall
        """
        check_level(level)
        if figure == "coverage":
            return binomial_intervals(self.n_conclusive, np.full(len(self), self.n_samples), level)
        if figure == "accuracy":
            return binomial_intervals(self.n_correct, self.n_conclusive, level)
        if figure == "recall":
            unknown = (self._unknown, self._unknown)
            return unknown if self.confusion is None else recall_intervals(self.confusion, level)
        if figure in ("cost", "mean_cost"):
            return mean_intervals(*self.visits, level)
        raise InvalidParameterError(f"figure must be coverage, accuracy, recall or cost; got {figure!r}.")

    @property
    def n_conclusive(self) -> IntArray:
        """Validation samples that each point labels."""
        return np.rint(self.coverage * self.n_samples).astype(np.int64)

    @property
    def n_correct(self) -> IntArray:
        """Validation samples that each point labels correctly."""
        return np.rint(np.nan_to_num(self.accuracy) * self.n_conclusive).astype(np.int64)

    @property
    def left(self) -> IntArray:
        """Validation samples that leave at each stage, with or without a label, (n_points, n_stages)."""
        return -np.diff(self.reached, axis=1, append=0)

    @property
    def visits(self) -> tuple[NDArray[Any], FloatArray]:
        """Validation samples that leave at each stage of each branch, and what they have paid by then.

        Columns are stages. Of a point that branches both are NaN if its figures by branch are not known.
        """
        return with_branches(self.left, self.paid, self.branched) if self.branched else (self.left, self.paid)

    @property
    def recall(self) -> FloatArray:
        """Share of each class that gets its own label, (n_points, n_classes).

        A sample without a label is not found. NaN for a class without samples, and if ``confusion`` is None.
        """
        return self._unknown if self.confusion is None else recall_of(self.confusion)

    @property
    def precision(self) -> FloatArray:
        """Share of each label that is correct, (n_points, n_classes); NaN if the label is never given."""
        return self._unknown if self.confusion is None else precision_of(self.confusion)

    @property
    def worst_recall(self) -> FloatArray:
        """Least recall of a class, (n_points,)."""
        return np.full(len(self), np.nan) if self.confusion is None else worst_recall(self.confusion)

    @property
    def total(self) -> FloatArray:
        """Money per case, tests and errors together, (n_points,); only if loss is an objective."""
        if LOSS not in self.objectives:
            raise InvalidParameterError("there is no total: errors have no prices. Fit with errors=... to have it.")
        return np.asarray(self.mean_cost + self.values[:, self.objectives.index(LOSS)])

    def by_price_of_errors(self) -> PriceSteps:
        """Return from which multiple of the prices of errors on which point costs least, tests and errors together."""
        return price_steps(self.mean_cost, self.total, self.in_words)

    @property
    def _unknown(self) -> FloatArray:
        return np.full((len(self), len(self.classes)), np.nan)

    @property
    def combined(self) -> FloatArray:
        """The paper's combined score, coverage + accuracy + saved share of the price of everything."""
        spent = self.mean_cost / self.total_price if self.total_price > 0 else np.zeros(len(self))
        return np.asarray(self.coverage + np.nan_to_num(self.accuracy) + 1 - spent)

    def choose(
        self,
        *,
        max_cost: float | None = None,
        min_coverage: float | None = None,
        min_accuracy: float | None = None,
        min_recall: float | Mapping[Any, float] | None = None,
        min_precision: float | Mapping[Any, float] | None = None,
        best: str = "fitness",
        one_standard_error: bool = False,
    ) -> int:
        """Return the best point within the limits, for ``EMSCOClassifier.use``.

        Parameters
        ----------
        max_cost : float or None
            Largest mean cost.
        min_coverage, min_accuracy : float or None
            Least coverage and accuracy, between 0 and 1.
        min_recall, min_precision : float, mapping or None
            Least recall of a class, the share of its samples that get its label, and least precision of a label: a
            share for every class, or a mapping of some labels (or their text) to shares, as ``{"sick": 0.95}``. A
            label that is never given has no precision and is not within a limit.
        best : "accuracy", "coverage", "cost", "fitness", "combined", or the name of an objective of the search
            Ranks the points within the limits. Ties are broken by accuracy, then coverage, then cost.
        one_standard_error : bool
            Return the simplest point (fewest stages, then cheapest) that is at most one standard error of the
            difference worse than the best. For accuracy, coverage, cost and combined.

        Raises
        ------
        NoSuchPointError
            No point is within the limits. The message offers the nearest value of each limit.

        Notes
        -----
        The error of a share is the standard deviation of its posterior under a flat prior, which is above 0 even if
        three of three labels are correct. Points are scored on the same rows, but the front does not store which rows
        each point labels correctly. The error of a difference is therefore that of independent rows, which is rather
        too large than too small. The error of the combined score is bounded by the sum of the errors of its parts.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from emsco import EMSCOClassifier
        >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], random_state=0).fit(*load_iris(return_X_y=True))
        >>> point = clf.front_[clf.front_.choose(max_cost=6, best="accuracy")]
        >>> point.mean_cost <= 6
        True
        >>> point = clf.front_.choose(min_recall={2: 0.8}, best="cost")  # at least 80 % of class 2 are found
        >>> bool(clf.front_.recall[point, 2] >= 0.8)
        True
        """
        check_choice({"best": best, "one_standard_error": one_standard_error}, self.objectives)
        order = self.order(
            max_cost=max_cost, min_coverage=min_coverage, min_accuracy=min_accuracy, min_recall=min_recall,
            min_precision=min_precision, best=best,
        )  # fmt: skip
        return int((simplest_of(self, order, best) if one_standard_error else order)[0])

    def order(
        self,
        *,
        max_cost: float | None = None,
        min_coverage: float | None = None,
        min_accuracy: float | None = None,
        min_recall: float | Mapping[Any, float] | None = None,
        min_precision: float | Mapping[Any, float] | None = None,
        best: str = "fitness",
    ) -> NDArray[np.intp]:
        """Return all points within the limits, best first; arguments and error as in ``choose``."""
        values = (max_cost, min_coverage, min_accuracy, min_recall, min_precision)
        limits = dict(zip(LIMITS, values, strict=True))
        check_choice({**limits, "best": best}, self.objectives, self.classes or None)
        return order_points(self, points_within(self, limits), best)

    def knee(self) -> int:
        """Return the knee, the point where the front bends most, for ``EMSCOClassifier.use``.

        Every objective is scaled from 0, the best of the front, to 1, the worst. The best points of each objective
        span a line (two objectives), a plane (three) or a hyperplane. The knee is the point farthest from it on the
        side of better values, where a small gain in one objective costs much of the others. If no point is on that
        side, it is the fittest point on the plane.
        """
        return knee_of(self.values, self.maximise)

    def __iter__(self) -> Iterator[FrontPoint]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        designs = "1 design" if len(self) == 1 else f"{len(self)} designs"
        return (
            f"<Front of {designs}: coverage {_span(self.coverage)}, accuracy {_span(self.accuracy)}, "
            f"mean cost {_span(self.mean_cost)}>"
        )

    def __str__(self) -> str:
        return self.shortlist().to_text()

    def _repr_html_(self) -> str:
        return self.shortlist().sheet().to_html()

    def shortlist(self, n: int = 10, *, in_use: int | None = None) -> Shortlist:
        """Return a few clearly different points, spread over the trade-off, each with a reason.

        The points with a name come first: the one in use, the cheapest, the best combined score, the cheapest that
        labels at least 99 %, the most accurate (of those that label at least half), the most coverage, the best recall
        of the worst class, the knee. Others fill the widest gaps in cost. Two points of the list differ by at least one
        percentage point in coverage or accuracy, five in the recall of the worst class, or 5 % of the range of costs. A
        named point that is closer to one of the list adds its name there, as "nearly".

        Parameters
        ----------
        n : int
            Largest number of points.
        in_use : int or None
            A point to include and to mark, such as ``clf.point_``.

        Returns
        -------
        Shortlist
            A sequence of picks, each with ``point`` and ``reason``, cheapest first. It prints as a table.
        """
        return shortlist_of(self, n, in_use)

    def to_text(self, *, most: int = 12, width: int | None = None) -> str:
        """Return the fittest points as a table, one line each; ``print`` shows the shortlist instead.

        Parameters
        ----------
        most : int
            Number of points to show.
        width : int or None
            Largest number of characters per line; designs are cut to fit. None: the width of the terminal, or 110
            without one.
        """
        return front_text(self, most, width)

    def plot(
        self,
        ax: Any = None,
        highlight: int | None = None,
        *,
        max_cost: float | None = None,
        min_coverage: float | None = None,
        min_accuracy: float | None = None,
    ) -> "FrontDisplay":
        """Plot accuracy against mean cost, coloured by coverage; needs matplotlib.

        Parameters
        ----------
        ax : Axes or None
            Axes to plot on; a new figure if None.
        highlight : int or None
            A point to mark, such as ``clf.point_``; it is drawn whatever the limits.
        max_cost, min_coverage, min_accuracy : float or None
            Points outside these limits are left out, and the axes fit the others.

        Returns
        -------
        FrontDisplay
            With the axes as ``ax_`` and the figure as ``figure_``.
        """
        from emsco.scoring.display import FrontDisplay

        limits = {"max_cost": max_cost, "min_coverage": min_coverage, "min_accuracy": min_accuracy}
        check_choice(limits, self.objectives)
        return FrontDisplay.from_front(self, ax=ax, highlight=highlight, shown=points_within(self, limits))

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per point: its figures, by class too, and its purchases by stage.

        ``_low`` and ``_high`` are the ends of 95 % confidence intervals, see ``interval``.
        """
        return front_frame(self)


_PER_POINT = (
    "designs", "coverage", "accuracy", "mean_cost", "fitness", "n_ties", "reached", "paid", "values", "thresholds",
    "confusion", "against",
)  # fmt: skip


def make_front(
    designs: IntArray,
    tally: Tally,
    n_ties: IntArray,
    ties: Sequence[Iterable[IntArray]],
    prices: PriceList,
    certificate: Any = None,
    aims: Aims | None = None,
    thresholds: FloatArray | None = None,
    branched: Sequence[Branched | None] = (),
) -> Front:
    """Return the front of designs that are known to be non-dominated with distinct vectors, fittest first."""
    figures = measure(tally)
    norms = norm(figures if aims is None else aims.measure(tally))
    accuracy = np.where(tally.n_conclusive > 0, figures.accuracy, np.nan)
    values = tally.values
    if aims is None or values is None:
        values = np.column_stack([figures.coverage, accuracy, figures.mean_cost])
    elif "accuracy" in aims.names:
        values = np.where(np.array(aims.names) == "accuracy", accuracy[:, None], values)
    n_stages = tally.reached.shape[1]
    paid = stages_paid(designs, prices, n_stages)
    for i, point in enumerate(branched):
        if point is not None:
            of_each = stages_paid(point.rows, prices, n_stages)
            paid[i] = of_each[of_each[:, -1].argmax()]
    front = Front(
        designs, figures.coverage, accuracy, figures.mean_cost, norms, n_ties, tuple(ties), prices.unit_names,
        tally.n_samples, tally.reached, paid, prices.total, PAPER if aims is None else aims.names,
        PAPER_MAXIMISE if aims is None else aims.maximise, values, certificate, thresholds, branched=tuple(branched),
    )  # fmt: skip
    return front._select(best_first(designs, np.zeros(len(designs), dtype=np.int64), norms))


def stages_paid(designs: IntArray, prices: PriceList, n_stages: int) -> FloatArray:
    """Return the total paid by the end of each stage, (n_designs, n_stages); constant beyond the last stage."""
    paid = np.cumsum(prices.stage_ticks(acquired_sets(designs)[0]), axis=1) / prices.scale
    return np.pad(paid, ((0, 0), (0, n_stages - paid.shape[1])), mode="edge")


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _span(values: FloatArray) -> str:
    known = values[~np.isnan(values)]
    return f"{known.min():.4g} to {known.max():.4g}" if known.size else "undefined"
