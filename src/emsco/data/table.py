"""Tables as users have them (NumPy, pandas, polars, Arrow), read one column at a time.

Nothing is converted until a column is asked for, and only the rows asked for are looked at: a cell that was not
bought may hold anything.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidInputError, MissingDependencyError

Rows = NDArray[np.intp] | slice

_FEW_CELLS = 2**21  # of a table whose columns are kept: 16 MiB
_FEW_ROWS = 10_000  # of a data frame: to copy all of them takes less time than to look at single columns


class Numbers(NamedTuple):
    """Columns of numbers where they lie in memory, for compiled readers.

    Attributes
    ----------
    address, stride : ndarray of shape (n_columns,)
        The cell of row r is at ``address + r * stride``.
    single : ndarray of shape (n_columns,)
        Whether the cells are of single precision; else they are of double.
    arrays : sequence of ndarray
        What has to be kept as long as the addresses are used.
    """

    address: NDArray[np.int64]
    stride: NDArray[np.int64]
    single: NDArray[np.bool_]
    arrays: Sequence[NDArray[Any]]


class Table:
    """A rectangular table with named columns.

    Attributes
    ----------
    names : tuple of str
        Column names; ``x0, x1, ...`` where the input has none.
    named : bool
        Whether the input had names, so that columns can be matched by name instead of position.
    n_rows : int
    index : pandas Index or None
    """

    def __init__(self, X: Any) -> None:
        kind = type(X).__module__.partition(".")[0]
        if kind == "polars" and type(X).__name__ == "LazyFrame":
            raise InvalidInputError("X is a polars LazyFrame; pass X.collect().")
        if is_dask(X):
            raise InvalidInputError("X is a Dask collection, which only fit and decide take; pass X.compute().")
        if kind in ("pandas", "polars") and hasattr(X, "columns"):
            self._frame = kind
            self._data = X
            self.names = tuple(str(name) for name in X.columns)
            self.n_rows = int(X.shape[0])
        elif kind == "pyarrow" and hasattr(X, "schema"):
            self._frame = kind
            self._data = X
            self.names = tuple(X.schema.names)
            self.n_rows = int(X.num_rows)
        else:
            self._frame = ""
            self._data = _as_matrix(X)
            self.names = tuple(f"x{i}" for i in range(self._data.shape[1]))
            self.n_rows = int(self._data.shape[0])
        self.named = bool(self._frame)
        self.index = X.index if self._frame == "pandas" else None
        repeated = sorted(name for name, count in Counter(self.names).items() if count > 1)
        if repeated:
            raise InvalidInputError(
                f"the column names {repeated} occur more than once; give every column its own name."
            )

    def column(self, position: int) -> NDArray[Any]:
        """Return a column as numbers or booleans (missing = NaN), or as objects (missing = None or NaN)."""
        if self._frame == "pandas":
            return _pandas_column(self._data.iloc[:, position])
        if self._frame == "polars":
            return _polars_column(self._data.to_series(position))
        if self._frame == "pyarrow":
            return _arrow_column(self._data.column(position), self.names[position])
        values: NDArray[Any] = self._data[:, position]
        return values

    def is_categorical(self, position: int) -> bool:
        """Return whether the table itself declares a column to be categories, whatever they look like."""
        if self._frame == "pandas":
            return type(self._data.dtypes.iloc[position]).__name__ == "CategoricalDtype"
        if self._frame == "polars":
            return type(self._data.dtypes[position]).__name__ in ("Categorical", "Enum")
        if self._frame == "pyarrow":
            return type(self._data.schema.field(position).type).__name__ == "DictionaryType"
        return False

    def numbers(self, positions: Sequence[int]) -> Numbers | None:
        """Return columns where they lie in memory, if the table declares all of them to be numbers; else None.

        Those of another type than float64 or float32 are converted to float64. Nothing is checked.
        """
        if self._frame == "pandas":
            columns = _pandas_numbers(self._data, positions)
        elif self._frame == "polars":
            columns = _polars_numbers(self._data, positions)
        elif self._frame == "pyarrow":
            columns = _arrow_numbers(self._data, positions)
        else:
            columns = self._data if self._data.dtype.kind in "fiub" else None
        return None if columns is None else _numbers(columns, positions)


class StackedTable(Table):
    """Two tables of the same columns, one below the other."""

    def __init__(self, above: Table, below: Table) -> None:
        self._parts = (above, below)
        self.names = above.names
        self.named = above.named
        self.index = None
        self.n_rows = above.n_rows + below.n_rows

    def column(self, position: int) -> NDArray[Any]:
        """Return a column as ``Table.column`` does."""
        return np.concatenate([part.column(position) for part in self._parts])

    def is_categorical(self, position: int) -> bool:
        """Return whether the upper table declares a column to be categories."""
        return self._parts[0].is_categorical(position)

    def numbers(self, positions: Sequence[int]) -> None:
        """Return None: nothing needs it."""


class ReadTable(Table):
    """A table whose columns are read once: each fold and encoding asks for all of them."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._columns: dict[int, NDArray[Any]] = {}
        self.names = table.names
        self.named = table.named
        self.index = table.index
        self.n_rows = table.n_rows

    @classmethod
    def of(cls, table: Table) -> Table:
        """Return a table that reads its columns once, if the table is small enough to be kept."""
        return cls(table) if table.n_rows * len(table.names) <= _FEW_CELLS else table

    def column(self, position: int) -> NDArray[Any]:
        """Return a column as ``Table.column`` does."""
        if position not in self._columns:
            self._columns[position] = self._table.column(position)
        return self._columns[position]

    def is_categorical(self, position: int) -> bool:
        """Return whether the table declares a column to be categories."""
        return self._table.is_categorical(position)

    def numbers(self, positions: Sequence[int]) -> Numbers | None:
        """Return columns as ``Table.numbers`` does."""
        return self._table.numbers(positions)


