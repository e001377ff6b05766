"""``emsco retrain``: the designs of a model, trained again on other cases."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
import warnings

import click

from emsco.cli.options import (
    AS_JSON,
    DATA,
    FILE,
    FILE_ENCODING,
    GUARANTEE_ROWS,
    MODEL,
    TRUTH,
    Command,
    not_over,
    show_warning,
)
from emsco.cli.reading import digest_of, evaluate_file, load_model, read_for, warn_if_seen


@click.command(cls=Command, short_help="Train a model again on other cases.")
@MODEL
@DATA
@TRUTH
@FILE_ENCODING
@GUARANTEE_ROWS
@click.option("--test", type=FILE, metavar="FILE", help="Test the new stages on the labelled cases of this file.")
@click.option("-o", "--output", type=FILE, metavar="FILE", help="Model file to write.  [default: MODEL, replaced]")
@AS_JSON
def retrain(
    model: Path,
    data: Path,
    target: str | None,
    file_encoding: str,
    guarantee_rows: Path | None,
    test: Path | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Train the stages of MODEL again on the labelled cases in DATA, such as those of last year.

    Designs, prices, thresholds and the design in use stay; nothing is searched. DATA needs all columns and all classes
    of the model. The figures of the front become those of DATA. A guarantee is calibrated again, on a share of DATA or
    on --guarantee-rows.
    """
    from emsco.deployed.evaluation import result_of
    from emsco.report import records
    from emsco.report.comparing import print_retrained, retrained_record

    output = model if output is None else output
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no such folder to write a model file to.")
    not_over(output, data, guarantee_rows, test)
    clf = load_model(model)
    X, y, n_rows = read_for([clf], data, target, file_encoding)
    warn_if_seen(clf, model.name, data)
    before = clf.deployed_
    before.require_chain("retraining")
    if guarantee_rows is not None and before.promise is None:
        raise click.UsageError(f"--guarantee-rows: {model} has no guarantee to calibrate; leave them out.")
    X_cal, y_cal, _ = (None,) * 3 if guarantee_rows is None else read_for([clf], guarantee_rows, target, file_encoding)
    with warnings.catch_warnings(record=True) as caught:
        clf.retrain(X, y, X_cal=X_cal, y_cal=y_cal)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            show_warning(warning.message)
    old_on_new = result_of(before.decide(X), y, before.classes, before.paid.tolist())
    evaluation = None if test is None else evaluate_file(clf, test, target, file_encoding)
    clf.save(output, evaluation=evaluation, notes={**clf.notes_, **_notes(data, n_rows, test, evaluation)})
    figures = retrained_record(before, old_on_new, clf.deployed_, evaluation)
    if as_json:
        records.print_json({"model": str(output), "rows": n_rows, "figures": figures})
    else:
        print_retrained(figures, clf.deployed_)
        click.echo(f"Written to {output}.")


def _notes(data: Path, n_rows: int, test: Path | None, evaluation: Any) -> dict[str, Any]:
    """Return where the stages come from now; the notes of the search stay."""
    return {
        "retrained on": data.name,
        "retrained on sha256": digest_of(data),
        "retrained rows": n_rows,
        "retrained": datetime.now(UTC).isoformat(timespec="seconds"),
        "test rows": 0 if evaluation is None else evaluation.n_rows,
        "test file": "none" if test is None else test.name,
    }
