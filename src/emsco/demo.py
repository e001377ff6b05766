"""The main job on the carried heart-failure data: ``python -m emsco.demo``."""

import sys
from time import perf_counter

from sklearn.model_selection import train_test_split

from emsco.classifier import EMSCOClassifier, MultiStageClassifier
from emsco.datasets import load_heart_failure
from emsco.report.text import RESULT_HEADER, result_row, stage_table

_THRESHOLD = 0.75  # the paper's for this data set


def main() -> None:
    """Search, choose, and compare on patients that neither the search nor the training saw."""
    heart = load_heart_failure()
    X, X_test, y, y_test = train_test_split(heart.data, heart.target, test_size=0.25, stratify=heart.target,
                                            random_state=0)  # fmt: skip
    print(f"Heart failure: {len(X)} patients to learn from, {len(X_test)} held out; 12 features at 10 or 100.")
    print(f"Goal: predict death, label only when at least {_THRESHOLD:.0%} sure, buy little.")
    print("As in the paper the length of the follow-up, time, is a feature: a clinic would")
    print("leave it out. (The first run on a machine compiles for some 20 seconds.)\n", flush=True)
    start = perf_counter()
    clf = EMSCOClassifier(heart.prices, threshold=_THRESHOLD, refit=True, random_state=0, n_jobs=-1,
                          verbose=sys.stderr.isatty()).fit(X, y)  # fmt: skip
    seconds = perf_counter() - start
    certificate = clf.front_.certificate
    print(
        f"{certificate.n_designs:,} ways to buy 12 features in up to 10 stages. These {len(clf.front_)} are the ones "
        f"that no\nother beats, all of them: {certificate.n_walked:,} were looked at, the rest ruled out, in "
        f"{seconds:.1f} s.\nFittest first, on {clf.front_.n_samples} validation patients:\n"
    )
    print(clf.front_)

    decisions = clf.decide(X_test)
    print(f"\nChosen: point {clf.point_}, the fittest. What happens to the held-out patients:\n")
    print(stage_table(clf.stages_, decisions, noun="patients"))

    everything = MultiStageClassifier(costs=heart.prices, threshold=_THRESHOLD).fit(X, y)
    always = MultiStageClassifier(costs=heart.prices, threshold=0.0).fit(X, y)
    print("\nOn the held-out patients:\n")
    print(RESULT_HEADER)
    print(result_row("EMSCO, the chosen design", decisions, y_test))
    print(result_row("buy everything, same threshold", everything.decide(X_test), y_test))
    print(result_row("buy everything, always answer", always.decide(X_test), y_test))


if __name__ == "__main__":
    main()
