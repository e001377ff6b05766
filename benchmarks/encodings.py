"""What curves of the columns are worth: Spambase, all 57 columns in one stage, 5 folds.

``python -m benchmarks.encodings`` prints the share of right labels of rows that were left out, an answer for each.
"""

from time import perf_counter

from sklearn.model_selection import StratifiedKFold, cross_val_predict

from emsco import MultiStageClassifier
from emsco.data.encoding import ENCODINGS
from emsco.datasets import load_spambase


def main() -> None:
    spam = load_spambase(as_frame=False)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    for encoding in ENCODINGS:
        started = perf_counter()
        clf = MultiStageClassifier(encoding=encoding)
        answers = cross_val_predict(clf, spam.data, spam.target, cv=folds, method="predict_proba").argmax(axis=1)
        print(f"{encoding:<8} {(answers == spam.target).mean():.3f}   {perf_counter() - started:.1f} s")


if __name__ == "__main__":
    main()
