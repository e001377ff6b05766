"""Plots in the style of scikit-learn: ``XDisplay.from_estimator(...)`` computes and plots, ``plot`` plots again.

The colours suit colour-blind readers (Okabe and Ito; cividis). Markers, hatches or labels carry the same information.
Needs matplotlib: ``pip install 'emsco[plot]'``.
"""

from collections.abc import Sequence
from textwrap import shorten, wrap
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.deployed.model import Deployed
from emsco.drawing import BLUE, GREEN, GREY, LIGHT, ORANGE, SKY, VERMILION, axes, counted, finish
from emsco.exceptions import InvalidParameterError
from emsco.report.summary import stage_flow, stage_reliability, threshold_sweep
from emsco.scoring.rejection import NEVER
from emsco.scoring.words import in_brief, never_bought

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


_TO_THE_RIGHT = 0.88  # of thresholds below, the text is on the right of the line
_LEGEND_ROWS = 1.3  # room for a legend of two lines, in rows of bars


class StagesDisplay:
    """Plot of the design in use: how many cases leave at each stage, and the cost.

    Parameters
    ----------
    features : sequence of sequence of str
        Features that each stage buys.
    price : sequence of float
        Price of each stage.
    flow : dict
        Counts from ``emsco.report.summary.stage_flow``.
    never : sequence of str
        Features that no stage buys.

    Attributes
    ----------
    ax_ : ndarray of shape (2,)
        Axes of the counts and of the cost.
    figure_ : Figure
    """

    ax_: NDArray[Any]
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        features: Sequence[Sequence[str]],
        price: Sequence[float],
        flow: dict[str, Any],
        *,
        never: Sequence[str] = (),
    ) -> None:
        self.features = features
        self.price = price
        self.flow = flow
        self.never = never

    @classmethod
    def from_estimator(cls, clf: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Self:
        """Plot the design in use on rows with or without labels; without rows, on the validation rows."""
        model: Deployed = clf.deployed_
        flow = stage_flow(model, X, y)
        features, price = [stage.features for stage in model.stages], [stage.price for stage in model.stages]
        return cls(features, price, flow, never=never_bought(model.design, model.prices.unit_names)).plot(ax)

    @property
    def mean_paid(self) -> FloatArray:
        """Mean price paid per case by the end of each stage; the last value is the mean cost."""
        paid: FloatArray = np.cumsum(np.multiply(self.flow["reached"], self.price)) / self.flow["n_rows"]
        return paid

    def plot(self, ax: Any = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax : pair of Axes, or None
            Axes of the counts and of the cost; a new figure if None.
        """
        labels = [_stage_label(j, names) for j, names in enumerate(self.features)]
        height = 1.8 + 0.25 * sum(1 + label.count("\n") for label in labels) + 0.12 * len(labels)
        counts, cost = axes(ax, 2, ncols=2, width_ratios=(3, 2), sharey=True, figsize=(9.5, height))
        self._draw_counts(counts, labels)
        self._draw_cost(cost)
        self.ax_, self.figure_ = np.array([counts, cost]), counts.figure
        return self

    def _draw_counts(self, axis: "Axes", labels: list[str]) -> None:
        flow, stages = self.flow, np.arange(len(labels))
        answered, rejected = np.array(flow["answered"]), np.zeros(stages.size, dtype=np.int64)
        rejected[-1] = flow["rejected"]
        waiting = np.array(flow["reached"]) - answered - rejected
        if flow["right"] is None:
            parts = [("label", answered, BLUE, "white", "")]
        else:
            right = np.array(flow["right"])
            wrong = answered - right
            parts = [("correct label", right, GREEN, "white", ""), ("wrong label", wrong, ORANGE, "black", "//")]
        parts += [("continues", waiting, LIGHT, "black", ""), ("no label", rejected, GREY, "white", "..")]
        start = np.zeros(stages.size, dtype=np.int64)
        for name, counts, colour, ink, hatch in parts:
            bars = axis.barh(
                stages, counts, left=start, height=0.72, color=colour, hatch=hatch, edgecolor="white", linewidth=0.8,
                label=name,
            )  # fmt: skip
            for bar, count in zip(bars, counts, strict=True):
                if count >= 0.045 * flow["n_rows"]:
                    x, y = bar.get_x() + bar.get_width() / 2, bar.get_y() + bar.get_height() / 2
                    text = axis.text(x, y, str(count), ha="center", va="center", fontsize=8, color=ink)
                    if hatch:
                        text.set_bbox({"boxstyle": "round,pad=0.15", "facecolor": colour, "edgecolor": "none"})
            start = start + counts
        axis.set_yticks(stages, labels)
        never = f"\nnever bought: {in_brief(self.never, most=4)}" if self.never else ""
        finish(axis, f"cases, of {flow['n_rows']:,}{never}", "", "Decisions at each stage", grid="x")
        _legend_below(axis, stages.size)

    def _draw_cost(self, axis: "Axes") -> None:
        stages = np.arange(len(self.price))
        axis.barh(stages, self.price, height=0.72, color=SKY, edgecolor="white", label="price of the stage")
        axis.plot(self.mean_paid, stages, "-o", color="black", markersize=4.5, label="mean paid so far")
        last = float(self.mean_paid[-1])
        axis.annotate(
            f"{last:,.4g}", (last, stages[-1]), xytext=(7, 0), textcoords="offset points", va="center", fontsize=9,
            bbox={"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8},
        )  # fmt: skip
        axis.tick_params(axis="y", labelleft=False)
        finish(axis, "price per case", "", "Cost", grid="x")
        _legend_below(axis, stages.size, n_columns=1)


class ThresholdDisplay:
    """Plot of coverage, accuracy and mean cost of the design in use at other thresholds. It trains nothing.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
    coverage, accuracy, mean_cost : ndarray of shape (n_thresholds,)
        The accuracy is NaN if no label is given.
    accuracy_interval : ndarray of shape (n_thresholds, 2)
        Exact binomial 95 % confidence intervals.
    threshold : float or sequence of float
        The threshold, or the thresholds, in use.
    n_rows : int

    Attributes
    ----------
    ax_ : ndarray of shape (2,)
        Axes of the shares and of the cost.
    figure_ : Figure
    """

    ax_: NDArray[Any]
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        thresholds: FloatArray,
        coverage: FloatArray,
        accuracy: FloatArray,
        mean_cost: FloatArray,
        *,
        accuracy_interval: FloatArray,
        threshold: float | Sequence[float],
        n_rows: int,
    ) -> None:
        self.thresholds = thresholds
        self.coverage = coverage
        self.accuracy = accuracy
        self.mean_cost = mean_cost
        self.accuracy_interval = accuracy_interval
        self.threshold = threshold
        self.n_rows = n_rows

    @classmethod
    def from_estimator(
        cls, clf: Any, X: Any, y: Any, *, thresholds: Sequence[float] | None = None, ax: Any = None
    ) -> Self:
        """Apply the design in use to labelled rows at each threshold, and plot.

        Parameters
        ----------
        clf : EMSCOClassifier or MultiStageClassifier
            Fitted.
        X, y : rows and their labels
            Preferably held-out rows.
        thresholds : sequence of float or None
            None: 101 thresholds, from the one at which every row gets a label up to 1.
        ax : pair of Axes, or None
        """
        if thresholds is None:
            thresholds = np.linspace(1 / max(len(clf.classes_), 2), 1, 101).tolist()
        results = threshold_sweep(clf.deployed_, X, y, thresholds)
        return cls(
            np.array(thresholds, dtype=np.float64),
            np.array([result.coverage for result in results]),
            np.array([result.accuracy for result in results]),
            np.array([result.mean_cost for result in results]),
            accuracy_interval=np.array([result.interval("accuracy") for result in results]),
            threshold=_in_use(clf.deployed_),
            n_rows=results[0].n_rows,
        ).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax : pair of Axes, or None
            Axes of the shares, and of the cost below them; a new figure if None.
        """
        shares, cost = axes(ax, 2, nrows=2, height_ratios=(3, 2), sharex=True, figsize=(7, 5))
        x, every = self.thresholds, max(len(self.thresholds) // 10, 1)
        known = ~np.isnan(self.accuracy)
        low, high = 100 * self.accuracy_interval[known].T
        shares.fill_between(
            x[known], low, high, color=BLUE, alpha=0.18, linewidth=0, label="accuracy, 95 % confidence interval"
        )
        shares.plot(x, 100 * self.accuracy, "-o", color=BLUE, markevery=every, markersize=5, label="accuracy")
        shares.plot(x, 100 * self.coverage, "-s", color=VERMILION, markevery=every, markersize=5, label="coverage")
        cost.plot(x, self.mean_cost, "-D", color="black", markevery=every, markersize=4, label="mean cost")
        shares.set_ylim(-2, 104)
        cost.set_ylim(bottom=0)
        in_use = np.atleast_1d(self.threshold)
        for axis in (shares, cost):
            for bar in in_use:
                axis.axvline(bar, color=GREY, linestyle="--", linewidth=1.2)
        inner = in_use.max(initial=0.0) < _TO_THE_RIGHT  # the legend is on the left
        shares.annotate(
            f"in use: {', '.join(f'{bar:.4g}' for bar in in_use) or 'no threshold'}",
            (in_use.max(initial=0.5) if inner else in_use.min(), 0.03), xycoords=("data", "axes fraction"),
            xytext=(5 if inner else -5, 0), textcoords="offset points", ha="left" if inner else "right", va="bottom",
            fontsize=9, color=GREY,
        )  # fmt: skip
        finish(shares, "", "share (%)", f"The design in use at other thresholds, {self.n_rows:,} cases")
        finish(cost, "threshold: least confidence of a label", "mean cost\nper case", "")
        shares.legend(loc="lower left", fontsize=9, framealpha=0.9)
        self.ax_, self.figure_ = np.array([shares, cost]), shares.figure
        return self


class StageCalibrationDisplay:
    """Calibration plot of each stage: accuracy against confidence, for the cases that reach it. One panel per stage.

    Parameters
    ----------
    stages : list of dict
        Bins of each stage, from ``emsco.report.summary.stage_reliability``.
    threshold : float or sequence of float
        The threshold, or the thresholds, in use.
    n_classes : int

    Attributes
    ----------
    ax_ : ndarray of shape (n_stages,)
    figure_ : Figure
    """

    ax_: NDArray[Any]
    figure_: "Figure | SubFigure"

    def __init__(self, stages: list[dict[str, Any]], *, threshold: float | Sequence[float], n_classes: int) -> None:
        self.stages = stages
        self.threshold = threshold
        self.n_classes = n_classes

    @classmethod
    def from_estimator(cls, clf: Any, X: Any, y: Any, *, n_bins: int = 5, ax: Any = None) -> Self:
        """Apply the design in use to labelled rows, and plot.

        Parameters
        ----------
        clf : EMSCOClassifier or MultiStageClassifier
            Fitted.
        X, y : rows and their labels
            Preferably held-out rows.
        n_bins : int
            Bins per stage, of about equal size; fewer if a bin would hold less than 10 rows.
        ax : array of Axes, or None
        """
        if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 1:
            raise InvalidParameterError(f"n_bins must be a whole number of at least 1; got {n_bins!r}.")
        stages = stage_reliability(clf.deployed_, X, y, int(n_bins))
        return cls(stages, threshold=_in_use(clf.deployed_), n_classes=len(clf.classes_)).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax : array of Axes, or None
            One Axes per stage; a new figure if None.
        """
        n = len(self.stages)
        n_columns = min(n, 5)
        n_lines = -(-n // n_columns)
        size = (max(1.3 + 2.0 * n_columns, 4.0), 1.1 + 2.0 * n_lines)
        panels = axes(ax, n, nrows=n_lines, ncols=n_columns, sharex=True, sharey=True, figsize=size)
        for axis in panels[n:]:
            axis.remove()
        panels = panels[:n]
        chance = 100 / max(self.n_classes, 2)
        for j, (axis, bins) in enumerate(zip(panels, self.stages, strict=True)):
            axis.plot([chance, 100], [chance, 100], color=GREY, linewidth=0.8)
            for bar in np.atleast_1d(self.threshold):
                axis.axvline(100 * bar, color=GREY, linestyle="--", linewidth=0.8)
            share = 100 * np.divide(bins["right"], bins["count"])
            reach = np.abs(100 * np.reshape(bins["interval"], (-1, 2)).T - share)
            axis.errorbar(
                100 * np.array(bins["confidence"]), share, reach, fmt="-o", color=BLUE, markersize=5, linewidth=1.2,
                elinewidth=0.8, capsize=2,
            )  # fmt: skip
            finish(axis, "", "", f"stage {j + 1}: {counted(sum(bins['count']), 'case')}", size=9)
            axis.set_xlim(chance - 4, 103)
            axis.set_ylim(-4, 104)
            axis.tick_params(labelsize=8, labelbottom=j + n_columns >= n)
        self.ax_, self.figure_ = np.array(panels), panels[0].figure
        if ax is None:
            self.figure_.supxlabel(
                "confidence of the stage's top class (%)\nbins of about equal size; dashed: threshold", fontsize=9
            )
            self.figure_.supylabel("accuracy (%),\n95 % confidence intervals", fontsize=9)
        return self


def _in_use(model: Deployed) -> float | tuple[float, ...]:
    """Return the threshold in use, or all distinct ones, except those that no confidence or every one reaches."""
    rule, least = model.rule, 1 / max(len(model.classes), 2)
    bars = sorted({bar for row in rule.bars for bar in row if least < bar < NEVER})
    return bars[0] if len(bars) == 1 else tuple(bars)


def _legend_below(axis: "Axes", n_stages: int, n_columns: int = 2) -> None:
    """Put the legend of horizontal bars, one per stage, into an empty row below them, where it covers none."""
    axis.set_ylim(n_stages - 0.4 + _LEGEND_ROWS, -0.6)
    axis.legend(loc="lower center", ncols=n_columns, fontsize=8, frameon=False)


def _stage_label(j: int, names: Sequence[str]) -> str:
    """Return the features of a stage on at most two short lines."""
    lines = wrap(f"{j + 1}: {', '.join(names)}", 34, break_on_hyphens=False)
    if len(lines) <= 2:
        return "\n".join(lines)
    more = f" ... ({len(names)} in all)"
    return f"{lines[0]}\n{shorten(' '.join(lines[1:]), 34 - len(more), placeholder='').rstrip(',')}{more}"
