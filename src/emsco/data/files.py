"""Tables as files: CSV and Parquet, whole or in blocks."""

from collections.abc import Iterable, Iterator, Sequence
import csv
from difflib import get_close_matches
import os
from pathlib import Path
import re
from typing import Any

from emsco.data.documents import DELIMITERS, first_line
from emsco.exceptions import FileError, MissingDependencyError

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "?")
BLOCK_ROWS = 2**16
MAX_ROWS = 2_000_000  # of which a fit learns; of larger files a sample is read
_RARE = 1_000  # rows of each label that a sample has, if there are as many
_LARGE_TEXT = 2**28  # bytes
MAX_TABLE_BYTES = 2**32  # of a table that is read whole,
_MAX_EXPANSION = 50  # times the size of its file if that is compressed; tables have 3 to 20,
_EXPANDED_BYTES = 2**28  # and small ones may have more
_BLOCK_BYTES = 2**21  # of a CSV file; Arrow reads up to 32 blocks ahead
_MAX_HEADER_BYTES = 2**20


class TableFile:
    """A CSV or Parquet file.

    In a CSV file the delimiter is found in the first line (comma, semicolon, tab or bar); a column whose every cell is
    a number is one of numbers (with semicolons, decimal commas will do), any other one is text. The spellings of a
    missing cell are in ``MISSING``. Compressed files (.gz, .bz2, .zst) are read as they are.

    Parameters
    ----------
    path : path-like
    encoding : str
        Of a CSV file.
    row_groups : sequence of int or None
        Those of a Parquet file to be read; None: all.
    """

    def __init__(self, path: str | Path, *, encoding: str = "utf-8", row_groups: Sequence[int] | None = None) -> None:
        _arrow()
        self.path = Path(path)
        self._encoding = encoding
        self._row_groups = None if row_groups is None else list(row_groups)
        if not self.path.exists():
            raise FileError(f"there is no file {self.path}.")
        if self.path.is_dir():
            raise FileError(f"{self.path} is a folder; give a CSV or Parquet file.")
        if not self.path.is_file():
            raise FileError(f"{self.path} is a pipe or a device, which cannot be read twice; save it as a file.")
        try:
            with self.path.open("rb") as file:
                self.is_parquet = file.read(4) == b"PAR1"
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error.strerror}.") from error
        self._size = self.path.stat().st_size
        self._n_read = 0.0
        self.names = self._parquet_names() if self.is_parquet else self._csv_names()
        repeated = sorted({name for name in self.names if self.names.count(name) > 1})
        if repeated:
            raise FileError(f"{self.path} has the column names {repeated} more than once; give every column its own.")

    def read(self, columns: Sequence[str] | None = None, *, numbers: Sequence[str] | None = None) -> Any:
        """Return the whole file as an Arrow table.

        Parameters
        ----------
        columns : sequence of str or None
            Only these.
        numbers : sequence of str or None
            Columns of a CSV file to be read as numbers where possible. None: all.
        """
        import pyarrow

        blocks: list[Any] = []
        n_bytes = 0
        for block in self._blocks(columns):
            n_bytes += block.nbytes
            self._check_size(n_bytes)
            blocks.append(block)
        if not blocks:
            raise FileError(f"{self.path} has no rows.")
        return self._typed(_without_views(pyarrow.Table.from_batches(blocks)), numbers)

    @property
    def n_rows(self) -> int:
        """Number of rows of a Parquet file."""
        from pyarrow import parquet

        return int(parquet.read_metadata(self.path).num_rows)

    @property
    def may_be_large(self) -> bool:
        """Whether there may be more rows than `MAX_ROWS`."""
        if not self.is_parquet:
            return self._size > _LARGE_TEXT or _is_compressed(self.path)
        return self.n_rows > MAX_ROWS

    def row_groups_of(self, n_rows: int) -> list[tuple[int, ...] | None]:
        """Return parts of a Parquet file of about so many rows, as row groups that follow each other; None: all of it.

        A CSV file is one part.
        """
        if not self.is_parquet:
            return [None]
        from pyarrow import parquet

        metadata = parquet.read_metadata(self.path)
        parts: list[list[int]] = []
        n = n_rows
        for group in range(metadata.num_row_groups):
            if n >= n_rows:
                parts.append([])
                n = 0
            parts[-1].append(group)
            n += metadata.row_group(group).num_rows
        return [None] if len(parts) <= 1 else [tuple(part) for part in parts]

    def sample(
        self, columns: Sequence[str], target: str, n_rows: int, *, numbers: Sequence[str] | None = None, seed: int = 0
    ) -> tuple[Any, int, Any]:
        """Return some rows, drawn at random, each label in proportion, how many have a label, and which rows they are.

        The file is read twice, a block at a time, so that it may be larger than the memory. Of rare labels more rows
        are kept. If there are no more rows than asked for, all are returned.

        Parameters
        ----------
        columns, numbers
            As in ``read``.
        target : str
            The column of the labels. Rows without one are left out.
        n_rows : int
        seed : int
            Of the draw.
        """
        import numpy as np
        import pyarrow

        code_of: dict[Any, int] = {None: -1}
        parts = []
        for block in self._blocks([target]):
            coded = block.column(0).dictionary_encode()
            known = np.array([code_of.setdefault(each, len(code_of) - 1) for each in coded.dictionary.to_pylist()])
            parts.append(np.append(known, -1)[coded.indices.fill_null(known.size).to_numpy()].astype(np.int32))
        codes = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)
        kept, n_known, rng = codes >= 0, int((codes >= 0).sum()), np.random.default_rng(seed)
        if n_known > n_rows:
            for code in range(len(code_of) - 1):
                rows = np.flatnonzero(codes == code)
                n = max(round(n_rows * rows.size / n_known), min(_RARE, rows.size))
                kept[rng.permutation(rows)[n:]] = False
        blocks, done, n_bytes = [], 0, 0
        for block in self._blocks(columns):
            part = block.filter(pyarrow.array(kept[done : done + block.num_rows]))
            done += block.num_rows
            n_bytes += part.nbytes
            self._check_size(n_bytes)
            blocks.append(part)
        if not blocks:
            raise FileError(f"{self.path} has no rows.")
        return self._typed(_without_views(pyarrow.Table.from_batches(blocks)), numbers), n_known, np.flatnonzero(kept)

    def _check_size(self, n_bytes: int) -> None:
        """Raise if so many bytes in memory are too many."""
        if n_bytes > MAX_TABLE_BYTES:
            raise FileError(
                f"{self.path} is larger than the {MAX_TABLE_BYTES >> 30} GiB that are read at once; take a sample of "
                "its rows."
            )
        if _is_compressed(self.path) and n_bytes > max(_MAX_EXPANSION * self._size, _EXPANDED_BYTES):
            raise FileError(
                f"{self.path} has {self._size:,} bytes and expands to more than {n_bytes >> 20:,} MiB, which is "
                "unusual for a table; decompress it if it is one."
            )

    def blocks(
        self, columns: Sequence[str], *, numbers: Sequence[str], keep: Sequence[str] = ()
    ) -> Iterator[tuple[Any, Any]]:
        """Yield the file in blocks of some 65,000 rows, in order.

        Parameters
        ----------
        columns, numbers
            As in ``read``.
        keep : sequence of str
            Columns to yield as they are, besides.

        Yields
        ------
        block, kept : pyarrow.Table
            The columns; and those to keep. In a CSV file these are text, every cell as it is written.
        """
        import pyarrow

        wanted = [*columns, *(name for name in keep if name not in columns)]
        for block in self._blocks(wanted, verbatim=bool(keep)):
            table = _without_views(pyarrow.Table.from_batches([block]))
            kept = table.select(list(keep))
            table = table.select(list(columns))
            if keep and not self.is_parquet:
                table = _without_missing(table, MISSING)
                kept = _without_missing(kept, ("",))
            yield self._typed(table, numbers), kept

    @property
    def share_read(self) -> float:
        """Which share of the file has been read so far, about."""
        return min(self._n_read / max(self._size, 1), 1.0)

    def require(self, columns: Iterable[str]) -> None:
        """Raise unless the columns are there."""
        absent = [name for name in columns if name not in self.names]
        if absent:
            near = _nearest(absent[0], self.names)
            hint = f"is it {near!r}?" if near else f"its columns: {_few(self.names)}."
            raise FileError(f"{self.path} has no column {', '.join(map(repr, absent))}; {hint}")

    def _parquet_names(self) -> list[str]:
        from pyarrow import ArrowException, OSFile, parquet

        try:
            with OSFile(os.fsencode(self.path)) as file:
                return list(parquet.read_schema(file).names)
        except (ArrowException, OSError, UnicodeError) as error:  # a name may be no text
            raise FileError(f"{self.path} is a damaged Parquet file: {first_line(error)}") from error

    def _csv_names(self) -> list[str]:
        """Find out the delimiter, and the names in the first line."""
        import pyarrow

        try:
            with self._opened() as file:
                start = self._decompressed(file).read(_MAX_HEADER_BYTES)
        except (pyarrow.ArrowException, OSError, UnicodeError) as error:
            raise FileError(f"{self.path} cannot be read: {first_line(error)}") from error
        if b"\0" in start and not self._encoding.lower().startswith(("utf-16", "utf-32", "utf16", "utf32")):
            raise FileError(
                f"{self.path} is neither CSV nor Parquet: it holds bytes that are zero. If it is text in UTF-16, "
                "say so (on the command line: --file-encoding utf-16); else save it as CSV in UTF-8."
            )
        try:
            text = start.decode(self._encoding, errors="ignore" if len(start) == _MAX_HEADER_BYTES else "strict")
        except LookupError as error:
            raise FileError(f"there is no encoding {self._encoding!r}; common ones: utf-8, latin-1, cp1252.") from error
        except UnicodeDecodeError as error:
            raise FileError(
                f"{self.path} is not {self._encoding} (byte {error.start}); save it as UTF-8, or give its encoding, "
                "such as latin-1."
            ) from error
        first = re.split("[\r\n]", text.removeprefix("\ufeff"), maxsplit=1)[0]
        if not first.strip():
            raise FileError(f"{self.path} has no names in its first line; a CSV file begins with the column names.")
        self._delimiter = max(DELIMITERS, key=first.count)
        try:
            return next(csv.reader([first], delimiter=self._delimiter))
        except csv.Error as error:
            raise FileError(f"the first line of {self.path} cannot be read: {error}.") from error

    def _opened(self) -> Any:
        """Return the file, open to be read."""
        import pyarrow

        return pyarrow.OSFile(os.fsencode(self.path))

    def _decompressed(self, file: Any) -> Any:
        """Return the stream of a file's contents."""
        import pyarrow

        if not _is_compressed(self.path):
            return file
        return pyarrow.CompressedInputStream(file, pyarrow.Codec.detect(f"table{self.path.suffix}").name)

    def _blocks(self, columns: Sequence[str] | None, *, verbatim: bool = False) -> Iterator[Any]:
        """Yield record batches; of a CSV file all cells as text, and with ``verbatim`` missing ones as they are."""
        import pyarrow
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        self._n_read = 0.0
        try:
            if self.is_parquet:
                with (
                    pyarrow.OSFile(os.fsencode(self.path)) as stream,
                    parquet.ParquetFile(stream, pre_buffer=False, buffer_size=2**20) as file,
                ):
                    wanted = None if columns is None else list(columns)
                    for block in file.iter_batches(BLOCK_ROWS, row_groups=self._row_groups, columns=wanted):
                        self._n_read += self._size * block.num_rows / max(file.metadata.num_rows, 1)
                        yield block
                return
            wanted = self.names if columns is None else list(columns)
            with self._opened() as file:
                reader = arrow_csv.open_csv(
                    self._decompressed(file),
                    read_options=arrow_csv.ReadOptions(
                        block_size=_BLOCK_BYTES, encoding=self._encoding, column_names=self.names, skip_rows=1
                    ),
                    parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(wanted, pyarrow.string()),
                        include_columns=wanted,
                        strings_can_be_null=not verbatim,
                        null_values=list(MISSING),
                    ),
                )
                with reader:
                    for block in reader:
                        self._n_read = file.tell()
                        if block.num_rows:
                            yield block
        except pyarrow.ArrowInvalid as error:
            if "Empty CSV file" in str(error):
                return  # names and no rows
            raise FileError(f"{self.path} cannot be read: {first_line(error)}") from error
        except (pyarrow.ArrowException, OSError, UnicodeError) as error:
            raise FileError(f"{self.path} cannot be read: {first_line(error)}") from error

    def _typed(self, table: Any, names: Sequence[str] | None) -> Any:
        """Return columns of text that hold only numbers as numbers."""
        if self.is_parquet:
            return table
        for i, name in enumerate(table.schema.names):
            numbers = self._numbers(table.column(i)) if names is None or name in names else None
            if numbers is not None:
                table = table.set_column(i, name, numbers)
        return table

    def _numbers(self, column: Any) -> Any:
        import pyarrow
        from pyarrow import compute

        text = compute.utf8_trim_whitespace(column)
        for change in (None, (",", ".")) if self._delimiter == ";" else (None,):
            try:
                if change:
                    text = compute.replace_substring(text, *change)
                return text.cast(pyarrow.float64())
            except pyarrow.ArrowInvalid:
                continue
        return None


