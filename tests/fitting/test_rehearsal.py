"""Folds, what "auto" chooses, cross-fitting against scikit-learn's, and final stages."""

import warnings

from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    StratifiedKFold,
    cross_val_predict,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from emsco import BestFirst, Evolution, Exact, Guarantee, MultiStageClassifier, load
from emsco.checks import check_seed
from emsco.data.splits import make_folds, split_rows
from emsco.data.table import Table
from emsco.datasets import load_heart_failure
from emsco.exceptions import EmscoError, InvalidParameterError, RareClassWarning
from emsco.fitting.probes import settle
from emsco.fitting.rehearsal import Rehearsal
from emsco.prices.prices import resolve
from emsco.scoring.judge import sureness
from emsco.stages.recipe import Recipe
from tests.classifiers import fixed

SMALL = Evolution(population_size=20, max_generations=3)
LINES = {"encoding": "linear", "C": 1.0}  # as a MultiStageClassifier learns


def drawn(seed, *, n_rows=120, n_columns=4, n_classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    y[:n_classes] = np.arange(n_classes)
    return rng.normal(size=(n_rows, n_columns)) + y[:, None] * rng.uniform(0, 1.5, size=n_columns), y


def rehearse(X, y, folds):
    table = Table(X)
    return Rehearsal(table, y, int(y.max()) + 1, resolve(None, table.names), folds)


@pytest.mark.filterwarnings("ignore:fewer than 5 rows")
@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.integers(2, 4))
def test_each_row_judges_once_and_classes_are_dealt_in_proportion(seed, n_folds, n_classes):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(n_classes).repeat(2), rng.integers(n_classes, size=40)])
    folds = make_folds(n_folds, codes, np.arange(n_classes), rng)
    assert_array_equal(np.sort(np.concatenate([judges for _, judges in folds])), np.arange(codes.size))
    for train, judges in folds:
        assert_array_equal(np.sort(np.concatenate([train, judges])), np.arange(codes.size))
        assert set(codes[train]) == set(range(n_classes))
        counts = np.bincount(codes[judges], minlength=n_classes)
        assert (np.abs(counts - np.bincount(codes) / n_folds) < 1).all()


def test_a_class_of_one_row_trains_and_never_judges():
    codes = np.array([0] * 6 + [1] * 6 + [2])
    with pytest.warns(RareClassWarning, match=r"\['c'\] have a single row"):
        folds = make_folds(3, codes, np.array(["a", "b", "c"]), np.random.default_rng(0))
    assert all(12 in train and 12 not in judges for train, judges in folds)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_confidences_are_those_of_scikit_learns_cross_val_predict(n_classes):
    X, y = drawn(1, n_classes=n_classes)
    splitter = StratifiedKFold(4, shuffle=True, random_state=0)
    folds = make_folds(splitter, y, np.arange(n_classes), np.random.default_rng(0))
    setup = rehearse(X, y, folds).prepared(Recipe(C=0.5), seed=0, n_jobs=1)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.5, tol=1e-10, max_iter=10_000))
    order = np.concatenate([judges for _, judges in folds])
    for columns in ([0, 1, 2, 3], [2]):
        units = np.isin(np.arange(4), columns)[None]
        outcomes = setup.trainer.outcomes(units, setup.trainer.train(units))
        wanted = cross_val_predict(model, X[:, columns], y, cv=splitter, method="predict_proba")[order]
        assert_allclose(outcomes.confidence[0], wanted.max(axis=1), atol=1e-6)
        assert_array_equal(outcomes.label[0], wanted.argmax(axis=1))


