"""Many cases at once: JSON rows, CSV or Arrow in, decisions in the same format out."""

from collections.abc import Mapping, Sequence
from io import BytesIO
import json
from typing import Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray
import pyarrow
from pyarrow import csv as arrow_csv
from pyarrow import ipc

from emsco.data.encoding import NumberCode, to_category
from emsco.data.files import TableBytes
from emsco.data.table import is_arrow_number, to_numbers
from emsco.deployed.decide import Decisions
from emsco.exceptions import FileError, shown
from emsco.service.bodies import JSON, check_number, check_texts
from emsco.service.problems import ProblemError
from emsco.service.settings import Limits
from emsco.service.shapes import Rows
from emsco.service.shelf import Served

CSV = "text/csv"
ARROW = "application/vnd.apache.arrow.stream"
TYPES = (JSON, CSV, ARROW)
Kept = Mapping[str, Any]  # columns of the request that are part of the answer, by name
_ANSWERED = frozenset({"label", "best_guess", "confidence", "stage", "cost"})
_MOST_TEXT = 2**26  # characters of a column of categories, once every row has its own


def from_rows(served: Served, rows: Rows, limits: Limits, keep: Sequence[str] = ()) -> tuple[Any, Kept]:
    """Return JSON rows as an Arrow table; a column that no row has is not in it, and other absent cells are missing.

    What is to be kept is returned beside it, in all formats.
    """
    check_number(len(rows.rows), limits.rows, "rows")
    names = list(dict.fromkeys(name for row in rows.rows for name in row))
    check_names(served, names, limits, keep)
    cells = {name: [row.get(name) for row in rows.rows] for name in names}
    for values in cells.values():
        check_texts(values, limits, "a value")
    known = {name: values for name, values in cells.items() if name in served.columns}
    return table_of(served, known, len(rows.rows)), {name: cells[name] for name in keep}


def table_of(served: Served, cells: Mapping[str, Sequence[Any] | NDArray[Any]], n_rows: int) -> Any:
    """Return values by column as an Arrow table, read as the columns of the model are."""
    codes = served.model.encoder.codes
    columns = {}
    for name, values in cells.items():
        code = codes[served.columns[name]]
        if isinstance(code, NumberCode):
            array = values if isinstance(values, np.ndarray) else _objects(values)
            columns[name] = pyarrow.array(to_numbers(array, name, slice(0, n_rows)))
        else:
            plain = values.tolist() if isinstance(values, np.ndarray) else values
            columns[name] = pyarrow.array([to_category(value) for value in plain], pyarrow.string())
    if not columns:  # rows without a cell are rows all the same
        columns[served.model.column_names[0]] = pyarrow.nulls(n_rows)
    return arranged(served, pyarrow.table(columns))


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def check_kept(keep: Sequence[str], *, ids: bool) -> None:
    """Raise if a column that is to be kept has the name of one in the answer."""
    clash = [name for name in keep if name in _ANSWERED or (ids and name == "id")]
    if clash:
        said = f"decisions have a column {shown(clash[0])} of their own; rename yours"
        raise ProblemError(422, f"keep: {said}.", errors=[{"field": "keep", "detail": said}])


def from_csv(served: Served, data: bytes, limits: Limits, keep: Sequence[str] = ()) -> tuple[Any, Kept]:
    """Return CSV text as an Arrow table."""
    numbers = [code.name for code in served.model.encoder.codes if isinstance(code, NumberCode)]
    try:
        file = TableBytes(data, "the body")
        check_names(served, file.names, limits, keep)
        table = file.read(numbers=numbers)
    except FileError as error:
        raise ProblemError(422, str(error)) from None
    return _parted(served, table, limits, keep)


def _parted(served: Served, table: Any, limits: Limits, keep: Sequence[str]) -> tuple[Any, Kept]:
    """Return the columns that the model knows, checked, and those to be kept."""
    kept = {name: table.column(name) for name in keep}
    others = [name for name in keep if name not in served.columns]
    checked = _checked(served, table, limits)
    return arranged(served, checked.drop_columns(others) if others else checked), kept


