"""Designs that branch: where the data ask for them they are found, and elsewhere nothing changes."""

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest

from emsco import BestFirst, Branch, EMSCOClassifier, Guarantee, load
from emsco.data.encoding import Encoder
from emsco.data.table import Table
from emsco.designs.partition import acquired_sets
from emsco.exceptions import InvalidParameterError
from emsco.fitting.routes import branches_of
from emsco.prices.prices import resolve
from emsco.stages.problem import unit_membership
from emsco.storage.fields import Fields
from emsco.storage.parameters import PARAMETERS, SEARCHED, parameters_from_json, parameters_to_json

PRICES = {"kind": 1, "left": 5, "right": 5, "noise": 5}
QUICK = {
    "final_estimator": "search", "encoding": "linear", "C": 1.0, "max_stages": 4, "validation": 3,
    "search": BestFirst(max_designs=60), "random_state": 0,
}  # fmt: skip


def twofold(n=300, seed=0):
    """The kind of a row says which of two columns tells its class; by itself it says nothing."""
    rng = np.random.default_rng(seed)
    kind, y = rng.integers(2, size=(2, n))
    told = np.where(kind[:, None] == [0, 1], y[:, None], 0.5) + rng.normal(0, 0.35, (n, 2))
    frame = {"kind": np.where(kind == 0, "left", "right"), "left": told[:, 0], "right": told[:, 1]}
    return pd.DataFrame({**frame, "noise": rng.normal(size=n)}), y


