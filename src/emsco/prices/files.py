"""Price lists as files: CSV, JSON and YAML."""

from collections.abc import Iterable, Mapping
import csv
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from emsco.data.documents import DELIMITERS, from_json, from_yaml, number_of, read_text
from emsco.exceptions import FileError, InvalidPricesError
from emsco.prices.prices import Prices

_PRICE_COLUMNS = ("feature", "price", "unit", "group", "discount", "from")


def read_prices(path: str | Path) -> Prices:
    """Return the prices in a CSV, JSON or YAML file.

    Each entry has a ``feature`` (a column of the table) and its ``price``; optionally the ``unit`` it is bought in with
    other columns (one price, given once), and the ``group`` with which it shares a cost, with the ``discount`` price it
    has once that is paid. A feature that is computed from others has no price, but names these as ``from``: a list, or
    text with a plus between the names. JSON and YAML hold a list of such entries, or a mapping of feature to price or
    entry; or either as ``prices`` of a mapping, beside ``overhead`` and ``parallel`` as in ``Prices``. CSV has no place
    for them.
    """
    path = Path(path)
    text = read_text(path)
    if path.suffix.lower() in (".json", ".yaml", ".yml"):
        content = from_json(text, path) if path.suffix.lower() == ".json" else from_yaml(text, path)
        content, model = _model(content, path)
        return replace(_prices(_entries(content, path), path), **model)
    return _prices(_from_csv(text, path), path)


def _model(content: Any, path: Path) -> tuple[Any, dict[str, Any]]:
    """Return the entries of a file, and which price model it says."""
    listed = content.get("prices") if isinstance(content, Mapping) else None
    if not isinstance(listed, Mapping | list) or not set(content) <= {"prices", "overhead", "parallel"}:
        return content, {}
    model = {name: content[name] for name in ("overhead", "parallel") if content.get(name) is not None}
    if "overhead" in model:
        model["overhead"] = number_of(model["overhead"], f"overhead in {path}")
        if not 0 <= model["overhead"] < inf:
            raise InvalidPricesError(f"the overhead in {path} is {model['overhead']}; it is a number of at least 0.")
    if not isinstance(model.get("parallel", False), bool):
        raise InvalidPricesError(f"{path}: parallel is {model['parallel']!r}; it can be true or false.")
    return listed, model


def _from_csv(text: str, path: Path) -> list[dict[str, Any]]:
    lines = text.splitlines()
    delimiter = max(DELIMITERS, key=(lines[0] if lines else "").count)
    try:
        rows = [[cell.strip() for cell in row] for row in csv.reader(lines, delimiter=delimiter)]
    except csv.Error as error:
        raise FileError(f"{path} cannot be read: {error}.") from error
    header = [name.lower() for name in rows[0]] if rows else []
    if "feature" not in header or "price" not in header or not set(header) <= set(_PRICE_COLUMNS):
        raise FileError(
            f"the first line of {path} is {','.join(header)!r}; a price list has the columns feature,price and "
            "optionally unit,group,discount,from."
        )
    entries = []
    for number, row in enumerate(rows[1:], 2):
        if not any(row):
            continue
        if len(row) > len(header):
            raise FileError(f"line {number} of {path} has {len(row)} cells, its first line {len(header)}.")
        entry = {name: cell for name, cell in zip(header, row, strict=False) if cell}
        for name in ("price", "discount"):
            if name in entry and delimiter == ";":
                entry[name] = entry[name].replace(",", ".")
        entries.append(entry)
    return entries


def _entries(content: Any, path: Path) -> list[dict[str, Any]]:
    if isinstance(content, Mapping):
        content = [
            {"feature": feature, **entry} if isinstance(entry, Mapping) else {"feature": feature, "price": entry}
            for feature, entry in content.items()
        ]
    if not isinstance(content, list) or not all(isinstance(entry, Mapping) for entry in content):
        raise FileError(
            f"{path} must hold a list of entries with feature and price, or a mapping of feature to price; it holds "
            f"{type(content).__name__}."
        )
    entries = [{str(k): v for k, v in entry.items() if v is not None} for entry in content]
    for entry in entries:
        unknown = sorted(set(entry) - set(_PRICE_COLUMNS))
        if unknown:
            raise FileError(f"{path}: an entry has {unknown}; it may have {', '.join(_PRICE_COLUMNS)}.")
    return entries


def _prices(entries: list[dict[str, Any]], path: Path) -> Prices:
    units: dict[str, list[str]] = {}
    facts: dict[str, dict[str, Any]] = {}
    for entry in entries:
        if "feature" not in entry:
            raise InvalidPricesError(f"{path}: an entry has no feature: {entry}.")
        feature = str(entry["feature"])
        unit = str(entry.get("unit", feature))
        columns = units.setdefault(unit, [])
        if feature in columns:
            raise InvalidPricesError(f"{path} lists {feature!r} twice.")
        columns.append(feature)
        known = facts.setdefault(unit, {})
        for name in ("price", "group", "discount", "from"):
            if name not in entry:
                continue
            value = _value(name, entry[name], f"{name} of {feature!r} in {path}")
            if value != value:
                raise InvalidPricesError(f"the {name} of {feature!r} in {path} is missing or not a number; give one.")
            if known.setdefault(name, value) != value:
                raise InvalidPricesError(
                    f"{path}: the {name} of the unit {unit!r} is {known[name]} at one of its features and {value} at "
                    f"{feature!r}; a unit has one."
                )
    if not entries:
        raise InvalidPricesError(f"{path} lists no prices.")
    priceless = [unit for unit, known in facts.items() if "price" not in known and "from" not in known]
    if priceless:
        raise InvalidPricesError(f"{path} has no price for {priceless}; 0 is a price: known from the start.")
    groups: dict[str, list[str]] = {}
    for unit, known in facts.items():
        if "group" in known:
            groups.setdefault(known["group"], []).append(unit)
    return Prices(
        units={unit: columns for unit, columns in units.items() if columns != [unit]},
        price={unit: known["price"] for unit, known in facts.items() if "price" in known},
        groups=groups,
        discount={unit: known["discount"] for unit, known in facts.items() if "discount" in known},
        derived={unit: known["from"] for unit, known in facts.items() if "from" in known},
    )


def _value(name: str, value: Any, what: str) -> Any:
    """Return a fact of a file: a number, the name of a group, or the names that a feature is computed from."""
    if name == "group":
        return str(value)
    if name != "from":
        return number_of(value, what)
    names = value if isinstance(value, list) else str(value).split("+")
    return [str(source).strip() for source in names]


def without(prices: Prices, columns: Iterable[str]) -> Prices:
    """Return prices without what only yields the given columns: a list may cover more than a table has."""
    gone = set(columns)
    units = {unit: [c for c in yields if c not in gone] for unit, yields in prices.units.items()}
    empty = {unit for unit, yields in units.items() if not yields}
    empty |= {unit for unit in (*prices.price, *prices.derived) if unit in gone and unit not in units}
    groups = {group: [u for u in members if u not in empty] for group, members in prices.groups.items()}
    return replace(
        prices,
        units={unit: yields for unit, yields in units.items() if yields},
        price={unit: price for unit, price in prices.price.items() if unit not in empty},
        groups={group: members for group, members in groups.items() if members},
        discount={unit: price for unit, price in prices.discount.items() if unit not in empty},
        derived={unit: sources for unit, sources in prices.derived.items() if unit not in empty},
    )
