"""Designs that branch, on new rows: what a plain walk over the rows says."""

import json

from hypothesis import given
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from emsco import reference
from emsco.data.table import Table
from emsco.deployed.decide import n_cores
from emsco.deployed.session import Accept, Acquire
from emsco.designs.branched import Route
from emsco.designs.partition import compress
from emsco.exceptions import InvalidInputError, MissingColumnError, SessionError
from emsco.prices.prices import Prices
from tests.classifiers import BARS, CATEGORY, CHAINS, SICK, branching, routed, sick
from tests.strategies import examples, seeds

N_UNITS = 7
COSTS = [1, 2, 3, 4, 5, 6, 7]


def routes(columns, n_classes):
    """A route of each kind, by the columns of numbers that the root buys."""
    first = columns[0]
    return {
        "cut": Route("cut", first, (first,), cuts=(-0.4, 0.5), default=2, n_branches=3),
        "largest": Route("largest", first, tuple(columns), default=0, n_branches=len(columns)),
        "pattern": Route("pattern", first, tuple(columns[:2]), groups=(((1, 0), (0, 0)), ((1, 1),), ()), default=2,
                         n_branches=3),
        "category": Route("category", first, (first,), groups=((1, 2), (0,), (-1,)), default=1, n_branches=3),
        "leaning": Route("leaning", -1, groups=tuple((k,) for k in range(n_classes)), n_branches=n_classes),
    }  # fmt: skip


