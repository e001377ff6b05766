"""The paper's global-optima experiment (§4.2): true fronts, and the share of them that a search holds over time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import csv
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from time import perf_counter

from joblib import Parallel, delayed
import numpy as np
from scipy.stats import t as student

from emsco.arrays import FloatArray, IntArray
from emsco.baselines.nsga2 import Tell, search_nsga2
from emsco.data.output import writing_text
from emsco.exceptions import MissingDependencyError
from emsco.experiments.setting import PAPER, paper_problem
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.scoring.tally import Tally
from emsco.search.bestfirst import BestFirst, Pool, search_best_first
from emsco.search.evolution import Evolution, State, evolve
from emsco.search.exact.lattice import all_bits
from emsco.search.exact.proof import Exact, search_exactly
from emsco.stages.logistic import LogisticTrainer

_DESIGNS = 300  # a generation of the paper

Evaluate = Callable[[IntArray], Tally]


@dataclass(frozen=True)
class Frontier:
    """A true front: its number of vectors, the number of designs with these vectors, and its proof."""

    dataset: str
    max_stages: int
    split: int
    n_designs: int
    n_vectors: int
    n_rows: int
    paper: int
    seconds: float


@dataclass(frozen=True)
class Curve:
    """The part of a true front that one search holds after each generation of 300 designs, over several runs.

    ``vectors`` and ``rows`` count globally optimal vectors and designs, (n_runs, n_generations + 1).
    """

    dataset: str
    max_stages: int
    search: str
    n_vectors: int
    n_rows: int
    vectors: IntArray
    rows: IntArray


@lru_cache(maxsize=1)
def _cascade(dataset: str, split: int) -> Cascade:
    """Return the cascade that scores designs; feature sets trained in one run are reused in the next ones."""
    problem = paper_problem(dataset, split)
    cache = StageCache(
        LogisticTrainer(problem), problem.y_validation, n_units=problem.prices.n_units,
        threshold=PAPER[dataset].threshold, max_bytes=2**28,
    )  # fmt: skip
    return Cascade(cache, problem.prices)


def scorer(dataset: str, split: int) -> tuple[Cascade, int]:
    """Return the cascade that scores designs of a data set of the paper, and its number of features."""
    return _cascade(dataset, split), len(PAPER[dataset].load().prices)


def true_frontier(dataset: str, max_stages: int, split: int, *, n_jobs: int = 1) -> tuple[Frontier, IntArray]:
    """Prove a front; return its sizes and its vectors (conclusive, correct, cost)."""
    started = perf_counter()
    problem = paper_problem(dataset, split)
    trainer = LogisticTrainer(problem, n_jobs=n_jobs)
    bits = all_bits(trainer, problem.y_validation, problem.prices, threshold=PAPER[dataset].threshold)
    proof = search_exactly(bits, Exact(), max_stages=max_stages, n_jobs=n_jobs)
    if not proof.certificate.proven:
        raise KeyboardInterrupt  # the only event that can end a search without limits
    frontier = Frontier(
        dataset, max_stages, split, proof.certificate.n_designs, len(proof.designs), int(proof.n_ties.sum()),
        PAPER[dataset].frontier_sizes.get(max_stages, 0), perf_counter() - started,
    )  # fmt: skip
    return frontier, _cascade(dataset, split).tally(proof.designs).vectors


def run_evolution(
    evaluate: Evaluate, evolution: Evolution, n_features: int, max_stages: int, rng: np.random.Generator, tell: Tell
) -> None:
    """Run the paper's search; it holds the whole generation."""
    n_evaluated = 0

    def on_generation(state: State) -> None:
        nonlocal n_evaluated
        n_evaluated += _DESIGNS
        tell(n_evaluated, state.population, state.tally.vectors)

    evolve(evaluate, evolution, n_features=n_features, max_stages=max_stages, rng=rng, on_generation=on_generation)


def run_best_first(
    evaluate: Evaluate, evolution: Evolution, n_features: int, max_stages: int, rng: np.random.Generator, tell: Tell
) -> None:
    """Run our search with the same number of designs; it holds all evaluated non-dominated designs."""

    def on_batch(pool: Pool) -> None:
        best = pool.level == 0
        tell(pool.n_evaluated, pool.designs[best], pool.tally.vectors[best])

    settings = BestFirst(max_designs=_DESIGNS * evolution.max_generations, patience=None)
    search_best_first(evaluate, settings, n_features=n_features, max_stages=max_stages, rng=rng, on_batch=on_batch)


