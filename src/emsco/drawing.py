"""What all pictures share: axes, titles, colours (Okabe and Ito); needs matplotlib."""

from typing import TYPE_CHECKING, Any

import numpy as np

from emsco.exceptions import InvalidParameterError, MissingDependencyError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE = "#0072B2"
GREEN = "#009E73"
VERMILION = "#D55E00"
ORANGE = "#E69F00"
SKY = "#56B4E9"
GREY = "#5F6368"
LIGHT = "#E4E7EB"


def axes(ax: Any, n: int, **layout: Any) -> "list[Axes]":
    """Return the axes given, or those of a new figure."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError("plots need matplotlib: pip install 'emsco[plot]'.") from error
    if ax is None:
        _, made = plt.subplots(layout="constrained", **{"figsize": (7, 4.2), "squeeze": False, **layout})
        return list(made.flat)
    given: list[Axes] = np.ravel(ax).tolist()
    if len(given) != n:
        raise InvalidParameterError(f"this plot needs {n} axes; got {len(given)}. With ax=None it makes a new figure.")
    return given


def finish(axis: "Axes", x: str, y: str, title: str, *, grid: Any = "both", size: int = 11) -> None:
    """Give a picture its labels, title and grid."""
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.set_title(title, fontsize=size)
    axis.grid(axis=grid, color="#E3E3E3", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def counted(n: int, noun: str) -> str:
    """Return a number of things in words."""
    return f"{n:,} {noun if n == 1 else noun + 's'}"
