"""``emsco fit``: from a table with labels to a model file."""

import codecs
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
import shlex
from typing import TYPE_CHECKING, Any
import warnings

import click

from emsco.cli.classifier import ESTIMATORS, FINAL, FitOptions, choose_of, classifier_of, need_skops, threshold_of
from emsco.cli.evolving import evolution_options
from emsco.cli.options import (
    AS_JSON,
    BEST,
    CLUSTER,
    FILE,
    FILE_ENCODING,
    GUARANTEE_ROWS,
    INTERRUPTED,
    KNEE,
    OBJECTIVES,
    ONE_ERROR,
    OPTIONS,
    Command,
    Figure,
    fail,
    limits,
    not_over,
    show_warning,
)
from emsco.cli.partitioned import Rows, is_many_files, read_partitions, working_on
from emsco.cli.reading import Labelled, digest_of, read_labelled
from emsco.exceptions import NoSuchPointError, SearchInterruptedWarning

if TYPE_CHECKING:
    from emsco.deployed.evaluation import Evaluation

SECTIONS = {  # of the options, each by its first one
    "target": "Cases and prices",
    "threshold": "Thresholds",
    "preset": "Search",
    "estimator": "Stage classifiers",
    "validation": "Validation and test",
    "max_cost": "Choice of the design (by default the preset chooses)",
    "output": "Run and output",
}

_MOST_TESTED = 100_000  # rows


