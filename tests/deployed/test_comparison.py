import json

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose
import pytest
from scipy.stats import ttest_rel

from emsco import Evaluation, MultiStageClassifier
from emsco.datasets import load_heart_failure
from emsco.deployed import comparison
from emsco.deployed.comparison import compare
from emsco.exceptions import InvalidInputError, InvalidTargetError

HEART = load_heart_failure()
X, Y = HEART.data, HEART.target
LEARN, TEST = slice(None, None, 2), slice(1, None, 2)
CHEAP = [["age", "sex"], ["platelets"]]
GOOD = [["ejection_fraction", "serum_creatinine"], ["age"]]


def model(design, **settings):
    return MultiStageClassifier(design, HEART.prices, **settings).fit(X[LEARN], Y[LEARN])


@pytest.fixture(scope="module")
def compared():
    return compare(model(CHEAP), model(GOOD), X[TEST], Y[TEST], names=("cheap", "good"))


def test_the_figures_are_those_of_evaluate(compared):
    for clf, which in ((model(CHEAP), "first"), (model(GOOD), "second")):
        evaluation: Evaluation = clf.evaluate(X[TEST], Y[TEST])
        result = evaluation.points[0]
        coverage, accuracy, cost, *recalls = (getattr(f, which) for f in compared.figures)
        assert (coverage, accuracy) == (result.coverage, result.accuracy)
        assert cost == pytest.approx(result.mean_cost)
        assert recalls == [row[c] / sum(row) for c, row in enumerate(result.confusion)]
    assert [f.label for f in compared.figures] == [None, None, None, 0, 1]
    assert sum(f.n_rows for f in compared.figures[3:]) == compared.n_rows == 149


def test_a_model_equals_itself():
    clf = model(GOOD)
    same = compare(clf, clf.deployed_, X[TEST], Y[TEST])
    assert {f.difference for f in same.figures} == {0.0}
    assert all(f.higher is None for f in same.figures)
    assert same.n_same == same.n_rows
    assert same.verdicts()[2] == "mean cost: the same on every row."
    assert "cannot tell" in same.verdicts()[0]


def test_swapping_the_models_swaps_the_signs(compared):
    other = compare(model(GOOD), model(CHEAP), X[TEST], Y[TEST])
    for f, g in zip(compared.figures, other.figures, strict=True):
        assert_allclose((f.difference, f.low, f.high), (-g.difference, -g.high, -g.low), atol=1e-12)


def test_the_cost_has_the_interval_of_a_paired_t_test(compared):
    cost = compared.figures[2]
    costs = [model(design).decide(X[TEST]).cost for design in (CHEAP, GOOD)]
    expected = ttest_rel(costs[1], costs[0]).confidence_interval(0.95)
    assert_allclose((cost.low, cost.high), tuple(expected))
    assert cost.higher == (1 if cost.low > 0 else 0)


bits = st.lists(st.booleans(), min_size=30, max_size=30).map(np.array)


@given(bits, bits)
def test_shares_have_the_interval_of_bonett_and_price(first, second):
    n, only_first, only_second = first.size, (first & ~second).sum(), (second & ~first).sum()
    p, q = (only_first + 1) / (n + 2), (only_second + 1) / (n + 2)
    margin = 1.959964 * np.sqrt((p + q - (q - p) ** 2) / (n + 2))
    found = comparison._share("coverage", None, first, second)
    assert found.difference == pytest.approx(second.mean() - first.mean())
    assert_allclose((found.low, found.high), np.clip((q - p - margin, q - p + margin), -1, 1), atol=1e-6)


@given(bits, bits)
def test_the_accuracy_of_models_that_always_answer_is_such_a_share(first, second):
    always = [np.ones(30, dtype=bool)] * 2
    share, accuracy = comparison._share("accuracy", None, first, second), comparison._accuracy(always, [first, second])
    assert_allclose((share.difference, share.low, share.high), (accuracy.difference, accuracy.low, accuracy.high))


@pytest.mark.parametrize("figure", ["accuracy", "coverage"])
def test_intervals_hold_in_95_of_100_samples(figure):
    rng = np.random.default_rng(0)
    n, held, n_trials = 150, 0, 600
    for _ in range(n_trials):
        hard = rng.random(n)  # a row that is hard for one model is hard for the other
        given = [hard < 0.9, hard + 0.1 * rng.random(n) < 0.8]
        right = [rows & (rng.random(n) < 0.95 - 0.2 * hard) for rows in given]
        found = comparison._accuracy(given, right) if figure == "accuracy" else comparison._share("", None, *given)
        held += found.low <= TRUTH[figure] <= found.high
    assert held / n_trials > 0.92


def truth():
    rng = np.random.default_rng(1)
    hard = rng.random(1_000_000)
    given = [hard < 0.9, hard + 0.1 * rng.random(hard.size) < 0.8]
    accuracy = [np.mean(0.95 - 0.2 * hard[rows]) for rows in given]
    return {"accuracy": accuracy[1] - accuracy[0], "coverage": given[1].mean() - given[0].mean()}


TRUTH = truth()


def test_a_model_without_labels_has_no_accuracy_to_compare():
    mute = compare(model(GOOD, threshold=1.0), model(GOOD), X[TEST], Y[TEST])
    accuracy = mute.figures[1]
    assert np.isnan(accuracy.difference)
    assert np.isnan(accuracy.first)
    assert accuracy.second > 0.5
    assert accuracy.higher is None
    assert mute.verdicts()[:2] == ["coverage: second is higher.", "accuracy: cannot be compared."]
    assert " - " in str(mute)


def test_a_class_without_rows_and_a_single_row_can_be_shown():
    one = compare(model(CHEAP), model(GOOD), X[1:2], Y[1:2])
    assert one.figures[2].high == np.inf
    assert {f.n_rows for f in one.figures[3:]} == {0, 1}
    assert "cannot be compared" in str(one)


def test_it_prints_frames_and_survives_json(compared):
    text = str(compared)
    assert text.startswith("149 rows; both say the same of ")
    assert "recall of 1" in text
    frame = compared.to_frame()
    assert frame.index.tolist() == ["coverage", "accuracy", "mean cost", "recall of 0", "recall of 1"]
    assert frame.loc["mean cost", "good"] == compared.figures[2].second
    record = json.loads(json.dumps(compared.to_dict()))
    assert record["verdicts"] == compared.verdicts()
    assert record["figures"][0]["difference"] == compared.figures[0].difference
    assert compared.remarks == ()


def test_other_prices_are_remarked():
    dear = MultiStageClassifier(GOOD, {**HEART.prices, "age": 5.0}).fit(X, Y)
    (remark,) = compare(model(GOOD), dear, X, Y).remarks
    assert "different prices of age" in remark


def test_models_and_rows_that_cannot_be_compared_are_errors():
    words = MultiStageClassifier(GOOD, HEART.prices).fit(X, np.where(Y == 1, "died", "lived"))
    with pytest.raises(InvalidInputError, match="same classes"):
        compare(model(GOOD), words, X, Y)
    with pytest.raises(InvalidTargetError, match="holds 7"):
        compare(model(GOOD), model(CHEAP), X, np.full(len(Y), 7))
    with pytest.raises(InvalidInputError, match="'platelets'"):
        compare(model(GOOD), model(CHEAP), X.drop(columns="platelets"), Y)