def run_nsga2(
    evaluate: Evaluate, evolution: Evolution, n_features: int, max_stages: int, rng: np.random.Generator, tell: Tell
) -> None:
    """Run NSGA-II of pymoo with the paper's operators; it holds the whole generation."""
    search_nsga2(evaluate, evolution, n_features=n_features, max_stages=max_stages, rng=rng, on_generation=tell)


SEARCHES = {"evolution": run_evolution, "best-first": run_best_first, "nsga2": run_nsga2}


def run_some(
    dataset: str, max_stages: int, search: str, truth: IntArray, *, split: int, generations: int, seeds: Sequence[int]
) -> tuple[IntArray, IntArray]:
    """Run a search from some seeds; return the true vectors and rows it holds after each generation of 300 designs."""
    cascade = _cascade(dataset, split)
    evolution = replace(PAPER[dataset].evolution, max_generations=generations)
    n_features = paper_n_features(dataset)
    optimal = {vector.tobytes() for vector in truth}
    counts = np.zeros((2, len(seeds), generations + 1), dtype=np.int64)
    for run, seed in enumerate(seeds):

        def tell(n_evaluated: int, designs: IntArray, vectors: IntArray, run: int = run) -> None:
            true = [i for i, vector in enumerate(vectors) if vector.tobytes() in optimal]
            generation = min(-(-n_evaluated // _DESIGNS) - 1, generations)
            counts[0, run, generation:] = len({vectors[i].tobytes() for i in true})
            counts[1, run, generation:] = len({designs[i].tobytes() for i in true})

        rng = np.random.default_rng([seed, split, max_stages])
        SEARCHES[search](cascade.tally, evolution, n_features, min(max_stages, n_features), rng, tell)
    return counts[0], counts[1]


@lru_cache
def paper_n_features(dataset: str) -> int:
    """Return the number of features of a data set."""
    return len(PAPER[dataset].load().feature_names)


def prove_frontiers(
    datasets: Sequence[str], stages: Sequence[int], splits: int, *, n_jobs: int
) -> Iterator[tuple[Frontier, IntArray]]:
    """Prove the front of every space on every split."""
    for dataset in datasets:
        for split in range(splits):
            for max_stages in stages:
                yield true_frontier(dataset, max_stages, split, n_jobs=n_jobs)


def draw_curves(
    frontiers: Iterable[tuple[Frontier, IntArray]],
    searches: Sequence[str],
    *,
    runs: int,
    generations: int,
    n_jobs: int,
    on_progress: Callable[[str], None],
) -> Iterator[Curve]:
    """Run the searches on each front; yield a curve as soon as all its runs are done."""
    with Parallel(n_jobs=n_jobs, return_as="generator") as parallel:
        for frontier, truth in frontiers:
            for search in searches:
                tasks = [
                    delayed(run_some)(
                        frontier.dataset, frontier.max_stages, search, truth, split=frontier.split,
                        generations=generations, seeds=[seed],
                    )
                    for seed in range(runs)
                ]  # fmt: skip
                done: list[tuple[IntArray, IntArray]] = []
                for part in parallel(tasks):
                    done.append(part)
                    on_progress(f"{frontier.dataset} k={frontier.max_stages}, {search}: {len(done)}/{runs} runs")
                yield Curve(
                    frontier.dataset,
                    frontier.max_stages,
                    search,
                    frontier.n_vectors,
                    frontier.n_rows,
                    np.concatenate([vectors for vectors, _ in done]),
                    np.concatenate([rows for _, rows in done]),
                )


def mean_and_margin(counts: IntArray | FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean over runs and the half-width of its 95 % confidence interval (Student's t), by generation."""
    n_runs = len(counts)
    mean = counts.mean(axis=0)
    if n_runs == 1:
        return mean, np.zeros_like(mean)
    error = counts.std(axis=0, ddof=1) / np.sqrt(n_runs)
    return mean, np.asarray(student.ppf(0.975, n_runs - 1) * error)


def write_frontiers(frontiers: Sequence[Frontier], path: Path) -> None:
    """Write the sizes of the true fronts as CSV."""
    with writing_text(path) as file:
        writer = csv.DictWriter(file, list(asdict(frontiers[0])))
        writer.writeheader()
        writer.writerows({**asdict(f), "seconds": f"{f.seconds:.3f}"} for f in frontiers)


def write_curves(curves: Sequence[Curve], path: Path) -> None:
    """Write mean and 95 % confidence interval per generation as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(
            ["dataset", "max_stages", "search", "n_runs", "generation", "true_vectors", "vectors", "vectors_margin",
             "true_rows", "rows", "rows_margin"]
        )  # fmt: skip
        for curve in curves:
            vectors, rows = mean_and_margin(curve.vectors), mean_and_margin(curve.rows)
            for generation in range(curve.vectors.shape[1]):
                figures = (f"{part[generation]:.4f}" for part in (*vectors, *rows))
                v, v_margin, r, r_margin = figures
                name = [curve.dataset, curve.max_stages, curve.search, len(curve.vectors), generation]
                writer.writerow([*name, curve.n_vectors, v, v_margin, curve.n_rows, r, r_margin])


def frontier_table(frontiers: Sequence[Frontier]) -> str:
    """Return the sizes of the true fronts over all splits, beside the paper's."""
    head = ("data", "k", "designs", "vectors", "of splits", "rows", "paper", "seconds")
    lines = []
    for dataset, max_stages in dict.fromkeys((f.dataset, f.max_stages) for f in frontiers):
        group = [f for f in frontiers if (f.dataset, f.max_stages) == (dataset, max_stages)]
        vectors = [f.n_vectors for f in group]
        lines.append(
            (dataset, str(max_stages), f"{group[0].n_designs:,}", str(group[0].n_vectors),
             f"{min(vectors)}-{max(vectors)}", f"{group[0].n_rows:,}", str(group[0].paper or "-"),
             f"{sum(f.seconds for f in group) / len(group):.2f}")
        )  # fmt: skip
    return _table(head, lines)


def share_table(curves: Sequence[Curve]) -> str:
    """Return the share that each search holds at the end."""
    head = ("data", "k", "search", "runs", "vectors", "share", "95 %", "rows")
    lines = []
    for curve in curves:
        mean, margin = (part[-1] for part in mean_and_margin(curve.vectors))
        share = 100 / curve.n_vectors
        lines.append(
            (curve.dataset, str(curve.max_stages), curve.search, str(len(curve.vectors)),
             f"{mean:.1f} of {curve.n_vectors}", f"{share * mean:.1f} %", f"+-{share * margin:.1f}",
             f"{curve.rows[:, -1].mean():.1f} of {curve.n_rows:,}")
        )  # fmt: skip
    return _table(head, lines)


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *lines)) for i in range(len(head))]
    return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) for row in (head, *lines))


