import json

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
import pytest
from scipy.stats import binomtest

from emsco import Evaluation, Evolution, MultiStageClassifier
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
