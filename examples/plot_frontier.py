"""Plot the front of the heart-failure data: ``python examples/plot_frontier.py frontier.png``; needs emsco[plot]."""

import sys

from sklearn.model_selection import train_test_split

from emsco import EMSCOClassifier
from emsco.datasets import load_heart_failure
from emsco.report import FrontDisplay

heart = load_heart_failure()
data = heart.data.drop(columns="time")  # the length of the follow-up is known only afterwards
prices = {name: heart.prices[name] for name in data}
X, X_test, y, y_test = train_test_split(data, heart.target, test_size=0.25, stratify=heart.target, random_state=0)
clf = EMSCOClassifier(prices, threshold=0.8, max_stages=3, random_state=0).fit(X, y)

display = FrontDisplay.from_estimator(clf)  # clf.front_.plot() plots the points alone
display.ax_.set_title(f"{len(clf.front_)} Pareto-optimal designs of up to 11 features", fontsize=11)
display.ax_.set_xlabel("mean cost per patient")
display.ax_.set_ylabel("accuracy: labels that are correct (%), out of fold")
display.figure_.savefig(sys.argv[1] if len(sys.argv) > 1 else "frontier.png", dpi=150)
