"""The options of ``emsco fit``, and the classifier that they describe."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from emsco.cli.evolving import OPTIONS as EVOLUTION
from emsco.cli.evolving import search_of
from emsco.cli.options import OBJECTIVES, choice_of, limits_of, recalled
from emsco.exceptions import MissingDependencyError

ESTIMATORS = ["tree", "forest", "boosting", "naive-bayes"]
FINAL = ["auto", "search", *ESTIMATORS]


@dataclass(frozen=True)
class FitOptions:
    """The options of ``emsco fit``, as they were given."""

    data: Path
    target: str
    drop: tuple[str, ...]
    costs: Path | None
    overhead: float | None
    parallel: bool
    file_encoding: str
    threshold: tuple[str, ...]
    guarantee: float | None
    confidence: float | None
    guarantee_per_class: bool
    guarantee_rows: Path | None
    preset: str
    search: str | None
    population_size: int | None
    max_generations: int | None
    patience: int | None
    mutation_rate: float | None
    recombination_rate: float | None
    elite_fraction: float | None
    stage_bias: float | None
    init_rate: float | None
    unique: str | None
    time_limit: float | None
    max_stages: int | None
    removal: bool | None
    branch: str | None
    objectives: tuple[str, ...]
    loss: Path | None
    errors: Path | None
    estimator: str
    final: str | None
    encoding: str | None
    regularisation: str | None
    products: bool
    calibration: str | None
    validation: str | None
    refit: bool
    test_size: float
    test: Path | None
    no_test: bool
    max_cost: float | None
    min_coverage: float | None
    min_accuracy: float | None
    min_recall: tuple[str, ...]
    min_precision: tuple[str, ...]
    best: str | None
    knee: bool
    one_standard_error: bool
    output: Path
    seed: int
    jobs: int
    checkpoint: Path | None
    cluster: str | None
    as_json: bool


def classifier_of(options: FitOptions, prices: Any, y: Any) -> Any:
    """Return the classifier that options describe, not fitted yet.

    Parameters
    ----------
    options : FitOptions
    prices : Prices or None
    y : ndarray
        The labels to learn from; a loss file must have a price for each.
    """
    from emsco.estimators import EMSCOClassifier

    regularisation = options.regularisation
    return EMSCOClassifier(
        prices,
        threshold=threshold_of(options),
        estimator=_estimator(options.estimator),
        max_stages=options.max_stages,
        removal=options.removal,
        branch=options.branch,
        search=search_of(options.search, options.preset, {name: getattr(options, name) for name in EVOLUTION}),
        validation=_number("--validation", options.validation, "a share such as 0.33, or a number of folds such as 5"),
        encoding=options.encoding,
        C="auto" if regularisation == "auto" else _number("--regularisation", regularisation, "a number, or auto"),
        final_estimator=_final(options.final, options.preset),
        calibration=options.calibration,
        products=options.products,
        preset=options.preset,
        refit=options.refit,
        random_state=options.seed,
        n_jobs=options.jobs,
        time_limit=options.time_limit,
        objectives=_objectives(options.objectives, options.loss, y),
        errors=_errors(options.errors, y),
        choose=choose_of(options),
    )


def choose_of(options: FitOptions) -> str | dict[str, Any] | None:
    """Return how a point of the front is chosen."""
    best = options.best
    if best is not None and (best in OBJECTIVES[3:] or recalled(best)) and best not in options.objectives:
        raise click.UsageError(f"--best {best}: the search has no such objective; give --objective {best} and others.")
    within = limits_of(
        options.max_cost, options.min_coverage, options.min_accuracy, options.min_recall, options.min_precision
    )
    return choice_of(within, best, options.knee, options.one_standard_error)


def threshold_of(options: FitOptions) -> Any:
    """Return the threshold of a classifier: a number, one per class or stage, a promise; None if none is given."""
    from emsco.promises.guarantee import Guarantee
    from emsco.promises.own import AUTO

    given, accuracy, confidence = options.threshold, options.guarantee, options.confidence
    if AUTO in given:
        if len(given) > 1 or accuracy is not None:
            raise click.UsageError("--threshold auto goes with no other threshold, and with no --guarantee.")
        return AUTO
    text = " ".join(given)
    parts = [part for value in given for part in _parts_of(value)]
    pairs = [part.rpartition("=") for part in parts if "=" in part]
    try:
        numbers = [float(part.rpartition("=")[2]) for part in parts]
    except ValueError:
        raise click.UsageError(
            f"--threshold {text}: give numbers such as 0.9, CLASS=NUMBER for each class, or auto."
        ) from None
    if len({label.strip() for label, _, _ in pairs}) < len(pairs):
        raise click.UsageError(f"--threshold {text}: a class has two numbers; give one.")
    if pairs and len(pairs) < len(parts):
        raise click.UsageError(f"--threshold {text}: give a number for each class, or none with a class.")
    if accuracy is not None:
        if pairs or len(numbers) > 1:
            raise click.UsageError("with --guarantee, --threshold is one number: that of the search.")
        confidence, per_class = 0.95 if confidence is None else confidence, options.guarantee_per_class
        return Guarantee(accuracy, confidence, per_class=per_class, threshold=numbers[0] if numbers else None)
    if confidence is not None or options.guarantee_per_class or options.guarantee_rows is not None:
        raise click.UsageError("--confidence, --guarantee-per-class and --guarantee-rows go with --guarantee.")
    if pairs:
        return {label.strip(): number for (label, _, _), number in zip(pairs, numbers, strict=True)}
    return numbers if len(numbers) > 1 else next(iter(numbers), None)


def _parts_of(text: str) -> list[str]:
    """Return what commas separate; one in the name of a class separates nothing."""
    parts = text.split(",")
    return [text] if "=" in text and not all("=" in part for part in parts) else parts


def need_skops() -> None:
    """Raise if skops is not installed: before the search, not after it."""
    if find_spec("skops") is None:
        raise MissingDependencyError("model files of other estimators need skops: pip install 'emsco[skops]'.")


def _final(name: str | None, preset: str) -> Any:
    """Return the final classifier; without skops boosted trees could not be saved, so they do not compete."""
    if name is None:
        return "search" if preset == "best" and find_spec("skops") is None else None
    if name == "auto":
        need_skops()
    return name if name in ("auto", "search") else _estimator(name)


def _estimator(name: str) -> Any:
    if name == "logistic":
        return None
    need_skops()
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


def _errors(path: Path | None, y: Any) -> Any:
    """Return the prices of errors in a file, as a table."""
    if path is None:
        return None
    import numpy as np

    from emsco.scoring.loss_files import read_errors

    return read_errors(path, [str(label) for label in np.unique(y).tolist()])


def _objectives(names: tuple[str, ...], loss: Path | None, y: Any) -> tuple[Any, ...] | None:
    import numpy as np

    from emsco.scoring.loss_files import read_loss
    from emsco.scoring.objectives import Recall

    if ("loss" in names) != (loss is not None):
        raise click.UsageError("--objective loss and --loss FILE go together.")
    if len(names) == 1:
        raise click.UsageError("give --objective twice or more: one objective alone has no front.")
    prices = None if loss is None else read_loss(loss, [str(label) for label in np.unique(y).tolist()])
    own = {"loss": prices, **{name: Recall(label) for name in names if (label := recalled(name)) is not None}}
    return tuple(own.get(name, name) for name in names) or None
