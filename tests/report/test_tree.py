"""Designs that branch in tables, records and on the page: the counts are those of the decisions."""

from dataclasses import replace

import numpy as np
import pytest

from emsco.exceptions import InvalidInputError
from emsco.report import console
from emsco.report.html import render_report
from emsco.report.records import facts_record, point_record
from emsco.report.summary import stage_flow, summarise, threshold_sweep
from emsco.report.tree import tree_record
from tests.classifiers import routed


@pytest.fixture(scope="module")
def small():
    return routed()


def test_the_counts_of_a_tree_are_those_of_the_decisions(small):
    clf, X, y = small
    evaluation, decisions = clf.evaluate(X, y), clf.decide(X)
    right = decisions.conclusive & (decisions.label.data == y)
    tree = tree_record(clf.deployed_, clf.point_, evaluation.in_use)
    assert tree["root"]["reached"] == tree["rows"] == len(X)
    for b, branch in enumerate(tree["branches"]):
        here = decisions.branch == b
        assert branch["n_rows"] == here.sum()
        assert branch["rejected"] == (here & ~decisions.conclusive).sum()
        for j, stage in enumerate(branch["stages"], start=1):
            assert stage["reached"] == (here & (decisions.stage >= j)).sum()
            assert stage["answered"] == (here & (decisions.stage == j) & decisions.conclusive).sum()
            assert stage["right"] == (here & (decisions.stage == j) & right).sum()
    assert [branch["words"] for branch in tree["branches"]] == ["kind is a", "kind is b", "kind is anything else"]
    assert tree["branches"][0]["stages"][1]["paid"] == 3 + 5 + 4
    same = tree_record(clf.deployed_, clf.point_)  # the validation rows of the tests are these rows
    assert [branch["n_rows"] for branch in same["branches"]] == [branch["n_rows"] for branch in tree["branches"]]
    assert tree_record(clf.deployed_, 0) is None


def test_without_counts_a_tree_has_prices_alone(small):
    clf, _, _ = small
    model = clf.deployed_
    unknown = tuple(None if each is None else replace(each, figures=None) for each in model.branches)
    tree = tree_record(replace(model, branches=unknown), clf.point_)
    assert tree["rows"] is None
    assert tree["branches"][1]["stages"] == [{"buys": ["x"], "price": 6.0, "paid": 9.0}]


def test_the_summary_has_the_tree_and_figures_of_all_branches(small):
    clf, X, y = small
    evaluation, decisions = clf.evaluate(X, y), clf.decide(X)
    summary = summarise(clf.deployed_, evaluation=evaluation)
    point = summary["points"][clf.point_]
    counts = np.bincount(decisions.stage[decisions.conclusive], minlength=3).tolist()
    assert point["test"]["answered"] == point["validation"]["answered"] == counts
    assert point["test"]["rejected"] == (~decisions.conclusive).sum()
    assert point["price"] == [3.0, 3.0, 7.0]  # the dearest branch
    assert set(point["tree"]) == {"test", "validation"}
    assert "tree" not in summary["points"][0]
    assert '"words":"kind is a"' in render_report(clf, evaluation=evaluation)


def test_tables_in_the_terminal_say_what_each_branch_buys(small, capsys):
    clf, X, y = small
    console.print_stages(clf.deployed_, clf.evaluate(X, y))
    console.print_threshold(clf.deployed_)
    said = " ".join(capsys.readouterr().out.split())
    assert "[1] if kind is a:" in said
    assert "[3] if kind is anything else:" in said
    assert "[2] early exit at 90 % confidence; all others get a label" in said
    assert point_record(clf.deployed_, clf.point_)["tree"]["branches"][2]["words"] == "kind is anything else"
    assert facts_record(clf.deployed_)["stages"]["root"]["buys"] == ["age", "kind"]


def test_what_is_not_there_yet_is_said(small):
    clf, X, y = small
    with pytest.raises(InvalidInputError, match="branches, and there is no flow by stage"):
        stage_flow(clf.deployed_, X)
    with pytest.raises(InvalidInputError, match="no sweep of thresholds"):
        threshold_sweep(clf.deployed_, X, y, [0.5])
    with pytest.raises(InvalidInputError, match="cannot be retrained yet"):
        clf.retrain(X, y)
