"""What a snapshot of a search holds: its arrays by name, each with a type and a shape; checked before it is used."""

from collections.abc import Mapping
import json
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import CheckpointError
from emsco.search.base import Arrays

# The kinds of numbers, then a size per dimension: a number, a name that is the same wherever it stands, or any.
Layout: TypeAlias = Mapping[str, tuple[str, *tuple[int | str | None, ...]]]

_EVERY: Layout = {"phase": ("u", None), "history": ("i", None, 3), "seconds": ("f",)}
_TALLY: Layout = {"reached": ("i", "p", None), "figures": ("i", 3, "p"), "n_samples": ("i",), "money": ("f", 2)}
_BITS: Layout = {"confident": ("u", "s", "w"), "right": ("u", "s", "w"), "ticks": ("i", "s")}
_LAYOUTS: dict[str, Layout] = {
    "Evolution": {
        **_TALLY,
        "population": ("i", "p", "u"),
        "counts": ("i", 3),
        "rng": ("u", None),
        "tie_vectors": ("i", None),
        "tie_sizes": ("if", "t"),
        "tie_designs": ("i", None),
    },
    "BestFirst": {
        **_TALLY,
        "designs": ("iu", "p", "u"),
        "level": ("i", "p"),
        "leads": ("b", "p"),
        "expanded": ("b", "p", None),
        "counts": ("i", 4),
        "seen": ("u", None),
        "sizes": ("f", None),
        "rng": ("u", None),
    },
    "Exact": _BITS,
}
_STATES: Layout = {
    "progress": ("i", 5),
    "figures": ("i", "n", None),
    "waiting": ("u", "n", "w"),
    "set_of": ("iu", "n"),
    "spans": ("i", None, 2),
    "incumbents": ("i", "v", 3),
    "chain_sizes": ("if", "v"),
    "chains": ("if", None),
}  # of a proof that is past training


def check_snapshot(arrays: Arrays) -> None:
    """Raise unless a snapshot holds what the search that it names needs."""
    _check(arrays, _EVERY)
    try:
        phase = arrays["phase"].tobytes().decode()
        layout = dict(_LAYOUTS[phase])
    except (UnicodeDecodeError, KeyError) as error:
        raise _wrong("it is of a search that is not known") from error
    if phase == "Exact" and "figures" in arrays:
        layout |= _STATES
    if "values" in arrays:
        layout["values"] = ("f", "p", None)
    _check(arrays, layout)
    if "rng" in layout:
        _check_generator(arrays["rng"])
    for name in ("population", "designs"):
        if name in arrays and arrays[name].size and not -1 <= arrays[name].min() <= arrays[name].max() < 2**15:
            raise _wrong(f"{name} holds stages that there cannot be")
    for name in ("counts", "history", "progress", "n_samples", "tie_sizes", "chain_sizes"):
        if name in arrays and arrays[name].size and arrays[name].min() < 0:
            raise _wrong(f"{name} holds counts below zero")
    if not np.isfinite(arrays["seconds"]) or arrays["seconds"] < 0:
        raise _wrong("its seconds are no time")


def _check(arrays: Arrays, layout: Layout) -> None:
    sizes: dict[str, int] = {}
    for name, (kinds, *shape) in layout.items():
        if name not in arrays:
            raise _wrong(f"{name} is missing")
        found: NDArray[Any] = arrays[name]
        fits = found.dtype.kind in kinds and found.ndim == len(shape)
        for wanted, size in zip(shape, found.shape, strict=False):
            expected = sizes.setdefault(wanted, size) if isinstance(wanted, str) else wanted
            fits &= expected is None or expected == size
        if not fits:
            raise _wrong(f"{name} is {found.dtype} of shape {found.shape}")


def _check_generator(packed: NDArray[Any]) -> None:
    try:
        state = json.loads(packed.tobytes())
        np.random.PCG64(0).state = state
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise _wrong("the state of its generator cannot be read") from error


def _wrong(what: str) -> CheckpointError:
    return CheckpointError(f"the snapshot in the checkpoint cannot be used: {what}; remove the file to begin anew.")