@pytest.mark.parametrize("search", [Exact(), BestFirst(max_designs=200), SMALL])
@pytest.mark.parametrize("validation", [3, KFold(3, shuffle=True, random_state=1)])
def test_cross_fitted_figures_are_those_of_models_trained_without_the_row(search, validation):
    X, y = drawn(2)
    settings = {"search": search, "max_stages": 3, "validation": validation, "random_state": 0, **LINES}
    clf = fixed([1, 2, 3, 4], threshold=0.8, **settings).fit(X, y)
    assert (clf.front_.designs == -1).any()
    folds = make_folds(validation, y, np.arange(2), _split_rng())
    for point in (0, int(clf.front_.coverage.argmax()), int(clf.front_.n_stages.argmax())):
        design = clf.front_[point].design
        conclusive, right, cost = 0, 0, 0.0
        for train, judges in folds:
            part = MultiStageClassifier(design, [1, 2, 3, 4], threshold=0.8).fit(X[train], y[train])
            decisions = part.decide(X[judges])
            conclusive += int(decisions.conclusive.sum())
            right += int((decisions.label.filled(-1) == y[judges]).sum())
            cost += float(decisions.cost.sum())
        assert clf.front_.coverage[point] == conclusive / len(y)
        assert_array_equal(clf.front_.accuracy[point], right / conclusive if conclusive else np.nan)
        assert clf.front_.mean_cost[point] == pytest.approx(cost / len(y))


def _split_rng():
    """The generator that splits the rows of a classifier with random_state=0."""
    return np.random.default_rng(np.random.SeedSequence(check_seed(0)).spawn(4)[0])


def test_final_stages_of_cross_fitting_are_trained_on_all_rows():
    X, y = drawn(3)
    clf = fixed(search=SMALL, validation=4, random_state=0, **LINES).fit(X, y)
    whole = MultiStageClassifier(clf.design_).fit(X, y)
    assert_allclose(clf.predict_proba(X), whole.predict_proba(X), rtol=1e-12)
    assert clf.front_.n_samples == len(y)


def test_splitters_that_cannot_be_used_say_why():
    X, y = drawn(5)
    with pytest.raises(InvalidParameterError, match="cannot split 120 rows"):
        fixed(search=SMALL, validation=GroupKFold(3)).fit(X, y)
    with pytest.raises(InvalidParameterError, match="none of the classes"):
        fixed(search=SMALL, validation=KFold(2)).fit(X[np.argsort(y)], np.sort(y))
    repeats = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0)
    with pytest.raises(InvalidParameterError, match="lets 120 rows judge more than once"):
        fixed(search=SMALL, validation=repeats).fit(X, y)
    own = PredefinedSplit(np.arange(len(y)) % 3)
    with pytest.raises(InvalidParameterError, match=r"knows a row 119, but only 90 rows are split.*X_cal"):
        fixed(search=SMALL, validation=own, threshold=Guarantee(accuracy=0.8)).fit(X, y)
    for wrong in (1, 0, True, "5", -2, 1.5):
        with pytest.raises(InvalidParameterError, match="validation must be"):
            fixed(search=SMALL, validation=wrong).fit(X, y)


def test_given_validation_rows_come_before_folds():
    X, y = drawn(6)
    clf = fixed(search=SMALL, validation=5, random_state=0, **LINES).fit(X[:80], y[:80], X[80:], y[80:])
    assert clf.front_.n_samples == 40


def bent(rng):
    """A line sees nothing of the class, a bend does."""
    X = rng.normal(size=(400, 3))
    return X, (np.abs(X[:, 0]) > 0.7).astype(int)


def test_auto_takes_the_encoding_and_strength_that_score_best():
    rng = np.random.default_rng(0)
    X, y = bent(rng)

    def settled(y, encoding, score):
        rehearsal = rehearse(X, y, make_folds(5, y, np.arange(2), rng))
        judged, everything = rehearsal.y, np.ones((1, 3), dtype=np.bool_)
        score = score or (lambda t: sureness(t.outcomes(everything, t.train(everything)), judged, 2)[0])
        return settle(rehearsal, Recipe(), encoding=encoding, C="auto", score=score, n_jobs=1)

    assert settled(y, "auto", None).encoding == "spline"
    assert settled(rng.integers(2, size=400), "linear", None).C == 0.1
    assert settled(y, "auto", lambda trainer: 0.0) == Recipe(C=0.1), "of equals, the simplest"


