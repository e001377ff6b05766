"""What cases look like, column by column: how often a value is unavailable or unseen, and how far from training."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.data.encoding import CategoryCode, NumberCode, to_category
from emsco.data.table import Table, is_missing, to_numbers
from emsco.deployed.decide import Decisions
from emsco.exceptions import EmscoError
from emsco.service.shelf import Served

VALUES, UNAVAILABLE, UNSEEN, SHIFT = "values", "unavailable", "unseen", "shift"
_MOST_ROWS = 500  # of a table that are looked at; others are like them


def case_profile(served: Served, given: Mapping[str, Any], stage: int) -> Iterator[tuple[str, str, float]]:
    """Yield counts of a case: what is counted, of which column, how much.

    Parameters
    ----------
    served : Served
    given : mapping
        Values as the session read them.
    stage : int
        Where the case left.
    """
    for j, codes in enumerate(served.codes_by_stage[: stage + 1]):
        for code in codes:
            value = given[code.name]
            yield VALUES, code.name, 1.0
            if value is None:
                yield UNAVAILABLE, code.name, 1.0
            elif isinstance(code, CategoryCode):
                if value not in code.positions:
                    yield UNSEEN, code.name, 1.0
            elif not j:  # everybody gives these, as in training; further ones are asked of doubtful cases only
                yield SHIFT, code.name, _bounded((value - code.mean) * code.inverse_scale)


def table_profile(served: Served, table: Any, decisions: Decisions) -> Counter[tuple[str, str]]:
    """Return the counts of some rows of a table."""
    found: Counter[tuple[str, str]] = Counter()
    read = Table(table)
    rows = np.arange(0, read.n_rows, max(-(-read.n_rows // _MOST_ROWS), 1))
    places = {name: i for i, name in enumerate(read.names)}
    for j, codes in enumerate(served.codes_by_stage):
        reached = rows[decisions.stage[rows] >= j]
        for code in codes if reached.size else ():
            if code.name not in places:
                continue
            values = read.column(places[code.name])[reached]
            found[VALUES, code.name] += reached.size
            if isinstance(code, NumberCode):
                _count_numbers(found, code, values, first=not j)
            else:
                _count_categories(found, code, values)
    return found


def _count_numbers(found: Counter[tuple[str, str]], code: NumberCode, values: NDArray[Any], *, first: bool) -> None:
    try:
        numbers = to_numbers(values, code.name, slice(0, values.size))
    except EmscoError:  # a cell that no row has paid for may hold anything
        return
    known = ~np.isnan(numbers)
    found[UNAVAILABLE, code.name] += int(values.size - known.sum())
    if first:
        shifts = np.clip((numbers[known] - code.mean) * code.inverse_scale, -_FARTHEST, _FARTHEST)
        found[SHIFT, code.name] += float(shifts.sum())  # type: ignore[assignment]


def _count_categories(found: Counter[tuple[str, str]], code: CategoryCode, values: NDArray[Any]) -> None:
    cells = values.tolist()
    missing = sum(map(is_missing, cells))
    found[UNAVAILABLE, code.name] += missing
    found[UNSEEN, code.name] += sum(to_category(cell) not in code.positions for cell in cells if not is_missing(cell))


_FARTHEST = 10.0  # standard deviations: one typing error must not hide all other values


def _bounded(shift: float) -> float:
    return min(max(shift, -_FARTHEST), _FARTHEST)
