import builtins
import dataclasses

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest

from emsco import EMSCOClassifier, Evolution
from emsco.datasets import load_heart_failure
from emsco.designs.branched import Branched, BranchFigures, Route
from emsco.exceptions import InvalidParameterError, MissingDependencyError, NoSuchPointError
from emsco.prices.prices import resolve
from emsco.scoring.front import FrontPoint, make_front
from emsco.scoring.intervals import binomial_interval
from emsco.scoring.rejection import RejectRule
from emsco.scoring.tally import Tally
from emsco.scoring.words import describe
from tests.classifiers import fixed


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


def by_class():
    """The front above with counts by class: of class sick, 2, 1 and 0 of 3 are found."""
    counts = [[[4, 0, 3], [0, 2, 1]], [[5, 2, 0], [1, 1, 1]], [[0, 0, 7], [0, 0, 3]]]
    return dataclasses.replace(front(), classes=("well", "sick"), confusion=np.array(counts))


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


def test_the_frame_has_figures_by_class():
    frame = by_class().to_frame()
    by_label = [name for name in frame if name.endswith(("sick", "sick_low", "sick_high"))]
    assert by_label == ["recall_sick", "recall_sick_low", "recall_sick_high", "precision_sick"]
    assert_allclose(frame["recall_sick"], by_class().recall[:, 1])
    assert_allclose(frame["worst_recall"], by_class().worst_recall)


def test_without_pandas_the_error_says_how_to_get_it(monkeypatch):
    original = builtins.__import__

    def no_pandas(name, *args, **kwargs):
        if name == "pandas":
            raise ImportError(name)
        return original(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_pandas)
    with pytest.raises(MissingDependencyError, match="pip install"):
        front().to_frame()


def test_all_points_are_a_table_that_fits_the_line():
    lines = front().to_text().splitlines()
    assert lines[1].split("  ")[-1] == "sex | age, blood"
    assert "60 %" in lines[1]
    assert " - " in lines[3]  # an accuracy of nothing
    short = front().to_text(most=1, width=70).splitlines()
    assert short[1].endswith("...")
    assert len(short[1]) == 70
    assert short[2] == "... and 2 more"


def test_printed_it_is_the_shortlist():
    assert str(by_class()) == by_class().shortlist().to_text()
    assert "<table" in by_class()._repr_html_()


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
    with pytest.raises(NoSuchPointError, match=r"max_cost = 0.1; set max_cost = 0.5 instead") as caught:
        front().choose(max_cost=0.1)
    assert isinstance(caught.value, LookupError)
    with pytest.raises(NoSuchPointError, match=r"set max_cost = 4.5 or min_accuracy = 0.6666 instead") as caught:
        front().choose(max_cost=4, min_accuracy=0.9)
    assert front().choose(max_cost=4, min_accuracy=caught.value.nearest["min_accuracy"]) == 1
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


def random_front(seed, n_points=12, n_objectives=3):
    """Any points: mutually non-dominated or not, a front does not look."""
    rng = np.random.default_rng(seed)
    n = 40
    reached = np.sort(rng.integers(0, n, size=(n_points, 3)), axis=1)[:, ::-1].copy()
    designs = np.array([[0, 1, 2]] * n_points)
    reached[:, 0] = n
    for i in range(n_points):  # designs of one to three stages
        designs[i] = np.minimum(designs[i], i % 3)
        reached[i, i % 3 + 1 :] = 0
    n_conclusive = rng.integers(0, n + 1, n_points)
    n_correct = rng.integers(0, n_conclusive + 1)
    ticks = reached @ [3, 2, 5] + np.array([[7, 5, 0][i % 3] * reached[i, i % 3] for i in range(n_points)])
    tally = Tally(n, reached, n_conclusive, n_correct, ticks, 1.0, 2.0)
    prices = resolve([3, 2, 5], ["age", "sex", "blood"])
    front = make_front(designs, tally, np.ones(n_points, int), [()] * n_points, prices)
    if n_objectives == 3:
        return front
    keep = [[0, 2], [1, 2], [0, 1]][seed % 3]
    up, names = np.array(front.maximise)[keep].tolist(), [front.objectives[i] for i in keep]
    return dataclasses.replace(front, objectives=tuple(names), maximise=tuple(up), values=front.values[:, keep].copy())


