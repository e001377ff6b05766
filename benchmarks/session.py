"""One input, one stage at a time, against scikit-learn's probabilities of a one-row data frame."""

from collections.abc import Iterator
from statistics import median

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common import Bar, interleaved, seconds
from emsco import Accept, Acquire, EMSCOClassifier
from emsco.datasets import load_heart_failure


class Sessions:
    def setup(self):
        heart = load_heart_failure()
        self.X = heart.data
        self.clf = EMSCOClassifier(heart.prices, random_state=0, search="auto", preset="paper").fit(
            heart.data, heart.target
        )
        self.scikit_learn = make_pipeline(StandardScaler(), LogisticRegression()).fit(heart.data, heart.target)
        self.rows = heart.data.to_dict("records")
        self.one_row = heart.data.iloc[[0]]
        self.time_sessions()

    def time_sessions(self):
        """Walk every row to its decision; the values asked for are looked up in a dict."""
        clf = self.clf
        answers = []
        for row in self.rows:
            session = clf.session()
            while isinstance(answer := session.step(), Acquire):
                session.give({column: row[column] for column in answer.columns})
            answers.append(answer)
        return answers

    def time_begin(self):
        for _ in range(1000):
            self.clf.session()

    def time_states(self):
        session = self.clf.session()
        for _ in range(1000):
            self.clf.session(session.state)

    def time_scikit_learn(self):
        return self.scikit_learn.predict_proba(self.one_row)


def bars() -> Iterator[Bar]:
    bench = Sessions()
    bench.setup()
    decisions = bench.clf.decide(bench.X)
    for i, answer in enumerate(bench.time_sessions()):
        assert isinstance(answer, Accept) == decisions.conclusive[i]
        assert (answer.confidence, answer.stage, answer.cost) == (
            decisions.confidence[i], decisions.stage[i], decisions.cost[i],
        )  # fmt: skip
    n_steps = int(np.sum(decisions.stage + 1))
    whole, theirs = interleaved(bench.time_sessions, bench.time_scikit_learn, 10)
    ours = whole / n_steps
    begin = 1e3 * median(seconds(bench.time_begin) for _ in range(9))
    state = 1e3 * median(seconds(bench.time_states) for _ in range(9))
    yield Bar(
        f"one stage of a session, {len(bench.clf.stages_)} stages", 1e6 * ours, "us", 100,
        f"{n_steps} stages of {len(bench.rows)} rows, all equal to decide; beginning a session takes {begin:.1f} us, "
        f"its state and continuing from that {state:.0f} us",
    )  # fmt: skip
    yield Bar(
        "the same against predict_proba of a one-row data frame", theirs / ours, "x", 20,
        f"StandardScaler and LogisticRegression take {1e6 * theirs:.0f} us",
    )  # fmt: skip
