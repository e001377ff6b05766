"""Draw the frontier of the heart-failure data: ``python examples/plot_frontier.py frontier.png``; needs emsco[plot]."""

import sys

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from emsco import EMSCOClassifier
from emsco.datasets import load_heart_failure

heart = load_heart_failure()
X, X_test, y, y_test = train_test_split(heart.data, heart.target, test_size=0.25, stratify=heart.target, random_state=0)
clf = EMSCOClassifier(heart.prices, threshold=0.75, refit=True, random_state=0).fit(X, y)
front = clf.front_

figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
points = axes.scatter(
    front.mean_cost,
    100 * front.accuracy,
    c=100 * front.coverage,
    cmap="cividis",
    s=42,
    edgecolor="black",
    linewidth=0.5,
)
figure.colorbar(points, label="patients who get an answer (%)")
axes.annotate(
    f"fittest:\n{front.n_stages[0]} stages,\n{100 * front.coverage[0]:.0f} % answered",
    (front.mean_cost[0], 100 * front.accuracy[0]),
    xytext=(front.mean_cost[0] - 25, 100 * front.accuracy.min()),
    va="bottom",
    arrowprops={"arrowstyle": "-", "color": "gray", "shrinkB": 6, "relpos": (0.2, 1)},
)
axes.axvline(750, color="black", linestyle=":", linewidth=1)
axes.text(742, axes.get_ylim()[1], "everything costs 750 ", rotation=90, ha="right", va="top", fontsize=9)
axes.set_xlabel("mean price paid per patient")
axes.set_ylabel("answers that are right (%), validation patients")
axes.set_title(f"{len(front)} ways to buy 12 features, none beaten by another", fontsize=11)
axes.grid(alpha=0.3)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "frontier.png", dpi=150)
