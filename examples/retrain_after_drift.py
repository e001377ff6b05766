"""A world that changes, and a model that follows: ``python examples/retrain_after_drift.py drift.png``."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from emsco import BestFirst, EMSCOClassifier

rng = np.random.default_rng(0)
prices = {"questionnaire": 1, "blood test": 5, "scan": 20}


def rows_of(month, n_rows=1500):
    """Return the cases of a month: the devices slowly lose their scale, and the blood test its meaning."""
    ill = rng.random(n_rows) < 0.3
    blood = 1.5 - 0.2 * max(month - 2, 0)
    X = pd.DataFrame(
        {
            "questionnaire": rng.normal(1.0 * ill),
            "blood test": rng.normal(blood * ill - 0.25 * month),
            "scan": rng.normal(2.5 * ill + 0.2 * month),
        }
    )
    return X, ill.astype(int)


X, y = rows_of(0)
settings = {"search": BestFirst(max_designs=500), "final_estimator": "search", "random_state": 0}
old = EMSCOClassifier(prices, **settings).fit(X, y)
follower = EMSCOClassifier(prices, **settings).fit(X, y)
months, figures = range(1, 11), {"trained once": [], "retrained every month": []}
for month in months:
    X, y = rows_of(month)
    for name, clf in zip(figures, (old, follower), strict=True):
        result = clf.evaluate(X, y).in_use
        figures[name].append((result.accuracy, *result.interval("accuracy"), result.mean_cost))
    follower.retrain(X, y)  # the same design and thresholds, for the next month

figure, (top, bottom) = plt.subplots(2, 1, figsize=(7, 4.8), layout="constrained", sharex=True, height_ratios=(2, 1))
for (name, values), colour in zip(figures.items(), ("#D55E00", "#0072B2"), strict=True):
    accuracy, low, high, cost = np.array(values).T
    top.plot(months, 100 * accuracy, "o-", color=colour, label=name)
    top.fill_between(months, 100 * low, 100 * high, color=colour, alpha=0.15, linewidth=0)
    bottom.plot(months, cost, "o-", color=colour)
top.set_ylabel("accuracy (%)")
top.set_title("The same design: trained once, and retrained on the rows of the last month", fontsize=11)
top.legend(fontsize=9, loc="lower left")
bottom.set_ylabel("mean cost")
bottom.set_xlabel("month")
bottom.set_xticks(list(months))
for axis in (top, bottom):
    axis.grid(color="#E3E3E3", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "drift.png", dpi=130)
