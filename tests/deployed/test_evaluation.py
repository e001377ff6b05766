import json

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.tree import DecisionTreeClassifier

from emsco import EMSCOClassifier, Evaluation, Evolution, MultiStageClassifier, load
from emsco.datasets import load_heart_failure
from emsco.deployed.evaluation import Result
from emsco.exceptions import InvalidInputError, InvalidTargetError
from emsco.scoring.intervals import binomial_interval
from tests.classifiers import fixed

HEART = load_heart_failure()
SEARCH = Evolution(population_size=30, max_generations=3)


@pytest.fixture(scope="module")
def fitted():
    return fixed(HEART.prices, search=SEARCH, random_state=0).fit(HEART.data[:200], HEART.target[:200])


def test_results_are_those_of_deciding_with_each_point(fitted):
    X, y = HEART.data[200:], HEART.target[200:].to_numpy()
    evaluation = fitted.evaluate(X, y)
    assert len(evaluation.points) == len(fitted.front_)
    for i, result in enumerate(evaluation.points):
        d = fitted.use(i).decide(X)
        right = d.conclusive & (d.label.data == y)
        assert result.n_rows == evaluation.n_rows == 99
        assert result.coverage == d.conclusive.mean()
        assert sum(result.right) == right.sum()
        assert result.mean_cost == pytest.approx(d.cost.mean())
        assert [sum(row) for row in result.confusion] == np.bincount(y).tolist()
        assert result.confusion[0][0] + result.confusion[1][1] == right.sum()
        assert sum(row[2] for row in result.confusion) == result.n_rejected
        assert [sum(d.stage == j) for j in range(len(result.paid))] == list(result.left)


def test_buying_everything_is_the_one_stage_design(fitted):
    X, y = HEART.data[200:], HEART.target[200:]
    evaluation = fitted.evaluate(X, y)
    assert evaluation.everything.mean_cost == evaluation.always.mean_cost == 750
    assert evaluation.always.coverage == 1
    assert evaluation.everything.coverage < 1
    whole = MultiStageClassifier(costs=HEART.prices).fit(HEART.data, HEART.target).evaluate(X, y)
    assert whole.points == (whole.everything,)


def test_it_survives_json(fitted):
    evaluation = fitted.evaluate(HEART.data[200:], HEART.target[200:])
    assert Evaluation.from_dict(json.loads(json.dumps(evaluation.to_dict())), evaluation.classes) == evaluation


def test_labels_that_cannot_judge_are_errors(fitted):
    with pytest.raises(InvalidTargetError, match="y holds 7 in 3 rows, but the classes trained are"):
        fitted.evaluate(HEART.data[:5], [0, 1, 7, 7, 7])
    with pytest.raises(InvalidTargetError, match="one label per row"):
        fitted.evaluate(HEART.data[:5], [0, 1])
    with pytest.raises(InvalidInputError, match="no rows"):
        fitted.evaluate(HEART.data[:0], HEART.target[:0])


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.8, 0.95, 0.99]))
def test_intervals_of_shares_are_scipys(n_hits, n, level):
    n_hits = min(n_hits, n)
    expected = binomtest(n_hits, n).proportion_ci(level, method="exact")
    assert binomial_interval(n_hits, n, level) == pytest.approx((expected.low, expected.high))


def test_intervals_of_a_result():
    result = Result(answered=(50, 20), right=(45, 20), n_rejected=30, paid=(1.0, 11.0), confusion=())
    assert result.mean_cost == 6
    low, high = result.interval("mean_cost")
    assert (low + high) / 2 == pytest.approx(6)
    assert high - low == pytest.approx(2 * 1.95996 * np.std([1] * 50 + [11] * 50, ddof=1) / 10, rel=1e-4)
    assert result.interval("coverage")[0] < 0.7 < result.interval("coverage")[1]
    assert result.interval("accuracy")[0] < 65 / 70 < result.interval("accuracy")[1]
    silent = Result(answered=(0,), right=(0,), n_rejected=5, paid=(1.0,), confusion=())
    assert np.isnan(silent.accuracy)
    assert silent.interval("accuracy") == (0, 1)


def held_out():
    return HEART.data[200:], HEART.target[200:].to_numpy()


def test_recall_counts_rejected_rows_as_not_found():
    result = Result((6, 2), (5, 2), 2, (1.0, 3.0), ((4, 1, 1), (0, 3, 1)))
    assert result.recall.tolist() == [4 / 6, 3 / 4]
    assert result.precision.tolist() == [1, 3 / 4]
    assert result.worst_recall == 4 / 6
    low, high = result.recall_interval()
    assert (low[1], high[1]) == binomial_interval(3, 4)


