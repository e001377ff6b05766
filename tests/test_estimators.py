import pickle
import warnings

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from emsco import BestFirst, EMSCOClassifier, Evolution, MultiStageClassifier, Prices, load
from emsco.exceptions import InvalidParameterError, RareClassWarning, SearchInterruptedWarning
from emsco.scoring.choice import no_worse
from emsco.scoring.rejection import rule_of
from emsco.stages.learners import BOOSTED
from tests.classifiers import fixed

QUICK = Evolution(population_size=30, max_generations=10)


def patients(n=240, seed=0):
    """A mixed table: numbers, whole numbers, booleans, text, and missing values in two columns."""
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "age": (60 + 10 * risk + rng.normal(scale=8, size=n)).round(),
            "smokes": rng.random(n) < 1 / (1 + np.exp(-risk)),
            "ward": np.where(risk + rng.normal(size=n) > 0.5, "intensive", np.where(rng.random(n) < 0.5, "a", "b")),
            "sodium": risk + rng.normal(scale=0.7, size=n),
            "creatinine": np.exp(0.5 * risk + rng.normal(scale=0.5, size=n)),
            "visits": rng.poisson(2, size=n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "sodium"] = np.nan
    frame.loc[rng.random(n) < 0.1, "ward"] = None
    y = np.where(risk + rng.normal(scale=0.5, size=n) > 0, "dies", "lives")
    return frame, y


PANEL = Prices(
    units={"blood panel": ["sodium", "creatinine"]},
    price={"age": 1, "smokes": 1, "ward": 2, "blood panel": 40, "visits": 0},
)


@pytest.fixture(scope="module")
def fitted():
    X, y = patients()
    return fixed(PANEL, threshold=0.8, search=QUICK, random_state=0, preset="paper").fit(X, y)


def test_the_front_is_what_decide_does_on_the_validation_rows():
    X, y = patients()
    X_val, y_val = patients(150, seed=1)
    clf = fixed(PANEL, threshold=0.8, search=QUICK, random_state=0, preset="paper").fit(X, y, X_val=X_val, y_val=y_val)
    assert len(clf.front_) > 3
    for i, point in enumerate(clf.front_):
        d = clf.use(i).decide(X_val)
        assert_array_equal(clf.design_, point.design)
        assert d.conclusive.mean() == point.coverage
        if point.coverage:
            assert (d.label == y_val).sum() / d.conclusive.sum() == point.accuracy
        assert d.cost.mean() == pytest.approx(point.mean_cost, rel=1e-12)


def test_the_front_is_sorted_by_fitness_and_not_dominated(fitted):
    front = fitted.front_
    assert (np.diff(front.fitness) <= 0).all()
    for a in front:
        for b in front:
            no_worse = b.coverage >= a.coverage and b.accuracy >= a.accuracy and b.mean_cost <= a.mean_cost
            same = (b.coverage, b.accuracy, b.mean_cost) == (a.coverage, a.accuracy, a.mean_cost)
            assert same or not no_worse


def test_a_panel_is_bought_at_once_for_one_price(fitted):
    assert fitted.front_.feature_names == ("age", "smokes", "ward", "blood panel", "visits")
    for i in range(len(fitted.front_)):
        bought = [stage for stage in fitted.use(i).stages_ if "blood panel" in stage.features]
        assert len(bought) == 1
        assert {3, 4} <= set(bought[0].new_columns)
        assert sum(stage.price for stage in fitted.stages_) == 44


def test_use_switches_and_the_fittest_comes_first(fitted):
    X, _ = patients(50, seed=2)
    last = len(fitted.front_) - 1
    a = fitted.use(0).decide(X)
    assert fitted.use(last).point_ == last
    b = fitted.decide(X)
    assert not np.array_equal(a.cost, b.cost)
    assert_array_equal(fitted.use(0).decide(X).cost, a.cost)
    for wrong in (last + 1, -1, 1.0, True, "best"):
        with pytest.raises(InvalidParameterError, match="must be one of the points 0 to"):
            fitted.use(wrong)


