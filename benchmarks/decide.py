"""Decisions on many rows, against scikit-learn's probabilities from all columns of the same table."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.common import Bar, interleaved
from emsco import EMSCOClassifier, MultiStageClassifier
from emsco.data.table import Table
from emsco.deployed.decide import n_cores
from emsco.designs.branched import Branched, Route

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


def branched_bars(X: np.ndarray) -> Iterator[Bar]:
    """Compare a design that branches with a chain, per stage visited, by a value and by a leaning.

    The chain is the first branch, whose stages all rows go through; the other branch buys as many columns as often.
    """
    y = (X[:3000, :3].sum(axis=1) > 0).astype(int)
    clf = MultiStageClassifier(np.arange(N_FEATURES) // 3, threshold=0.9).fit(X[:3000], y)
    rows = np.array([[0] * 3 + [1] * 3 + [2] * 3 + [3] * 3 + [4] * 3, [0] * 3 + [4] * 3 + [3] * 3 + [2] * 3 + [1] * 3])
    routes = {
        "a value": Route("cut", 0, (0,), cuts=(float(np.median(X[:, 0])),), n_branches=2),
        "a leaning": Route("leaning", -1, groups=((0,), (1,)), n_branches=2),
    }
    other = MultiStageClassifier(rows[1], threshold=0.9).fit(X[:3000], y).deployed_
    chain = clf.deployed_
    for name, route in routes.items():
        branched = Branched(rows, route, (chain.rule,) * 2, ("shared", "shared"))
        tree = replace(chain, models={**other.models, **chain.models}, branches=(branched,))
        found, alone = tree.decide(X), chain.decide(X)
        second = replace(chain, designs=rows[1:], models=other.models)
        for b, one in enumerate((alone, second.decide(X))):
            assert np.array_equal(found.confidence[found.branch == b], one.confidence[found.branch == b])
        visits, visits_of_chain = float((found.stage + 1).sum()), float((alone.stage + 1).sum())
        ours, theirs = interleaved(partial(tree.decide, X), partial(chain.decide, X), 5)
        yield Bar(
            f"decide 100,000 rows by branches, routed by {name}: time per stage visited, against a chain",
            (theirs / visits_of_chain) / (ours / visits), "x", 1 / 1.3,
            f"{1e9 * ours / visits:.0f} against {1e9 * theirs / visits_of_chain:.0f} ns",
        )  # fmt: skip


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
    yield from branched_bars(X)
    bench.X = X
    line, curves = interleaved(bench.time_line, bench.time_curves, 3)
    visits = [float(np.mean(bench.time_line().stage + 1)), float(np.mean(bench.time_curves().stage + 1))]
    yield Bar(
        "decide with curves (spline) against linear, 5 stages", line / curves, "x", 1 / 3,
        f"{1000 * curves:.1f} ms against {1000 * line:.1f} ms; a row visits {visits[1]:.1f} and {visits[0]:.1f} stages",
    )  # fmt: skip