def plain(n=300, seed=0):
    """One column tells the class of all rows."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    frame = {"kind": rng.choice(["left", "right"], n), "left": y + rng.normal(0, 0.7, n)}
    return pd.DataFrame({**frame, "right": rng.normal(size=n), "noise": rng.normal(size=n)}), y


@pytest.fixture(scope="module")
def chain():
    return EMSCOClassifier(PRICES, **QUICK).fit(*twofold())


@pytest.fixture(scope="module")
def branched():
    return EMSCOClassifier(PRICES, branch="auto", **QUICK).fit(*twofold())


def best_within(clf, budget, *, branches):
    front = clf.front_
    some = [i for i in range(len(front)) if not front.branched or branches or front.branched[i] is None]
    return front[some].choose(max_cost=budget, min_coverage=1, best="accuracy"), front[some]


def test_the_root_that_says_what_to_buy_is_found_although_it_says_nothing_of_the_class(branched):
    tried = branched.branches_
    assert tried[0].kept
    assert tried[0].root == ("kind",)
    assert tried[0].gain > tried[0].needed * tried[0].error
    assert not any(gain.kept for gain in tried[1:])
    assert sorted(tried[0].branches) == ["kind is left", "kind is right or anything else"] or sorted(
        tried[0].branches) == ["kind is left or anything else", "kind is right"]  # fmt: skip
    assert tried.to_frame()["kept"].tolist()[0]
    assert str(tried).startswith(f"{tried.n_screened} roots were screened, {len(tried)} of them looked at closely.")


def test_within_a_budget_branches_label_more_rows_correctly_than_chains(branched, chain):
    p, front = best_within(branched, 7, branches=True)
    q, chains = best_within(chain, 7, branches=False)
    assert front.branched[p] is not None
    assert front.accuracy[p] > chains.accuracy[q] + 0.05


def test_figures_of_a_branched_point_agree_with_each_other_and_with_its_branches(branched):
    X, _ = twofold()
    front = branched.front_
    points = [i for i in range(len(front)) if front.branched and front.branched[i] is not None]
    assert points
    for point in points[:: max(len(points) // 6, 1)]:
        design = front.branched[point]
        figures = design.figures
        prices = resolve(PRICES, list(X))
        assert figures.n_samples == len(X) == front.n_samples
        assert front.confusion[point].sum() == len(X)
        assert figures.n_conclusive.sum() == front.confusion[point][:, :-1].sum() == front.n_conclusive[point]
        assert figures.n_correct.sum() == np.trace(front.confusion[point]) == front.n_correct[point]
        table = Table(X)
        way = branches_of(design.route, table)
        assert figures.reached[:, 0].tolist() == np.bincount(way, minlength=design.n_branches).tolist()
        ticks = [prices.stage_ticks(acquired_sets(row[None])[0])[0] for row in design.rows]
        paid = sum((n[: t.size] * t).sum() for n, t in zip(figures.reached, ticks, strict=True))
        assert front.mean_cost[point] == pytest.approx(paid / prices.scale / len(X))
        assert_array_equal(front.designs[point], design.summary)
        design.check(prices.unit_columns)


def test_every_stage_of_a_branch_has_a_model_and_own_ones_know_their_rows_alone(branched):
    deployed, front = branched.deployed_, branched.front_
    X, y = twofold()
    table = Table(X)
    encoder = Encoder(table, slice(None))
    Z, membership = encoder.encode(table, slice(None)), unit_membership(encoder, deployed.prices)
    kinds = set()
    for design in filter(None, front.branched):
        way = branches_of(design.route, table)
        for b, row in enumerate(design.rows):
            for key, units in zip(design.keys(b), acquired_sets(row[None])[0][0], strict=True):
                columns = membership[units].any(axis=0)
                probabilities = deployed.models[key].predict_proba(Z[columns][:, way == b].T)
                assert probabilities.shape == ((way == b).sum(), 2)
                if design.experts[b] == "own" and key != design.keys(b)[0]:
                    # without a penalty on the intercept, mean probabilities are the shares of the rows that train
                    kinds.add("own")
                    assert probabilities[:, 1].mean() == pytest.approx(y[way == b].mean(), abs=1e-3)
    assert kinds == {"own"} or all("own" not in design.experts for design in filter(None, front.branched))


def test_chains_of_a_front_with_branches_are_those_without(branched, chain):
    known = {(*d, *t) for d, t in zip(chain.front_.designs.tolist(), chain.front_.thresholds.tolist(), strict=True)}
    front = branched.front_
    chains = [i for i in range(len(front)) if front.branched[i] is None]
    assert {(*front.designs[i].tolist(), *front.thresholds[i].tolist()) for i in chains} <= known
    assert_array_equal(branched.design_, chain.design_)  # the default choice is a chain
    assert branched.outlook_ == chain.outlook_


def test_nothing_is_dominated_but_the_default_choice(branched):
    front = branched.front_
    values = np.column_stack([-front.n_conclusive, -np.nan_to_num(front.accuracy), front.mean_cost])
    for i in range(len(front)):
        no_worse = (values <= values[i] + 1e-12).all(axis=1)
        assert i == branched.point_ or not (no_worse & (values < values[i] - 1e-12).any(axis=1)).any()


def test_where_no_root_helps_the_front_is_that_of_chains():
    X, y = plain()
    auto = EMSCOClassifier(PRICES, branch="auto", **QUICK).fit(X, y)
    chains = EMSCOClassifier(PRICES, **QUICK).fit(X, y)
    assert not any(gain.kept for gain in auto.branches_)
    assert auto.branches_.n_screened > 0
    assert auto.front_.branched == ()
    assert_array_equal(auto.front_.values, chains.front_.values)
    assert_array_equal(auto.front_.designs, chains.front_.designs)


def test_roots_and_ways_can_be_asked_for():
    X, y = twofold()
    asked = Branch(on=["kind", "noise"], by="kind", experts="weighted")
    clf = EMSCOClassifier(PRICES, branch=asked, **QUICK).fit(X, y)
    assert [gain.root for gain in clf.branches_] == [("kind", "noise")]
    assert {kind for design in filter(None, clf.front_.branched) for kind in design.experts} <= {"weighted"}
    lean = EMSCOClassifier(PRICES, branch=Branch(on="left", by="leaning", min_rows=20), **QUICK).fit(X, y)
    assert [gain.branches for gain in lean.branches_] in (
        [("the root leans to 0", "the root leans to 1")], [("the root leans to 1", "the root leans to 0")])  # fmt: skip


def test_the_same_seed_gives_the_same_branches(branched):
    again = EMSCOClassifier(PRICES, branch="auto", **QUICK).fit(*twofold())
    assert_array_equal(again.front_.values, branched.front_.values)
    assert again.branches_ == branched.branches_
    designs = zip(filter(None, again.front_.branched), filter(None, branched.front_.branched), strict=True)
    assert all((one.rows == other.rows).all() and one.rules == other.rules for one, other in designs)


def test_without_thresholds_of_their_own_no_branches_are_looked_for_and_it_is_said():
    X, y = twofold()
    for threshold in (0.8, Guarantee(0.7, confidence=0.8)):
        clf = EMSCOClassifier(PRICES, branch="auto", threshold=threshold, **QUICK).fit(X, y)
        assert len(clf.branches_) == 0
        assert 'threshold="auto"' in str(clf.branches_)
        assert clf.front_.branched == ()


def test_a_branch_says_what_is_wrong_with_it():
    X, y = twofold()
    wrong = {
        "must be None, 'auto' or emsco.Branch": "yes",
        "there is no unit 'kinds'": Branch(on="kinds"),
        "on must be the name of a unit": Branch(on=3),
        "by must be the name of a unit": Branch(by=3),
        "min_rows must be a whole number": Branch(min_rows=1),
        "experts must be one of": Branch(experts="mine"),
    }
    for words, branch in wrong.items():
        with pytest.raises(InvalidParameterError, match=words):
            EMSCOClassifier(PRICES, branch=branch, **QUICK).fit(X, y)


def test_without_branches_there_is_nothing_to_tell(chain):
    assert len(chain.branches_) == 0
    assert chain.front_.branched == ()


def test_a_branched_point_decides_new_rows_better_than_a_chain_and_survives_a_file(branched, chain, tmp_path):
    X, y = twofold(1_000, seed=1)
    clf = EMSCOClassifier.from_deployed(branched.deployed_)
    p = clf.front_.choose(max_cost=7, min_coverage=1, best="accuracy")
    assert clf.front_.branched[p] is not None
    decided = clf.use(p).decide(X)
    q = chain.front_.choose(max_cost=7, min_coverage=1, best="accuracy")
    other = EMSCOClassifier.from_deployed(chain.deployed_).use(q).decide(X)
    assert (decided.label.data == y).mean() > (other.label.data == y).mean() + 0.05
    clf.save(tmp_path / "m.emsco")
    again = load(tmp_path / "m.emsco")
    assert again.branch == "auto"
    assert len(again.branches_) == 0  # not stored
    assert_array_equal(again.decide(X).label, decided.label)
    assert_array_equal(again.decide(X).cost, decided.cost)
    asked = Branch(on=["kind"], by="leaning", min_rows=50, experts="own")
    known = parameters_from_json(Fields(parameters_to_json({"branch": asked}), "parameters"), PARAMETERS[SEARCHED])
    assert known["branch"] == Branch(on=["kind"], by="leaning", min_rows=50, experts="own")
    assert "branch" not in parameters_to_json({"branch": None})  # files of chains are as they were
