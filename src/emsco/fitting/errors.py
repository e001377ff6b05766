"""Prices of errors of the rows that are fitted, and what buying saves by them."""

import numpy as np

from emsco.deployed.model import Deployed
from emsco.deployed.savings import Saving, savings_of
from emsco.designs.partition import acquired_sets
from emsco.exceptions import InvalidParameterError, InvalidPricesError, shown
from emsco.fitting.aside import SetAside
from emsco.fitting.settings import Settings
from emsco.prices.amounts import amounts_of
from emsco.prices.errors import ErrorPrices, resolve_errors
from emsco.prices.prices import PriceList
from emsco.scoring.judge import Judge
from emsco.search.auto import Auto


def errors_of(settings: Settings, aside: SetAside, prices: PriceList) -> ErrorPrices:
    """Return the prices of errors; where they grow with an amount, its column must be there, and free."""
    errors, table = resolve_errors(settings.errors, aside.classes), aside.table
    if errors.at_risk is None:
        return errors
    name = errors.at_risk.column
    if name not in table.names:
        raise InvalidPricesError(
            f"has a price {name!r}, which is neither a number nor a column of X; columns: {shown(list(table.names))}.",
            parameter="errors",
        )
    if not isinstance(settings.search, Auto):
        raise InvalidParameterError(
            "must be 'auto' or None where prices of errors grow with an amount: the other searches count rows by "
            "class and label.", parameter="search",
        )  # fmt: skip
    position = list(table.names).index(name)
    unit = np.array([position in columns for columns in prices.unit_columns])
    if prices.price_of(unit) > 0:
        raise InvalidPricesError(
            f"depends on the amount {name!r}, which must be known before anything is bought; give it the price 0.",
            parameter="errors",
        )
    amounts = amounts_of(table, position, name)[aside.learn]
    return errors.scaled(float(amounts.mean()), float(amounts.max()))


def savings_of_each(deployed: Deployed, judge: Judge) -> tuple[tuple[Saving, ...], ...]:
    """Return what buying each stage of each point saves on average, by rows that did not train."""
    errors, prices = judge.task.errors, deployed.prices
    assert errors is not None
    return tuple(
        ()  # of branches it is not known
        if any(deployed.branches[i : i + 1])
        else savings_of(judge.answers(design), rule, errors, prices.paid(acquired_sets(design[None])[0][0]))
        for i, (design, rule) in enumerate(zip(deployed.designs, deployed.rules, strict=True))
    )
