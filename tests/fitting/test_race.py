"""The race of final learners: who wins, and that a winner is deployed, saved and loaded as any other."""

from dataclasses import replace
import warnings

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.tree import DecisionTreeClassifier

import emsco
from emsco import BestFirst, EMSCOClassifier
from emsco.data.splits import make_folds
from emsco.fitting import pipeline
from emsco.fitting import race as racing
from emsco.fitting.race import Quick, affordable_sets, race
from emsco.fitting.rehearsal import Rehearsal
from emsco.stages.base import StageOutcomes
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.learners import BOOSTED, boosted
from emsco.stages.recipe import Recipe
from tests.fitting.test_rehearsal import rehearse
from tests.strategies import seeds

SMALL = BestFirst(max_designs=30)


def crossed(n=400, seed=0):
    """The class is seen by two columns together, and by none alone."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, ((X[:, 0] > 0) ^ (X[:, 1] > 0)).astype(int)


def straight(n=400, seed=0):
    """A logistic model is true."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (rng.random(n) < 1 / (1 + np.exp(-2 * X @ [1, 1, 0.5, 0]))).astype(int)


def rehearsed(X, y, n_folds=3):
    return rehearse(X, y, make_folds(n_folds, y, np.arange(int(y.max()) + 1), np.random.default_rng(0)))


FEW = rehearsed(*straight(60))


@pytest.fixture(params=["LightGBM", "scikit-learn"])
def package(request, monkeypatch):
    """What the boosted trees are of; without LightGBM they are scikit-learn's."""
    if request.param == "scikit-learn":
        monkeypatch.setattr("emsco.stages.learners.find_spec", lambda name: None)
        return "HistGradientBoostingClassifier"
    pytest.importorskip("lightgbm")
    return "LGBMClassifier"


def test_boosted_trees_win_where_features_interact_and_logistic_stages_where_they_add_up(package):
    first, *others = race(rehearsed(*crossed()), Recipe(encoding="spline"), tunes=True, seed=0, n_jobs=1)
    assert first.name in BOOSTED
    assert {entry.name for entry in (first, *others)} == {"logistic", *BOOSTED}
    assert type(first.recipe.estimator).__name__ == package
    searched = Recipe()
    first, *_ = race(rehearsed(*straight()), searched, tunes=True, seed=0, n_jobs=1)
    assert (first.name, first.recipe) == ("logistic", searched)


def test_the_race_ends_alike_with_any_number_of_workers():
    one, two = (race(rehearsed(*crossed(200)), Recipe(), tunes=False, seed=0, n_jobs=n) for n in (1, 2))
    assert [(entry.name, entry.log_likelihood) for entry in one] == [(e.name, e.log_likelihood) for e in two]


def raced(rows, n_judges):
    """Return the entries of a race in which learners reach these likelihoods on three folds, and what was asked."""
    asked = []

    def reached(rehearsal, recipe, tunes, *, n_folds=None, **options):
        name = recipe.kind or "logistic"
        asked.append((name, n_folds))
        return rows[name][: n_judges if n_folds else None]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(racing, "_rows", reached)
        return race(FEW, Recipe(), tunes=True, seed=0, n_jobs=1), asked


@settings(max_examples=60)
@given(seeds(), st.floats(-0.2, 0.4))
def test_boosted_trees_must_lead_by_half_a_paired_standard_error(seed, shift):
    rng = np.random.default_rng(seed)
    logistic = rng.normal(size=50)
    rows = {"logistic": logistic, **{kind: logistic + rng.normal(shift, 1, size=50) for kind in BOOSTED}}
    (first, *others), _ = raced(rows, 50)
    best = max(BOOSTED, key=lambda kind: rows[kind].mean())
    lead = rows[best] - logistic
    won = lead.mean() > 0.5 * lead.std() / np.sqrt(50)
    assert first.name == (best if won else "logistic")
    assert len(others) == len(BOOSTED)


@settings(max_examples=60)
@given(seeds(), st.floats(-0.4, 0.4))
def test_who_is_clearly_behind_after_two_folds_races_no_further(seed, shift):
    rng = np.random.default_rng(seed)
    logistic = rng.normal(size=60)
    rows = {"logistic": logistic, **{kind: logistic + rng.normal(shift, 1, size=60) for kind in BOOSTED}}
    (first, *_), asked = raced(rows, 40)
    best = max(rows, key=lambda name: rows[name][:40].mean())
    leads = {name: rows[best][:40] - rows[name][:40] for name in rows}
    behind = {name for name, lead in leads.items() if lead.mean() > 2 * lead.std() / np.sqrt(40)}
    assert {name for name, n_folds in asked if n_folds} == set(rows)
    again = {name for name, n_folds in asked if n_folds is None}
    assert again == (set(rows) - behind if len(behind) < len(BOOSTED) else set())
    assert first.name not in behind


