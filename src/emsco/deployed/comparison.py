"""Two models on the same labelled rows: differences paired by row, and whether the rows can tell them apart."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, t

from emsco.arrays import BoolArray, FloatArray
from emsco.data.labels import plain_classes, plain_labels
from emsco.data.table import Table, data_frame
from emsco.deployed.decide import Decisions
from emsco.deployed.evaluation import check_truth
from emsco.deployed.model import Deployed
from emsco.exceptions import InvalidInputError, shown

_TAIL = 0.025  # of a 95 % interval, on each side


@dataclass(frozen=True)
class Difference:
    """One figure of two models, and their difference on the same rows.

    Attributes
    ----------
    figure : "coverage", "accuracy", "mean_cost" or "recall"
    label : Any
        The class of a recall; else None.
    n_rows : int
        Rows behind it: of a recall, those of its class.
    first, second : float
        The figure of each model; NaN if it has none, such as the accuracy of a model that gives no label.
    difference, low, high : float
        Second minus first, and its 95 % confidence interval.
    """

    figure: str
    label: Any
    n_rows: int
    first: float
    second: float
    difference: float
    low: float
    high: float

    @property
    def name(self) -> str:
        """The figure in words."""
        return {"mean_cost": "mean cost", "recall": f"recall of {self.label}"}.get(self.figure, self.figure)

    @property
    def higher(self) -> int | None:
        """Which model has the higher figure on new rows of this kind, 0 or 1; None if the rows cannot tell."""
        return 1 if self.low > 0 else 0 if self.high < 0 else None


@dataclass(frozen=True)
class Comparison:
    """What two models did with the same labelled rows.

    Attributes
    ----------
    names : tuple of str
        What the models are called.
    n_rows : int
    classes : tuple
    figures : tuple of Difference
        Coverage, accuracy of the labels given, mean cost, and the recall of each class: the share of its rows that get
        its label; a row without a label is not found.
    n_same : int
        Rows of which both say the same: the same label, or none.
    remarks : tuple of str
        What to bear in mind, such as different prices.

    Notes
    -----
    Rows are compared one by one: both models decide the same rows, which makes a difference far more certain than that
    of two independent samples. Intervals of shares are those of Bonett and Price (2012): Wald intervals with one row
    more on which only the first model is right, and one on which only the second is. The accuracy, whose rows differ
    between the models, is linearised. The interval of the cost is Student's. Each interval holds by itself; of twenty
    figures that are equal in truth, one is expected to look different.
    """

    names: tuple[str, str]
    n_rows: int
    classes: tuple[Any, ...]
    figures: tuple[Difference, ...]
    n_same: int
    remarks: tuple[str, ...] = ()

    def verdicts(self) -> list[str]:
        """Say of each figure which model has the higher one, or that the rows cannot tell."""
        return [self._verdict(difference) for difference in self.figures]

    def _verdict(self, figure: Difference) -> str:
        higher = figure.higher
        if np.isnan(figure.difference):
            return f"{figure.name}: cannot be compared."
        if higher is None and figure.low == figure.high == 0:
            return f"{figure.name}: the same on every row."
        if higher is None:
            return f"{figure.name}: these rows cannot tell."
        words = {"mean_cost": ("cheaper", 1 - higher), "accuracy": ("more accurate", higher)}
        word, which = words.get(figure.figure, ("higher", higher))
        return f"{figure.name}: {self.names[which]} is {word}."

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per figure."""
        columns: dict[str, list[Any]] = {
            "figure": [f.name for f in self.figures],
            "rows": [f.n_rows for f in self.figures],
            self.names[0]: [f.first for f in self.figures],
            self.names[1]: [f.second for f in self.figures],
            "difference": [f.difference for f in self.figures],
            "low": [f.low for f in self.figures],
            "high": [f.high for f in self.figures],
        }
        return data_frame(columns).set_index("figure")

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers; None where a figure is undefined or an end of an interval infinite."""
        figures = [
            {
                **{name: _known(value) for name, value in asdict(f).items()},
                "higher": None if f.higher is None else self.names[f.higher],
            }
            for f in self.figures
        ]
        return {**asdict(self), "figures": figures, "verdicts": self.verdicts()}

    def __str__(self) -> str:
        first, second = (name if len(name) <= 24 else f"{name[:21]}..." for name in self.names)
        room = max(len(first), len(second), 10)
        wide = max(len(f.name) for f in self.figures)
        lines = [
            f"{self.n_rows} rows; both say the same of {self.n_same}.",
            f"{'':{wide}}  {first:>{room}}  {second:>{room}}  difference  95 % interval",
        ]
        for f in self.figures:
            scale, digits = (1.0, 2) if f.figure == "mean_cost" else (100.0, 1)
            one, two, gap, low, high = (
                "-" if np.isnan(value) else f"{scale * value:{sign},.{digits}f}"
                for value, sign in ((f.first, ""), (f.second, ""), (f.difference, "+"), (f.low, "+"), (f.high, "+"))
            )
            lines.append(f"{f.name:{wide}}  {one:>{room}}  {two:>{room}}  {gap:>10}  {low} to {high}")
        return "\n".join([*lines, "Shares in percent.", *self.verdicts(), *self.remarks])


def compare(
    first: Any, second: Any, X: Any, y: ArrayLike, *, names: tuple[str, str] = ("first", "second")
) -> Comparison:
    """Compare the designs in use of two fitted classifiers on labelled rows that neither of them has seen.

    Parameters
    ----------
    first, second : EMSCOClassifier, MultiStageClassifier or Deployed
        Of the same classes; their columns may differ.
    X : array-like or DataFrame of shape (n_rows, n_columns)
        With all columns that either needs.
    y : array-like of shape (n_rows,)
    names : pair of str
        What to call the models.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import MultiStageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cheap = MultiStageClassifier([0, 0, -1, -1]).fit(X[::2], y[::2])
    >>> dear = MultiStageClassifier([0, 0, 1, 1]).fit(X[::2], y[::2])
    >>> comparison = compare(cheap, dear, X[1::2], y[1::2], names=("cheap", "dear"))
    >>> comparison.verdicts()[2]
    'mean cost: cheap is cheaper.'
    """
    models: list[Deployed] = [getattr(model, "deployed_", model) for model in (first, second)]
    classes = [plain_classes(model.classes) for model in models]
    if classes[0] != classes[1]:
        raise InvalidInputError(
            f"{names[0]} has the classes {shown(classes[0])}, {names[1]} has {shown(classes[1])}; compare models of "
            "the same classes."
        )
    table = Table(X)
    truth = check_truth(plain_labels(y), models[0].classes, table.n_rows)
    decisions = [model.decided(model.outcomes(table), table) for model in models]
    given = [d.conclusive for d in decisions]
    right = [d.conclusive & (d.label.data == truth) for d in decisions]
    figures = [
        _share("coverage", None, *given),
        _accuracy(given, right),
        _cost(decisions[0].cost, decisions[1].cost),
        *(_share("recall", label, *(hits[truth == label] for hits in right)) for label in classes[0]),
    ]
    return Comparison(
        names=names,
        n_rows=table.n_rows,
        classes=tuple(classes[0]),
        figures=tuple(figures),
        n_same=int(_same(*decisions).sum()),
        remarks=tuple(_remarks(models, names)),
    )


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def _same(first: Decisions, second: Decisions) -> BoolArray:
    """Return of which rows two models say the same."""
    both = first.conclusive & second.conclusive & (first.label.data == second.label.data)
    same: BoolArray = both | ~(first.conclusive | second.conclusive)
    return same


def _share(figure: str, label: Any, first: BoolArray, second: BoolArray) -> Difference:
    """Compare the shares of the same rows of which something is true (Bonett and Price)."""
    n = first.size
    if not n:
        return Difference(figure, label, 0, *[float("nan")] * 5)
    gaps = np.concatenate([second.astype(np.float64) - first, [1.0, -1.0]])
    one, two = float(first.mean()), float(second.mean())
    return _shared(figure, label, n, one, two, float(gaps.mean()), float(gaps.std()) / np.sqrt(n + 2))


def _accuracy(given: list[BoolArray], right: list[BoolArray]) -> Difference:
    """Compare the accuracies of the labels given; rows with a label differ, so both ratios are linearised.

    Around its value R / G, a ratio of means changes by (right - R / G * given) / G if a row is added.
    """
    n = given[0].size
    if not all(rows.any() for rows in given):
        one, two = (hits.sum() / rows.sum() if rows.any() else np.nan for hits, rows in zip(right, given, strict=True))
        return Difference("accuracy", None, n, float(one), float(two), *[np.nan] * 3)
    influence, shares = [], []
    for rows, hits, only in zip(given, right, ([1.0, 0.0], [0.0, 1.0]), strict=True):
        labelled, correct = np.append(rows, [1.0, 1.0]), np.append(hits, only)
        shares.append(correct.sum() / labelled.sum())
        influence.append((correct - shares[-1] * labelled) / labelled.mean())
    one, two = (float(hits.sum() / rows.sum()) for hits, rows in zip(right, given, strict=True))
    error = float((influence[1] - influence[0]).std()) / np.sqrt(n + 2)
    return _shared("accuracy", None, n, one, two, float(shares[1] - shares[0]), error)


def _shared(figure: str, label: Any, n: int, first: float, second: float, middle: float, error: float) -> Difference:
    """Return a difference of shares with its interval; that of the rows themselves is always in it."""
    gap, margin = second - first, float(norm.ppf(1 - _TAIL)) * error
    low, high = max(min(middle - margin, gap), -1.0), min(max(middle + margin, gap), 1.0)
    return Difference(figure, label, n, first, second, gap, low, high)


def _cost(first: FloatArray, second: FloatArray) -> Difference:
    """Compare what the same rows pay."""
    gaps = second - first
    n, gap = gaps.size, float(gaps.mean())
    margin = float(t.ppf(1 - _TAIL, n - 1) * gaps.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    return Difference("mean_cost", None, n, float(first.mean()), float(second.mean()), gap, gap - margin, gap + margin)


def _remarks(models: list[Deployed], names: tuple[str, str]) -> list[str]:
    """Return what makes the models hard to compare."""
    prices = [dict(zip(m.prices.unit_names, m.prices.prices.tolist(), strict=True)) for m in models]
    other = [name for name, price in prices[0].items() if prices[1].get(name, price) != price]
    if not other:
        return []
    return [f"{names[0]} and {names[1]} have different prices of {', '.join(other[:5])}{' ...' if other[5:] else ''}: "
            "each pays its own."]  # fmt: skip
