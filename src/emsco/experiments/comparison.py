"""Every method on the same data, prices and rules (§4.3): tuned on validation rows, scored once on test rows."""

from collections.abc import Iterable, Iterator, Sequence
import csv
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
import json
from pathlib import Path
from time import process_time
from typing import Any
import warnings

from joblib import Parallel, delayed
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from emsco.data.labels import check_target
from emsco.data.output import writing_text
from emsco.data.splits import split_rows
from emsco.data.table import Table
from emsco.exceptions import FileError
from emsco.experiments.methods import Parts, methods
from emsco.experiments.setting import DATASETS
from emsco.prices.prices import Prices, resolve

FIGURES = ("coverage", "accuracy", "mean_cost", "combined")


@dataclass(frozen=True)
class Trial:
    """One method on one split of one data set; ``quick`` trials have small grids and are never mixed with full ones."""

    setting: str
    dataset: str
    method: str
    split: int
    seed: int
    quick: bool = False


@dataclass(frozen=True)
class Outcome:
    """Result of a trial on its test rows.

    Attributes
    ----------
    trial : Trial
    coverage, accuracy, mean_cost, combined : float
        ``combined`` is coverage + accuracy (0 if undefined) + saved share of the price of everything.
    seconds : float
        Processor time for training and tuning, which other work on the machine hardly changes.
    chosen : str
        JSON of the choice on the validation rows: a design, or the settings of a method.
    """

    trial: Trial
    coverage: float
    accuracy: float
    mean_cost: float
    combined: float
    seconds: float
    chosen: str

    def to_row(self) -> dict[str, Any]:
        """Return a line of the CSV file."""
        row = asdict(self) | {name: round(getattr(self, name), 7) for name in FIGURES}
        return {**row.pop("trial"), **row}


@lru_cache(maxsize=4)
def _load(dataset: str) -> Any:
    return DATASETS[dataset].load()


def split(dataset: str, number: int) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return prices, and train, validation and test rows (50-25-25, classes in proportion) of one split."""
    data = _load(dataset)
    codes, classes = check_target(data.target, len(data.target))
    rng = np.random.default_rng(number)
    rest, test = split_rows(codes, 0.25, rng, classes)
    train, validation = (rest[part] for part in split_rows(codes[rest], 1 / 3, rng, classes))
    y = np.asarray(data.target)
    by_name = isinstance(data.prices, Prices)
    prices = data.prices if by_name else list(data.prices.values())
    X = data.data.iloc if by_name else np.asarray(data.data)
    return prices, X[train], y[train], X[validation], y[validation], X[test], y[test]


def run_together(trials: Iterable[Trial]) -> list[Outcome]:
    """Run trials that differ in the setting only; what the settings have in common is trained once."""
    parts: Parts = {}
    return [run_trial(trial, parts) for trial in trials]


def run_trial(trial: Trial, parts: Parts | None = None) -> Outcome:
    """Train, tune and score; with the parts that other settings have trained, which it adds to."""
    costs, X, y, X_val, y_val, X_test, y_test = split(trial.dataset, trial.split)
    method = methods(trial.setting, parts)[trial.method](DATASETS[trial.dataset], trial.seed, trial.quick)
    started = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        method.fit(X, y, costs, X_val, y_val)
    seconds = process_time() - started + getattr(method, "shared_", 0.0)
    decisions = method.decide(X_test)
    given = decisions.conclusive
    accuracy = float((decisions.label.data == y_test)[given].mean()) if given.any() else float("nan")
    mean_cost = float(decisions.cost.mean())
    total = resolve(costs, Table(X).names).total
    score = float(given.mean()) + float(np.nan_to_num(accuracy)) + 1 - mean_cost / total
    chosen = json.dumps(getattr(method, "settings_", {}), default=lambda value: getattr(value, "tolist", str)())
    return Outcome(trial, float(given.mean()), accuracy, mean_cost, score, round(seconds, 3), chosen)


def run_trials(trials: Sequence[Trial], path: Path, *, n_jobs: int = 1) -> Iterator[tuple[int, int, Outcome | None]]:
    """Run the trials that the file lacks, in parallel; each is written to the file when it is done.

    The settings of a method on a split are run together, because they share most of the training.

    Yields the number done, the total number and the last trial; first, without a trial, the number done before.
    """
    done = {outcome.trial: outcome for outcome in read_outcomes(path)}
    missing = [trial for trial in trials if trial not in done]
    write_outcomes(done.values(), path)  # without a truncated last line
    groups: dict[Trial, list[Trial]] = {}
    for trial in missing:
        groups.setdefault(replace(trial, setting=""), []).append(trial)
    n_done = len(trials) - len(missing)
    yield n_done, len(trials), None
    run = delayed(run_together)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns())
        for outcomes in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(map(run, groups.values())):
            writer.writerows(outcome.to_row() for outcome in outcomes)
            file.flush()
            n_done += len(outcomes)
            yield n_done, len(trials), outcomes[-1]


def _columns() -> list[str]:
    return [f.name for f in fields(Trial)] + [f.name for f in fields(Outcome)[1:]]


def write_outcomes(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write a tidy CSV file, one line per trial."""
    with writing_text(path) as file:
        writer = csv.DictWriter(file, _columns())
        writer.writeheader()
        writer.writerows(outcome.to_row() for outcome in outcomes)


def read_outcomes(path: Path) -> list[Outcome]:
    """Return the trials of a file; none if there is no file. A truncated last line is ignored."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows and list(rows[0]) != _columns():
        raise FileError(f"{path} is not a file of trials of this version; give another folder.")
    outcomes = []
    for number, row in enumerate(rows):
        try:
            quick = {"True": True, "False": False}[row["quick"]]
            trial = Trial(row["setting"], row["dataset"], row["method"], int(row["split"]), int(row["seed"]), quick)
            json.loads(row["chosen"])
            coverage, accuracy, mean_cost, score, seconds = (float(row[name]) for name in (*FIGURES, "seconds"))
            outcomes.append(Outcome(trial, coverage, accuracy, mean_cost, score, seconds, row["chosen"]))
        except (KeyError, TypeError, ValueError) as error:
            if number < len(rows) - 1:
                raise FileError(f"line {number + 2} of {path} is damaged ({error}); remove it.") from error
    return outcomes


def in_the_paper(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the full trials with the paper's settings."""
    return [outcome for outcome in outcomes if outcome.trial.setting == "paper" and not outcome.trial.quick]
