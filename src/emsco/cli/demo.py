"""``emsco demo``: the main task on the bundled heart-failure data; and the same data as files."""

from pathlib import Path

import click

from emsco.cli.options import FILE, Command
from emsco.data.output import write_atomically

_THRESHOLD = 0.75  # the paper's for this data set

# Invented; an empty cell has not been measured.
_NEW_PATIENTS = """\
patient,age,anaemia,creatinine_phosphokinase,diabetes,ejection_fraction,high_blood_pressure,platelets,serum_creatinine,\
serum_sodium,sex,smoking
A,42,0,,0,,0,,0.8,,1,0
B,81,1,1200,0,20,0,180000,3.1,129,1,0
C,55,,,1,60,,,1.1,,0,0
D,70,1,320,0,30,0,210000,1.4,134,0,1
"""


@click.command(cls=Command, short_help="Run on heart-failure data, or write them.")
@click.option(
    "--files",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Only write the data into FOLDER, as heart.csv, prices.csv and new.csv, to try the other commands on.",
)
@click.option("--report", type=FILE, metavar="FILE", help="Also write the results as a page.")
def demo(folder: Path | None, report: Path | None) -> None:
    """Run the main task on heart-failure data that come with EMSCO."""
    if folder is None:
        show_heart_failure(report)
    else:
        write_files(folder)


def show_heart_failure(report: Path | None = None) -> None:
    """Search, choose, and compare on patients that neither the search nor the training saw; also as a page."""
    import pyarrow
    from sklearn.model_selection import train_test_split

    from emsco.datasets import load_heart_failure
    from emsco.estimators import EMSCOClassifier
    from emsco.report.console import print_results, print_stages
    from emsco.report.html import write_report
    from emsco.report.learning import judged

    heart = load_heart_failure(as_frame=False)
    table = pyarrow.table(dict(zip(heart.feature_names, heart.data.T, strict=True)))
    rows, held_out = train_test_split(range(len(table)), test_size=0.25, stratify=heart.target, random_state=0)
    print(f"Heart failure: {len(rows)} patients to learn from, {len(held_out)} held out; 12 features at 10 or 100.")
    print(f"Goal: predict death, give a label only with a confidence of at least {_THRESHOLD:.0%}, buy little.")
    print("As in the paper, the length of the follow-up, time, is a feature; a clinic would leave it out.")
    print("(The first run on a machine compiles for about half a minute.)\n", flush=True)
    clf = EMSCOClassifier(heart.prices, threshold=_THRESHOLD, choose="combined", final_estimator="search",
                          random_state=0, n_jobs=-1)  # fmt: skip
    clf.fit(table.take(rows), heart.target[rows])
    certificate = clf.front_.certificate
    assert certificate is not None  # the space is small
    print(
        f"{len(clf.front_)} of {certificate.n_designs:,} designs of up to 10 stages are Pareto-optimal; the list is "
        f"complete:\n{certificate.n_walked:,} designs were evaluated and the others ruled out, in "
        f"{clf.search_seconds_:.1f} s.\nA shortlist, on {clf.front_.n_samples} {judged(clf.deployed_)} patients:\n"
    )
    print(clf.front_.shortlist(in_use=clf.point_))
    print(f"\nIn use: point {clf.point_}, with the best sum of coverage, accuracy and saved share of the price.")
    print("Its results on the held-out patients:")
    evaluation = clf.evaluate(table.take(held_out), heart.target[held_out])
    print_stages(clf.deployed_, evaluation)
    print_results(clf.deployed_, evaluation)
    if report is not None:
        write_report(clf, report, evaluation=evaluation, notes={"data": "heart failure, bundled with emsco"})
        print(f"\nThe same as a page to choose from: open {report} in a browser.")


def write_files(folder: Path) -> None:
    """Write the patients, their prices and four invented new patients as CSV files, and print the next command.

    Raises
    ------
    FileError
        A file of such a name exists already, with other contents.
    """
    from importlib.resources import files

    from emsco.datasets import load_heart_failure
    from emsco.exceptions import FileError

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
            raise FileError(f"{path} exists already, with other contents; give another folder.")
    for name, text in contents.items():
        write_atomically(folder / name, text.encode())
    click.echo(f"Written to {folder}:")
    print("  heart.csv   299 patients with heart failure: 12 features, and DEATH_EVENT (CC BY 4.0)")
    print("  prices.csv  the price of each feature: 10 if it is known without a test, else 100")
    print("  new.csv     four invented patients to decide")
    print("Next, in that folder:")
    print("  emsco fit heart.csv --target DEATH_EVENT --costs prices.csv --drop time")