class _InSections(Command):
    """A command whose options stand under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {}
        title = "Options"
        for option in self.get_params(ctx):
            title = SECTIONS.get(option.name or "", title)
            if isinstance(option, click.Option) and (record := option.get_help_record(ctx)) is not None:
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records)


class _StageEncoding(click.Choice[str]):
    """Encoding of numbers; a user who gives the encoding of a file is told the right option."""

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


@click.command(cls=_InSections, short_help="Search designs for labelled cases.")
@click.argument("data", type=click.Path(path_type=Path), metavar="DATA")
# Cases and prices
@click.option("--target", required=True, metavar="COLUMN", help="Column of DATA that holds the label to predict.")
@click.option(
    "--drop", multiple=True, metavar="COLUMN", help="Column that is not a feature, such as an id; repeatable."
)
@click.option(
    "--costs",
    type=FILE,
    metavar="FILE",
    help="Price list: CSV with the columns feature,price and optionally unit,group,discount,from, or the same as JSON "
    "or YAML. Without it every column costs 1.",
)
@click.option("--overhead", type=float, metavar="PRICE", help="Price of each stage itself, such as a visit.")
@click.option("--parallel", is_flag=True, help="Prices are times: a stage takes as long as its slowest feature.")
@FILE_ENCODING
# Thresholds
@click.option(
    "--threshold",
    multiple=True,
    metavar="SHARE",
    help="Least confidence of a label: one number, one per class as spam=0.95,ham=0.8 (repeatable), or one per stage "
    "as 0.95,0.9,0.8, where the last number holds for all further stages. auto: each design gets its own thresholds."
    "  [default: best: auto, paper: 0.75]",
)
@click.option(
    "--guarantee",
    type=float,
    metavar="SHARE",
    help="Guarantee this share of correct labels on new cases: calibrates the threshold on rows set aside for it. "
    "--threshold is then the threshold of the search.  [default: this share]",
)
@click.option("--confidence", type=float, metavar="SHARE", help="Confidence of the guarantee.  [default: 0.95]")
@click.option("--guarantee-per-class", is_flag=True, help="Guarantee it for the labels of each class.")
@GUARANTEE_ROWS
# Search
@click.option(
    "--preset",
    type=click.Choice(["best", "paper"]),
    default="best",
    show_default=True,
    help="Defaults of the other options: best performs best in our benchmarks, paper is the published method.",
)
@click.option(
    "--search",
    type=click.Choice(["auto", "exact", "best-first", "evolution"]),
    help="auto searches best-first; with a --threshold it finds the exact front if that takes seconds. evolution is "
    "the paper's search."
    "  [default: best: auto, paper: evolution]",
)
@evolution_options
@click.option("--max-stages", type=click.IntRange(min=1), metavar="N", help="Largest number of stages.")
@click.option(
    "--removal/--no-removal",
    default=None,
    help="Designs may omit features.  [default: best: removal, paper: no-removal]",
)
@click.option(
    "--branch",
    type=click.Choice(["auto"]),
    help="Designs may branch: what is bought next depends on what is known, where that labels more cases correctly by "
    "more than luck can explain.",
)
@click.option(
    "--objective",
    "objectives",
    multiple=True,
    type=Figure(OBJECTIVES),
    help="What the search optimises; give two or more. fpr and fnr: false positives and negatives; the second class in "
    "sorted order is the positive one.  [default: coverage, accuracy, cost]",
)
@click.option(
    "--loss",
    type=FILE,
    metavar="FILE",
    help="Prices of errors, for --objective loss: CSV with a row per true class (column true), a column per label and "
    "a column reject, or the same as JSON.",
)
@click.option(
    "--errors",
    type=FILE,
    metavar="FILE",
    help="Prices of errors: the least money, tests and errors together, is looked for. A file as for --loss; without a "
    "column reject every case gets a label.",
)
# Stage classifiers
@click.option(
    "--estimator",
    type=click.Choice(["logistic", *ESTIMATORS]),
    default="logistic",
    show_default=True,
    help="Classifier of each stage; all but logistic are trained one by one, which is slow.",
)
@click.option(
    "--final",
    type=click.Choice(FINAL),
    help="After the search, train the stages of the front with this classifier, and evaluate them again. auto: boosted "
    "trees, if they predict better than the stages of the search; search: keep these.  [default: best: auto, paper: "
    "search]",
)
@click.option(
    "--encoding",
    type=_StageEncoding(["linear", "rank", "spline", "raw", "auto"]),
    help="Encoding of numbers: standardised, ranks, splines of ranks, unscaled (raw), or the best of the first three "
    "by cross-validation.  [default: best: auto, paper: raw]",
)
@click.option(
    "--regularisation",
    metavar="C",
    help="Inverse regularisation strength of logistic stages: a number, or auto for the best by cross-validation."
    "  [default: best: auto, paper: 1]",
)
@click.option("--products", is_flag=True, help="Logistic stages also use the products of any two columns.")
@click.option(
    "--calibration",
    type=click.Choice(["sigmoid", "isotonic", "temperature"]),
    help="Calibrate the probabilities of the final stages on folds of the training rows.",
)
# Validation and test
@click.option(
    "--validation",
    metavar="SHARE|FOLDS",
    help="How designs are evaluated in the search: on a share of the rows, such as 0.33, or by cross-validation with a "
    "number of folds, such as 5.  [default: best: 5, paper: a third]",
)
@click.option("--refit", is_flag=True, help="With a share: after the search, train on the validation rows, too.")
@click.option(
    "--test-size",
    type=float,
    default=0.25,
    show_default=True,
    help="Share of the rows held out as a test; at most 100,000 of them.",
)
@click.option("--test", type=FILE, metavar="FILE", help="Hold out no rows; test on this file.")
@click.option("--no-test", is_flag=True, help="Hold out no rows, and get no unbiased figures.")
# Choice of the design
@limits
@BEST
@KNEE
@ONE_ERROR
# Run and output
@click.option("-o", "--output", type=FILE, default=Path("model.emsco"), show_default=True, help="Model file to write.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed; the same seed gives the same model.",
)
@click.option("--jobs", type=int, default=-1, show_default=True, help="Number of workers; -1: one per core.")
@click.option(
    "--time-limit",
    type=float,
    metavar="SECONDS",
    help="Time that the fit may take, about: comparison of classifiers, search and training, without reading DATA and "
    "the test. The best front found by then is used.",
)
@click.option(
    "--checkpoint",
    type=FILE,
    metavar="FILE",
    help="Store the search in this file. If the run is stopped, the same command continues, also with another "
    "--time-limit. Removed at the end, unless the time limit ended the run.",
)
@CLUSTER
@AS_JSON
@click.pass_context
def fit(context: click.Context, /, **given: Any) -> int:
    """Search designs for the labelled cases in DATA, a CSV or Parquet file with a header.

    A quarter of the rows is held out for the test: training and search do not use them, and the figures printed at the
    end are those of these rows. Text, categories and missing cells (empty, NA, ?) need no preparation.

    With --cluster, the workers of a Dask cluster train. DATA may then also be a folder of Parquet files, or a pattern
    in quotes such as 'rows/*.parquet', larger than the memory: a sample is searched, logistic stages are trained on all
    rows, and some of the files are held out for the test.
    """
    options = FitOptions(**given)
    _check(options)
    with working_on(options.cluster) as client:
        rows = read_partitions(options, client) if is_many_files(options.data) else _read(options)
        clf = classifier_of(options, _prices(options, rows.features), rows.labels).set_params(client=client)
        return _fit_and_save(context, options, clf, rows)


def _fit_and_save(context: click.Context, options: FitOptions, clf: Any, rows: Rows) -> int:
    """Fit, test, write the model and say what came out."""
    from emsco.fitting.progress import doing

    missed, interrupted = _fit(clf, rows.X, rows.y, checkpoint=options.checkpoint, **rows.calibration)
    with doing("testing"):
        evaluation = None if rows.test is None else clf.evaluate(*rows.test)
        clf.save(options.output, evaluation=evaluation, notes=_notes(context, options, rows, evaluation))
    if options.checkpoint is not None and not interrupted and not clf.timed_out_:
        options.checkpoint.unlink(missing_ok=True)
    _show(clf, options, evaluation, _n_learned(clf, rows))
    if missed is not None:
        fail(f"{missed} The model was written, with point {clf.point_} in use.")
    if options.checkpoint is not None and (interrupted or clf.timed_out_):
        longer = "" if interrupted else " with a longer --time-limit, or without,"
        click.echo(f"The same command{longer} continues from {options.checkpoint}.", err=True)
    if interrupted:
        return INTERRUPTED
    return 0 if missed is None else 1


def _n_learned(clf: Any, rows: Rows) -> int:
    """Return how many rows the stages learned from."""
    from emsco.cluster.blocks import SampledFile
    from emsco.cluster.fitting import learns_from_all

    streamed = isinstance(rows.X, SampledFile) and learns_from_all(clf.deployed_)
    return int(rows.X.n_rows) if streamed else rows.n_learned


def _read(options: FitOptions) -> Rows:
    """Read the rows of a file, and hold some of them out."""
    from emsco.data.files import TableFile
    from emsco.fitting.progress import doing

    with doing(f"reading {options.data.name}"):
        file = TableFile(options.data, encoding=options.file_encoding)
        file.require([options.target, *options.drop])
        features = [name for name in file.names if name != options.target and name not in options.drop]
        _prices(options, features)  # what is wrong with them is said before the rows are read
        labelled = read_labelled(file, features, options.target, seed=options.seed)
        X, y = labelled.X, labelled.y
        learn, held_out = _held_out(y, 0.0 if options.test or options.no_test else options.test_size, options.seed)
    _check_columns(X, y)
    calibration = _calibration_rows(options, X, y)
    test = (X.take(held_out), y[held_out]) if held_out.size else _test_rows(options, features, y[learn])
    learned = _with_the_rest(options, file, labelled, learn, held_out)
    return Rows(learned, y[learn], y[learn], features, test, labelled.n_rows, len(learn), calibration)


def _with_the_rest(options: FitOptions, file: Any, labelled: Labelled, learn: Any, held_out: Any) -> Any:
    """Return the rows to learn from; of a sample of a Parquet file together with all others that are not tested on."""
    X, n_known = labelled.X.take(learn), labelled.n_known
    if labelled.n_rows == n_known:
        return X
    drawn = f"{options.data} has {n_known:,} rows with a label; {labelled.n_rows:,} of them, drawn at random, are"
    others = [options.errors, options.guarantee, options.time_limit, options.checkpoint, options.cluster]
    if not file.is_parquet or any(each is not None for each in others):
        show_warning(f"{drawn} used, each label in proportion.")
        return X
    from emsco.checks import n_threads
    from emsco.cluster.blocks import Blocks, SampledFile

    show_warning(f"{drawn} searched, each label in proportion; logistic stages learn from all rows, others from these.")
    rest = Blocks(file, X.column_names, options.target, labelled.rows[held_out], n_jobs=n_threads(options.jobs))
    return SampledFile(X, rest, n_known - len(held_out))


def _check(options: FitOptions) -> None:
    """Raise for options that contradict each other, before anything is read."""
    output = options.output
    if output.is_dir() or not output.absolute().parent.is_dir():
        raise click.UsageError(f"-o {output}: there is no such folder to write a model file to.")
    not_over(
        output, options.data, options.costs, options.loss, options.errors, options.test, options.guarantee_rows,
        options.checkpoint,
    )  # fmt: skip
    threshold_of(options)
    choose_of(options)
    if options.calibration is not None or options.products:
        need_skops()
    if options.test is not None and options.no_test:
        raise click.UsageError("--test FILE and --no-test contradict each other; give one.")


def _prices(options: FitOptions, features: list[str]) -> Any:
    """Return the prices of the file, with the price model of the options; None if there are neither."""
    from emsco.prices.files import read_prices, without
    from emsco.prices.prices import Prices

    prices = None if options.costs is None else without(read_prices(options.costs), [options.target, *options.drop])
    if options.overhead is None and not options.parallel:
        return prices
    prices = prices or Prices(price=dict.fromkeys(features, 1.0))
    overhead = prices.overhead if options.overhead is None else options.overhead
    return replace(prices, overhead=overhead, parallel=options.parallel or prices.parallel)


def _calibration_rows(options: FitOptions, X: Any, y: Any) -> dict[str, Any]:
    """Return the rows that calibrate a guarantee, as arguments of fit; without a file, fit takes a share of its own."""
    from pyarrow import types

    from emsco.data.files import TableFile

    if options.guarantee_rows is None:
        return {}
    file = TableFile(options.guarantee_rows, encoding=options.file_encoding)
    file.require([options.target, *X.column_names])
    numbers = [column.name for column in X.schema if not types.is_string(column.type)]
    numbers += [options.target] if y.dtype.kind in "iuf" else []
    X_cal, y_cal, *_ = read_labelled(file, X.column_names, options.target, numbers)
    return {"X_cal": X_cal, "y_cal": y_cal}


def _test_rows(options: FitOptions, features: list[str], y: Any) -> tuple[Any, Any] | None:
    """Return features and labels of the test file, if there is one; what is wrong with it is said before the search."""
    import numpy as np

    from emsco.data.files import TableFile
    from emsco.deployed.evaluation import check_truth

    if options.test is None:
        return None
    file = TableFile(options.test, encoding=options.file_encoding)
    file.require([options.target, *features])
    if digest_of(options.test) == digest_of(options.data):
        show_warning(f"{options.test} holds the cases of training; its figures are optimistic.")
    X, truth, n_rows, *_ = read_labelled(file, features, options.target)
    return X, check_truth(truth, np.unique(y), n_rows)


def _held_out(y: Any, share: float, seed: int) -> tuple[Any, Any]:
    """Return the rows to learn from and the rows to test on, with the classes in proportion."""
    import numpy as np

    from emsco.data.labels import check_target
    from emsco.data.splits import split_rows

    everyone = np.arange(len(y))
    if share == 0:
        return everyone, everyone[:0]
    if not 0 < share < 1:
        raise click.UsageError(f"--test-size must be a share between 0 and 1, such as 0.25; got {share:g}.")
    codes, classes = check_target(y, len(y))
    share = min(share, _MOST_TESTED / len(y))
    return split_rows(codes, float(share), np.random.default_rng(seed), classes)


def _check_columns(X: Any, y: Any) -> None:
    """Warn of columns that are probably not features; raise for a class that ``predict`` could not write."""
    from emsco.data.labels import check_target
    from emsco.data.suspects import warn_of_suspects
    from emsco.data.table import Table
    from emsco.deployed.streaming import INCONCLUSIVE
    from emsco.exceptions import InvalidTargetError

    codes, classes = check_target(y, len(y))
    if INCONCLUSIVE in map(str, classes.tolist()):
        raise InvalidTargetError(
            f"has the class {INCONCLUSIVE!r}, which is how `emsco predict` writes that a case has no label; rename it.",
            parameter="y",
        )
    warn_of_suspects(Table(X), codes)


def _fit(clf: Any, X: Any, y: Any, **given: Any) -> tuple[str | None, bool]:
    """Fit, and print the warnings; return which limit no point meets, if one, and whether the user interrupted."""
    missed = None
    with warnings.catch_warnings(record=True) as caught:
        try:
            clf.fit(X, y, **given)
        except NoSuchPointError as error:  # the search is done: the model is written all the same
            missed = error.with_names(OPTIONS)
    for warning in caught:
        if issubclass(warning.category, UserWarning):
            show_warning(warning.message)
    return missed, any(issubclass(warning.category, SearchInterruptedWarning) for warning in caught)


def _show(clf: Any, options: FitOptions, evaluation: "Evaluation | None", n_rows: int) -> None:
    from emsco.report import console, records

    if options.as_json:
        records.print_json({"model": str(options.output), **records.summary_record(clf.deployed_, evaluation)})
    else:
        console.print_fit(clf.deployed_, evaluation, options.data, options.target, n_rows, options.output)


def _notes(context: click.Context, options: FitOptions, rows: Rows, evaluation: "Evaluation | None") -> dict[str, Any]:
    """Return the origin of a model; enough to make it again."""
    return {
        "data": options.data.name,
        "data sha256": rows.digest or digest_of(options.data),
        "target": options.target,
        "rows": rows.n_rows,
        "test rows": evaluation.n_rows if evaluation else 0,
        "test file": options.test.name if options.test else "held out from the data" if evaluation else "none",
        "seed": options.seed,
        "command": _command(context),
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _command(context: click.Context) -> str:
    """Return the command again, with the options that were given; of paths only the names."""
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
