"""The command line: parse arguments, call the public API, print."""

import codecs
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import find_spec
import json
from pathlib import Path
import re
import shlex
import sys
from typing import TYPE_CHECKING, Any
import warnings

import click
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from emsco import __version__
from emsco.exceptions import EmscoError, MissingDependencyError, NoSuchPointError, SearchInterruptedWarning

if TYPE_CHECKING:
    from emsco.deployed.evaluation import Evaluation

INTERRUPTED = 130
_ESTIMATORS = ["tree", "forest", "boosting", "naive-bayes"]

_HELP = """Classifiers that buy their features in stages, answer early, and stay silent when unsure.

You have a table of cases with known answers, a price for each feature, and a confidence below which you would
rather hear nothing. EMSCO searches the ways to buy features in stages and finds the designs that no other one beats
in coverage, accuracy and mean cost.

\b
A first run:
  emsco fit patients.csv --target died --costs prices.csv --threshold 0.8
  emsco front model.emsco                         all designs worth having
  emsco use model.emsco --max-cost 40             take another one
  emsco report model.emsco                        look at it in a browser
  emsco predict model.emsco new.csv -o out.csv    decide new cases
  emsco ask model.emsco                           decide one, step by step
"""

_EPILOG = """\b
Exit codes: 0 done, 1 something is wrong with the input (one line says what),
2 wrong usage, 130 interrupted."""

_OPTIONS = {  # what the library calls them, and how they are given here
    "max_cost = ": "--max-cost ",
    "min_coverage = ": "--min-coverage ",
    "min_accuracy = ": "--min-accuracy ",
    "max_cost must": "--max-cost must",
    "min_coverage must": "--min-coverage must",
    "min_accuracy must": "--min-accuracy must",
    "n_jobs must be None, ": "--jobs must be ",
    "time_limit must": "--time-limit must",
    "validation must": "--validation must",
    ", or a splitter; got": "; got",
    " Or pass X_val and y_val to fit.": "",
    "C must": "--regularisation must",
    "accuracy of a guarantee must": "--guarantee must",
    "confidence of a guarantee must": "--confidence must",
    "overhead must": "--overhead must",
    "threshold must": "--threshold must",
    "threshold has": "--threshold has",
    "threshold names": "--threshold names",
    "BestFirst()": "--search best-first",
    "Evolution()": "--search evolution",
    "Exact()": "--search exact",
    "emsco.Loss(...) or emsco.Objective(...)": "'loss' with --loss FILE",
    "products are for logistic stages; an estimator of your own gets them from scikit-learn's "
    "PolynomialFeatures(interaction_only=True) in a pipeline before it.": "--products is for --estimator logistic.",
}
_FILE = click.Path(path_type=Path, dir_okay=False)
_MODEL = click.argument("model", type=_FILE, metavar="MODEL")
_OBJECTIVES = ["coverage", "accuracy", "cost", "fpr", "fnr", "stages", "worst_class_accuracy", "loss"]
_FIGURES = ["fitness", "combined", *_OBJECTIVES]  # that points of a front are sorted by, and chosen
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts instead of tables.")
_FILE_ENCODING = click.option("--file-encoding", default="utf-8", show_default=True, help="Encoding of CSV files.")


