"""The objectives of random designs (figure 3) and of the neighbours of one design (figure 6)."""

from collections.abc import Sequence
import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from emsco.arrays import FloatArray, IntArray
from emsco.data.output import writing_text
from emsco.designs.partition import compress, count_partitions, stage_counts
from emsco.experiments.global_optima import scorer, true_frontier
from emsco.experiments.pictures import pyplot
from emsco.experiments.setting import PAPER
from emsco.scoring.objectives import combined_score
from emsco.scoring.tally import Tally
from emsco.search.evolution import evolve


@dataclass(frozen=True)
class Landscape:
    """Objectives of designs on the validation rows of one split.

    Attributes
    ----------
    dataset : str
    max_stages : int
    designs : ndarray of shape (n_designs, n_features)
    coverage, accuracy, inverse_cost : ndarray of shape (n_designs,)
        g1, g2 and g3. The least cost that g3 relates to is that of the sample in figure 3, of all designs in figure 6.
    """

    dataset: str
    max_stages: int
    designs: IntArray
    coverage: FloatArray
    accuracy: FloatArray
    inverse_cost: FloatArray


def random_designs(n_features: int, max_stages: int, n_designs: int, rng: np.random.Generator) -> IntArray:
    """Return designs drawn uniformly, with replacement, from all designs of at most max_stages.

    A number of stages is drawn in proportion to the designs that have it; then rows are drawn until one uses them all.
    """
    sizes = np.array([float(count_partitions(n_features, j)) for j in range(1, max_stages + 1)])
    n_stages = 1 + rng.choice(max_stages, size=n_designs, p=sizes / sizes.sum())
    designs = np.zeros((n_designs, n_features), dtype=np.int64)
    waiting = np.arange(n_designs)
    while waiting.size:
        draws = (rng.random((waiting.size, n_features)) * n_stages[waiting, None]).astype(np.int64)
        designs[waiting] = draws
        used = (draws[:, :, None] == np.arange(max_stages)).any(axis=1).sum(axis=1)
        waiting = waiting[used < n_stages[waiting]]
    return designs


def sample(dataset: str, max_stages: int, n_designs: int, *, seed: int = 0) -> Landscape:
    """Score random designs (figure 3: 5,000 designs of at most three stages on heart)."""
    cascade, n_features = scorer(dataset, 0)
    designs = random_designs(n_features, max_stages, n_designs, np.random.default_rng(seed))
    return _landscape(dataset, max_stages, designs, cascade.tally(designs), None)


def neighbours(design: IntArray, max_stages: int) -> IntArray:
    """Return the designs that differ from one by one stage in one feature (von Neumann neighbourhood), without gaps.

    A feature of the last stage may open another one. Moves before the first stage or beyond max_stages do not exist, so
    there are at most two neighbours per feature; two moves may lead to the same design.

    Examples
    --------
    >>> neighbours(np.array([0, 1]), max_stages=3).tolist()
    [[0, 0], [0, 0], [0, 1]]
    """
    highest = min(int(stage_counts(design[None])[0]), max_stages - 1)
    moved = []
    for feature in range(design.size):
        for step in (-1, 1):
            neighbour = design.copy()
            neighbour[feature] += step
            if 0 <= neighbour[feature] <= highest:
                moved.append(neighbour)
    return compress(np.array(moved))


def neighbourhood(dataset: str, max_stages: int, *, generations: int = 50, seed: int = 0) -> Landscape:
    """Score a good design, in the first row, and its neighbours (figure 6: credit, at most four stages).

    The paper does not say which design it shows. Ours has the best combined score after some generations.
    """
    cascade, n_features = scorer(dataset, 0)
    settings = replace(PAPER[dataset].evolution, max_generations=generations, patience=None)
    found = evolve(
        cascade.tally, settings, n_features=n_features, max_stages=max_stages, rng=np.random.default_rng(seed)
    )
    prices = PAPER[dataset].load().prices
    best = found.designs[combined_score(found.tally, sum(prices.values())).argmax()]
    designs = np.concatenate([best[None], neighbours(best, max_stages)])
    _, truth = true_frontier(dataset, max_stages, 0)  # its cheapest vector is the cheapest of all designs
    return _landscape(dataset, max_stages, designs, cascade.tally(designs), int(truth[:, 2].min()))


def _landscape(dataset: str, max_stages: int, designs: IntArray, tally: Tally, least: int | None) -> Landscape:
    least = int(tally.total_ticks.min()) if least is None else least
    given = np.maximum(tally.n_conclusive, 1)
    return Landscape(
        dataset, max_stages, designs, tally.n_conclusive / tally.n_samples,
        np.where(tally.n_conclusive > 0, tally.n_correct / given, 0.0), least / tally.total_ticks,
    )  # fmt: skip


