"""The paper's nine spaces: the time to prove their frontiers, and what BestFirst finds of them with as many designs."""

from collections.abc import Iterator

import numpy as np

from benchmarks.common import Bar, seconds
from emsco.experiments.global_optima import draw_curves, prove_frontiers, true_frontier
from emsco.experiments.setting import PROVEN


class Frontier:
    def setup(self):
        true_frontier("pima", 4, 0)

    def time_heart_4_stages(self):
        true_frontier("heart", 4, 0)

    def track_share_of_heart_4_stages(self):
        (curve,) = draw_curves(
            [true_frontier("heart", 4, 0)],
            ["best-first"],
            runs=5,
            generations=500,
            n_jobs=1,
            on_progress=lambda _: None,
        )
        return curve.vectors[:, -1].mean() / curve.n_vectors


def bars(runs: int = 20) -> Iterator[Bar]:
    true_frontier("pima", 4, 0)
    frontiers = []
    taken = seconds(lambda: frontiers.extend(prove_frontiers(PROVEN, [2, 3, 4], 1, n_jobs=2)))
    sizes = ", ".join(str(frontier.n_vectors) for frontier, _ in frontiers)
    yield Bar("true frontiers of the paper's nine spaces", taken, "s", 60, f"training included; {sizes} vectors")
    curves = draw_curves(frontiers, ["best-first"], runs=runs, generations=500, n_jobs=2, on_progress=lambda _: None)
    shares = np.array([100 * curve.vectors[:, -1].mean() / curve.n_vectors for curve in curves])
    detail = f"mean of {runs} runs of 150,000 designs: {', '.join(f'{share:.1f}' for share in shares)}"
    yield Bar("true frontier found by BestFirst, worst of nine", float(shares.min()), "%", 80, detail)
    yield Bar("the same, sixth of nine", float(np.sort(shares)[::-1][5]), "%", 95, detail)
