"""Random designs on which encodings and strengths of regularisation are compared, before the search."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from emsco.arrays import IntArray
from emsco.designs.partition import compress, distinct_sets
from emsco.scoring.judge import Judge, Task
from emsco.stages.base import StageTrainer

_N_PROBES = 40
_MOST_STAGES = 6
_MOST_BOUGHT = 15  # units, as many as good designs buy: large sets take long


def probing(task: Task, rng: np.random.Generator, *, by_sureness: bool) -> Callable[[StageTrainer], float]:
    """Return how good a learner is: by the combined score of the best quarter of some random designs.

    For a promise, whose thresholds come later, ``by_sureness``: how sure the feature sets are of the truth.
    """
    designs = _probes(task, rng)
    task = replace(task, aims=None)

    def score(trainer: StageTrainer) -> float:
        judge = Judge(task, trainer)
        if by_sureness:
            return float(judge.sureness(distinct_sets(designs)).mean())
        reached = np.sort(task.score(judge.tally(designs)))
        return float(reached[-_N_PROBES // 4 :].mean())

    return score


def _probes(task: Task, rng: np.random.Generator) -> IntArray:
    n_units, most = task.prices.n_units, min(task.max_stages, _MOST_STAGES)
    n_stages = rng.integers(min(2, most), most, size=_N_PROBES, endpoint=True)
    stages = rng.integers(n_stages[:, None], size=(_N_PROBES, n_units))
    if task.removal:
        n_bought = rng.integers(1, min(n_units, _MOST_BOUGHT), size=(_N_PROBES, 1), endpoint=True)
        order = rng.permuted(np.tile(np.arange(n_units), (_N_PROBES, 1)), axis=1)
        stages = np.where(order < n_bought, stages, -1)
    return compress(stages)
