"""FrontDisplay: a front as a picture; needs matplotlib."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.drawing import GREY, VERMILION, axes, counted, finish
from emsco.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from emsco.scoring.front import Front


_MANY = 100  # points; more are drawn smaller, so that they do not hide each other
_NEAR = 1.5  # times the highest cost drawn; a line farther away would squeeze the points


class FrontDisplay:
    """Plot of a front: accuracy against mean cost, coloured by coverage.

    Parameters
    ----------
    coverage, accuracy, mean_cost : ndarray of shape (n_points,)
        Figures on the validation rows. A point that gives no label has no accuracy and is not plotted.
    total : float or None
        Price of everything; a line marks it if it is not far beyond the points.
    shown : ndarray of int or None
        Points to draw. None: all.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    """

    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(
        self,
        coverage: FloatArray,
        accuracy: FloatArray,
        mean_cost: FloatArray,
        *,
        total: float | None = None,
        shown: NDArray[np.intp] | None = None,
    ) -> None:
        self.coverage = coverage
        self.accuracy = accuracy
        self.mean_cost = mean_cost
        self.total = total
        self.shown = shown

    @classmethod
    def from_front(
        cls,
        front: "Front",
        *,
        ax: "Axes | None" = None,
        highlight: int | None = None,
        shown: NDArray[np.intp] | None = None,
    ) -> Self:
        """Plot a front, or some points of it."""
        display = cls(front.coverage, front.accuracy, front.mean_cost, shown=shown)
        return display.plot(ax, highlight=highlight)

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: "Axes | None" = None) -> Self:
        """Plot the front of a fitted EMSCOClassifier and highlight the point in use."""
        front = clf.front_
        display = cls(front.coverage, front.accuracy, front.mean_cost, total=front.total_price)
        return display.plot(ax, highlight=clf.point_)

    def plot(self, ax: "Axes | None" = None, *, highlight: int | None = None) -> Self:
        """Plot.

        Parameters
        ----------
        ax : Axes or None
            Axes to plot on; a new figure if None.
        highlight : int or None
            A point to mark in the plot and in the legend.
        """
        n_points = len(self.mean_cost)
        if highlight is not None and not 0 <= highlight < n_points:
            raise InvalidParameterError(f"highlight must be a point, 0 to {n_points - 1}; got {highlight!r}.")
        (axis,) = axes(ax, 1)
        wanted = np.ones(n_points, dtype=np.bool_)
        if self.shown is not None:
            wanted[:] = False
            wanted[self.shown] = True
        drawn = wanted & ~np.isnan(self.accuracy)
        dots = axis.scatter(
            self.mean_cost[drawn],
            100 * self.accuracy[drawn],
            c=100 * self.coverage[drawn],
            cmap="cividis",
            s=42 if drawn.sum() <= _MANY else 16,
            edgecolor="black",
            linewidth=0.5 if drawn.sum() <= _MANY else 0.25,
            alpha=1.0 if drawn.sum() <= _MANY else 0.7,
            zorder=2,
        )
        axis.figure.colorbar(dots, ax=axis, label="coverage: cases that get a label (%)")
        if self.total is not None and self.total <= _NEAR * self.mean_cost[drawn].max(initial=0):
            axis.axvline(self.total, color="black", linestyle=":", linewidth=1)
            axis.annotate(
                f"everything costs {self.total:,g}", (self.total, 0.98), xycoords=("data", "axes fraction"),
                xytext=(-4, 0), textcoords="offset points", rotation=90, ha="right", va="top", fontsize=9,
            )  # fmt: skip
        if highlight is not None:
            self._mark(axis, highlight)
        n_wanted = int(wanted.sum())
        some = f"{n_wanted} of " if n_wanted < n_points else ""
        title = f"{some}{n_points} Pareto-optimal designs"
        finish(axis, "mean cost per case", "accuracy: labels that are correct (%)", title)
        if n_silent := int((wanted & ~drawn).sum()):
            axis.text(
                0.99, 0.02, f"not shown: {counted(n_silent, 'point')} without labels",
                transform=axis.transAxes, ha="right", fontsize=8, color=GREY,
            )  # fmt: skip
        self.ax_, self.figure_ = axis, axis.figure
        return self

    def _mark(self, axis: "Axes", point: int) -> None:
        """Mark a point, and show its figures in the legend."""
        x, y = self.mean_cost[point], 100 * self.accuracy[point]
        accuracy = "no labels" if np.isnan(y) else f"accuracy {y:.1f} %"
        name = f"point {point}: cost {x:,.4g},\n{accuracy}, coverage {100 * self.coverage[point]:.1f} %"
        axis.scatter([x], [y], s=150, facecolor="none", edgecolor=VERMILION, linewidth=2, zorder=3, label=name)
        axis.legend(fontsize=9, framealpha=0.9)
