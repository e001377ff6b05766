"""``emsco predict``: the cases of a file."""

from pathlib import Path
import sys

import click

from emsco.cli.options import AS_JSON, DATA, FILE, FILE_ENCODING, MODEL, Command, not_over
from emsco.cli.reading import load_model


@click.command(cls=Command, short_help="Decide the cases of a file.")
@MODEL
@DATA
@click.option("-o", "--output", type=FILE, required=True, help="CSV or, by its name, Parquet file to write.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column of DATA to repeat in the output; repeatable.")
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="Write an apostrophe before text that a spreadsheet would take for a formula, such as =1+1.",
)
@FILE_ENCODING
@AS_JSON
def predict(
    model: Path,
    data: Path,
    output: Path,
    keep: tuple[str, ...],
    escape_formulas: bool,
    file_encoding: str,
    as_json: bool,
) -> None:
    """Decide every case in DATA, a CSV or Parquet file of any length, within half a gigabyte of memory.

    The output has a row per case: label (or "inconclusive"), confidence, stage (from 1), cost and what was bought.
    Columns that no case needs may be absent; cells that a case does not buy are not read. Cells of --keep are written
    as they are; with --escape-formulas the output is safe to open in a spreadsheet.
    """
    from emsco.data.files import TableFile
    from emsco.deployed.streaming import predict_file
    from emsco.fitting.progress import PhaseLine
    from emsco.report import records

    not_over(output, model, data)
    clf = load_model(model)
    source = TableFile(data, encoding=file_encoding)
    with PhaseLine(shown=sys.stderr.isatty()) as line:
        totals = predict_file(
            clf.deployed_, source, output, keep=keep, escape_formulas=escape_formulas, on_progress=line
        )
    mean_cost = totals.cost / totals.n_rows if totals.n_rows else None
    if as_json:
        records.print_json(
            {
                "output": str(output),
                "rows": totals.n_rows,
                "conclusive": totals.n_conclusive,
                "left_at_stage": totals.left,
                "mean_cost": mean_cost,
            }
        )
        return
    cost = "" if mean_cost is None else f", mean cost {mean_cost:,.2f}"
    click.echo(
        f"{totals.n_rows:,} cases: {totals.n_conclusive:,} with a label, {totals.n_rows - totals.n_conclusive:,} "
        f"inconclusive{cost}. Written to {output}."
    )
