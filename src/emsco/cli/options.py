"""What the commands share: options, messages, and which option sets which parameter of the library."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from emsco.cli.evolving import OPTIONS as EVOLUTION
from emsco.exceptions import EmscoError, printable

INTERRUPTED = 130  # exit code
OPTIONS = {  # a parameter of the library, and the option that sets it
    **EVOLUTION,
    "C": "--regularisation",
    "X_cal": "--guarantee-rows",
    "accuracy": "--guarantee",
    "best": "--best",
    "branch": "--branch",
    "calibration": "--calibration",
    "cluster": "--cluster",
    "confidence": "--confidence",
    "costs": "--costs",
    "encoding": "--encoding",
    "errors": "--errors",
    "estimator": "--estimator",
    "final_estimator": "--final",
    "max_cost": "--max-cost",
    "max_stages": "--max-stages",
    "min_accuracy": "--min-accuracy",
    "min_coverage": "--min-coverage",
    "min_precision": "--min-precision",
    "min_recall": "--min-recall",
    "n_jobs": "--jobs",
    "objectives": "--objective",
    "one_standard_error": "--one-standard-error",
    "overhead": "--overhead",
    "parallel": "--parallel",
    "per_class": "--guarantee-per-class",
    "point": "POINT",
    "preset": "--preset",
    "products": "--products",
    "random_state": "--seed",
    "refit": "--refit",
    "removal": "--removal",
    "search": "--search",
    "threshold": "--threshold",
    "time_limit": "--time-limit",
    "validation": "--validation",
    "y": "--target",
    "y_cal": "--guarantee-rows",
}
OBJECTIVES = [
    "coverage",
    "accuracy",
    "cost",
    "fpr",
    "fnr",
    "stages",
    "worst_class_accuracy",
    "worst_class_recall",
    "loss",
]
FIGURES = ["fitness", "combined", *OBJECTIVES]  # that points of a front can be sorted by, and chosen
NO_WORSE = "no_worse"  # as in emsco.scoring.choice, which would load numpy

_RECALL = "recall_"  # begins the name of the recall of a class


class Figure(click.Choice[str]):
    """The name of a figure: one of the choices, or recall_CLASS."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a name, or fail."""
        return value if recalled(value) else super().convert(value, param, ctx)


def recalled(figure: str) -> str | None:
    """Return the class whose recall a figure is; None if it is another figure.

    Examples
    --------
    >>> recalled("recall_sick"), recalled("coverage")
    ('sick', None)
    """
    return figure.removeprefix(_RECALL) or None if figure.startswith(_RECALL) else None


FILE = click.Path(path_type=Path, dir_okay=False)
MODEL = click.argument("model", type=FILE, metavar="MODEL")
DATA = click.argument("data", type=FILE, metavar="DATA")
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts instead of tables.")
FILE_ENCODING = click.option("--file-encoding", default="utf-8", show_default=True, help="Encoding of CSV files.")
CLUSTER = click.option(
    "--cluster",
    metavar="WHERE",
    help="Work on a Dask cluster: local or local:N (processes on this machine), the address of a scheduler such as "
    "tcp://10.0.0.1:8786, or the path of its file.",
)
TRUTH = click.option("--target", metavar="COLUMN", help="Column that holds the true label.  [default: as in fit]")
GUARANTEE_ROWS = click.option(
    "--guarantee-rows",
    type=FILE,
    metavar="FILE",
    help="Labelled cases that calibrate the guarantee, drawn as new cases will be; none of DATA.  [default: a share of "
    "DATA]",
)
BEST = click.option(
    "--best",
    type=Figure([NO_WORSE, *FIGURES]),
    metavar="FIGURE",
    help="Figure that decides between the designs within the limits: fitness, accuracy, coverage, cost, combined "
    "(coverage + accuracy + saved share of the price of all features), or an objective of the search. no_worse: the "
    "cheapest design that is no worse than buying all features, for any class.  [default: best: no_worse, with limits "
    "combined; paper: fitness]",
)
KNEE = click.option("--knee", is_flag=True, help="Take the design at the knee of the front.")
ONE_ERROR = click.option(
    "--one-standard-error",
    is_flag=True,
    help="Take the simplest design that is at most one standard error worse than the --best one.",
)

_Function = TypeVar("_Function", bound=Callable[..., Any])


