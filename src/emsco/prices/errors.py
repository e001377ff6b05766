"""Prices of errors: what a wrong label costs, and what no answer costs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.exceptions import InvalidPricesError, shown
from emsco.prices.amounts import price_in_words, split_prices

NO_ANSWER = "reject"  # the key, or the column of a file, that holds the price of no answer


@dataclass(frozen=True)
class AtRisk:
    """The amount at risk that prices of errors grow with.

    Attributes
    ----------
    column : str
        That holds it.
    fixed, per_unit : tuple of tuple of float
        Prices by true class and answer: fixed + per_unit x amount.
    mean, largest : float
        Of the amounts of the training rows.
    """

    column: str
    fixed: tuple[tuple[float, ...], ...]
    per_unit: tuple[tuple[float, ...], ...]
    mean: float = 1.0
    largest: float = 1.0

    def at(self, amount: float) -> FloatArray:
        """Return the prices of an amount, by true class and answer."""
        return np.asarray(np.array(self.fixed) + amount * np.array(self.per_unit))


@dataclass(frozen=True)
class ErrorPrices:
    """What each label costs, by true class; created by ``resolve_errors``.

    Attributes
    ----------
    matrix : tuple of tuple of float
        One row per true class, one column per label.
    no_answer : tuple of float or None
        Price of no answer, by true class. None: every case gets a label.
    at_risk : AtRisk or None
        If prices grow with an amount, how; ``matrix`` and ``no_answer`` are then those of the mean amount.
    amounts : ndarray of shape (n_rows,) or None
        The amounts of the rows that are asked for; made by ``at``.

    Examples
    --------
    >>> errors = resolve_errors([[0, 10], [90, 0]], ["well", "sick"])
    >>> confidence, label = errors.outcomes(np.array([[0.8, 0.2], [0.95, 0.05]]))
    >>> label.tolist()  # 0.2 x 90 is more than 0.8 x 10
    [1, 0]
    >>> errors.expected(confidence).round(2).tolist()
    [8.0, 4.5]
    """

    matrix: tuple[tuple[float, ...], ...]
    no_answer: tuple[float, ...] | None = None
    at_risk: AtRisk | None = None
    amounts: FloatArray | None = field(default=None, compare=False, repr=False)

    def scaled(self, mean: float, largest: float) -> "ErrorPrices":
        """Return the same prices with what the amounts of the training rows are."""
        assert self.at_risk is not None
        at_risk = replace(self.at_risk, mean=float(mean), largest=float(largest))
        return _priced(at_risk.at(at_risk.mean), self.n_classes, at_risk)

    def at(self, amounts: FloatArray | None) -> "ErrorPrices":
        """Return the prices of rows with these amounts."""
        return replace(self, amounts=None if self.at_risk is None else amounts)

    def rows(self, rows: Any) -> "ErrorPrices":
        """Return the prices of some of the rows."""
        return self if self.amounts is None else replace(self, amounts=self.amounts[rows])

    def price(self, truth: Any, answer: Any) -> Any:
        """Return what answers cost, by the true class of each row; rows are along the last axis."""
        if self.amounts is None or self.at_risk is None:
            return self.table[truth, answer]
        fixed, per_unit = np.array(self.at_risk.fixed), np.array(self.at_risk.per_unit)
        return fixed[truth, answer] + self.amounts * per_unit[truth, answer]

    def constant(self, truth: Any) -> float:
        """Return the mean price of the best constant answer."""
        return min(float(np.mean(self.price(truth, answer))) for answer in range(self.n_answers))

    def entries(self) -> list[list[float | str]]:
        """Return the prices as ``resolve_errors`` reads them, no answer last."""
        if self.at_risk is None:
            return self.table.tolist()  # type: ignore[no-any-return]
        pairs = zip(self.at_risk.fixed, self.at_risk.per_unit, strict=True)
        column = self.at_risk.column
        return [[price_in_words(f, p, column) for f, p in zip(*rows, strict=True)] for rows in pairs]

    def _expected(self, probabilities: FloatArray) -> FloatArray:
        """Return the expected price of each answer, (n_rows, n_answers)."""
        if self.amounts is None or self.at_risk is None:
            return probabilities @ self.table
        fixed, per_unit = np.array(self.at_risk.fixed), np.array(self.at_risk.per_unit)
        return np.asarray(probabilities @ fixed + self.amounts[:, None] * (probabilities @ per_unit))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.matrix)

    @property
    def n_answers(self) -> int:
        """Number of ways to end: the labels, and no answer if it has a price."""
        return self.n_classes + (self.no_answer is not None)

    @cached_property
    def table(self) -> FloatArray:
        """Prices by true class and answer, (n_classes, n_answers); no answer comes last."""
        matrix = np.array(self.matrix)
        table = matrix if self.no_answer is None else np.column_stack([matrix, self.no_answer])
        table.setflags(write=False)
        return table

    @cached_property
    def largest(self) -> float:
        """The largest price; where it grows with an amount, that of the largest in training."""
        return float(self.table.max() if self.at_risk is None else self.at_risk.at(self.at_risk.largest).max())

    @cached_property
    def rejected(self) -> FloatArray:
        """What a case without an answer costs, by true class; where that has no price, the dearest label."""
        return np.array(self.matrix).max(axis=1) if self.no_answer is None else np.array(self.no_answer)

    def outcomes(self, probabilities: FloatArray) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return confidence and answer by class probabilities, (n_rows, n_classes).

        The answer is the one of least expected price, the first of equals; ``n_classes`` stands for no answer. The
        confidence is 1 - expected price / largest price: the less an answer is expected to cost, the higher it is.
        """
        prices = self._expected(probabilities)
        answer = prices.argmin(axis=1)
        least = np.take_along_axis(prices, answer[:, None], axis=1)[:, 0]
        return np.clip(1.0 - least / self.largest, 0.0, 1.0), answer

    def guess(self, probabilities: FloatArray) -> NDArray[np.intp]:
        """Return the label of least expected price, whatever no answer costs."""
        return np.asarray(self._expected(probabilities)[:, : self.n_classes].argmin(axis=1))

    def expected(self, confidence: Any) -> Any:
        """Return the expected price that a confidence, or an array of them, stands for."""
        return self.largest * (1.0 - confidence)


