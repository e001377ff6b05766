"""Prices of errors of the rows that are fitted, and what buying saves by them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.deployed.model import Deployed
from emsco.deployed.savings import Saving, savings_of
from emsco.designs.branched import Branched, Route
from emsco.designs.partition import acquired_sets
from emsco.exceptions import InvalidParameterError, InvalidPricesError, shown
from emsco.fitting.aside import SetAside
from emsco.fitting.settings import Settings
from emsco.prices.amounts import amounts_of
from emsco.prices.errors import ErrorPrices, resolve_errors
from emsco.prices.prices import PriceList
from emsco.scoring.forked import Forked
from emsco.scoring.judge import Judge
from emsco.scoring.rejection import RejectRule
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


def savings_of_each(
    deployed: Deployed, judge: Judge, branch_of: Callable[[Route], NDArray[np.intp]]
) -> tuple[tuple[Saving, ...], ...]:
    """Return what buying each stage of each point saves on average, by rows that did not train.

    Of a point that branches, those of the stages of one branch after another. ``branch_of`` gives the branch of each
    row.
    """
    errors, front = judge.task.errors, deployed.front
    assert errors is not None
    assert front is not None
    found = []
    for i, (design, rule) in enumerate(zip(deployed.designs, deployed.rules, strict=True)):
        branched = front.branched[i] if front.branched else None
        if branched is None:
            found.append(_savings(design, rule, judge, errors, deployed.prices))
        else:
            found.append(_savings_by_branch(branched, judge, errors, deployed.prices, branch_of(branched.route)))
    return tuple(found)


def _savings(
    design: IntArray, rule: RejectRule, judge: Judge, errors: ErrorPrices, prices: PriceList, rows: Any = slice(None)
) -> tuple[Saving, ...]:
    """Return what buying each stage of a chain saves these rows."""
    answers, paid = judge.answers(design), prices.paid(acquired_sets(design[None])[0][0])
    mine = replace(
        answers, confidence=answers.confidence[:, rows], label=answers.label[:, rows], truth=answers.truth[rows]
    )
    return savings_of(mine, rule, errors.rows(rows), paid)


def _savings_by_branch(
    branched: Branched, judge: Judge, errors: ErrorPrices, prices: PriceList, branch: NDArray[np.intp]
) -> tuple[Saving, ...]:
    """Return what buying each stage of each branch saves; the root, which all buy, saves the same in each."""
    rows = [np.flatnonzero(branch == b) for b in range(branched.n_branches)]
    each = [
        _savings(row, rule, judge, errors, prices, mine)
        for row, rule, mine in zip(branched.rows, branched.rules, rows, strict=True)
    ]
    paid = [prices.paid(sets[exists]) for sets, exists in zip(*acquired_sets(branched.rows), strict=True)]
    forked = Forked(judge, branched, branch)
    money = errors.price(judge.task.y, forked.answer)
    money = money + np.array([paid[b][stage] for b, stage in zip(branch, forked.stage, strict=True)])
    root = Saving((), (float(errors.constant(judge.task.y) - money.mean()),))
    return tuple(saving for savings in each for saving in (root, *savings[1:]))