def numbers(rng, n, n_classes):
    X = rng.normal(size=(n, N_UNITS)).round(1)
    X[:, :3] = np.rint(X[:, :3])
    y = (X @ rng.normal(size=(N_UNITS, n_classes)) + rng.normal(size=(n, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def drawn(seed, kind, n_classes, **settings):
    """A classifier that branches, by a root, branches and bars that were drawn, and rows."""
    rng = np.random.default_rng(seed)
    X, y = numbers(rng, 90, n_classes)
    root = rng.permutation(3)[: rng.integers(2, 4)]
    route = routes(sorted(root.tolist()), n_classes)[kind]
    rows = np.full((route.n_branches, N_UNITS), -1)
    rows[:, root] = 0
    others = [u for u in range(N_UNITS) if u not in root]
    for row in rows:
        row[others] = rng.integers(-1, 3, len(others))
        row[others] += row[others] >= 0
    bars = [rng.choice([0.0, 0.4, 0.55, 0.7, 0.9], N_UNITS).tolist() for _ in rows]
    experts = rng.choice(["shared", "own", "weighted"], len(rows)).tolist()
    clf = branching(X, y, compress(rows), route, bars, costs=COSTS, experts=tuple(experts), **settings)
    return clf, numbers(rng, 120, n_classes)[0]


def plainly(clf, X, **prices):
    """What the reference makes of the rows."""
    model = clf.deployed_
    branched, table = model.branched, Table(X)
    Z = model.encoder.encode(table, slice(None))
    route = branched.route

    def ask(branch, features):
        stages = model.tree.chains[branch].stages
        names = {model.prices.unit_names[u] for u in features}
        n = next(j for j in range(len(stages)) if names == {f for s in stages[: j + 1] for f in s.features})
        answers = stages[n].model.predict_proba(Z[stages[n].encoded_columns].T)
        return answers.max(axis=1).tolist(), answers.argmax(axis=1).tolist()

    root = tuple(np.flatnonzero(branched.root).tolist())
    leaning = ask(0, root)[1]
    cells = [[table.column(c)[i] for c in route.columns] for i in range(len(X))]
    branches = [route.branch_of(values, code) for values, code in zip(cells, leaning, strict=True)]
    bars = [[rule.bar(j, 0) for j in range(N_UNITS)] for rule in branched.rules]
    return branches, reference.walk_branched(branched.rows.tolist(), branches, ask, COSTS, bars, **prices)


@pytest.mark.parametrize("kind", ["cut", "largest", "pattern", "category", "leaning"])
@examples(20)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([None, "tree"]))
def test_rows_are_decided_as_a_plain_walk_decides_them(kind, seed, n_classes, estimator):
    tree = DecisionTreeClassifier(max_depth=3, random_state=0)
    clf, X = drawn(seed, kind, n_classes, estimator=None if estimator is None else tree)
    decisions = clf.decide(X)
    branches, wanted = plainly(clf, X)
    assert decisions.branch.tolist() == branches
    labels, confidences, stages, conclusive, paid = (np.array(part) for part in zip(*wanted, strict=True))
    assert_array_equal(decisions.label.data, clf.classes_[labels])
    np.testing.assert_allclose(decisions.confidence, confidences, rtol=1e-12)
    assert_array_equal(decisions.stage, stages)
    assert_array_equal(decisions.conclusive, conclusive)
    assert_array_equal(decisions.cost, paid)
    rows = clf.deployed_.branched.rows[branches]
    assert_array_equal(decisions.bought, (rows >= 0) & (rows <= stages[:, None]))
    proba = clf.predict_proba(X)
    assert_array_equal(proba.max(axis=1), decisions.confidence)
    assert_array_equal(clf.predict(X), decisions.label.data)


def test_prices_with_groups_and_overheads_are_those_of_the_branch():
    X, y = numbers(np.random.default_rng(1), 90, 2)
    names = [f"x{i}" for i in range(N_UNITS)]
    prices = Prices(
        price=dict(zip(names, [c + 4 if i in (0, 3, 4) else c for i, c in enumerate(COSTS)], strict=True)),
        groups={"lab": ["x0", "x3", "x4"]},
        discount={f"x{i}": COSTS[i] for i in (0, 3, 4)},
        overhead=2,
    )
    route = Route("cut", 1, (1,), cuts=(0.5,), n_branches=2)
    rows = [[-1, 0, -1, 1, 2, -1, -1], [1, 0, 2, -1, 1, -1, -1]]
    clf = branching(X, y, rows, route, [[0.9, 0.8, 0.0], [0.95, 0.9, 0.7]], costs=prices)
    wanted = plainly(clf, X, shared=[((0, 3, 4), 4)], overhead=2)[1]
    assert_array_equal(clf.decide(X).cost, [row[-1] for row in wanted])


def test_a_row_is_read_no_further_than_its_branch_has_paid_for():
    clf, X, _ = routed()
    decisions = clf.decide(X)
    bought, garbage = decisions.bought, X.astype(object)
    for c, name in enumerate(X.columns):
        garbage.loc[~bought[:, c], name] = "garbage"
    again = clf.decide(garbage)
    assert_array_equal(again.label.data, decisions.label.data)
    assert_array_equal(again.cost, decisions.cost)
    assert_array_equal(again.confidence, decisions.confidence)
    assert not bought[:, 2].all()
    assert not bought[decisions.branch == 0][:, 2].any()


def test_a_column_that_only_another_branch_buys_may_be_absent():
    clf, X, _ = routed()
    kind_a = X[X["kind"] == "a"]
    whole, part = clf.decide(kind_a), clf.decide(kind_a.drop(columns=["u", "x", "z"]))
    assert_array_equal(whole.confidence, part.confidence)
    with pytest.raises(MissingColumnError, match="'x' is not in the table"):
        clf.decide(X.drop(columns=["x"]))
    with pytest.raises(MissingColumnError, match="'kind' is not in the table"):
        clf.decide(X.drop(columns=["kind"]))


@pytest.mark.parametrize("kind", ["cut", "leaning"])
def test_no_rows_one_row_and_many_rows_are_decided_alike(kind):
    clf, X = drawn(5, kind, 2)
    many = np.tile(X, (700, 1))  # several threads, and blocks
    decisions = clf.decide(X)
    assert len(clf.decide(X[:0])) == 0
    assert [clf.decide(X[i : i + 1]).confidence[0] for i in range(20)] == decisions.confidence[:20].tolist()
    for n_jobs in (1, max(n_cores(), 2)):
        again = clf.deployed_.decide(many, n_jobs=n_jobs)
        assert_array_equal(again.confidence, np.tile(decisions.confidence, 700))
        assert_array_equal(again.stage, np.tile(decisions.stage, 700))
        assert_array_equal(again.branch, np.tile(decisions.branch, 700))


def test_a_cell_that_is_no_number_names_its_column_and_row():
    clf, X = drawn(5, "cut", 2)
    column = clf.deployed_.branched.route.columns[0]
    bad = X.astype(object)
    bad[7, column] = "much"
    with pytest.raises(InvalidInputError, match=f"column 'x{column}' holds 'much' in row 7"):
        clf.decide(bad)
    X[9, column] = np.inf
    with pytest.raises(InvalidInputError, match=f"column 'x{column}' holds inf in row 9"):
        clf.decide(X)


@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_an_evaluation_counts_what_the_decisions_say(estimator):
    clf, X, y = routed(estimator=estimator)
    result, decisions = clf.evaluate(X, y).in_use, clf.decide(X)
    right = decisions.conclusive & (decisions.label.data == y)
    assert result.branches == (3, 2, 3)
    assert result.coverage == decisions.conclusive.mean()
    assert result.accuracy == right.sum() / decisions.conclusive.sum()
    assert result.mean_cost == pytest.approx(decisions.cost.mean())
    assert sum(result.silent) == result.n_rejected == (~decisions.conclusive).sum()
    assert result.left == tuple(np.bincount(decisions.exits, minlength=8).tolist())
    margin = 1.959963984540054 * decisions.cost.std(ddof=1) / np.sqrt(len(X))
    assert np.ptp(result.interval("mean_cost")) == pytest.approx(2 * margin)


def test_the_point_in_use_alone_decides_the_same():
    clf, X, _ = routed(experts=("own", "shared", "weighted"))
    alone = clf.deployed_.in_use()
    assert len(alone.models) < len(clf.deployed_.models)
    assert_array_equal(alone.decide(X).confidence, clf.decide(X).confidence)
    frame = clf.decide(X).to_frame()
    assert frame["branch"].tolist() == clf.decide(X).branch.tolist()
    assert isinstance(frame, pd.DataFrame)


def test_another_point_may_be_put_into_use_and_back():
    clf, X, _ = routed()
    branched, n = clf.decide(X), len(clf.front_)
    clf.use(0)
    assert clf.decide(X).branch is None
    clf.use(n - 1)
    assert_array_equal(clf.decide(X).confidence, branched.confidence)


def test_another_threshold_is_that_of_every_branch():
    clf, X, _ = routed()
    deployed = clf.deployed_.with_threshold(0.7)
    decisions = deployed.decide(X)
    assert_array_equal(decisions.conclusive, decisions.confidence >= 0.7)
    assert {rule.number for rule in deployed.branched.rules} == {0.7}


def through(clf, X, i):
    """What a session says of a row, given what it asks for, with its state carried on after every answer."""
    session = clf.session()
    while isinstance(answer := session.step(), Acquire):
        session = clf.session(json.loads(json.dumps(session.state)))
        assert session.step() == answer
        session.give({name: X[name].iloc[i] for name in answer.columns})
    assert clf.session(session.state).step() == answer
    return answer


@pytest.mark.parametrize("kind", ["category", "leaning"])
@pytest.mark.parametrize("estimator", [None, DecisionTreeClassifier(max_depth=3, random_state=0)])
def test_a_session_says_what_decide_says(kind, estimator):
    X, y = sick()
    leaning = Route("leaning", -1, groups=((0,), (1,)), n_branches=2)
    rows, bars = (CHAINS, BARS) if kind == "category" else (CHAINS[:2], BARS[:2])
    clf = branching(X, y, rows, CATEGORY if kind == "category" else leaning, bars, costs=SICK, estimator=estimator)
    decisions = clf.decide(X)
    for i in range(60):
        answer = through(clf, X, i)
        assert isinstance(answer, Accept) == decisions.conclusive[i]
        assert (answer.stage, answer.branch, answer.cost, answer.confidence) == (
            decisions.stage[i], decisions.branch[i], decisions.cost[i], decisions.confidence[i],
        )  # fmt: skip
        assert (answer.label if isinstance(answer, Accept) else answer.best_guess) == decisions.label.data[i]
    assert len({*decisions.branch[:60]}) == len(rows)


def test_a_session_is_asked_for_what_its_branch_buys():
    clf, _, _ = routed()
    session = clf.session()
    assert session.step().columns == ("age", "kind")
    assert session.branch is None
    session.give({"x": 1.5, "v": 0.0})  # before it is known whether the branch wants it
    session.give({"age": 61.0, "kind": "b"})
    assert session.branch == 1
    assert not isinstance(session.step(), Acquire)  # x is known
    assert session.step().cost == 1 + 2 + 6
    other = clf.session()
    other.give({"age": None, "kind": "unseen"})
    assert other.branch == 2
    assert other.step().columns == ("u",)
    other.give({"w": 1.0})  # only other branches buy it
    assert other.step().columns == ("u",)
    with pytest.raises(SessionError, match="stage 1 has used it"):
        other.give({"kind": "a"})
    with pytest.raises(InvalidInputError, match="did you mean 'kind'"):
        clf.session().give({"kimd": "a"})


def test_the_state_of_another_route_is_refused():
    clf, X, y = routed()
    state = clf.session().state
    other = Route("category", 1, (1,), groups=(("b",), ("a",), ()), default=2, n_branches=3)
    with pytest.raises(SessionError, match="another design"):
        branching(X, y, CHAINS, other, BARS, costs=SICK).session(state)


def test_many_sessions_decide_as_rows_do():
    clf, X, _ = routed()
    X = X.head(50)
    run = clf.run(lambda i, answer: {name: X[name].iloc[i] for name in answer.columns}, range(50))
    decisions = clf.decide(X)
    assert_array_equal(run.confidence, decisions.confidence)
    assert_array_equal(run.branch, decisions.branch)
    assert_array_equal(run.bought, decisions.bought)
