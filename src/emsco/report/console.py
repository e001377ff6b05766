"""Fitted classifiers and their results as tables in a terminal."""

from collections.abc import Iterable, Sequence
from pathlib import Path
import sys
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from emsco.deployed.evaluation import Evaluation, Result, by_objectives
from emsco.deployed.model import Deployed, the_front
from emsco.deployed.money import money_sheet
from emsco.exceptions import printable
from emsco.markup import Sheet
from emsco.report.learning import judged, learning_record, selected, timed_out_words
from emsco.report.money import validation_money
from emsco.report.outlook import outlook_record, outlook_words
from emsco.report.tree import stage_rows, tree_rows
from emsco.scoring.classes import base_rate, class_sheet
from emsco.scoring.rejection import as_rule
from emsco.scoring.tables import with_facts
from emsco.scoring.words import NEVER_FOUND, in_brief, never_bought, tenths, tenths_of_worst

_LEAST_BUYS = 40  # characters for the design, beside the other columns
_WIDE = 110  # characters; a narrower terminal shows an interval below its figure


class SafeConsole(Console):
    """A console that prints no control characters but its own: names and notes of a model may hold anything."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the parts to print."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console() -> Console:
    """Return the console for tables: as wide as the terminal, or 110 characters where there is none."""
    return SafeConsole(width=None if sys.stdout.isatty() else 110, highlight=False)


def say(text: str) -> None:
    """Print a sentence; a terminal wraps it between words."""
    console().print(Text(text), soft_wrap=not sys.stdout.isatty())


def _grid(*columns: str) -> Grid:
    """Return an empty table of figures. A leading | marks a text column, a leading < a text column that may wrap."""
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in columns:
        left = name[0] in "<|"
        grid.add_column(name.lstrip("<|"), justify="left" if left else "right", no_wrap=name[0] != "<", overflow="fold")
    return grid


def print_fit(
    model: Deployed, evaluation: Evaluation | None, data: Path, target: str, n_rows: int, output: Path
) -> None:
    """Print the results of a search and of the design in use."""
    front = the_front(model)
    certificate = front.certificate
    say(f"{data.name}: target {target}, {n_rows} training rows"
        + (f", {evaluation.n_rows} test rows" if evaluation else "")
        + f"; {len(front.feature_names)} features, total price {model.prices.total:,.6g}.")  # fmt: skip
    if model.prices.overhead or model.prices.parallel:
        say(model.prices.rule)
    if certificate is None:
        points = "1 Pareto-optimal point" if len(front) == 1 else f"{len(front)} Pareto-optimal points"
        say(f"The search found {points} in {model.origin.search_seconds:.1f} s. Better designs may exist.")
    elif certificate.proven:
        say(f"{len(front)} of {certificate.n_designs:,} designs are Pareto-optimal; the list is complete "
            f"(proven in {certificate.seconds:.1f} s).")  # fmt: skip
    else:
        say(f"{len(front)} designs found so far, of {certificate.n_designs:,}; the front is not proven.")
    if cut := timed_out_words(model):
        say(cut)
    say(" ".join(learning_record(model)["in_words"]))
    say(f"\nIn use: point {model.point} of the front.")
    print_threshold(model)
    print_stages(model, evaluation)
    print_results(model, evaluation)
    print_outlook(model, evaluation)
    if model.promise is not None:
        say(f"\n{model.promise}\n")
    say(f"Written to {output}. Next: emsco front {output}, emsco report {output} -o report.html")


def print_outlook(model: Deployed, evaluation: Evaluation | None) -> None:
    """Print what to expect of the point in use on new cases, if it is the one that fit chose."""
    record = outlook_record(model, evaluation)
    if record is not None and record["point"] == model.point:
        say(f"\n{' '.join(outlook_words(record))}\n")


def print_shortlist(model: Deployed) -> None:
    """Print a few clearly different points of the front, each with the reason to take it."""
    picked = the_front(model).shortlist(in_use=model.point)
    promises = {"promise": _promised(model, picked.points)} if model.promise is not None else {}
    print_sheet(picked.sheet(promises, rest="all with --all"))
    _say_searched(model)


def _promised(model: Deployed, points: list[int]) -> list[str]:
    return ["kept" if model.promises[i].passed else "not kept" for i in points]


def _say_searched(model: Deployed) -> None:
    """Say that the figures of the front are not those of calibrated thresholds."""
    if model.promise is not None:
        say(f"These figures are for the search threshold {model.policy.searched_with:g}. They differ at the calibrated "
            "threshold of a design; a design that does not keep the promise gives no label.")  # fmt: skip


def print_front(model: Deployed, points: list[int]) -> None:
    """Print points of the front; figures that do not fit the line go to the design."""
    front, by_class = the_front(model), the_front(model).confusion is not None
    extra = {name: [f"{values[i]:,.4g}" for i in points] for name, values in front.extra.items()}
    if model.promise is not None:
        extra["promise"] = _promised(model, points)
    names = ["point", "stages", "coverage", "accuracy", "mean cost", *(["worst recall"] if by_class else [])]
    room = sum(max(map(len, column)) + 2 for column in ([name] for name in names))
    room += sum(max(map(len, (name, *shown))) + 2 for name, shown in extra.items())
    beside = console().width - room >= _LEAST_BUYS
    rows = []
    for k, i in enumerate(points):
        point, mark = front[i], "*" if i == model.point else " "
        worst = [tenths_of_worst(front.worst_recall[i])] if by_class else []
        buys, others = front.in_words(i), [shown[k] for shown in extra.values()]
        facts: list[str] = []
        if not beside:
            facts, others = [f"{name} {shown}" for name, shown in zip(extra, others, strict=True)], []
        buys = with_facts(buys, facts, front, i)
        figures = (tenths(point.coverage), tenths(point.accuracy), f"{point.mean_cost:,.2f}")
        rows.append((f"{mark}{i}", str(point.n_stages), *figures, *worst, *others, buys))
    head = (*names, *(extra if beside else ()), "buys, stage | stage")
    never = (NEVER_FOUND,) if (front.worst_recall[points] == 0).any() else ()
    print_sheet(Sheet(head, tuple(rows), (len(head) - 1,), (), never, most_lines=None))
    _say_searched(model)


def print_sheet(sheet: Sheet) -> None:
    """Print a table that fits the terminal; a class that is never found is red, and marked in any case."""
    text = Text(sheet.to_text(console().width))
    text.highlight_regex(r"\A.*", "bold")
    text.highlight_regex(r"(?m)^ *\*\d+ .*", "bold")  # the point in use
    text.highlight_regex(r"(?m)\b0(\.0 %)? !|^! .*", "bold red")
    console().print(text, soft_wrap=True)


def print_threshold(model: Deployed) -> None:
    """Print when the design in use gives a label."""
    calibrated = "" if model.promise is None else " (calibrated)"
    say(f"Labels{calibrated}: {model.rule_words}.")


def print_stages(model: Deployed, evaluation: Evaluation | None) -> None:
    """Print the purchases of each stage, and its decisions on the test cases; of a tree, branch by branch."""
    result = None if evaluation is None else evaluation.points[model.point]
    grid = _grid("stage", "<buys", "price", *(("test cases", "labels", "correct") if result else ()))
    for row in tree_rows(model, result) if model.branched is not None else stage_rows(model, result):
        grid.add_row(row[0], Text(row[1]), *row[2:])
    console().print(grid)
    if never := never_bought(model.design, model.prices.unit_names):
        say(f"Never bought: {in_brief(never, most=20)}.\n")


def print_classes(confusion: Any, classes: Sequence[Any]) -> None:
    """Print recall and precision of each class, the counts by label, and the base rate."""
    print_sheet(class_sheet(confusion, classes, console().width))
    say(base_rate(np.asarray(confusion).sum(axis=1), classes))


def print_results(model: Deployed, evaluation: Evaluation | None) -> None:
    """Print the results of the design in use, beside those of buying everything."""
    if evaluation is None:
        front = model.front
        if front is not None:
            if (money := validation_money(model)) is not None:
                print_sheet(money_sheet(money, front.n_samples))
            point = front[model.point]
            say(f"On {front.n_samples:,} {judged(model)} rows: coverage {tenths(point.coverage)}, accuracy "
                f"{tenths(point.accuracy)}, mean cost {point.mean_cost:,.2f}. {selected(model)}")  # fmt: skip
            if front.confusion is not None:
                print_classes(front.confusion[model.point], front.classes)
        return
    if evaluation.errors is not None:
        print_sheet(money_sheet(evaluation.money, evaluation.n_rows))
    grid = _grid(f"<on {evaluation.n_rows} test cases", "coverage", "accuracy", "correct labels", "mean cost")
    joint = " " if console().width >= _WIDE else "\n"
    searched = model.policy.searched_with
    same = "same threshold" if searched is None else f"threshold {searched:g}"
    results = {
        "the design in use": evaluation.points[model.point],
        f"buy everything, {same}": evaluation.everything,
        "buy everything, always answer": evaluation.always,
    }
    if evaluation.everything == evaluation.always:
        results = {"the design in use": evaluation.points[model.point], "buy everything": evaluation.always}
    rules = (model.rule, model.rule_of_everything, as_rule(0.0))
    n_stages, n_classes = (model.n_stages, 1, 1), model.classes.size
    # A label for every case is no matter of chance, so it has no interval.
    everyone = [name for name, rule, n in zip(results, rules, n_stages, strict=False) if rule.labels_all(n, n_classes)]
    if model.branched is not None:
        everyone = [name for name in everyone if name != next(iter(results))]
    for name, result in results.items():
        given, right = sum(result.answered), sum(result.right)
        grid.add_row(
            name, tenths(1.0) if name in everyone else _with_interval(result, "coverage", joint),
            _with_interval(result, "accuracy", joint), f"{right} of {given}",
            _with_interval(result, "mean_cost", joint),
        )  # fmt: skip
    console().print(grid)
    print("Brackets: 95 % confidence intervals.")
    if worth := by_objectives(model.objectives, [*results.values()], evaluation.classes):
        grid = _grid("<other objectives", *map(escape, worth))
        for k, name in enumerate(results):
            grid.add_row(name, *(f"{values[k]:,.4g}" for values in worth.values()))
        console().print(grid)
    say("\nThe design in use, by class:")
    print_classes(evaluation.points[model.point].confusion, evaluation.classes)


def print_prices(model: Deployed) -> None:
    """Print the price list."""
    prices = model.prices
    names = model.column_names
    grid = _grid("<buy", "<columns", "price", "<group", "discount")
    for i, unit in enumerate(prices.unit_names):
        columns = ", ".join(names[c] for c in prices.unit_columns[i])
        groups = [group for group, members in zip(prices.group_names, prices.groups.T, strict=True) if members[i]]
        discount = f"{prices.own_prices[i]:,.6g}" if groups else ""
        if sources := prices.source_names(i):
            columns += f" (from {', '.join(sources)})"
        grid.add_row(Text(unit), Text(columns), f"{prices.prices[i]:,.6g}", Text(", ".join(groups)), discount)
    console().print(grid)


def _with_interval(result: Result, figure: str, joint: str) -> str:
    low, high = result.interval(figure)
    if figure == "mean_cost":
        shown = f"{result.mean_cost:,.2f}"
        return shown if low == high else f"{shown}{joint}({low:,.1f}-{high:,.1f})"
    return f"{tenths(getattr(result, figure))}{joint}({100 * low:.0f}-{100 * high:.0f})"


def print_facts(facts: dict[str, Any]) -> None:
    """Print names and values, one line each."""
    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, Text(", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    console().print(grid)
