"""Why an optimal tree (STreeD) leads on some data: what its score would be if it bought, or judged, as EMSCO does.

    python -m benchmarks.tree_lead                  # heart and pima, ten splits, two minutes on one core
    python -m benchmarks.tree_lead heart 3          # one data set, three splits

Prints coverage, accuracy, mean cost and combined score on test rows, like for like: of the tree; of the same tree if
every case bought all features of the tree; of logistic regressions of these features, all bought at once; of EMSCO.
"""

import sys
from typing import Any
import warnings

import numpy as np

from emsco.baselines.single_stage import SingleStage
from emsco.experiments.comparison import split
from emsco.experiments.methods import EQUAL, methods, stacked
from emsco.experiments.setting import DATASETS

NAMES = (
    "STreeD",
    "STreeD, everybody buys all of its features",
    "logistic regression of them",
    "the same, splines",
    "EMSCO",
)


def figures(decisions: Any, truth: np.ndarray, total: float, cost: float | None = None) -> list[float]:
    """Return coverage, accuracy, mean cost (or the given one) and combined score."""
    given = decisions.conclusive
    accuracy = float((decisions.label.data == truth)[given].mean()) if given.any() else 0.0
    paid = float(decisions.cost.mean()) if cost is None else cost
    return [float(given.mean()), accuracy, paid, float(given.mean()) + accuracy + 1 - paid / total]


def of_split(dataset: str, number: int) -> list[list[float]]:
    """Return the figures of all on one split."""
    prices, X, y, X_val, y_val, X_test, y_test = split(dataset, number)
    setting, total = DATASETS[dataset], float(sum(prices))
    tree = methods(EQUAL)["STreeD*"](setting, 0, False).fit(X, y, prices, X_val, y_val)
    decisions = tree.decide(X_test)
    read = np.flatnonzero(decisions.bought.any(axis=0) | tree.decide(X).bought.any(axis=0))
    few = [prices[i] for i in read]
    found = [figures(decisions, y_test, total), figures(decisions, y_test, total, float(sum(few)))]
    rows, labels = stacked(X, X_val)[:, read], np.concatenate([y, y_val])
    for encoding in ("linear", "spline"):
        single = SingleStage(threshold=setting.threshold).fit(rows, labels, few, encoding=encoding)
        found.append(figures(single.decide(X_test[:, read]), y_test, total))
    ours = methods(EQUAL)["EMSCO"](setting, 0, False).fit(X, y, prices, X_val, y_val)
    return [*found, figures(ours.decide(X_test), y_test, total)]


def main() -> None:
    """Print the means."""
    datasets = [sys.argv[1]] if len(sys.argv) > 1 else ["heart", "pima"]
    n_splits = int(sys.argv[2]) if len(sys.argv) > 2 else 10
    warnings.simplefilter("ignore")
    for dataset in datasets:
        means = np.mean([of_split(dataset, number) for number in range(n_splits)], axis=0)
        for name, (coverage, accuracy, cost, combined) in zip(NAMES, means, strict=True):
            print(f"{dataset}: {name:42} {coverage:.3f} {accuracy:.3f} {cost:7.1f} {combined:.3f}")


if __name__ == "__main__":
    main()
