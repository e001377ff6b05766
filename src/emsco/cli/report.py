"""``emsco report``: a page for the browser."""

from pathlib import Path

import click

from emsco.cli.options import FILE, FILE_ENCODING, MODEL, TRUTH, Command, not_over
from emsco.cli.reading import evaluate_file, load_model, warn_if_seen


@click.command(cls=Command, short_help="Write a page for the browser.")
@MODEL
@click.option("-o", "--output", type=FILE, default=Path("report.html"), show_default=True, help="Page to write.")
@click.option("--data", type=FILE, metavar="FILE", help="Test on these labelled cases instead of the held-out ones.")
@TRUTH
@FILE_ENCODING
def report(model: Path, output: Path, data: Path | None, target: str | None, file_encoding: str) -> None:
    """Write a page about MODEL that any browser shows offline: the front to choose from, the design, its results."""
    from emsco.report.html import write_report

    not_over(output, model, data)
    clf = load_model(model)
    if data is not None:
        warn_if_seen(clf, model.name, data)
    evaluation = clf.evaluation_ if data is None else evaluate_file(clf, data, target, file_encoding)
    write_report(clf, output, evaluation=evaluation, notes={**clf.notes_, "model": str(model)})
    click.echo(f"Written to {output}: open it in a browser.")
