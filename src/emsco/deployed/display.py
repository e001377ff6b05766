"""EvaluationDisplay: an evaluation as a picture; needs matplotlib."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

import numpy as np

from emsco.drawing import BLUE, GREY, ORANGE, SKY, VERMILION, axes, finish

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from emsco.deployed.evaluation import Evaluation, Result


class EvaluationDisplay:
    """Plot of an evaluation: accuracy against mean cost, beside buying everything.

    Parameters
    ----------
    points : sequence of Result
        Every point; those without labels have no accuracy and are not drawn.
    everything, always : Result
        All features bought at once, with the threshold and with an answer for every row: horizontal lines.
    shown : sequence of int
        Points with 95 % intervals; the others are dots.
    point : int
        The point in use, which is ringed.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    """

    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        points: "Sequence[Result]",
        everything: "Result",
        always: "Result",
        *,
        shown: Sequence[int] = (),
        point: int = 0,
    ) -> None:
        self.points = points
        self.everything = everything
        self.always = always
        self.shown = shown
        self.point = point

    @classmethod
    def from_evaluation(cls, evaluation: "Evaluation", *, ax: "Axes | None" = None) -> Self:
        """Plot an evaluation; the intervals are those of the front's shortlist."""
        shown, point = evaluation.shown_points(), evaluation.point
        return cls(evaluation.points, evaluation.everything, evaluation.always, shown=shown, point=point).plot(ax)

    def plot(self, ax: "Axes | None" = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax : Axes or None
            Axes to plot on; a new figure if None.
        """
        (axis,) = axes(ax, 1)
        cost = np.array([result.mean_cost for result in self.points])
        accuracy = np.array([100 * result.accuracy for result in self.points])
        if len(self.points) > len(self.shown):
            axis.scatter(cost, accuracy, s=12, color=SKY, linewidth=0, alpha=0.6, zorder=1, label="every point")
        self._draw_intervals(axis)
        axis.scatter(
            cost[[self.point]], accuracy[[self.point]], s=150, facecolor="none", edgecolor=VERMILION, linewidth=2,
            zorder=4, label=f"point {self.point}, in use",
        )  # fmt: skip
        lines = {"buy everything": (self.everything, "-", ORANGE)}
        if self.always != self.everything:
            lines["buy everything, label all"] = (self.always, ":", GREY)
        for name, (result, style, colour) in lines.items():
            if sum(result.answered):
                label = f"{name}: {100 * result.accuracy:.1f} % at {result.mean_cost:,.4g}"
                axis.axhline(100 * result.accuracy, color=colour, linestyle=style, linewidth=1.5, zorder=2, label=label)
        n_rows = self.everything.n_rows
        finish(
            axis, "mean cost per case", "accuracy: labels that are correct (%)",
            f"accuracy and cost on {n_rows:,} rows, with 95 % intervals",
        )  # fmt: skip
        axis.legend(fontsize=8, framealpha=0.9, loc="lower right")
        self.ax_, self.figure_ = axis, axis.figure
        return self

    def _draw_intervals(self, axis: "Axes") -> None:
        drawn = [self.points[i] for i in self.shown if sum(self.points[i].answered)]
        if not drawn:
            return
        x, y = np.array([r.mean_cost for r in drawn]), 100 * np.array([r.accuracy for r in drawn])
        across = np.abs(np.array([r.interval("mean_cost") for r in drawn]).T - x)
        upright = np.abs(100 * np.array([r.interval("accuracy") for r in drawn]).T - y)
        axis.errorbar(
            x, y, xerr=across, yerr=upright, fmt="o", markersize=5, color=BLUE, elinewidth=1, capsize=2, zorder=3,
            label="shortlist",
        )  # fmt: skip
