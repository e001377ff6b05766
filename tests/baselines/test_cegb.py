from dataclasses import replace
import sys

import lightgbm
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from emsco import Prices
from emsco.baselines.cegb import CEGB, PRICE_WEIGHTS, Booster, column_prices, read_trees
from emsco.exceptions import InvalidParameterError, MissingDependencyError
from emsco.prices.prices import resolve
from tests.baselines.contract import check_contract, costs_of, data
from tests.strategies import problem

QUICK = CEGB(price_weights=(0, 0.1, 1), learning_rates=(0.1,), n_rounds=20, num_leaves=(4,), min_rows_in_leaf=(5,),
             random_state=0)  # fmt: skip
FEW = {"learning_rate": 0.1, "num_leaves": 8, "min_data_in_leaf": 5, "num_threads": 1}


def prior(y):
    return np.bincount(y) / y.size


def test_it_keeps_the_contract_of_rivals():
    check_contract(QUICK)


@pytest.mark.filterwarnings("ignore::emsco.exceptions.RareClassWarning")  # some checks draw a class of one row
@parametrize_with_checks([QUICK])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def walk(node, row, read):
    """Send one row down a tree as LightGBM dumps it; return its leaf's value."""
    while "split_feature" in node:
        read.add(node["split_feature"])
        node = node["left_child" if row[node["split_feature"]] <= node["threshold"] else "right_child"]
    return node["leaf_value"]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", [0.0, 0.02, 0.1, 100.0])
def test_scores_and_reads_are_those_of_lightgbms_own_trees(n_classes, penalty):
    p = problem(3, n_features=6, n_train=200, n_classes=n_classes)
    n_outputs = 1 if n_classes == 2 else n_classes
    settings = {"objective": "binary" if n_outputs == 1 else "multiclass", "num_class": n_outputs, "verbose": -1, **FEW}
    lazy = {"cegb_penalty_feature_lazy": [penalty] * 6} if penalty else {}
    booster = lightgbm.train({**settings, **lazy}, lightgbm.Dataset(p.train.T, p.y_train), 12)
    total, read = read_trees(booster.model_to_string(), n_outputs).walk(p.validation)
    assert_allclose(total, booster.predict(p.validation.T, raw_score=True).reshape(-1, n_outputs), rtol=1e-12)
    dumped = booster.dump_model()["tree_info"]
    for i, row in enumerate(p.validation.T):
        met = set()
        scores = np.zeros(n_outputs)
        for t, tree in enumerate(dumped):
            scores[t % n_outputs] += walk(tree["tree_structure"], row, met)
        assert_allclose(total[i], scores, rtol=1e-12)
        assert set(np.flatnonzero(read[i])) == met
    assert read.any() == (penalty < 100)


@pytest.mark.parametrize(("share", "splits"), [(0.999, True), (1.001, False)])
def test_the_root_splits_exactly_while_its_gain_exceeds_the_price_of_all_rows(share, splits):
    p = problem(0, n_features=3, n_train=100)
    settings = {"objective": "binary", "num_leaves": 2, "min_data_in_leaf": 5, "num_threads": 1, "verbose": -1}
    plain = lightgbm.train(settings, lightgbm.Dataset(p.train.T, p.y_train), 1)
    gain = plain.dump_model()["tree_info"][0]["tree_structure"]["split_gain"]
    trees = Booster(p, 0).train(np.full(3, share * gain / 100), n_rounds=1, num_leaves=2, min_data_in_leaf=5)
    assert (trees.feature[trees.roots[0]] >= 0) == splits


