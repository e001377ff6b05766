"""One purse: designs and bars of least money, from fit to decisions, sessions and files."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

import emsco
from emsco import EMSCOClassifier, Exact
from emsco.datasets import load_cost_sensitive
from emsco.deployed.session import Accept, Acquire, Reject
from emsco.exceptions import InvalidInputError, InvalidParameterError, InvalidPricesError
from emsco.fitting._money import least_money

ERRORS = {"well": {"sick": 10}, "sick": {"well": 90}}


def _example():
    """A smear at 1 and a culture at 5; 60 rows with a clear smear, one of them sick, and 40 others, 16 of them sick."""
    smear = np.repeat([0.0, 1.0], [60, 40])
    sick = np.zeros(100, dtype=bool)
    sick[[0, *range(60, 76)]] = True
    return np.column_stack([smear, sick.astype(float)]), np.where(sick, "sick", "well")


@pytest.fixture(scope="module")
def worked():
    X, y = _example()
    clf = EMSCOClassifier([1, 5], errors=ERRORS, estimator=DecisionTreeClassifier(random_state=0), random_state=0)
    return clf.fit(X, y, X, y)


def test_the_worked_example_comes_out_as_by_hand(worked):
    # Smear clear: "well" costs 1/60 x 90 = 1.5. Otherwise "sick" costs 24/40 x 10 = 6, so the culture at 5 is bought.
    assert_array_equal(worked.design_, [0, 1])
    assert_allclose(worked.front_.mean_cost[worked.point_], 1 + 0.4 * 5)
    assert_allclose(worked.front_.total[worked.point_], 1 + 0.4 * 5 + 0.01 * 90)
    X, y = _example()
    decided = worked.decide(X)
    paid = np.where(X[:, 0] == 0, 1.0, 6.0)
    assert_array_equal(decided.cost, paid)
    assert_array_equal(decided.label[60:], y[60:])
    assert (decided.label[:60] == "well").all()


def test_a_session_of_the_worked_example_buys_what_decide_buys(worked):
    clear = worked.session()
    clear.give({"x0": 0})
    assert clear.step().label == "well"
    other = worked.session()
    other.give({"x0": 1})
    assert isinstance(other.step(), Acquire)
    other.give({"x1": 1})
    assert other.step() == Accept("sick", 1.0, 6.0, 1)


def test_a_session_says_what_buying_saves(worked, tmp_path):
    first = worked.session().step()
    assert_allclose(first.saves, 8.3 - 3.9)  # always "sick" costs 8.3, the design 3.9
    worked.save(tmp_path / "model.emsco")
    for model in (worked, emsco.load(tmp_path / "model.emsco")):
        session = model.session()
        assert session.step() == first
        session.give({"x0": 1})
        assert_allclose(session.step().saves, 6 - 5)  # "sick" costs 6 on average, the culture costs 5 and is right
        assert "saves=1" in repr(session.step())
        assert "saves on average" in session._repr_html_()
        again = model.session(session.state)
        assert again.step() == session.step()


def test_without_prices_of_errors_nothing_is_said_of_savings():
    X, y = _example()
    request = EMSCOClassifier([1, 5], random_state=0).fit(X, y).session().step()
    assert request.saves is None
    assert "saves" not in repr(request)


def test_sessions_and_a_file_decide_as_the_classifier_does(tmp_path):
    data = load_cost_sensitive("heart", level="high")
    X, y = data.data, data.target.to_numpy()
    clf = EMSCOClassifier(data.prices, errors=data.errors, random_state=0).fit(X, y)
    clf.save(tmp_path / "model.emsco")
    loaded = emsco.load(tmp_path / "model.emsco")
    decided = clf.decide(X)
    assert decided.conclusive.all()
    for other in (loaded.decide(X), clf.decide(X.iloc[:, ::-1])):
        assert_array_equal(other.label, decided.label)
        assert_array_equal(other.cost, decided.cost)
        assert_array_equal(other.confidence, decided.confidence)
    for i in range(0, len(X), 29):
        session = loaded.session()
        session.give(X.iloc[i].to_dict())
        assert session.step() == Accept(decided.label[i], decided.confidence[i], decided.cost[i], decided.stage[i])
    assert_allclose(loaded.front_.total, clf.front_.total)
    assert_array_equal(loaded.predict(X), decided.label)


def test_cheap_errors_make_the_empty_design_best(tmp_path):
    data = load_cost_sensitive("breast", level="low")
    X, y = data.data, data.target.to_numpy()
    clf = EMSCOClassifier(data.prices, errors=data.errors, random_state=0).fit(X, y)
    constant = int(data.errors[y].sum(axis=0).argmin())
    clf.save(tmp_path / "model.emsco")
    for model in (clf, emsco.load(tmp_path / "model.emsco")):
        decided = model.decide(X)
        assert not (model.design_ >= 0).any()
        assert (decided.label == constant).all()
        assert (decided.cost == 0).all()
        assert model.session().step().label == constant
    assert clf.front_.mean_cost[clf.point_] == 0
    assert clf.stages_[0].features == ()


def test_no_answer_is_given_where_it_is_cheapest():
    X, y = _example()
    errors = {true: {**prices, "reject": 4.5} for true, prices in ERRORS.items()}
    tree = DecisionTreeClassifier(random_state=0)
    clf = EMSCOClassifier([1, 5], errors=errors, estimator=tree, random_state=0).fit(X, y, X, y)
    decided = clf.decide(X)
    assert_array_equal(decided.conclusive, X[:, 0] == 0)  # 6 for a label, 5 for the culture, 4.5 for no answer
    assert_array_equal(decided.cost, np.ones(100))
    assert_allclose(clf.front_.total[clf.point_], 1 + 0.9 + 0.4 * 4.5)
    session = clf.session()
    session.give({"x0": 1})
    assert session.step() == Reject(decided.confidence[60], 1.0, 0, "sick")


def test_the_front_is_over_money_for_tests_and_for_errors(worked):
    front = worked.front_
    assert front.objectives == ("cost", "loss")
    tests, errors = front.values.T
    for i in range(len(front)):
        better = (tests <= tests[i]) & (errors <= errors[i]) & ((tests < tests[i]) | (errors < errors[i]))
        assert not better.any()
    assert worked.front_.total.argmin() == worked.point_


def test_an_exact_search_ends_at_the_same_design():
    X, y = _example()
    tree = DecisionTreeClassifier(random_state=0)
    clf = EMSCOClassifier([1, 5], errors=ERRORS, estimator=tree, search=Exact(), random_state=0).fit(X, y, X, y)
    assert_array_equal(clf.design_, [0, 1])
    assert clf.search_ == Exact()


def test_bars_found_backwards_are_the_best_of_all_for_two_stages():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 6, size=(2, 40)).astype(np.uint8)
    price = rng.integers(0, 9, size=(2, 40)).astype(float)
    bars, money = np.zeros((1, 2), dtype=np.int64), np.empty((1, 40))
    least_money(np.array([[0, 1]]), np.array([2]), np.array([[1.0, 2.0]]), level, price, 6, 2, bars, money)
    of_each = [np.where(level[0] <= bar, price[0], price[1] + 2.0).sum() + 40 for bar in range(6)]
    assert_allclose(money.sum(), min(of_each))
    assert_allclose(of_each[bars[0, 0]], min(of_each))


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"threshold": 0.9}, InvalidParameterError, "threshold must be None where errors have prices"),
        ({"objectives": ["cost", "accuracy"]}, InvalidParameterError, "objectives must be None where errors"),
        ({"errors": [[0, 1, 2]]}, InvalidPricesError, "errors must be a matrix"),
    ],
)
def test_settings_that_contradict_prices_of_errors_are_refused(parameters, error, said):
    X, y = _example()
    with pytest.raises(error, match=said):
        EMSCOClassifier([1, 5], **{"errors": ERRORS, **parameters}).fit(X, y)


def test_a_threshold_set_after_fit_is_refused(worked):
    with pytest.raises(InvalidParameterError, match="errors have prices"):
        worked.deployed_.with_threshold(0.9)


def test_an_evaluation_splits_money_into_tests_errors_and_no_answers(worked, tmp_path):
    X, y = _example()
    evaluation = worked.evaluate(X, y)
    money = evaluation.money
    mine, all_, sick, well = money.values()
    assert list(money)[2:] == ['buy nothing, always "sick"', 'buy nothing, always "well"']
    assert_allclose([mine.tests, mine.errors, mine.no_answers, mine.total], [3.0, 0.9, 0.0, 3.9])
    assert_allclose([all_.total, sick.total, well.total], [6.0, 8.3, 15.3])
    assert_allclose(mine.total, worked.front_.total[worked.point_])
    assert mine.low < mine.total < mine.high
    assert "tests  errors  no answers" in str(evaluation)
    worked.save(tmp_path / "model.emsco", evaluation=evaluation)
    assert emsco.load(tmp_path / "model.emsco").evaluation_.money == money


def test_no_answers_are_counted_apart():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = (y + rng.normal(0, 1.0, 300))[:, None]
    clf = EMSCOClassifier([1], errors=[[0, 100, 20], [100, 0, 20]], random_state=0).fit(X, y)
    money = clf.evaluate(X, y).money["the design in use"]
    decided = clf.decide(X)
    wrong = decided.conclusive & (decided.label.data != y)
    assert_allclose(money.tests, decided.cost.mean())
    assert_allclose(money.errors, 100 * wrong.mean())
    assert_allclose(money.no_answers, 20 * (~decided.conclusive).mean())
    assert money.no_answers > 0


def test_without_prices_of_errors_there_is_no_money():
    X, y = _example()
    clf = EMSCOClassifier([1, 5], random_state=0).fit(X, y)
    with pytest.raises(InvalidInputError, match="errors have no prices"):
        clf.evaluate(X, y).money  # noqa: B018
    with pytest.raises(InvalidParameterError, match="errors have no prices"):
        clf.front_.by_price_of_errors()


def test_steps_by_the_price_of_errors_are_the_least_total_at_every_multiple(worked):
    front, steps = worked.front_, worked.front_.by_price_of_errors()
    errors = front.total - front.mean_cost
    for multiple in (0.0, 0.01, 0.05, 0.2, 0.9, 1.0, 1.3, 3.0, 20.0):
        assert_allclose(
            steps.at(multiple).tests + multiple * steps.at(multiple).errors,
            (front.mean_cost + multiple * errors).min(),
            atol=1e-9,
        )
    # The smear at 1 saves 8.3 - 3.3 = 5 of errors: worth it from 1 / 5 on.
    assert steps.steps[0].tests == 0
    assert_allclose(steps.steps[1].multiple, 0.2)
    assert "from x errors" in str(steps)


def test_logistic_stages_that_are_trained_one_by_one_leave_the_race_to_trees():
    data = load_cost_sensitive("soybean", level="high")
    X, y = data.data, data.target.to_numpy()
    clf = EMSCOClassifier(data.prices, errors=data.errors, random_state=0).fit(X, y)
    assert clf.learner_ == "tree"
    assert clf.evaluate(X, y).money["the design in use"].total < 0.5 * min(
        money.total for name, money in clf.evaluate(X, y).money.items() if name != "the design in use"
    )


def _two_of_three(n, seed, *, xor):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 3)).astype(float)
    return X, (X[:, 0] != X[:, 1]) if xor else (X[:, 0] + rng.normal(0, 0.3, n) > 0.5)


@pytest.mark.parametrize("xor", [False, True])
def test_retraining_on_the_same_rows_changes_nothing(xor):
    X, y = _two_of_three(150, 0, xor=xor)
    clf = EMSCOClassifier([1, 1, 2], errors=[[0, 20], [30, 0]], random_state=0).fit(X, y)
    assert (clf.learner_ == "tree") == xor
    total, said, saves = clf.front_.total, clf.decide(X), clf.deployed_.savings
    clf.retrain(X, y)
    assert_allclose(clf.front_.total, total)
    again = clf.decide(X)
    assert_array_equal(again.label, said.label)
    assert_array_equal(again.cost, said.cost)
    assert_allclose(again.confidence, said.confidence)
    assert clf.deployed_.savings == saves


def test_retraining_on_other_rows_learns_from_them_and_keeps_design_and_bars():
    clf = EMSCOClassifier([1, 1, 2], errors=[[0, 20], [30, 0]], random_state=0).fit(*_two_of_three(150, 0, xor=True))
    design, bars = clf.design_, clf.front_.thresholds.copy()
    X, y = _two_of_three(200, 1, xor=True)
    clf.retrain(X, ~y)
    assert_array_equal(clf.design_, design)
    assert_array_equal(clf.front_.thresholds, bars)
    assert_array_equal(clf.decide(X).label, ~y)
    assert clf.front_.n_samples == 200


def test_retraining_keeps_what_amounts_at_risk_mean():
    rng = np.random.default_rng(0)
    fraud = rng.random(300) < 0.3
    X = pd.DataFrame({"amount": np.exp(rng.normal(3, 1, 300)), "call": 2 * fraud + rng.normal(size=300)})
    clf = EMSCOClassifier({"amount": 0, "call": 2}, errors=[[0, 20], ["amount", 0]], max_stages=1, random_state=0)
    clf.fit(X, fraud)
    before, total = clf.deployed_.errors, clf.front_.total
    clf.retrain(X, fraud)
    assert_allclose(clf.front_.total, total)
    clf.retrain(X.assign(amount=3 * X["amount"]), fraud)
    assert clf.deployed_.errors == before
    assert clf.front_.total[clf.point_] > total[clf.point_]