def test_choose_may_be_a_function_of_the_front():
    X, y = patients()
    clf = fixed(PANEL, search=QUICK, random_state=0, choose=lambda f: f.mean_cost.argmin()).fit(X, y)
    assert clf.front_.mean_cost[clf.point_] == clf.front_.mean_cost.min()


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_results_do_not_depend_on_the_number_of_workers(n_jobs):
    X, y = patients()
    one = fixed(PANEL, search=QUICK, random_state=7, n_jobs=1).fit(X, y)
    many = fixed(PANEL, search=QUICK, random_state=7, n_jobs=n_jobs).fit(X, y)
    assert_array_equal(one.front_.designs, many.front_.designs)
    assert_array_equal(one.predict_proba(X), many.predict_proba(X))


def test_results_depend_on_the_seed_and_on_nothing_else():
    X, y = patients()
    a, b, c = (fixed(PANEL, search=QUICK, random_state=s, preset="paper").fit(X, y) for s in (1, 1, 2))
    assert_array_equal(a.front_.designs, b.front_.designs)
    assert a.front_.coverage.tolist() != c.front_.coverage.tolist()


def test_a_small_cache_gives_the_same_front():
    X, y = patients()
    plenty = fixed(PANEL, search=QUICK, random_state=7, preset="paper").fit(X, y)
    tight = fixed(PANEL, search=QUICK, random_state=7, cache_bytes=6000, preset="paper").fit(X, y)
    assert tight.n_feature_sets_ > plenty.n_feature_sets_
    assert_array_equal(plenty.front_.designs, tight.front_.designs)


@pytest.mark.parametrize(
    "estimator",
    [RandomForestClassifier(n_estimators=4), make_pipeline(StandardScaler(), LogisticRegression())],
)
def test_any_classifier_with_probabilities_is_a_stage(estimator):
    X, y = patients()
    X_val, y_val = patients(80, seed=1)
    clf = fixed(
        PANEL,
        estimator=estimator,
        search=Evolution(population_size=8, max_generations=2),
        random_state=0,
        n_jobs=2,
        preset="paper",
    ).fit(X, y, X_val=X_val, y_val=y_val)
    assert type(clf.stages_[0].model) is type(estimator)
    for i in range(len(clf.front_)):
        d = clf.use(i).decide(X_val)
        assert d.conclusive.mean() == clf.front_.coverage[i]
        assert d.cost.mean() == pytest.approx(clf.front_.mean_cost[i])


def test_the_default_stage_is_scikit_learns_logistic_regression():
    X = patients()[0][["age", "creatinine", "visits"]]
    y = patients()[1]
    search = Evolution(population_size=20, max_generations=4)
    ours = fixed(search=search, random_state=0, preset="paper").fit(X, y)
    theirs = fixed(
        estimator=LogisticRegression(solver="newton-cholesky", tol=1e-10), search=search, random_state=0, preset="paper"
    ).fit(X, y)
    assert_array_equal(ours.front_.designs, theirs.front_.designs)
    assert_array_equal(ours.front_.accuracy, theirs.front_.accuracy)


def test_refit_trains_the_deployed_stages_on_all_rows():
    X, y = patients()
    clf = fixed(PANEL, search=QUICK, refit=True, random_state=0, preset="paper").fit(X, y)
    plain = fixed(PANEL, search=QUICK, random_state=0, preset="paper").fit(X, y)
    assert_array_equal(clf.front_.designs, plain.front_.designs)
    same = MultiStageClassifier(clf.design_, PANEL, encoding="raw").fit(X, y)
    assert_array_equal(clf.predict_proba(X), same.predict_proba(X))
    X_val, y_val = patients(80, seed=1)
    clf = fixed(PANEL, search=QUICK, refit=True, random_state=0, preset="paper").fit(X, y, X_val=X_val, y_val=y_val)
    both = pd.concat([X, X_val]), np.concatenate([y, y_val])
    same = MultiStageClassifier(clf.design_, PANEL, encoding="raw").fit(*both)
    assert_array_equal(clf.predict_proba(X), same.predict_proba(X))


def test_predict_agrees_with_decide_and_always_answers(fitted):
    X, y = patients(100, seed=3)
    d = fitted.use(0).decide(X)
    predicted = fitted.predict(X)
    assert predicted.shape == (100,)
    assert set(predicted) <= {"dies", "lives"}
    assert_array_equal(predicted[d.conclusive], d.label.compressed())
    assert_array_equal(predicted, d.label.data)
    assert_array_equal(fitted.predict_proba(X).max(axis=1), d.confidence)
    assert (d.label.mask == ~d.conclusive).all()
    assert fitted.score(X, y) > 0.6