class BlankedTable(Table):
    """A table whose cells in some rows nobody may learn from: whether a column holds numbers is seen without them.

    The rows keep their numbers, so that an error still names the right one.
    """

    def __init__(self, table: Table, rows: NDArray[np.intp]) -> None:
        self._table = table
        self._blank = rows
        self.names = table.names
        self.named = table.named
        self.index = table.index
        self.n_rows = table.n_rows

    def column(self, position: int) -> NDArray[Any]:
        """Return a column as ``Table.column`` does; cells that could tell its type are None."""
        values = self._table.column(position)
        if values.dtype.kind in "fiub":
            return values
        values = values.astype(object)
        values[self._blank] = None
        return values

    def is_categorical(self, position: int) -> bool:
        """Return whether the table declares a column to be categories."""
        return self._table.is_categorical(position)

    def numbers(self, positions: Sequence[int]) -> None:
        """Return None: nothing needs it."""


class ArrangedTable(Table):
    """Some columns of a table, in another order and under other names."""

    def __init__(self, table: Table, positions: Sequence[int], names: Sequence[str], *, named: bool) -> None:
        self._table = table
        self._positions = tuple(positions)
        self.names = tuple(names)
        self.named = named
        self.index = table.index
        self.n_rows = table.n_rows

    def column(self, position: int) -> NDArray[Any]:
        """Return a column as ``Table.column`` does."""
        return self._table.column(self._positions[position])

    def is_categorical(self, position: int) -> bool:
        """Return whether the table declares a column to be categories."""
        return self._table.is_categorical(self._positions[position])

    def numbers(self, positions: Sequence[int]) -> None:
        """Return None: nothing needs it."""


def is_dask(X: Any) -> bool:
    """Return whether a table is one of Dask; nothing is imported to tell."""
    return type(X).__module__.partition(".")[0] == "dask"


