"""FrontDisplay: a front as a picture; needs matplotlib."""

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from emsco.arrays import FloatArray
from emsco.drawing import GREY, VERMILION, axes, counted, finish
from emsco.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from emsco.scoring.front import Front


class FrontDisplay:
    """The points of a front: accuracy against mean cost, coloured by coverage.

    Parameters
    ----------
    coverage, accuracy, mean_cost : ndarray of shape (n_points,)
        On the validation rows. A point whose accuracy is undefined, because it gives no label, is not drawn.
    total : float or None
        What buying everything costs; a line marks it.

    Attributes
    ----------
    ax_ : Axes
    figure_ : Figure
    """

    ax_: "Axes"
    figure_: "Figure | SubFigure"

    def __init__(
        self, coverage: FloatArray, accuracy: FloatArray, mean_cost: FloatArray, *, total: float | None = None
    ) -> None:
        self.coverage = coverage
        self.accuracy = accuracy
        self.mean_cost = mean_cost
        self.total = total

    @classmethod
    def from_front(cls, front: "Front", *, ax: "Axes | None" = None, highlight: int | None = None) -> Self:
        """Draw a front."""
        return cls(front.coverage, front.accuracy, front.mean_cost).plot(ax, highlight=highlight)

    @classmethod
    def from_estimator(cls, clf: Any, *, ax: "Axes | None" = None) -> Self:
        """Draw the front of a fitted EMSCOClassifier, the point in use highlighted."""
        front = clf.front_
        display = cls(front.coverage, front.accuracy, front.mean_cost, total=front.total_price)
        return display.plot(ax, highlight=clf.point_)

    def plot(self, ax: "Axes | None" = None, *, highlight: int | None = None) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or None
            Where. None: a new figure.
        highlight : int or None
            A point to mark and name.
        """
        n_points = len(self.mean_cost)
        if highlight is not None and not 0 <= highlight < n_points:
            raise InvalidParameterError(f"highlight must be a point, 0 to {n_points - 1}; got {highlight!r}.")
        (axis,) = axes(ax, 1)
        drawn = ~np.isnan(self.accuracy)
        dots = axis.scatter(
            self.mean_cost[drawn],
            100 * self.accuracy[drawn],
            c=100 * self.coverage[drawn],
            cmap="cividis",
            s=42,
            edgecolor="black",
            linewidth=0.5,
            zorder=2,
        )
        axis.figure.colorbar(dots, ax=axis, label="coverage: inputs that get a label (%)")
        if self.total is not None:
            axis.axvline(self.total, color="black", linestyle=":", linewidth=1)
            axis.annotate(
                f"everything costs {self.total:,g}", (self.total, 0.98), xycoords=("data", "axes fraction"),
                xytext=(-4, 0), textcoords="offset points", rotation=90, ha="right", va="top", fontsize=9,
            )  # fmt: skip
        if highlight is not None:
            self._mark(axis, highlight)
        finish(axis, "mean cost per input", "accuracy: labels that are right (%)", f"{n_points} designs, none beaten")
        if not drawn.all():
            axis.text(
                0.99, 0.02, f"not drawn: {counted(int((~drawn).sum()), 'point')} without any label",
                transform=axis.transAxes, ha="right", fontsize=8, color=GREY,
            )  # fmt: skip
        self.ax_, self.figure_ = axis, axis.figure
        return self

    def _mark(self, axis: "Axes", point: int) -> None:
        """Ring a point, and say in the legend what it achieves."""
        x, y = self.mean_cost[point], 100 * self.accuracy[point]
        right = "no labels" if np.isnan(y) else f"{y:.0f} % right"
        name = f"point {point}: cost {x:,.4g},\n{right}, {100 * self.coverage[point]:.0f} % answered"
        axis.scatter([x], [y], s=150, facecolor="none", edgecolor=VERMILION, linewidth=2, zorder=3, label=name)
        axis.legend(fontsize=9, framealpha=0.9)