def test_a_lower_threshold_needs_no_new_fit(fitted):
    X, _ = patients(100, seed=3)
    strict = clone_fitted(fitted)
    strict.threshold = 0.95
    assert strict.decide(X).conclusive.mean() < fitted.use(0).decide(X).conclusive.mean()


def clone_fitted(clf):
    return pickle.loads(pickle.dumps(clf))


def test_it_survives_pickling_with_its_whole_front(fitted):
    X, _ = patients(60, seed=3)
    copy = clone_fitted(fitted)
    for i in (0, len(fitted.front_) - 1):
        assert_array_equal(copy.use(i).decide(X).confidence, fitted.use(i).decide(X).confidence)


def test_pandas_polars_and_other_column_orders_are_the_same_table(fitted):
    X, _ = patients(60, seed=3)
    fitted.use(0)
    expected = fitted.decide(X)
    assert_array_equal(fitted.decide(X[X.columns[::-1]]).confidence, expected.confidence)
    assert_array_equal(fitted.decide(pl.from_pandas(X)).confidence, expected.confidence)
    train, labels = patients()
    polars = fixed(PANEL, threshold=0.8, search=QUICK, random_state=0, preset="paper").fit(
        pl.from_pandas(train), labels
    )
    assert_array_equal(polars.front_.designs, fitted.front_.designs)
    assert_array_equal(polars.decide(X).confidence, expected.confidence)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [([0, 1], "i"), ([True, False], "b"), (["a", "b", "c"], "U"), ([2.0, 5.0], "f"), ([-3, 7, 9], "i")],
)
def test_labels_of_any_type_come_back_as_they_were(labels, kind):
    X, _ = patients()
    rng = np.random.default_rng(0)
    y = np.array(labels)[np.digitize(X["creatinine"] + 0.1 * rng.random(len(X)), [0.7, 1.5][: len(labels) - 1])]
    for given in (y, pd.Series(y), pl.Series(y), y.tolist()):
        clf = fixed(search=Evolution(population_size=8, max_generations=2), random_state=0, preset="paper").fit(
            X, given
        )
        assert clf.classes_.tolist() == sorted(labels)
        d = clf.decide(X)
        assert d.label.dtype.kind == kind
        assert clf.score(X, y) > 0.5
        assert d.to_frame()["label"].isna().sum() == (~d.conclusive).sum()


def test_scikit_learns_tools_take_it():
    X, y = patients()
    search = Evolution(population_size=8, max_generations=2)
    clf = fixed(PANEL, search=search, random_state=0, preset="paper")
    assert cross_val_score(clf, X, y, cv=3).mean() > 0.6
    grid = GridSearchCV(clf, {"threshold": [0.6, 0.9]}, cv=2).fit(X, y)
    assert len(grid.cv_results_["mean_test_score"]) == 2
    assert grid.best_estimator_.front_.mean_cost.min() > 0
    assert clone(clf).get_params()["costs"] == PANEL


def test_a_given_design_is_deployed_as_it_is():
    X, y = patients()
    clf = MultiStageClassifier([["age", "visits"], ["blood panel"], ["smokes", "ward"]], PANEL).fit(X, y)
    assert [stage.price for stage in clf.stages_] == [1, 40, 3]
    assert clf.stages_[1].features == ("blood panel",)
    assert_array_equal(clf.design_, [0, 2, 2, 1, 0])
    d = clf.decide(X)
    assert set(np.unique(d.cost)) <= {1, 41, 44}
    assert_array_equal(d.cost, np.array([1, 41, 44])[d.stage])


def test_one_stage_equals_scikit_learns_pipeline():
    X = patients()[0][["age", "creatinine", "visits"]]
    y = patients()[1]
    ours = MultiStageClassifier().fit(X, y)
    theirs = make_pipeline(StandardScaler(), LogisticRegression(solver="newton-cholesky", tol=1e-10)).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)


def test_ctrl_c_keeps_what_was_found(monkeypatch):
    from emsco.scoring import cascade

    X, y = patients()
    calls = []
    original = cascade.Cascade.tally

    def interrupted(self, population):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(self, population)

    monkeypatch.setattr(cascade.Cascade, "tally", interrupted)
    with pytest.warns(SearchInterruptedWarning):
        clf = fixed(PANEL, search=QUICK, random_state=0, encoding="linear", C=1.0).fit(X, y)
    assert clf.n_generations_ == 1
    assert len(clf.decide(X)) == len(X)


