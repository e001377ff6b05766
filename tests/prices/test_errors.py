"""Prices of errors: how they are given, and which answer costs least."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco import Loss
from emsco.exceptions import InvalidPricesError
from emsco.prices.errors import resolve_errors
from emsco.reference import least_price

CLASSES = ["sick", "well"]


def test_a_mapping_is_the_matrix_in_the_order_of_the_classes():
    by_label = resolve_errors({"well": {"sick": 10}, "sick": {"well": 90}}, CLASSES)
    assert by_label == resolve_errors([[0, 90], [10, 0]], CLASSES)
    assert by_label.no_answer is None


@pytest.mark.parametrize(
    "errors",
    [
        [[0, 90, 20], [10, 0, 5]],
        {"sick": {"well": 90, "reject": 20}, "well": {"sick": 10, None: 5}},
        Loss([[0, 90], [10, 0]], reject=[20, 5]),
    ],
)
def test_no_answer_may_have_a_price_by_class(errors):
    assert resolve_errors(errors, CLASSES).no_answer == (20.0, 5.0)


def test_the_answer_is_the_one_that_the_reference_finds():
    rng = np.random.default_rng(0)
    probabilities = rng.dirichlet(np.ones(3), size=200)
    table = rng.integers(0, 50, size=(3, 4))
    errors = resolve_errors(table, [0, 1, 2])
    confidence, answer = errors.outcomes(probabilities)
    by_hand = [least_price(row, table.tolist()) for row in probabilities.tolist()]
    assert_array_equal(answer, [a for _, a in by_hand])
    assert_allclose(errors.expected(confidence), [price for price, _ in by_hand], atol=1e-9)
    labels = [least_price(row, table[:, :3].tolist())[1] for row in probabilities.tolist()]
    assert_array_equal(errors.guess(probabilities), labels)


@pytest.mark.parametrize(
    ("errors", "said"),
    [
        ([[0, 1]], r"2 x 2 for the classes .*got one of shape \(1, 2\)"),
        ("dear", "must be a matrix.*got 'dear'"),
        ([[0, -1], [1, 0]], "prices of at least 0"),
        ([[0, 0], [0, 0]], "are all 0"),
        ({"sick": {"well": 1}}, "no mapping of label to price for the true class 'well'"),
        ({"sick": {}, "well": {"sick": 1}}, r"no price for the labels \['well'\]"),
        ({"sick": {"well": 1}, "well": {"sick": 1}, "dead": {}}, r"names \['dead'\] as a true class"),
        ({"sick": {"well": 1, "reject": 1}, "well": {"sick": 1}}, "for some true classes only"),
    ],
)
def test_bad_prices_are_refused_with_what_was_wanted(errors, said):
    with pytest.raises(InvalidPricesError, match=f"(?s)errors.*{said}"):
        resolve_errors(errors, CLASSES)
