"""Problems and clocks shared by the benchmarks."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
import re
from statistics import median
from time import perf_counter

import numpy as np
from sklearn.datasets import make_classification

from emsco.prices.prices import resolve
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem


@dataclass
class Bar:
    """One line of the table: what was measured, and whether it is good enough."""

    name: str
    value: float
    unit: str  # "x" is a ratio, "%" a share, of which more is better; of others less is
    floor: float
    detail: str

    @property
    def met(self) -> bool:
        return self.value >= self.floor if self.more_is_better else self.value <= self.floor

    @property
    def more_is_better(self) -> bool:
        return self.unit in ("x", "%")


def peak_memory() -> float:
    """Megabytes that this process had at most; from /proc, as what getrusage says begins with those of the parent."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024


def seconds(function: Callable[[], object]) -> float:
    start = perf_counter()
    function()
    return perf_counter() - start


def best_of(function: Callable[[], object], times: int) -> float:
    return min(seconds(function) for _ in range(times))


def interleaved(ours: Callable[[], object], theirs: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Medians of two clocks read in turns, ten calls each, so that both see the same noise.

    Ten calls before them are not counted: the threads of the other side's BLAS spin for some 20 ms after its last one.
    """

    def ten(function: Callable[[], object]) -> list[float]:
        return [seconds(function) for _ in range(20)][10:]

    times = [(ten(ours), ten(theirs)) for _ in range(rounds)]
    return median(t for a, _ in times for t in a), median(t for _, b in times for t in b)


def numeric_problem(n_train: int, n_validation: int, n_features: int, *, n_classes: int = 2, seed: int = 0) -> Problem:
    X, y = make_classification(
        n_train + n_validation, n_features, n_informative=min(n_features, 8), n_redundant=0, n_classes=n_classes,
        flip_y=0.1, random_state=seed,
    )  # fmt: skip
    X = (X - X[:n_train].mean(axis=0)) / X[:n_train].std(axis=0)
    names = [f"x{i}" for i in range(n_features)]
    return Problem(
        train=np.ascontiguousarray(X[:n_train].T),
        y_train=y[:n_train].copy(),
        validation=np.ascontiguousarray(X[n_train:].T),
        y_validation=y[n_train:].copy(),
        n_classes=n_classes,
        unit_columns=np.eye(n_features, dtype=np.bool_),
        prices=resolve(np.random.default_rng(seed).choice([10, 100, 1000], n_features), names),
    )


def cascade(problem: Problem, *, threshold: float = 0.75, n_jobs: int = 1) -> tuple[Cascade, StageCache]:
    cache = StageCache(
        LogisticTrainer(problem, n_jobs=n_jobs), problem.y_validation, n_units=problem.prices.n_units,
        threshold=threshold, max_bytes=2**28,
    )  # fmt: skip
    return Cascade(cache, problem.prices), cache