_SHOWN = {"evolution": "the paper's evolution", "best-first": "best-first (ours)", "nsga2": "NSGA-II (pymoo)"}
_COLOURS = {"evolution": "#d95f02", "best-first": "#1b6ca8", "nsga2": "#7a7a7a"}


def plot_curves(curves: Sequence[Curve], path: Path) -> None:
    """Plot the share of the true front held, one panel per space, with 95 % bands."""
    try:
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "the figure needs matplotlib, which is not installed: pip install 'emsco[plot]'."
        ) from error
    datasets = list(dict.fromkeys(curve.dataset for curve in curves))
    stages = sorted({curve.max_stages for curve in curves})
    searches = list(dict.fromkeys(curve.search for curve in curves))
    figure, axes = plt.subplots(
        len(datasets), len(stages), figsize=(1.2 + 2.7 * len(stages), 1.3 + 1.9 * len(datasets)), sharex=True,
        sharey=True, squeeze=False, layout="constrained",
    )  # fmt: skip
    for curve in curves:
        axis = axes[datasets.index(curve.dataset), stages.index(curve.max_stages)]
        mean, margin = (100 * part / curve.n_vectors for part in mean_and_margin(curve.vectors))
        generation = np.arange(mean.size)
        colour = _COLOURS[curve.search]
        axis.fill_between(generation, mean - margin, np.minimum(mean + margin, 100), color=colour, alpha=0.25, lw=0)
        axis.plot(generation, mean, color=colour, lw=1.6, label=_SHOWN[curve.search])
        axis.set_title(f"{curve.dataset}, k = {curve.max_stages}: {curve.n_vectors} vectors", fontsize=9, loc="left")
    for axis in axes.flat:
        axis.set_ylim(0, 103)
        axis.set_xlim(left=0)
        axis.grid(axis="y", color="#e3e3e3", lw=0.6)
        axis.tick_params(labelsize=8, length=2)
        axis.spines[["top", "right"]].set_visible(False)
    figure.supxlabel("generation (of 300 designs)", fontsize=9)
    figure.supylabel("true Pareto frontier held, %", fontsize=9)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(searches), frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)
    plt.close(figure)
