"""``emsco front``: the Pareto-optimal designs of a model."""

from pathlib import Path

import click

from emsco.cli.options import AS_JSON, FIGURES, MODEL, Command, Figure, limits, limits_of
from emsco.cli.reading import load_model

_SHOWN = 20  # points within limits, unless all are asked for


@click.command(cls=Command, names={"best": "--sort"}, short_help="List the Pareto-optimal designs.")
@MODEL
@limits
@click.option(
    "--sort",
    type=Figure(FIGURES),
    metavar="FIGURE",
    help="fitness, accuracy, coverage, cost, combined, or an objective of the search.  [default: fitness]",
)
@click.option("--all", "show_all", is_flag=True, help=f"Show all points, not a shortlist or the first {_SHOWN}.")
@click.option(
    "--errors",
    "by_errors",
    is_flag=True,
    help="Show from which multiple of the prices of errors on which point costs least.",
)
@AS_JSON
def front(
    model: Path,
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    min_recall: tuple[str, ...],
    min_precision: tuple[str, ...],
    sort: str | None,
    show_all: bool,
    by_errors: bool,
    as_json: bool,
) -> None:
    """List Pareto-optimal designs of MODEL, with their figures on the validation rows.

    By default a shortlist of about ten clearly different ones, each with the reason to take it. With limits, the
    designs within them; with --sort, the best by a figure; with --all, all of them.
    """
    from emsco.report import console as show
    from emsco.report import records
    from emsco.report.learning import judged, selected

    clf = load_model(model, searched=True)
    points = clf.front_
    if by_errors:
        steps = points.by_price_of_errors()
        records.print_json(steps.to_records()) if as_json else show.print_sheet(steps.sheet())
        return
    within = limits_of(max_cost, min_coverage, min_accuracy, min_recall, min_precision)
    listed = points.order(**within, best=sort or "fitness").tolist()
    if as_json:
        reasons = {pick.point: pick.reason for pick in points.shortlist(in_use=clf.point_)}
        records.print_json([{**records.point_record(clf.deployed_, i), "shortlisted": reasons.get(i)} for i in listed])
        return
    basis = f"The figures are those of {points.n_samples:,} {judged(clf.deployed_)} rows. {selected(clf.deployed_)}"
    if not (within or sort or show_all):
        show.print_shortlist(clf.deployed_)
        show.say(basis)
        return
    show.print_front(clf.deployed_, listed if show_all else listed[:_SHOWN])
    if not show_all and len(listed) > _SHOWN:
        click.echo(f"... and {len(listed) - _SHOWN} more: --all")
    show.say(f"{len(listed)} of {len(points)} designs, * in use. {basis}")
