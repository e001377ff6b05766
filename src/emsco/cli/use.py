"""``emsco use``: another design of the front."""

from pathlib import Path

import click

from emsco.cli.options import AS_JSON, BEST, KNEE, MODEL, ONE_ERROR, Command, choice_of, limits, limits_of
from emsco.cli.reading import chosen_point, load_model


@click.command(cls=Command, short_help="Put another design into use.")
@MODEL
@click.argument("point", type=int, required=False)
@limits
@BEST
@KNEE
@ONE_ERROR
@AS_JSON
def use(
    model: Path,
    point: int | None,
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    min_recall: tuple[str, ...],
    min_precision: tuple[str, ...],
    best: str | None,
    knee: bool,
    one_standard_error: bool,
    as_json: bool,
) -> None:
    """Put another POINT of the front into use: its number in `emsco front`, or the best within limits."""
    from emsco.report import console as show
    from emsco.report import records

    within = limits_of(max_cost, min_coverage, min_accuracy, min_recall, min_precision)
    choice = choice_of(within, best, knee, one_standard_error)
    if point is not None and choice is not None:
        raise click.UsageError(f"give the number of a point, {point}, or how to choose one; not both.")
    if point is None and choice is None:
        raise click.UsageError("give the number of a point, limits such as --max-cost 40, --best FIGURE or --knee.")
    clf = load_model(model, searched=True)
    clf.use(point if choice is None else chosen_point(clf, choice))
    clf.save(model)
    if as_json:
        records.print_json(records.point_record(clf.deployed_, clf.point_))
        return
    show.print_front(clf.deployed_, [clf.point_])
    show.print_threshold(clf.deployed_)
    show.print_stages(clf.deployed_, clf.evaluation_)
    show.print_results(clf.deployed_, clf.evaluation_)
    if clf.deployed_.promise is not None:
        show.say(f"\n{clf.deployed_.promise}")
