"""Fitted classifiers and their results as tables in a terminal."""

from collections.abc import Iterable
from pathlib import Path
import sys
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType
from rich.markup import escape
from rich.segment import Segment
from rich.table import Table as Grid
from rich.text import Text

from emsco.deployed.evaluation import Evaluation, Result, by_objectives
from emsco.exceptions import printable
from emsco.promises.guarantee import Guarantee
from emsco.promises.thresholds import is_auto, searched_with
from emsco.report.learning import judged, learning_record
from emsco.scoring.front import describe, in_brief, never_bought

_LEAST_BUYS = 24  # characters for what a point buys, beside further figures
_WIDE = 110  # characters; in a narrower terminal an interval stands below its figure


class SafeConsole(Console):
    """A console that prints no control characters but its own: names and notes of a model may hold anything."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the parts to print."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


def console() -> Console:
    """Return where tables go: as wide as the terminal, 110 characters elsewhere."""
    return SafeConsole(width=None if sys.stdout.isatty() else 110, highlight=False)


def say(text: str) -> None:
    """Print a sentence, in a terminal broken between words."""
    console().print(Text(text), soft_wrap=not sys.stdout.isatty())


def _grid(*columns: str) -> Grid:
    """Return a table of figures; columns named with a leading | hold text, and with < text that may be wrapped."""
    grid = Grid(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for name in columns:
        left = name[0] in "<|"
        grid.add_column(name.lstrip("<|"), justify="left" if left else "right", no_wrap=name[0] != "<", overflow="fold")
    return grid


def print_fit(clf: Any, evaluation: Evaluation | None, data: Path, target: str, n_rows: int, output: Path) -> None:
    """Print what a search found, and how the design in use does."""
    certificate = clf.front_.certificate
    say(f"{data.name}: {n_rows} rows to learn {target}"
        + (f", {evaluation.n_rows} rows to test" if evaluation else "")
        + f"; {len(clf.front_.feature_names)} features with a total price of {clf._prices.total:,.6g}.")  # fmt: skip
    if clf._prices.overhead or clf._prices.parallel:
        say(clf._prices.rule)
    if certificate is None:
        points = "1 Pareto-optimal design" if len(clf.front_) == 1 else f"{len(clf.front_)} Pareto-optimal designs"
        say(f"The search found {points} in {clf.search_seconds_:.1f} s; the list need not be complete.")
    elif certificate.proven:
        say(f"{len(clf.front_)} of {certificate.n_designs:,} designs are Pareto-optimal; the list is complete, "
            f"proven in {certificate.seconds:.1f} s.")  # fmt: skip
    else:
        say(f"The search found {len(clf.front_)} of {certificate.n_designs:,} designs so far; the list need not be "
            "complete.")  # fmt: skip
    say(" ".join(learning_record(clf)["in_words"]))
    say(f"\nIn use: point {clf.point_} of the front.")
    print_threshold(clf)
    print_stages(clf, evaluation)
    print_results(clf, evaluation)
    if isinstance(clf.threshold, Guarantee):
        say(f"\n{clf.guarantee_}\n")
    say(f"Written to {output}. Next: emsco front {output}, emsco report {output} -o report.html")


def print_front(clf: Any, points: list[int]) -> None:
    """Print points of the front, a line each; what does not fit beside the figures stands below them."""
    names = ["point", "stages", "coverage", "accuracy", "mean cost"]
    extra = {name: [f"{values[i]:,.4g}" for i in points] for name, values in clf.front_.extra.items()}
    if isinstance(clf.threshold, Guarantee):
        extra["promise"] = ["kept" if clf._promise(i).passed else "not kept" for i in points]
    room = sum(map(len, names)) + sum(max(map(len, (name, *shown))) for name, shown in extra.items())
    below = console().width - room - 3 * (len(names) + len(extra)) < _LEAST_BUYS
    grid = _grid(*names, *([] if below else map(escape, extra)), "<buys, stage | stage")
    for k, i in enumerate(points):
        point = clf.front_[i]
        mark = "*" if i == clf.point_ else " "
        others = [shown[k] for shown in extra.values()]
        buys = describe(point.design, clf.front_.feature_names)
        if below:
            buys += "\n" + ", ".join(f"{name} {shown}" for name, shown in zip(extra, others, strict=True))
            others = []
        grid.add_row(
            f"{mark}{i}", str(point.n_stages), _percent(point.coverage), _percent(point.accuracy),
            f"{point.mean_cost:,.2f}", *others, Text(buys), style="bold" if i == clf.point_ else None,
        )  # fmt: skip
    console().print(grid)
    if isinstance(clf.threshold, Guarantee):
        say(f"Figures are those at the threshold {clf.threshold.searched:g} of the search. At the calibrated one of a "
            "design they differ, and where the promise is not kept, labels are withheld.")  # fmt: skip


def print_threshold(clf: Any) -> None:
    """Print the thresholds in use."""
    own = "Its own threshold" if is_auto(clf.threshold) else "Threshold"
    calibrated = ", calibrated" if isinstance(clf.threshold, Guarantee) else ""
    say(f"{own}, the least confidence of a label{calibrated}: {clf._rule().in_words(clf.classes_.tolist())}.")


def print_stages(clf: Any, evaluation: Evaluation | None) -> None:
    """Print what each stage buys, and what becomes of the test cases there."""
    result = None if evaluation is None else evaluation.points[getattr(clf, "point_", 0)]
    grid = _grid("stage", "<buys", "price", *(("test cases", "labelled", "correct") if result else ()))
    waiting = result.n_rows if result else 0
    for j, stage in enumerate(clf.stages_):
        figures: list[str] = []
        if result is not None:
            figures = [str(waiting), str(result.answered[j]), str(result.right[j])]
            waiting -= result.answered[j]
        grid.add_row(str(j + 1), Text(", ".join(stage.features)), f"{stage.price:,.6g}", *figures)
    if result is not None:
        grid.add_row("", "inconclusive", "", str(waiting), "", "")
    console().print(grid)
    if never := never_bought(clf.design_, clf._prices.unit_names):
        say(f"Never bought: {in_brief(never, most=20)}.\n")


def print_results(clf: Any, evaluation: Evaluation | None) -> None:
    """Print the design in use beside buying everything."""
    if evaluation is None:
        point = clf.front_[clf.point_] if hasattr(clf, "front_") else None
        if point is not None:
            say(f"On {clf.front_.n_samples} {judged(clf)} rows, on which the design was selected (optimistic): "
                f"coverage {_percent(point.coverage)}, accuracy {_percent(point.accuracy)}, mean cost "
                f"{point.mean_cost:,.2f}.")  # fmt: skip
        return
    grid = _grid(f"<on {evaluation.n_rows} test cases", "coverage", "accuracy", "correct labels", "mean cost")
    joint = " " if console().width >= _WIDE else "\n"
    searched = searched_with(clf.threshold)
    same = "same threshold" if searched is None else f"threshold {searched:g}"
    results = {
        "the design in use": evaluation.points[getattr(clf, "point_", 0)],
        f"buy everything, {same}": evaluation.everything,
        "buy everything, always answer": evaluation.always,
    }
    for name, result in results.items():
        given, right = sum(result.answered), sum(result.right)
        grid.add_row(
            name, _with_interval(result, "coverage", joint), _with_interval(result, "accuracy", joint),
            f"{right} of {given}", _with_interval(result, "mean_cost", joint),
        )  # fmt: skip
    console().print(grid)
    print("In brackets: 95 % intervals.")
    if worth := by_objectives(getattr(clf, "objectives", None), [*results.values()]):
        grid = _grid("<by the other objectives", *map(escape, worth))
        for k, name in enumerate(results):
            grid.add_row(name, *(f"{values[k]:,.4g}" for values in worth.values()))
        console().print(grid)


def print_prices(clf: Any) -> None:
    """Print what can be bought."""
    prices = clf._prices
    names = [code.name for code in clf._encoder.codes]
    grid = _grid("<buy", "<columns", "price", "<group", "discount")
    for i, unit in enumerate(prices.unit_names):
        columns = [names[c] for c in prices.unit_columns[i]]
        groups = [group for group, members in zip(prices.group_names, prices.groups.T, strict=True) if members[i]]
        discount = f"{prices.own_prices[i]:,.6g}" if groups else ""
        grid.add_row(
            Text(unit), Text(", ".join(columns)), f"{prices.prices[i]:,.6g}", Text(", ".join(groups)), discount
        )
    console().print(grid)


def _with_interval(result: Result, figure: str, joint: str) -> str:
    low, high = result.interval(figure)
    if figure == "mean_cost":
        shown = f"{result.mean_cost:,.2f}"
        return shown if low == high else f"{shown}{joint}({low:,.1f}-{high:,.1f})"
    return f"{_percent(getattr(result, figure))}{joint}({100 * low:.0f}-{100 * high:.0f})"


def _percent(share: float) -> str:
    return "-" if share != share else f"{100 * share:.1f} %"


def print_facts(facts: dict[str, Any]) -> None:
    """Print names and values, a line each."""
    grid = Grid(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts.items():
        grid.add_row(name, Text(", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    console().print(grid)