@pytest.mark.parametrize("threshold", [0.9, [0.9, 0.8], {0: 0.9, 1: 0.8}, Guarantee(0.8)])
def test_auto_is_compared_by_random_designs_with_any_threshold(threshold):
    X, y = bent(np.random.default_rng(0))
    clf = fixed(threshold=threshold, search=SMALL, random_state=0).fit(X, y)
    assert clf.encoding_ == "spline"


def test_auto_leaves_other_estimators_alone():
    X, y = drawn(7)
    tree = DecisionTreeClassifier(max_depth=2)
    clf = fixed(estimator=tree, search=SMALL, encoding="auto", C="auto", random_state=0).fit(X, y)
    assert (clf.encoding_, clf.C_) == ("linear", 1.0)


@pytest.mark.parametrize("validation", [1 / 3, 3])
@pytest.mark.parametrize(
    "changes", [{"final_estimator": DecisionTreeClassifier(max_depth=3)}, {"calibration": "sigmoid"}]
)
def test_the_front_is_judged_again_with_its_final_stages(validation, changes):
    X, y = drawn(8, n_rows=200)
    clf = fixed([1, 2, 3, 4], threshold=0.8, search=SMALL, validation=validation, random_state=0, **changes)
    clf.set_params(encoding="linear", C=0.5).fit(X, y)
    assert clf.C_ == 0.5
    model = clf.stages_[-1].model
    wanted = CalibratedClassifierCV if "calibration" in changes else DecisionTreeClassifier
    assert isinstance(model, wanted)
    objectives = np.column_stack([clf.front_.coverage, np.nan_to_num(clf.front_.accuracy), -clf.front_.mean_cost])
    for vector in objectives:
        assert not ((objectives >= vector).all(axis=1) & (objectives > vector).any(axis=1)).any()
    if validation == 3:
        return
    _, judges = split_rows(y, validation, _split_rng(), np.arange(2))
    decisions = clf.decide(X[judges])
    assert clf.front_.coverage[clf.point_] == decisions.conclusive.mean()
    assert clf.front_.mean_cost[clf.point_] == pytest.approx(decisions.cost.mean())


def test_an_estimator_that_is_not_true_before_it_is_trained_can_be_calibrated():
    X, y = drawn(8, n_rows=60)
    forest = RandomForestClassifier(2, max_depth=1)  # its length is that of its trees
    few = {"search": Evolution(population_size=4, max_generations=1), "max_stages": 1, "preset": "paper"}
    clf = fixed(estimator=forest, calibration="sigmoid", random_state=0, **few).fit(X, y)
    assert isinstance(clf.stages_[0].model.calibrated_classifiers_[0].estimator, RandomForestClassifier)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"final_estimator": "forest"}, "a classifier, 'boosting', 'auto', 'search' or None; got 'forest'"),
        ({"final_estimator": DecisionTreeClassifier}, "pass an instance of it"),
        ({"final_estimator": StandardScaler()}, "has no predict_proba"),
        ({"calibration": "sigmoid"}, "calibration needs 3 training rows of each class, but 'b' has 2; add rows"),
    ],
)
@pytest.mark.parametrize("validation", [1 / 3, 3])
def test_final_stages_that_cannot_be_trained_are_refused_before_the_search(wrong, says, validation, monkeypatch):
    monkeypatch.setattr("emsco.fitting.pipeline.Judge", None)  # nobody gets there
    X, y = drawn(8, n_rows=40)
    y[:] = 0
    y[:3] = 1
    warnings.simplefilter("ignore", RareClassWarning)
    with pytest.raises(EmscoError, match=says):
        fixed(threshold=0.95, search=SMALL, validation=validation, **LINES, **wrong).fit(X, np.array(["a", "b"])[y])


