"""A whole search, against refitting the stages of each distinct design with scikit-learn."""

from collections.abc import Iterator
import subprocess
import sys

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.common import Bar, cascade, numeric_problem, seconds
from emsco import Evolution, reference
from emsco.search.evolution import evolve

N_FEATURES, MAX_STAGES, THRESHOLD = 15, 5, 0.75
SETTINGS = Evolution(population_size=300, max_generations=150, patience=None)


def search(problem, n_jobs, on_generation=None):
    tally = cascade(problem, threshold=THRESHOLD, n_jobs=n_jobs)[0].tally
    return evolve(
        tally, SETTINGS, n_features=N_FEATURES, max_stages=MAX_STAGES, rng=np.random.default_rng(0),
        on_generation=on_generation,
    )  # fmt: skip


class Search:
    def setup(self):
        self.problem = numeric_problem(2000, 1000, N_FEATURES)

    def time_search(self):
        search(self.problem, 2)

    def peakmem_search(self):
        search(self.problem, 2)

    def track_hypervolume(self):
        import moocore

        found = search(self.problem, 2).tally
        points = np.column_stack(
            [-found.n_conclusive / 1000, -found.n_correct / np.maximum(found.n_conclusive, 1),
             found.total_ticks / 1000 / self.problem.prices.total]
        )  # fmt: skip
        return moocore.hypervolume(points, ref=[0, 0, 1])


def refit_and_walk(design, problem, make=LogisticRegression):
    """What a search without our engine does for one design."""
    outcomes = {}
    for stage in range(max(design) + 1):
        features = reference.known_features(design, stage)
        columns = list(features)
        model = make().fit(problem.train[columns].T, problem.y_train)
        probabilities = model.predict_proba(problem.validation[columns].T)
        outcomes[features] = probabilities.max(axis=1), probabilities.argmax(axis=1)
    waiting = np.ones(problem.n_validation, dtype=bool)
    conclusive = correct = paid = 0
    for stage in range(max(design) + 1):
        confidence, label = outcomes[reference.known_features(design, stage)]
        price = sum(c for c, s in zip(problem.prices.own_ticks.tolist(), design, strict=True) if s == stage)
        paid += int(waiting.sum()) * price
        leaving = waiting & (confidence >= THRESHOLD)
        conclusive += int(leaving.sum())
        correct += int((leaving & (label == problem.y_validation)).sum())
        waiting &= ~leaving
    return conclusive, correct, paid


def bars(n_checked: int = 25, n_timed: int = 60) -> Iterator[Bar]:
    problem = numeric_problem(2000, 1000, N_FEATURES)
    designs = {}

    def remember(state):
        designs.update(
            zip(map(tuple, state.population.tolist()), map(tuple, state.tally.vectors.tolist()), strict=True)
        )

    search(problem, 1, remember)
    chosen = np.random.default_rng(0).choice(len(designs), n_timed, replace=False)
    rows = [list(designs)[i] for i in chosen]
    for row in rows[:n_checked]:
        exact = refit_and_walk(list(row), problem, lambda: LogisticRegression(solver="newton-cholesky", tol=1e-10))
        assert exact == designs[row], f"{row}: {exact} by scikit-learn, {designs[row]} by the engine"
    times, loop = [], []
    for part in np.array_split(np.array(rows), 3):
        times.append(seconds(lambda: search(problem, 2)))
        loop.append(seconds(lambda part=part: [refit_and_walk(row.tolist(), problem) for row in part]) / len(part))
    ours, per_design = float(np.median(times)), float(np.median(loop))
    yield Bar(
        "search 15 features, 2000/1000 rows, 300 x 150", per_design * len(designs) / ours, "x", 100,
        f"{len(designs):,} distinct designs at {1000 * per_design:.0f} ms each (timed on {n_timed}); "
        f"{n_checked} designs counted alike",
    )  # fmt: skip
    yield Bar("the same search", ours, "s", 10, "two threads, nothing cached before")
    yield Bar("the same search, peak memory", peak_alone(), "MB", 500, "a process of its own, interpreter included")


def peak_alone() -> float:
    code = (
        "from benchmarks.common import numeric_problem, peak_memory\n"
        "from benchmarks.search import N_FEATURES, search\n"
        "search(numeric_problem(2000, 1000, N_FEATURES), 2)\n"
        "print(peak_memory())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return float(done.stdout)
