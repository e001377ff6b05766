"""The influence of the split on a result. The paper has one split; CO-T, which is not tuned, shows how easy it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from emsco.arrays import FloatArray
from emsco.experiments.comparison import Outcome
from emsco.experiments.pictures import pyplot
from emsco.experiments.published import paper_comparison

_YARDSTICK = "CO-T"


@dataclass(frozen=True)
class Spread:
    """A method and the reference method on the same splits of a data set.

    Attributes
    ----------
    dataset, method : str
    combined, cost : ndarray of shape (n_splits,)
        Combined score of the method, and mean cost of the reference method: a lower cost means an easier split.
    paper_combined, paper_cost : float
        The same two on the paper's split.
    """

    dataset: str
    method: str
    combined: FloatArray
    cost: FloatArray
    paper_combined: float
    paper_cost: float

    @property
    def easier(self) -> float:
        """Share of the splits that are at least as easy as the paper's."""
        return float((self.cost <= self.paper_cost + 0.05).mean())

    @property
    def line(self) -> tuple[float, float]:
        """Slope and intercept of the least-squares line of the score on the cost."""
        slope, height = np.polyfit(self.cost, self.combined, 1)
        return float(slope), float(height)

    @property
    def expected(self) -> float:
        """Expected score on a split as easy as the paper's."""
        slope, height = self.line
        return slope * self.paper_cost + height


def spreads(outcomes: Iterable[Outcome]) -> list[Spread]:
    """Return the spread of EMSCO and its variants on each data set of the paper with three or more splits."""
    score: dict[tuple[str, str], dict[int, Outcome]] = {}
    for outcome in outcomes:
        if outcome.trial.seed == 0:
            score.setdefault((outcome.trial.dataset, outcome.trial.method), {})[outcome.trial.split] = outcome
    paper = {(p.dataset, p.method): p for p in paper_comparison()}
    found = []
    for (dataset, method), of_split in score.items():
        yardstick = score.get((dataset, _YARDSTICK), {})
        shared = sorted(of_split.keys() & yardstick.keys())
        if method.startswith("EMSCO") and (dataset, "EMSCO") in paper and len(shared) > 2:
            combined = np.array([of_split[i].combined for i in shared])
            cost = np.array([yardstick[i].mean_cost for i in shared])
            printed = paper[dataset, "EMSCO"].combined
            found.append(Spread(dataset, method, combined, cost, printed, paper[dataset, _YARDSTICK].mean_cost))
    return found


def text_table(found: Sequence[Spread]) -> str:
    """Return the results as text, one block per data set and method."""
    lines = []
    for s in found:
        margin = 1.96 * s.combined.std(ddof=1) / np.sqrt(s.combined.size)
        lines += [
            f"{s.dataset}, {s.method}: {s.combined.size} splits; paper {s.paper_combined:g}",
            f"  combined score {s.combined.mean():.3f} +-{margin:.3f}, from {s.combined.min():.3f} to "
            f"{s.combined.max():.3f} (deviation {s.combined.std(ddof=1):.3f}); "
            f"{100 * (s.combined >= s.paper_combined - 0.1).mean():.0f} % are at most 0.1 below the paper's",
            f"  CO-T pays {s.cost.mean():.1f} here, {s.paper_cost:g} in the paper: {100 * s.easier:.0f} % of the "
            "splits are as easy",
            f"  expected score on a split as easy as that: {s.expected:.3f}",
            "",
        ]
    return "\n".join(lines)


def plot(found: Sequence[Spread], path: Path) -> None:
    """Plot the score of each split against the cost of the reference method, with the paper's point."""
    plt = pyplot()
    figure, axes = plt.subplots(1, len(found), figsize=(4.4 * len(found), 3.8), squeeze=False, layout="constrained")
    for ax, s in zip(axes[0], found, strict=True):
        slope, height = s.line
        ends = np.array([min(s.cost.min(), s.paper_cost), s.cost.max()])
        ax.scatter(s.cost, s.combined, s=30, color="#0072B2", edgecolors="white", label=f"{s.combined.size} splits")
        ax.plot(ends, slope * ends + height, color="#0072B2", linewidth=1)
        ax.scatter([s.paper_cost], [s.paper_combined], marker="*", s=160, color="#D55E00", label="the paper's split")
        ax.set_title(f"{s.dataset}, {s.method}", fontsize=10)
        ax.set_xlabel("mean cost of CO-T (the less, the easier)")
        ax.legend(fontsize=8)
        ax.grid(alpha=0.3)
    axes[0][0].set_ylabel("combined score on test rows")
    figure.savefig(path, dpi=150)
    plt.close(figure)
