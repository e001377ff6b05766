"""All feature sets of a small problem, trained as one batch and by a loop of scikit-learn."""

from collections.abc import Iterator

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.common import Bar, best_of, numeric_problem, seconds
from emsco.stages.logistic import LogisticTrainer

N_FEATURES = 14
ALL_SETS = ((np.arange(1, 2**N_FEATURES)[:, None] >> np.arange(N_FEATURES)) & 1).astype(np.bool_)


class Train:
    params = (1, 2)
    param_names = ("n_jobs",)

    def setup(self, n_jobs):
        self.trainer = LogisticTrainer(numeric_problem(345, 172, N_FEATURES), n_jobs=n_jobs)
        self.trainer.train(ALL_SETS[:1])

    def time_all_sets(self, n_jobs):
        self.trainer.train(ALL_SETS)


def bars(n_checked: int = 300, n_timed: int = 1500) -> Iterator[Bar]:
    problem = numeric_problem(345, 172, N_FEATURES)
    X, y = problem.train.T.copy(), problem.y_train
    chosen = ALL_SETS[np.random.default_rng(0).choice(len(ALL_SETS), n_timed, replace=False)]
    trainer = LogisticTrainer(problem)
    memory = trainer.train(chosen[:n_checked])
    confidence = trainer.outcomes(chosen[:n_checked], memory).confidence
    worst = 0.0
    for units, ours in zip(chosen, confidence, strict=False):
        model = LogisticRegression(solver="newton-cholesky", tol=1e-10).fit(X[:, units], y)
        worst = max(worst, float(np.abs(model.predict_proba(problem.validation[units].T).max(axis=1) - ours).max()))
    assert worst < 1e-6, f"probabilities differ from scikit-learn's by {worst:.1e}"

    # Ours before, between and after parts of the loop, so that both see the same noise.
    loop, batched = [], {1: [], 2: []}
    for part in np.array_split(chosen, 5):
        for n_jobs, times in batched.items():
            times.append(best_of(lambda n=n_jobs: LogisticTrainer(problem, n_jobs=n).train(ALL_SETS), 1))
        loop.append(seconds(lambda part=part: [LogisticRegression().fit(X[:, units], y) for units in part]) / len(part))
    per_set = float(np.median(loop))
    for n_jobs, times in batched.items():
        ours = float(np.median(times))
        yield Bar(
            f"train {len(ALL_SETS):,} feature sets, {n_jobs} thread{'s' * (n_jobs > 1)}",
            per_set * len(ALL_SETS) / ours, "x", 40,
            f"{ours:.2f} s against {per_set * len(ALL_SETS):.0f} s (timed on {n_timed:,} sets); agree to {worst:.0e}",
        )  # fmt: skip