def test_final_stages_know_what_the_race_was_told(package):
    rehearsal = rehearsed(*crossed(200))
    first, *_ = race(rehearsal, Recipe(), tunes=True, seed=0, n_jobs=1)
    assert first.name in BOOSTED
    everything = np.ones((1, rehearsal.prices.n_units), dtype=bool)
    trained = []
    judging = EstimatorTrainer.judging
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(EstimatorTrainer, "judging", lambda self, sets: trained.append(len(sets)) or judging(self, sets))
        known = rehearsal.prepared(first.recipe, seed=0, n_jobs=1).trainer.train(everything)
    assert trained[:2] == [0, 0]
    fresh = rehearsed(*crossed(200)).prepared(first.recipe, seed=0, n_jobs=1).trainer.train(everything)
    assert (known == fresh).all()


@pytest.mark.parametrize("tunes", [True, False])
def test_confidences_that_are_too_high_lose_the_race_only_where_thresholds_are_given(tunes, monkeypatch):
    rng = np.random.default_rng(0)
    margin, y = rng.normal(scale=2, size=2000), rng.random(2000)
    y = (y < 1 / (1 + np.exp(-margin))).astype(int)

    class Says:
        """A learner whose confidences follow from a margin."""

        def __init__(self, margin):
            chance = 1 / (1 + np.exp(-margin))
            self.said = StageOutcomes(np.maximum(chance, 1 - chance)[None], (chance > 0.5).astype(np.uint8)[None])

        def train(self, sets):
            return None

        def outcomes(self, sets, memory):
            return self.said

    # The boosted trees are right more often, and three times as sure as they may be.
    sharper = 3 * (margin + np.where(y == 1, 0.3, -0.3))
    says = {True: Says(margin), False: Says(sharper)}
    monkeypatch.setattr(Rehearsal, "crossed", lambda self, recipe, **_: says[recipe.kind is None])
    rehearsal = rehearsed(*straight(60))
    monkeypatch.setattr(type(rehearsal), "y", property(lambda self: y))
    first, *_ = race(rehearsal, Recipe(), tunes=tunes, seed=0, n_jobs=1)
    assert (first.name in BOOSTED) == tunes


def test_fewer_trees_learn_more_each():
    whole, part = boosted("light"), boosted("light", share=0.25)
    trees, rate = ("n_estimators" if hasattr(whole, "n_estimators") else "max_iter"), "learning_rate"
    assert getattr(part, trees) == getattr(whole, trees) / 4
    assert getattr(part, rate) == pytest.approx(4 * getattr(whole, rate))


def test_the_number_of_affordable_sets_is_counted_and_falls_with_rows_classes_and_folds():
    few = rehearsed(*crossed(60))
    X, y = crossed(60)
    large = replace(few, codes=np.tile(y, 10_000))
    numbers = [
        affordable_sets(few, "light"),
        affordable_sets(rehearsed(X, y, n_folds=5), "deep"),
        affordable_sets(rehearsed(X, np.arange(60) % 3, n_folds=5), "deep"),
        affordable_sets(large, "light"),
    ]
    assert numbers == [60, 50, 16, 12]


def test_what_is_asked_quickly_is_trained_once_and_finds_what_matters():
    X, y = crossed()
    quick = Quick(rehearsed(X, y), "deep", 30, seed=0, n_jobs=1)
    asked = []
    train = quick._trainer.train
    quick._trainer.train = lambda sets: asked.append(len(sets)) or train(sets)
    sets = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 1, 1]], dtype=bool)
    sure = quick(sets)
    assert sure.argmax() == 0
    assert_array_equal(quick(sets[::-1]), sure[::-1])
    assert asked == [3]


def test_boosted_stages_are_deployed_saved_and_loaded_to_the_bit(package, tmp_path):
    X, y = crossed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf = EMSCOClassifier([1, 2, 3, 4], search=SMALL, validation=3, random_state=0).fit(X[:300], y[:300])
        decisions = clf.decide(X[300:])
    assert clf.learner_ in BOOSTED
    assert {type(stage.model).__name__ for stage in clf.stages_} == {package}
    assert (decisions.label == y[300:]).mean() > 0.85
    assert (clf.design_[:2] >= 0).all()
    clf.save(tmp_path / "m.emsco")
    again = emsco.load(tmp_path / "m.emsco")
    assert again.learner_ == clf.learner_
    assert again.front_.outlook == clf.front_.outlook
    assert again.front_.margin == clf.front_.margin
    for name in ("against", "confusion", "thresholds"):
        assert_array_equal(getattr(again.front_, name), getattr(clf.front_, name))
    for point in (clf.point_, 0, len(clf.front_) - 1):
        one, other = clf.use(point).decide(X), again.use(point).decide(X)
        for name in ("label", "confidence", "stage", "cost", "conclusive"):
            assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize(
    ("settings", "learner"),
    [
        ({"final_estimator": "search"}, "logistic"),
        ({"preset": "paper"}, "logistic"),
        ({"calibration": "sigmoid"}, "logistic"),
        ({"estimator": DecisionTreeClassifier(max_depth=2)}, "given"),
        ({"final_estimator": DecisionTreeClassifier(max_depth=2)}, "given"),
    ],
)
def test_there_is_no_race_where_the_learner_is_settled(settings, learner, monkeypatch):
    monkeypatch.setattr(pipeline, "race", lambda *_, **__: pytest.fail("there was a race"))
    X, y = crossed(120)
    clf = EMSCOClassifier(search=SMALL, validation=3, random_state=0, max_stages=2).set_params(**settings)
    assert clf.fit(X, y).learner_ == learner
