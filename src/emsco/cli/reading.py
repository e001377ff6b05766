"""What commands read: model files, tables with labels, and what a classifier knows of its columns and rules.

Commands see a classifier through its public attributes and through the functions of this file.
"""

from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from emsco.cli.options import show_warning

if TYPE_CHECKING:
    from emsco.data.encoding import ColumnCode
    from emsco.deployed.evaluation import Evaluation
    from emsco.scoring.rejection import RejectRule


def load_model(path: Path, *, searched: bool = False) -> Any:
    """Return the classifier in a model file; with ``searched`` it must have a front."""
    from emsco.estimators import load

    clf = load(path)
    if searched and not hasattr(clf, "front_"):
        raise click.UsageError(f"{path} holds one given design: there is no front to choose from.")
    return clf


def column_codes(clf: Any) -> "list[ColumnCode]":
    """Return how a classifier reads its columns."""
    codes: list[ColumnCode] = clf.deployed_.encoder.codes
    return codes


def rule_in_use(clf: Any, branch: int | None = None) -> "RejectRule":
    """Return the thresholds of the design in use, or of one of its branches."""
    deployed = clf.deployed_
    rule: RejectRule = deployed.rule if branch is None else deployed.branched.rules[branch]
    return rule


def chosen_point(clf: Any, choice: str | dict[str, Any]) -> int:
    """Return the point of the front that options choose."""
    from emsco.scoring.choice import NO_WORSE, PRESET_CHOICES, choose_point, no_worse

    if choice == NO_WORSE:
        point, holds = no_worse(clf.front_)
        if not holds:
            show_warning(f"no design is as good as buying everything, for every class; point {point} is the nearest.")
        return point
    return choose_point(clf.front_, choice, best=PRESET_CHOICES[clf.preset])


class Labelled(NamedTuple):
    """Features and labels of the rows of a file that have a label, or of a sample of them.

    Attributes
    ----------
    X, y
        Features and labels.
    n_rows : int
        How many rows these are.
    n_known : int
        How many rows of the file have a label.
    rows : ndarray of int
        Which rows of the file they are.
    """

    X: Any
    y: Any
    n_rows: int
    n_known: int
    rows: Any


def read_labelled(
    file: Any, features: list[str], target: str, numbers: list[str] | None = None, *, seed: int | None = None
) -> Labelled:
    """Return features and labels of the rows that have a label.

    With a seed, a sample of a very large file is read.
    """
    import numpy as np

    from emsco.data.files import MAX_ROWS
    from emsco.data.table import Table
    from emsco.exceptions import InvalidInputError

    if not features:
        raise InvalidInputError(f"{file.path} has no column but {target}: there is nothing to predict it from.")
    if seed is not None and file.may_be_large:
        table, n_known, rows = file.sample([*features, target], target, MAX_ROWS, numbers=numbers, seed=seed)
    else:
        table, n_known = file.read([*features, target], numbers=numbers), 0
        rows = np.arange(table.num_rows)
    known = np.flatnonzero(~np.asarray(table.column(target).is_null()))
    if known.size < table.num_rows:
        show_warning(f"{table.num_rows - known.size} rows of {file.path} have no {target}; they are left out.")
        table = table.take(known)
    y = Table(table.select([target])).column(0)
    if y.dtype.kind == "f" and y.size and (y == np.floor(y)).all():
        y = y.astype(np.int64)
    return Labelled(table.select(features), y, int(known.size), max(n_known, int(known.size)), rows[known])


def read_for(clfs: Sequence[Any], data: Path, target: str | None, file_encoding: str) -> tuple[Any, Any, int]:
    """Return the labelled cases of a file as classifiers know them: features, labels, and how many rows these are.

    A column is read as numbers if every classifier that knows it does so.
    """
    from emsco.data.encoding import NumberCode
    from emsco.data.files import TableFile

    target = target or next((clf.notes_["target"] for clf in clfs if clf.notes_.get("target")), None)
    if target is None:
        raise click.UsageError("the model does not know which column holds the label; give --target.")
    file = TableFile(data, encoding=file_encoding)
    file.require([target])
    numeric: dict[str, bool] = {}
    for code in (code for clf in clfs for code in column_codes(clf)):
        numeric[code.name] = numeric.get(code.name, True) and isinstance(code, NumberCode)
    features = [name for name in numeric if name in file.names and name != target]
    if not features:
        raise click.UsageError(f"{data} has none of the columns that the model knows.")
    numbers = [name for name, is_number in numeric.items() if is_number and name in file.names]
    if all(clf.classes_.dtype.kind in "iuf" for clf in clfs):
        numbers.append(target)
    return read_labelled(file, features, target, numbers)[:3]


def digest_of(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()


def warn_if_seen(clf: Any, name: str, data: Path) -> None:
    """Warn if a model was trained on the cases that are to judge it."""
    known = [clf.notes_.get(note) for note in ("data sha256", "retrained on sha256")]
    if any(known) and digest_of(data) in known:
        show_warning(f"{name} was trained on cases of {data}; its figures on them are optimistic.")


def evaluate_file(clf: Any, data: Path, target: str | None, file_encoding: str) -> "Evaluation":
    """Return the results of a classifier on the labelled cases of a file."""
    X, y, _ = read_for([clf], data, target, file_encoding)
    evaluation: Evaluation = clf.evaluate(X, y)
    return evaluation
