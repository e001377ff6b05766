"""Tables and price lists as files: CSV and Parquet, whole or in blocks; prices also as JSON and YAML."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import csv
from dataclasses import replace
import json
from pathlib import Path
import re
from typing import TYPE_CHECKING, Any

from emsco.exceptions import FileError, InvalidPricesError, MissingDependencyError
from emsco.prices import Prices

if TYPE_CHECKING:
    from emsco.objectives import Loss

MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "#N/A", "?")
BLOCK_ROWS = 2**16
MAX_TABLE_BYTES = 2**32  # of a table that is read whole
_BLOCK_BYTES = 2**21  # of a CSV file; Arrow reads up to 32 blocks ahead
_MAX_PRICE_BYTES = 2**20
_MAX_HEADER_BYTES = 2**20
_DELIMITERS = ",;\t|"
_PRICE_COLUMNS = ("feature", "price", "unit", "group", "discount")


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
    """

    def __init__(self, path: str | Path, *, encoding: str = "utf-8") -> None:
        _arrow()
        self.path = Path(path)
        self._encoding = encoding
        if not self.path.exists():
            raise FileError(f"there is no file {self.path}.")
        if self.path.is_dir():
            raise FileError(f"{self.path} is a folder; give a CSV or Parquet file.")
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
            if n_bytes > MAX_TABLE_BYTES:
                raise FileError(
                    f"{self.path} is larger than the {MAX_TABLE_BYTES >> 30} GiB that are read at once; take a sample "
                    "of its rows."
                )
            blocks.append(block)
        if not blocks:
            raise FileError(f"{self.path} has no rows.")
        return self._typed(pyarrow.Table.from_batches(blocks), numbers)

    def blocks(self, columns: Sequence[str], *, numbers: Sequence[str]) -> Iterator[Any]:
        """Yield the file as Arrow tables of some 65,000 rows, in order; parameters as in ``read``."""
        import pyarrow

        for block in self._blocks(columns):
            yield self._typed(pyarrow.Table.from_batches([block]), numbers)

    @property
    def share_read(self) -> float:
        """Which share of the file has been read so far, about."""
        return min(self._n_read / max(self._size, 1), 1.0)

    def require(self, columns: Iterable[str]) -> None:
        """Raise unless the columns are there."""
        absent = [name for name in columns if name not in self.names]
        if absent:
            raise FileError(
                f"{self.path} has no column {', '.join(map(repr, absent))}; its columns: {_few(self.names)}."
            )

    def _parquet_names(self) -> list[str]:
        from pyarrow import ArrowException, parquet

        try:
            return list(parquet.read_schema(self.path).names)
        except (ArrowException, OSError) as error:
            raise FileError(f"{self.path} is a damaged Parquet file: {_first_line(error)}") from error

    def _csv_names(self) -> list[str]:
        """Find out the delimiter, and the names in the first line."""
        import pyarrow

        try:
            with pyarrow.input_stream(str(self.path), compression="detect") as stream:
                start = stream.read(_MAX_HEADER_BYTES)
        except (pyarrow.ArrowException, OSError) as error:
            raise FileError(f"{self.path} cannot be read: {_first_line(error)}") from error
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
        self._delimiter = max(_DELIMITERS, key=first.count)
        try:
            return next(csv.reader([first], delimiter=self._delimiter))
        except csv.Error as error:
            raise FileError(f"the first line of {self.path} cannot be read: {error}.") from error

    def _blocks(self, columns: Sequence[str] | None) -> Iterator[Any]:
        """Yield record batches; of a CSV file all cells as text."""
        import pyarrow
        from pyarrow import csv as arrow_csv
        from pyarrow import parquet

        self._n_read = 0.0
        try:
            if self.is_parquet:
                with parquet.ParquetFile(self.path, pre_buffer=False, buffer_size=2**20) as file:
                    for block in file.iter_batches(BLOCK_ROWS, columns=None if columns is None else list(columns)):
                        self._n_read += self._size * block.num_rows / max(file.metadata.num_rows, 1)
                        yield block
                return
            wanted = self.names if columns is None else list(columns)
            with pyarrow.OSFile(str(self.path)) as file:
                codec = pyarrow.Codec.detect(str(self.path)) if _is_compressed(self.path) else None
                reader = arrow_csv.open_csv(
                    pyarrow.CompressedInputStream(file, codec.name) if codec else file,
                    read_options=arrow_csv.ReadOptions(
                        block_size=_BLOCK_BYTES, encoding=self._encoding, column_names=self.names, skip_rows=1
                    ),
                    parse_options=arrow_csv.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
                    convert_options=arrow_csv.ConvertOptions(
                        column_types=dict.fromkeys(wanted, pyarrow.string()),
                        include_columns=wanted,
                        strings_can_be_null=True,
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
            raise FileError(f"{self.path} cannot be read: {_first_line(error)}") from error
        except (pyarrow.ArrowException, OSError, UnicodeError) as error:
            raise FileError(f"{self.path} cannot be read: {_first_line(error)}") from error

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


def read_prices(path: str | Path) -> Prices:
    """Return the prices in a CSV, JSON or YAML file.

    Each entry has a ``feature`` (a column of the table) and its ``price``; optionally the ``unit`` it is bought in with
    other columns (one price, given once), and the ``group`` with which it shares a cost, with the ``discount`` price it
    has once that is paid. JSON and YAML hold a list of such entries, or a mapping of feature to price or entry; or
    either as ``prices`` of a mapping, beside ``overhead`` and ``parallel`` as in ``Prices``. CSV has no place for them.
    """
    path = Path(path)
    text = _price_text(path)
    if path.suffix.lower() in (".json", ".yaml", ".yml"):
        content = _from_json(text, path) if path.suffix.lower() == ".json" else _from_yaml(text, path)
        content, model = _model(content, path)
        return replace(_prices(_entries(content, path), path), **model)
    return _prices(_from_csv(text, path), path)


def _model(content: Any, path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the entries of a file, and which price model it says."""
    listed = content.get("prices") if isinstance(content, Mapping) else None
    if not isinstance(listed, Mapping | list) or not set(content) <= {"prices", "overhead", "parallel"}:
        return content, {}
    model = {name: content[name] for name in ("overhead", "parallel") if content.get(name) is not None}
    if "overhead" in model:
        model["overhead"] = _number(model["overhead"], f"overhead in {path}")
    if not isinstance(model.get("parallel", False), bool):
        raise InvalidPricesError(f"{path}: parallel is {model['parallel']!r}; it can be true or false.")
    return listed, model


def read_loss(path: str | Path, classes: Sequence[str]) -> "Loss":
    """Return the prices of labels in a CSV or JSON file.

    A CSV file has a line per true class: its name in the column ``true``, the price of each label in the column of its
    name, and that of giving none in the column ``reject``. JSON is an object of such objects, by true class.

    Parameters
    ----------
    path : path-like
    classes : sequence of str
        Names of the classes, in the order of the matrix wanted.
    """
    from emsco.objectives import Loss  # which compiles: slow to import

    path = Path(path)
    text = _price_text(path)
    labels = [*classes, "reject"]
    content = _from_json(text, path) if path.suffix.lower() == ".json" else _loss_lines(text, path)
    if (
        not isinstance(content, Mapping)
        or sorted(content) != sorted(classes)
        or not all(isinstance(line, Mapping) and sorted(line) == sorted(labels) for line in content.values())
    ):
        raise FileError(
            f"{path} must have a line per true class, {', '.join(classes)}, each with a price for each of "
            f"{', '.join(labels)}."
        )
    prices = [[_number(content[t][p], f"loss of {p!r} for {t!r} in {path}") for p in labels] for t in classes]
    return Loss([row[:-1] for row in prices], [row[-1] for row in prices])


def _loss_lines(text: str, path: Path) -> dict[str, dict[str, str]]:
    lines = text.splitlines()
    delimiter = max(_DELIMITERS, key=(lines[0] if lines else "").count)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    if not rows or rows[0][0].lower() != "true" or any(len(row) != len(rows[0]) for row in rows):
        raise FileError(f"{path} must be a table whose first column is named true.")
    if delimiter == ";":  # where a comma is a decimal one
        rows[1:] = [[row[0], *(cell.replace(",", ".") for cell in row[1:])] for row in rows[1:]]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}


def _price_text(path: Path) -> str:
    try:
        if path.stat().st_size > _MAX_PRICE_BYTES:
            raise FileError(f"{path} is larger than {_MAX_PRICE_BYTES >> 20} MiB: is it a price list?")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise FileError(f"there is no file {path}.") from error
    except UnicodeDecodeError as error:
        raise FileError(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8.") from error
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}.") from error


def _from_json(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{path} is not JSON: {error}.") from error


def _from_yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise MissingDependencyError("YAML files need PyYAML: pip install 'emsco[cli]'.") from error
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise FileError(f"{path} uses aliases (*name), which a price list does not need; write them out.")
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{path} is not YAML: {_first_line(error)}") from error


def _from_csv(text: str, path: Path) -> list[dict[str, Any]]:
    lines = text.splitlines()
    delimiter = max(_DELIMITERS, key=(lines[0] if lines else "").count)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    header = [name.lower() for name in rows[0]] if rows else []
    if "feature" not in header or "price" not in header or not set(header) <= set(_PRICE_COLUMNS):
        raise FileError(
            f"the first line of {path} is {','.join(header)!r}; a price list has the columns feature,price and "
            "optionally unit,group,discount."
        )
    entries = []
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        if len(row) > len(header):
            raise FileError(f"line {number} of {path} has {len(row)} cells, its first line {len(header)}.")
        entry = {name: cell for name, cell in zip(header, row, strict=False) if cell}
        for name in ("price", "discount"):
            if name in entry and delimiter == ";":
                entry[name] = entry[name].replace(",", ".")
        entries.append(entry)
    return entries


def _entries(content: Any, path: Path) -> list[dict[str, Any]]:
    if isinstance(content, Mapping):
        content = [
            {"feature": feature, **entry} if isinstance(entry, Mapping) else {"feature": feature, "price": entry}
            for feature, entry in content.items()
        ]
    if not isinstance(content, list) or not all(isinstance(entry, Mapping) for entry in content):
        raise FileError(
            f"{path} must hold a list of entries with feature and price, or a mapping of feature to price; it holds "
            f"{type(content).__name__}."
        )
    entries = [{str(k): v for k, v in entry.items() if v is not None} for entry in content]
    for entry in entries:
        unknown = sorted(set(entry) - set(_PRICE_COLUMNS))
        if unknown:
            raise FileError(f"{path}: an entry has {unknown}; it may have {', '.join(_PRICE_COLUMNS)}.")
    return entries


def _prices(entries: list[dict[str, Any]], path: Path) -> Prices:
    units: dict[str, list[str]] = {}
    facts: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if "feature" not in entry:
            raise InvalidPricesError(f"{path}: an entry has no feature: {entry}.")
        feature = str(entry["feature"])
        unit = str(entry.get("unit", feature))
        columns = units.setdefault(unit, [])
        if feature in columns:
            raise InvalidPricesError(f"{path} lists {feature!r} twice.")
        columns.append(feature)
        known = facts.setdefault(unit, {})
        for name in ("price", "group", "discount"):
            if name not in entry:
                continue
            value = str(entry[name]) if name == "group" else _number(entry[name], f"{name} of {feature!r} in {path}")
            if value != value:
                raise InvalidPricesError(f"the {name} of {feature!r} in {path} is missing or not a number; give one.")
            if known.setdefault(name, value) != value:
                raise InvalidPricesError(
                    f"{path}: the {name} of the unit {unit!r} is {known[name]} at one of its features and {value} at "
                    f"{feature!r}; a unit has one."
                )
    if not entries:
        raise InvalidPricesError(f"{path} lists no prices.")
    priceless = [unit for unit, known in facts.items() if "price" not in known]
    if priceless:
        raise InvalidPricesError(f"{path} has no price for {priceless}; 0 is a price: known from the start.")
    groups: dict[str, list[str]] = {}
    for unit, known in facts.items():
        if "group" in known:
            groups.setdefault(known["group"], []).append(unit)
    return Prices(
        units={unit: columns for unit, columns in units.items() if columns != [unit]},
        price={unit: known["price"] for unit, known in facts.items()},
        groups=groups,
        discount={unit: known["discount"] for unit, known in facts.items() if "discount" in known},
    )


def without(prices: Prices, columns: Iterable[str]) -> Prices:
    """Return prices without what only yields the given columns: a list may cover more than a table has."""
    gone = set(columns)
    units = {unit: [c for c in yields if c not in gone] for unit, yields in prices.units.items()}
    empty = {unit for unit, yields in units.items() if not yields}
    empty |= {unit for unit in prices.price if unit in gone and unit not in units}
    groups = {group: [u for u in members if u not in empty] for group, members in prices.groups.items()}
    return replace(
        prices,
        units={unit: yields for unit, yields in units.items() if yields},
        price={unit: price for unit, price in prices.price.items() if unit not in empty},
        groups={group: members for group, members in groups.items() if members},
        discount={unit: price for unit, price in prices.discount.items() if unit not in empty},
    )


def _number(value: Any, what: str) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidPricesError(f"the {what} is {value!r}; a price is a number of at least 0.") from None


def _arrow() -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingDependencyError("files need pyarrow: pip install 'emsco[cli]'.") from error


def _is_compressed(path: Path) -> bool:
    return path.suffix.lower() in (".gz", ".bz2", ".zst", ".lz4")


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
