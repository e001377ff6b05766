from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris

from emsco import Evaluation, Guarantee, MultiStageClassifier
from emsco.deployed.evaluation import Result
from emsco.designs.partition import compress, stage_counts
from emsco.exceptions import FileError
from emsco.report.html import render_page, render_report, write_report
from emsco.report.summary import summarise
from emsco.scoring.cascade import Tally
from emsco.scoring.front import make_front

HOSTILE = "</script><img src=x onerror=alert(1)>&\u2028"


class Page(HTMLParser):
    """Tags with their attributes, and the text inside scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside = [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.cdata_elem:  # within a script or a style
            tag, attributes = self.tags[-1]
            key = attributes.get("id", tag)
            self.inside[key] = self.inside.get(key, "") + data

    @property
    def data(self):
        return json.loads(self.inside["data"])


class EveryModel(dict):
    """Any set of units has the same model: the report looks at none."""

    def __missing__(self, key):
        return next(iter(self.values()))


def test_the_page_carries_the_summary(fitted, evaluation, tmp_path):
    notes = {"data": "heart", "seed": 0}
    write_report(fitted, tmp_path / "report.html", evaluation=evaluation, notes=notes)
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert text == render_report(fitted, evaluation=evaluation, notes=notes)
    assert Page(text).data == summarise(fitted, evaluation=evaluation, notes=notes)


def test_it_asks_for_nothing_from_outside(fitted, evaluation):
    page = Page(render_report(fitted, evaluation=evaluation))
    addresses = [value for _, attributes in page.tags for name, value in attributes.items() if name in ("src", "href")]
    assert addresses == ["data:,"]
    assert "url(" not in page.inside["style"]
    assert "@import" not in page.inside["style"]
    assert not re.search(
        r"fetch\(|XMLHttpRequest|innerHTML|insertAdjacent|document\.write|eval\(", page.inside["script"]
    )


def test_the_policy_allows_the_pages_own_script_and_style_alone(fitted):
    page = Page(render_report(fitted))
    (policy,) = [a["content"] for tag, a in page.tags if a.get("http-equiv") == "Content-Security-Policy"]
    for name in ("script", "style"):
        digest = b64encode(sha256(page.inside[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy


def test_hostile_names_stay_text():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=[HOSTILE, "{{script}}"])
    y = np.where(X[HOSTILE] > 0, "<b>ill</b>", "\u2029well")
    clf = MultiStageClassifier().fit(X, y)
    text = render_report(clf, evaluation=clf.evaluate(X, y), notes={HOSTILE: "</dd><script>alert(1)</script>"})
    page = Page(text)
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert not any(tag in ("img", "b", "dd") for tag, _ in page.tags)
    assert not re.search("[<>&\u2028]", page.inside["data"])
    assert [unit["name"] for unit in page.data["units"]] == [HOSTILE, "{{script}}"]
    assert page.data["classes"] == ["<b>ill</b>", "\u2029well"]
    assert page.data["notes"] == {HOSTILE: "</dd><script>alert(1)</script>"}


def test_a_front_of_500_points_and_60_features_stays_small():
    rng = np.random.default_rng(0)
    n_points, n_features, n_rows = 500, 60, 5000
    names = [f"laboratory_measurement_{i}" for i in range(n_features)]
    X = pd.DataFrame(rng.normal(size=(50, n_features)), columns=names)
    clf = MultiStageClassifier(costs=rng.uniform(1, 200, n_features).round(2)).fit(X, X.iloc[:, 0] > 0)
    designs = compress(rng.integers(0, 30, size=(n_points, n_features)))
    depth = stage_counts(designs)
    reached = np.sort(rng.integers(1000, n_rows, size=(n_points, int(depth.max()))), axis=1)[:, ::-1].copy()
    reached[:, 0] = n_rows
    n_conclusive = rng.integers(n_rows - 900, n_rows, n_points)
    tally = Tally(n_rows, reached, n_conclusive, n_conclusive - 100, rng.integers(1, 10**8, n_points), 100.0, 1.0)
    clf.front_ = make_front(designs, tally, np.ones(n_points, dtype=np.int64), [()] * n_points, clf._prices)
    clf.point_, clf._models, clf._designs = 0, EveryModel(clf._models), lambda: clf.front_.designs
    results = tuple(
        Result((100,) * n, (90,) * n, 1000, (1234.56,) * n, ((2000, 100, 500), (200, 1700, 500)))
        for n in stage_counts(clf.front_.designs).tolist()
    )
    text = render_report(clf, evaluation=Evaluation(results, results[0], results[1], (False, True)))
    assert len(Page(text).data["points"]) == 500
    assert len(text.encode()) < 2_000_000


def test_the_page_of_the_same_summary_is_the_same(fitted):
    summary = summarise(fitted)
    assert render_page(summary) == render_page(summary)
    assert render_page(summary).count("{{") == 0


def test_the_page_says_what_is_promised_and_which_thresholds_differ():
    X, y = load_iris(return_X_y=True)
    page = render_report(MultiStageClassifier([0, 0, 1, 1], threshold={0: 0.9, 1: 0.6, 2: 0.7}).fit(X, y))
    assert "90 % (0), 60 % (1), 70 % (2)" in page
    clf = MultiStageClassifier([0, 0, 1, 1], threshold=Guarantee(0.7, 0.9), random_state=0).fit(X, y)
    page = render_report(clf)
    for line in str(clf.guarantee_).splitlines():
        assert line in page


def test_a_page_is_replaced_whole_or_not_at_all(fitted, tmp_path, monkeypatch):
    page = tmp_path / "report.html"
    page.write_text("the old page")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match="No space left on device"):
        write_report(fitted, page)
    assert page.read_text() == "the old page"
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
