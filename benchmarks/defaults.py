"""A person who sets nothing: EMSCO's defaults beside LightGBM on all features, on 17 data sets.

    python -m benchmarks.defaults                     # ten splits each, resumable; writes results/defaults.csv
    python -m benchmarks.defaults --splits 10 11      # other splits; 30 to 39 are those of the docs
    python -m benchmarks.defaults --show              # the table of what is there

Of every split, a quarter of the rows tests (below 20, of the cost-sensitive sets the published fifth). LightGBM is
plain: 200 trees on all features, a label for everybody. Margins are standard errors of the paired differences over
splits. Seconds are of one processor. *In* says in how many splits the interval that ``outlook_`` gives for so many new
rows holds the test figure. *Everything* is the accuracy of buying all features with the learner of the fit.
"""

import argparse
from collections.abc import Iterator
import csv
from dataclasses import asdict, dataclass, fields
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any
import warnings

import numpy as np
from sklearn.model_selection import train_test_split

from emsco import EMSCOClassifier, datasets
from emsco.datasets.cost_sensitive import COST_SENSITIVE

LOADERS = {
    "heart": datasets.load_heart_failure,
    "pima": datasets.load_pima,
    "credit": datasets.load_australian_credit,
    "heart-disease": datasets.load_heart_disease,
    "spambase": datasets.load_spambase,
    "thyroid": lambda: datasets.load_thyroid(subset="all"),
    "synthetic30": datasets.make_synthetic30,
} | {f"cs-{name}": (lambda name=name: datasets.load_cost_sensitive(name)) for name in COST_SENSITIVE}


@dataclass(frozen=True)
class Trial:
    """One split of one data set."""

    dataset: str
    split: int
    n_test: int
    coverage: float
    accuracy: float
    balanced: float
    cost: float
    total_price: float
    learner: str
    n_stages: int
    margin: float
    seconds: float
    everything: float
    other_accuracy: float
    other_balanced: float
    expected_accuracy: float
    shown_accuracy: float
    accuracy_in: bool
    coverage_in: bool
    cost_in: bool


def rows_of(bunch: Any, split: int) -> tuple[Any, Any]:
    """Return the rows that train and that test in a split."""
    n = len(bunch.target)
    if "splits" in bunch and split < len(bunch.splits):
        test = bunch.splits[split]
        return np.setdiff1d(np.arange(n), test), test
    _, sizes = np.unique(bunch.target, return_counts=True)
    stratify = bunch.target if sizes.min() > 1 else None  # nursery has a class of a single row
    return train_test_split(np.arange(n), test_size=0.25, random_state=split, stratify=stratify)


def trial(task: tuple[str, int]) -> Trial:
    """Fit with defaults, and LightGBM, and test both."""
    from lightgbm import LGBMClassifier

    warnings.simplefilter("ignore")
    name, split = task
    bunch = LOADERS[name]()
    train, test = rows_of(bunch, split)
    X, y = bunch.data, np.asarray(bunch.target)
    test = test[np.isin(y[test], y[train])]
    began = process_time()
    clf = EMSCOClassifier(bunch.prices, random_state=split).fit(X.iloc[train], y[train])
    seconds = process_time() - began
    decisions = clf.decide(X.iloc[test])
    right = decisions.conclusive & (decisions.label.data == y[test])
    columns = X.set_axis([f"x{i}" for i in range(X.shape[1])], axis=1)  # LightGBM refuses some characters in names
    plain = LGBMClassifier(n_estimators=200, n_jobs=1, verbose=-1, random_state=0).fit(columns.iloc[train], y[train])
    hit = plain.predict(columns.iloc[test]) == y[test]
    everything = clf.evaluate(X.iloc[test], y[test]).everything.accuracy
    outlook = clf.outlook_
    measured = {
        "accuracy": right.sum() / decisions.conclusive.sum(),
        "coverage": decisions.conclusive.mean(),
        "mean_cost": decisions.cost.mean(),
    }
    ends = {figure: outlook.interval(figure, n_rows=test.size) for figure in measured}
    holds = {figure: ends[figure][0] - 1e-9 <= value <= ends[figure][1] + 1e-9 for figure, value in measured.items()}
    return Trial(
        name, split, int(test.size), float(measured["coverage"]), float(measured["accuracy"]),
        _balanced(right, y[test]), float(measured["mean_cost"]), float(clf.front_.total_price), clf.learner_,
        len(clf.stages_), clf.front_.margin, seconds, everything, float(hit.mean()), _balanced(hit, y[test]),
        outlook.accuracy, float(clf.front_.accuracy[clf.point_]),
        bool(holds["accuracy"]), bool(holds["coverage"]), bool(holds["mean_cost"]),
    )  # fmt: skip


