"""Thyroid screening with all defaults: ``python examples/thyroid_screening.py thyroid.png``; needs emsco[plot]."""

import sys

import matplotlib.pyplot as plt
import numpy as np

from emsco import EMSCOClassifier
from emsco.datasets import load_thyroid

patients, new = load_thyroid(), load_thyroid(subset="test")  # 3,772 and 3,428 patients, real prices
clf = EMSCOClassifier(patients.prices, random_state=0).fit(patients.data, patients.target)
evaluation = clf.evaluate(new.data, new.target)
print(evaluation)

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained", width_ratios=(3, 2))
evaluation.plot(left)
left.set_xlabel("mean cost per patient (dollars)")

rows = np.array([0.0, 0.0, 1.0])  # always answering "normal"
recalls = {
    "always answer normal": rows,
    f"EMSCO, for {evaluation.in_use.mean_cost:.0f} dollars": evaluation.in_use.recall,
    f"buy everything, for {evaluation.everything.mean_cost:.0f} dollars": evaluation.everything.recall,
}
for k, (name, recall) in enumerate(recalls.items()):
    bars = right.bar(
        np.arange(3) + 0.27 * (k - 1), 100 * recall, 0.25, label=name, color=("#B0B5BC", "#0072B2", "#E69F00")[k]
    )
    right.bar_label(bars, fmt="%.0f", fontsize=8)
right.set_xticks(range(3), ["hyperthyroid\n(73 patients)", "subnormal\n(177)", "normal\n(3,178)"])
right.set_ylabel("recall: cases that are found (%)")
right.set_ylim(0, 130)
right.set_yticks(range(0, 101, 20))
right.set_title("what becomes of each class", fontsize=11)
right.legend(fontsize=8, loc="upper left", framealpha=0.9)
right.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "thyroid.png", dpi=130)
