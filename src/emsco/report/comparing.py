"""Models side by side in a terminal: two models on the same rows, and one before and after retraining."""

from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table as Grid
from rich.text import Text

from emsco.deployed.comparison import Comparison
from emsco.deployed.evaluation import Evaluation, Result
from emsco.deployed.model import Deployed
from emsco.report.console import console, say
from emsco.report.learning import judged


def print_comparison(comparison: Comparison) -> None:
    """Print what two models make of the same rows, and which is better at what."""
    one, two = comparison.names
    say(f"{comparison.n_rows} cases; both models say the same of {comparison.n_same}.")
    grid = _grid("", one, two, "difference", "95 % interval")
    for f in comparison.figures:
        scale, digits, unit = (1.0, 2, "") if f.figure == "mean_cost" else (100.0, 1, " %")
        if f.difference != f.difference:
            figures = [_number(f.first, scale, digits, unit), _number(f.second, scale, digits, unit), "-", "-"]
        else:
            figures = [
                _number(f.first, scale, digits, unit),
                _number(f.second, scale, digits, unit),
                f"{scale * f.difference:+,.{digits}f}",
                f"{scale * f.low:+,.{digits}f} to {scale * f.high:+,.{digits}f}",
            ]
        grid.add_row(Text(f.name), *figures)
    console().print(grid)
    for sentence in (*comparison.verdicts(), *comparison.remarks):
        say(sentence[0].upper() + sentence[1:])


def retrained_record(
    before: Deployed, old_on_new: Result, after: Deployed, test: Evaluation | None
) -> list[dict[str, Any]]:
    """Return the figures of the design in use before and after retraining, each with the rows it comes from."""
    results: list[tuple[str, str, Any]] = [("before", f"{old_on_new.n_rows} new rows", old_on_new)]
    if before.front is not None:
        when = "last retraining" if before.origin.retrained else "fit"
        rows = f"{before.front.n_samples} {judged(before)} rows of the {when}"
        results.insert(0, ("before", rows, before.front[before.point]))
    if after.front is not None:
        results.append(("after", f"{after.front.n_samples} new rows, {judged(after)}", after.front[after.point]))
    if test is not None:
        results.append(("after", f"{test.n_rows} test rows", test.points[after.point]))
    return [
        {"stages": stages, "on": rows, "coverage": figures.coverage, "accuracy": figures.accuracy,
         "mean_cost": figures.mean_cost}
        for stages, rows, figures in results
    ]  # fmt: skip


def print_retrained(figures: list[dict[str, Any]], after: Deployed) -> None:
    """Print the figures of the design in use before and after retraining."""
    grid = _grid("stages", "on", "coverage", "accuracy", "mean cost", n_texts=2)
    for record in figures:
        shares = [_number(record[name], 100.0, 1, " %") for name in ("coverage", "accuracy")]
        grid.add_row(record["stages"], record["on"], *shares, f"{record['mean_cost']:,.2f}")
    console().print(grid)
    if after.promise is not None:
        say(f"The figures of the front are for the search threshold {after.policy.searched_with:g}.\n{after.promise}")
    elif figures[-1]["stages"] == "before":
        say("A design that was given is not validated; give --test FILE to test the new stages.")


def _number(value: float, scale: float, digits: int, unit: str) -> str:
    return "-" if value != value else f"{scale * value:,.{digits}f}{unit}"


def _grid(*columns: str, n_texts: int = 1) -> Grid:
    """Return an empty table; the first columns are texts, the others figures."""
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for i, name in enumerate(columns):
        grid.add_column(Text(name), justify="left" if i < n_texts else "right", no_wrap=i >= n_texts, overflow="fold")
    return grid
