"""Decisions on many rows, against scikit-learn's probabilities from all columns of the same table."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.common import Bar, interleaved
from emsco import EMSCOClassifier, MultiStageClassifier
from emsco.data.table import Table
from emsco.deployed.decide import n_cores

N_ROWS, N_FEATURES = 100_000, 15


class Decide:
    def setup(self):
        X, y = make_classification(N_ROWS + 3000, N_FEATURES, n_informative=8, flip_y=0.1, random_state=0)
        prices = np.random.default_rng(0).choice([10, 100, 1000], N_FEATURES)
        self.clf = EMSCOClassifier(prices, max_stages=5, random_state=0, search="auto", preset="paper").fit(
            X[:3000], y[:3000]
        )
        self.scikit_learn = LogisticRegression().fit(X[:3000], y[:3000])
        self.X = np.ascontiguousarray(X[3000:])
        self.single = self.X.astype(np.float32)
        self.clf.decide(self.X)
        self.line, self.curves = (
            MultiStageClassifier(np.arange(N_FEATURES) // 3, prices, encoding=encoding).fit(X[:3000], y[:3000])
            for encoding in ("linear", "spline")
        )

    def time_decide(self):
        self.clf.decide(self.X)

    def time_one_thread(self):
        self.clf.deployed_.decide(self.X, n_jobs=1)

    def time_single_precision(self):
        self.clf.decide(self.single)

    def time_line(self):
        return self.line.decide(self.X)

    def time_curves(self):
        return self.curves.decide(self.X)

    def time_scikit_learn(self):
        self.scikit_learn.predict_proba(self.X)


def bars() -> Iterator[Bar]:
    bench = Decide()
    bench.setup()
    clf, X = bench.clf, bench.X
    tables = {"a matrix": X, "a data frame": pd.DataFrame(X)}
    for point in (0, len(clf.front_) // 2, len(clf.front_) - 1):
        fast = clf.use(point).decide(X)
        probabilities, stage = clf.deployed_.cascade.probabilities(Table(X), range(N_FEATURES), clf.deployed_.rule)
        assert np.array_equal(fast.confidence, probabilities.max(axis=1))
        assert np.array_equal(fast.stage, stage)
        for name, table in tables.items():
            bench.X = table
            ours, theirs = interleaved(bench.time_decide, bench.time_scikit_learn, 5)
            with threadpool_limits(1):
                mine, alone = interleaved(bench.time_one_thread, bench.time_scikit_learn, 2)
            yield Bar(
                f"decide 100,000 rows of {name}, {len(clf.stages_)} stages",
                theirs / ours, "x", 1,
                f"{1000 * ours:.1f} ms against predict_proba on all columns, {1000 * theirs:.1f} ms, both in "
                f"{n_cores()} threads; {1000 * mine:.1f} against {1000 * alone:.1f} ms in one; "
                f"{100 * np.mean(stage == 0):.0f} % leave at the first stage",
            )  # fmt: skip
    bench.X = X
    line, curves = interleaved(bench.time_line, bench.time_curves, 3)
    visits = [float(np.mean(bench.time_line().stage + 1)), float(np.mean(bench.time_curves().stage + 1))]
    yield Bar(
        "decide with curves (spline) against linear, 5 stages", line / curves, "x", 1 / 3,
        f"{1000 * curves:.1f} ms against {1000 * line:.1f} ms; a row visits {visits[1]:.1f} and {visits[0]:.1f} stages",
    )  # fmt: skip
