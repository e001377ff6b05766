"""Ten data sets with prices of tests and of errors, as in the experiments on optimal cost-sensitive trees."""

import gzip
from importlib.resources import files
from typing import Any

import numpy as np

from emsco.datasets._table import carried, make_bunch
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import Prices

COST_SENSITIVE = (
    "breast", "car", "diabetes", "flare", "glass", "heart", "iris", "nursery", "soybean", "tictactoe",
)  # fmt: skip
LEVELS = ("low", "middle", "high")

_DESCRIPTION = """\
{name}: {n_rows} rows; {n_tests} tests, each of which yields one or several columns of 0 and 1; {n_classes} classes.
Prices of tests and, in `errors`, of wrong labels (row: true class, column: label), at the level {level!r}.

After one test of a group, the others have a discount. In the published prices its size differs between the members of
some groups; here a group shares the least of them, so no test is cheaper than published.

Source: UCI data sets, discretised and split for the experiments on optimal cost-sensitive trees of STreeD
(AlgTUDelft/pystreed). Prices: S. Lomax, PhD thesis, University of Salford (2013). Licence: CC BY 4.0.
"""


def load_cost_sensitive(name: str, *, level: str = "middle", as_frame: bool = True) -> Any:
    """Load one of ten data sets with prices of tests and prices of errors.

    Parameters
    ----------
    name : str
        One of "breast", "car", "diabetes", "flare", "glass", "heart", "iris", "nursery", "soybean", "tictactoe".
    level : "low", "middle" or "high"
        Of the prices of errors.
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (columns b0, b1, ... of 0 and 1), ``target`` (class indices), ``feature_names``, ``prices`` (of tests,
        with groups), ``errors`` (true class x label), ``splits`` (20 arrays: the rows that test in each published
        split), ``DESCR`` and ``license``.

    Examples
    --------
    >>> car = load_cost_sensitive("car")
    >>> car.data.shape, car.prices.units["safety"], car.errors.shape, len(car.splits)
    ((1728, 21), ['b18', 'b19', 'b20'], (4, 4), 20)
    """
    if name not in COST_SENSITIVE:
        raise InvalidParameterError(f"must be one of {', '.join(COST_SENSITIVE)}; got {name!r}.", parameter="name")
    if level not in LEVELS:
        raise InvalidParameterError(f"must be one of {', '.join(LEVELS)}; got {level!r}.", parameter="level")
    folder = files("emsco.datasets").joinpath("data", "cost-sensitive", name)
    columns, values = carried(f"cost-sensitive/{name}/table.csv.gz")
    target_last = [*columns[1:], columns[0]], np.column_stack([values[:, 1:], values[:, 0]])
    errors, prices = _prices(folder.joinpath(f"costs-{level}.txt").read_text())
    splits = gzip.decompress(folder.joinpath("splits.txt.gz").read_bytes()).decode().splitlines()
    description = _DESCRIPTION.format(
        name=name, n_rows=len(values), n_tests=len(prices.units), n_classes=len(errors), level=level
    )
    bunch = make_bunch(
        target_last[1], target_last[0], prices=prices, description=description, license="CC BY 4.0", as_frame=as_frame
    )
    bunch.errors = errors
    bunch.splits = [np.array(line.split(), dtype=np.int64) for line in splits if line.strip()]
    return bunch


def _prices(text: str) -> tuple[Any, Prices]:
    """Return the prices of errors and of tests: name, price, price within its group, group, first and last column."""
    matrix, _, table = text.partition("Attribute-name")
    errors = np.array([line.split() for line in matrix.splitlines() if line.strip()], dtype=np.float64)
    tests = [line.split() for line in table.splitlines()[1:] if line.strip()]
    groups: dict[str, list[str]] = {}
    for test, _, _, group, _, _ in tests:
        if group != "x":
            groups.setdefault(group, []).append(test)
    price = {test: float(alone) for test, alone, *_ in tests}
    saved = {test: float(alone) - float(later) for test, alone, later, *_ in tests}
    shared = {group: min(saved[test] for test in members) for group, members in groups.items()}
    prices = Prices(
        units={test: [f"b{i}" for i in range(int(first), int(last) + 1)] for test, *_, first, last in tests},
        price=price,
        groups=groups,
        discount={test: round(price[test] - shared[g], 6) for g, members in groups.items() for test in members},
    )
    return errors, prices