@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.9, 0.95]))
def test_intervals_are_those_of_counts_and_of_costs_paid(seed, level):
    f = random_front(seed)
    for i in range(len(f)):
        n_conclusive = round(f.coverage[i] * 40)
        n_correct = round(np.nan_to_num(f.accuracy[i]) * n_conclusive)
        assert tuple(ends[i] for ends in f.interval("coverage", level)) == binomial_interval(n_conclusive, 40, level)
        assert tuple(ends[i] for ends in f.interval("accuracy", level)) == binomial_interval(
            n_correct, n_conclusive, level
        )
        reached, paid = [*f.reached[i], 0], np.cumsum([[10, 0, 0], [3, 7, 0], [3, 2, 5]][f.n_stages[i] - 1])
        bills = np.repeat(paid, [reached[j] - reached[j + 1] for j in range(3)])
        assert bills.mean() == pytest.approx(f.mean_cost[i])
        margin = {0.5: 0.67449, 0.9: 1.64485, 0.95: 1.95996}[level] * bills.std(ddof=1) / np.sqrt(40)
        low, high = (ends[i] for ends in f.interval("cost", level))
        assert_allclose([low, high], [max(bills.mean() - margin, 0), bills.mean() + margin], rtol=1e-4, atol=1e-9)


def test_an_interval_of_no_labels_says_nothing():
    low, high = front().interval("accuracy")
    assert (low[2], high[2]) == (0, 1)
    for wrong in ({"figure": "speed"}, {"figure": "cost", "level": 95}, {"figure": "cost", "level": True}):
        with pytest.raises(InvalidParameterError, match="must be"):
            front().interval(**wrong)


def test_the_combined_score_adds_what_is_saved():
    f = front()  # everything costs 10
    assert_allclose(f.combined, [0.6 + 1 + 0.55, 0.9 + 6 / 9 + 0.6, 0.95])
    assert f.choose(best="combined") == 1
    assert f.choose(best="combined", min_accuracy=0.9) == 0


def scaled(f):
    """Objectives from 0, the best, to 1, the worst, in plain Python."""
    columns = []
    for values, up in zip(f.values.T, f.maximise, strict=True):
        losses = [-(0 if np.isnan(v) else v) if up else v for v in values]
        low, high = min(losses), max(losses)
        columns.append([(v - low) / (high - low) if high > low else 0.0 for v in losses])
    return list(zip(*columns, strict=True))


@given(st.integers(0, 10**6))
def test_the_knee_of_two_objectives_is_farthest_from_the_line_of_their_best(seed):
    f = random_front(seed, n_points=seed % 12 + 1, n_objectives=2)
    points = scaled(f)
    a = min(points, key=lambda p: (p[0], sum(p)))
    b = min(points, key=lambda p: (p[1], sum(p)))
    length = np.hypot(b[0] - a[0], b[1] - a[1])
    if length < 1e-6:
        return  # one point is best in both: there is no line
    # Twice the area of the triangle over its base; a has the smaller x, so positive is below the line.
    areas = [(b[1] - a[1]) * (p[0] - a[0]) - (b[0] - a[0]) * (p[1] - a[1]) for p in points]
    distances = [area / length for area in areas]
    assert distances[f.knee()] == pytest.approx(max(distances), abs=1e-8)


@given(st.integers(0, 10**6))
def test_the_knee_of_three_objectives_is_farthest_from_the_plane_of_their_best(seed):
    f = random_front(seed)
    points = scaled(f)
    a, b, c = (np.array(min(points, key=lambda p, m=m: (p[m], sum(p)))) for m in range(3))
    normal = np.cross(b - a, c - a)
    if np.linalg.norm(normal) < 1e-6:
        return  # one point is best in two
    normal /= np.linalg.norm(normal) * (-1 if normal.sum() > 0 else 1)
    distances = [normal @ (np.array(p) - a) for p in points]
    assert distances[f.knee()] == pytest.approx(max(distances), abs=1e-8)


def test_a_front_of_one_point_is_its_own_knee():
    assert front()[:1].knee() == 0


def test_a_point_best_in_two_objectives_leaves_a_line():
    f = front()
    values = np.array([[0.9, 0.9, 5.0], [0.8, 0.85, 2.0], [0.1, 0.1, 1.0]])
    assert dataclasses.replace(f, values=values).knee() == 1


@given(st.integers(0, 10**6), st.sampled_from(["accuracy", "coverage", "cost", "combined"]))
def test_one_standard_error_takes_the_simplest_of_those_not_told_apart(seed, best):
    f = random_front(seed)
    chosen = f.choose(best=best, one_standard_error=True)

    def error_of_share(hits, n):
        p = (hits + 1) / (n + 2)
        return np.sqrt(p * (1 - p) / (n + 3))

    def figure_and_error(i):
        n_conclusive = round(f.coverage[i] * 40)
        n_correct = round(np.nan_to_num(f.accuracy[i]) * n_conclusive)
        cost_error = (f.interval("cost")[1][i] - f.mean_cost[i]) / 1.959963984540054
        errors = {
            "coverage": error_of_share(n_conclusive, 40),
            "accuracy": error_of_share(n_correct, n_conclusive),
            "cost": cost_error,
        }
        errors["combined"] = errors["coverage"] + errors["accuracy"] + cost_error / 10
        accuracy = -1 if np.isnan(f.accuracy[i]) else f.accuracy[i]
        figures = {"coverage": f.coverage[i], "accuracy": accuracy, "cost": -f.mean_cost[i], "combined": f.combined[i]}
        return figures[best], errors[best]

    top, top_error = figure_and_error(f.choose(best=best))
    near = []
    for i in range(len(f)):
        value, error = figure_and_error(i)
        if top - value <= np.sqrt(top_error**2 + error**2) + 1e-12:
            near.append((f.n_stages[i], f.mean_cost[i]))
    assert (f.n_stages[chosen], f.mean_cost[chosen]) == min(near)


