"""A fit with nothing set on Spambase, 57 features: its time, and what its start from chains is worth."""

from collections.abc import Iterator

from benchmarks.common import Bar, seconds
from emsco import BestFirst, EMSCOClassifier
from emsco.datasets import load_spambase
from emsco.experiments.comparison import split
from emsco.experiments.methods import stacked


class Spambase:
    timeout = 600

    def setup(self):
        spam = load_spambase(as_frame=False)
        self.X, self.y = spam.data, spam.target

    def time_default_fit(self):
        EMSCOClassifier(random_state=0).fit(self.X, self.y)


def bars() -> Iterator[Bar]:
    spam = load_spambase(as_frame=False)
    clf = EMSCOClassifier(random_state=0)
    taken = seconds(lambda: clf.fit(spam.data, spam.target))
    detail = f"4,601 rows, one thread; {clf.n_feature_sets_:,} feature sets in 5 folds, {len(clf.front_):,} points"
    yield Bar("a default fit on Spambase", taken, "s", 180, detail)
    costs, X, y, X_val, y_val, *_ = split("spambase", 0)
    rows, labels = stacked(X, X_val), [*y, *y_val]
    searches = [BestFirst(max_designs=15_000, focus=0.5, start=start) for start in (None, 57)]
    alone = {"threshold": 0.75, "final_estimator": "search", "choose": "combined"}  # the search, not what follows it
    both = [EMSCOClassifier(costs, search=s, encoding="rank", C=100.0, random_state=0, **alone) for s in searches]
    times = [seconds(lambda c=c: c.fit(rows, labels)) for c in both]
    scores = [c.front_.combined.max() for c in both]
    assert scores[0] >= scores[1], "the faster start has to find no less"
    detail = f"{times[0]:.0f} s against {times[1]:.0f} s; best combined score {scores[0]:.3f} against {scores[1]:.3f}"
    yield Bar("its search from chains, against an evolution first", times[1] / times[0], "x", 2, detail)
