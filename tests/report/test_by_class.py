import numpy as np
import pytest

from emsco.report.by_class import class_tables, told_by_class
from emsco.scoring.intervals import binomial_interval


def test_a_row_has_recall_with_its_interval_and_precision():
    (well, sick) = class_tables([[90, 5, 5], [4, 0, 6]])["by_class"]
    low, high = binomial_interval(90, 100)
    assert well == [0, 100, 90, 0.9, pytest.approx(low, rel=1e-3), pytest.approx(high, rel=1e-3), 0.9574, 5]
    assert sick[:4] == [1, 10, 0, 0.0]
    assert sick[6:] == [0.0, 6]


def test_what_is_undefined_is_none():
    (well, sick) = class_tables([[9, 0, 1], [0, 0, 0]])["by_class"]
    assert well[6] == 1.0
    assert sick == [1, 0, 0, None, 0.0, 1.0, None, 0]


def test_of_many_classes_those_with_the_least_recall_are_told():
    counts = np.diag(np.arange(25))[:, :25]
    counts = np.column_stack([counts, 24 - np.arange(25)])
    tables = class_tables(counts)
    assert tables["confusion"] is None
    assert [row[0] for row in tables["by_class"]] == list(range(20))


def test_tables_of_too_many_points_are_those_of_the_list():
    assert told_by_class(100, 3, [7]) == set(range(100))
    assert told_by_class(1000, 20, [7, 9]) == {7, 9}
    assert class_tables(None) == {"confusion": None, "by_class": None}