def test_limits_hold_for_the_simplest_too():
    f = front()
    assert f.choose(best="accuracy", one_standard_error=True, min_accuracy=0.9) == 0
    assert f.choose(best="cost", one_standard_error=True, max_cost=1) == 2
    with pytest.raises(NoSuchPointError, match="set max_cost"):
        f.choose(best="cost", one_standard_error=True, max_cost=0.1)
    with pytest.raises(InvalidParameterError, match="the error of fitness is not known"):
        f.choose(one_standard_error=True)


def test_recall_and_precision_are_by_point_and_class():
    f = by_class()
    assert_allclose(f.recall, [[4 / 7, 2 / 3], [5 / 7, 1 / 3], [0, 0]])
    assert_allclose(f.precision, [[1, 1], [5 / 6, 1 / 3], [np.nan, np.nan]])
    assert_allclose(f.worst_recall, [4 / 7, 1 / 3, 0])
    low, high = f.interval("recall")
    assert (low[0, 1], high[0, 1]) == binomial_interval(2, 3)
    assert_array_equal(f[1:].recall, f.recall[1:])


def test_a_front_of_an_older_file_has_no_figures_by_class():
    f = dataclasses.replace(front(), classes=("well", "sick"))
    assert f.recall.shape == f.precision.shape == f.interval("recall")[0].shape == (3, 2)
    assert np.isnan(f.worst_recall).all()
    with pytest.raises(InvalidParameterError, match="min_recall needs counts by class"):
        f.choose(min_recall=0.5)


def test_points_are_chosen_by_class():
    f = by_class()
    assert f.choose(min_recall=0.5, best="cost") == 0
    assert f.choose(min_recall={"sick": 0.3}, best="cost") == 1
    assert f.choose(min_recall={"well": 0.6}, best="accuracy") == 1
    assert f.choose(min_precision={"sick": 0.3}, best="cost") == 1
    assert f.choose(min_precision=0.9) == 0
    assert f.choose(min_recall=0, best="cost") == 2
    assert f.order(min_recall={"sick": 0.3}, best="cost").tolist() == [1, 0]
    assert f.choose(min_precision=0, best="cost") == 1  # a label that is never given has none


def test_the_nearest_miss_of_a_class_is_offered():
    with pytest.raises(NoSuchPointError, match=r"min_recall\[sick\] = 0.9; set min_recall\[sick\] = 0.6666") as caught:
        by_class().choose(min_recall={"sick": 0.9})
    assert caught.value.with_names({"min_recall": "--min-recall"}).endswith("set --min-recall sick=0.6666 instead.")
    with pytest.raises(NoSuchPointError, match=r"set min_recall = 0.5714 instead"):
        by_class().choose(min_recall=0.9)
    with pytest.raises(NoSuchPointError, match=r"set max_cost = 4.5 or min_recall\[sick\] = 0.3333 instead"):
        by_class().choose(max_cost=4, min_recall={"sick": 0.5})


def test_limits_by_class_that_make_no_sense_are_explained():
    with pytest.raises(InvalidParameterError, match=r"min_recall names \['ill'\]"):
        by_class().choose(min_recall={"ill": 0.5})
    with pytest.raises(InvalidParameterError, match="min_precision must be a share"):
        by_class().choose(min_precision={"sick": 95})


HEART = load_heart_failure()


@pytest.fixture(scope="module")
def fitted():
    search = Evolution(population_size=40, max_generations=6)
    clf = fixed(HEART.prices, search=search, max_stages=3, random_state=0,
                          objectives=["fnr", "cost", "stages", "accuracy"])  # fmt: skip
    return clf.fit(HEART.data, HEART.target)