class TableBytes(TableFile):
    """The bytes of a CSV file, read as ``TableFile`` reads one.

    Parameters
    ----------
    data : bytes
    name : str
        What errors call it.
    """

    def __init__(self, data: bytes, name: str) -> None:
        _arrow()
        self.path = Path(name)
        self.is_parquet = False
        self._data = data
        self._encoding = "utf-8"
        self._row_groups = None
        self._size = len(data)
        self._n_read = 0.0
        self.names = self._csv_names()

    def _opened(self) -> Any:
        import pyarrow

        return pyarrow.BufferReader(self._data)


def _without_missing(table: Any, missing: Sequence[str]) -> Any:
    """Return columns of text with nulls in place of the spellings of a missing cell."""
    import pyarrow
    from pyarrow import compute

    spellings = pyarrow.array(missing, pyarrow.string())
    for i, name in enumerate(table.schema.names):
        column = table.column(i)
        nulls = pyarrow.scalar(None, pyarrow.string())
        table = table.set_column(i, name, compute.if_else(compute.is_in(column, spellings), nulls, column))
    return table


def _without_views(table: Any) -> Any:
    """Return views of text as text: Arrow can do little with views."""
    import pyarrow

    views = {"string_view": pyarrow.string(), "binary_view": pyarrow.binary()}
    for i, field in enumerate(table.schema):
        if str(field.type) in views:
            table = table.set_column(i, field.name, table.column(i).cast(views[str(field.type)]))
    return table


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name that was probably meant: written the same but for capitals and blanks, or nearly the same."""
    plain = {known.strip().casefold(): known for known in reversed(names)}
    near = get_close_matches(name.strip().casefold(), plain, n=1)
    return plain[near[0]] if near else None


def _arrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("files need pyarrow: pip install 'emsco[cli]'.") from error


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() in (".gz", ".bz2", ".zst", ".lz4")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
