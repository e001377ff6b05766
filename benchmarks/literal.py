"""The paper to the letter and its neighbours: elites by rows or by vectors, and the rate of the first generation.

    python -m benchmarks.literal                    # heart 4, credit 3, credit 4, pima 4; five runs of each
    python -m benchmarks.literal pima 4             # one space

Prints the share of the true front that the search holds after 50 and 500 generations, on the first split, and the last
generation of the runs.
"""

from dataclasses import replace
import sys

import numpy as np

from emsco.experiments.global_optima import run_evolution, scorer, true_frontier
from emsco.experiments.setting import PAPER

SPACES = (("heart", 4), ("credit", 3), ("credit", 4), ("pima", 4))
VARIANTS = (("vectors", 0.5), ("vectors", None), ("rows", None), ("rows", 0.5))
GENERATIONS, RUNS, PER_GENERATION = (50, 500), 5, 300


def shares(dataset: str, max_stages: int, unique: str, init_rate: float | None) -> tuple[np.ndarray, list[int]]:
    """Return the mean share after 50 and 500 generations, and after how many each run ended."""
    _, truth = true_frontier(dataset, max_stages, 0)
    cascade, n_features = scorer(dataset, 0)
    optimal = {vector.tobytes() for vector in truth}
    evolution = replace(PAPER[dataset].evolution, max_generations=max(GENERATIONS), unique=unique, init_rate=init_rate)
    held, ends = np.zeros((RUNS, len(GENERATIONS))), []
    for run in range(RUNS):
        last = 0

        def tell(n_evaluated: int, designs: np.ndarray, vectors: np.ndarray, run: int = run) -> None:
            nonlocal last
            last = n_evaluated // PER_GENERATION - 1
            n_held = len({vector.tobytes() for vector in vectors} & optimal)
            for i, generation in enumerate(GENERATIONS):
                if last <= generation:
                    held[run, i:] = n_held / len(optimal)

        rng = np.random.default_rng([run, 0, max_stages])
        run_evolution(cascade.tally, evolution, n_features, max_stages, rng, tell)
        ends.append(last)
    return held.mean(axis=0), ends


def main() -> None:
    """Print the table."""
    spaces = [(sys.argv[1], int(sys.argv[2]))] if len(sys.argv) > 2 else SPACES
    for dataset, max_stages in spaces:
        for unique, init_rate in VARIANTS:
            share, ends = shares(dataset, max_stages, unique, init_rate)
            first = "the mutation rate" if init_rate is None else f"{init_rate:g}"
            print(
                f"{dataset}, k = {max_stages}; {unique}, first rate {first}: "
                f"{', '.join(f'{100 * s:.1f}' for s in share)} %; ends at {min(ends)} to {max(ends)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