def test_boosting_by_name():
    X, y = drawn(9, n_rows=90)
    clf = MultiStageClassifier([0, 0, 1, 1], estimator="boosting", random_state=0).fit(X, y)
    assert type(clf.stages_[0].model).__name__ == "HistGradientBoostingClassifier"
    with pytest.raises(InvalidParameterError, match="'boosting' or None; got 'forest'"):
        MultiStageClassifier(estimator="forest").fit(X, y)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("encoding", "cubic", "encoding must be one of linear, rank, spline, raw, auto"),
        ("C", 0, "C must be a positive number or auto"),
        ("C", "best", "C must be a positive number or auto"),
        ("calibration", "platt", "calibration must be"),
    ],
)
def test_wrong_parameters_say_what_is_wanted(name, value, says):
    X, y = drawn(10)
    with pytest.raises(InvalidParameterError, match=says):
        fixed(search=SMALL, **{name: value}).fit(X, y)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["rank", "spline"]))
def test_sessions_decide_and_files_agree_with_curves(tmp_path_factory, seed, encoding):
    rng = np.random.default_rng(seed)
    X, y = drawn(seed, n_rows=80)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.2] = 0.0
    frame = pd.DataFrame(X, columns=list("abcd")).assign(e=rng.choice(["u", "v", "w"], size=80))
    clf = fixed(search=SMALL, encoding=encoding, C=10.0, random_state=0, threshold=0.9).fit(frame, y)
    decisions = clf.decide(frame)
    path = tmp_path_factory.mktemp("curves") / "m.emsco"
    clf.save(path)
    again = load(path)
    assert_array_equal(again.predict_proba(frame), clf.predict_proba(frame))
    assert again.get_params()["encoding"] == encoding
    assert (again.encoding_, again.C_) == (encoding, 10.0)
    for row in range(12):
        session = again.session()
        while hasattr(step := session.step(), "columns"):
            session.give({name: frame[name].iloc[row] for name in step.columns})
        assert step.confidence == decisions.confidence[row]
        assert step.cost == decisions.cost[row]


def test_final_estimators_and_splitters_in_model_files(tmp_path):
    X, y = drawn(11)
    clf = fixed(
        search=SMALL, validation=StratifiedKFold(3), final_estimator=DecisionTreeClassifier(max_depth=2),
        random_state=0, **LINES,
    ).fit(X, y)  # fmt: skip
    clf.save(tmp_path / "m.emsco")
    again = load(tmp_path / "m.emsco")
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert again.final_estimator.max_depth == 2
    assert again.estimator is None
    clone(again).fit(X, y)
    named = fixed(max_stages=1, final_estimator="boosting", random_state=0, preset="paper").fit(X, y)
    named.save(tmp_path / "n.emsco")
    assert load(tmp_path / "n.emsco").final_estimator == "boosting"


def test_cross_fitting_does_not_depend_on_the_number_of_workers():
    heart = load_heart_failure()
    fits = [
        fixed(
            heart.prices, search=BestFirst(max_designs=500), validation=5, encoding="auto", C="auto", random_state=3,
            n_jobs=n_jobs,
        ).fit(heart.data, heart.target)
        for n_jobs in (1, 2)
    ]  # fmt: skip
    assert_array_equal(fits[0].front_.designs, fits[1].front_.designs)
    assert_array_equal(fits[0].predict_proba(heart.data), fits[1].predict_proba(heart.data))


def test_cross_fitting_resumes_from_a_checkpoint(tmp_path):
    X, y = drawn(12)
    changes = {"search": SMALL, "validation": 3, "encoding": "auto", "random_state": 0}
    plain = fixed(**changes).fit(X, y)
    for _ in range(2):  # the second one finds everything done
        clf = fixed(**changes).fit(X, y, checkpoint=tmp_path / "c")
        assert_array_equal(clf.front_.designs, plain.front_.designs)
        assert clf.n_feature_sets_ == plain.n_feature_sets_