def test_other_objectives_are_columns_and_can_be_chosen_by(fitted):
    f = fitted.front_
    assert f.objectives == ("fnr", "cost", "stages", "accuracy")
    assert list(f.extra) == ["fnr"]
    assert_array_equal(f.values[:, 1:], np.column_stack([f.mean_cost, f.n_stages, f.accuracy]))
    assert_array_equal(f.to_frame()["fnr"], f.values[:, 0])
    assert "       fnr  buys" in f.to_text()
    assert "(fnr 0" in str(f)
    assert f.values[f.choose(best="fnr"), 0] == f.values[:, 0].min()
    assert f[:3].values.shape == (3, 4)
    assert f[1].values.tolist() == f.values[1].tolist()
    with pytest.raises(ValueError, match="read-only"):
        f.values[0, 0] = 5


@pytest.mark.parametrize(
    ("choose", "point"),
    [
        ("fitness", lambda f: 0),
        ("combined", lambda f: int(f.combined.argmax())),
        ("knee", lambda f: f.knee()),
        ({"one_standard_error": True}, lambda f: f.choose(best="combined", one_standard_error=True)),
        ({"best": "accuracy", "max_cost": 400, "one_standard_error": True},
         lambda f: f.choose(best="accuracy", max_cost=400, one_standard_error=True)),
        ({"best": "fnr"}, lambda f: f.choose(best="fnr")),
        (lambda f: len(f) - 1, lambda f: len(f) - 1),
    ],
)  # fmt: skip
def test_fit_ends_with_the_point_asked_for(fitted, choose, point):
    clf = EMSCOClassifier(**{**fitted.get_params(deep=False), "choose": choose}).fit(HEART.data, HEART.target)
    assert clf.point_ == point(clf.front_)


@pytest.mark.parametrize(
    ("choose", "says"),
    [("best", "choose must be 'no_worse', 'combined', 'fit"), (3, "choose must be"), (["knee"], "choose must be"),
     ({"max_price": 3}, "a point is chosen by max_cost.*got max_price"), ({"best": "fpr"}, "best must be one of"),
     ({"min_coverage": 90}, "min_coverage must be"), ({"best": ["fnr"]}, "best must be one of")],
)  # fmt: skip
def test_choices_that_make_no_sense_are_explained_before_the_search(fitted, choose, says):
    clf = EMSCOClassifier(**{**fitted.get_params(deep=False), "choose": choose})
    with pytest.raises(InvalidParameterError, match=says):
        clf.fit(HEART.data, HEART.target)
    assert not hasattr(clf, "front_")


def test_limits_that_nothing_keeps_leave_the_fittest_in_use(fitted):
    clf = EMSCOClassifier(**{**fitted.get_params(deep=False), "choose": {"max_cost": 0.001}})
    with pytest.raises(NoSuchPointError, match="set max_cost"):
        clf.fit(HEART.data, HEART.target)
    assert clf.point_ == 0
    assert len(clf.decide(HEART.data)) == 299


def branched_front():
    """A front of two chains and one design that branches, with figures by branch."""
    chains = front()
    figures = BranchFigures(
        reached=np.array([[6, 4], [4, 0]]),
        n_conclusive=np.array([5, 4]),
        n_correct=np.array([3, 3]),
        paid=np.array([[3.0, 8.0], [3.0, 3.0]]),
    )
    route = Route("cut", 0, (0,), cuts=(5.5,), n_branches=2)
    rules = (RejectRule(((0.9,), (0.6,))), RejectRule(((0.5,),)))
    branched = Branched(np.array([[0, -1, 1], [0, -1, -1]]), route, rules, ("shared", "shared"), figures)
    designs = chains.designs.copy()
    designs[1] = branched.summary
    return dataclasses.replace(chains, designs=designs, branched=(None, branched, None)), branched


def test_a_front_carries_designs_that_branch():
    mixed, branched = branched_front()
    assert mixed[1].branched is branched
    assert mixed[0].branched is None
    assert mixed.n_stages[1] == 2
    assert mixed[[1, 2]].branched == (branched, None)
    assert mixed[[0, 2]].branched == ()
    assert mixed.to_frame()["branches"].tolist() == [1, 2, 1]
    assert "then by age: [1] blood; [2] nothing more; never sex" in mixed.to_text(width=300)
    assert "then by age: [1] blood" in " ".join(mixed.shortlist().to_text(200).split())


def test_the_interval_of_the_cost_of_a_design_that_branches_is_that_of_its_rows():
    mixed, _ = branched_front()
    paid = np.repeat([3.0, 8.0, 3.0], [2, 4, 4])
    margin = 1.959963984540054 * paid.std(ddof=1) / np.sqrt(10)
    low, high = mixed.interval("cost")
    assert (low[1], high[1]) == pytest.approx((paid.mean() - margin, paid.mean() + margin))
    unknown = dataclasses.replace(mixed, branched=(None, dataclasses.replace(mixed.branched[1], figures=None), None))
    assert np.isnan(unknown.interval("cost")[0]).tolist() == [False, True, False]