def resolve_errors(errors: Any, classes: Sequence[Any] | NDArray[Any]) -> ErrorPrices:
    """Return the prices of errors that a user gave, for these classes.

    Parameters
    ----------
    errors : array-like, mapping or object with ``matrix`` and ``reject``
        A matrix with a row per true class and a column per label; one column more holds the price of no answer. Or a
        mapping of true class to a mapping of label to price, in which ``"reject"`` or None stands for no answer. A
        label that is right costs 0 if it is left out. A price may be text that names a column of the table, such as
        "amount", "0.9 * amount" or "5 + 0.9 * amount": then it grows with the amount at risk of each row.
    classes : sequence
        All labels, in order.

    Raises
    ------
    InvalidPricesError
        It is none of these, a price is missing, negative or not finite, or all prices are 0.
    """
    labels = list(getattr(classes, "tolist", lambda: classes)())
    if (split := split_prices(errors)) is not None:
        fixed, per_unit, column = split
        tables = [_checked(_read(part, labels), labels).tolist() for part in (fixed, per_unit)]
        at_risk = AtRisk(column, tuple(map(tuple, tables[0])), tuple(map(tuple, tables[1])))
        return _priced(at_risk.at(1.0), len(labels), at_risk)
    table = _checked(_read(errors, labels), labels)
    if table[:, : len(labels)].max() == 0:
        raise InvalidPricesError(
            "are all 0, so every label is as good as any other; give the price of at least one error.",
            parameter="errors",
        )
    return _priced(table, len(labels))


def _priced(table: FloatArray, n: int, at_risk: AtRisk | None = None) -> ErrorPrices:
    no_answer = tuple(table[:, n].tolist()) if table.shape[1] > n else None
    return ErrorPrices(tuple(map(tuple, table[:, :n].tolist())), no_answer, at_risk)


def _read(errors: Any, labels: list[Any]) -> FloatArray:
    """Return prices as numbers by true class and answer."""
    table: FloatArray
    if isinstance(errors, Mapping):
        table = _table_of(errors, labels)
    elif hasattr(errors, "matrix") and hasattr(errors, "reject"):
        table = np.column_stack([errors.matrix, errors.reject])
    else:
        try:
            table = np.array(errors, dtype=np.float64)
        except (TypeError, ValueError):
            raise _refused(f"got {shown(errors)}", labels) from None
    return table


def _checked(table: FloatArray, labels: list[Any]) -> FloatArray:
    """Return prices, if there is one for each class and answer."""
    n = len(labels)
    if table.shape not in ((n, n), (n, n + 1)):
        raise _refused(f"got one of shape {table.shape}", labels)
    if not np.isfinite(table).all() or table.min() < 0:
        raise InvalidPricesError(f"must be prices of at least 0; got {table.tolist()}.", parameter="errors")
    return table


def _refused(got: str, labels: list[Any]) -> InvalidPricesError:
    n = len(labels)
    return InvalidPricesError(
        f"must be a matrix with a row per true class and a column per label, {n} x {n} for the classes "
        f"{shown(labels)} ({n} x {n + 1} with a last column for the price of no answer), or a mapping of true class to "
        f"a mapping of label to price; {got}.",
        parameter="errors",
    )


def _table_of(errors: Mapping[Any, Any], labels: list[Any]) -> FloatArray:
    """Return a mapping by labels, or by their text, as a table."""
    by_class = _by_label(errors, labels, "true class")
    rows, answers = [], []
    for label, given in zip(labels, by_class, strict=True):
        if given is None or not isinstance(given, Mapping):
            raise InvalidPricesError(
                f"has no mapping of label to price for the true class {label!r}; got {shown(errors)}.",
                parameter="errors",
            )
        known = {str(other) for other in labels}
        answer = next((key for key in (None, NO_ANSWER) if key in given and str(key) not in known), False)
        prices = _by_label({k: v for k, v in given.items() if k != answer}, labels, "label")
        if (missing := [o for o, p in zip(labels, prices, strict=True) if p is None and o != label]) != []:
            raise InvalidPricesError(
                f"has no price for the labels {shown(missing)} of the true class {label!r}; give each.",
                parameter="errors",
            )
        rows.append([0.0 if price is None else _number(price) for price in prices])
        answers.append(None if answer is False else _number(given[answer]))
    if all(price is None for price in answers):
        return np.array(rows)
    if any(price is None for price in answers):
        raise InvalidPricesError(
            "has a price of no answer for some true classes only; give it for each, or for none.", parameter="errors"
        )
    return np.column_stack([rows, np.array(answers, dtype=np.float64)])


def _by_label(given: Mapping[Any, Any], labels: list[Any], what: str) -> list[Any]:
    """Return the values of a mapping in the order of the labels; None where there is none."""
    left = dict(given)
    values = [left.pop(label if label in left else str(label), None) for label in labels]
    if left:
        raise InvalidPricesError(
            f"names {shown(list(left))} as a {what}, but the classes are {shown(labels)}.", parameter="errors"
        )
    return values


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
