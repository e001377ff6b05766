"""The words in which ``estimator_specs`` says what an attribute of an estimator must be.

A check takes what a file holds and what is known of the object around it, and returns what the attribute becomes.
Sizes have names: "f" columns, "k" classes, "l" numbers per row (1 for two classes, else one per class). Another name
takes the size that it first meets, and has it from then on. None is any size.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import shown
from emsco.storage.skops_file import Foreign

MOST_CLASSES = 256
MOST_COLUMNS = 2**24
_LONGEST_TEXT = 10_000
_MOST_NUMBERS = 2**20
_MOST_WORKERS = 256
_MOST_NESTED = 8

Size: TypeAlias = int | str | None


@dataclass
class Here:
    """What is known of the object whose attributes are being checked.

    Attributes
    ----------
    build : callable
        Makes a part: takes what a file holds, the names of the classes that it may be of, and the sizes that are known
        of it. Returns the part and all its sizes.
    template : callable
        Makes an estimator that is not trained.
    sizes : dict of str to int
    """

    build: Callable[[Any, Sequence[str], dict[str, int]], tuple[Any, dict[str, int]]]
    template: Callable[[Any], Any]
    sizes: dict[str, int] = field(default_factory=dict)

    def bind(self, name: str, size: int) -> None:
        """Take a size, or compare it with the one that is known."""
        require(self.sizes.setdefault(name, size) == size, f"{self.sizes[name]} {name}, but {size}")

    def share(self, sizes: Mapping[str, int], *names: str) -> None:
        """Take sizes of a part."""
        for name in names:
            if name in sizes:
                self.bind(name, sizes[name])


Check: TypeAlias = Callable[[Any, Here], Any]


def require(holds: bool, what: str) -> None:
    """Raise unless an estimator is as it must be."""
    if not holds:
        raise ValueError(f"it does not have {what}")


def left_out(value: Any, here: Here) -> None:
    """Know an attribute, and leave it where it is: prediction does not need it."""


def floats(*shape: Size, finite: bool = True, least: float = -np.inf) -> Check:
    """Return the check of an array of floating-point numbers."""

    def check(value: Any, here: Here) -> NDArray[Any]:
        array = _sized(value, "f", shape, here)
        require(not finite or bool(np.isfinite(array).all()), "finite numbers")
        require(bool((array >= least).all()), f"numbers of at least {least}")
        return array

    return check


def wholes(*shape: Size, least: int = 0, below: int | str = 2**62) -> Check:
    """Return the check of an array of whole numbers."""

    def check(value: Any, here: Here) -> NDArray[Any]:
        array = _sized(value, "iu", shape, here)
        most = here.sizes[below] if isinstance(below, str) else below
        require(bool(((array >= least) & (array < most)).all()), f"whole numbers from {least} to {most - 1}")
        return array

    return check


def labels(value: Any, here: Here) -> NDArray[Any]:
    """Check the classes: codes of classes in ascending order."""
    array = _sized(value, "iuf", ("k",), here)
    require(0 < array.size <= MOST_CLASSES, f"{MOST_CLASSES} classes at most")
    codes = array.tolist()
    require(all(code in range(MOST_CLASSES) for code in codes), "codes of classes")
    require(all(a < b for a, b in pairwise(codes)), "classes in ascending order")
    here.bind("l", 1 if len(codes) == 2 else len(codes))
    return array


def size(name: str, most: int = MOST_COLUMNS) -> Check:
    """Return the check of a number that is a size."""

    def check(value: Any, here: Here) -> int:
        require(_is_whole(value) and 1 <= value <= most, f"{name} from 1 to {most}")
        here.bind(name, int(value))
        return int(value)

    return check


def whole(least: int = 0, most: int = 2**31 - 1) -> Check:
    """Return the check of a whole number."""

    def check(value: Any, here: Here) -> int:
        require(_is_whole(value) and least <= value <= most, f"a whole number from {least} to {most}")
        return int(value)

    return check


def number(least: float = -1e300, most: float = 1e300) -> Check:
    """Return the check of a finite number."""

    def check(value: Any, here: Here) -> int | float:
        good = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        require(good and isfinite(value), f"a number from {least:g} to {most:g}")
        return value  # type: ignore[no-any-return]

    return check


def one_of(*values: Any) -> Check:
    """Return the check of a value that is one of a few."""

    def check(value: Any, here: Here) -> Any:
        known = isinstance(value, bool | int | str | None) and any(value is v or value == v for v in values)
        require(known, f"one of {values}, but {shown(value)}")
        return value

    return check


def listed(check_item: Check, *, length: str | None = None, least: int = 1) -> Check:
    """Return the check of a list whose items pass a check."""

    def check(value: Any, here: Here) -> list[Any]:
        require(isinstance(value, list | tuple) and len(value) >= least, f"a list of {least} or more")
        if length is not None:
            here.bind(length, len(value))
        return [check_item(item, here) for item in value]

    return check


def part(*kinds: str, same: Sequence[str] = ("f",), given: Mapping[str, int] | None = None) -> Check:
    """Return the check of a trained part of one of a few classes, which shares sizes with the object around it."""

    def check(value: Any, here: Here) -> Any:
        known = {name: here.sizes[name] for name in same if name in here.sizes}
        made, sizes = here.build(value, kinds, {**known, **(given or {})})
        here.share(sizes, *same)
        return made

    return check


def template(value: Any, here: Here) -> Any:
    """Check an estimator that is not trained; whatever it has learned is left out."""
    return None if value is None else here.template(value)


def templates(value: Any, here: Here) -> list[tuple[str, Any]]:
    """Check a list of names and estimators that are not trained."""
    require(isinstance(value, list | tuple), "a list of names and estimators")
    return [(_text(name), "drop" if made == "drop" else template(made, here)) for name, made in value]


def seed(value: Any, here: Here) -> int | None:
    """Check a random state; a generator is not kept."""
    return int(value) if _is_whole(value) and 0 <= value < 2**32 else None


def workers(value: Any, here: Here) -> int | None:
    """Check a number of workers."""
    good = value is None or (_is_whole(value) and 1 <= abs(value) <= _MOST_WORKERS)
    require(good, f"at most {_MOST_WORKERS} workers")
    return value  # type: ignore[no-any-return]


def plain(value: Any, here: Here) -> Any:
    """Check a setting that only training reads: numbers, text, and lists and dicts of these."""
    return _plain(value, _MOST_NESTED)


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        require(abs(value) < 2**63, "numbers of a usual size")
        return value
    if isinstance(value, str):
        return _text(value)
    require(depth > 0 and not isinstance(value, Foreign), f"plain settings, but {kind_of(value)}")
    if isinstance(value, np.ndarray):
        require(value.dtype.kind in "biufU" and value.size <= _MOST_NUMBERS, "plain settings")
        return value
    if isinstance(value, dict):
        return {_plain(key, 0): _plain(item, depth - 1) for key, item in value.items()}
    return type(value)(_plain(item, depth - 1) for item in value)


def kind_of(value: Any) -> str:
    """Return what something in a file is, for people."""
    return value.kind if isinstance(value, Foreign) else type(value).__name__


def _text(value: Any) -> str:
    require(isinstance(value, str) and len(value) <= _LONGEST_TEXT, f"text of at most {_LONGEST_TEXT} characters")
    return str(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _sized(value: Any, kinds: str, shape: Sequence[Size], here: Here) -> NDArray[Any]:
    good = isinstance(value, np.ndarray) and value.dtype.kind in kinds and value.dtype.isnative
    require(good and value.ndim == len(shape), f"an array of {len(shape)} dimensions, but {kind_of(value)}")
    require(value.dtype.itemsize in (4, 8), "numbers of 32 or 64 bits")
    for wanted, found in zip(shape, value.shape, strict=True):
        if isinstance(wanted, str):
            here.bind(wanted, found)
        elif wanted is not None:
            require(wanted == found, f"{wanted} in a dimension of an array, but {found}")
    return np.asarray(value)
