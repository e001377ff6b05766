"""When features are bought, against what they cost (§4.3, figure 13): from the trials of the comparison."""

from collections.abc import Iterable, Sequence
import csv
from dataclasses import dataclass
import json
from pathlib import Path

import numpy as np

from emsco.arrays import FloatArray
from emsco.data.output import writing_text
from emsco.experiments.comparison import Outcome
from emsco.experiments.pictures import pyplot
from emsco.experiments.setting import DATASETS
from emsco.prices.prices import resolve


@dataclass(frozen=True)
class Assignment:
    """The mean stage, from 1, in which the chosen designs buy each feature of a data set."""

    dataset: str
    features: tuple[str, ...]
    prices: FloatArray
    mean_stage: FloatArray
    n_designs: int

    @property
    def correlation(self) -> float:
        """Rank correlation of price and mean stage; NaN where all prices are equal."""
        from scipy.stats import spearmanr

        if np.ptp(self.prices) == 0 or np.ptp(self.mean_stage) == 0:
            return float("nan")
        return float(spearmanr(self.prices, self.mean_stage).statistic)


def assignments(outcomes: Iterable[Outcome]) -> list[Assignment]:
    """Return the mean stage of each feature over the designs that EMSCO chose in the trials."""
    designs: dict[str, list[list[int]]] = {}
    for outcome in outcomes:
        if outcome.trial.method == "EMSCO":
            designs.setdefault(outcome.trial.dataset, []).append(json.loads(outcome.chosen)["design"])
    found = []
    for dataset, rows in designs.items():
        data = DATASETS[dataset].load()
        prices = resolve(data.prices, data.feature_names).prices
        mean_stage = np.mean(rows, axis=0) + 1
        found.append(Assignment(dataset, tuple(data.feature_names), prices, mean_stage, len(rows)))
    return found


def text_table(found: Sequence[Assignment]) -> str:
    """Return the mean stage by price, a line per price."""
    lines = []
    for a in found:
        lines.append(f"{a.dataset}: {a.n_designs} designs; rank correlation of price and stage {a.correlation:.2f}")
        for price in np.unique(a.prices):
            stages = a.mean_stage[a.prices == price]
            lines.append(f"  price {price:>7g}: mean stage {stages.mean():5.2f}, features {stages.min():.2f} to "
                         f"{stages.max():.2f} ({stages.size})")  # fmt: skip
        lines.append("")
    return "\n".join(lines)


def write(found: Sequence[Assignment], path: Path) -> None:
    """Write a line per feature as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "feature", "price", "mean_stage", "designs"])
        for a in found:
            for name, price, stage in zip(a.features, a.prices, a.mean_stage, strict=True):
                writer.writerow([a.dataset, name, f"{price:g}", f"{stage:.4g}", a.n_designs])


def plot(found: Sequence[Assignment], path: Path) -> None:
    """Draw the mean stage of each feature against its price."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(found), figsize=(3.6 * len(found), 3.6), squeeze=False, layout="constrained")
    for ax, a in zip(axes[0], found, strict=True):
        prices, position = np.unique(a.prices, return_inverse=True)
        offset = np.random.default_rng(0).uniform(-0.12, 0.12, a.prices.size)  # equal points side by side
        ax.scatter(position + offset, a.mean_stage, color="#0072B2", edgecolors="white", s=45, zorder=3)
        ax.set_xticks(range(prices.size), [f"{price:g}" for price in prices])
        ax.set_title(f"{a.dataset}, {a.n_designs} designs", fontsize=10)
        ax.set_xlabel("price of the feature")
        ax.set_xlim(-0.5, prices.size - 0.5)
        ax.set_ylim(bottom=0.5)
        ax.grid(alpha=0.3)
    axes[0][0].set_ylabel("mean stage in which it is bought")
    figure.savefig(path, dpi=150)
    plt.close(figure)
