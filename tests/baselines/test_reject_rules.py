from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco.baselines.price_stages import held_out, make_folds, train_by_price
from emsco.baselines.reject_rules import (
    _SHIFTS,
    RejectRules,
    _shifted,
    _to_go,
    error_weights,
    learn_gates,
    learn_pairs,
)
from emsco.exceptions import InvalidParameterError
from tests.baselines import contract
from tests.baselines.contract import costs_of, data
from tests.strategies import problem

QUICK = {"price_weights": [0.02, 0.2], "max_stages": 3, "random_state": 0}


def test_gates_keep_the_contract_of_rivals():
    contract.check_contract(RejectRules(threshold=0.7, **QUICK))


def test_pairs_keep_the_contract_of_rivals_for_two_classes():
    rival = RejectRules(threshold=0.7, rule="pairs", **QUICK)
    fitted = contract.fit_anew(rival)
    contract.check_figures(fitted, 2)
    contract.check_no_peeking(fitted, 2)
    contract.check_same_seed(fitted, contract.fit_anew(rival))
    contract.check_scale_of_costs(fitted, contract.fit_anew(rival, costs=[10 * c for c in costs_of()]))
    contract.check_threshold_zero(contract.fit_anew(rival.set_params(threshold=0.0)))


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([RejectRules()])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def setting(seed=0, n_classes=2):
    """A problem of three stages, what they say of its training rows held out, and the folds."""
    case = problem(seed, n_features=6, n_train=200, n_classes=n_classes, costs=[1, 1, 2, 2, 5, 5])
    stages = train_by_price(case, C=1.0)
    folds = make_folds(case.y_train, 5, np.random.default_rng(0))
    return case, stages, held_out(case, stages, folds, C=1.0), folds


def test_an_error_weighs_what_it_adds_to_the_loss_of_the_pair():
    for second_wrong, price in product((False, True), (0.0, 0.3, 1.0)):
        loss = [price if first_wrong != second_wrong else float(first_wrong) for first_wrong in (False, True)]
        assert_allclose(error_weights(np.array([second_wrong]), np.array([price])), loss[1] - loss[0])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_gate_opens_for_those_who_gain_if_it_can_tell(n_classes):
    case, stages, answers, _ = setting(n_classes=n_classes)
    sure = np.zeros_like(answers)
    np.put_along_axis(sure, case.y_train[None, :, None], 1.0, axis=2)
    mistaken = case.train[0] > 0.5  # stage 0 errs where its own column says so, later stages never
    sure[0, mistaken] = np.roll(sure[0, mistaken], 1, axis=1)
    prices = np.array([0.1, 0.1])
    first, second = learn_gates(case, stages, sure, prices, C=100.0)
    known = [case.train[c] for c in stages.columns]
    assert_array_equal(first.continues(known[0], sure[0]), mistaken)
    assert not second.continues(known[1], sure[1]).any()


def test_a_stage_that_is_never_wrong_or_never_worth_its_price_is_the_last():
    case, stages, answers, folds = setting()
    dear = np.array([2.0, 2.0])
    for gate, columns, answer in zip(
        learn_gates(case, stages, answers, dear, C=0.1), stages.columns, answers, strict=False
    ):
        assert not gate.continues(case.train[columns], answer).any()
    first = learn_pairs(case, stages, answers, dear, folds, C=0.1)[0]
    votes = first.votes(case.train[stages.columns[0]])
    assert (votes[0] == votes[1]).mean() > 0.95


def test_pairs_lower_the_risk_of_their_starts():
    case, stages, answers, folds = setting(1)
    prices = 0.1 * np.diff(stages.shares)
    wrong_at_last = answers[-1].argmax(axis=1) != case.y_train
    truth = case.y_train == 1
    starts = [
        _to_go([_shifted(stages.models[k], answers[k], t) for k in (0, 1)], truth, wrong_at_last, prices)[0].mean()
        for t in _SHIFTS
    ]
    pairs = learn_pairs(case, stages, answers, prices, folds, C=0.1)
    votes = [pair.votes(case.train[c]) for pair, c in zip(pairs, stages.columns, strict=False)]
    losses = wrong_at_last.astype(float)
    for (first, second), price in zip(votes[::-1], prices[::-1], strict=True):
        losses = np.where(first != second, price + losses, first != truth)
    assert losses.mean() < min(starts)


