"""Files larger than memory, decided block by block: one block is read ahead and one written behind."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from emsco.data.documents import first_line
from emsco.data.encoding import NumberCode
from emsco.data.files import TableFile
from emsco.data.formulas import escaped_columns, escaped_text
from emsco.data.output import Output, writing
from emsco.data.table import Table
from emsco.deployed.model import Deployed
from emsco.exceptions import FileError, InvalidInputError

COLUMNS = ("label", "confidence", "stage", "cost", "bought")
_TYPES = ("string", "double", "int64", "double", "string")
INCONCLUSIVE = "inconclusive"


@dataclass
class Totals:
    """What became of all rows of a file.

    Attributes
    ----------
    n_rows, n_conclusive : int
    left : list of int
        Rows that left at each stage.
    cost : float
        What all of them paid.
    """

    n_rows: int
    n_conclusive: int
    left: list[int]
    cost: float


def predict_file(
    model: Deployed,
    source: TableFile,
    target: str | Path,
    *,
    keep: Sequence[str] = (),
    n_jobs: int = 1,
    escape_formulas: bool = False,
    on_progress: Callable[[str, float, str], None] | None = None,
) -> Totals:
    """Decide every row of a file, and write a row for each: label, confidence, stage, cost, what was bought.

    Three blocks of some 65,000 rows are held at a time, however long the file is. The output appears under its name
    when it is complete.

    Parameters
    ----------
    model : Deployed
    source : TableFile
    target : path-like
        A CSV file, or a Parquet file if its name ends in ``.parquet``. The label of a rejected row is *inconclusive*;
        stages count from 1.
    keep : sequence of str
        Columns of the source to repeat in the output, first, as they are.
    n_jobs : int
        Threads.
    escape_formulas : bool
        Write an apostrophe before text that a spreadsheet would take for a formula, such as ``=1+1``.
    on_progress : callable or None
        Called with a phase, the share done and the rows so far.
    """
    features, numbers = _columns(model, source, keep)
    labels = [*(str(label) for label in model.classes.tolist()), INCONCLUSIVE]
    paid, bought = model.paid, _bought(model)
    starts = np.zeros(1, dtype=np.intp) if model.branched is None else model.branched.sets[1]
    if escape_formulas:
        labels, bought = [escaped_text(text) for text in labels], [escaped_text(text) for text in bought]
    parquet = Path(target).suffix.lower() == ".parquet"
    totals = Totals(0, 0, [0] * model.n_stages, 0.0)

    def decide(block: Any, kept: Any) -> Any:
        try:
            table = Table(block)
            found = model.outcomes(table, n_jobs=n_jobs)
        except InvalidInputError as error:
            if not totals.n_rows:
                raise
            raise InvalidInputError(
                f"{error} (Rows are counted from row {totals.n_rows:,} of {source.path}.)"
            ) from error
        confidence, code, stage, conclusive, cost = found[:5]
        left = np.bincount(stage, minlength=len(totals.left))
        totals.n_rows += len(stage)
        totals.n_conclusive += int(conclusive.sum())
        totals.left = [a + b for a, b in zip(totals.left, left.tolist(), strict=True)]
        exits = stage if found.branch is None else starts[found.branch] + stage
        totals.cost += float(np.dot(np.bincount(exits, minlength=paid.size), paid))
        code[~conclusive] = len(labels) - 1
        columns = (_chosen(code, labels), confidence, stage + 1, cost, _chosen(exits, bought))
        decided = escaped_columns(kept) if escape_formulas else kept
        for name, column in zip(COLUMNS, columns, strict=True):
            decided = decided.append_column(name, column if name in ("label", "bought") else [column])
        return decided

    blocks = source.blocks(features, numbers=numbers, keep=keep)
    nothing = [(name, "string") for name in keep] + list(zip(COLUMNS, _TYPES, strict=True))
    with writing(Path(target)) as file, _Rows(file, nothing, parquet=parquet) as output, ThreadPoolExecutor(2) as pool:
        ahead: Future[Any] = pool.submit(next, blocks, None)
        behind: Future[None] | None = None
        while (block := ahead.result()) is not None:
            ahead = pool.submit(next, blocks, None)
            decided = decide(*block)
            if behind is not None:
                behind.result()
            behind = pool.submit(output.write, decided)
            if on_progress is not None:
                on_progress("deciding", source.share_read, f"{totals.n_rows:,} rows")
        if behind is not None:
            behind.result()
    return totals


def _bought(model: Deployed) -> list[str]:
    """Return what has been bought by the end of each stage, of one branch after another, in their order."""
    first = {0} if model.branched is None else set(model.branched.sets[1].tolist())
    bought: list[str] = []
    for j, stage in enumerate(model.stages):
        bought.append("; ".join(([] if j in first else [bought[-1]]) + list(stage.features)))
    return bought


def _columns(model: Deployed, source: TableFile, keep: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that the model buys, and those of them that are numbers."""
    codes = model.encoder.codes
    source.require(keep)
    clash = sorted(set(keep) & set(COLUMNS))
    if clash:
        raise FileError(f"the columns {clash} cannot be kept: the output has columns of these names.")
    if INCONCLUSIVE in {str(label) for label in model.classes}:
        raise FileError(f"a class is called {INCONCLUSIVE!r}, as rows without a label are; rename it and fit again.")
    bought = {codes[c].name for c in model.columns_bought}
    features = [name for name in source.names if name in bought] if model.named else list(source.names)
    if not model.named and len(features) != model.n_columns:
        raise InvalidInputError(
            f"{source.path} has {len(features)} columns, but the model was fitted on {model.n_columns} without "
            "names; give all of them, in the same order."
        )
    return features, [code.name for code in codes if isinstance(code, NumberCode)] if model.named else features


class _Rows:
    """A table written block by block to an open file."""

    def __init__(self, file: Output, nothing: Sequence[tuple[str, str]], *, parquet: bool) -> None:
        self._file = file
        self._nothing = nothing
        self._parquet = parquet
        self._writer: Any = None

    def __enter__(self) -> Self:
        return self

    def write(self, table: Any) -> None:
        """Add rows."""
        import pyarrow

        if not self._parquet:
            _check_plain(table)
        try:
            self._writer_for(table.schema).write_table(table)
        except pyarrow.ArrowException as error:
            raise FileError(f"a block of rows cannot be written: {first_line(error)}") from error

    def _writer_for(self, schema: Any) -> Any:
        from pyarrow import csv, parquet

        if self._writer is None:
            self._writer = (parquet.ParquetWriter if self._parquet else csv.CSVWriter)(self._file, schema)
        return self._writer

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        import pyarrow

        if kind is None:
            self._writer_for(pyarrow.schema(self._nothing)).close()


def _check_plain(table: Any) -> None:
    """Raise for columns that a CSV file cannot hold."""
    from pyarrow import types

    for field in table.schema:
        if types.is_nested(field.type) or "binary" in str(field.type):
            raise FileError(
                f"the column {field.name!r} holds {field.type}, which CSV cannot hold; write a Parquet file (named "
                ".parquet), or do not keep the column."
            )


def _chosen(places: NDArray[np.intp], names: Sequence[str]) -> Any:
    """Return the name at each place, as an Arrow column that holds each name once."""
    import pyarrow

    column = pyarrow.DictionaryArray.from_arrays(places.astype(np.int32), pyarrow.array(names, pyarrow.string()))
    return pyarrow.chunked_array([column])