def test_progress_is_printed_only_when_asked_for(capsys):
    X, y = patients()
    fixed(PANEL, search=QUICK, random_state=0).fit(X, y)
    assert capsys.readouterr() == ("", "")
    fixed(PANEL, search=QUICK, random_state=0, verbose=True).fit(X, y)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("evolving") == 1  # the last of it: the line before was printed within ten seconds
    assert "comparing learners" in printed.err
    assert "training the front" in printed.err
    assert "100 %" in printed.err


def test_input_is_never_changed():
    X, y = patients()
    before, labels = X.copy(), y.copy()
    fixed(PANEL, search=QUICK, random_state=0).fit(X, y).decide(X)
    pd.testing.assert_frame_equal(X, before)
    assert_array_equal(y, labels)


def test_many_features_work():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 70))  # more than a machine word
    y = X[:, 3] + X[:, 66] + 0.3 * rng.normal(size=120) > 0
    clf = fixed(search=Evolution(population_size=20, max_generations=3), random_state=0, preset="paper").fit(X, y)
    assert clf.front_.n_stages.max() <= 30
    X_val = rng.normal(size=(80, 70))
    y_val = X_val[:, 3] + X_val[:, 66] > 0
    clf.fit(X, y, X_val=X_val, y_val=y_val)
    for i in range(len(clf.front_)):
        assert clf.use(i).decide(X_val).conclusive.mean() == clf.front_.coverage[i]
        assert clf.decide(X_val).cost.mean() == pytest.approx(clf.front_.mean_cost[i])


def test_many_classes_and_columns_use_scikit_learns_solver():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(40), 6)
    X = rng.normal(size=(240, 20)) + y[:, None] * rng.normal(size=20)
    clf = MultiStageClassifier([0] * 10 + [1] * 10).fit(X, y)
    assert type(clf.stages_[0].model) is LogisticRegression
    assert clf.score(X, y) > 0.5


def test_a_point_of_the_front_is_a_design():
    X, y = patients()
    clf = fixed(PANEL, search=QUICK, refit=True, random_state=0, preset="paper").fit(X, y)
    same = MultiStageClassifier(clf.front_[0], PANEL).fit(X, y)
    assert_array_equal(same.design_, clf.design_)


def test_no_warning_escapes_a_plain_fit():
    X, y = patients()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EMSCOClassifier(PANEL, search=QUICK, random_state=0).fit(X, y).predict(X)


# ---------------------------------------------------------------- presets

PUBLISHED = {"threshold": 0.75, "search": Evolution(), "removal": False, "validation": 1 / 3, "choose": "fitness",
             "encoding": "raw", "C": 1.0, "final_estimator": "search"}  # fmt: skip
BEST = {"search": "auto", "threshold": "auto", "removal": True, "validation": 5, "choose": "no_worse",
        "encoding": "auto", "C": "auto", "final_estimator": "auto"}  # fmt: skip


def trace(clf):
    """What a fit came to."""
    front = clf.front_
    return (clf.search_, clf.encoding_, clf.C_, clf.point_, front.n_samples, front.designs.tolist(),
            front.values.tolist(), clf.learner_, clf.deployed_.rule, clf.design_.tolist())  # fmt: skip


@pytest.mark.parametrize(("preset", "meaning"), [("best", BEST), ("paper", PUBLISHED)])
def test_what_is_left_out_means_what_the_preset_says(preset, meaning):
    X, y = patients(120)
    X = X[["age", "creatinine", "smokes"]]
    left_out = EMSCOClassifier(random_state=0, preset=preset).fit(X, y)
    spelt_out = EMSCOClassifier(random_state=0, preset=preset, **meaning).fit(X, y)
    assert trace(left_out) == trace(spelt_out)
    other = "paper" if preset == "best" else "best"
    explicit = EMSCOClassifier(random_state=0, preset=other, **meaning).fit(X, y)
    assert trace(left_out) == trace(explicit), "what is given wins"
    assert trace(left_out) != trace(EMSCOClassifier(random_state=0, preset=other).fit(X, y))