def test_printed_it_is_a_short_table_with_everything_and_the_base_rate(fitted):
    evaluation = fitted.evaluate(*held_out())
    text = evaluation.to_text(80)
    assert str(evaluation) == evaluation.to_text()
    assert max(map(len, text.splitlines())) <= 80
    assert len(text) < 3000
    assert f"point {fitted.point_}, in use" in text
    assert "buy everything" in text
    assert 'Always answering "' in text
    assert len(repr(evaluation)) < 200
    html = evaluation._repr_html_()
    assert html.count("<table") == 2
    assert f"point {fitted.point_}, in use" in html


def test_the_frame_has_a_row_per_point_with_intervals(fitted):
    evaluation = fitted.evaluate(*held_out())
    frame = evaluation.to_frame()
    assert len(frame) == len(evaluation.points)
    assert frame.index[frame["in_use"]].tolist() == [fitted.point_]
    for i, result in enumerate(evaluation.points):
        assert frame["mean_cost"][i] == result.mean_cost
        assert (frame["coverage_low"][i], frame["coverage_high"][i]) == result.interval("coverage")
        assert frame["recall_1"][i] == result.recall[1]
        assert frame["recall_1_high"][i] == result.recall_interval()[1][1]


def test_points_for_budgets_are_chosen_by_the_validation_rows(fitted):
    evaluation, front = fitted.evaluate(*held_out()), fitted.front_
    budgets = [0.0, float(np.median(front.mean_cost)), 1000.0]
    frame = evaluation.at_cost(budgets, min_coverage=0.5)
    assert frame["budget"].tolist() == budgets
    assert frame["point"].isna().tolist() == [True, False, False]
    assert np.isnan(frame["accuracy"][0])
    for row in (1, 2):
        point = int(frame["point"][row])
        within = (front.mean_cost <= budgets[row]) & (front.coverage >= 0.5)
        if within.any():
            assert front.accuracy[point] == np.nanmax(front.accuracy[within])
        assert frame["accuracy"][row] == evaluation.points[point].accuracy
        assert frame["validation_cost"][row] == front.mean_cost[point] <= budgets[row]


def test_without_enough_coverage_a_budget_gets_the_most_there_is(fitted):
    front = fitted.front_
    budget = float(front.mean_cost[front.coverage < 1].min())
    point = int(fitted.evaluate(*held_out()).at_cost([budget], min_coverage=1.0)["point"][0])
    affordable = front.mean_cost <= budget
    assert front.coverage[point] == front.coverage[affordable].max()


def test_a_given_design_has_no_points_to_choose_from():
    evaluation = MultiStageClassifier(costs=HEART.prices).fit(HEART.data, HEART.target).evaluate(*held_out())
    with pytest.raises(InvalidInputError, match="no front"):
        evaluation.at_cost([5])
    assert "point 0, in use" in str(evaluation)
    assert len(evaluation.to_frame()) == 1


def test_a_saved_evaluation_knows_the_front_again(fitted, tmp_path):
    evaluation = fitted.evaluate(*held_out())
    fitted.save(tmp_path / "m.emsco", evaluation=evaluation)
    again = load(tmp_path / "m.emsco")
    assert again.evaluation_ == evaluation
    assert again.evaluation_.front is again.front_
    assert str(again.evaluation_) == str(evaluation)
    assert "front" not in evaluation.to_dict()
    other = (again.point_ + 1) % len(again.front_)
    assert again.use(other).evaluation_.point == other


def test_points_that_share_classifiers_are_evaluated_as_decide_decides(monkeypatch):
    asked = []
    predict_proba = DecisionTreeClassifier.predict_proba
    monkeypatch.setattr(
        DecisionTreeClassifier, "predict_proba", lambda self, X: asked.append(len(X)) or predict_proba(self, X)
    )
    search = Evolution(population_size=20, max_generations=2)
    tree = DecisionTreeClassifier(max_depth=3, min_samples_leaf=10)
    clf = EMSCOClassifier(HEART.prices, estimator=tree, search=search, validation=0.3, random_state=0)
    clf.fit(HEART.data, HEART.target)
    X, y = held_out()
    asked.clear()
    evaluation = clf.evaluate(X, y)
    n_asked = len(asked)
    for i, point in enumerate(evaluation.points):
        decisions = clf.use(i).decide(X)
        assert point.mean_cost == pytest.approx(decisions.cost.mean())
        assert point.coverage == decisions.conclusive.mean()
        assert sum(point.right) == (decisions.conclusive & (decisions.label.data == np.asarray(y))).sum()
    assert n_asked <= len(clf.deployed_.models) < len(asked) - n_asked
