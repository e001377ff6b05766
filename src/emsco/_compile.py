"""How kernels are compiled: once per machine, without the interpreter lock, divisions as NumPy's."""

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(*, fastmath: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator of a kernel; ``fastmath`` where the order of a sum may change."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, **options)(function)
        except RuntimeError:  # no folder to keep the compiled code in: compile in every process
            return njit(**options)(function)

    return decorate
