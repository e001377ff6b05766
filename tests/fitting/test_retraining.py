"""Designs, recipe and rules stay; stages are trained on other rows, and the figures are those of these rows."""

import warnings

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import emsco
from emsco import EMSCOClassifier, Evolution, Guarantee, Loss, MultiStageClassifier, Objective
from emsco.exceptions import (
    GuaranteeWarning,
    InvalidInputError,
    InvalidParameterError,
    InvalidTargetError,
    MissingColumnError,
)
from emsco.fitting import retraining

N = 240
FIGURES = ("coverage", "accuracy", "mean_cost", "fitness", "reached", "confusion", "values", "paid")
COSTS = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 5.0}


def rows(seed=0, n=N):
    """Two classes, three columns of numbers and one of categories, with gaps."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, "sick", "well")
    X = pd.DataFrame(
        {
            name: rng.normal(size=n) + strength * (y == "sick")
            for name, strength in zip("abc", (0.8, 1.2, 2), strict=True)
        }
    )
    X["d"] = np.where(rng.random(n) < 0.7, np.where(y == "sick", "high", "low"), "none")
    return X.mask(rng.random(X.shape) < 0.05), y


X, Y = rows()
QUICK = {"encoding": "rank", "C": 0.3, "final_estimator": "search", "random_state": 0}


def fitted(**settings):
    return EMSCOClassifier(COSTS, **{**QUICK, **settings}).fit(X, Y)


def assert_same(clf, other):
    mine, its = clf.decide(X), other.decide(X)
    assert_array_equal(mine.confidence, its.confidence)
    assert_array_equal(mine.label.data, its.label.data)
    assert_array_equal(mine.conclusive, its.conclusive)
    assert_array_equal(mine.cost, its.cost)
    for name in FIGURES:
        assert_array_equal(getattr(clf.front_, name), getattr(other.front_, name))


@pytest.mark.parametrize(
    "settings",
    [
        {"encoding": "auto", "C": "auto"},
        {"preset": "paper"},
        {"validation": 0.3, "refit": True},
        {"threshold": "auto"},
        {"threshold": {"sick": 0.9, "well": 0.7}},
        {"threshold": [0.9, 0.8]},
        {"products": True},
        {"final_estimator": GaussianNB(), "calibration": "sigmoid", "max_stages": 2},
        {"objectives": ["coverage", "fnr", "cost"]},
        {"objectives": ["cost", Loss([[0, 1], [5, 0]], reject=2)], "max_stages": 2},
        {"threshold": Guarantee(0.8), "search": Evolution(max_generations=5)},
        {"estimator": GaussianNB(), "search": Evolution(max_generations=3)},
        {"final_estimator": DecisionTreeClassifier(max_depth=3), "max_stages": 2},
        {"final_estimator": RandomForestClassifier(5, max_depth=3), "max_stages": 2},
    ],
    ids=str,
)
def test_the_same_rows_and_the_same_seed_give_the_same_decisions_and_figures(settings):
    clf, again = fitted(**settings), fitted(**settings)
    assert again.retrain(X, Y) is again
    assert_same(again, clf)


def test_a_front_without_a_seed_keeps_its_decisions_on_the_same_rows():
    clf = fitted(random_state=None)
    before = clf.decide(X)
    assert_array_equal(clf.retrain(X, Y).decide(X).confidence, before.confidence)


def test_designs_recipe_rules_and_the_point_in_use_are_kept():
    clf = fitted(threshold="auto").use(7)
    before = clf.deployed_
    clf.retrain(*rows(1))
    after = clf.deployed_
    assert_array_equal(after.designs, before.designs)
    assert after.rules == before.rules
    assert after.point == 7
    assert (after.origin.encoding, after.origin.C) == (before.origin.encoding, before.origin.C)
    assert_array_equal(after.front.thresholds, before.front.thresholds)
    assert after.prices is before.prices


def test_the_figures_are_those_of_the_new_rows_out_of_fold():
    clf = fitted()
    new = rows(2, n=300)
    clf.retrain(*new)
    front = clf.front_
    assert front.n_samples == 300
    assert front.certificate is None
    assert front.n_ties.tolist() == [1] * len(front)
    assert_array_equal(front.confusion.sum(axis=(1, 2)), 300)
    assert_array_equal(front.confusion.sum(axis=2)[0], [(new[1] == "sick").sum(), (new[1] == "well").sum()])
    np.testing.assert_allclose(front.coverage, front.confusion[:, :, :-1].sum(axis=(1, 2)) / 300)
    left = -np.diff(front.reached, axis=1, append=0)
    np.testing.assert_allclose(front.mean_cost, (left * front.paid).sum(axis=1) / 300)


def test_rows_that_were_given_to_judge_are_replaced_by_folds():
    clf = EMSCOClassifier(COSTS, **QUICK).fit(X, Y, *rows(3, n=80))
    before = clf.decide(X)
    clf.retrain(X, Y)
    assert (clf.validation_, clf.front_.n_samples) == (5, N)
    assert_array_equal(clf.decide(X).confidence, before.confidence)


def test_a_saved_model_is_retrained_as_the_one_in_memory(tmp_path):
    for settings in ({"products": True}, {"final_estimator": DecisionTreeClassifier(max_depth=3)}):
        clf = fitted(**settings)
        clf.save(tmp_path / "model.emsco", notes={"of": "2020"})
        loaded = emsco.load(tmp_path / "model.emsco").retrain(*rows(1))
        assert_same(loaded, clf.retrain(*rows(1)))
        loaded.save(tmp_path / "again.emsco")
        again = emsco.load(tmp_path / "again.emsco")
        assert again.notes_ == {"of": "2020"}
        assert again.evaluation_ is None
        assert_same(again, loaded)


def test_columns_are_matched_by_name_and_others_are_ignored():
    clf = fitted()
    expected = clone(clf).fit(X, Y)
    clf.retrain(X[["d", "c", "b", "a"]].assign(id=range(N)), Y)
    assert_same(clf, expected)
    clf.retrain(X.to_numpy(), Y)
    assert clf.deployed_.column_names == list("abcd")
    assert_array_equal(clf.decide(X).cost, expected.decide(X).cost)


def test_a_given_design_keeps_encoding_and_strength():
    design = [["a"], ["b", "d"]]
    clf = MultiStageClassifier(design, COSTS, encoding="rank", C=0.1, threshold=0.8).fit(X, Y)
    before = clf.decide(X)
    clf.retrain(*rows(1))
    assert not np.array_equal(clf.decide(X).confidence, before.confidence)
    clf.C = 7.0  # what was set after fit is no part of the recipe
    assert_array_equal(clf.retrain(X, Y).decide(X).confidence, before.confidence)


def test_figures_are_counted_at_the_thresholds_in_use():
    clf = fitted()
    clf.threshold = 0.9
    assert clf.deployed_.origin.other_thresholds
    clf.retrain(*rows(1))
    assert not clf.deployed_.origin.other_thresholds


def test_a_promise_is_calibrated_again():
    clf = fitted(threshold=Guarantee(0.8), search=Evolution(max_generations=5))
    new, cal = rows(4, n=400), rows(5, n=333)
    clf.retrain(*new, X_cal=cal[0], y_cal=cal[1])
    assert clf.guarantee_.given
    assert clf.guarantee_.n_rows == 333
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GuaranteeWarning)  # of a promise that another point does not keep
        clf.use((clf.point_ + 1) % len(clf.front_))
        assert clf.guarantee_.by_hand
        clf.retrain(*new, X_cal=cal[0], y_cal=cal[1])
    assert not clf.guarantee_.by_hand  # it was in use before anybody saw these calibration rows
    given = MultiStageClassifier([["a", "c"]], COSTS, threshold=Guarantee(0.8), random_state=0).fit(X, Y)
    first = given.guarantee_
    assert given.retrain(X, Y).guarantee_ == first
    given.retrain(*new, X_cal=cal[0].to_numpy(), y_cal=cal[1])
    assert given.guarantee_.n_rows == 333


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (
            lambda X, y: (X, np.where(y == "sick", "ill", y)),
            InvalidTargetError,
            "holds the classes .'ill'., which were",
        ),
        (lambda X, y: (X, np.where(np.arange(y.size) < 9, "dead", y)), InvalidTargetError, "'dead'"),
        (lambda X, y: (X[y == "sick"], y[y == "sick"]), InvalidTargetError, "one class only"),
        (lambda X, y: (X.drop(columns=["b", "d"]), y), MissingColumnError, "lacks the columns .'b', 'd'."),
        (lambda X, y: (X.to_numpy()[:, :3], y), InvalidInputError, "X has 3 columns"),
        (lambda X, y: (X, y[:-1]), InvalidTargetError, "one label per row"),
        (lambda X, y: (X[:0], y[:0]), InvalidInputError, "minimum of 1"),
        (lambda X, y: (X.assign(a=["much", "little"] * (N // 2)), y), InvalidInputError, "held numbers in fit"),
    ],
)
@pytest.mark.parametrize("kind", ["searched", "given"])
def test_rows_of_another_kind_are_refused_and_the_model_stays(change, error, message, kind):
    clf = fitted() if kind == "searched" else MultiStageClassifier([["a"], ["b"]], COSTS).fit(X, Y)
    before = clf.deployed_
    with pytest.raises(error, match=message):
        clf.retrain(*change(X, Y))
    assert clf.deployed_ is before


def test_an_interrupt_leaves_the_old_stages(monkeypatch):
    clf = fitted()
    before = clf.deployed_

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(retraining, "_trained", interrupt)
    with pytest.raises(KeyboardInterrupt):
        clf.retrain(*rows(1))
    assert clf.deployed_ is before


def test_calibration_rows_without_a_promise_and_an_unfitted_classifier_are_refused():
    with pytest.raises(InvalidParameterError, match="X_cal calibrates a promise, but nothing is promised"):
        fitted().retrain(X, Y, X_cal=X, y_cal=Y)
    with pytest.raises(NotFittedError, match="not fitted"):
        EMSCOClassifier().retrain(X, Y)


def test_a_threshold_set_after_fit_judges_the_points():
    clf = fitted(threshold="auto")
    clf.threshold = 0.9
    clf.retrain(X, Y)
    assert clf.front_.thresholds is None
    assert_same(clf, clf.retrain(X, Y))
    assert {rule.number for rule in clf.deployed_.rules} == {0.9}


def test_an_objective_that_a_file_does_not_hold_is_missed(tmp_path):
    half = Objective("half", lambda counts: counts.n_correct / 2)
    clf = fitted(objectives=["cost", half])
    again = fitted(objectives=["cost", half])
    assert_same(again.retrain(X, Y), clf)
    again.deployed_.origin.parameters["objectives"] = None
    with pytest.raises(InvalidParameterError, match="does not hold all of them"):
        again.retrain(X, Y)


def test_a_splitter_that_does_not_fit_the_new_rows_is_named_and_can_be_replaced():
    groups = np.arange(N) % 7

    class Groups(GroupKFold):
        def split(self, X, y=None, g=None):
            return super().split(X, y, groups)

    clf = fitted(validation=Groups(4))
    with pytest.raises(InvalidParameterError, match="cannot split"):
        clf.retrain(*rows(1, n=100))
    clf.set_params(validation=3).retrain(*rows(1, n=100))
    assert clf.validation_ == 3


def test_a_point_that_is_put_into_use_meanwhile_stays_in_use(monkeypatch):
    clf, original = fitted(), retraining.retrain

    def slow(*arguments):
        clf.use(2)
        return original(*arguments)

    monkeypatch.setattr(retraining, "retrain", slow)
    assert clf.use(1).retrain(X, Y).point_ == 2
