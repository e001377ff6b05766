"""Default fits of an earlier source tree beside those of this one: the labels on held-out rows, and the time.

    git worktree add ../before COMMIT
    python -m benchmarks.before ../before/src results.csv --sets heart,thyroid --splits 0-4

Each fit runs in a process of its own, the two trees in turn, on three quarters of the rows; a second call goes on with
the file. The figures are the share of the other rows that get a correct label, from the most accurate point by the
training rows that labels everybody within a budget of 10, 30 and 100 % of the price of everything, and from the point
in use. The table has their paired differences, this tree minus the earlier one, with the standard error over splits.
"""

import argparse
import csv
import json
import os
from pathlib import Path
import subprocess
import sys
from time import perf_counter, process_time
from typing import Any
import warnings

import numpy as np

from benchmarks.fits import table

SHARES = (0.1, 0.3, 1.0)  # of the price of everything
_FIGURES = (*(f"at {share:.0%}" for share in SHARES), "in use")
_FIELDS = ("tree", "set", "split", *_FIGURES, "cost in use", "seconds", "processor")


def fit_one(name: str, split: int) -> dict[str, Any]:
    """Return the figures of one fit by whatever tree this process imports."""
    from emsco import EMSCOClassifier

    X, y, prices = table(name)
    order = np.random.default_rng(100 + split).permutation(y.size)
    test, train = order[: y.size // 4], order[y.size // 4 :]
    rows = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    warnings.simplefilter("ignore")
    began, used = perf_counter(), process_time()
    clf = EMSCOClassifier(prices, random_state=split).fit(rows(train), y[train])
    seconds = {"seconds": perf_counter() - began, "processor": process_time() - used}
    evaluation = clf.evaluate(rows(test), y[test])
    total = clf.deployed_.prices.total
    bought = evaluation.at_cost([share * total for share in SHARES], min_coverage=1.0)
    shares = (bought["coverage"] * bought["accuracy"]).fillna(0.0).tolist()
    used_point = evaluation.in_use if hasattr(evaluation, "in_use") else evaluation.points[evaluation.point]
    values = (*shares, float(np.trace(np.array(used_point.confusion))) / evaluation.n_rows)
    return {**dict(zip(_FIGURES, values, strict=True)), "cost in use": used_point.mean_cost / total, **seconds}


def run(trees: dict[str, Path], path: Path, sets: list[str], splits: list[int]) -> None:
    """Fit what the file does not have."""
    done = set()
    if path.exists():
        with path.open() as file:
            done = {(row["tree"], row["set"], int(row["split"])) for row in csv.DictReader(file)}
    else:
        path.write_text(",".join(_FIELDS) + "\n")
    for name in sets:
        for split in splits:
            for tree, source in trees.items():
                if (tree, name, split) in done:
                    continue
                command = [sys.executable, "-m", "benchmarks.before", "--one", name, str(split)]
                environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
                said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
                found = {"tree": tree, "set": name, "split": split, **json.loads(said.splitlines()[-1])}
                with path.open("a") as file:
                    csv.DictWriter(file, _FIELDS).writerow(found)
                print(" ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in found.values()), flush=True)


def compare(path: Path) -> None:
    """Print the paired differences."""
    with path.open() as file:
        found = {(r["tree"], r["set"], r["split"]): r for r in csv.DictReader(file)}
    for name in dict.fromkeys(key[1] for key in found):
        pairs = [(found["now", name, s], r) for (t, n, s), r in found.items() if (t, n) == ("before", name)
                 and ("now", name, s) in found]  # fmt: skip
        if not pairs:
            continue
        line = f"{name:<12} {len(pairs):>2} splits"
        for figure in _FIGURES:
            d = np.array([float(a[figure]) - float(b[figure]) for a, b in pairs])
            error = d.std(ddof=1) / np.sqrt(d.size) if d.size > 1 else np.nan
            line += f"   {figure} {d.mean():+.4f} +- {error:.4f}"
        for unit in ("seconds", "processor"):
            now, before = (np.median([float(pair[i][unit]) for pair in pairs]) for i in (0, 1))
            line += f"   {unit} {before:.1f} -> {now:.1f}"
        print(line)


def main() -> None:
    """Fit and compare, as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("before", type=Path, nargs="?")
    parser.add_argument("results", type=Path, nargs="?")
    parser.add_argument("--sets", default="heart,thyroid,spambase,soybean,nursery,20000x40,2000x500")
    parser.add_argument("--splits", default="0-4")
    parser.add_argument("--one", nargs=2)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(fit_one(given.one[0], int(given.one[1]))))
        return
    first, last = map(int, given.splits.split("-"))
    trees = {"before": given.before, "now": Path(__file__).parents[1] / "src"}
    run(trees, given.results, given.sets.split(","), list(range(first, last + 1)))
    compare(given.results)


if __name__ == "__main__":
    main()
