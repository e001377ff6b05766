from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest

from emsco.exceptions import InvalidParameterError
from emsco.scoring.front import Front
from emsco.scoring.shortlist import Pick


def front(coverage, accuracy, mean_cost, **rest):
    """A front with these figures, each point a design of one feature."""
    n = len(coverage)
    coverage, accuracy, mean_cost = (np.asarray(v, dtype=float) for v in (coverage, accuracy, mean_cost))
    return Front(
        designs=np.zeros((n, 1), dtype=np.int64), coverage=coverage, accuracy=accuracy, mean_cost=mean_cost,
        fitness=np.linspace(2, 1, n), n_ties=np.ones(n, dtype=np.int64), ties=((),) * n, feature_names=("age",),
        n_samples=1000, reached=np.full((n, 1), 1000), paid=mean_cost[:, None], total_price=100.0,
        objectives=("coverage", "accuracy", "cost"), maximise=(True, True, False),
        values=np.column_stack([coverage, accuracy, mean_cost]), **rest,
    )  # fmt: skip


def many(n=400, seed=0):
    """A front as searches find them: hundreds of points, most of them alike."""
    rng = np.random.default_rng(seed)
    cost = np.sort(rng.uniform(1, 50, n)).round(2)
    coverage = (0.6 + 0.4 * (cost / 50) ** 0.3 + rng.uniform(-0.02, 0.02, n)).clip(0, 1).round(3)
    accuracy = (0.8 + 0.19 * (cost / 50) ** 0.5 + rng.uniform(-0.01, 0.01, n)).clip(0, 1).round(3)
    return front(coverage, accuracy, cost)


SHARES = st.floats(0, 1).map(lambda x: round(x, 3))


@given(
    st.lists(st.tuples(SHARES, SHARES, st.floats(0, 100).map(lambda x: round(x, 2))), min_size=1, max_size=30),
    st.integers(1, 12), st.booleans(),
)  # fmt: skip
def test_points_are_few_distinct_cheapest_first_and_clearly_different(rows, n, with_use):
    coverage, accuracy, cost = np.array(rows).T
    f = front(coverage, np.where(coverage > 0, accuracy, np.nan), cost)
    in_use = len(f) - 1 if with_use else None
    picked = f.shortlist(n, in_use=in_use)
    points = picked.points
    assert len(set(points)) == len(points) <= n
    assert np.all(np.diff(f.mean_cost[points]) >= 0)
    assert in_use is None or in_use in points
    span = np.ptp(f.mean_cost)
    for i in points:
        for j in points:
            alike = (
                abs(f.coverage[i] - f.coverage[j]) < 0.01
                and abs(np.nan_to_num(f.accuracy[i]) - np.nan_to_num(f.accuracy[j])) < 0.01
                and abs(f.mean_cost[i] - f.mean_cost[j]) < 0.05 * span
            )
            assert i == j or not alike
    assert all(pick.reason[0].isupper() and pick.reason.endswith(".") for pick in picked)
    assert picked.to_text(80)


def test_named_points_are_what_their_names_say():
    f = front([0.9, 1, 0.995, 0.7], [0.8, 0.85, 0.9, 0.99], [1, 30, 10, 12])
    reasons = {pick.point: pick.reason for pick in f.shortlist()}
    assert reasons[0].startswith("The cheapest")
    assert "cheapest that labels at least 99 %" in reasons[2]
    assert "the most coverage" in reasons[1].lower()
    assert "the most accurate" in reasons[3].lower()


def test_a_much_cheaper_point_that_is_nearly_as_good_is_named():
    f = front([1, 1, 1, 1], [0.9, 0.975, 0.978, 0.98], [1, 9, 30, 40])
    reasons = {pick.point: pick.reason for pick in f.shortlist(in_use=3)}
    assert "For 22.5 % of the cost in use, 5 fewer correct labels of 1,000 rows" in reasons[1]
    assert not any("of the cost in use" in pick.reason for pick in f.shortlist())
    assert not any("of the cost in use" in pick.reason for pick in f.shortlist(in_use=1))


def test_the_knee_labels_at_least_half():
    f = front([0.02, 0.04, 0.27, 0.64], [0.81, 0.91, 0.61, 0.73], [0.1, 16.3, 24.5, 28.1])
    assert f.knee() == 0
    assert not any("knee" in pick.reason for pick in f.shortlist())


def test_a_high_accuracy_of_a_few_labels_is_not_the_most_accurate():
    f = front([0.1, 0.8], [1.0, 0.9], [1, 2])
    assert "the most accurate of those that label at least half" in f.shortlist()[1].reason.lower()


def test_the_most_of_a_large_front_is_spread_over_the_costs():
    f = many()
    points = f.shortlist(10).points
    assert 6 <= len(points) <= 10
    assert np.diff(f.mean_cost[points]).max() < 20


def test_the_point_in_use_is_there_and_marked():
    f = many()
    picked = f.shortlist(in_use=200)
    assert 200 in picked.points
    assert picked[picked.points.index(200)].reason.startswith("In use")
    assert "*200" in picked.to_text(100)
    assert "font-weight:bold" in picked._repr_html_()
    assert "* in use" in str(picked)


def test_a_class_that_is_never_found_is_marked_without_colour():
    counts = np.array([[[900, 0, 0], [100, 0, 0]], [[880, 10, 10], [10, 80, 10]]])
    f = replace(front([1, 0.98], [0.9, 0.98], [1, 10]), classes=("well", "sick"), confusion=counts)
    text = f.shortlist().to_text(100)
    assert "0.0 % !" in text
    assert "! a class is never found." in text
    assert "80.0 %" in text
    assert "never found" not in f[1:].shortlist().to_text(100)


def test_differences_of_shares_are_percentage_points():
    cost = [1.0, 10.0, 20.0, 30.0, 40.0]
    f = front([0.6, 0.7, 0.8, 0.9, 1.0], [0.99, 0.98, 0.97, 0.96, 0.9], cost)
    reasons = [pick.reason for pick in f.shortlist() if "more than point" in pick.reason]
    assert "For 10.00 more than point 1: coverage +10.0, accuracy -1.0 percentage points." in reasons
    assert not any("%" in reason for reason in reasons)


def test_it_is_a_frozen_sequence_that_says_how_to_see_the_rest():
    picked = many().shortlist(3)
    assert isinstance(picked[0], Pick)
    assert picked[:2] == picked.picks[:2]
    assert [pick.point for pick in picked] == picked.points
    assert "3 of 400 points; all in front_.to_frame(), and by emsco front --all." in str(picked)
    assert repr(picked).startswith("<Shortlist of 3 of 400 points")
    assert picked.to_frame()["point"].tolist() == picked.points
    with pytest.raises(AttributeError):
        picked[0].point = 1


@pytest.mark.parametrize(
    ("wrong", "says"), [({"n": 0}, "n must be"), ({"n": 1.5}, "n must be"), ({"in_use": 400}, "in_use must be a point")]
)
def test_requests_that_make_no_sense_are_explained(wrong, says):
    with pytest.raises(InvalidParameterError, match=says):
        many().shortlist(**wrong)
