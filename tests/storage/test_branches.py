"""Points that branch come back from a file, and whatever does not fit together in one is damage."""

import copy
import json

from numpy.testing import assert_array_equal
import pytest
from sklearn.tree import DecisionTreeClassifier

import emsco
from emsco import Evolution
from emsco.designs.branched import Route
from emsco.exceptions import ModelFileError
from emsco.storage.container import pack, unpack
from tests.classifiers import SICK, branching, fixed, routed, sick


@pytest.fixture(scope="module")
def small():
    return routed(experts=("own", "shared", "weighted"))


def assert_same_branches(a, b):
    for mine, theirs in zip(a.front_.branched, b.front_.branched, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert_array_equal(mine.rows, theirs.rows)
            assert mine.route.key == theirs.route.key
            assert (mine.rules, mine.experts) == (theirs.rules, theirs.experts)
            for name in ("reached", "n_conclusive", "n_correct", "paid"):
                assert_array_equal(getattr(mine.figures, name), getattr(theirs.figures, name))


def test_points_that_branch_come_back(small, tmp_path):
    clf, X, y = small
    evaluation = clf.evaluate(X, y)
    clf.save(tmp_path / "model", evaluation=evaluation)
    loaded = emsco.load(tmp_path / "model")
    assert_same_branches(clf, loaded)
    a, b = clf.decide(X), loaded.decide(X)
    assert_array_equal(a.confidence, b.confidence)
    assert_array_equal(a.bought, b.bought)
    assert loaded.evaluation_ == evaluation
    assert loaded.session(clf.session().state).step() == clf.session().step()
    assert_array_equal(loaded.front_.paid, clf.front_.paid)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()


@pytest.mark.parametrize(
    "route",
    [
        Route("cut", 2, (2,), cuts=(0.5,), n_branches=2),
        Route("largest", 2, (2, 3), n_branches=2),
        Route("pattern", 2, (2, 3), groups=(((0, 1), (1, 0)), ()), default=1, n_branches=2),
        Route("category", 2, (2,), groups=((0.0,), (1,)), n_branches=2),
        Route("leaning", -1, groups=((0,), (1,)), n_branches=2),
    ],
    ids=lambda route: route.kind,
)
def test_every_route_comes_back_with_models_of_any_kind(route, tmp_path):
    X, y = sick()
    rows = [[1, -1, 0, 0, 2, -1, -1], [-1, 1, 0, 0, -1, -1, 1]]
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    kinds = {"experts": ("own", "own"), "estimator": tree, "final_estimator": tree}
    clf = branching(X, y, rows, route, [[0.9, 0.8, 0.5], [0.7, 0.6]], costs=SICK, **kinds)
    clf.save(tmp_path / "model")
    loaded = emsco.load(tmp_path / "model")
    assert_same_branches(clf, loaded)
    assert_array_equal(loaded.decide(X).confidence, clf.decide(X).confidence)


def set_branch(path, value):
    def change(record):
        place = record["branches"][0]
        *parts, last = path
        for part in parts:
            place = place[part]
        place[last] = value

    return change


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (set_branch(["point"], 99), "branches\\[0\\].point"),
        (set_branch(["point"], 0), "are not those of its design"),
        (lambda record: record["branches"].append(copy.deepcopy(record["branches"][0])), "points that differ"),
        (set_branch(["rows", 0, 0], 1), "different units|empty"),
        (set_branch(["rows", 0, 0], "x"), "no whole number"),
        (set_branch(["rows", 1], [0, 0]), "wanted 7"),
        (set_branch(["rows"], [[0] * 7]), "two or more|a list of 1"),
        (set_branch(["rows", 0, 2], 2), "not those of its design|out of range|models|weights|figures"),
        (set_branch(["route", "kind"], "cut"), "groups and 0 cuts"),
        (set_branch(["route", "kind"], "magic"), "a route is one of"),
        (set_branch(["route", "columns"], [0]), "of another kind"),
        (set_branch(["route", "columns"], [1, 0]), "cannot read the columns"),
        (set_branch(["route", "columns"], [7]), "no whole number from 0 to 6"),
        (set_branch(["route", "unit"], 2), "does not buy"),
        (set_branch(["route", "default"], 3), "default"),
        (set_branch(["route", "groups", 0], [True]), "neither text"),
        (set_branch(["route", "groups", 0], ["b"]), "hold a value twice"),
        (set_branch(["route", "groups", 0], [3]), "by category hold"),
        (set_branch(["route", "groups", 0], []), "only the default"),
        (set_branch(["route", "groups", 0], [[0, 1]]), "by category hold"),
        (set_branch(["rules", 0], [[1.5]]), "no probabilities"),
        (set_branch(["rules", 0], []), "no probabilities"),
        (set_branch(["rules", 0], [[0.5, 0.5, 0.5]]), "no probabilities"),
        (set_branch(["rules"], [[[0.5]]]), "a list of 3"),
        (set_branch(["experts"], ["own", "shared", "mine"]), "classifiers of a branch"),
        (set_branch(["figures", "reached", 0, 0], 7), "figures of branches"),
        (set_branch(["figures", "n_conclusive", 0], 1000), "out of range"),
        (set_branch(["figures", "n_correct", 0], 1000), "out of range"),
        (set_branch(["figures", "n_conclusive"], [0, 0, 0]), "out of range|not those of their point"),
        (lambda record: record["evaluation"]["points"][-1].pop("branches"), "has no branches"),
        (lambda record: record["evaluation"]["points"][-1]["silent"].__setitem__(0, 999), "not those of the branches"),
        (lambda record: record["evaluation"]["points"][0].__setitem__("branches", [1]), "the design is a chain"),
        (lambda record: record.pop("branches"), "wanted|damaged|has no|a list of|counts"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_damage(small, tmp_path, change, says):
    clf, X, y = small
    clf.save(tmp_path / "model", evaluation=clf.evaluate(X, y))
    members = unpack((tmp_path / "model").read_bytes())
    record = json.loads(members["model.json"])
    change(record)
    (tmp_path / "model").write_bytes(pack({**members, "model.json": json.dumps(record).encode()}))
    with pytest.raises(ModelFileError, match=says):
        emsco.load(tmp_path / "model")


def test_a_file_without_branches_does_not_mention_them(small, tmp_path):
    _, X, y = small
    fixed(SICK, search=Evolution(population_size=8, max_generations=1), random_state=0).fit(X, y).save(
        tmp_path / "model"
    )
    assert b"branches" not in unpack((tmp_path / "model").read_bytes())["model.json"]