def from_arrow(served: Served, data: bytes, limits: Limits, keep: Sequence[str] = ()) -> tuple[Any, Kept]:
    """Return an Arrow stream as a table. What it says of itself is checked before anything is allocated by it."""
    try:
        _refuse_compression(data, limits)
        with ipc.open_stream(data) as reader:
            check_names(served, reader.schema.names, limits, keep)
            _check_types(reader.schema)
            batches, n_rows = [], 0
            for batch in reader:
                n_rows += batch.num_rows
                check_number(n_rows, limits.rows, "rows")
                batches.append(batch)
            table = pyarrow.Table.from_batches(batches, reader.schema)
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError, ValueError, LookupError, OverflowError):
        said = "the body is no Arrow stream that can be read; send a whole IPC stream, not a file of another format."
        raise ProblemError(422, said) from None
    return _parted(served, table, limits, keep)


def _refuse_compression(data: bytes, limits: Limits) -> None:
    """Raise if buffers of a stream are compressed: a few bytes could say that they are billions."""
    source = pyarrow.BufferReader(data)
    most = limits.rows + 2 * limits.columns + 16  # messages; a row may be a batch by itself
    for _ in range(most):
        try:
            message = ipc.read_message(source)
        except EOFError:
            return
        if message.type in ("record batch", "dictionary") and _is_compressed(message.metadata.to_pybytes()):
            raise ProblemError(415, "the buffers of the Arrow stream are compressed; write it without compression.")
    raise ProblemError(422, f"the Arrow stream has more than {most:,} messages; write it in fewer batches.")


def _is_compressed(metadata: bytes) -> bool:
    """Return whether the metadata of a message name a compression.

    They are a flatbuffer, in which a table begins with how far back its list of fields is. Of a Message, field 1 is the
    kind of its header (2: dictionary, 3: record batch) and field 2 the header; of a dictionary, field 1 is a record
    batch; of a record batch, field 3 is the compression. Arrow checks flatbuffers, and has read this one.
    """
    message = int.from_bytes(metadata[:4], "little")
    header = _follow(metadata, message, 2)
    kind = _place(metadata, message, 1)
    if kind and metadata[kind] == 2:
        header = _follow(metadata, header, 1)
    return bool(_place(metadata, header, 3))


def _place(data: bytes, table: int, field: int) -> int:
    """Return where a field of a flatbuffer table is; 0 if it is absent."""
    fields = table - int.from_bytes(data[table : table + 4], "little", signed=True)
    n_bytes = int.from_bytes(data[fields : fields + 2], "little")
    at = 4 + 2 * field
    offset = int.from_bytes(data[fields + at : fields + at + 2], "little") if at + 2 <= n_bytes else 0
    return table + offset if offset else 0


def _follow(data: bytes, table: int, field: int) -> int:
    """Return where the table is that a field of a flatbuffer table points to."""
    place = _place(data, table, field)
    return place + int.from_bytes(data[place : place + 4], "little")


def _check_types(schema: Any) -> None:
    types = pyarrow.types
    for field in schema:
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        text = types.is_string(kind) or types.is_large_string(kind)
        if not (text or is_arrow_number(kind) or types.is_boolean(kind) or types.is_null(kind)):
            held = shown(str(field.type))
            raise _of_column(field.name, f"column {shown(field.name)} holds {held}; send numbers, booleans or text.")


def _of_column(name: str, said: str) -> ProblemError:
    return ProblemError(422, said, errors=[{"field": name[:100], "detail": said}])


def check_names(served: Served, names: Sequence[str], limits: Limits, keep: Sequence[str] | None = None) -> None:
    """Raise for columns that the model does not know, that come twice, that are too many, or that are to be kept."""
    check_number(len(names), limits.columns, "columns")
    absent = [name for name in keep or () if name not in names]
    if absent:
        said = f"there is no column {shown(absent[0])} in the body"
        raise ProblemError(422, f"keep: {said}.", errors=[{"field": "keep", "detail": said}])
    unknown = [name for name in names if name not in served.columns and name not in (keep or ())]
    if unknown:
        found = [{"field": name[:100], "detail": "the model has no such column"} for name in unknown[:20]]
        few = ", ".join(shown(name) for name in unknown[:5])
        hint = (
            "" if keep is None else f", or get them back with the decisions: ?keep={quote(unknown[0][:100], safe='')}"
        )
        raise ProblemError(422, f"the model has no column {few}; leave them out{hint}.", errors=found)
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise _of_column(twice, f"the column {shown(twice)} comes twice; send it once.")


