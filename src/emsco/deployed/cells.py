"""A value that a session is given, checked and as it is kept."""

from contextlib import suppress
from reprlib import repr as shorten
from typing import Any, TypeAlias

import numpy as np

from emsco.data.encoding import CategoryCode, NumberCode, to_category
from emsco.data.table import is_missing, to_number
from emsco.exceptions import InvalidInputError

Cell: TypeAlias = float | str | None  # a value as it is kept: a finite number, a category, or None if missing

_LONGEST_TEXT = 2**16  # characters; a longer one is a file by mistake, and would be carried in every state


def read_number(value: Any, code: NumberCode) -> float | None:
    """Return a finite number as it is kept, None if it is missing; or say why it cannot be."""
    number = value if type(value) is float else _to_number(value)
    if number is not None:
        if number - number == 0.0:  # neither NaN nor infinite
            return number
        if number != number:
            return None
    raise InvalidInputError(
        f"column {code.name!r} was given {_shown(value)}, but was numeric in training; give a finite number, or None "
        "if it is unknown."
    )


def _to_number(value: Any) -> float | None:
    too_long = isinstance(value, str) and len(value) > _LONGEST_TEXT
    if too_long or isinstance(value, np.timedelta64) or bool(getattr(value, "ndim", 0)):
        return None
    return to_number(value)


def _shown(value: Any) -> str:
    try:
        return shorten(value)
    except ValueError:  # Python refuses to write out a whole number of thousands of digits
        return "an endless number"


def read_text(value: Any, code: CategoryCode) -> str | None:
    """Return a category as it is kept, None if it is missing; or say why it cannot be."""
    plain = value.item() if isinstance(value, np.generic) else value
    if is_missing(plain):
        return None
    if isinstance(plain, int | float) or (
        isinstance(plain, str) and (len(plain) <= _LONGEST_TEXT or plain in code.positions)
    ):
        with suppress(ValueError):  # a whole number of thousands of digits
            return to_category(plain)
    raise InvalidInputError(
        f"column {code.name!r} was given {_shown(value)}, but was text in training; give text of up to "
        f"{_LONGEST_TEXT:,} characters or a number, or None if it is unknown."
    )
