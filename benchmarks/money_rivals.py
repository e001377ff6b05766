"""Money beside other methods: boosted trees on all and on the best features, CEGB*, GM* and CSTC*, tuned by money.

    python -m benchmarks.money_rivals rivals.csv --splits 5-19 --sets iris,heart,glass --ours results.csv

Each method gives the label of least expected price under its probabilities. Its settings are chosen by the money,
tests and errors together, of a third of the training rows; buying nothing is one of the choices. ``--ours`` is the CSV
of ``benchmarks.money``, with which scores are compared in pairs. Needs LightGBM.
"""

import argparse
from collections.abc import Callable, Iterable
import csv
from pathlib import Path
from time import perf_counter
from typing import Any
import warnings

import numpy as np

from benchmarks.money import published_total
from emsco.baselines.base import Candidate, Rival
from emsco.baselines.cegb import CEGB
from emsco.baselines.cstc import CSTC
from emsco.baselines.greedy_miser import GreedyMiser
from emsco.baselines.top_features import TopFeatures
from emsco.datasets import load_cost_sensitive
from emsco.datasets.cost_sensitive import COST_SENSITIVE, LEVELS
from emsco.stages.problem import Problem

_FIELDS = ("set", "level", "split", "method", "score", "tests", "errors", "seconds")
_SHAPE = {"learning_rates": (0.1,), "num_leaves": (4, 8), "min_rows_in_leaf": (5,), "n_rounds": 100}
METHODS: dict[str, Callable[[int], Rival]] = {
    "all features": lambda n: TopFeatures(n_units=(n,), orders=("gain",), **_SHAPE),
    "best features": lambda n: TopFeatures(n_units=tuple(range(1, n + 1)), orders=("gain", "gain per price"), **_SHAPE),
    "CEGB*": lambda n: CEGB(**_SHAPE),
    "GM*": lambda n: GreedyMiser(),
    "CSTC*": lambda n: CSTC(levels=(1, 2, 3), omegas=("leaves",), sparsities=(1e-3,), temperatures=(1.0,), C=(1.0,)),
}


def tuned_by_money(method: Rival, prices_of_errors: Any) -> Rival:
    """Return a method whose settings are chosen by money; where nothing pays, it reads nothing."""
    kind: Any = type(method)

    class ByMoney(kind):  # type: ignore[misc]
        """The same method."""

        def _choose(self, candidates: Iterable[Candidate], problem: Problem, threshold: float) -> None:
            truth = problem.y_validation
            self.constant_: int | None = int(prices_of_errors[problem.y_train].sum(axis=0).argmin())
            least = float(prices_of_errors[truth, self.constant_].mean())
            if isinstance(method, TopFeatures) and len(method.n_units) == 1:  # all features, whatever they cost
                least = np.inf
            for candidate in candidates:
                trace = candidate.model.trace(problem.validation)
                label = (trace.probabilities @ prices_of_errors).argmin(axis=1)
                money = float((self._cost(trace)[1] + prices_of_errors[truth, label]).mean())
                if money < least:
                    least, self.constant_ = money, None
                    self._model, self.settings_ = candidate.model, candidate.settings

    return ByMoney(**method.get_params(deep=False))  # type: ignore[no-any-return]


def score_one(name: str, level: str, split: int, method: str) -> dict[str, Any]:
    """Fit one method on one split and return its line."""
    data = load_cost_sensitive(name, level=level)
    test = data.splits[split]
    train = np.setdiff1d(np.arange(len(data.target)), test)
    X, y = data.data, data.target.to_numpy()
    known = np.unique(y[train])
    prices_of_errors = data.errors[np.ix_(known, known)]
    began = perf_counter()
    rival: Any = tuned_by_money(METHODS[method](len(data.prices.units)), prices_of_errors)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rival.set_params(random_state=split).fit(X.iloc[train], y[train], data.prices)
    if rival.constant_ is not None:
        cost, code = np.zeros(test.size), np.full(test.size, rival.constant_)
    else:
        trace = rival.trace(X.iloc[test])
        cost, code = rival._cost(trace)[1], (trace.probabilities @ prices_of_errors).argmin(axis=1)
    seconds = perf_counter() - began
    tests, errors = float(cost.mean()), float(data.errors[y[test], known[code]].mean())
    scale = published_total(name, level) + (1 - np.bincount(y[test]).max() / test.size) * data.errors.max()
    figures = [f"{figure:.6g}" for figure in ((tests + errors) / scale, tests, errors, seconds)]
    return dict(zip(_FIELDS, (name, level, split, method, *figures), strict=True))


def compare(path: Path, ours: Path) -> None:
    """Print ours beside each method, in pairs, over all sets and levels."""
    with ours.open() as file:
        mine = {(r["set"], r["level"], r["split"]): float(r["score"]) for r in csv.DictReader(file)}
    with path.open() as file:
        theirs = [row for row in csv.DictReader(file) if (row["set"], row["level"], row["split"]) in mine]
    print(f"{'method':14} {'ours':>7} {'theirs':>7} {'better':>7} {'worse':>6} {'lines':>6}")
    for method in METHODS:
        lines: dict[tuple[str, str], list[tuple[float, float]]] = {}
        for r in theirs:
            if r["method"] == method:
                pair = mine[r["set"], r["level"], r["split"]], float(r["score"])
                lines.setdefault((r["set"], r["level"]), []).append(pair)
        pairs = {line: np.array(values).T for line, values in lines.items() if len(values) > 1}
        if not pairs:
            continue
        means = np.array([values.mean(axis=1) for values in pairs.values()])
        signs = []
        for a, b in pairs.values():
            error = (a - b).std(ddof=1) / np.sqrt(a.size)
            signs.append(int(np.sign((a - b).mean()) if abs((a - b).mean()) > error + 1e-6 else 0))
        total = means.sum(axis=0)
        print(f"{method:14} {total[0]:7.4f} {total[1]:7.4f} {signs.count(-1):7} {signs.count(1):6} {len(signs):6}")


def main() -> None:
    """Run what the file does not have, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--sets", default=",".join(COST_SENSITIVE))
    parser.add_argument("--splits", default="5-19", help="first and last, such as 5-19")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--ours", type=Path)
    options = parser.parse_args()
    first, _, last = options.splits.partition("-")
    done = set()
    if options.results.exists():
        with options.results.open() as file:
            done = {(r["set"], r["level"], int(r["split"]), r["method"]) for r in csv.DictReader(file)}
    with options.results.open("a", newline="") as file:
        writer = csv.DictWriter(file, _FIELDS)
        if not done:
            writer.writeheader()
        for split in range(int(first), int(last or first) + 1):
            for name in options.sets.split(","):
                for level in LEVELS:
                    for method in options.methods.split(","):
                        if (name, level, split, method) not in done:
                            writer.writerow(score_one(name, level, split, method))
                            file.flush()
    if options.ours is not None:
        compare(options.results, options.ours)


if __name__ == "__main__":
    main()
