"""What a notebook shows after a fit: ``python examples/evaluation.py evaluation.png``; needs emsco[plot]."""

import sys

import matplotlib.pyplot as plt
from sklearn.model_selection import train_test_split

from emsco import EMSCOClassifier
from emsco.datasets import load_australian_credit

credit = load_australian_credit()
X, X_test, y, y_test = train_test_split(credit.data, credit.target, stratify=credit.target, random_state=0)
clf = EMSCOClassifier(credit.prices, final_estimator="search", random_state=0).fit(X, y)
evaluation = clf.evaluate(X_test, y_test)
print(evaluation)
print(f"expected on new rows: {clf.outlook_.accuracy:.1%} right")

figure, axes = plt.subplots(1, 2, figsize=(12, 4.4), layout="constrained")
clf.front_.plot(axes[0], highlight=clf.point_, min_coverage=0.8)  # out of fold, to choose
evaluation.plot(axes[1])  # on test rows, to report
axes[1].set_ylim(60, 100)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "evaluation.png", dpi=130)