def limits(command: _Function) -> _Function:
    """Add the options that keep points of the front within limits."""
    for option in (
        click.option(
            "--min-precision", multiple=True, metavar="[CLASS=]SHARE",
            help="Least share of the labels of a class, or of each class, that are correct; repeatable.",
        ),
        click.option(
            "--min-recall", multiple=True, metavar="[CLASS=]SHARE",
            help="Least share of the cases of a class, or of each class, that get its label, such as sick=0.95; "
            "repeatable.",
        ),
        click.option("--min-accuracy", type=float, metavar="SHARE", help="Least share of correct labels."),
        click.option("--min-coverage", type=float, metavar="SHARE", help="Least share of labelled cases."),
        click.option("--max-cost", type=float, metavar="PRICE", help="Highest mean cost per case."),
    ):  # fmt: skip
        command = option(command)
    return command


def limits_of(
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    min_recall: tuple[str, ...],
    min_precision: tuple[str, ...],
) -> dict[str, Any]:
    """Return the limits that options set, as arguments of ``Front.choose``."""
    figures: dict[str, Any] = {"max_cost": max_cost, "min_coverage": min_coverage, "min_accuracy": min_accuracy}
    figures["min_recall"] = shares_of("--min-recall", min_recall)
    figures["min_precision"] = shares_of("--min-precision", min_precision)
    return {name: value for name, value in figures.items() if value is not None}


def shares_of(option: str, given: tuple[str, ...]) -> float | dict[str, float] | None:
    """Return a share for all classes, or shares by class; None if there are none.

    Examples
    --------
    >>> shares_of("--min-recall", ("0.9",)), shares_of("--min-recall", ("sick=0.95", "well=0.5"))
    (0.9, {'sick': 0.95, 'well': 0.5})
    """
    if not given:
        return None
    pairs = [text.rpartition("=") for text in given]
    labels = [label.strip() for label, _, _ in pairs]
    said = " ".join(f"{option} {text}" for text in given)
    try:
        numbers = [float(number) for _, _, number in pairs]
    except ValueError:
        raise click.UsageError(f"{said}: give a share such as 0.9, or CLASS=SHARE for some classes.") from None
    if labels == [""]:
        return numbers[0]
    if "" in labels or len(set(labels)) < len(labels):
        raise click.UsageError(f"{said}: give one share for all classes, or one for each class that is named.")
    return dict(zip(labels, numbers, strict=True))


def choice_of(
    limits: Mapping[str, Any], best: str | None, knee: bool, one_standard_error: bool
) -> str | dict[str, Any] | None:
    """Return how the options choose a point, as ``choose`` of a classifier; None if no option was given."""
    given = {**limits, **({} if best is None else {"best": best})}
    if one_standard_error:
        if best not in ("accuracy", "coverage", "cost", "combined"):
            raise click.UsageError("--one-standard-error needs --best accuracy, coverage, cost or combined.")
        given["one_standard_error"] = True
    if knee and given:
        raise click.UsageError("--knee chooses by itself; leave out limits, --best and --one-standard-error.")
    if best == NO_WORSE:
        if len(given) > 1:
            raise click.UsageError(f"--best {NO_WORSE} chooses by itself; leave out limits.")
        return NO_WORSE
    return "knee" if knee else given or None


class Command(click.Command):
    """A command whose errors name the options that set the parameters they are about.

    Parameters
    ----------
    names : mapping of str to str
        Options of this command that are called differently than in ``OPTIONS``, by parameter.
    **rest
        As in ``click.Command``.
    """

    def __init__(self, *arguments: Any, names: Mapping[str, str] | None = None, **rest: Any) -> None:
        super().__init__(*arguments, **rest)
        self.names = {**OPTIONS, **(names or {})}

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the library becomes one line."""
        try:
            return super().invoke(ctx)
        except EmscoError as error:
            raise Failure(error.with_names(self.names)) from error


class Failure(click.ClickException):
    """An error in the input."""

    def show(self, file: Any = None) -> None:
        """Print the error as one line."""
        fail(self.message)


def fail(message: str) -> int:
    """Print an error as one line; return the exit code."""
    click.echo(f"error: {printable(' '.join(message.splitlines()))}", err=True)
    return 1


def show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line."""
    click.echo(f"warning: {printable(' '.join(str(message).split()))}", err=True)


def not_over(output: Path, *inputs: Path | None) -> None:
    """Raise if the output would replace a file that the command reads."""
    for path in inputs:
        if path is not None and path.exists() and output.exists() and output.samefile(path):
            raise click.UsageError(f"-o {output}: this file is read by the command; give another name to write to.")
