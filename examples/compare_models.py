"""Do two models really differ? ``python examples/compare_models.py compare.png``; needs emsco[plot]."""

import sys

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from emsco import EMSCOClassifier, MultiStageClassifier, compare
from emsco.datasets import load_pima

pima = load_pima()  # diabetes
X, X_test, y, y_test = train_test_split(pima.data, pima.target, test_size=0.4, stratify=pima.target, random_state=0)
everything = MultiStageClassifier(costs=pima.prices, threshold=0.0).fit(X, y)  # buys all features at once
stages = EMSCOClassifier(pima.prices, final_estimator="search", random_state=0).fit(X, y)
comparison = compare(everything, stages, X_test, y_test, names=("everything", "stages"))
print(comparison)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", width_ratios=(3, 1))
shares = [figure for figure in comparison.figures if figure.figure not in ("mean_cost", "coverage")]
costs = [figure for figure in comparison.figures if figure.figure == "mean_cost"]
for axis, figures, scale in ((left, shares, 100), (right, costs, 1)):
    for k, difference in enumerate(figures):
        ends = [scale * difference.low, scale * difference.high]
        colour = "#5F6368" if difference.higher is None else "#0072B2"
        axis.plot(ends, [k, k], color=colour, linewidth=3, solid_capstyle="round")
        axis.plot(scale * difference.difference, k, "o", color=colour, markersize=8)
    axis.axvline(0, color="black", linewidth=1)
    axis.locator_params(axis="x", nbins=6)
    axis.set_yticks(range(len(figures)), [figure.name for figure in figures])
    axis.set_ylim(len(figures) - 0.5, -0.5)
    axis.grid(axis="x", color="#E3E3E3", linewidth=0.6)
    axis.spines[["top", "right"]].set_visible(False)
left.set_xlabel("stages minus everything (percentage points)")
right.set_xlabel("difference in price per case")
right.margins(x=0.25)
figure.suptitle(f"{len(y_test)} test rows: grey intervals contain 0, so these rows cannot tell", fontsize=11)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "compare.png", dpi=130)
