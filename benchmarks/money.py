"""Money: what `errors=...` costs on ten data sets with prices of tests and errors, beside optimal trees.

    python -m benchmarks.money results.csv --splits 0-19 --streed streed.csv
    python -m benchmarks.money car.csv --error-price 1000 --sets car --splits 0-9

One fit per set, level and split, all defaults besides ``errors``; a line per fit in the CSV, which a second run goes on
with. The score is (mean price of tests + mean price of errors) / (price of all tests + share of the test rows that are
not of the most frequent class x largest error price). The price of all tests is the published one: the first test of a
group at its price, the others at their discount. We pay by ``load_cost_sensitive``, where no test is cheaper than
published. ``--streed`` is a CSV of the scores of optimal cost-sensitive trees (set, level, max_depth, split, score),
with which ours are compared in pairs, split by split.

``--error-price`` gives every error the same price instead, and prints the money per case. ``--validation 0.33`` lets
a third of the training rows judge, instead of five folds, as the other methods do in ``benchmarks.money_rivals``.
"""

import argparse
import csv
from importlib.resources import files
from pathlib import Path
from time import perf_counter
from typing import Any
import warnings

import numpy as np

from emsco import EMSCOClassifier
from emsco.datasets import load_cost_sensitive
from emsco.datasets.cost_sensitive import COST_SENSITIVE, LEVELS

_FIELDS = (
    "set", "level", "split", "score", "tests", "errors", "constant", "seconds", "learner", "stages", "bought",
    "branches",
)  # fmt: skip


def fit_one(
    name: str,
    level: str,
    split: int,
    validation: float | None = None,
    error_price: float | None = None,
    branch: str | None = None,
) -> dict[str, Any]:
    """Fit one split and return its line."""
    data = load_cost_sensitive(name, level=level)
    if error_price is not None:
        data.errors = error_price * (1.0 - np.eye(len(data.errors)))
    test = data.splits[split]
    train = np.setdiff1d(np.arange(len(data.target)), test)
    X, y = data.data, data.target.to_numpy()
    known = np.unique(y[train])  # nursery has two rows of one class, and in some splits none of them trains
    prices_of_errors = data.errors[np.ix_(known, known)]
    began = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = EMSCOClassifier(
            data.prices, errors=prices_of_errors, validation=validation, branch=branch, random_state=split
        )
        clf.fit(X.iloc[train], y[train])
    seconds = perf_counter() - began
    decided = clf.decide(X.iloc[test])
    assert decided.conclusive.all()
    scale = published_total(name, level) + (1 - np.bincount(y[test]).max() / test.size) * data.errors.max()
    tests, errors = float(decided.cost.mean()), float(data.errors[y[test], decided.label.data.astype(int)].mean())
    constant = data.errors[y[test]][:, data.errors[y[train]].sum(axis=0).argmin()].mean()
    figures = (tests + errors) / scale, tests, errors, constant / scale, seconds
    n_bought = int((clf.design_ >= 0).sum())
    rounded = [f"{figure:.6g}" for figure in figures]
    branched = clf.front_.branched[clf.point_] if clf.front_.branched else None
    n_branches = 1 if branched is None else branched.n_branches
    values = (name, level, split, *rounded, clf.learner_, len(clf.stages_), n_bought, n_branches)
    return dict(zip(_FIELDS, values, strict=True))


def published_total(name: str, level: str) -> float:
    """Return the published price of all tests: of each group, the first one at its price, the others discounted."""
    text = files("emsco.datasets").joinpath("data", "cost-sensitive", name, f"costs-{level}.txt").read_text()
    total, seen = 0.0, set()
    for line in text.partition("Attribute-name")[2].splitlines()[1:]:
        if line.strip():
            _, alone, later, group, _, _ = line.split()
            total += float(later if group in seen else alone)
            seen.add(group)
    return total