def _checked(served: Served, table: Any, limits: Limits) -> Any:
    """Return a table if its texts have a reasonable length, each category of a column once in memory."""
    check_number(table.num_rows, limits.rows, "rows")
    types = pyarrow.types
    for i, field in enumerate(table.schema):
        if is_arrow_number(field.type):
            continue
        column = table.column(i)
        if types.is_dictionary(field.type):
            longest = max((_longest(chunk.dictionary) for chunk in column.chunks), default=0)
            if longest * table.num_rows > _MOST_TEXT:
                said = f"the categories of column {shown(field.name)} are too long for so many rows."
                raise _of_column(field.name, said)
        else:
            longest = max((_longest(chunk) for chunk in column.chunks), default=0)
        if longest > 4 * limits.text:  # bytes
            raise _of_column(
                field.name,
                f"a value of column {shown(field.name)} has {longest:,} bytes; at most {limits.text:,} characters are "
                "read. Is it a file by mistake?",
            )
    return table


def _longest(values: Any) -> int:
    """Return how many bytes the longest text has; 0 if there is none."""
    if not (pyarrow.types.is_string(values.type) or pyarrow.types.is_large_string(values.type)):
        return 0
    return pyarrow.compute.max(pyarrow.compute.binary_length(values)).as_py() or 0


def arranged(served: Served, table: Any) -> Any:
    """Return a table as the model reads it: a model without column names wants all columns, in their order."""
    model = served.model
    if model.named:
        return table
    bought = {model.column_names[c] for stage in model.stages for c in stage.new_columns}
    absent = sorted(bought - set(table.schema.names))
    if absent:
        raise _of_column(
            absent[0], f"the columns {', '.join(absent[:5])} are missing; send them (missing cells are allowed)."
        )
    empty = pyarrow.nulls(table.num_rows, pyarrow.float64())
    names = model.column_names
    return pyarrow.table({name: table.column(name) if name in table.schema.names else empty for name in names})


def to_json(served: Served, decisions: Decisions, more: Kept) -> bytes:
    """Return decisions as JSON, one object per row."""
    codes = decisions.label.data.tolist()
    columns: dict[str, Sequence[Any]] = {
        "label": [label if sure else None for label, sure in zip(codes, decisions.conclusive.tolist(), strict=True)],
        "best_guess": codes,
        "confidence": decisions.confidence.tolist(),
        "stage": decisions.stage.tolist(),
        "cost": decisions.cost.tolist(),
    }
    columns = {**more, **columns}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    head = {"model": served.name, "version": served.version, "promise": served.promise, "first_stage": 0}
    return json.dumps({**head, "decisions": rows}).encode()


def to_arrow_table(decisions: Decisions, more: Kept) -> Any:
    """Return decisions as an Arrow table, after what is kept; the label of a rejected row is null."""
    guess = pyarrow.array(decisions.label.data)
    columns = {
        **more,
        "label": pyarrow.array(decisions.label.data, mask=~decisions.conclusive),
        "best_guess": guess,
        "confidence": pyarrow.array(decisions.confidence),
        "stage": pyarrow.array(decisions.stage),
        "cost": pyarrow.array(decisions.cost),
    }
    return pyarrow.table(columns)


def to_arrow(decisions: Decisions, more: Kept) -> bytes:
    """Return decisions as an Arrow stream."""
    table = to_arrow_table(decisions, more)
    sink = pyarrow.BufferOutputStream()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def to_csv(decisions: Decisions, more: Kept) -> bytes:
    """Return decisions as CSV text; the label of a rejected row is empty."""
    buffer = BytesIO()
    arrow_csv.write_csv(to_arrow_table(decisions, more), buffer)
    return buffer.getvalue()