def test_a_weight_is_lightgbms_tradeoff():
    p = problem(1, n_features=4, n_train=150)
    prices = column_prices(p, "full")
    ours = Booster(p, 7).train(2 * prices, n_rounds=20, **FEW)
    theirs = lightgbm.train(
        {"objective": "binary", "cegb_tradeoff": 2, "cegb_penalty_feature_lazy": prices.tolist(), "verbose": -1, **FEW},
        lightgbm.Dataset(p.train.T, p.y_train), 20,
    )  # fmt: skip
    assert_allclose(ours.walk(p.validation)[0][:, 0], theirs.predict(p.validation.T, raw_score=True), rtol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_huge_weight_buys_nothing_and_answers_the_prior(n_classes):
    X, y = data(n_classes=n_classes)
    fitted = clone(QUICK).set_params(price_weights=(1e6,))
    fitted.fit(X[:160], y[:160], costs_of(), X[160:], y[160:])
    assert_array_equal(fitted.decide(X).cost, 0)
    assert_allclose(fitted.predict_proba(X), np.tile(prior(y[:160]), (len(X), 1)), atol=1e-12)
    assert fitted.settings_["n_rounds"] == 1


def test_free_columns_are_read_whatever_the_weight():
    X, y = data()
    fitted = CEGB(price_weights=(1e6,), num_leaves=(4,), n_rounds=20, random_state=0).fit(X, y, [0, 1, 0, 1, 1, 1])
    bought = fitted.decide(X).bought
    assert bought[:, [0, 2]].any()
    assert not bought[:, [1, 3, 4, 5]].any()
    assert (fitted.decide(X).cost == 0).all()


def test_of_two_equal_columns_the_dear_one_is_never_read():
    X, y = data()
    twice = np.hstack([X, X])
    p = replace(problem(0, n_features=12, costs=[*costs_of(), *(10 * c for c in costs_of())]),
                train=twice.T.copy(), y_train=y)  # fmt: skip
    trees = Booster(p, 0).train(0.1 * column_prices(p, "full"), n_rounds=50, **FEW)
    assert 0 <= trees.feature.max() < 6


def test_a_dearer_weight_reads_less_on_average():
    """Over seeds: a single greedy fit may wobble."""
    costs = []
    for seed in range(6):
        p = problem(seed, n_features=8, n_train=300, n_validation=150)
        booster, prices = Booster(p, 0), column_prices(p, "full")
        walked = [booster.train(w * prices, n_rounds=40, **FEW).walk(p.validation) for w in (0, 0.1, 1, 10)]
        costs.append([(read @ prices).mean() for _, read in walked])
    means = np.mean(costs, axis=0)
    assert (np.diff(means) <= 0.05).all()
    assert means[0] > 0.8
    assert means[-1] < 0.2


def test_a_units_price_is_put_on_each_of_its_columns_in_full_or_shared():
    p = problem(0, n_features=3)
    panel = resolve(Prices(units={"panel": ["x0", "x2"]}, price={"panel": 6, "x1": 2}), ["x0", "x1", "x2"])
    p = replace(p, prices=panel, unit_columns=np.array([[True, False, True], [False, True, False]]))
    assert_allclose(column_prices(p, "full"), [0.75, 0.25, 0.75])
    assert_allclose(column_prices(p, "shared"), [0.375, 0.25, 0.375])
    free = replace(p, prices=resolve([0, 0, 0], ["x0", "x1", "x2"]), unit_columns=np.eye(3, dtype=np.bool_))
    assert_array_equal(column_prices(free, "full"), 0)


def test_both_ways_are_tried_only_where_a_unit_has_several_columns():
    X, y = data(n_rows=120)
    plain = clone(QUICK).fit(X, y, costs_of())
    assert {row["column_prices"] for row in plain.table_} == {"full"}
    prices = Prices(units={"panel": ["a", "b"]}, price={"panel": 4, "c": 4, "d": 1, "e": 5, "f": 9})
    units = clone(QUICK).fit(pd.DataFrame(X, columns=list("abcdef")), y, prices)
    assert {(row["price_weight"], row["column_prices"]) for row in units.table_} == {
        (1.0, "full"), (1.0, "shared"), (0.1, "full"), (0.1, "shared"), (0.0, "full")
    }  # fmt: skip


def test_every_tenth_length_is_tried_and_prices_weigh_from_nothing_up():
    X, y = data(n_rows=120)
    fitted = CEGB(price_weights=(0, 0.5), n_rounds=25, num_leaves=(4,), learning_rates=(0.1,), min_rows_in_leaf=(5,),
                  random_state=0).fit(X, y)  # fmt: skip
    assert [(row["price_weight"], row["n_rounds"]) for row in fitted.table_][-3:] == [(0, 10), (0, 20), (0, 25)]
    assert [row["price_weight"] for row in fitted.table_] == sorted(r["price_weight"] for r in fitted.table_)[::-1]
    assert PRICE_WEIGHTS[0] == 0
    assert len(PRICE_WEIGHTS) == 15
    assert_allclose(PRICE_WEIGHTS[-1], 10**1.5)


@pytest.mark.parametrize(
    "wrong",
    [{"price_weights": (-1,)}, {"price_weights": ()}, {"price_weights": "many"}, {"price_weights": (np.nan,)},
     {"learning_rates": (0,)}, {"n_rounds": 0}, {"n_rounds": 2.5}, {"num_leaves": (1,)}, {"min_rows_in_leaf": 5},
     {"column_prices": ("half",)}, {"column_prices": ()}, {"column_prices": "full"}],
)  # fmt: skip
def test_wrong_parameters_are_explained(wrong):
    X, y = data(n_rows=60)
    with pytest.raises(InvalidParameterError, match=next(iter(wrong))):
        CEGB(**wrong).fit(X, y)


def test_without_lightgbm_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'emsco\[baselines\]'"):
        clone(QUICK).fit(*data(n_rows=60))


def test_where_everything_is_free_prices_do_not_weigh():
    X, y = data(n_rows=120)
    fitted = clone(QUICK).fit(X, y, np.zeros(6))
    assert (fitted.decide(X).cost == 0).all()
    assert fitted.decide(X).bought.any()
    figures = [(row["n_rounds"], row["accuracy"]) for row in fitted.table_]
    assert figures[:2] == figures[2:4] == figures[4:]
