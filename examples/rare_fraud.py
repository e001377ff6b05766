"""A rare class that must be found: ``python examples/rare_fraud.py fraud.png``; needs emsco[plot]."""

import sys

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from emsco import BestFirst, EMSCOClassifier

rng = np.random.default_rng(0)
n_rows = 8000
fraud = rng.random(n_rows) < 0.03  # 3 % of the payments
prices = {"amount": 0, "hour": 0, "country risk": 0.1, "device check": 0.5, "bureau score": 2, "call the customer": 15}
strength = {
    "amount": 0.8,
    "hour": 0.5,
    "country risk": 1.2,
    "device check": 1.8,
    "bureau score": 2.0,
    "call the customer": 4,
}
X = pd.DataFrame({name: rng.normal(strength[name] * fraud) for name in prices})
y = np.where(fraud, "fraud", "good")
X, X_test, y, y_test = train_test_split(X, y, stratify=y, random_state=0)

settings = {"search": BestFirst(max_designs=2000), "final_estimator": "search", "random_state": 0}
clf = EMSCOClassifier(prices, **settings).fit(X, y)
default, front = clf.point_, clf.front_
evaluation = clf.evaluate(X_test, y_test)
chosen = {
    "the default: no worse than buying everything": default,
    "the best combined score": front.choose(best="combined"),
    "the cheapest with a recall of 80 %, out of fold": front.choose(
        min_recall={"fraud": 0.8}, min_coverage=0.99, best="cost"
    ),
}

figure, axis = plt.subplots(figsize=(7.6, 4.4), layout="constrained")
everybody = np.flatnonzero(front.coverage >= 0.99)
cost = np.array([result.mean_cost for result in evaluation.points])
recall = 100 * np.array([result.recall[0] for result in evaluation.points])
axis.scatter(
    cost[everybody], recall[everybody], s=16, color="#56B4E9", linewidth=0, label="points that label at least 99 %"
)
for (name, point), marker in zip(chosen.items(), "o^s", strict=True):
    result = evaluation.points[point]
    shown = f"{name}: {result.recall[0]:.0%} found, {result.accuracy:.1%} right"
    axis.scatter(
        cost[point],
        recall[point],
        s=120,
        marker=marker,
        facecolor="none",
        edgecolor="#D55E00",
        linewidth=2,
        label=shown,
    )
axis.axhline(
    100 * evaluation.always.recall[0], color="#E69F00", zorder=0,
    label=f"buy everything, for {evaluation.always.mean_cost:.2f}: {evaluation.always.recall[0]:.0%} found",
)  # fmt: skip
axis.set_xlabel("mean cost per payment")
axis.set_ylabel("recall: frauds that are found (%)")
axis.set_title(f"{evaluation.base_rate}", fontsize=10)
axis.set_ylim(-4, 104)
axis.grid(color="#E3E3E3", linewidth=0.6)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(fontsize=8, loc="lower right", framealpha=0.95)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "fraud.png", dpi=130)
