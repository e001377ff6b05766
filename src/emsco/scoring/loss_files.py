"""Files with prices of labels: CSV and JSON."""

from collections.abc import Mapping, Sequence
import csv
from pathlib import Path
from typing import Any

from emsco.data.documents import DELIMITERS, from_json, number_of, read_text
from emsco.exceptions import FileError
from emsco.prices.errors import NO_ANSWER
from emsco.scoring.objectives import Loss


def read_loss(path: str | Path, classes: Sequence[str]) -> Loss:
    """Return the prices of labels in a CSV or JSON file.

    A CSV file has one line per true class: its name in the column ``true``, the price of each label in the column with
    its name, and the price of no label in the column ``reject``. A JSON file is an object of such objects, by class.

    Parameters
    ----------
    path : path-like
    classes : sequence of str
        Names of the classes, in the order of the matrix.
    """
    prices = _table(Path(path), classes, [*classes, "reject"])
    return Loss([row[:-1] for row in prices], [row[-1] for row in prices])


def read_errors(path: str | Path, classes: Sequence[str]) -> list[list[Any]]:
    """Return the prices of errors in a file such as ``read_loss`` reads; the column ``reject`` may be missing.

    Then the table has a column per class, and every case gets a label. A price may be text that names the column of an
    amount at risk, such as ``5 + 0.9 * amount``.
    """
    path = Path(path)
    has_reject = NO_ANSWER in read_text(path)
    labels = [*classes, NO_ANSWER] if has_reject and NO_ANSWER not in classes else list(classes)
    return _table(path, classes, labels, texts=True)


def _table(path: Path, classes: Sequence[str], labels: list[str], *, texts: bool = False) -> list[list[Any]]:
    """Return prices by true class and label."""
    text = read_text(path)
    content = from_json(text, path) if path.suffix.lower() == ".json" else _loss_lines(text, path)
    if (
        not isinstance(content, Mapping)
        or sorted(content) != sorted(classes)
        or not all(isinstance(line, Mapping) and sorted(line) == sorted(labels) for line in content.values())
    ):
        raise FileError(
            f"{path} must have a line per true class, {', '.join(classes)}, each with a price for each of "
            f"{', '.join(labels)}."
        )

    def price(true: str, label: str) -> float | str:
        cell = content[true][label]
        if texts and isinstance(cell, str) and any(character.isalpha() for character in cell):
            return cell
        return number_of(cell, f"loss of {label!r} for {true!r} in {path}")

    return [[price(t, p) for p in labels] for t in classes]


def _loss_lines(text: str, path: Path) -> dict[str, dict[str, str]]:
    lines = text.splitlines()
    delimiter = max(DELIMITERS, key=(lines[0] if lines else "").count)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter) if any(row)]
    except csv.Error as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    if not rows or rows[0][0].lower() != "true" or any(len(row) != len(rows[0]) for row in rows):
        raise FileError(f"{path} must be a table whose first column is named true.")
    if delimiter == ";":  # then commas are decimal commas
        rows[1:] = [[row[0], *(cell.replace(",", ".") for cell in row[1:])] for row in rows[1:]]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}
