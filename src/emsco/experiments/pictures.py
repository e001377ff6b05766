"""Matplotlib for experiments, which run without a screen."""

from typing import Any

from emsco.exceptions import MissingDependencyError


def pyplot() -> Any:
    """Return matplotlib.pyplot for files, or raise with instructions to install it."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "the figure needs matplotlib, which is not installed: pip install 'emsco[plot]'."
        ) from error
    return plt
