"""Default fits of small, large and wide tables: how long they take, and how that grows.

    python -m benchmarks.fits                         # the bars
    python -m benchmarks.fits growth growth.csv       # seconds by rows and by columns, beside LightGBM's own; resumable
    python -m benchmarks.fits picture growth.csv docs/images/growth.svg
    python -m benchmarks.fits limits                  # a million rows within 10, 60 and 300 seconds

Every fit is one of three quarters of the rows in a process of its own; accuracy and cost are those of the others.
Generated tables have eight columns that inform, prices of 1, 10 and 100, and 5 % of wrong labels.
"""

from collections.abc import Iterator, Sequence
import csv
import json
from pathlib import Path
import subprocess
import sys
from time import perf_counter, process_time
from typing import Any
import warnings

import numpy as np

from benchmarks.common import Bar, peak_memory

SETS = {  # seconds, as bars
    "heart": 2, "thyroid": 20, "spambase": 90, "soybean": 20, "nursery": 20,
    "20000x40": 40, "60000x40": 60, "2000x500": 60, "5000x1000": 180, "1000000x50": 300,
}  # fmt: skip
ROWS = (1_000, 10_000, 100_000, 1_000_000)  # of 50 columns
COLUMNS = (10, 100, 1_000)  # of 5,000 rows


def table(name: str) -> tuple[Any, Any, Any]:
    """Return features, labels and prices."""
    from emsco import datasets

    if "x" in name and name.replace("x", "").isdigit():
        n_rows, n_columns = map(int, name.split("x"))
        rng = np.random.default_rng(0)
        X = rng.normal(size=(n_rows, n_columns))
        Z = X[:, :8]
        score = Z @ rng.normal(size=8) + Z[:, 0] * Z[:, 1] + np.abs(Z[:, 2]) + 0.5 * rng.normal(size=n_rows)
        y = (score > np.median(score)) ^ (rng.random(n_rows) < 0.05)
        return X, y.astype(np.int64), rng.choice([1.0, 10.0, 100.0], n_columns)
    loaders = {
        "heart": datasets.load_heart_failure,
        "thyroid": datasets.load_thyroid,
        "spambase": datasets.load_spambase,
    }
    bunch = loaders[name]() if name in loaders else datasets.load_cost_sensitive(name)
    return bunch.data, np.asarray(bunch.target), bunch.prices


def measured(name: str, *, lightgbm: bool = False, **settings: Any) -> dict[str, Any]:
    """Fit in this process, twice if that is fast: what is loaded and compiled first does not count."""
    from emsco import EMSCOClassifier

    X, y, prices = table(name)
    order = np.random.default_rng(1).permutation(y.size)
    test, train = order[: y.size // 4], order[y.size // 4 :]
    rows = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    warnings.simplefilter("ignore")
    warm_up = table("heart")
    EMSCOClassifier(warm_up[2], random_state=0).fit(*warm_up[:2])
    Xt, yt = rows(train), y[train]
    began, used = perf_counter(), process_time()
    clf = EMSCOClassifier(prices, random_state=0, **settings).fit(Xt, yt)
    taken, used = perf_counter() - began, process_time() - used
    decided = clf.decide(rows(test))
    found = {
        "name": name,
        "seconds": taken,
        "processor": used,
        "gigabytes": peak_memory() / 1024,
        "learner": clf.deployed_.origin.learner or "logistic",
        "accuracy": float((clf.predict(rows(test)) == y[test]).mean()),
        "cost": float(decided.cost.mean()),
        "everything": float(clf.deployed_.prices.total),
    }
    if lightgbm:
        from lightgbm import LGBMClassifier

        plain = LGBMClassifier(n_estimators=200, verbose=-1)
        began = perf_counter()
        plain.fit(Xt, yt)
        found |= {
            "lightgbm": perf_counter() - began,
            "lightgbm accuracy": float((plain.predict(rows(test)) == y[test]).mean()),
        }
    return found


def apart(name: str, **settings: Any) -> dict[str, Any]:
    """Fit in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.fits", "one", name, json.dumps(settings)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def bars(names: Sequence[str] = tuple(SETS)) -> Iterator[Bar]:
    for name in names:
        f, floor = apart(name), SETS[name]
        detail = (
            f"{f['processor']:.1f} s of processor; {f['learner']}, {f['gigabytes']:.1f} GB; test accuracy "
            f"{f['accuracy']:.4f} at {f['cost']:.4g} of "
            f"{f['everything']:.4g}"
        )
        yield Bar(f"a default fit: {name}", f["seconds"], "s", floor, detail)


def grow(path: Path) -> None:
    """Measure what is not in the file yet."""
    done = set()
    if path.exists():
        with path.open() as file:
            done = {row["name"] for row in csv.DictReader(file)}
    for name in dict.fromkeys([*(f"{n}x50" for n in ROWS), *(f"5000x{p}" for p in COLUMNS)]):
        if name in done:
            continue
        found = apart(name, lightgbm=True)
        new = not path.exists()
        with path.open("a") as file:
            writer = csv.DictWriter(file, found)
            if new:
                writer.writeheader()
            writer.writerow(
                {key: f"{value:.4g}" if isinstance(value, float) else value for key, value in found.items()}
            )
        print(found, flush=True)


def picture(path: Path, out: Path) -> None:
    """Draw the figure."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "emsco"
    from matplotlib import pyplot as plt

    with path.open() as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for axis, names, label in (
        (axes[0], [f"{n}x50" for n in ROWS], "rows (50 columns)"),
        (axes[1], [f"5000x{p}" for p in COLUMNS], "columns (5,000 rows)"),
    ):
        known = [name for name in names if name in rows]
        x = [int(name.split("x")[0 if axis is axes[0] else 1]) for name in known]
        for column, colour, text in (("seconds", "#0b5fa5", "EMSCO, all defaults"),
                                     ("lightgbm", "#b4531c", "LightGBM, 200 trees, one fit")):  # fmt: skip
            axis.loglog(x, [float(rows[name][column]) for name in known], "o-", color=colour, label=text)
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds, two cores")
    axes[0].legend(frameon=False)
    figure.savefig(out, metadata={"Date": None})


def main() -> None:
    """Do what the arguments say."""
    match sys.argv[1:]:
        case ["one", name, settings]:
            print(json.dumps(measured(name, **json.loads(settings))))
        case ["growth", path]:
            grow(Path(path))
        case ["picture", path, out]:
            picture(Path(path), Path(out))
        case ["limits"]:
            for limit in (10, 60, 300):
                f = apart("1000000x50", time_limit=limit)
                print(
                    f"limit {limit}: {f['seconds']:.1f} s, accuracy {f['accuracy']:.4f} at {f['cost']:.4g}", flush=True
                )
        case names:
            for bar in bars(names or tuple(SETS)):
                print(f"{bar.name:<40} {bar.value:7.1f} {bar.unit} (bar {bar.floor}) {bar.detail}", flush=True)


if __name__ == "__main__":
    main()
