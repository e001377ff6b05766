"""How designs do on labelled rows that neither training nor search saw: counts, then figures with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.deployed.decide import Decisions
from emsco.exceptions import InvalidInputError, InvalidTargetError
from emsco.scoring.classes import precision_of, recall_intervals, recall_of, worst_recall
from emsco.scoring.intervals import binomial_interval, check_level, mean_intervals
from emsco.scoring.objectives import PAPER, Aims, Counts


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
    """

    answered: tuple[int, ...]
    right: tuple[int, ...]
    n_rejected: int
    paid: tuple[float, ...]
    confusion: tuple[tuple[int, ...], ...]

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
        return (*self.answered[:-1], self.answered[-1] + self.n_rejected)

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
            np.array([len(result.answered) for result in results]),
            confusion[:, :, :-1],
            confusion[:, :, -1],
        )
    )
    return {name: column for name, column in zip(aims.names, values.T, strict=True) if name not in (*PAPER, "stages")}


@dataclass(frozen=True)
class Evaluation:
    """Results of every point of a front on the same rows, beside buying everything.

    Attributes
    ----------
    points : tuple of Result
        One per point of the front; of a given design, one.
    everything : Result
        All features bought at once, the same threshold; where a ``Guarantee`` calibrates it, that of the search.
    always : Result
        All features bought at once, and an answer for every row.
    classes : tuple
    """

    points: tuple[Result, ...]
    everything: Result
    always: Result
    classes: tuple[Any, ...]

    @property
    def n_rows(self) -> int:
        """Rows judged."""
        return self.everything.n_rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, as JSON has them."""
        return {**asdict(self), "classes": [getattr(label, "item", lambda x=label: x)() for label in self.classes]}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any], classes: Sequence[Any]) -> "Evaluation":
        """Return what ``to_dict`` wrote; the classes come from the classifier."""
        points = tuple(_result(r) for r in record["points"])
        return cls(points, _result(record["everything"]), _result(record["always"]), tuple(classes))


def result_of(decisions: Decisions, truth: Any, classes: NDArray[Any], paid: Sequence[float]) -> Result:
    """Count what became of rows whose labels are known."""
    labels = np.asarray(truth)
    n_stages, stage, conclusive = len(paid), decisions.stage, decisions.conclusive
    right = conclusive & (decisions.label.data == labels)
    given = np.where(conclusive, np.searchsorted(classes, decisions.label.data), len(classes))
    true = np.searchsorted(classes, labels)
    confusion = np.zeros((len(classes), len(classes) + 1), dtype=np.int64)
    np.add.at(confusion, (true, given), 1)
    return Result(
        answered=tuple(np.bincount(stage[conclusive], minlength=n_stages).tolist()),
        right=tuple(np.bincount(stage[right], minlength=n_stages).tolist()),
        n_rejected=int((~conclusive).sum()),
        paid=tuple(float(p) for p in paid),
        confusion=tuple(tuple(row) for row in confusion.tolist()),
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


def _result(record: Mapping[str, Any]) -> Result:
    return Result(
        answered=tuple(int(n) for n in record["answered"]),
        right=tuple(int(n) for n in record["right"]),
        n_rejected=int(record["n_rejected"]),
        paid=tuple(float(p) for p in record["paid"]),
        confusion=tuple(tuple(int(n) for n in row) for row in record["confusion"]),
    )
