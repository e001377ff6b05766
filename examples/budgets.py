"""What each budget buys: ``python examples/budgets.py budgets.png``; needs emsco[plot]."""

import sys

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from emsco import BestFirst, EMSCOClassifier
from emsco.datasets import load_spambase

spam = load_spambase()  # 57 features that cost 1 each
X, X_test, y, y_test = train_test_split(spam.data, spam.target, train_size=0.5, stratify=spam.target, random_state=0)
clf = EMSCOClassifier(
    spam.prices,
    max_stages=4,
    search=BestFirst(max_designs=2000),
    encoding="rank",
    C=1.0,
    final_estimator="search",  # logistic stages: fast
    random_state=0,
).fit(X, y)
evaluation = clf.evaluate(X_test, y_test)
table = evaluation.at_cost([2, 3, 4, 6, 8, 12, 16, 24], min_coverage=0.9)  # points are chosen by the training rows
print(table[["budget", "mean_cost", "coverage", "accuracy"]].round(3).to_string(index=False))

figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
spread = 100 * table[["accuracy_low", "accuracy_high"]].sub(table["accuracy"], axis=0).abs().to_numpy().T
axis.errorbar(
    table["mean_cost"], 100 * table["accuracy"], yerr=spread, fmt="o-", color="#0072B2", capsize=3, linewidth=1.2,
    label="the best point within each budget, at least 90 % labelled",
)  # fmt: skip
for _, row in table.iterrows():
    axis.annotate(
        f"{row['coverage']:.0%}", (row["mean_cost"], 100 * row["accuracy_low"]), xytext=(0, -12),
        textcoords="offset points", ha="center", fontsize=8, color="#5F6368",
    )  # fmt: skip
always = evaluation.always
axis.axhline(
    100 * always.accuracy, color="#E69F00", label=f"buy all 57 features, label everybody: {always.accuracy:.1%}"
)
axis.set_xlabel("mean cost per message (features bought)")
axis.set_ylabel("accuracy on test messages (%)")
axis.set_title("Spam: accuracy for each budget, with 95 % intervals and the coverage", fontsize=11)
axis.grid(color="#E3E3E3", linewidth=0.6)
axis.spines[["top", "right"]].set_visible(False)
axis.margins(y=0.12)
axis.legend(fontsize=8, loc="lower right")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "budgets.png", dpi=130)
