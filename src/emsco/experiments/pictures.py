"""Matplotlib for experiments, which have no screen."""

from typing import Any

from emsco.exceptions import MissingDependencyError


def pyplot() -> Any:
    """Return matplotlib.pyplot, drawing to files; or say how to get it."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "the figure needs matplotlib, which is not installed: pip install 'emsco[plot]'."
        ) from error
    return plt
