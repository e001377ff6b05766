"""``emsco evaluate``: a model on labelled cases."""

from pathlib import Path

import click

from emsco.cli.options import AS_JSON, DATA, FILE_ENCODING, MODEL, TRUTH, Command
from emsco.cli.reading import evaluate_file, load_model, warn_if_seen


@click.command(cls=Command, short_help="Test a model on labelled cases.")
@MODEL
@DATA
@TRUTH
@FILE_ENCODING
@AS_JSON
def evaluate(model: Path, data: Path, target: str | None, file_encoding: str, as_json: bool) -> None:
    """Test MODEL on the labelled cases in DATA, which neither training nor search may have seen."""
    from emsco.report import console as show
    from emsco.report import records

    clf = load_model(model)
    warn_if_seen(clf, model.name, data)
    evaluation = evaluate_file(clf, data, target, file_encoding)
    if as_json:
        records.print_json(records.results_record(clf.deployed_, evaluation))
        return
    show.print_stages(clf.deployed_, evaluation)
    show.print_results(clf.deployed_, evaluation)