def run(path: Path, sets: list[str], levels: tuple[str, ...], splits: list[int], **options: float | None) -> None:
    """Fit what the file does not have."""
    done = set()
    if path.exists():
        with path.open() as file:
            done = {(row["set"], row["level"], int(row["split"])) for row in csv.DictReader(file)}
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS)
        if not done:
            writer.writeheader()
        for split in splits:
            for name in sets:
                for level in levels:
                    if (name, level, split) not in done:
                        writer.writerow(fit_one(name, level, split, **options))
                        file.flush()


def print_money(path: Path) -> None:
    """Print the money per case of each set, with its standard error over splits."""
    money: dict[str, list[float]] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            money.setdefault(row["set"], []).append(float(row["tests"]) + float(row["errors"]))
    for name, each in money.items():
        error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
        print(f"{name:10} {np.mean(each):8.1f} +- {error:.1f} ({len(each)} splits)")


def compare(path: Path, streed: Path, splits: list[int]) -> None:
    """Print ours beside the trees, paired by split."""
    with path.open() as file:
        ours = {(r["set"], r["level"], int(r["split"])): r for r in csv.DictReader(file)}
    theirs: dict[tuple[str, str, int], dict[int, float]] = {}
    with streed.open() as file:
        for r in csv.DictReader(file):
            theirs.setdefault((r["set"], r["level"], int(r["max_depth"])), {})[int(r["split"])] = float(r["score"])
    for against in ("depth 3", "best depth"):
        n_not_worse = n_better = n_all = 0
        sums = np.zeros(2)
        print(f"{'set':10} {'level':7} {'ours':>7} {against:>10} {'diff':>8} {'error':>7} {'seconds':>8}")
        for name in COST_SENSITIVE:
            for level in LEVELS:
                depths = {d: theirs[name, level, d] for d in (2, 3, 4) if (name, level, d) in theirs}
                mine = {s: ours[name, level, s] for s in splits if (name, level, s) in ours and s in depths[3]}
                if len(mine) < 2:
                    continue
                mean = {
                    d: np.mean([scores[s] for s in mine]) for d, scores in depths.items() if set(mine) <= set(scores)
                }
                depth = 3 if against == "depth 3" else min(mean, key=lambda d: float(mean[d]))
                score = np.array([float(row["score"]) for row in mine.values()])
                other = np.array([depths[depth][s] for s in mine])
                difference = score - other
                error = difference.std(ddof=1) / np.sqrt(difference.size)
                n_all += 1
                n_not_worse += int(difference.mean() <= error + 1e-6)
                n_better += int(difference.mean() < -error - 1e-6)
                sums += score.mean(), other.mean()
                seconds = np.median([float(row["seconds"]) for row in mine.values()])
                print(
                    f"{name:10} {level:7} {score.mean():7.4f} {other.mean():10.4f} {difference.mean():+8.4f} "
                    f"{error:7.4f} {seconds:8.2f}"
                )
        print(
            f"{against}: not worse by more than one standard error on {n_not_worse} of {n_all}, better by more than "
            f"one on {n_better}; total {sums[0]:.4f} against {sums[1]:.4f} ({sums[0] / sums[1] - 1:+.1%})\n"
        )


def main() -> None:
    """Run, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", default=",".join(COST_SENSITIVE))
    parser.add_argument("--splits", default="0-19", help="first and last, such as 0-4")
    parser.add_argument("--streed", type=Path)
    parser.add_argument("--validation", type=float, help="share of the training rows that judges; 5 folds if left out")
    parser.add_argument("--branch", choices=["auto"], help="whether designs may branch; chains if left out")
    parser.add_argument("--error-price", type=float, help="of every error, in place of those of the levels")
    options = parser.parse_args()
    first, _, last = options.splits.partition("-")
    splits = list(range(int(first), int(last or first) + 1))
    levels = LEVELS if options.error_price is None else LEVELS[-1:]
    asked = {"validation": options.validation, "error_price": options.error_price, "branch": options.branch}
    run(options.results, options.sets.split(","), levels, splits, **asked)
    if options.error_price is not None:
        print_money(options.results)
    if options.streed is not None:
        compare(options.results, options.streed, splits)


if __name__ == "__main__":
    main()
