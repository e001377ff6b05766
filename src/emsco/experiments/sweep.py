"""A sweep of the settings of the evolution, one at a time around the paper's, on spaces with proven fronts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
import csv
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed
import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.data.output import writing_text
from emsco.experiments.global_optima import mean_and_margin, scorer, true_frontier
from emsco.experiments.pictures import pyplot
from emsco.experiments.setting import PAPER
from emsco.search.evolution import Evolution, State, evolve

# The paper's values are among them: 300, 0.075 (0.05), 0.75 and 0.8, 2 and 2.5, 0.2.
VALUES: Mapping[str, tuple[float, ...]] = {
    "population_size": (50, 100, 200, 300, 500),
    "mutation_rate": (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.3),
    "recombination_rate": (0.0, 0.25, 0.5, 0.75, 0.8, 0.9, 1.0),
    "stage_bias": (1.1, 1.5, 2.0, 2.5, 3.0, 5.0),
    "elite_fraction": (0.05, 0.1, 0.2, 0.3, 0.5, 0.8),
}


@dataclass(frozen=True)
class Tried:
    """One value of one setting, the others as in the paper.

    Attributes
    ----------
    dataset : str
    setting : str
    value : float
    paper : bool
        Whether it is the paper's value for this data set.
    shares : ndarray of shape (n_runs,)
        Share of the true front that is held at the end; all values evaluate about the same number of designs.
    """

    dataset: str
    setting: str
    value: float
    paper: bool
    shares: FloatArray


def run(
    datasets: Sequence[str], max_stages: int, *, n_designs: int, n_runs: int, n_jobs: int = 1,
    values: Mapping[str, Sequence[float]] = VALUES,
) -> Iterator[Tried]:  # fmt: skip
    """Search with each value of each setting; yield the shares of the true front that are held."""
    for dataset in datasets:
        _, truth = true_frontier(dataset, max_stages, 0, n_jobs=n_jobs)
        jobs = [(setting, value) for setting, grid in values.items() for value in grid]
        one = delayed(_shares)
        found = Parallel(n_jobs=n_jobs, return_as="generator")(
            one(dataset, max_stages, truth, setting, value, n_designs, n_runs) for setting, value in jobs
        )
        for (setting, value), shares in zip(jobs, found, strict=True):
            paper = float(getattr(PAPER[dataset].evolution, setting)) == float(value)
            yield Tried(dataset, setting, float(value), paper, shares)


def _shares(
    dataset: str, max_stages: int, truth: IntArray, setting: str, value: float, n_designs: int, n_runs: int
) -> FloatArray:
    cascade, n_features = scorer(dataset, 0)
    whole = setting == "population_size"
    chosen: dict[str, Any] = {setting: int(value) if whole else float(value)}
    settings = replace(PAPER[dataset].evolution, max_generations=10**6, patience=None, **chosen)
    return np.array(
        [
            _held(cascade.tally, settings, n_features, max_stages, truth, n_designs, seed) / len(truth)
            for seed in range(n_runs)
        ]
    )


class _EnoughError(Exception):
    """So many designs were evaluated."""


def _held(
    tally: Any, settings: Evolution, n_features: int, max_stages: int, truth: IntArray, n_designs: int, seed: int
) -> int:
    """Return how many of the true vectors a search holds when it has evaluated n_designs."""
    n_evaluated, held = 0, 0
    wanted = {vector.tobytes() for vector in truth}

    def on_generation(state: State) -> None:
        nonlocal n_evaluated, held
        n_evaluated += len(state.population) - state.n_elite
        held = len({vector.tobytes() for vector in state.tally.vectors} & wanted)
        if n_evaluated >= n_designs:
            raise _EnoughError

    with suppress(_EnoughError):
        evolve(
            tally, settings, n_features=n_features, max_stages=max_stages, rng=np.random.default_rng(seed),
            on_generation=on_generation,
        )  # fmt: skip
    return held


def text_table(found: Sequence[Tried]) -> str:
    """Return the shares by setting and value, and whether the paper's value is the best one within the margins."""
    lines = []
    for dataset, setting in dict.fromkeys((tried.dataset, tried.setting) for tried in found):
        here = [tried for tried in found if (tried.dataset, tried.setting) == (dataset, setting)]
        lines.append(f"{dataset}, {setting}")
        for tried in here:
            mean, margin = (float(part[0]) for part in mean_and_margin(100 * tried.shares[:, None]))
            lines.append(f"  {tried.value:>7g}  {mean:5.1f} % +-{margin:.1f}{'  (paper)' if tried.paper else ''}")
        lines.append(f"  {conclusion(here)}")
    return "\n".join(lines)


def conclusion(here: Sequence[Tried]) -> str:
    """Say how much better the best value of a setting is than the paper's, run by run."""
    paper = next((tried for tried in here if tried.paper), None)
    best = max(here, key=lambda tried: (float(tried.shares.mean()), tried.paper))
    if paper is None:
        return f"best: {best.value:g}"
    if best.value == paper.value:
        return "the paper's value is the best"
    ahead = 100 * (best.shares - paper.shares)
    mean, margin = (float(part[0]) for part in mean_and_margin(ahead[:, None]))
    words = "not distinguishable from the paper's" if mean <= margin or ahead.size < 2 else "better than the paper's"
    return f"best: {best.value:g}, {words}: {mean:+.1f} +-{margin:.1f} points"


def write(found: Sequence[Tried], path: Path) -> None:
    """Write one line per value as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "setting", "value", "paper", "runs", "share", "share_margin"])
        for tried in found:
            mean, margin = (float(part[0]) for part in mean_and_margin(tried.shares[:, None]))
            writer.writerow(
                [tried.dataset, tried.setting, tried.value, tried.paper, tried.shares.size, f"{mean:.6g}",
                 f"{margin:.6g}"]
            )  # fmt: skip


def plot(found: Sequence[Tried], path: Path) -> None:
    """Plot the share held against each setting, one panel per setting and one line per data set."""
    plt = pyplot()
    settings = list(dict.fromkeys(tried.setting for tried in found))
    datasets = list(dict.fromkeys(tried.dataset for tried in found))
    figure, axes = plt.subplots(1, len(settings), figsize=(2.9 * len(settings), 3.4), sharey=True, squeeze=False,
                                layout="constrained")  # fmt: skip
    colours = dict(zip(datasets, ("#0072B2", "#D55E00", "#009E73", "#CC79A7"), strict=False))
    for ax, setting in zip(axes[0], settings, strict=True):
        for dataset in datasets:
            here = [tried for tried in found if (tried.dataset, tried.setting) == (dataset, setting)]
            x = [tried.value for tried in here]
            mean, margin = mean_and_margin(100 * np.array([tried.shares for tried in here]).T)
            ax.plot(x, mean, "o-", color=colours[dataset], markersize=3, linewidth=1.2, label=dataset)
            ax.fill_between(x, mean - margin, mean + margin, color=colours[dataset], alpha=0.18, linewidth=0)
            own = [i for i, tried in enumerate(here) if tried.paper]
            ax.plot([x[i] for i in own], [mean[i] for i in own], "*", color=colours[dataset], markersize=13)
        ax.set_xlabel(setting.replace("_", " "))
        ax.grid(alpha=0.3)
    axes[0][0].set_ylabel("true front held, %")
    axes[0][0].legend(fontsize=8)
    figure.suptitle("One setting at a time; stars are the paper's values", fontsize=10)
    figure.savefig(path, dpi=150)
    plt.close(figure)
