"""Columns as users have them -> numeric columns a linear model can use, fitted on training rows only.

A number becomes (x - mean) / standard deviation, a missing one 0 (the mean); where training rows miss values, a
second column says *missing*. Text and categories become one 0/1 column per category seen in training; rare ones
beyond the 31 most frequent share a column, and unseen ones are zero everywhere.

"raw" leaves the scale of a number as it is and only subtracts the mean, which an unpenalised intercept undoes: the
penalty of a linear model then acts as on the columns of the file.

A linear model sees more of a column if it gets curves of it: its rank among the training values ("rank"), in which no
outlier is far away, and bends of that rank ("spline"); where many cells are 0, a column says so.

Text that is a date is refused, and so is a column of more than 10,000 categories, which is an id or free text.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
import re
from typing import Any, NamedTuple
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.data.table import Rows, Table, is_missing, no_dates, to_number, to_numbers
from emsco.exceptions import InvalidInputError, SuspiciousColumnWarning

ENCODINGS = ("linear", "rank", "spline")  # those that "auto" compares
RAW = "raw"
_MAX_CATEGORIES = 32
_MAX_DISTINCT = 10_000  # different texts in a column of categories
_N_KNOTS = 33  # of the curve from values to ranks
N_STEPS = 512  # of the grid that finds the piece of a curve: most hold no knot or one
_BENDS = (1 / 3, 2 / 3)  # ranks where a spline may change its slope
_MANY_ZEROS = 0.05  # share of cells from which on 0 is a value of its own,
_FEWEST_ZEROS = 5  # and their number
_DATE = re.compile(r"\s*\d{4}-\d{2}-\d{2}")
_SUSPICIOUS = 0.8  # share of numbers in a text column that makes us ask


@dataclass(frozen=True)
class NumberCode:
    """How one numeric column is encoded."""

    name: str
    mean: float
    inverse_scale: float
    flags_missing: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name, f"{self.name} missing") if self.flags_missing else (self.name,)

    @property
    def missing_at(self) -> int | None:
        """Which of the encoded columns says *missing*, if one does."""
        return 1 if self.flags_missing else None

    def encode(self, values: NDArray[Any], rows: Rows, out: NDArray[np.float64]) -> None:
        """Write the encoded columns of ``values``, the given rows of a table, into ``out`` (n_encoded, n_rows)."""
        numbers = to_numbers(values, self.name, rows)
        encoded = out[0]
        with np.errstate(over="ignore"):
            np.subtract(numbers, self.mean, out=encoded)
            encoded *= self.inverse_scale
        np.clip(encoded, -FARTHEST, FARTHEST, out=encoded)
        missing = np.isnan(numbers)
        encoded[missing] = 0.0
        if self.missing_at is not None:
            out[self.missing_at] = missing

    def encode_one(self, number: float | None, out: list[float], start: int) -> None:
        """Write one finite number, None for a missing one, into zeros from ``out[start]`` on, as ``encode`` does."""
        if number is not None:
            out[start] = min(max((number - self.mean) * self.inverse_scale, -FARTHEST), FARTHEST)
        elif self.missing_at is not None:
            out[start + self.missing_at] = 1.0


@dataclass(frozen=True)
class CurveCode(NumberCode):
    """How one numeric column is encoded as curves: piecewise linear functions of it, constant beyond the knots.

    Attributes
    ----------
    knots : tuple of float
        Increasing; two or more.
    curves : tuple of tuple of float
        Of each curve its value at every knot.
    at_zero : tuple of float or None
        Of each curve its value where the cell is 0, if that is not what the knots say.
    """

    knots: tuple[float, ...]
    curves: tuple[tuple[float, ...], ...]
    at_zero: tuple[float, ...] | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        shown = tuple(f"{self.name} curve {i + 1}" for i in range(len(self.curves)))
        return (*shown, f"{self.name} missing") if self.flags_missing else shown

    @property
    def missing_at(self) -> int | None:
        """Which of the encoded columns says *missing*, if one does."""
        return len(self.curves) if self.flags_missing else None

    def encode(self, values: NDArray[Any], rows: Rows, out: NDArray[np.float64]) -> None:
        """Write the encoded columns of ``values``, the given rows of a table, into ``out`` (n_encoded, n_rows)."""
        numbers = to_numbers(values, self.name, rows)
        missing = np.isnan(numbers)
        knots, curves = self._arrays
        within = np.clip(numbers, knots[0], knots[-1])
        left = np.minimum(np.searchsorted(knots[:-1], within, side="right"), knots.size - 1) - 1
        share = (within - knots[left]) / (knots[left + 1] - knots[left])
        for i, curve in enumerate(curves):
            encoded = curve[left] + share * (curve[left + 1] - curve[left])
            if self.at_zero is not None:
                encoded[numbers == 0] = self.at_zero[i]
            encoded[missing] = 0.0
            out[i] = encoded
        if self.missing_at is not None:
            out[self.missing_at] = missing

    def encode_one(self, number: float | None, out: list[float], start: int) -> None:
        """Write one finite number, None for a missing one, into zeros from ``out[start]`` on, as ``encode`` does."""
        if number is None:
            if self.missing_at is not None:
                out[start + self.missing_at] = 1.0
            return
        if number == 0 and self.at_zero is not None:
            out[start : start + len(self.curves)] = self.at_zero
            return
        knots = self.knots
        within = min(max(number, knots[0]), knots[-1])
        left = bisect_right(knots, within, hi=len(knots) - 1) - 1
        share = (within - knots[left]) / (knots[left + 1] - knots[left])
        for i, curve in enumerate(self.curves):
            out[start + i] = curve[left] + share * (curve[left + 1] - curve[left])

    @cached_property
    def _arrays(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return np.array(self.knots), np.array(self.curves)


@dataclass(frozen=True)
class CategoryCode:
    """How one column of text or categories is encoded."""

    name: str
    categories: tuple[str | None, ...]  # None stands for a missing value
    pools_rare: bool
    rare: frozenset[str | None]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        shown = [f"{self.name}={'missing' if c is None else c}" for c in self.categories]
        return (*shown, f"{self.name}=rare") if self.pools_rare else tuple(shown)

    def encode(self, values: NDArray[Any], rows: Rows, out: NDArray[np.float64]) -> None:
        """Write the encoded columns of ``values`` into ``out`` (n_encoded, n_rows)."""
        codes = np.array([self.positions.get(to_category(value), -1) for value in values.tolist()])
        for i in range(len(self.names)):
            out[i] = codes == i

    def encode_one(self, category: str | None, out: list[float], start: int) -> None:
        """Write one category, None for a missing one, into zeros from ``out[start]`` on."""
        position = self.positions.get(category)
        if position is not None:
            out[start + position] = 1.0

    @cached_property
    def positions(self) -> dict[str | None, int]:
        """Which of the encoded columns is 1 for a category; for one unseen in training, none."""
        shared = dict.fromkeys(self.rare, len(self.categories))
        return {**{category: i for i, category in enumerate(self.categories)}, **shared}


ColumnCode = NumberCode | CategoryCode


class NumberTable(NamedTuple):
    """How columns of numbers are encoded, as arrays: what the codes say, for compiled readers.

    The pieces of a curve are counted from 0, one before each knot but the first. Two more follow, on which a curve has
    one value: where the cell is missing, and where it is 0 and that is a value of its own. The piece of a number is
    looked up: a grid of equal steps from the first knot to the last says how many knots are before it for certain, and
    a binary search among the few knots in the same step ends it.

    Attributes
    ----------
    n_encoded : int
    mean, inverse_scale : ndarray of shape (n_columns,)
    place : ndarray of shape (n_columns,)
        First encoded column of each.
    missing_at : ndarray of shape (n_columns,)
        The encoded column that says *missing*, or -1.
    curve_start : ndarray of shape (n_columns + 1,)
        Column c has the curves ``curve_start[c]:curve_start[c + 1]``; one without curves is a line.
    ends : ndarray of shape (n_columns, 2)
        First and last knot.
    zero : ndarray of shape (n_columns,)
        0 if that is a value of its own, else NaN.
    grid_scale : ndarray of shape (n_columns,)
        Steps of the grid per unit.
    grid : ndarray of shape (n_columns, N_STEPS + 2)
        Pieces by step; after the steps, the pieces of missing cells and of zeros.
    reach : ndarray of shape (n_columns,)
        First stride of the binary search: a power of two, or 0.
    knots : ndarray of shape (n_columns, 2 * most_knots)
        Where each piece begins; infinity after the last one.
    left, width : ndarray of shape (n_columns, most_knots + 1)
        Where each piece begins, and how wide it is.
    values, rises : ndarray of shape (n_curves, most_knots + 1)
        Of each curve its value where a piece begins, and what it rises by on the piece.
    """

    n_encoded: int
    mean: NDArray[np.float64]
    inverse_scale: NDArray[np.float64]
    place: NDArray[np.int64]
    missing_at: NDArray[np.int64]
    curve_start: NDArray[np.int64]
    ends: NDArray[np.float64]
    zero: NDArray[np.float64]
    grid_scale: NDArray[np.float64]
    grid: NDArray[np.uint32]
    reach: NDArray[np.uint64]
    knots: NDArray[np.float64]
    left: NDArray[np.float64]
    width: NDArray[np.float64]
    values: NDArray[np.float64]
    rises: NDArray[np.float64]


class Encoder:
    """The encoded columns of a table.

    Parameters
    ----------
    table : Table
    rows : slice or array of int
        Rows to learn from.
    *others : Table
        Tables that will be encoded too: a column is one of numbers only if it is in all of them.
    encoding : "linear", "rank", "spline" or "raw"
        How numbers are encoded.

    Attributes
    ----------
    codes : list of ColumnCode
        One per column of the table.
    starts : ndarray of shape (n_columns + 1,)
        Column c of the table fills the rows ``starts[c]:starts[c + 1]`` of an encoded matrix.
    """

    def __init__(self, table: Table, rows: Rows, *others: Table, encoding: str = "linear") -> None:
        self._set([self._code(c, table, rows, others, encoding) for c in range(len(table.names))])

    @classmethod
    def of(cls, codes: Sequence[ColumnCode]) -> "Encoder":
        """Return the encoder of columns that were learned before."""
        encoder = cls.__new__(cls)
        encoder._set(list(codes))
        return encoder

    def _set(self, codes: list[ColumnCode]) -> None:
        self.codes = codes
        self.starts = np.cumsum([0, *(len(code.names) for code in codes)])

    @staticmethod
    def _code(c: int, table: Table, rows: Rows, others: tuple[Table, ...], encoding: str) -> ColumnCode:
        """Learn a column: whether it is numbers from all cells there are, everything else from the given rows."""
        name, values = table.names[c], table.column(c)
        if not table.is_categorical(c) and all(holds_numbers(t.column(c)) for t in (table, *others)):
            return _learn_number(values[rows], name, rows, encoding)
        if values.dtype.kind in "fiub":  # the text is in another table
            values = values.astype(object)
        if any(isinstance(cell, date | timedelta) for cell in values.tolist()):
            raise InvalidInputError(no_dates(name))
        if not table.is_categorical(c):
            if _are_dates(values.tolist()):
                raise InvalidInputError(no_dates(name))
            _warn_if_suspicious(values.tolist(), name)
        return _learn_categories(values[rows].tolist(), name)

    @property
    def n_encoded(self) -> int:
        """Number of encoded columns."""
        return int(self.starts[-1])

    @property
    def encoded_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return tuple(name for code in self.codes for name in code.names)

    def numbers(self) -> NumberTable | None:
        """Return the codes as arrays; None unless all columns are numbers."""
        codes = [code for code in self.codes if isinstance(code, NumberCode)]
        if len(codes) < len(self.codes):
            return None
        bent = {c: code for c, code in enumerate(codes) if isinstance(code, CurveCode)}
        n_curves = np.array([len(bent[c].curves) if c in bent else 0 for c in range(len(codes))])
        most = max((len(code.knots) for code in bent.values()), default=2)
        n, n_pieces = len(codes), most + 1
        table = NumberTable(
            self.n_encoded,
            mean=np.array([code.mean for code in codes]),
            inverse_scale=np.array([code.inverse_scale for code in codes]),
            place=self.starts[:-1].astype(np.int64),
            missing_at=np.where([code.flags_missing for code in codes], self.starts[1:] - 1, -1),
            curve_start=np.concatenate([[0], np.cumsum(n_curves)]),
            ends=np.zeros((n, 2)),
            zero=np.full(n, np.nan),
            grid_scale=np.zeros(n),
            grid=np.zeros((n, N_STEPS + 2), dtype=np.uint32),
            reach=np.zeros(n, dtype=np.uint64),
            knots=np.full((n, 2 * most), np.inf),
            left=np.zeros((n, n_pieces)),
            width=np.ones((n, n_pieces)),
            values=np.zeros((n_curves.sum(), n_pieces)),
            rises=np.zeros((n_curves.sum(), n_pieces)),
        )
        for c, code in bent.items():
            knots, curves = np.array(code.knots), np.array(code.curves)
            missing = knots.size - 1  # pieces
            own = slice(table.curve_start[c], table.curve_start[c + 1])
            table.ends[c] = knots[0], knots[-1]
            table.grid_scale[c], table.grid[c, :N_STEPS], table.reach[c] = _grid(knots)
            table.grid[c, N_STEPS:] = missing, missing + 1
            table.knots[c, :missing] = table.left[c, :missing] = knots[:-1]
            table.width[c, :missing] = np.diff(knots)
            table.values[own, :missing] = curves[:, :-1]
            table.rises[own, :missing] = np.diff(curves, axis=1)
            if code.at_zero is not None:
                table.zero[c] = 0.0
                table.values[own, missing + 1] = code.at_zero
        return table

    def positions(self, columns: Sequence[int]) -> NDArray[np.int64]:
        """Return which encoded columns the given columns of the table become, in ascending order."""
        spans = [np.arange(self.starts[c], self.starts[c + 1]) for c in sorted(columns)]
        return np.concatenate([np.empty(0, dtype=np.int64), *spans])  # of no columns there are none

    def encode_column(self, column: int, values: NDArray[Any], rows: Rows, out: NDArray[np.float64]) -> None:
        """Encode the given rows of one column of a table into its rows of ``out`` (n_encoded, n_rows)."""
        self.codes[column].encode(values[rows], rows, out[self.starts[column] : self.starts[column + 1]])

    def encode(self, table: Table, rows: Rows, dtype: type[np.floating[Any]] = np.float64) -> NDArray[Any]:
        """Return the encoded table, (n_encoded, n_rows), one row per encoded column."""
        n_rows = len(np.arange(table.n_rows)[rows])
        out = np.empty((self.n_encoded, n_rows), dtype=dtype)
        for c, code in enumerate(self.codes):
            if dtype is np.float64:
                self.encode_column(c, table.column(c), rows, out)
                continue
            encoded = np.empty((len(code.names), n_rows))
            code.encode(table.column(c)[rows], rows, encoded)
            out[self.starts[c] : self.starts[c + 1]] = encoded
        return out


def _grid(knots: NDArray[np.float64]) -> tuple[float, NDArray[np.int64], int]:
    """Return steps per unit, the knots after the first that are below each step, and the first stride among the others.

    The step of a number is computed as readers compute it. It never falls as the number grows, whatever the rounding:
    a knot in an earlier step is smaller than the number, one in a later step is larger.
    """
    with np.errstate(over="ignore"):
        scale = (N_STEPS - 1) / (knots[-1] - knots[0])
    scale = scale if np.isfinite(scale) else 0.0
    steps = ((knots[1:-1] - knots[0]) * scale).astype(np.int64)
    most = int(np.bincount(steps).max(initial=0))
    return scale, np.searchsorted(steps, np.arange(N_STEPS)), 1 << most.bit_length() >> 1


def holds_numbers(values: NDArray[Any]) -> bool:
    """Return whether a column is numbers: by its type, or because every known cell is one and at least one is known."""
    if values.dtype.kind in "fiub":
        return True
    cells = values.tolist()
    return all(to_number(cell) is not None for cell in cells) and not all(is_missing(cell) for cell in cells)


def _are_dates(cells: list[Any]) -> bool:
    """Return whether every known cell is the text of a date, or of a date and a time, as in 2024-03-31."""
    known = [cell for cell in cells if not is_missing(cell)]
    return bool(known) and all(isinstance(cell, str) and _is_date(cell) for cell in known)


def _is_date(text: str) -> bool:
    if not _DATE.match(text):
        return False
    try:
        datetime.fromisoformat(text.strip())
    except ValueError:
        return False
    return True


def _warn_if_suspicious(cells: list[Any], name: str) -> None:
    """Warn of a column of numbers that a few words turned into categories."""
    known = [cell for cell in cells if not is_missing(cell)]
    words = [cell for cell in known if to_number(cell) is None]
    if len(words) < (1 - _SUSPICIOUS) * len(known):
        warnings.warn(
            f"column {name!r} is read as categories, although all but {len(words)} of its values are numbers; if "
            f"{', '.join(sorted({repr(word) for word in words})[:3])} mean missing, make them so.",
            SuspiciousColumnWarning,
            stacklevel=6,
        )


def _learn_categories(cells: list[Any], name: str) -> CategoryCode:
    counts = Counter(to_category(cell) for cell in cells)
    if len(counts) > _MAX_DISTINCT:
        raise InvalidInputError(
            f"column {name!r} holds {len(counts):,} different texts, and at most {_MAX_DISTINCT:,} can be categories. "
            "Leave it out if it is an id or free text; else group its values."
        )
    frequent = sorted(counts, key=lambda c: (-counts[c], c is None, str(c)))
    kept = frequent if len(frequent) <= _MAX_CATEGORIES else frequent[: _MAX_CATEGORIES - 1]
    rare = frozenset(frequent[len(kept) :])
    kept = sorted(kept, key=lambda c: (c is None, str(c)))
    # Two categories have two columns: with one, an unseen or missing value would look like the first of them.
    return CategoryCode(name, tuple(kept), bool(rare), rare)


def _learn_number(values: NDArray[Any], name: str, rows: Rows, encoding: str) -> NumberCode:
    numbers = to_numbers(values, name, rows)
    known = numbers[~np.isnan(numbers)]
    if known.size == 0:
        return NumberCode(name, 0.0, 1.0, flags_missing=False)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = float(known.mean())
        deviation = float(known.std())
    if not np.isfinite(deviation):
        raise InvalidInputError(f"the values of column {name!r} are too large to be squared; rescale it.")
    constant = known.min() == known.max() or deviation <= max(1e-14 * abs(mean), 1e-300)
    unscaled = constant or encoding == RAW
    code = NumberCode(name, mean, 1.0 if unscaled else 1.0 / deviation, flags_missing=known.size < numbers.size)
    return code if unscaled or encoding == "linear" else _learn_curves(code, known, bends=encoding == "spline")


def _learn_curves(code: NumberCode, known: NDArray[np.float64], *, bends: bool) -> NumberCode:
    """Return curves of a column, each with mean 0 and deviation 1 over the known values; of two values, the line."""
    zero = known == 0
    many = _MANY_ZEROS <= zero.mean() <= 1 - _MANY_ZEROS and zero.sum() >= _FEWEST_ZEROS
    others = known[~zero] if many else known
    knots, rank = _ranks(others)
    if knots.size < 2 or np.unique(known).size < 3 or not (np.diff(knots) > 0).all():
        return code
    # A curve that bends beyond the last rank is 0 everywhere: where most values are the largest one.
    at = [bend for bend in _BENDS if bends and knots.size > 3 and bend < rank[-1]]
    curves = [rank, *(np.maximum(rank - bend, 0.0) for bend in at)]
    at_zero = [0.0] * len(curves) if others.size < known.size else None
    if at_zero is not None:
        curves.append(np.zeros(knots.size))
        at_zero.append(1.0)
    plain = CurveCode(
        code.name, code.mean, code.inverse_scale, False, tuple(knots.tolist()),
        tuple(tuple(curve.tolist()) for curve in curves), None if at_zero is None else tuple(at_zero),
    )  # fmt: skip
    encoded = np.empty((len(curves), known.size))
    plain.encode(known, slice(None), encoded)
    mean, scale = encoded.mean(axis=1), encoded.std(axis=1)
    scaled = [((curve - m) / d).tolist() for curve, m, d in zip(curves, mean, scale, strict=True)]
    return replace(
        plain,
        flags_missing=code.flags_missing,
        curves=tuple(tuple(curve) for curve in scaled),
        at_zero=None if at_zero is None else tuple(((np.array(at_zero) - mean) / scale).tolist()),
    )


def _ranks(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return some of the distinct values, and the share of values below each, equal ones counted half."""
    distinct, counts = np.unique(values, return_counts=True)
    rank = (np.cumsum(counts) - counts / 2) / values.size
    if distinct.size <= _N_KNOTS:
        return distinct, rank
    nearest = np.searchsorted(rank, np.linspace(rank[0], rank[-1], _N_KNOTS))
    chosen = np.unique(np.concatenate([[0], nearest, [distinct.size - 1]]))
    return distinct[chosen], rank[chosen]


def to_category(value: Any) -> str | None:
    """Return the category a Python value stands for, None if it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # 1 and 1.0 are one category: a round trip through a file turns one into the other
    return str(value)


FARTHEST = 1e100  # deviations from the mean: beyond, sums of columns could be infinity minus infinity
