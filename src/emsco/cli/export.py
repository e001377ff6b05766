"""``emsco export``: the design in use as ONNX graphs."""

from pathlib import Path

import click

from emsco.cli.options import MODEL, Command
from emsco.cli.reading import load_model


@click.command(cls=Command, short_help="Write the design in use as ONNX graphs.")
@MODEL
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER")
def export(model: Path, folder: Path) -> None:
    """Write the design in use as ONNX graphs, one per stage, with a manifest, into FOLDER."""
    load_model(model).export_onnx(folder)
    click.echo(f"Written to {folder}: manifest.json says how the graphs follow each other.")
