"""The main job on the carried heart-failure data: ``python -m emsco.demo``; and the same data as files."""

from importlib.resources import files
from pathlib import Path
import sys
from time import perf_counter

from sklearn.model_selection import train_test_split

from emsco.classifier import EMSCOClassifier, MultiStageClassifier
from emsco.datasets import load_heart_failure
from emsco.exceptions import FileError
from emsco.report.text import RESULT_HEADER, result_row, stage_table

_THRESHOLD = 0.75  # the paper's for this data set

# Invented; an empty cell is one that nobody has measured yet.
_NEW_PATIENTS = """\
patient,age,anaemia,creatinine_phosphokinase,diabetes,ejection_fraction,high_blood_pressure,platelets,serum_creatinine,\
serum_sodium,sex,smoking
A,42,0,,0,,0,,0.8,,1,0
B,81,1,1200,0,20,0,180000,3.1,129,1,0
C,55,,,1,60,,,1.1,,0,0
D,70,1,320,0,30,0,210000,1.4,134,0,1
"""


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


def write_files(folder: Path) -> None:
    """Write the patients, their prices and four invented new patients as CSV files, and print what to do with them.

    Raises
    ------
    FileError
        A file of such a name is there already, with other contents.
    """
    prices = load_heart_failure(as_frame=False).prices
    contents = {
        "heart.csv": files("emsco.datasets").joinpath("data", "heart_failure.csv").read_text(encoding="utf-8"),
        "prices.csv": "feature,price\n" + "".join(f"{name},{price}\n" for name, price in prices.items()),
        "new.csv": _NEW_PATIENTS,
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in contents.items():
        path = folder / name
        if path.exists() and path.read_bytes() != text.encode():
            raise FileError(f"{path} is there already, with other contents; give another folder.")
    for name, text in contents.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
    print(f"Written to {folder}:")
    print("  heart.csv   299 patients with heart failure: 12 features, and DEATH_EVENT (CC BY 4.0)")
    print("  prices.csv  what each feature costs: 10 if it is known without a test, else 100")
    print("  new.csv     four invented patients to decide")
    print("Next, in that folder:")
    print("  emsco fit heart.csv --target DEATH_EVENT --costs prices.csv --drop time --threshold 0.8 --max-stages 3")


if __name__ == "__main__":
    main()
