import builtins

import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco.cascade import Tally
from emsco.exceptions import InvalidParameterError, MissingDependencyError, NoSuchPointError
from emsco.front import FrontPoint, describe, make_front
from emsco.prices import resolve


def front():
    designs = np.array([[0, 0, 0], [1, 0, 2], [1, 0, 1]])
    tally = Tally(
        n_samples=10,
        reached=np.array([[10, 0, 0], [10, 5, 3], [10, 8, 0]]),
        n_conclusive=np.array([0, 9, 6]),
        n_correct=np.array([0, 6, 6]),
        total_ticks=np.array([10, 80, 90]),
        scale=2.0,
        least_price=5.0,
    )
    ties = [np.repeat(row[None], n, axis=0) for row, n in zip(designs, (1, 7, 2), strict=True)]
    return make_front(designs, tally, np.array([1, 7, 2]), ties, resolve([3, 2, 5], ["age", "sex", "blood"]))


def test_points_are_fittest_first():
    f = front()
    assert len(f) == 3
    assert_array_equal(f.designs, [[1, 0, 1], [1, 0, 2], [0, 0, 0]])
    assert_array_equal(f.coverage, [0.6, 0.9, 0])
    assert_array_equal(f.accuracy, [1, 6 / 9, np.nan])
    assert_array_equal(f.mean_cost, [4.5, 4, 0.5])
    assert_array_equal(f.n_ties, [2, 7, 1])
    assert_array_equal(f.ties[1], [[1, 0, 2]] * 7)
    assert_array_equal(f.n_stages, [2, 3, 1])


def test_an_accuracy_of_nothing_is_undefined_to_people():
    assert np.isnan(front()[2].accuracy)


def test_a_point_and_a_slice():
    f = front()
    point = f[0]
    assert isinstance(point, FrontPoint)
    assert (point.coverage, point.mean_cost, point.n_stages) == (0.6, 4.5, 2)
    assert [p.n_ties for p in f] == [2, 7, 1]
    assert [p.n_ties for p in f[1:]] == [7, 1]
    assert [p.n_ties for p in f[f.coverage > 0.5]] == [2, 7]
    assert [p.n_ties for p in f[[2, 0]]] == [1, 2]
    assert f[0] != f[1]
    with pytest.raises(IndexError):
        f[3]


def test_it_cannot_be_changed_by_accident():
    with pytest.raises(ValueError, match="read-only"):
        front().designs[0, 0] = 5


def test_the_frame_says_what_is_bought_when():
    frame = front().to_frame()
    assert list(frame) == [
        "stages", "coverage", "coverage_low", "coverage_high", "accuracy", "accuracy_low", "accuracy_high",
        "mean_cost", "mean_cost_low", "mean_cost_high", "fitness", "ties", "design",
    ]  # fmt: skip
    assert frame["design"].tolist() == ["sex | age, blood", "sex | age | blood", "age, sex, blood"]
    assert describe(np.array([0, 1]), ("a", "b")) == "a | b"


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch):
    original = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(MissingDependencyError, match="pip install"):
        front().to_frame()


def test_printed_it_is_a_table_that_fits_the_line():
    lines = str(front()).splitlines()
    assert lines[1].split("  ")[-1] == "sex | age, blood"
    assert "60 %" in lines[1]
    assert " - " in lines[3]  # an accuracy of nothing
    short = front().to_text(most=1, width=70).splitlines()
    assert short[1].endswith("...")
    assert len(short[1]) == 70
    assert short[2] == "... and 2 more"


def test_repr_gives_the_ranges():
    assert repr(front()) == "<Front of 3 designs: coverage 0 to 0.9, accuracy 0.6667 to 1, mean cost 0.5 to 4.5>"


def test_choosing_takes_the_best_within_the_limits():
    f = front()  # coverage .6, .9, 0; accuracy 1, .67, undefined; cost 4.5, 4, .5
    assert f.choose() == 0
    assert f.choose(best="accuracy") == 0
    assert f.choose(best="coverage") == 1
    assert f.choose(best="cost") == 2
    assert f.choose(best="cost", min_accuracy=0.5) == 1
    assert f.choose(best="cost", min_coverage=0) == 2
    assert f.choose(max_cost=4, best="accuracy") == 1
    assert f.choose(max_cost=4, best="accuracy", min_coverage=0.9) == 1


def test_a_request_that_nothing_satisfies_is_answered_with_the_nearest_miss():
    with pytest.raises(NoSuchPointError, match=r"max_cost = 0.1; the nearest gives way to max_cost = 0.5") as caught:
        front().choose(max_cost=0.1)
    assert isinstance(caught.value, LookupError)
    with pytest.raises(NoSuchPointError, match=r"nearest gives way to max_cost = 4.5 or min_accuracy = 0.6667"):
        front().choose(max_cost=4, min_accuracy=0.9)
    with pytest.raises(NoSuchPointError, match="relax two of them"):
        front().choose(max_cost=0.1, min_coverage=0.95, min_accuracy=0.99)


@pytest.mark.parametrize(
    "wrong",
    [{"max_cost": -1}, {"max_cost": "low"}, {"min_coverage": 90}, {"min_accuracy": np.nan}, {"best": "price"},
     {"min_coverage": True}],
)  # fmt: skip
def test_limits_out_of_range_are_errors(wrong):
    with pytest.raises(InvalidParameterError, match=f"{next(iter(wrong))} must be"):
        front().choose(**wrong)
