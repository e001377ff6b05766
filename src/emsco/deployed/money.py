"""Money per case on labelled rows, where errors have prices: tests, errors and no answers."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.markup import Sheet
from emsco.prices.errors import ErrorPrices
from emsco.scoring.intervals import check_level, mean_and_error

if TYPE_CHECKING:
    from emsco.deployed.evaluation import Evaluation, Result


@dataclass(frozen=True)
class Money:
    """What a case costs on average.

    Attributes
    ----------
    tests, errors, no_answers : float
        Mean price of what was bought, of wrong labels, and of cases without an answer.
    low, high : float
        Ends of a 95 % confidence interval of the total. It is normal, and rather too wide: the standard error of the
        sum is bounded by the sum of those of tests and errors.

    Examples
    --------
    >>> Money(tests=3.0, errors=0.9, no_answers=0.0, low=3.1, high=4.7).total
    3.9
    """

    tests: float
    errors: float
    no_answers: float
    low: float
    high: float

    @property
    def total(self) -> float:
        """Tests, errors and no answers together."""
        return self.tests + self.errors + self.no_answers

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, as JSON has them."""
        parts = {"tests": self.tests, "errors": self.errors, "no_answers": self.no_answers}
        return {"total": self.total, "interval_95": [self.low, self.high], **parts}


Sums = tuple[Any, Any]  # of amounts and of their squares, by true class and label


def money_of(
    confusion: Any,
    errors: ErrorPrices,
    left: Any = None,
    paid: Any = None,
    *,
    sums: Sums | None = None,
    level: float = 0.95,
) -> Money:
    """Return the money per case of counts.

    Parameters
    ----------
    confusion : array-like of shape (n_classes, n_classes + 1)
        Rows of each true class by label; last, those without one.
    errors : ErrorPrices
    left, paid : array-like of shape (n_stages,)
        Rows that leave at each stage, and what they have paid by then. None: nothing is bought.
    sums : pair of array-like of shape (n_classes, n_classes + 1), or None
        Where prices grow with an amount, the amounts of these rows, and their squares.
    level : float
        Confidence level of the interval.
    """
    from scipy.stats import norm

    check_level(level)
    counts = np.asarray(confusion, dtype=np.int64)
    prices = np.column_stack([errors.matrix, errors.rejected])
    n_rows = counts.sum()
    lost, error = mean_and_error(counts.reshape(1, -1), prices.reshape(1, -1))
    by_cell = counts * prices
    if errors.at_risk is not None and sums is not None:
        by_cell, square = _by_amount(errors, counts, *(np.asarray(part, dtype=np.float64) for part in sums))
        lost = np.array([by_cell.sum() / n_rows])
        error = np.sqrt(np.maximum(square / n_rows - lost**2, 0.0) / n_rows)
    tests, spread = (np.zeros(1), np.zeros(1))
    if left is not None:
        tests, spread = mean_and_error(np.asarray(left)[None], np.asarray(paid)[None])
    no_answers = float(by_cell[:, -1].sum() / n_rows)
    total, margin = float((tests + lost)[0]), float(norm.ppf((1 + level) / 2) * (error + spread)[0])
    parts = float(tests[0]), float(by_cell[:, :-1].sum() / n_rows), no_answers
    return Money(*parts, max(total - margin, 0.0), total + margin)


def _by_amount(
    errors: ErrorPrices, counts: NDArray[np.int64], amounts: FloatArray, squares: FloatArray
) -> tuple[FloatArray, float]:
    """Return the price of the rows of each true class and label, and the sum of the squares of all prices."""
    assert errors.at_risk is not None
    fixed, per_unit = np.array(errors.at_risk.fixed), np.array(errors.at_risk.per_unit)
    if errors.no_answer is None:  # then all rows have a label
        fixed, per_unit = (np.column_stack([part, part.max(axis=1)]) for part in (fixed, per_unit))
    square = fixed**2 * counts + 2 * fixed * per_unit * amounts + per_unit**2 * squares
    return fixed * counts + per_unit * amounts, float(square.sum())


def result_money(result: "Result", errors: ErrorPrices) -> Money:
    """Return the money per case of a result."""
    return money_of(result.confusion, errors, result.left, result.paid, sums=_sums(result))


def _sums(result: "Result") -> Sums | None:
    return None if result.amounts is None or result.squares is None else (result.amounts, result.squares)


def always_money(counts: NDArray[np.int64], errors: ErrorPrices, label: int, sums: Sums | None = None) -> Money:
    """Return the money per case if nothing is bought and everybody gets the same label.

    ``sums`` are amounts and squares by true class, if prices depend on them.
    """

    def alone(by_class: Any) -> FloatArray:
        cells = np.zeros((errors.n_classes, errors.n_classes + 1))
        cells[:, label] = by_class
        return cells

    return money_of(alone(counts), errors, sums=None if sums is None else (alone(sums[0]), alone(sums[1])))


def best_constant(counts: NDArray[np.int64], errors: ErrorPrices, sums: Sums | None = None) -> int:
    """Return the label that costs least if everybody gets it."""
    return int(np.argmin([always_money(counts, errors, label, sums).total for label in range(errors.n_classes)]))


def compared_money(evaluation: "Evaluation") -> dict[str, Money]:
    """Return the money per case of the point in use, beside buying everything and buying nothing."""
    errors = evaluation.errors
    assert errors is not None
    counts, sums = np.array(evaluation.everything.confusion).sum(axis=1), _sums(evaluation.everything)
    if sums is not None:
        sums = np.sum(sums[0], axis=1), np.sum(sums[1], axis=1)
    best = best_constant(counts, errors, sums)
    money = {
        "the design in use": result_money(evaluation.in_use, errors),
        "buy everything": result_money(evaluation.always, errors),
        f'buy nothing, always "{evaluation.classes[best]}"': always_money(counts, errors, best, sums),
    }
    if len(evaluation.classes) == 2:
        other = f'buy nothing, always "{evaluation.classes[1 - best]}"'
        money[other] = always_money(counts, errors, 1 - best, sums)
    return money


def money_sheet(money: dict[str, Money], n_rows: int) -> Sheet:
    """Return money per case as a table."""
    rows = tuple(
        (
            name,
            f"{m.total:,.2f} ({m.low:,.2f}-{m.high:,.2f})",
            *(f"{v:,.2f}" for v in (m.tests, m.errors, m.no_answers)),
        )
        for name, m in money.items()
    )
    head = (f"money per case, {n_rows:,} rows", "total", "tests", "errors", "no answers")
    return Sheet(head, rows, (0,), (0,), ("Brackets: 95 % confidence intervals, rather too wide.",))