def check_size(table: Table) -> None:
    """Raise unless there is at least one row and one column."""
    shape = (table.n_rows, len(table.names))
    if not table.names:
        raise InvalidInputError(f"Found array with 0 feature(s) (shape={shape}) while a minimum of 1 is required.")
    if not table.n_rows:
        raise InvalidInputError(f"Found array with 0 sample(s) (shape={shape}) while a minimum of 1 is required.")


def to_numbers(values: NDArray[Any], name: str, rows: Rows) -> NDArray[np.float64]:
    """Return values as float64, missing as NaN; anything that is no finite number is an error that names its row.

    ``rows`` says where the values come from in the table.
    """
    if values.dtype.kind in "fiub":
        numbers = values.astype(np.float64)
    else:
        numbers = np.empty(values.size)
        for i, value in enumerate(values.tolist()):
            number = to_number(value)
            if number is None:
                raise InvalidInputError(
                    f"column {name!r} holds {value!r} in row {_row_number(rows, i)}, but was numeric in training; "
                    "give a number, or leave it missing."
                )
            numbers[i] = number
    if np.isinf(numbers).any():
        row = _row_number(rows, int(np.isinf(numbers).argmax()))
        raise InvalidInputError(infinite_cell(name, row))
    return numbers


def infinite_cell(name: str, row: int) -> str:
    """Return what to say of a cell that holds inf."""
    return f"column {name!r} holds inf in row {row}; replace it by a finite number, or by NaN if it is unknown."


def _row_number(rows: Rows, i: int) -> int:
    return i + (rows.start or 0) if isinstance(rows, slice) else int(rows[i])


def to_number(value: Any) -> float | None:
    """Return a Python value as a number, NaN for a missing one, None if it is neither."""
    if is_missing(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf
    except (TypeError, ValueError):
        return None


def is_missing(value: Any) -> bool:
    """Return whether a Python value stands for a missing cell: None, NaN, pandas' NA or NaT."""
    if value is None:
        return True
    if isinstance(value, str):
        return False
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas' NA has no truth value
        return type(value).__name__ == "NAType"


def _as_matrix(X: Any) -> NDArray[Any]:
    if hasattr(X, "toarray") and type(X).__module__.startswith("scipy.sparse"):
        raise InvalidInputError("sparse input is not supported: every cell has a price; pass X.toarray().")
    try:
        data = np.asarray(X)
    except ValueError as error:
        raise InvalidInputError(f"X cannot be read as a table: {error}.") from error
    if data.ndim != 2:
        raise InvalidInputError(
            f"X must be a 2-dimensional table, got {type(X).__name__} of shape {data.shape}. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row; make a pandas DataFrame of a "
            "dict or a list of dicts."
        )
    if data.dtype.kind == "c":
        raise InvalidInputError("Complex data not supported: give real numbers.")
    if data.dtype.kind not in "fiubOUS":
        raise InvalidInputError(f"X holds values of type {data.dtype}; give numbers, booleans, text or categories.")
    return data


def _pandas_column(series: Any) -> NDArray[Any]:
    from pandas.api import types  # the caller has pandas, or there would be no series

    dtype = series.dtype
    if types.is_bool_dtype(dtype) or types.is_numeric_dtype(dtype):
        if types.is_complex_dtype(dtype):
            raise InvalidInputError(f"column {series.name!r} holds complex numbers; give real ones.")
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
    elif types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        raise InvalidInputError(no_dates(series.name))
    else:
        values = series.astype(object).to_numpy()
    return np.asarray(values)


def _polars_column(series: Any) -> NDArray[Any]:
    import polars

    dtype = series.dtype
    if dtype.is_temporal():
        raise InvalidInputError(no_dates(series.name))
    if dtype.is_numeric() or dtype == polars.Boolean:
        single = dtype == polars.Float32
        return np.asarray((series if single else series.cast(polars.Float64)).to_numpy())
    return np.array([*series.to_list(), None], dtype=object)[:-1]  # the None keeps lists from becoming a matrix


def _arrow_column(column: Any, name: str) -> NDArray[Any]:
    import pyarrow
    from pyarrow import types

    kind = column.type
    if types.is_temporal(kind):
        raise InvalidInputError(no_dates(name))
    if types.is_nested(kind):
        raise InvalidInputError(f"column {name!r} holds {kind}; give one value per cell.")
    if types.is_boolean(kind):
        column = column.cast(pyarrow.uint8())
    if is_arrow_number(column.type) or types.is_null(kind):
        single = column.type == pyarrow.float32()
        numbers = column if single else column.cast(pyarrow.float64(), safe=False)
        return np.asarray(numbers.to_numpy(zero_copy_only=False))
    try:
        return np.array([*column.to_pylist(), None], dtype=object)[:-1]
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"column {name!r} holds text that is not UTF-8; is the file damaged?") from error


