"""Prices that name the column of an amount."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco.data.table import Table
from emsco.exceptions import InvalidInputError, InvalidPricesError
from emsco.prices.amounts import amounts_of, split_prices
from emsco.prices.errors import resolve_errors


@pytest.mark.parametrize(
    ("price", "fixed", "per_unit"),
    [("amount", 0, 1), ("0.9*amount", 0, 0.9), ("5 + amount", 5, 1), (" 2.5+1e-2 * amount ", 2.5, 0.01)],
)
def test_a_price_may_name_a_column(price, fixed, per_unit):
    errors = resolve_errors([[0, 5], [price, 0]], [0, 1])
    assert errors.at_risk.column == "amount"
    assert errors.at_risk.fixed == ((0, 5), (fixed, 0))
    assert errors.at_risk.per_unit == ((0, 0), (per_unit, 0))
    again = resolve_errors(errors.entries(), [0, 1])
    assert again == errors


def test_a_mapping_with_no_answer_may_name_a_column():
    errors = resolve_errors({"a": {"b": 5, "reject": 2}, "b": {"a": "amount", "reject": "0.1 * amount"}}, ["a", "b"])
    rows = errors.scaled(10, 100).at(np.array([1.0, 40.0]))
    assert rows.largest == 100
    assert_allclose(rows.price(np.array([1, 1]), np.array([0, 2])), [1, 4])
    assert_allclose(errors.scaled(10, 100).matrix, [[0, 5], [10, 0]])
    assert_allclose(errors.scaled(10, 100).no_answer, [2, 1])


def test_the_answer_of_least_expected_price_depends_on_the_amount():
    errors = resolve_errors([[0, 5], ["amount", 0]], [0, 1]).scaled(20, 100)
    probabilities = np.array([[0.9, 0.1]] * 3)
    rows = errors.at(np.array([10.0, 44.0, 90.0]))
    confidence, answer = rows.outcomes(probabilities)
    assert_array_equal(answer, [0, 0, 1])  # 0.1 x amount against 0.9 x 5
    assert_allclose(rows.expected(confidence), [1.0, 4.4, 4.5])
    assert_allclose(rows.rows([2]).outcomes(probabilities[:1])[0], confidence[2:])


def test_numbers_as_text_name_no_column():
    assert split_prices([[0, "5"], ["1e3", 0]]) is None


def test_prices_of_two_columns_are_refused():
    with pytest.raises(InvalidPricesError, match="must name the same one"):
        resolve_errors([[0, "fee"], ["amount", 0]], [0, 1])


@pytest.mark.parametrize("wrong", [-1.0, np.nan, np.inf])
def test_amounts_that_are_no_amounts_are_refused(wrong):
    with pytest.raises(InvalidInputError, match=r"numbers of at least 0, none missing.*in row 1"):
        amounts_of(Table(np.array([[1.0], [wrong]])), 0, "x0")