def text_sample(found: Landscape) -> str:
    """Return the ranges of the objectives and their rank correlations."""
    columns = {"coverage": found.coverage, "accuracy": found.accuracy, "inverse cost": found.inverse_cost}
    lines = [f"{found.dataset}: {len(found.designs):,} random designs of at most {found.max_stages} stages"]
    lines += [f"  {name:<13}{v.min():.3f} to {v.max():.3f}, median {np.median(v):.3f}" for name, v in columns.items()]
    for a, b in (("accuracy", "inverse cost"), ("coverage", "inverse cost"), ("coverage", "accuracy")):
        lines.append(f"  rank correlation of {a} and {b}: {spearmanr(columns[a], columns[b]).statistic:+.2f}")
    return "\n".join(lines)


def text_neighbourhood(found: Landscape) -> str:
    """Return the design, and the changes that one step makes."""
    changes = {
        "coverage": found.coverage[1:] - found.coverage[0],
        "accuracy": found.accuracy[1:] - found.accuracy[0],
        "inverse cost": found.inverse_cost[1:] - found.inverse_cost[0],
    }
    same = np.logical_and.reduce([change == 0 for change in changes.values()])
    lines = [
        f"{found.dataset}, at most {found.max_stages} stages: {' '.join(map(str, found.designs[0]))}",
        f"  coverage {found.coverage[0]:.3f}, accuracy {found.accuracy[0]:.3f}, inverse cost "
        f"{found.inverse_cost[0]:.3f}",
        f"  {same.size} moves by one stage; {int(same.sum())} change nothing",
    ]
    lines += [f"  {name:<13}changes by {v.min():+.3f} to {v.max():+.3f}" for name, v in changes.items()]
    return "\n".join(lines)


def write(found: Landscape, path: Path) -> None:
    """Write one line per design as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["design", "coverage", "accuracy", "inverse_cost"])
        for design, *values in zip(
            found.designs.tolist(), found.coverage, found.accuracy, found.inverse_cost, strict=True
        ):
            writer.writerow([" ".join(map(str, design)), *(f"{value:.6g}" for value in values)])


def plot_sample(found: Landscape, path: Path) -> None:
    """Plot accuracy against coverage, coloured by inverse cost: points, and a contour map."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharex=True, sharey=True, layout="constrained")
    low, high = np.percentile(found.inverse_cost, [1, 99])
    limits = {"vmin": low, "vmax": high}
    drawn = axes[0].scatter(found.accuracy, found.coverage, c=found.inverse_cost, s=6, cmap="viridis", **limits)
    points, values = _cells(found)
    axes[1].tricontourf(points[:, 0], points[:, 1], values, levels=np.linspace(low, high, 9), cmap="viridis",
                        extend="both")  # fmt: skip
    for ax, title in zip(axes, ("designs", "contour map"), strict=True):
        ax.set_xlabel("accuracy of the labels given (g2)")
        ax.set_title(title, fontsize=10)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("coverage (g1)")
    for values, limit in ((found.accuracy, axes[0].set_xlim), (found.coverage, axes[0].set_ylim)):
        edge = 0.04 * max(float(np.ptp(values)), 1e-9)
        limit(values.min() - edge, values.max() + edge)
    figure.suptitle(
        f"{found.dataset}: {len(found.designs):,} random designs of at most {found.max_stages} stages", fontsize=11
    )
    figure.colorbar(drawn, ax=axes.tolist(), label="inverse cost (g3)")
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _cells(found: Landscape, n_cells: int = 24) -> tuple[FloatArray, FloatArray]:
    """Return centres of occupied cells of the plane of accuracy and coverage, with the mean inverse cost in each."""
    plane = np.column_stack([found.accuracy, found.coverage])
    span = np.maximum(np.ptp(plane, axis=0), 1e-9)
    cell = np.minimum(((plane - plane.min(axis=0)) / span * n_cells).astype(int), n_cells - 1)
    _, group = np.unique(cell, axis=0, return_inverse=True)
    n = np.bincount(group.ravel())
    means = [np.bincount(group.ravel(), weights=v) / n for v in (*plane.T, found.inverse_cost)]
    return np.column_stack(means[:2]), means[2]


def plot_neighbourhood(found: Landscape, path: Path, *, colours: Sequence[str] = ("#0072B2", "#D55E00")) -> None:
    """Plot the step to each neighbour, in the planes of accuracy and inverse cost and of coverage and inverse cost."""
    plt = pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.2), sharey=True, layout="constrained")
    names = ("accuracy of the labels given (g2)", "coverage (g1)")
    for ax, values, name in zip(axes, (found.accuracy, found.coverage), names, strict=True):
        start = values[0], found.inverse_cost[0]
        for end in zip(values[1:], found.inverse_cost[1:], strict=True):
            if end != start:
                ax.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": colours[0], "alpha": 0.8})
        ax.scatter(values[1:], found.inverse_cost[1:], s=14, color=colours[0], label="one stage away")
        ax.scatter(*start, s=60, color=colours[1], zorder=3, label="the design")
        ax.set_xlabel(name)
        ax.grid(alpha=0.3)
        ax.margins(0.08)
    axes[0].set_ylabel("inverse cost (g3)")
    axes[0].legend(fontsize=8)
    figure.suptitle(f"{found.dataset}: a design of at most {found.max_stages} stages and its neighbours", fontsize=11)
    figure.savefig(path, dpi=150)
    plt.close(figure)
