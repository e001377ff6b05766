from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco.exceptions import InvalidParameterError
from emsco.scoring.classes import (
    base_rate,
    check_shares,
    never_found,
    precision_of,
    recall_intervals,
    recall_of,
    shares_by_class,
    worst_recall,
)
from emsco.scoring.intervals import binomial_interval

COUNTS = arrays(np.int64, (4, 3, 4), elements=st.integers(0, 5))


@given(COUNTS)
def test_recall_and_precision_are_shares_of_rows_and_labels(confusion):
    recall, precision = recall_of(confusion), precision_of(confusion)
    low, high = recall_intervals(confusion)
    for i, counts in enumerate(confusion):
        for c in range(3):
            n_true, n_given = counts[c].sum(), counts[:, c].sum()
            assert_allclose(recall[i, c], counts[c, c] / n_true if n_true else np.nan)
            assert_allclose(precision[i, c], counts[c, c] / n_given if n_given else np.nan)
            assert_allclose([low[i, c], high[i, c]], binomial_interval(counts[c, c], n_true) if n_true else [0, 1])
            assert never_found(counts)[c] == (recall[i, c] == 0)
        shares = [share for share in recall[i] if not np.isnan(share)]
        assert_allclose(worst_recall(confusion)[i], min(shares, default=np.nan))


def test_a_row_without_a_label_is_not_found():
    assert_array_equal(recall_of([[5, 0, 5], [0, 0, 3]]), [0.5, 0])
    assert_array_equal(precision_of([[5, 0, 5], [0, 0, 3]]), [1, np.nan])


def test_no_classes_have_no_figures():
    assert recall_of(()).size == precision_of(()).size == 0
    assert np.isnan(worst_recall(()))


def test_the_base_rate_names_what_is_missed():
    assert base_rate([1, 3], [0, 1]) == 'Always answering "1": 75.0 % correct, 0 % of "0" found.'
    assert base_rate([4, 3, 3], "abc").endswith('0 % of "b" and "c" found.')
    assert base_rate([4, 2, 2, 2], "abcd").endswith('0 % of "b", "c" and "d" found.')
    assert base_rate([4, 0, 0], "abc") == 'Always answering "a": 100.0 % correct.'


def test_shares_are_by_label_or_its_text():
    assert shares_by_class({"1": 0.5, 0: 0.25}, [0, 1], "min_recall") == {1: 0.5, 0: 0.25}
    with pytest.raises(InvalidParameterError, match=r"min_recall names \['ill'\], but the classes are \['sick'\]"):
        shares_by_class({"ill": 0.5}, ["sick"], "min_recall")


@pytest.mark.parametrize("wrong", [1.5, -0.1, "0.5", True, {}, {"a": 2}, {"a": None}, [0.5]])
def test_what_is_no_share_is_an_error(wrong):
    with pytest.raises(InvalidParameterError, match="min_recall"):
        check_shares(wrong, "min_recall")
