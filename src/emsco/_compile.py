"""How kernels are compiled: once per machine, without the interpreter lock, divisions as NumPy's."""

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.extending import register_jitable

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(*, fastmath: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator of a kernel; ``fastmath`` where the order of a sum may change."""

    def decorate(function: Callable[..., Any]) -> Any:
        try:
            return njit(cache=True, fastmath=fastmath, **_OPTIONS)(function)
        except RuntimeError:  # no folder to keep the compiled code in: compile in every process
            return njit(fastmath=fastmath, **_OPTIONS)(function)

    return decorate


def part(*, fastmath: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Return the decorator of a function that only kernels call.

    It has no wrapper for Python, no machine code of its own and no place in the cache: it becomes machine code within
    each kernel. For Python it stays the slow function that it is.
    """
    return register_jitable(fastmath=fastmath, **_OPTIONS)


def inlined(function: Callable[..., Any]) -> Any:
    """Make a function a piece of each kernel that calls it, as if written there: it is not compiled by itself."""
    return njit(inline="always")(function)
