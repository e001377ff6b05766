"""``emsco compare``: two models on the same labelled cases."""

from pathlib import Path

import click

from emsco.cli.options import AS_JSON, DATA, FILE, FILE_ENCODING, TRUTH, Command
from emsco.cli.reading import load_model, read_for, warn_if_seen


@click.command(cls=Command, short_help="Compare two models on the same cases.")
@click.argument("first", type=FILE, metavar="FIRST")
@click.argument("second", type=FILE, metavar="SECOND")
@DATA
@TRUTH
@FILE_ENCODING
@AS_JSON
def compare(first: Path, second: Path, data: Path, target: str | None, file_encoding: str, as_json: bool) -> None:
    """Compare the designs in use of two model files, FIRST and SECOND, on the labelled cases in DATA.

    Neither model may have seen these cases in training or search. Differences are paired by case, with 95 % confidence
    intervals; a difference whose interval contains 0 may be chance.
    """
    from emsco.deployed.comparison import compare as compare_models
    from emsco.report import records
    from emsco.report.comparing import print_comparison

    one, two = load_model(first), load_model(second)
    X, y, _ = read_for([one, two], data, target, file_encoding)
    names = (str(first), str(second)) if first.name == second.name else (first.name, second.name)
    for clf, name in zip((one, two), names, strict=True):
        warn_if_seen(clf, name, data)
    comparison = compare_models(one, two, X, y, names=names)
    if as_json:
        records.print_json(comparison.to_dict())
    else:
        print_comparison(comparison)