def test_labels_of_pairs_are_those_they_agree_on():
    case = setting(2)[0]
    X = np.hstack([case.train, case.validation]).T
    y = np.concatenate([case.y_train, case.y_validation])
    fitted = RejectRules(rule="pairs", price_weights=[0.1], random_state=0).fit(X, y, [1, 1, 2, 2, 5, 5])
    model = fitted._model
    trace = fitted.trace(X)
    Z = fitted._encode(X)[0]
    for k in (0, 1):
        left = trace.exit == k
        first, second = model._gates[k].votes(Z[model._columns[k]][:, left])
        assert left.any()
        assert_array_equal(first, second)
        assert_array_equal(trace.probabilities[left].argmax(axis=1), first)


@pytest.mark.parametrize("rule", ["gates", "pairs"])
def test_a_larger_price_weight_buys_less(rule):
    X, y = load_breast_cancer(return_X_y=True)
    costs = np.random.default_rng(0).integers(1, 11, 30)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, stratify=y, random_state=0)
    figures = {}
    for weight in (0.05, 1.0):
        rival = RejectRules(threshold=0.0, price_weights=[weight], max_stages=3, rule=rule, random_state=0)
        decisions = rival.fit(X_train, y_train, costs).decide(X_test)
        figures[weight] = (decisions.label.data == y_test).mean(), decisions.cost.mean() / costs.sum()
    assert figures[0.05][0] > 0.93
    assert figures[1.0][0] > 0.90
    assert figures[1.0][1] < figures[0.05][1] < 0.5


@pytest.mark.parametrize("rule", ["gates", "pairs"])
def test_equal_prices_leave_nothing_to_learn(rule):
    X, y = data()
    decisions = RejectRules(rule=rule, random_state=0).fit(X, y).decide(X)
    assert_array_equal(decisions.stage, 0)
    assert_array_equal(decisions.cost, 6)


def test_stages_are_merged_or_one_per_price():
    X, y = data()
    for most, expected in ((None, 5), (2, 2)):
        fitted = RejectRules(max_stages=most, price_weights=[0], random_state=0).fit(X, y, costs_of())
        assert len(fitted._model._models) == expected


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"rule": "both"}, "rule must be"),
        ({"n_folds": 1}, "n_folds must be a whole number of at least 2"),
        ({"max_stages": 0}, "max_stages"),
        ({"rule_C": -1.0}, "rule_C must be a positive number"),
        ({"price_weights": ["much"]}, "price_weights must be numbers"),
    ],
)
def test_bad_settings_are_refused(setting, message):
    X, y = data()
    with pytest.raises(InvalidParameterError, match=message):
        RejectRules(**setting).fit(X, y, costs_of())


def test_pairs_of_three_classes_are_refused():
    X, y = data(n_classes=3)
    with pytest.raises(InvalidParameterError, match="two classes, y has 3; use 'gates'"):
        RejectRules(rule="pairs").fit(X, y, costs_of())


@pytest.mark.parametrize("rule", ["gates", "pairs"])
def test_on_average_a_larger_price_weight_buys_no_more(rule):
    costs = []
    for seed in range(5):
        X, y = data(seed)
        rivals = [RejectRules(0.0, [w], rule, max_stages=3, random_state=0) for w in (0, 0.05, 0.2, 1)]
        costs.append([rival.fit(X[:160], y[:160], costs_of()).decide(X[160:]).cost.mean() for rival in rivals])
    assert (np.diff(np.mean(costs, axis=0)) <= 0.05 * sum(costs_of())).all()
    assert np.ptp(np.mean(costs, axis=0)) > 0.05 * sum(costs_of())


def test_the_order_of_columns_does_not_matter():
    X, y = data(n_classes=3)
    order = np.array([4, 2, 5, 0, 3, 1])
    first = RejectRules(**QUICK).fit(X, y, costs_of()).decide(X)
    second = RejectRules(**QUICK).fit(X[:, order], y, np.array(costs_of())[order]).decide(X[:, order])
    assert_array_equal(second.bought, first.bought[:, order])
    assert_allclose(second.confidence, first.confidence, atol=1e-6)
