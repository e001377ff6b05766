"""Every price model is charged alike: by hand, and by tally, decide, sessions, run and evaluation."""

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest

from emsco import Acquire, BestFirst, Evolution, Exact, MultiStageClassifier, Prices
from emsco.data.table import Table
from emsco.datasets import load_heart_disease
from emsco.scoring.cache import StageCache
from emsco.scoring.cascade import Cascade
from emsco.stages.logistic import LogisticTrainer
from emsco.stages.problem import Problem, unit_membership
from tests.classifiers import fixed
from tests.deployed.test_decide import numbers
from tests.strategies import populations, price_models, seeds

HEART = load_heart_disease()
COLUMNS = ["age", "chol", "fbs", "thalach"]
DESIGN = [["age", "fbs"], ["chol"], ["thalach"]]
PRICE = {"age": 1, "chol": 7, "fbs": 5, "thalach": 10}
BLOOD = {"groups": {"blood": ["chol", "fbs"]}, "discount": {"chol": 5, "fbs": 3}}  # drawing it: 2

# The model, the price of each stage of DESIGN, what has been paid by its end, and everything in one stage.
BY_HAND = {
    "sum": ({}, [1 + 5, 7, 10], [6, 13, 23], 23),
    "groups": (BLOOD, [1 + 3 + 2, 5, 10], [6, 11, 21], 21),
    "overhead": ({"overhead": 4}, [1 + 5 + 4, 7 + 4, 10 + 4], [10, 21, 35], 27),
    "parallel": ({"parallel": True}, [5, 7, 10], [5, 12, 22], 10),
    "derived": ({"price": {"age": 1, "chol": 7, "thalach": 10}, "derived": {"fbs": ["age", "chol"]}},
                [1 + 7, 0, 10], [8, 8, 18], 18),
    "all of it": ({**BLOOD, "overhead": 4, "parallel": True}, [3 + 2 + 4, 5 + 4, 10 + 4], [9, 18, 32], 14),
}  # fmt: skip


def tally(clf, train, y_train, rows, y):
    """What the search would count of the design in use."""
    encoder, classes = clf.deployed_.encoder, clf.classes_
    problem = Problem(
        train=encoder.encode(Table(train), slice(None)),
        y_train=np.searchsorted(classes, y_train),
        validation=encoder.encode(Table(rows), slice(None)),
        y_validation=np.searchsorted(classes, y),
        n_classes=classes.size,
        unit_columns=unit_membership(encoder, clf.deployed_.prices),
        prices=clf.deployed_.prices,
    )
    cache = StageCache(
        LogisticTrainer(problem), problem.y_validation, n_units=clf.deployed_.prices.n_units, threshold=clf.threshold,
        max_bytes=2**20,
    )  # fmt: skip
    return Cascade(cache, clf.deployed_.prices).tally(clf.design_[None])


def session_cost(clf, row):
    """What a session charges in the end, and what it said each stage would cost."""
    session, prices = clf.session(), []
    while isinstance(answer := session.step(), Acquire):
        prices.append(answer.price)
        session.give({name: row[name] for name in answer.columns})
    return answer.cost, prices


@pytest.mark.parametrize("name", BY_HAND)
def test_everyone_charges_what_the_table_says(name):
    model, price, paid, at_once = BY_HAND[name]
    X, y = HEART.data[COLUMNS], HEART.target.to_numpy()
    train, rows = X[:200], X[200:]
    clf = MultiStageClassifier(DESIGN, Prices(**{"price": PRICE, **model}), threshold=0.7).fit(train, y[:200])
    assert [stage.price for stage in clf.stages_] == price
    assert clf.deployed_.prices.total == at_once
    decisions = clf.decide(rows)
    assert set(decisions.stage) == {0, 1, 2}
    assert_array_equal(decisions.cost, np.array(paid)[decisions.stage])
    for record, cost, stage in zip(rows.to_dict("records"), decisions.cost, decisions.stage, strict=True):
        assert session_cost(clf, record) == (cost, price[: stage + 1])
    ran = clf.run(lambda row, request: {c: row[c] for c in request.columns}, rows.to_dict("records"))
    assert_array_equal(ran.cost, decisions.cost)
    counted = tally(clf, train, y[:200], rows, y[200:])
    assert_array_equal(counted.reached[0], [(decisions.stage >= j).sum() for j in range(3)])
    assert counted.total_ticks[0] == counted.reached[0] @ price == decisions.cost.sum()
    evaluation = clf.evaluate(rows, y[200:])
    assert evaluation.points[0].paid == tuple(paid)
    assert evaluation.points[0].mean_cost == pytest.approx(decisions.cost.mean())
    assert evaluation.everything.paid == evaluation.always.paid == (at_once,)


@settings(max_examples=60)
@given(
    seeds(),
    st.integers(1, 6).flatmap(
        lambda n: st.tuples(price_models(n), populations(max_stages=6, min_features=n, max_features=n, max_rows=1))
    ),
    st.sampled_from([2, 3]),
    st.sampled_from([0.5, 0.7, 0.9, 1.0]),
)
def test_tally_decide_and_sessions_agree_to_the_tick(seed, prices_and_design, n_classes, threshold):
    prices, (design,) = prices_and_design
    X, y = numbers(seed, n=60, n_features=design.size, n_classes=n_classes)
    clf = MultiStageClassifier(design, prices, threshold=threshold).fit(X[:35], y[:35])
    decisions = clf.decide(X[35:])
    names = [f"x{i}" for i in range(design.size)]
    asked = [session_cost(clf, dict(zip(names, row, strict=True)))[0] for row in X[35:]]
    ticks = np.rint(decisions.cost * clf.deployed_.prices.scale)
    assert_array_equal(decisions.cost, ticks / clf.deployed_.prices.scale)
    assert_array_equal(decisions.cost, asked)
    known = np.isin(y[35:], clf.classes_)  # a class may be in the last rows alone
    counted = tally(clf, X[:35], y[:35], X[35:], np.where(known, y[35:], clf.classes_[0]))
    assert counted.total_ticks[0] == ticks.sum()


@pytest.mark.parametrize(
    "search", [Evolution(population_size=40, max_generations=10), BestFirst(max_designs=500), Exact()], ids=str
)
@pytest.mark.parametrize("name", BY_HAND)
def test_a_search_reports_what_its_points_charge(search, name, tmp_path):
    X, y = HEART.data[COLUMNS], HEART.target.to_numpy()
    prices = Prices(**{"price": PRICE, **BY_HAND[name][0]})
    clf = fixed(prices, threshold=0.7, search=search, random_state=0)
    clf.fit(X[:150], y[:150], X[150:], y[150:], checkpoint=tmp_path / "a.ckpt")
    for i in range(len(clf.front_)):
        clf.use(i)
        assert clf.decide(X[150:]).cost.mean() == pytest.approx(clf.front_[i].mean_cost)
    again = fixed(prices, threshold=0.7, search=search, random_state=0)
    again.fit(X[:150], y[:150], X[150:], y[150:], checkpoint=tmp_path / "a.ckpt")
    assert_array_equal(again.front_.designs, clf.front_.designs)


def test_in_days_nobody_waits_longer_than_the_design_has_stages():
    clf = fixed(HEART.days, threshold=0.8, max_stages=2, random_state=0).fit(HEART.data, HEART.target)
    assert clf.front_.mean_cost.max() <= 2
    assert clf.front_.certificate.proven
    for i in range(len(clf.front_)):
        clf.use(i)
        assert set(clf.decide(HEART.data).cost) <= {0.0, 1.0, 2.0}
