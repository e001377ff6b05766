"""``emsco predict``: the cases of a file."""

from pathlib import Path
import sys
from typing import Any

import click

from emsco.cli.options import AS_JSON, CLUSTER, FILE_ENCODING, MODEL, Command, not_over
from emsco.cli.partitioned import working_on
from emsco.cli.reading import load_model


@click.command(cls=Command, short_help="Decide the cases of a file.")
@MODEL
@click.argument("data", metavar="DATA")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="CSV or, by its name, Parquet file to write; of several files, or with --cluster, a folder.",
)
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column of DATA to repeat in the output; repeatable.")
@click.option(
    "--escape-formulas",
    is_flag=True,
    help="Write an apostrophe before text that a spreadsheet would take for a formula, such as =1+1.",
)
@CLUSTER
@FILE_ENCODING
@AS_JSON
def predict(
    model: Path,
    data: str,
    output: Path,
    keep: tuple[str, ...],
    escape_formulas: bool,
    cluster: str | None,
    file_encoding: str,
    as_json: bool,
) -> None:
    """Decide every case in DATA, a CSV or Parquet file of any length, within half a gigabyte of memory.

    DATA may also be a folder of files, or a pattern in quotes such as 'rows/*.parquet'. The output is then a folder of
    Parquet files and _manifest.json, which says what each of them holds. If the run is stopped, the same command
    continues. With --cluster, the workers of a Dask cluster decide.

    The output has a row per case: label (or "inconclusive"), confidence, stage (from 1), cost and what was bought.
    Columns that no case needs may be absent; cells that a case does not buy are not read. Cells of --keep are written
    as they are; with --escape-formulas the output is safe to open in a spreadsheet.
    """
    from emsco.report import records

    clf = load_model(model)
    options = {"keep": keep, "escape_formulas": escape_formulas}
    if cluster is not None or not Path(data).is_file():
        totals = _decide_files(clf, model, data, output, cluster, {**options, "encoding": file_encoding})
    else:
        not_over(output, model, Path(data))
        totals = _decide_file(clf, Path(data), output, file_encoding, options)
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


def _decide_file(clf: Any, data: Path, output: Path, encoding: str, options: dict[str, Any]) -> Any:
    """Decide the cases of one file, in this process."""
    from emsco.data.files import TableFile
    from emsco.deployed.streaming import predict_file
    from emsco.fitting.progress import PhaseLine

    source = TableFile(data, encoding=encoding)
    with PhaseLine(shown=sys.stderr.isatty()) as line:
        return predict_file(clf.deployed_, source, output, **options, on_progress=line)


def _decide_files(clf: Any, model: Path, data: str, output: Path, cluster: str | None, options: dict[str, Any]) -> Any:
    """Decide the cases of many files into a folder, in this process or on a cluster."""
    from emsco.cli.reading import digest_of
    from emsco.cluster.crew import Crew
    from emsco.cluster.dataset import How, found_files, predict_files
    from emsco.fitting.progress import PhaseLine

    files = found_files(data)
    with working_on(cluster) as client, PhaseLine(shown=sys.stderr.isatty()) as line:
        crew = None if client is None else Crew(client)
        totals, n_before = predict_files(
            clf.deployed_, digest_of(model), files, output, crew=crew, how=How(**options), on_progress=line
        )
    if n_before:
        click.echo(f"{n_before:,} parts were there already.", err=True)
    return totals
