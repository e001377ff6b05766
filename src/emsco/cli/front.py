"""``emsco front``: the Pareto-optimal designs of a model."""

from pathlib import Path

import click

from emsco.cli.options import AS_JSON, FIGURES, MODEL, Command, limits
from emsco.cli.reading import load_model

_SHOWN = 20  # points, unless all are asked for


@click.command(cls=Command, names={"best": "--sort"}, short_help="List the Pareto-optimal designs.")
@MODEL
@limits
@click.option(
    "--sort",
    type=click.Choice(FIGURES),
    metavar="FIGURE",
    default="fitness",
    show_default=True,
    help="fitness, accuracy, coverage, cost, combined, or an objective of the search.",
)
@click.option("--all", "show_all", is_flag=True, help=f"Show all points, not the first {_SHOWN}.")
@AS_JSON
def front(
    model: Path,
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    sort: str,
    show_all: bool,
    as_json: bool,
) -> None:
    """List the Pareto-optimal designs of MODEL, with their figures on the validation rows.

    With limits, only the designs within them.
    """
    from emsco.report import console as show
    from emsco.report import records
    from emsco.report.learning import judged

    clf = load_model(model, searched=True)
    points = clf.front_
    listed = points.order(max_cost=max_cost, min_coverage=min_coverage, min_accuracy=min_accuracy, best=sort).tolist()
    if as_json:
        records.print_json([records.point_record(clf.deployed_, i) for i in listed])
        return
    show.print_front(clf.deployed_, listed if show_all else listed[:_SHOWN])
    if not show_all and len(listed) > _SHOWN:
        click.echo(f"... and {len(listed) - _SHOWN} more: --all")
    show.say(
        f"{len(listed)} of {len(points)} designs, * in use. The figures are optimistic: the designs were selected on "
        f"the same {points.n_samples} {judged(clf.deployed_)} rows."
    )