def test_best_is_the_default_and_chooses_by_itself():
    X, y = patients(120)
    clf = EMSCOClassifier(PANEL, random_state=0).fit(X, y)
    assert clf.preset == "best"
    assert clf.search_ == BestFirst(max_designs=6_000, focus=0.5)
    assert clf.front_.n_samples == 120, "every row is judged, in one of five folds"
    assert (clf.front_.designs == -1).any()
    assert clf.encoding_ in ("linear", "rank", "spline")
    assert clf.learner_ in ("logistic", *BOOSTED)
    assert clf.threshold is None
    assert clf.deployed_.policy.threshold == "auto"
    assert clf.deployed_.rule == rule_of(clf.front_.thresholds[clf.point_].tolist(), n_stages=len(clf.stages_))
    assert (clf.point_, True) == no_worse(clf.front_)
    assert clf.front_.coverage[clf.point_] == 1, "it labels everybody, as buying everything does"
    assert clf.front_.outlook.n_labelled == clf.front_.outlook.n_rows == tuple(sum(y == c) for c in clf.classes_)


def test_a_threshold_set_after_fit_can_be_set_back():
    X, y = patients(120)
    for preset, meant in (("best", "auto"), ("paper", 0.75)):
        clf = EMSCOClassifier(PANEL, search=QUICK, random_state=0, preset=preset, final_estimator="search").fit(X, y)
        before = clf.decide(X)
        clf.set_params(threshold=0.99)
        assert clf.deployed_.policy.threshold == 0.99
        assert clf.decide(X).conclusive.sum() < before.conclusive.sum()
        clf.set_params(threshold=None)
        assert clf.deployed_.policy.threshold == meant
        assert_array_equal(clf.decide(X).conclusive, before.conclusive)


def test_paper_is_what_was_published():
    X, y = patients(120)
    clf = fixed(PANEL, random_state=0, preset="paper").fit(X, y)
    assert clf.search_ == Evolution()
    assert clf.front_.n_samples == 40
    assert clf.front_.designs.min() == 0
    assert (clf.encoding_, clf.C_, clf.point_) == ("raw", 1.0, 0)


@pytest.mark.parametrize("preset", ["fast", "Best", None, 1, ["best"]])
def test_a_wrong_preset_says_what_is_wanted(preset):
    X, y = patients(60)
    with pytest.raises(InvalidParameterError, match="preset must be one of best, paper; got"):
        fixed(preset=preset).fit(X, y)


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_what_is_left_out_stays_left_out(preset, tmp_path):
    X, y = patients(60)
    clf = EMSCOClassifier(search=QUICK if preset == "best" else None, random_state=0, preset=preset)
    given = clf.get_params()
    assert [name for name in BEST if given[name] is None] == list(BEST)[preset == "best" :]
    clf.fit(X[["age", "visits"]], y).save(tmp_path / "m.emsco")
    for same in (clf, clone(clf), clone_fitted(clf), load(tmp_path / "m.emsco")):
        assert same.get_params() == given


def columns_of(seed, n_rows, n_classes):
    rng = np.random.default_rng(seed)
    y = np.arange(n_rows) % n_classes
    return rng.normal(size=(n_rows, 5)) + y[:, None], y


TABLES = {
    "two classes": columns_of(0, 120, 2),
    "three classes": columns_of(1, 120, 3),
    "text and gaps": patients(120),
    "one column": (columns_of(4, 60, 2)[0][:, :1], columns_of(4, 60, 2)[1]),
    "ten rows": columns_of(2, 10, 2),
    "ten rows of text and gaps": patients(10, seed=3),
    "two rows of each class": columns_of(3, 6, 3),
}


@pytest.mark.parametrize("name", TABLES)
def test_nothing_has_to_be_set(name):
    X, y = TABLES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RareClassWarning)
        clf = EMSCOClassifier().fit(X, y)
    decisions = clf.decide(X)
    assert len(decisions) == len(y) == clf.front_.n_samples
    assert set(clf.predict(X)) <= set(y)
    assert decisions.cost.max() <= np.shape(X)[1]


@pytest.mark.parametrize("preset", ["best", "paper"])
def test_a_single_stage_is_a_design_too(preset):
    X, y = patients(60)
    clf = EMSCOClassifier(max_stages=1, random_state=0, preset=preset).fit(X[["age", "visits"]], y)
    assert clf.front_.n_stages.tolist() == [1] * len(clf.front_)