def _balanced(right: Any, y: Any) -> float:
    return float(np.mean([right[y == label].mean() for label in np.unique(y)]))


def read(path: Path) -> list[Trial]:
    """Return the trials of a file."""
    if not path.exists():
        return []
    kinds = {field.name: field.type for field in fields(Trial)}
    with path.open(newline="") as file:
        return [Trial(**{k: v == "True" if kinds[k] is bool else kinds[k](v) for k, v in row.items()})
                for row in csv.DictReader(file)]  # fmt: skip


def run(path: Path, names: list[str], splits: list[int], jobs: int) -> None:
    """Run the trials that are not in the file yet, and add them to it."""
    done = {(t.dataset, t.split) for t in read(path)}
    tasks = [(name, split) for split in splits for name in names if (name, split) not in done]
    path.parent.mkdir(parents=True, exist_ok=True)
    with get_context("spawn").Pool(jobs) as pool:
        for result in pool.imap_unordered(trial, tasks):
            fresh = not path.exists()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Trial)])
                if fresh:
                    writer.writeheader()
                writer.writerow(asdict(result))
            print(f"{result.dataset} {result.split}: {result.seconds:.0f} s", flush=True)


def table(trials: list[Trial]) -> Iterator[str]:
    """Yield the lines of the table, one data set each, and the totals."""
    head = ("data", "splits", "accuracy", "difference", "to everything", "balanced", "difference", "price", "seconds")
    yield f"| {' | '.join((*head, 'learners', 'in'))} |"
    yield "|---" * (len(head) + 2) + "|"
    n_cheap, worse = 0, []
    for name in LOADERS:
        part = [t for t in trials if t.dataset == name]
        if not part:
            continue
        by = {f.name: np.array([getattr(t, f.name) for t in part]) for f in fields(Trial)}
        less = (by["accuracy"] - by["everything"]).mean()
        gaps = {"accuracy": by["accuracy"] - by["other_accuracy"], "balanced": by["balanced"] - by["other_balanced"]}
        error = {k: gap.std(ddof=1) / np.sqrt(len(part)) if len(part) > 1 else np.nan for k, gap in gaps.items()}
        worse += [f"{name} ({k})" for k, gap in gaps.items() if gap.mean() < -error[k]]
        share = by["cost"].mean() / by["total_price"].mean()
        n_cheap += share <= 0.5
        learners = ", ".join(f"{kind} {int((by['learner'] == kind).sum())}" for kind in sorted(set(by["learner"])))
        inside = np.mean([by["accuracy_in"], by["coverage_in"], by["cost_in"]], axis=1)
        yield (
            f"| {name} | {len(part)} | {by['accuracy'].mean():.3f} | "
            f"{gaps['accuracy'].mean():+.4f} ± {error['accuracy']:.4f} | {less:+.4f} | {by['balanced'].mean():.3f} | "
            f"{gaps['balanced'].mean():+.4f} ± {error['balanced']:.4f} | {share:.0%} | {by['seconds'].mean():.0f} | "
            f"{learners} | {', '.join(f'{value:.0%}' for value in inside)} |"
        )
    inside = np.mean([[t.accuracy_in, t.coverage_in, t.cost_in] for t in trials], axis=0)
    optimism = (
        np.mean([t.shown_accuracy - t.accuracy for t in trials]),
        np.mean([t.expected_accuracy - t.accuracy for t in trials]),
    )
    yield ""
    yield f"At most half of the price: {n_cheap} data sets."
    yield f"Lower by more than a standard error: {', '.join(worse) or 'none'}."
    yield f"Test figure within the interval (accuracy, coverage, cost): {', '.join(f'{v:.1%}' for v in inside)}."
    yield f"Accuracy out of fold minus test: {optimism[0]:+.4f}; expected minus test: {optimism[1]:+.4f}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, nargs="+", default=list(range(30, 40)))
    parser.add_argument("--data", nargs="+", choices=list(LOADERS), default=list(LOADERS))
    parser.add_argument("--out", type=Path, default=Path("results/defaults.csv"))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if not options.show:
        run(options.out, options.data, options.splits, options.jobs)
    trials = [t for t in read(options.out) if t.dataset in options.data and t.split in options.splits]
    print("\n".join(table(trials)))


if __name__ == "__main__":
    main()
