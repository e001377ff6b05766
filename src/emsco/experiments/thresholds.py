"""The effect of the confidence threshold (§2, figure 2): one design, many thresholds, trained once."""

from collections.abc import Sequence
import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification

from emsco.arrays import FloatArray
from emsco.data.output import writing_text
from emsco.estimators import MultiStageClassifier
from emsco.experiments.pictures import pyplot
from emsco.report.summary import threshold_sweep

N_ROWS, N_FEATURES = 500, 15
_SPLIT = 200  # validation rows; the coverage in the paper's figure has steps of 1/200


@dataclass(frozen=True)
class Sweep:
    """Figures at each threshold, one row per random data set, (n_draws, n_thresholds)."""

    thresholds: FloatArray
    coverage: FloatArray
    accuracy: FloatArray
    inverse_cost: FloatArray


def run(*, n_draws: int = 20) -> Sweep:
    """Sweep the thresholds of a cost-ordered two-stage design on make_classification's data, as the paper does.

    The paper shows one data set but does not specify it, so we show the mean over several. The cheap half of the
    features costs 1 each, the other half 10.
    """
    thresholds = np.round(np.arange(0.6, 0.99, 0.0125), 6)
    cheap = np.arange(N_FEATURES) < N_FEATURES // 2
    costs = np.where(cheap, 1.0, 10.0)
    rows = []
    for seed in range(n_draws):
        X, y = make_classification(N_ROWS, N_FEATURES, random_state=seed)
        clf = MultiStageClassifier(np.where(cheap, 0, 1), costs).fit(X[_SPLIT:], y[_SPLIT:])
        results = threshold_sweep(clf.deployed_, X[:_SPLIT], y[:_SPLIT], thresholds.tolist())
        cost = np.array([result.mean_cost for result in results])
        rows.append(([r.coverage for r in results], [r.accuracy for r in results], cost.min() / cost))
    coverage, accuracy, inverse_cost = (np.array(column) for column in zip(*rows, strict=True))
    return Sweep(thresholds, coverage, accuracy, inverse_cost)


def write(sweep: Sweep, path: Path) -> None:
    """Write the mean of each figure by threshold as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["threshold", "coverage", "accuracy", "inverse_cost"])
        for i, threshold in enumerate(sweep.thresholds):
            values = [np.nanmean(column[:, i]) for column in (sweep.coverage, sweep.accuracy, sweep.inverse_cost)]
            writer.writerow([threshold, *(f"{value:.6g}" for value in values)])


def plot(sweep: Sweep, path: Path, *, colours: Sequence[str] = ("#0072B2", "#D55E00", "#009E73")) -> None:
    """Plot the means and the spread over the data sets."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    curves = {"coverage (g1)": sweep.coverage, "accuracy (g2)": sweep.accuracy, "inverse cost (g3)": sweep.inverse_cost}
    for (name, values), colour, style in zip(curves.items(), colours, ("-.", "--", "-"), strict=True):
        ax.plot(sweep.thresholds, np.nanmean(values, axis=0), style, color=colour, label=name)
        low, high = np.nanpercentile(values, [10, 90], axis=0)
        ax.fill_between(sweep.thresholds, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.set_xlabel("confidence threshold")
    ax.set_title(f"Two cost-ordered stages, {len(sweep.coverage)} data sets (bands: 10 to 90 %)", fontsize=10)
    ax.legend()
    ax.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