def is_arrow_number(kind: Any) -> bool:
    """Return whether an Arrow type is one of numbers."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def _numbers(columns: NDArray[Any] | list[NDArray[Any]], positions: Sequence[int]) -> Numbers:
    """Return where numbers lie: chosen columns of a matrix, or all of a list."""
    if isinstance(columns, list):
        arrays = [_as_floats(column) for column in columns]
        address = np.array([_address(column) for column in arrays], dtype=np.int64)
        stride = np.array([column.strides[0] for column in arrays], dtype=np.int64)
        return Numbers(address, stride, np.array([column.itemsize == 4 for column in arrays], dtype=np.bool_), arrays)
    if not _is_readable(columns):
        return _numbers([columns[:, p] for p in positions], positions)
    address = _address(columns) + columns.strides[1] * np.array(positions, dtype=np.int64)
    stride = np.full(len(positions), columns.strides[0], dtype=np.int64)
    return Numbers(address, stride, np.full(len(positions), columns.itemsize == 4), [columns])


def _as_floats(values: NDArray[Any]) -> NDArray[Any]:
    return values if _is_readable(values) else values.astype(np.float64)


def _is_readable(values: NDArray[Any]) -> bool:
    """Return whether compiled code can read numbers as they are."""
    return values.dtype.char in "df" and values.dtype.isnative and values.flags.aligned


def _address(values: NDArray[Any]) -> int:
    address: int = values.__array_interface__["data"][0]
    return address


def _pandas_numbers(frame: Any, positions: Sequence[int]) -> NDArray[Any] | list[NDArray[Any]] | None:
    dtypes = list(frame.dtypes)
    plain = [isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in dtypes]
    if not all(plain[p] for p in positions):
        return None
    if all(plain) and (len(frame) < _FEW_ROWS or (len(set(dtypes)) == 1 and _is_one_array(frame))):
        matrix: NDArray[Any] = frame.to_numpy(dtypes[0] if len(set(dtypes)) == 1 else np.float64)
        return matrix
    return [frame.iloc[:, p].to_numpy() for p in positions]


def _is_one_array(frame: Any) -> bool:
    """Return whether all columns are parts of one array, as far as the first and the last can tell: a view is free."""
    first, last = (frame.iloc[:, p].to_numpy().base for p in (0, -1))
    return first is not None and first is last


def _polars_numbers(frame: Any, positions: Sequence[int]) -> list[NDArray[Any]] | None:
    columns = [frame.to_series(p) for p in positions]
    return [_polars_column(column) for column in columns] if all(c.dtype.is_numeric() for c in columns) else None


def _arrow_numbers(data: Any, positions: Sequence[int]) -> list[NDArray[Any]] | None:
    columns = [data.column(p) for p in positions]
    return [_arrow_column(c, "") for c in columns] if all(is_arrow_number(c.type) for c in columns) else None


def no_dates(name: Any) -> str:
    """Return what to say of a column of dates."""
    return f"column {name!r} holds dates or durations; turn it into a number, such as days before the decision."


def data_frame(columns: dict[str, Any]) -> Any:
    """Return a pandas DataFrame, or raise with instructions to install pandas."""
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError("to_frame needs pandas: pip install 'emsco[pandas]'.") from error
    return pandas.DataFrame(columns)