def run(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code. A user's mistake ends in one line, never in a traceback."""
    warnings.showwarning = _show_warning
    warnings.simplefilter("always")
    warnings.filterwarnings("ignore", category=DeprecationWarning)
    warnings.filterwarnings("ignore", category=FutureWarning)
    try:
        code = emsco.main(list(arguments), prog_name="emsco", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("\ninterrupted", err=True)
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = None  # the reader has seen enough; nothing to flush
        return 0
    except EmscoError as error:
        return _fail(_in_options(str(error)))
    except MemoryError:
        return _fail("out of memory; give fewer rows or columns, or a smaller search.")
    except OSError as error:
        return _fail(f"{error.filename or 'a file'}: {error.strerror or error}.")
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    click.echo(f"error: {message}", err=True)
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    click.echo(f"warning: {' '.join(str(message).split())}", err=True)


def _in_options(message: str) -> str:
    """Return a message of the library with its parameters as the options that set them."""
    return re.sub("|".join(map(re.escape, _OPTIONS)), lambda found: _OPTIONS[found[0]], message)


class _StageEncoding(click.Choice[str]):
    """How stages see numbers; who gives the encoding of a file is told where it goes."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return one of the choices, or fail."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            try:
                codecs.lookup(value)
            except LookupError:
                raise error from None
            self.fail(f"{error.message} For the encoding of the file, give --file-encoding {value}.", param, ctx)


class _InOrder(click.Group):
    """Commands listed as they are written here: in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    help=_HELP,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="emsco")
def emsco() -> None:
    """Hold the commands; ``_HELP`` is what it says."""


_SECTIONS = {  # of the options of fit, each by its first one
    "target": "Cases and prices",
    "threshold": "When a label is given",
    "preset": "Search",
    "estimator": "How stages learn",
    "validation": "Who judges",
    "max_cost": "Which design to use (without these the preset chooses)",
    "output": "Run and output",
}


class _InSections(click.Command):
    """A command whose options stand under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for option in self.get_params(ctx):
            title = _SECTIONS.get(option.name or "", title)
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


def _limits(command: Any) -> Any:
    """Add the options that keep points of the front within limits."""
    for option in (
        click.option("--min-accuracy", type=float, metavar="SHARE", help="Least share of right labels."),
        click.option("--min-coverage", type=float, metavar="SHARE", help="Least share of labelled cases."),
        click.option("--max-cost", type=float, metavar="PRICE", help="Most mean cost per case."),
    ):
        command = option(command)
    return command


_BEST = click.option(
    "--best",
    type=click.Choice(_FIGURES),
    metavar="FIGURE",
    help="What decides between the designs within the limits: fitness, accuracy, coverage, cost, combined (coverage + "
    "accuracy + share of the price of everything that is saved), or an objective searched by.  [default: best: "
    "combined, paper: fitness]",
)
_KNEE = click.option("--knee", is_flag=True, help="Take the design where the front bends most.")
_ONE_ERROR = click.option(
    "--one-standard-error",
    is_flag=True,
    help="Take the simplest design that is not worse than the --best one by more than one standard error.",
)


@emsco.command(cls=_InSections, short_help="Search designs for labelled cases.")
@click.argument("data", type=_FILE, metavar="DATA")
# Cases and prices
@click.option("--target", required=True, metavar="COLUMN", help="Column of DATA that holds the label to predict.")
@click.option("--drop", multiple=True, metavar="COLUMN", help="Column that is no feature, such as an id; repeatable.")
@click.option(
    "--costs",
    type=_FILE,
    metavar="FILE",
    help="Price list: CSV with the columns feature,price and optionally unit,group,discount, or JSON or YAML of the "
    "same. Without it every column costs 1.",
)
@click.option("--overhead", type=float, metavar="PRICE", help="What each stage costs besides, such as a visit.")
@click.option("--parallel", is_flag=True, help="Prices are times: a stage takes as long as the slowest thing it buys.")
@_FILE_ENCODING
# When a label is given
@click.option(
    "--threshold",
    multiple=True,
    metavar="SHARE",
    help="Least confidence of a label: one number, one per class as spam=0.95,ham=0.8 (repeatable), or one per stage "
    "as 0.95,0.9,0.8, of which the last holds for all further stages. auto: each design gets thresholds of its own, "
    "for those who have a budget (--max-cost) and a coverage (--min-coverage) in mind.  [default: 0.75]",
)
@click.option(
    "--guarantee",
    type=float,
    metavar="SHARE",
    help="Promise this share of right labels on new cases: calibrates the threshold on rows set aside for it. "
    "--threshold is then that of the search.  [default: as promised]",
)
@click.option("--confidence", type=float, metavar="SHARE", help="How sure the promise is.  [default: 0.95]")
@click.option("--guarantee-per-class", is_flag=True, help="Promise it of the labels of each class.")
# Search
@click.option(
    "--preset",
    type=click.Choice(["best", "paper"]),
    default="best",
    show_default=True,
    help="What is not given otherwise: best is the combination that does best, paper the method as published.",
)
@click.option(
    "--search",
    type=click.Choice(["auto", "exact", "best-first", "evolution"]),
    help="auto proves the true front where that takes seconds, else searches best-first; evolution is the paper's."
    "  [default: best: auto, paper: evolution]",
)
@click.option("--time-limit", type=float, metavar="SECONDS", help="End an exact search with the best front so far.")
@click.option("--max-stages", type=click.IntRange(min=1), metavar="N", help="Most stages of a design.")
@click.option(
    "--removal/--no-removal",
    default=None,
    help="Designs may leave features out.  [default: best: removal, paper: no-removal]",
)
@click.option(
    "--objective",
    "objectives",
    multiple=True,
    type=click.Choice(_OBJECTIVES),
    help="What designs are compared by; give it twice or more. fpr and fnr: false positives and negatives, where the "
    "second class in sorted order is the positive one.  [default: coverage, accuracy, cost]",
)
@click.option(
    "--loss",
    type=_FILE,
    metavar="FILE",
    help="Prices of labels, for --objective loss: CSV with a row per true class (column true), a column per label and "
    "a column reject, or JSON of the same.",
)
# How stages learn
@click.option(
    "--estimator",
    type=click.Choice(["logistic", *_ESTIMATORS]),
    default="logistic",
    show_default=True,
    help="Classifier of each stage; all but logistic are trained one by one, which is slow.",
)
@click.option(
    "--final",
    type=click.Choice(_ESTIMATORS),
    help="After the search train the stages of the front with this classifier, and judge them again.",
)
@click.option(
    "--encoding",
    type=_StageEncoding(["linear", "rank", "spline", "auto"]),
    help="How stages see numbers: as they are, as ranks, as ranks with bends, or what loses least."
    "  [default: best: auto, paper: linear]",
)
@click.option(
    "--regularisation",
    metavar="C",
    help="Inverse strength of the regularisation of logistic stages: a number, or auto for what loses least."
    "  [default: best: auto, paper: 1]",
)
@click.option("--products", is_flag=True, help="Logistic stages see the products of any two columns, too.")
@click.option(
    "--calibration",
    type=click.Choice(["sigmoid", "isotonic", "temperature"]),
    help="Calibrate the probabilities of the final stages, on folds of the training rows.",
)
# Who judges
@click.option(
    "--validation",
    metavar="SHARE|FOLDS",
    help="Rows that judge designs: a share such as 0.33, which trains nothing, or a number of folds such as 5, which "
    "take turns.  [default: best: 5, paper: a third]",
)
@click.option("--refit", is_flag=True, help="With a share: after the search train on the rows that judged, too.")
@click.option("--test-size", type=float, default=0.25, show_default=True, help="Share of the rows held out as a test.")
@click.option("--test", type=_FILE, metavar="FILE", help="Hold out nothing; test on the rows of this file.")
@click.option("--no-test", is_flag=True, help="Hold out nothing, and get no honest figures.")
# Which design to use
@_limits
@_BEST
@_KNEE
@_ONE_ERROR
# Run and output
@click.option("-o", "--output", type=_FILE, default=Path("model.emsco"), show_default=True, help="Model file to write.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="The same seed, the same model.")
@click.option("--jobs", type=int, default=-1, show_default=True, help="Workers; -1: one per core.")
@click.option(
    "--checkpoint",
    type=_FILE,
    metavar="FILE",
    help="Remember the search in this file: killed at any moment, the same command goes on. Removed at the end.",
)
@_JSON
@click.pass_context
def fit(
    context: click.Context,
    data: Path,
    target: str,
    costs: Path | None,
    overhead: float | None,
    parallel: bool,
    output: Path,
    threshold: tuple[str, ...],
    guarantee: float | None,
    confidence: float | None,
    guarantee_per_class: bool,
    drop: tuple[str, ...],
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    best: str | None,
    knee: bool,
    one_standard_error: bool,
    objectives: tuple[str, ...],
    loss: Path | None,
    preset: str,
    search: str | None,
    max_stages: int | None,
    removal: bool | None,
    estimator: str,
    final: str | None,
    encoding: str | None,
    regularisation: str | None,
    products: bool,
    calibration: str | None,
    validation: str | None,
    time_limit: float | None,
    test_size: float,
    test: Path | None,
    no_test: bool,
    refit: bool,
    seed: int,
    jobs: int,
    checkpoint: Path | None,
    file_encoding: str,
    as_json: bool,
) -> int:
    """Search designs for the labelled cases in DATA, a CSV or Parquet file with a header.

    A quarter of the rows is held out; neither training nor search sees them, and the figures printed at the end are of
    those rows. Text, categories and missing cells (empty, NA, ?) need no preparation.
    """
    from emsco.data.files import TableFile
    from emsco.estimators import EMSCOClassifier
    from emsco.prices.files import read_prices, without
    from emsco.prices.prices import Prices
    from emsco.report import console as show
    from emsco.report import records

    if output.is_dir() or not output.absolute().parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no such folder to write a model file to.")
    _not_over(output, data, costs, loss, test, checkpoint)
    rule = _threshold(threshold, guarantee, confidence, guarantee_per_class)
    if calibration is not None or products:
        _need_skops()
    file = TableFile(data, encoding=file_encoding)
    file.require([target, *drop])
    features = [name for name in file.names if name != target and name not in drop]
    prices = None if costs is None else without(read_prices(costs), [target, *drop])
    choice = _choice(max_cost, min_coverage, min_accuracy, best, knee, one_standard_error)
    if best in _OBJECTIVES[3:] and best not in objectives:
        raise click.UsageError(f"--best {best}: designs are not searched by it; give --objective {best} and others.")
    if test is not None and no_test:
        raise click.UsageError("--test FILE and --no-test contradict each other; give one.")
    if overhead is not None or parallel:
        prices = prices or Prices(price=dict.fromkeys(features, 1.0))
        prices = replace(
            prices,
            overhead=prices.overhead if overhead is None else overhead,
            parallel=parallel or prices.parallel,
        )
    X, y, rows_used = _labelled(file, features, target)
    rest, held_out = _held_out(y, 0.0 if test or no_test else test_size, seed)
    clf = EMSCOClassifier(
        prices,
        threshold=rule,
        estimator=_estimator(estimator),
        max_stages=max_stages,
        removal=removal,
        search=_search(search, time_limit),
        validation=_number("--validation", validation, "a share such as 0.33, or a number of folds such as 5"),
        encoding=encoding,
        C="auto" if regularisation == "auto" else _number("--regularisation", regularisation, "a number, or auto"),
        final_estimator=None if final is None else _estimator(final),
        calibration=calibration,
        products=products,
        preset=preset,
        refit=refit,
        random_state=seed,
        n_jobs=jobs,
        verbose=sys.stderr.isatty(),
        objectives=_objectives(objectives, loss, y[rest]),
    )
    with warnings.catch_warnings(record=True) as caught:
        clf.fit(X.take(rest), y[rest], checkpoint=checkpoint)
    interrupted = False
    for warning in caught:
        interrupted |= issubclass(warning.category, SearchInterruptedWarning)
        if issubclass(warning.category, SearchInterruptedWarning) or issubclass(warning.category, UserWarning):
            _show_warning(warning.message)
    missed = None
    if choice:
        try:
            clf.use(_chosen(clf, choice))
        except NoSuchPointError as error:
            missed = _in_options(str(error))
    evaluation = None
    if test is not None:
        other = TableFile(test, encoding=file_encoding)
        other.require([target])
        evaluation = clf.evaluate(*_labelled(other, [f for f in features if f in other.names], target)[:2])
    elif held_out.size:
        evaluation = clf.evaluate(X.take(held_out), y[held_out])
    clf.save(output, evaluation=evaluation, notes=_notes(context, file, target, len(rows_used), evaluation, test, seed))
    if checkpoint is not None and not interrupted:
        checkpoint.unlink(missing_ok=True)
    if as_json:
        records.print_json({"model": str(output), **records.summary_record(clf.deployed_, evaluation)})
    else:
        show.print_fit(clf.deployed_, evaluation, data, target, len(rest), output)
    if missed is not None:
        _fail(f"{missed} The model was written, with point {clf.point_} in use.")
    if interrupted:
        if checkpoint is not None:
            click.echo(f"The same command goes on where it was, from {checkpoint}.", err=True)
        return INTERRUPTED
    return 0 if missed is None else 1


@emsco.command(short_help="List the designs worth having.")
@_MODEL
@_limits
@click.option("--sort", type=click.Choice(_FIGURES), metavar="FIGURE", default="fitness", show_default=True,
              help="fitness, accuracy, coverage, cost, combined, or an objective searched by.")  # fmt: skip
@click.option("--all", "show_all", is_flag=True, help="Show all points, not the first 20.")
@_JSON
def front(
    model: Path,
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    sort: str,
    show_all: bool,
    as_json: bool,
) -> None:
    """List the designs of MODEL that no other one beats, with their figures on the rows that judged them.

    With limits, only the designs within them.
    """
    from emsco.report import console as show
    from emsco.report import records
    from emsco.report.learning import judged

    clf = _load(model, searched=True)
    points = clf.front_
    listed = points.order(max_cost=max_cost, min_coverage=min_coverage, min_accuracy=min_accuracy, best=sort).tolist()
    if as_json:
        records.print_json([records.point_record(clf.deployed_, i) for i in listed])
        return
    show.print_front(clf.deployed_, listed if show_all else listed[:20])
    if not show_all and len(listed) > 20:
        click.echo(f"... and {len(listed) - 20} more: --all")
    show.say(f"{len(listed)} of {len(points)} designs, * in use. Figures of {points.n_samples} "
             f"{judged(clf.deployed_)} rows, on "
             "which the designs were selected: optimistic.")  # fmt: skip


@emsco.command(short_help="Put another design into use.")
@_MODEL
@click.argument("point", type=int, required=False)
@_limits
@_BEST
@_KNEE
@_ONE_ERROR
@_JSON
def use(
    model: Path,
    point: int | None,
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    best: str | None,
    knee: bool,
    one_standard_error: bool,
    as_json: bool,
) -> None:
    """Put another POINT of the front into use: its number in `emsco front`, or the best within limits."""
    from emsco.promises.guarantee import Guarantee
    from emsco.report import console as show
    from emsco.report import records

    choice = _choice(max_cost, min_coverage, min_accuracy, best, knee, one_standard_error)
    if point is None and not choice:
        raise click.UsageError("give the number of a point, limits such as --max-cost 40, --best FIGURE or --knee.")
    if point is not None and choice:
        raise click.UsageError(f"give the number of a point, {point}, or how to choose one; not both.")
    clf = _load(model, searched=True)
    clf.use(_chosen(clf, choice) if point is None else point)
    clf.save(model)
    if as_json:
        records.print_json(records.point_record(clf.deployed_, clf.point_))
        return
    show.print_front(clf.deployed_, [clf.point_])
    show.print_threshold(clf.deployed_)
    show.print_stages(clf.deployed_, clf.evaluation_)
    show.print_results(clf.deployed_, clf.evaluation_)
    if isinstance(clf.threshold, Guarantee):
        show.say(f"\n{clf.guarantee_}")


@emsco.command(short_help="Decide the cases of a file.")
@_MODEL
@click.argument("data", type=_FILE, metavar="DATA")
@click.option("-o", "--output", type=_FILE, required=True, help="CSV or, by its name, Parquet file to write.")
@click.option("--keep", multiple=True, metavar="COLUMN", help="Column of DATA to repeat in the output; repeatable.")
@_FILE_ENCODING
@_JSON
def predict(model: Path, data: Path, output: Path, keep: tuple[str, ...], file_encoding: str, as_json: bool) -> None:
    """Decide every case in DATA, a CSV or Parquet file of any length, in half a gigabyte of memory.

    The output has a row per case: label (or "inconclusive"), confidence, stage (from 1), cost and what was bought.
    Columns that no case needs may be absent; cells that a case does not buy are not looked at.
    """
    from emsco.data.files import TableFile
    from emsco.deployed.streaming import predict_file
    from emsco.fitting.progress import PhaseLine
    from emsco.report import records

    _not_over(output, model, data)
    clf = _load(model)
    with PhaseLine(shown=sys.stderr.isatty()) as line:
        totals = predict_file(
            clf.deployed_, TableFile(data, encoding=file_encoding), output, keep=keep, on_progress=line
        )
    mean_cost = totals.cost / totals.n_rows if totals.n_rows else None
    if as_json:
        records.print_json({"output": str(output), "rows": totals.n_rows, "conclusive": totals.n_conclusive,
                     "left_at_stage": totals.left, "mean_cost": mean_cost})  # fmt: skip
        return
    click.echo(f"{totals.n_rows:,} cases: {totals.n_conclusive:,} with a label, "
               f"{totals.n_rows - totals.n_conclusive:,} inconclusive"
               + (f", {mean_cost:,.2f} paid on average" if mean_cost is not None else "")
               + f". Written to {output}.")  # fmt: skip


@emsco.command(short_help="Judge a model on labelled cases.")
@_MODEL
@click.argument("data", type=_FILE, metavar="DATA")
@click.option("--target", metavar="COLUMN", help="Column that holds the true label.  [default: as in fit]")
@_FILE_ENCODING
@_JSON
def evaluate(model: Path, data: Path, target: str | None, file_encoding: str, as_json: bool) -> None:
    """Judge MODEL on the labelled cases in DATA, which neither training nor search may have seen."""
    from emsco.report import console as show
    from emsco.report import records

    clf = _load(model)
    evaluation = _evaluate(clf, data, target, file_encoding)
    if as_json:
        records.print_json(records.results_record(clf.deployed_, evaluation))
        return
    show.print_stages(clf.deployed_, evaluation)
    show.print_results(clf.deployed_, evaluation)


@emsco.command(short_help="Write a page to look at in a browser.")
@_MODEL
@click.option("-o", "--output", type=_FILE, default=Path("report.html"), show_default=True, help="Page to write.")
@click.option("--data", type=_FILE, metavar="FILE", help="Judge on these labelled cases instead of those held out.")
@click.option("--target", metavar="COLUMN", help="Column that holds the true label.  [default: as in fit]")
@_FILE_ENCODING
def report(model: Path, output: Path, data: Path | None, target: str | None, file_encoding: str) -> None:
    """Write a page about MODEL that any browser shows, offline: the front to pick from, the design, its results."""
    from emsco.report.html import write_report

    _not_over(output, model, data)
    clf = _load(model)
    evaluation = clf.evaluation_ if data is None else _evaluate(clf, data, target, file_encoding)
    write_report(clf, output, evaluation=evaluation, notes={**clf.notes_, "model": str(model)})
    click.echo(f"Written to {output}: open it in a browser.")


@emsco.command(short_help="Decide one case, question by question.")
@_MODEL
@click.option("--state", type=_FILE, metavar="FILE", help="Keep the case in this file, and go on from it.")
def ask(model: Path, state: Path | None) -> int:
    """Decide one case, question by question: asks for what the first stage buys, answers, or asks for more.

    An empty answer means that the value could not be obtained; q leaves.
    """
    from emsco.deployed.session import Accept, Acquire, Reject

    clf = _load(model)
    begun = _read_state(state)
    session = clf.session(begun) if begun is not None else clf.session()
    spent = 0.0
    console = Console(highlight=False)
    while True:
        match session.step():
            case Acquire() as request:
                console.print(_question(request, spent))
                for column in request.columns:
                    if not _ask_column(clf, session, column):
                        _write_state(state, session)
                        return INTERRUPTED
                    _write_state(state, session)
                spent += request.price
            case Accept() as answer:
                console.print(f"[bold]{escape(str(answer.label))}[/], {answer.confidence:.1%} sure; "
                              f"{answer.cost:,.6g} paid.")  # fmt: skip
                return 0
            case Reject() as answer:
                bar = clf.deployed_.rule.bar(answer.stage, clf.classes_.tolist().index(answer.best_guess))
                wanted = "which is never enough" if bar > 1 else f"not {bar:.0%}"
                console.print(f"[bold]inconclusive[/]: {answer.confidence:.1%} sure after the last stage, {wanted}; "
                              f"{answer.cost:,.6g} paid.")  # fmt: skip
                return 0


@emsco.command(short_help="Say what is in a model file.")
@_MODEL
@_JSON
def inspect(model: Path, as_json: bool) -> None:
    """Say what is in MODEL: classes, features and prices, the search, the design in use, where it came from."""
    from emsco.report import console as show
    from emsco.report import records

    clf = _load(model)
    if as_json:
        records.print_json(records.facts_record(clf.deployed_))
        return
    shown_below = ("prices", "stages", "never")
    facts = {name: value for name, value in records.facts_record(clf.deployed_).items() if name not in shown_below}
    facts["learning"] = " ".join(facts["learning"]["in_words"])
    show.print_facts({**facts, **clf.notes_})
    show.print_prices(clf.deployed_)
    show.print_stages(clf.deployed_, clf.evaluation_)
    if clf.evaluation_ is not None:
        show.print_results(clf.deployed_, clf.evaluation_)


@emsco.command(short_help="Write the design in use as ONNX graphs.")
@_MODEL
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER")
def export(model: Path, folder: Path) -> None:
    """Write the design in use as ONNX graphs, one per stage, with a manifest, into FOLDER."""
    _load(model).export_onnx(folder)
    click.echo(f"Written to {folder}: manifest.json says how the graphs follow each other.")


@emsco.command(short_help="Run on heart-failure data, or write them.")
@click.option(
    "--files",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Only write the data into FOLDER, as heart.csv, prices.csv and new.csv, to try the other commands on.",
)
@click.option("--report", type=_FILE, metavar="FILE", help="Write the results as a page, too.")
def demo(folder: Path | None, report: Path | None) -> None:
    """Run the main job on heart-failure data that come with EMSCO."""
    from emsco.cli.demo import main, write_files

    if folder is None:
        main(report)
    else:
        write_files(folder)


@emsco.command(
    short_help="Repeat the paper's experiments.",
    context_settings={"ignore_unknown_options": True, "help_option_names": []},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def experiments(arguments: tuple[str, ...]) -> int:
    """Run the paper's experiments; `emsco experiments --help` lists them."""
    from emsco.experiments.__main__ import main

    try:
        return main(list(arguments))
    except SystemExit as ended:
        return int(ended.code or 0)


# ---------------------------------------------------------------- writing


def _not_over(output: Path, *inputs: Path | None) -> None:
    """Raise if the output would replace a file that is read."""
    for path in inputs:
        if path is not None and path.exists() and output.exists() and output.samefile(path):
            raise click.UsageError(f"-o {output}: this file is read by the command; give another name to write to.")


# ---------------------------------------------------------------- choosing


def _choice(
    max_cost: float | None,
    min_coverage: float | None,
    min_accuracy: float | None,
    best: str | None,
    knee: bool,
    one_standard_error: bool,
) -> dict[str, Any]:
    """Return what was asked for of a point, as arguments of ``_chosen``; nothing if nothing was."""
    limits = {"max_cost": max_cost, "min_coverage": min_coverage, "min_accuracy": min_accuracy, "best": best}
    given: dict[str, Any] = {name: value for name, value in limits.items() if value is not None}
    if one_standard_error:
        if best not in ("accuracy", "coverage", "cost", "combined"):
            raise click.UsageError("--one-standard-error needs --best accuracy, coverage, cost or combined.")
        given["one_standard_error"] = True
    if knee and given:
        raise click.UsageError("--knee chooses by itself; leave out limits, --best and --one-standard-error.")
    return {"knee": True} if knee else given


def _chosen(clf: Any, choice: dict[str, Any]) -> Any:
    from emsco.fitting.pipeline import choose_point
    from emsco.fitting.settings import PRESETS

    return choose_point(clf.front_, "knee" if "knee" in choice else choice, best=PRESETS[clf.preset]["choose"])


def _objectives(names: tuple[str, ...], loss: Path | None, y: Any) -> tuple[Any, ...] | None:
    import numpy as np

    from emsco.scoring.loss_files import read_loss

    if ("loss" in names) != (loss is not None):
        raise click.UsageError("--objective loss and --loss FILE go together.")
    if len(names) == 1:
        raise click.UsageError("give --objective twice or more: one objective alone has no front.")
    prices = None if loss is None else read_loss(loss, [str(label) for label in np.unique(y).tolist()])
    return tuple(prices if name == "loss" else name for name in names) or None


# ---------------------------------------------------------------- reading


def _load(path: Path, *, searched: bool = False) -> Any:
    from emsco.estimators import EMSCOClassifier, load

    clf = load(path)
    if searched and not isinstance(clf, EMSCOClassifier):
        raise click.UsageError(f"{path} holds one given design: there is no front to choose from.")
    return clf


def _labelled(file: Any, features: list[str], target: str, numbers: list[str] | None = None) -> tuple[Any, Any, Any]:
    """Return features and labels of the rows that have a label, and which rows these are."""
    import numpy as np

    from emsco.data.table import Table

    table = file.read([*features, target], numbers=numbers)
    if not features:
        raise click.UsageError(f"{file.path} has no column but {target}: there is nothing to predict it from.")
    known = np.flatnonzero(~np.asarray(table.column(target).is_null()))
    if known.size < table.num_rows:
        _show_warning(f"{table.num_rows - known.size} rows of {file.path} have no {target}; they are left out.")
    table = table.take(known)
    y = Table(table.select([target])).column(0)
    if y.dtype.kind == "f" and y.size and (y == np.floor(y)).all():
        y = y.astype(np.int64)
    return table.select(features), y, known


def _held_out(y: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Return the rows to learn from and the rows to test on, classes in proportion."""
    import numpy as np

    from emsco.data.labels import check_target
    from emsco.data.splits import split_rows

    everyone = np.arange(len(y))
    if share == 0:
        return everyone, everyone[:0]
    if not 0 < share < 1:
        raise click.UsageError(f"--test-size must be a share between 0 and 1, such as 0.25; got {share:g}.")
    codes, classes = check_target(y, len(y))
    return split_rows(codes, float(share), np.random.default_rng(seed), classes)


def _evaluate(clf: Any, data: Path, target: str | None, file_encoding: str) -> "Evaluation":
    from emsco.data.encoding import NumberCode
    from emsco.data.files import TableFile

    target = target or clf.notes_.get("target")
    if target is None:
        raise click.UsageError("the model does not know which column holds the label; give --target.")
    file = TableFile(data, encoding=file_encoding)
    file.require([target])
    features = [code.name for code in clf.deployed_.encoder.codes if code.name in file.names]
    if not features:
        raise click.UsageError(f"{data} has none of the columns that the model knows.")
    numbers = [code.name for code in clf.deployed_.encoder.codes if isinstance(code, NumberCode)]
    if clf.classes_.dtype.kind in "iuf":
        numbers.append(target)
    X, y, _ = _labelled(file, features, target, numbers)
    evaluation: Evaluation = clf.evaluate(X, y)
    return evaluation


def _estimator(name: str) -> Any:
    if name == "logistic":
        return None
    _need_skops()
    if name == "boosting":
        return name
    if name == "tree":
        from sklearn.tree import DecisionTreeClassifier

        return DecisionTreeClassifier(min_samples_leaf=5)
    if name == "forest":
        from sklearn.ensemble import RandomForestClassifier

        return RandomForestClassifier(min_samples_leaf=3)
    from sklearn.naive_bayes import GaussianNB

    return GaussianNB()


def _need_skops() -> None:
    if find_spec("skops") is None:  # now, not after the search
        raise MissingDependencyError("model files of other estimators need skops: pip install 'emsco[skops]'.")


def _number(option: str, text: str | None, wanted: str) -> int | float | None:
    """Return a number as it is written: 5 is whole, 0.5 is not."""
    if text is None:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise click.UsageError(f"{option} {text}: give {wanted}.")


def _threshold(given: tuple[str, ...], accuracy: float | None, confidence: float | None, per_class: bool) -> Any:
    """Return the threshold of a classifier: a number, one per class or stage, or a promise."""
    from emsco.promises.guarantee import Guarantee
    from emsco.promises.own import AUTO

    if AUTO in given:
        if len(given) > 1 or accuracy is not None:
            raise click.UsageError("--threshold auto goes with no other threshold, and with no --guarantee.")
        return AUTO
    parts = [part for text in given for part in _parts_of(text)]
    pairs = [part.rpartition("=") for part in parts if "=" in part]
    try:
        numbers = [float(part.rpartition("=")[2]) for part in parts]
    except ValueError:
        raise click.UsageError(
            f"--threshold {' '.join(given)}: give numbers such as 0.9, CLASS=NUMBER for each class, or auto."
        ) from None
    if len({label.strip() for label, _, _ in pairs}) < len(pairs):
        raise click.UsageError(f"--threshold {' '.join(given)}: a class has two numbers; give one.")
    if pairs and len(pairs) < len(parts):
        raise click.UsageError(f"--threshold {' '.join(given)}: give a number for each class, or none with a class.")
    if accuracy is not None:
        if pairs or len(numbers) > 1:
            raise click.UsageError("with --guarantee, --threshold is one number: that of the search.")
        return Guarantee(accuracy, 0.95 if confidence is None else confidence, per_class, *numbers)
    if confidence is not None or per_class:
        raise click.UsageError("--confidence and --guarantee-per-class go with --guarantee.")
    if pairs:
        return {label.strip(): number for (label, _, _), number in zip(pairs, numbers, strict=True)}
    return (numbers or [0.75])[0] if len(numbers) < 2 else numbers


def _parts_of(text: str) -> list[str]:
    """Return what commas separate; one in the name of a class separates nothing."""
    parts = text.split(",")
    return [text] if "=" in text and not all("=" in part for part in parts) else parts


def _search(name: str | None, time_limit: float | None) -> Any:
    from emsco.search.bestfirst import BestFirst
    from emsco.search.evolution import Evolution
    from emsco.search.exact.proof import Exact

    if time_limit is not None and name != "exact":
        raise click.UsageError("--time-limit goes with --search exact.")
    return {None: None, "auto": "auto", "exact": Exact(time_limit=time_limit), "best-first": BestFirst(),
            "evolution": Evolution()}[name]  # fmt: skip


def _read_state(path: Path | None) -> Any:
    if path is None or not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise click.UsageError(f"{path} is not the state of a case: {error}.") from error


def _write_state(path: Path | None, session: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(session.state), encoding="utf-8")


# ---------------------------------------------------------------- asking


def _question(request: Any, spent: float) -> Text:
    text = Text()
    text.append(f"Buy {', '.join(request.features)}", style="bold")
    text.append(f" for {request.price:,.6g}")
    if spent:
        text.append(f" ({spent:,.6g} paid so far)")
    return text


def _ask_column(clf: Any, session: Any, column: str) -> bool:
    """Ask until a value of a column is accepted; return False if the user has had enough."""
    from emsco.data.encoding import CategoryCode

    code = next(code for code in clf.deployed_.encoder.codes if code.name == column)
    hint = ""
    if isinstance(code, CategoryCode):
        known = sorted(str(c) for c in {*code.categories, *code.rare} if c is not None)
        hint = f" ({', '.join(known[:8])}{', ...' if len(known) > 8 else ''})" if known else ""
    while True:
        answer = click.prompt(f"  {column}{hint}", default="", show_default=False).strip()
        if answer.lower() == "q":
            return False
        value: Any = answer or None
        if value is not None and not isinstance(code, CategoryCode):
            try:
                value = float(answer.replace(",", "."))
            except ValueError:
                click.echo(f"  {answer!r} is not a number; leave it empty if it could not be obtained, q to leave.")
                continue
        try:
            session.give({column: value})
        except EmscoError as error:
            click.echo(f"  {error}")
            continue
        return True


# ---------------------------------------------------------------- where a model comes from


def _notes(
    context: click.Context,
    file: Any,
    target: str,
    n_rows: int,
    evaluation: "Evaluation | None",
    test: Path | None,
    seed: int,
) -> dict[str, Any]:
    """Return where a model comes from; enough to make it again."""
    digest = sha256()
    with file.path.open("rb") as stream:
        while part := stream.read(2**20):
            digest.update(part)
    return {
        "data": file.path.name,
        "data sha256": digest.hexdigest(),
        "target": target,
        "rows": n_rows,
        "test rows": evaluation.n_rows if evaluation else 0,
        "test file": test.name if test else "held out from the data" if evaluation else "none",
        "seed": seed,
        "command": _command(context),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _command(context: click.Context) -> str:
    """Return the command again, with the options that were not left at their defaults; of paths the names."""
    words = ["emsco", "fit"]
    for parameter in context.command.params:
        value = context.params[parameter.name or ""]
        if context.get_parameter_source(parameter.name or "") != click.core.ParameterSource.COMMANDLINE:
            continue
        for item in value if isinstance(value, tuple) else (value,):
            shown = item.name if isinstance(item, Path) else str(item)
            option = [] if isinstance(parameter, click.Argument) else [parameter.opts[-1]]
            if item is False:
                option = [parameter.secondary_opts[-1]]
            words += option if isinstance(item, bool) else [*option, shown]
    return shlex.join(words)
