"""How designs do on labelled rows that neither training nor search saw: counts, then figures with intervals."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.data.table import data_frame
from emsco.deployed.decide import Decisions
from emsco.deployed.money import Money, compared_money, money_sheet
from emsco.exceptions import InvalidInputError, InvalidTargetError, NoSuchPointError
from emsco.markup import Sheet, line_width
from emsco.prices.errors import ErrorPrices
from emsco.scoring.classes import (
    base_rate,
    class_columns,
    class_sheet,
    precision_of,
    recall_intervals,
    recall_of,
    worst_recall,
)
from emsco.scoring.front import Front
from emsco.scoring.intervals import binomial_interval, check_level, mean_intervals
from emsco.scoring.objectives import PAPER, Aims, Counts
from emsco.scoring.words import NEVER_FOUND, tenths, tenths_of_worst

if TYPE_CHECKING:
    from emsco.deployed.display import EvaluationDisplay


@dataclass(frozen=True)
class Result:
    """What one classifier did with the rows: whole counts, from which all figures follow.

    Attributes
    ----------
    answered, right : tuple of int
        Of each stage, how many rows left there with a label, and with the right one.
    n_rejected : int
        Rows that went through all stages and got none.
    paid : tuple of float
        What a row has paid by the end of each stage.
    confusion : tuple of tuple of int
        A line per true class: how many rows got each label, and last, how many none.
    amounts, squares : tuple of tuple of float, or None
        Where prices of errors grow with an amount: sums of the amounts of these rows, and of their squares.
    branches : tuple of int
        If the design branches, the number of stages of each branch: the figures by stage are those of one branch after
        another. Empty if it is a chain.
    silent : tuple of int
        Then, how many rows of each branch got no label.
    """

    answered: tuple[int, ...]
    right: tuple[int, ...]
    n_rejected: int
    paid: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]
    amounts: tuple[tuple[float, ...], ...] | None = None
    squares: tuple[tuple[float, ...], ...] | None = None
    branches: tuple[int, ...] = ()
    silent: tuple[int, ...] = ()

    @property
    def n_rows(self) -> int:
        """Rows judged."""
        return sum(self.answered) + self.n_rejected

    @property
    def coverage(self) -> float:
        """Share of the rows that got a label."""
        return sum(self.answered) / self.n_rows

    @property
    def accuracy(self) -> float:
        """Share of the labels given that are right; NaN if none was given."""
        return sum(self.right) / sum(self.answered) if sum(self.answered) else np.nan

    @property
    def mean_cost(self) -> float:
        """What a row paid on average, rejected ones included."""
        return float(np.dot(self.left, self.paid) / self.n_rows)

    @property
    def left(self) -> tuple[int, ...]:
        """Rows that left at each stage, with or without a label."""
        if not self.branches:
            return (*self.answered[:-1], self.answered[-1] + self.n_rejected)
        left = list(self.answered)
        for last, n in zip(accumulate(self.branches), self.silent, strict=True):
            left[last - 1] += n
        return tuple(left)

    @property
    def recall(self) -> FloatArray:
        """Share of each class that got its own label, (n_classes,); NaN for a class without rows."""
        return recall_of(self.confusion)

    @property
    def precision(self) -> FloatArray:
        """Share of each label that is right, (n_classes,); NaN for a label that was never given."""
        return precision_of(self.confusion)

    @property
    def worst_recall(self) -> float:
        """Least recall of a class that has rows."""
        return float(worst_recall(self.confusion))

    def recall_interval(self, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the ends of the exact confidence intervals of the recalls, (n_classes,) each."""
        check_level(level)
        return recall_intervals(self.confusion, level)

    def interval(self, figure: str, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of "coverage", "accuracy" or "mean_cost" on new rows of the same kind.

        Exact binomial (Clopper and Pearson) for shares, normal for the cost.
        """
        if figure == "coverage":
            return binomial_interval(sum(self.answered), self.n_rows, level)
        if figure == "accuracy":
            return binomial_interval(sum(self.right), sum(self.answered), level)
        low, high = mean_intervals(np.array([self.left]), np.array([self.paid]), level)
        return float(low[0]), float(high[0])


def by_objectives(
    objectives: Sequence[Any] | None, results: Sequence[Result], classes: Sequence[Any]
) -> dict[str, FloatArray]:
    """Return what results are worth by the objectives that a search had besides coverage, accuracy, cost and stages.

    Examples
    --------
    >>> result = Result((6, 2), (5, 2), 2, (1.0, 3.0), ((4, 1, 1), (0, 3, 1)))
    >>> by_objectives(["cost", "fpr", "fnr"], [result], ["ham", "spam"])
    {'fpr': array([0.16666667]), 'fnr': array([0.])}
    """
    if objectives is None:
        return {}
    confusion = np.array([result.confusion for result in results])
    aims = Aims(objectives, confusion[0].sum(axis=1), classes)
    values = aims.values(
        Counts(
            results[0].n_rows,
            np.array([sum(result.answered) for result in results]),
            np.array([sum(result.right) for result in results]),
            np.array([result.mean_cost for result in results]),
            np.array([max(result.branches, default=len(result.answered)) for result in results]),
            confusion[:, :, :-1],
            confusion[:, :, -1],
        )
    )
    return {name: column for name, column in zip(aims.names, values.T, strict=True) if name not in (*PAPER, "stages")}


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Results of every point of a front on the same rows, beside buying everything. It prints as a table.

    Attributes
    ----------
    points : tuple of Result
        One per point of the front; of a given design, one.
    everything : Result
        All features bought at once, the same threshold; where a ``Guarantee`` calibrates it, that of the search.
    always : Result
        All features bought at once, and an answer for every row.
    classes : tuple
    front : Front or None
        Figures of the points on the validation rows; None if the design was given.
    point : int
        The point in use.
    errors : ErrorPrices or None
        Prices of errors, if they have any: then ``money`` says what a case costs.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import EMSCOClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], random_state=0).fit(X[::2], y[::2])
    >>> evaluation = clf.evaluate(X[1::2], y[1::2])
    >>> evaluation.base_rate
    'Always answering "0": 33.3 % correct, 0 % of "1" and "2" found.'
    >>> bool((evaluation.at_cost([6, 12])["validation_cost"] <= [6, 12]).all())
    True
    """

    points: tuple[Result, ...]
    everything: Result
    always: Result
    classes: tuple[Any, ...]
    front: Front | None = field(default=None, compare=False)
    point: int = field(default=0, compare=False)
    errors: ErrorPrices | None = field(default=None, compare=False)

    @property
    def n_rows(self) -> int:
        """Rows judged."""
        return self.everything.n_rows

    @property
    def in_use(self) -> Result:
        """Result of the point in use."""
        return self.points[self.point]

    @property
    def money(self) -> dict[str, Money]:
        """Money per case of the point in use, beside buying everything, and nothing; only if errors have prices."""
        if self.errors is None:
            raise InvalidInputError("errors have no prices, so there is no money per case; fit with errors=....")
        return compared_money(self)

    @property
    def base_rate(self) -> str:
        """What always answering the most frequent class would score on these rows, as a sentence."""
        return base_rate([sum(row) for row in self.everything.confusion], self.classes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, as JSON has them; the front is not part of them."""
        return {
            "points": [_record(result) for result in self.points],
            "everything": _record(self.everything),
            "always": _record(self.always),
            "classes": [getattr(label, "item", lambda x=label: x)() for label in self.classes],
        }

    @classmethod
    def from_dict(
        cls, record: Mapping[str, Any], classes: Sequence[Any], *, front: Front | None = None, point: int = 0
    ) -> "Evaluation":
        """Return what ``to_dict`` wrote; the classes, the front and the point in use come from the classifier."""
        points = tuple(_result(r) for r in record["points"])
        return cls(points, _result(record["everything"]), _result(record["always"]), tuple(classes), front, point)

    def shown_points(self, n: int = 8) -> list[int]:
        """Return up to ``n`` points, cheapest first: the one in use and others of the front's shortlist."""
        return [self.point] if self.front is None else self.front.shortlist(n, in_use=self.point).points

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per point: its figures on these rows, by class too.

        ``_low`` and ``_high`` are the ends of 95 % confidence intervals.
        """
        return data_frame({"in_use": [i == self.point for i in range(len(self.points))], **_columns(self, self.points)})

    def at_cost(self, budgets: Iterable[float], *, min_coverage: float = 0.9) -> Any:
        """Return the figures on these rows of the best point for each budget, as a pandas DataFrame.

        The point is chosen by the validation rows alone, as before a test: of the points whose mean cost there is
        within the budget and whose coverage there is at least ``min_coverage``, the most accurate. If no point within
        the budget has that coverage, it is the one with the most. The mean cost on these rows can therefore exceed
        the budget a little. A budget below the cheapest point has a row without figures.

        Parameters
        ----------
        budgets : iterable of float
            Mean costs per case.
        min_coverage : float
            Least share of labelled cases, on the validation rows.

        Raises
        ------
        InvalidInputError
            There is no front: the design was given.
        """
        front = self.front
        if front is None:
            raise InvalidInputError("there is no front to choose from: the design was given.")
        wanted = list(budgets)
        chosen = [_affordable(front, budget, min_coverage) for budget in wanted]
        results = [None if point is None else self.points[point] for point in chosen]
        costs = [np.nan if point is None else front.mean_cost[point] for point in chosen]
        frame = data_frame({"budget": wanted, "validation_cost": costs, **_columns(self, results)})
        import pandas

        frame.insert(1, "point", pandas.array(chosen, dtype="Int64"))
        return frame

    def plot(self, ax: Any = None) -> "EvaluationDisplay":
        """Plot accuracy against mean cost on these rows, with 95 % intervals; needs matplotlib.

        Parameters
        ----------
        ax : Axes or None
            Axes to plot on; a new figure if None.

        Returns
        -------
        EvaluationDisplay
            With the axes as ``ax_`` and the figure as ``figure_``.
        """
        from emsco.deployed.display import EvaluationDisplay

        return EvaluationDisplay.from_evaluation(self, ax=ax)

    def sheets(self, width: int | None = None) -> tuple[Sheet, Sheet]:
        """Return the tables that are printed: points beside buying everything, and the point in use by class."""
        results = {
            **{f"point {i}{', in use' if i == self.point else ''}": self.points[i] for i in self.shown_points()},
            "buy everything": self.everything,
        }
        if self.always != self.everything:
            results["everything, label all"] = self.always
        rows = []
        for name, result in results.items():
            low, high = result.interval("accuracy")
            figures = (tenths(result.coverage), f"{tenths(result.accuracy)} ({100 * low:.1f}-{100 * high:.1f})")
            rows.append((name, f"{result.mean_cost:,.2f}", *figures, tenths_of_worst(result.worst_recall)))
        never = [NEVER_FOUND] if any(result.worst_recall == 0 for result in results.values()) else []
        many = [f"{len(self.points)} points in all: to_frame()."] if len(self.shown_points()) < len(self.points) else []
        notes = (*never, "Brackets: 95 % confidence intervals.", *many, self.base_rate)
        marked = tuple(k for k, name in enumerate(results) if name.endswith("in use"))
        head = (f"on {self.n_rows:,} rows", "mean cost", "coverage", "accuracy", "worst recall")
        return Sheet(head, tuple(rows), (0,), marked, notes), class_sheet(self.in_use.confusion, self.classes, width)

    def __repr__(self) -> str:
        points = "1 point" if len(self.points) == 1 else f"{len(self.points)} points"
        return (
            f"<Evaluation of {points} on {self.n_rows} rows: in use coverage {tenths(self.in_use.coverage)}, accuracy "
            f"{tenths(self.in_use.accuracy)}, mean cost {self.in_use.mean_cost:.4g}>"
        )

    def to_text(self, width: int | None = None) -> str:
        """Return the tables as text; None: as wide as the terminal, or 110 characters without one."""
        width = line_width(width)
        points, by_class = (sheet.to_text(width) for sheet in self.sheets(width))
        money = "" if self.errors is None else money_sheet(self.money, self.n_rows).to_text(width) + "\n\n"
        return f"{money}{points}\n\nThe design in use, by class:\n{by_class}"

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        points, by_class = self.sheets()
        money = "" if self.errors is None else money_sheet(self.money, self.n_rows).to_html()
        return money + points.to_html() + by_class.to_html("The design in use, by class")


def _columns(evaluation: Evaluation, results: Sequence[Result | None]) -> dict[str, Any]:
    """Return figures of results as columns; those of None are NaN."""
    columns: dict[str, Any] = {}
    for figure in ("mean_cost", "coverage", "accuracy"):
        ends = np.array([(np.nan,) * 2 if r is None else r.interval(figure) for r in results]).reshape(-1, 2)
        columns[figure] = np.array([np.nan if r is None else getattr(r, figure) for r in results])
        columns[f"{figure}_low"], columns[f"{figure}_high"] = ends.T
    columns["worst_recall"] = np.array([np.nan if r is None else r.worst_recall for r in results])
    unknown = np.full(len(evaluation.classes), np.nan)
    recall, precision = (
        np.array([unknown if r is None else getattr(r, name) for r in results]).reshape(-1, unknown.size)
        for name in ("recall", "precision")
    )
    ends = np.array([(unknown, unknown) if r is None else r.recall_interval() for r in results])
    low, high = ends.reshape(-1, 2, unknown.size).transpose(1, 0, 2)
    return {**columns, **class_columns(evaluation.classes, recall, low, high, precision)}


def _affordable(front: Front, budget: float, min_coverage: float) -> int | None:
    """Return the most accurate point within a budget, by the validation rows; None if none is."""
    with suppress(NoSuchPointError):
        return front.choose(max_cost=budget, min_coverage=min_coverage, best="accuracy")
    with suppress(NoSuchPointError):
        return front.choose(max_cost=budget, best="coverage")
    return None


def result_of(
    decisions: Decisions,
    truth: Any,
    classes: NDArray[Any],
    paid: Sequence[float],
    amounts: FloatArray | None = None,
    *,
    branches: tuple[int, ...] = (),
) -> Result:
    """Count what became of rows whose labels are known; with the amounts at risk of the rows, these are summed, too."""
    labels = np.asarray(truth)
    n_stages, stage, conclusive = len(paid), decisions.exits, decisions.conclusive
    silent = () if decisions.branch is None else np.bincount(decisions.branch[~conclusive], minlength=len(branches))
    right = conclusive & (decisions.label.data == labels)
    given = np.where(conclusive, np.searchsorted(classes, decisions.label.data), len(classes))
    true = np.searchsorted(classes, labels)
    confusion = np.zeros((len(classes), len(classes) + 1), dtype=np.int64)
    np.add.at(confusion, (true, given), 1)
    sums: list[Any] = [None, None]
    for k, values in enumerate(() if amounts is None else (amounts, amounts**2)):
        total = np.zeros(confusion.shape)
        np.add.at(total, (true, given), values)
        sums[k] = tuple(map(tuple, total.tolist()))
    return Result(
        answered=tuple(np.bincount(stage[conclusive], minlength=n_stages).tolist()),
        right=tuple(np.bincount(stage[right], minlength=n_stages).tolist()),
        n_rejected=int((~conclusive).sum()),
        paid=tuple(float(p) for p in paid),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        amounts=sums[0],
        squares=sums[1],
        branches=branches,
        silent=tuple(map(int, silent)),
    )


def check_truth(y: Any, classes: Any, n_rows: int) -> Any:
    """Return labels to judge by: one per row, each a class that was trained."""
    labels = np.asarray(y)
    if labels.shape != (n_rows,):
        raise InvalidTargetError(
            f"has the shape {labels.shape}, but X has {n_rows} rows; give one label per row.", parameter="y"
        )
    if not n_rows:
        raise InvalidInputError("there are no rows to judge by.")
    known = np.isin(labels, classes)
    if not known.all():
        unknown = sorted({str(label) for label in labels[~known].tolist()})
        raise InvalidTargetError(
            f"holds {', '.join(unknown[:5])}{' ...' if len(unknown) > 5 else ''} in {int((~known).sum())} rows, but "
            f"the classes trained are {classes.tolist()}; leave such rows out.",
            parameter="y",
        )
    return labels


def _record(result: Result) -> dict[str, Any]:
    return {name: value for name, value in asdict(result).items() if value is not None and value != ()}


def _result(record: Mapping[str, Any]) -> Result:
    return Result(
        answered=tuple(int(n) for n in record["answered"]),
        right=tuple(int(n) for n in record["right"]),
        n_rejected=int(record["n_rejected"]),
        paid=tuple(float(p) for p in record["paid"]),
        confusion=tuple(tuple(int(n) for n in row) for row in record["confusion"]),
        branches=tuple(int(n) for n in record.get("branches", ())),
        silent=tuple(int(n) for n in record.get("silent", ())),
        **{
            name: tuple(tuple(float(n) for n in row) for row in record[name])
            for name in ("amounts", "squares")
            if record.get(name) is not None
        },
    )
