"""Tables of many rows: a sample is searched, and all rows judge and train what it finds."""

import warnings

import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier

from emsco import EMSCOClassifier, Evolution, Guarantee, load
from emsco.data.table import Table
from emsco.fitting.large import LargeRehearsal, sample_size, sampled, widened
from emsco.fitting.rehearsal import Rehearsal
from emsco.prices.prices import resolve
from emsco.stages.recipe import Recipe


def rows(n=3_000, p=6, seed=0, **settings):
    made = {"n_informative": 4, "n_redundant": 0, "flip_y": 0.05, "class_sep": 1.5, **settings}
    return make_classification(n, p, random_state=seed, **made)


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch):
    """Some hundred rows are many."""
    monkeypatch.setattr("emsco.fitting.large.MANY", 600)
    monkeypatch.setattr("emsco.fitting.large._FEWEST", 400)
    monkeypatch.setattr("emsco.fitting.large._MANY_SEARCHED", 400)
    monkeypatch.setattr("emsco.fitting.large._MOST", 500)


def fitted(X, y, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return EMSCOClassifier([1, 2, 3, 4, 5, 6], random_state=0, **settings).fit(X, y)


def rehearsal(y, n_folds=5):
    n = y.size
    fold = np.arange(n) % n_folds
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(n_folds)]
    table = Table(np.random.default_rng(0).normal(size=(n, 2)))
    return Rehearsal(table, y, int(y.max()) + 1, resolve([1, 2], table.names), folds)


def test_a_sample_has_each_class_in_proportion_and_rare_ones_in_force(monkeypatch):
    y = np.repeat([0, 1, 2], [8_000, 1_960, 40])
    monkeypatch.setattr("emsco.fitting.large._MOST", 1_000)
    part = sampled(rehearsal(y), np.random.default_rng(0))
    chosen = np.bincount(y[part.learn])
    assert_array_equal(chosen, [800, 196, 40])
    assert_array_equal(np.sort(np.concatenate([judges for _, judges in part.folds])), part.learn)
    for train, judges in part.folds:
        assert np.intersect1d(train, judges).size == 0


def test_the_rarer_a_class_the_larger_the_sample(monkeypatch):
    monkeypatch.undo()
    assert sample_size(np.repeat([0, 1], [50_000, 50_000])) == 10_000
    assert sample_size(np.repeat([0, 1], [990_000, 10_000])) == 20_000
    assert sample_size(np.repeat([0, 1], [995_000, 5_000])) == 40_000
    assert sample_size(np.repeat([0, 1], [999_900, 100])) == 60_000


def test_all_rows_judge_and_train_final_stages():
    X, y = rows()
    clf = fitted(X, y, final_estimator="search")
    assert clf.front_.n_samples == 3_000
    assert clf.deployed_.origin.validation == 5
    assert (clf.predict(X) == y).mean() > 0.85
    whole = EMSCOClassifier(
        [1, 2, 3, 4, 5, 6],
        random_state=0,
        final_estimator="search",
        search=Evolution(population_size=40, max_generations=5),
    )
    assert whole.fit(X, y).front_.n_samples == 3_000, "a search that was asked for sees all rows"


def test_figures_are_those_of_new_rows():
    X, y = rows(6_000)
    clf = fitted(X[:4_000], y[:4_000], final_estimator="search")
    figures = clf.evaluate(X[4_000:], y[4_000:])
    point = figures.points[clf.point_]
    assert abs(point.accuracy - clf.front_.accuracy[clf.point_]) < 0.03
    assert abs(point.mean_cost - clf.front_.mean_cost[clf.point_]) < 0.5


@pytest.mark.parametrize("final", ["auto", RandomForestClassifier(10, random_state=0)])
def test_other_learners_take_two_folds(final):
    X, y = rows(900)
    clf = fitted(X, y, final_estimator=final)
    assert clf.front_.n_samples == 900
    assert (clf.predict(X) == y).mean() > 0.85


@pytest.mark.parametrize("settings", [{"threshold": 0.8}, {"threshold": Guarantee(0.8)}, {"validation": 0.3},
                                      {"choose": "combined"}, {"objectives": ["cost", "accuracy"]}])  # fmt: skip
def test_other_settings_work_with_many_rows(settings):
    X, y = rows()
    clf = fitted(X, y, final_estimator="search", **settings)
    assert clf.decide(X).conclusive.mean() > 0.5


def test_validation_rows_that_are_given_judge():
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = EMSCOClassifier([1, 2, 3, 4, 5, 6], final_estimator="search", random_state=0).fit(
            X[:2_000], y[:2_000], X_val=X[2_000:], y_val=y[2_000:]
        )
    assert clf.front_.n_samples == 1_000


def test_the_result_depends_on_the_seed_alone(tmp_path):
    X, y = rows()
    one, two = (fitted(X, y, n_jobs=n, final_estimator="search") for n in (1, 2))
    assert_array_equal(one.front_.designs, two.front_.designs)
    assert_array_equal(one.predict_proba(X), two.predict_proba(X))
    one.save(tmp_path / "model.emsco")
    assert_array_equal(load(tmp_path / "model.emsco").decide(X).cost, one.decide(X).cost)


def test_a_checkpoint_is_continued(tmp_path):
    X, y = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = lambda: EMSCOClassifier([1, 2, 3, 4, 5, 6], random_state=0, final_estimator="search")  # noqa: E731
        alone = make().fit(X, y)
        first = make().fit(X, y, checkpoint=tmp_path / "run.db")
        again = make().fit(X, y, checkpoint=tmp_path / "run.db")
    for other in (first, again):
        assert_array_equal(other.front_.designs, alone.front_.designs)
        assert_array_equal(other.predict_proba(X), alone.predict_proba(X))


def test_with_little_time_the_sample_is_all_there_is():
    X, y = rows(3_000, 6)
    clf = EMSCOClassifier([1, 2, 3, 4, 5, 6], random_state=0, time_limit=0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(X, y)
    assert clf.timed_out_
    assert clf.decide(X).conclusive.any()


def test_retraining_keeps_designs_on_many_rows():
    X, y = rows()
    clf = fitted(X, y, final_estimator="search")
    designs = clf.front_.designs.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.retrain(*rows(3_500, seed=0))
    assert_array_equal(clf.front_.designs, designs)
    assert clf.front_.n_samples == 3_500


def test_room_bounds_the_rows(monkeypatch):
    monkeypatch.setattr("emsco.fitting.large._BYTES", 4 * 2 * 500)
    monkeypatch.setattr("emsco.fitting.large._JUDGES", 100)
    y = np.random.default_rng(0).integers(0, 2, 2_000)
    everyone = rehearsal(y)
    like = sampled(everyone, np.random.default_rng(0)).problems("linear")[0][0]
    wide = widened(everyone, Recipe(), like, np.random.default_rng(0))
    assert isinstance(wide, LargeRehearsal)
    assert wide.starts[-1] == 500
    assert wide.y.size == wide.n_judges.sum() == wide.parts().size == 100
    setup = wide.prepared(Recipe(), seed=0, n_jobs=1)
    everything = np.ones((1, 2), dtype=np.bool_)
    assert setup.trainer.outcomes(everything, setup.trainer.train(everything)).confidence.shape == (1, 100)
