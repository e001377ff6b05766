"""Designs that branch beside chains: what they gain on new rows at the same price, and what they cost in time.

    python -m benchmarks.branching                       # ten splits of 19 data sets, resumable
    python -m benchmarks.branching --only cube --splits 10 11
    python -m benchmarks.branching --quick               # logistic stages alone
    python -m benchmarks.branching --show                # the table of what is there

Of the two cubes 800 rows train and 4,000 others test, by the seed of the split; of the other sets a quarter of the rows
tests (of the cost-sensitive sets the published fifth). The classifier has a label for everybody, within a budget: 3, 5
and 8 for the cube, 7 and 10 for the cube with a context; else a quarter, a half and all of what the default choice
costs. *Gain* is the accuracy on test rows of the best point within the budget of a front with ``branch="auto"``, minus
that of the front of chains, with the same seed; 0 where no root was kept, because the fronts are equal then.
"""

import argparse
import csv
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from time import process_time
from typing import Any
import warnings

import numpy as np

from benchmarks.defaults import LOADERS, rows_of
from emsco import EMSCOClassifier, datasets
from emsco.exceptions import NoSuchPointError

CUBES = {"cube": (datasets.make_cube, (3.0, 5.0, 8.0)), "cube-context": (datasets.make_cube_context, (7.0, 10.0))}
QUICK = {"final_estimator": "search", "encoding": "linear", "C": 1.0}
_N_TRAIN, _N_TEST = 800, 4_000
_SHARES = (0.25, 0.5, 1.0)  # of the price of the default choice


@dataclass(frozen=True)
class Trial:
    """One budget of one split of a data set."""

    dataset: str
    split: int
    quick: bool
    budget: float
    kept: str
    n_screened: int
    n_tried: int
    chain: float
    branched: float
    chain_cost: float
    branched_cost: float
    chain_seconds: float
    branched_seconds: float


def rows(name: str, split: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return prices, and rows that train and that test."""
    if name in CUBES:
        make = CUBES[name][0]
        train, test = make(_N_TRAIN, random_state=split), make(_N_TEST, random_state=1_000 + split)
        return train.prices, train.data, train.target.to_numpy(), test.data, test.target.to_numpy()
    bunch = LOADERS[name]()
    train, test = rows_of(bunch, split)
    X, y = bunch.data, np.asarray(bunch.target)
    test = test[np.isin(y[test], y[train])]
    return bunch.prices, X.iloc[train], y[train], X.iloc[test], y[test]


def trials(name: str, split: int, *, quick: bool) -> list[Trial]:
    """Fit with and without branches, and test both within each budget."""
    warnings.simplefilter("ignore")
    prices, X, y, X_test, y_test = rows(name, split)
    options = QUICK if quick else {}
    fitted, seconds = [], []
    for branch in (None, "auto"):
        began = process_time()
        clf = EMSCOClassifier(prices, random_state=split, branch=branch, verbose=False, **options).fit(X, y)
        fitted.append(clf)
        seconds.append(process_time() - began)
    chain, branched = fitted
    tried = branched.branches_
    kept = next((" + ".join(gain.root) for gain in tried if gain.kept), "")
    if name in CUBES:
        budgets = CUBES[name][1]
    else:
        budgets = tuple(share * float(chain.front_.mean_cost[chain.point_]) for share in _SHARES)
    found = []
    for budget in budgets:
        figures = [within(clf, budget, X_test, y_test) for clf in (fitted if kept else fitted[:1])]
        (accuracy, cost), (other, other_cost) = figures[0], figures[-1]
        found.append(
            Trial(
                name,
                split,
                quick,
                budget,
                kept,
                tried.n_screened,
                len(tried),
                accuracy,
                other,
                cost,
                other_cost,
                *seconds,
            )
        )
    return found


def within(clf: Any, budget: float, X: Any, y: Any) -> tuple[float, float]:
    """Return accuracy and price per case of the best point within a budget that labels everybody."""
    try:
        point = clf.front_.choose(max_cost=budget, min_coverage=1, best="accuracy")
    except NoSuchPointError:
        return float("nan"), float("nan")
    decisions = clf.use(point).decide(X)
    return float((decisions.label.data == y).mean()), float(decisions.cost.mean())


def read(path: Path) -> list[Trial]:
    """Return the trials of a file."""
    if not path.exists():
        return []
    kinds = {field.name: field.type for field in fields(Trial)}
    with path.open(newline="") as file:
        return [Trial(**{k: v == "True" if kinds[k] is bool else kinds[k](v) for k, v in row.items()})
                for row in csv.DictReader(file)]  # fmt: skip


def run(path: Path, names: list[str], splits: list[int], *, quick: bool) -> None:
    """Run the trials that are not in the file yet, and add them to it."""
    done = {(t.dataset, t.split) for t in read(path) if t.quick == quick}
    path.parent.mkdir(parents=True, exist_ok=True)
    for split in splits:
        for name in names:
            if (name, split) in done:
                continue
            found, fresh = trials(name, split, quick=quick), not path.exists()
            with path.open("a", newline="") as file:
                writer = csv.DictWriter(file, [field.name for field in fields(Trial)])
                if fresh:
                    writer.writeheader()
                writer.writerows(map(asdict, found))
            for t in found:
                print(
                    f"{name} {split} at {t.budget:.4g}: {t.chain:.3f}, {t.branched - t.chain:+.3f} {t.kept}", flush=True
                )


def show(found: list[Trial]) -> str:
    """Return a table of means over splits."""
    lines = [
        "| data | splits | kept | budget | chain | gain | worst | time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    names = dict.fromkeys(t.dataset for t in found)
    for name in names:
        of_name = [t for t in found if t.dataset == name]
        places: dict[int, list[Trial]] = {}
        for split in dict.fromkeys(t.split for t in of_name):
            for place, t in enumerate(t for t in of_name if t.split == split):
                places.setdefault(place, []).append(t)
        for place, those in places.items():
            gains = np.array([t.branched - t.chain for t in those])
            known = ~np.isnan(gains)
            if not known.any():
                continue
            kept = sum(bool(t.kept) for t in those)
            budget = f"{those[0].budget:g}" if name in CUBES else f"{_SHARES[place]:.0%}"
            ratio = np.median([t.branched_seconds / t.chain_seconds for t in those])
            chain = np.nanmean([t.chain for t in those])
            lines.append(
                f"| {name} | {len(those)} | {kept} | {budget} | {chain:.3f} | {gains[known].mean():+.4f} | "
                f"{gains[known].min():+.3f} | {ratio:.2f}x |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*CUBES, *LOADERS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    parser.add_argument("--splits", nargs="+", type=int, default=list(range(10)))
    parser.add_argument("--out", type=Path, default=Path("results/branching.csv"))
    parser.add_argument("--quick", action="store_true", help="logistic stages alone")
    parser.add_argument("--show", action="store_true", help="the table of what is there")
    options = parser.parse_args()
    if not options.show:
        run(options.out, options.only, options.splits, quick=options.quick)
    print(show([t for t in read(options.out) if t.quick == options.quick]))


if __name__ == "__main__":
    main()
