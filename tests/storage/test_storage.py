"""A model file gives back the classifier that was saved, bit for bit, or says why not."""

import dataclasses
from hashlib import sha256
from io import BytesIO
import json
import os
from pathlib import Path
import pickle
import subprocess
import sys
from time import process_time
import zipfile

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import emsco
from emsco import BestFirst, EMSCOClassifier, Evolution, Exact, Loss, MultiStageClassifier, Objective, Prices, Recall
from emsco.datasets import load_heart_failure
from emsco.exceptions import InvalidParameterError, MissingDependencyError, ModelFileError
from emsco.report.learning import learning_record
from emsco.report.summary import summarise
from emsco.storage import container, estimators, model_file
from emsco.storage.container import MAX_BYTES, MAX_MEMBERS, pack, unpack
from emsco.storage.fields import Fields
from emsco.storage.parameters import costs_from_json, costs_to_json, parameters_from_json, parameters_to_json
from tests.classifiers import fixed
from tests.storage import fuzz_models
from tests.storage.fuzz_models import saved, zipped
from tests.test_estimators import PANEL, patients

QUICK = Evolution(population_size=20, max_generations=3)
GROUPED = Prices(
    units={"panel": ["sodium", "creatinine"]},
    price={"age": 0.1, "smokes": 1, "ward": 7.27, "panel": 5.2, "visits": 1 / 3},
    groups={"blood": ["ward", "panel"]},
    discount={"ward": 5.17, "panel": 3.1},
)
VISITS = dataclasses.replace(GROUPED, overhead=0.7, parallel=True)
COMPUTED = dataclasses.replace(
    GROUPED, price={u: p for u, p in GROUPED.price.items() if u != "visits"}, derived={"visits": ["panel", "age"]}
)
IRIS, FLOWERS = load_iris(return_X_y=True)


def round_trip(clf, tmp_path, **kwargs):
    clf.save(tmp_path / "model.emsco", **kwargs)
    return emsco.load(tmp_path / "model.emsco")


def assert_same(a, b, X, y):
    """Everything a classifier says is equal, at every point of its front."""
    assert type(a) is type(b)
    assert_array_equal(a.classes_, b.classes_)
    assert a.classes_.dtype == b.classes_.dtype
    assert a.n_features_in_ == b.n_features_in_
    assert list(getattr(a, "feature_names_in_", [])) == list(getattr(b, "feature_names_in_", []))
    assert a.deployed_.encoder.codes == b.deployed_.encoder.codes
    assert a.deployed_.prices.unit_columns == b.deployed_.prices.unit_columns
    assert a.deployed_.prices.sources == b.deployed_.prices.sources
    for name in set(vars(a.deployed_.prices)) - {"unit_columns", "sources"}:
        assert_array_equal(getattr(a.deployed_.prices, name), getattr(b.deployed_.prices, name))
    points = range(len(a.front_)) if isinstance(a, EMSCOClassifier) else [None]
    for point in points:
        if point is not None:
            a.use(point)
            b.use(point)
        assert_array_equal(a.design_, b.design_)
        assert_array_equal(a.predict_proba(X), b.predict_proba(X))
        assert_array_equal(a.predict(X), b.predict(X))
        for one, other in zip(vars(a.decide(X)).values(), vars(b.decide(X)).values(), strict=True):
            assert_array_equal(one, other)
        assert [s.price for s in a.stages_] == [s.price for s in b.stages_]
    assert a.evaluate(X, y) == b.evaluate(X, y)
    if not isinstance(a, EMSCOClassifier):
        return
    for name in ("designs", "coverage", "accuracy", "mean_cost", "fitness", "n_ties", "reached", "paid", "values"):
        assert_array_equal(getattr(a.front_, name), getattr(b.front_, name))
        assert getattr(a.front_, name).dtype == getattr(b.front_, name).dtype
    for name in ("feature_names", "objectives", "maximise", "total_price"):
        assert getattr(a.front_, name) == getattr(b.front_, name)
    assert (a.front_.n_samples, a.front_.certificate) == (b.front_.n_samples, b.front_.certificate)
    assert (a.search_, a.search_seconds_) == (b.search_, b.search_seconds_)
    assert (a.n_generations_, a.n_feature_sets_) == (b.n_generations_, b.n_feature_sets_)
    assert (a.encoding_, a.C_, a.validation_) == (b.encoding_, b.C_, b.validation_)
    assert_array_equal(a.history_, b.history_)


@pytest.mark.parametrize("search", ["auto", Exact(), BestFirst(max_designs=300), QUICK], ids=lambda s: str(s)[:9])
@pytest.mark.parametrize(
    "prices", [PANEL, GROUPED, VISITS, COMPUTED, None], ids=["panel", "groups", "visits", "computed", "none"]
)
def test_text_missing_values_units_and_groups_come_back(search, prices, tmp_path):
    X, y = patients()
    clf = fixed(prices, threshold=0.8, search=search, max_stages=3, random_state=0).fit(X, y)
    assert_same(clf, round_trip(clf, tmp_path), X, y)


LABELS = {
    "text": lambda y: np.array(["setosa", "b", "virginica"])[y],
    "whole": lambda y: y.astype(np.int8) - 1,
    "unsigned": lambda y: y.astype(np.uint64) + 2**63,
    "big-endian": lambda y: y.astype(">i4"),
    "float": lambda y: (y * 2).astype(np.float32),
    "boolean": lambda y: y > 0,
    "wide text": lambda y: np.array(["a", "b"], dtype="<U40")[(y > 0).astype(int)],
    "pandas": lambda y: pd.Series(y).map({0: "x", 1: "y", 2: "z"}),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_of_every_kind_keep_their_type(kind, tmp_path):
    y = LABELS[kind](FLOWERS)
    clf = fixed([1, 1, 5, 5], random_state=0).fit(IRIS, y)
    assert_same(clf, round_trip(clf, tmp_path), IRIS, y)


def test_objects_as_labels_keep_their_types(tmp_path):
    clf = fixed([1, 1, 5, 5], random_state=0).fit(IRIS, FLOWERS)
    classes = np.array([False, 2, 3.0], dtype=object)
    model_file.save(dataclasses.replace(clf.deployed_, classes=classes), tmp_path / "model.emsco")
    again = emsco.load(tmp_path / "model.emsco").classes_
    assert again.dtype == object
    assert [type(label) for label in again] == [bool, int, float]
    in_bytes = dataclasses.replace(clf.deployed_, classes=np.array([b"a", b"b", b"c"]))
    with pytest.raises(ModelFileError, match="labels of type"):
        model_file.save(in_bytes, tmp_path / "m")


ESTIMATORS = {
    "forest": RandomForestClassifier(3, max_depth=3),
    "boosting": HistGradientBoostingClassifier(max_iter=3),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "neighbours": KNeighborsClassifier(),
    "calibrated": CalibratedClassifierCV(GaussianNB(), cv=2),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_stages_of_other_estimators_come_back(name, tmp_path):
    X, y = patients()
    search = Evolution(population_size=8, max_generations=1)
    clf = fixed(PANEL, estimator=ESTIMATORS[name], search=search, random_state=0).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert_same(clf, again, X, y)
    assert repr(again.estimator) == repr(clf.estimator)


def test_a_given_design_comes_back_and_can_be_fitted_again(tmp_path):
    X, y = patients()
    design = [["age", "visits"], ["ward"], ["smokes", "blood panel"]]
    clf = MultiStageClassifier(design, PANEL, threshold=0.9).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert again.design == design
    assert again.costs == PANEL
    assert_same(clf, again, X, y)
    assert_same(clf, again.fit(X, y), X, y)
    by_number = round_trip(MultiStageClassifier(np.array([0, 1, 0, 1, 0, 1])).fit(X, y), tmp_path)
    assert by_number.design == [0, 1, 0, 1, 0, 1]


def test_refit_columns_without_names_and_polars(tmp_path):
    import polars as pl

    X, y = patients()
    for table, kwargs in [(X, {"refit": True}), (IRIS, {}), (pl.DataFrame(X), {}), (X.set_axis(range(6), axis=1), {})]:
        labels = FLOWERS if table is IRIS else y
        clf = fixed(search=QUICK, random_state=0, **kwargs).fit(table, labels)
        again = round_trip(clf, tmp_path)
        assert_same(clf, again, table, labels)
        assert hasattr(again, "feature_names_in_") == hasattr(clf, "feature_names_in_")
    mixed = X[["ward", "age"]]
    clf = fixed(search=QUICK, random_state=0, removal=False, threshold=1.0).fit(X, y)
    with pytest.raises(emsco.EmscoError, match="not in the table"):
        round_trip(clf, tmp_path).decide(mixed)


def test_many_rare_categories_come_back(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"city": [None if i % 9 == 0 else f"c{i % 50}" for i in range(300)], "age": rng.normal(size=300)})
    y = (X["age"] > 0).to_numpy()
    clf = fixed(random_state=0).fit(X, y)
    assert clf.deployed_.encoder.codes[0].pools_rare
    again = round_trip(clf, tmp_path)
    assert_same(clf, again, X, y)
    new = pd.DataFrame({"city": ["c49", "c1", "atlantis", None, ""], "age": np.zeros(5)})
    assert_array_equal(again.predict_proba(new), clf.predict_proba(new))


def test_parameters_come_back_except_functions_and_generators(tmp_path):
    X, y = patients()
    costs = {"age": 1, "smokes": 2, "ward": np.float64(3.5), "sodium": 4, "creatinine": 5, "visits": 6}
    kwargs = {"threshold": np.float64(0.7), "max_stages": np.int64(2), "search": QUICK, "validation": 0.4, "n_jobs": 2}
    clf = fixed(costs, **kwargs, random_state=np.int64(5), verbose=False).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert again.get_params() == clf.get_params()
    rng = np.random.RandomState(0)
    clf = fixed([1, 2, 3, 4, 5, 6], choose=lambda f: 1, random_state=rng, search=QUICK).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert (again.choose, again.random_state, again.point_) == ("fitness", None, 1)
    assert_array_equal(again.costs, [1, 2, 3, 4, 5, 6])
    for series in (pd.Series(costs), pd.Series(range(6))):
        clf = MultiStageClassifier(costs=series).fit(X, y)
        assert_same(clf, round_trip(clf, tmp_path).fit(X, y), X, y)


@pytest.mark.parametrize(
    ("changes", "validation"),
    [({"validation": 0.25}, 0.25), ({"validation": 4}, 4), ({"validation": KFold(3, shuffle=True)}, 3),
     ({"validation": ShuffleSplit(1, test_size=30, random_state=0)}, 0.25), ({}, "given")],
)  # fmt: skip
def test_how_stages_learned_comes_back(changes, validation, tmp_path):
    X, y = patients(120)
    given = (X[:60], y[:60]) if validation == "given" else ()
    clf = fixed(search=QUICK, encoding="spline", C=0.3, random_state=0, **changes).fit(X, y, *given)
    assert clf.validation_ == validation
    again = round_trip(clf, tmp_path)
    assert (again.encoding_, again.C_, again.validation_) == ("spline", 0.3, validation)
    assert type(again.validation_) is type(validation)
    assert_same(clf, again, X, y)


def test_files_that_do_not_say_how_stages_learned_are_read(tmp_path):
    X, y = patients()
    clf = fixed(GROUPED, search=QUICK, preset="paper", encoding="linear", random_state=0).fit(X, y)
    clf.save(tmp_path / "new")

    def forget_all(record):
        del record["learning"], record["parameters"]["preset"]

    for forget in (forget_all, lambda record: record["learning"].pop("validation")):
        old = load_bytes(changed_json((tmp_path / "new").read_bytes(), forget), tmp_path)
        assert (old.encoding_, old.C_, old.validation_) == ("linear", 1.0, None)
        assert_array_equal(old.predict_proba(X), clf.predict_proba(X))
        words = learning_record(old.deployed_)["in_words"]
        assert words == ["Stage classifier: logistic regression with C = 1; numbers are standardised."]
        assert summarise(old.deployed_)["judged"] == "validation"


@pytest.mark.parametrize("calibration", ["sigmoid", "isotonic", "temperature"])
def test_calibrated_and_final_stages_come_back(calibration, tmp_path):
    X, y = patients()
    changes = {"calibration": calibration, "C": 0.5, "validation": 0.3, "max_stages": 2, "random_state": 0}
    if calibration == "sigmoid":
        changes["final_estimator"] = GaussianNB()
    clf = fixed(search=Evolution(population_size=8, max_generations=1), **changes).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert_same(clf, again, X, y)
    assert (again.calibration, again.C_) == (calibration, 0.5)
    assert type(again.final_estimator) is type(clf.final_estimator)


@pytest.fixture(scope="module")
def curved(tmp_path_factory):
    """A file of a model that sees numbers as curves."""
    X, y = fuzz_models.patients()
    path = tmp_path_factory.mktemp("curved") / "m.emsco"
    X["age"] = X["age"].where(X.index % 3 > 0, 0.0)
    fixed(fuzz_models.PRICES, search=QUICK, encoding="rank", random_state=0).fit(X, y).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r["columns"][0].update(kind="curve"), "wanted number, curves or category"),
        (lambda r: r["columns"][0].pop("at_zero"), "has no at_zero"),
        (lambda r: r["columns"][0].update(at_zero=[0.0]), "have 1 values at zero"),
        (lambda r: r["columns"][0].update(at_zero=[0.0, None]), "wanted a number"),
        (lambda r: r["columns"][0].update(knots=[1.0]), "not values at increasing knots"),
        (lambda r: r["columns"][0].update(knots=[]), "not values at increasing knots"),
        (lambda r: r["columns"][0]["knots"].reverse(), "not values at increasing knots"),
        (lambda r: r["columns"][0]["knots"].__setitem__(0, 10**400), "wanted a number"),
        (lambda r: r["columns"][0]["knots"].__setitem__(slice(None), [-1.5e308, 1.5e308]), "increasing knots"),
        (lambda r: r["columns"][0].update(curves=[]), "not values at increasing knots"),
        (lambda r: r["columns"][0]["curves"][0].append(0.0), "not values at increasing knots"),
        (lambda r: r["columns"][0]["curves"][0].__setitem__(0, 1e300), "wanted a number"),
        (lambda r: r["columns"][0]["curves"].__setitem__(0, 3), "wanted a list"),
        (lambda r: r["columns"][0].update(curves=r["columns"][0]["curves"][:1], at_zero=None), "weights"),
        (lambda r: r["learning"].update(encoding="cubic"), "wanted one of linear, rank, spline"),
        (lambda r: r["learning"].update(C=0), "C is 0; wanted a number"),
        (lambda r: r["learning"].update(validation=1), "validation is 1; wanted a whole number from 2"),
        (lambda r: r["learning"].update(validation=True), "validation is True; wanted a whole number"),
        (lambda r: r["learning"].update(validation=1.5), "validation is 1.5; wanted a number from 0 to 1"),
        (lambda r: r["learning"].update(validation="rows"), "wanted a number of folds, a share or given"),
        (lambda r: r["parameters"].update(preset="worst"), "preset must be one of best, paper"),
    ],
)
def test_curves_and_learning_are_checked(curved, tmp_path, change, says):
    assert isinstance(load_bytes(curved, tmp_path), EMSCOClassifier)
    with pytest.raises(ModelFileError, match=says):
        load_bytes(changed_json(curved, change), tmp_path)


def test_the_learning_of_a_given_design_is_checked(tmp_path):
    X, y = patients()
    MultiStageClassifier(encoding="spline", C=2.0).fit(X, y).save(tmp_path / "m")
    for wrong in ({"encoding": "auto"}, {"encoding": 3}, {"C": "auto"}, {"C": -1}):
        with pytest.raises(ModelFileError, match="must be"):
            load_bytes(
                changed_json((tmp_path / "m").read_bytes(), lambda r, wrong=wrong: r["parameters"].update(wrong)),
                tmp_path,
            )


CHOSEN = ("fnr", Loss([[0, 1], [5.5, 0]], reject=[0.1, 0.2]), "stages", "accuracy")


def test_chosen_objectives_and_choices_come_back(tmp_path):
    X, y = patients()
    choice = {"best": "loss", "max_cost": np.float64(40), "min_recall": {"dies": 0.1}, "min_precision": 0.0}
    clf = fixed(PANEL, objectives=CHOSEN, choose=choice, search=QUICK, random_state=0).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert again.get_params() == clf.get_params()
    assert again.point_ == clf.point_
    assert_same(clf, again, X, y)
    assert_array_equal(again.fit(X, y).front_.values, clf.front_.values)
    assert list(again.front_.extra) == ["fnr", "loss"]
    with_function = (*CHOSEN, Objective("late", lambda counts: counts.n_stages, maximise=False))
    clf = fixed(PANEL, objectives=with_function, choose="knee", search=QUICK, random_state=0).fit(X, y)
    again = round_trip(clf, tmp_path)
    assert (again.objectives, again.choose) == (None, "knee")
    assert_same(clf, again, X, y)
    assert again.front_.objectives[-1] == "late"


def test_a_recall_comes_back():
    parameters = {"objectives": ("cost", Recall("sick"), Recall(1)), "choose": {"min_recall": {"sick": 0.9, 1: 0.8}}}
    record = json.loads(json.dumps(parameters_to_json(parameters)))
    assert parameters_from_json(Fields(record, "parameters"), parameters) == parameters
    for wrong in ({"objectives": [{"recall": ["sick"]}, "cost"]}, {"choose": {"min_recall": [["sick"]]}},
                  {"choose": {"min_recall": [[None, 0.5]]}}, {"choose": {"best": [["a", 1]]}}):  # fmt: skip
        with pytest.raises(ModelFileError):
            parameters_from_json(Fields(wrong, "parameters"), parameters)


def test_files_from_before_there_was_a_choice_of_objectives_are_read(tmp_path):
    X, y = patients()
    clf = fixed(GROUPED, search=QUICK, random_state=0).fit(X, y)
    clf.save(tmp_path / "new")
    members = unpack((tmp_path / "new").read_bytes())
    record = json.loads(members["model.json"])
    assert record.pop("objectives") is None
    del record["parameters"]["objectives"]
    (tmp_path / "old").write_bytes(pack({**members, "model.json": json.dumps(record).encode()}))
    assert_same(clf, emsco.load(tmp_path / "old"), X, y)


def change_json(**changes):
    return lambda record: record.update(changes)


@pytest.mark.parametrize(
    "change",
    [
        change_json(objectives=[]),
        change_json(objectives=[{"name": "fnr", "maximise": False}]),
        change_json(objectives="fnr"),
        change_json(objectives=None),
        lambda record: record["objectives"][0].update(name="stages"),
        lambda record: record["objectives"][0].update(name="accuracy"),
        lambda record: record["objectives"][0].update(name=" "),
        lambda record: record["objectives"][3].update(maximise=False),
        lambda record: record["objectives"][0].update(maximise=0),
        lambda record: record["parameters"].update(objectives=[3]),
        lambda record: record["parameters"].update(objectives=[{"matrix": [[0, -1], [1, 0]], "reject": [0, 0]}]),
        lambda record: record["parameters"].update(objectives=[{"matrix": [[0, 10**400], [1, 0]], "reject": [0, 0]}]),
        lambda record: record["parameters"].update(choose={"best": ["loss"]}),
    ],
)
def test_objectives_that_do_not_fit_the_rest_are_damage(change, tmp_path):
    X, y = patients()
    fixed(PANEL, objectives=CHOSEN, search=QUICK, random_state=0).fit(X, y).save(tmp_path / "m")
    members = unpack((tmp_path / "m").read_bytes())
    record = json.loads(members["model.json"])
    change(record)
    (tmp_path / "m").write_bytes(pack({**members, "model.json": json.dumps(record).encode()}))
    with pytest.raises(ModelFileError, match="damaged"):
        emsco.load(tmp_path / "m")


def test_of_tied_designs_the_simplest_is_kept_and_their_number(tmp_path):
    X, y = patients()
    X["known"] = 1.0
    costs = [1, 1, 2, 20, 20, 1, 0]  # when the last is bought changes nothing
    clf = fixed(costs, max_stages=3, search=Exact(), random_state=0).fit(X, y)
    assert clf.front_.n_ties.max() > 1
    front = round_trip(clf, tmp_path).front_
    assert_array_equal(front.n_ties, clf.front_.n_ties)
    for ties, design in zip(front.ties, clf.front_.designs, strict=True):
        assert_array_equal(list(ties), [design])
    assert not front.designs.flags.writeable


def test_evaluation_and_notes_stay_with_the_model_until_it_is_fitted_again(tmp_path):
    X, y = patients()
    clf = fixed(PANEL, search=QUICK, random_state=0).fit(X, y)
    assert round_trip(clf, tmp_path).notes_ == {}
    assert round_trip(clf, tmp_path).evaluation_ is None
    evaluation = clf.evaluate(X, y)
    again = round_trip(clf, tmp_path, evaluation=evaluation, notes={"data": "ward 7", "rows": [1, None, {"a": 0.5}]})
    assert again.evaluation_ == evaluation
    assert clf.evaluation_ is None
    third = round_trip(again, tmp_path)
    assert third.evaluation_ == evaluation
    assert third.notes_ == {"data": "ward 7", "rows": [1, None, {"a": 0.5}]}
    assert round_trip(again, tmp_path, notes={}).notes_ == {}
    again.fit(X, y)
    assert again.evaluation_ is None
    assert again.notes_ == {}


def test_what_cannot_be_kept_with_a_model_is_an_error(tmp_path):
    X, y = patients()
    clf = fixed(PANEL, search=QUICK, random_state=0).fit(X, y)
    deep = []
    for _ in range(100):
        deep = [deep]
    for notes in ("text", [1], {"a": {1, 2}}, {"a": np.nan}, {"a": deep}):
        with pytest.raises(InvalidParameterError, match="notes must be a dict"):
            clf.save(tmp_path / "m", notes=notes)
    other = MultiStageClassifier(costs=PANEL).fit(X, y).evaluate(X, y)
    for evaluation in (other, {"points": []}):
        with pytest.raises(InvalidParameterError, match="what this classifier's evaluate returned"):
            clf.save(tmp_path / "m", evaluation=evaluation)
    with pytest.raises(NotFittedError):
        EMSCOClassifier().save(tmp_path / "m")
    with pytest.raises(InvalidParameterError, match="path must be"):
        clf.save(None)
    assert not list(tmp_path.iterdir())


class Coin(ClassifierMixin, BaseEstimator):
    """A classifier that no model file may hold."""

    def fit(self, X, y):
        self.n_features_in_ = X.shape[1]
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_an_estimator_that_would_not_load_is_refused_when_it_is_saved(tmp_path):
    X, y = patients()
    clf = MultiStageClassifier(estimator=Coin()).fit(X, y)
    with pytest.raises(ModelFileError, match=r"Coin cannot be saved: it holds .*test_storage\.Coin"):
        clf.save(tmp_path / "m")
    clf = MultiStageClassifier(estimator=HistGradientBoostingClassifier(max_iter=2, categorical_features=[2])).fit(X, y)
    with pytest.raises(ModelFileError, match="HistGradientBoostingClassifier cannot be saved"):
        clf.save(tmp_path / "m")

    class Mine(MultiStageClassifier):
        pass

    with pytest.raises(ModelFileError, match="Mine cannot be saved"):
        Mine().fit(X, y).save(tmp_path / "m")
    assert not list(tmp_path.iterdir())


def test_skops_is_needed_to_save_other_estimators_only(tmp_path, monkeypatch):
    X, y = patients()
    MultiStageClassifier(estimator=GaussianNB()).fit(X, y).save(tmp_path / "bayes")
    monkeypatch.setitem(sys.modules, "skops.io", None)
    monkeypatch.setitem(sys.modules, "skops", None)
    round_trip(MultiStageClassifier().fit(X, y), tmp_path)
    bayes = emsco.load(tmp_path / "bayes")
    with pytest.raises(MissingDependencyError, match=r"pip install 'emsco\[skops\]'"):
        bayes.save(tmp_path / "again")


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small model file."""
    X, y = fuzz_models.patients()
    path = tmp_path_factory.mktemp("small") / "small.emsco"
    clf = fixed(fuzz_models.PRICES, max_stages=2, random_state=0).fit(X, y)
    clf.save(path, evaluation=clf.evaluate(X, y))
    return path.read_bytes()


def load_bytes(data, tmp_path):
    (tmp_path / "file").write_bytes(data)
    return emsco.load(tmp_path / "file")


def test_a_file_is_replaced_whole_or_not_at_all(small, tmp_path, monkeypatch):
    clf = load_bytes(small, tmp_path)
    path = tmp_path / "model"
    clf.save(str(path))
    before = path.read_bytes()
    assert (path.stat().st_mode & 0o777) == 0o666 & ~_umask()

    def fail(*_):
        raise OSError("the disk is full")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(ModelFileError, match="disk is full"):
                clf.save(path)
        assert path.read_bytes() == before
        assert sorted(p.name for p in tmp_path.iterdir()) == ["file", "model"]
    with pytest.raises(ModelFileError, match=r"no folder .*nowhere.*create it"):
        clf.save(tmp_path / "nowhere" / "model")


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_equal_classifiers_give_equal_files(small, tmp_path):
    clf = load_bytes(small, tmp_path)
    clf.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == small


def test_files_of_another_kind_are_named_as_such(small, tmp_path):
    with pytest.raises(ModelFileError, match=r"there is no file .*absent"):
        emsco.load(tmp_path / "absent")
    with pytest.raises(ModelFileError, match="cannot be read"):
        emsco.load(tmp_path)
    for data in (b"", b"hello", pickle.dumps([1])):
        with pytest.raises(ModelFileError, match="not a model file"):
            load_bytes(data, tmp_path)
    with pytest.raises(ModelFileError, match="not a model file: a zip without"):
        load_bytes(zipped({"a": b"b"}), tmp_path)
    with pytest.raises(ModelFileError, match="not a model file: manifest"):
        load_bytes(zipped({"manifest.json": b'{"format": "other"}'}), tmp_path)
    for end in (len(small) // 2, len(small) - 1):
        with pytest.raises(ModelFileError, match="damaged: its end is missing"):
            load_bytes(small[:end], tmp_path)


def with_manifest(data, **changes):
    members = unpack(data)
    records = {name: {"bytes": len(c), "sha256": sha256(c).hexdigest()} for name, c in members.items()}
    manifest = {"format": "emsco-model", "version": 1, "members": records} | changes
    return zipped({"manifest.json": json.dumps(manifest).encode(), **members})


def test_a_newer_version_asks_for_an_upgrade(small, tmp_path):
    load_bytes(with_manifest(small), tmp_path)
    with pytest.raises(ModelFileError, match=r"newer emsco \(file version 2.*upgrade"):
        load_bytes(with_manifest(small, version=2), tmp_path)
    for version in (0, -1, True, None, "1", 1.0):
        with pytest.raises(ModelFileError, match="the version is"):
            load_bytes(with_manifest(small, version=version), tmp_path)


def test_members_must_be_those_of_the_manifest(small, tmp_path):
    members = unpack(small)
    changed = {**members, "arrays/weights.npy": members["arrays/weights.npy"][:-1] + b"\x00"}
    records = {name: {"bytes": len(c), "sha256": sha256(c).hexdigest()} for name, c in members.items()}
    manifest = {"format": "emsco-model", "version": 1, "members": records}
    with pytest.raises(ModelFileError, match=r"weights.npy does not have the checksum"):
        load_bytes(zipped({"manifest.json": json.dumps(manifest).encode(), **changed}), tmp_path)
    with pytest.raises(ModelFileError, match="members are not those"):
        load_bytes(zipped({"manifest.json": json.dumps(manifest).encode(), **members, "extra": b""}), tmp_path)
    with pytest.raises(ModelFileError, match=r"nothing refers to \['extra'\]"):
        load_bytes(pack({**members, "extra": b""}), tmp_path)
    manifest["members"] = {"model.json": records["model.json"]}
    twice = zipped({"manifest.json": json.dumps(manifest).encode(), "model.json": b"{}", "other.json": b"{}"})
    with pytest.raises(ModelFileError, match="members are not those"):
        load_bytes(twice.replace(b"other.json", b"model.json"), tmp_path)


def changed_json(data, change):
    members = unpack(data)
    record = json.loads(members["model.json"])
    change(record)
    return pack({**members, "model.json": json.dumps(record).encode()})


def test_a_file_of_before_there_were_price_models_has_plain_prices(small, tmp_path):
    def forget(record):
        for name in ("overhead", "parallel"):
            del record["prices"][name]

    clf = load_bytes(changed_json(small, forget), tmp_path)
    assert (clf.deployed_.prices.overhead, clf.deployed_.prices.parallel) == (0, False)
    given = costs_to_json(Prices(price={"a": 1}))
    del given["overhead"], given["parallel"]
    assert costs_from_json(Fields(given, "costs")) == Prices(price={"a": 1})
    visits = Prices(price={"a": 1}, overhead=2, parallel=True)
    assert costs_from_json(Fields(costs_to_json(visits), "costs")) == visits
    assert clf.deployed_.prices.sources == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda r: r.update(classifier="os.system"), "wanted one of EMSCOClassifier"),
        (lambda r: r["parameters"].update(threshold=1.5), "threshold must be"),
        (lambda r: r["parameters"].update(n_jobs=0), "n_jobs"),
        (lambda r: r["parameters"].update(color="red"), "no parameter 'color'"),
        (lambda r: r["parameters"].update(search={"kind": "Exact", "time_limit": "x"}), "time_limit"),
        (lambda r: r["classes"].update(labels=["well", "ill"]), "labels in order"),
        (lambda r: r["classes"].update(dtype="<U999999999"), "labels of type"),
        (lambda r: r["classes"].update(labels=["ill", "a word that is too long"]), "labels in order"),
        (lambda r: r["columns"][0].update(inverse_scale=0), "inverse_scale is 0"),
        (lambda r: r["columns"][0].update(mean=10**400), "wanted a number"),
        (lambda r: r["columns"][1].update(categories=["a", "a"]), "not distinct"),
        (lambda r: r["columns"].append(r["columns"][0]), "not distinct"),
        (lambda r: r["prices"]["units"].update(age=[7]), "does not have"),
        (lambda r: r["prices"]["price"].update(age=-1), "at least 0"),
        (lambda r: r["prices"].update(overhead=-1), "overhead is -1; wanted a number from 0"),
        (lambda r: r["prices"].update(parallel="yes"), "parallel is 'yes'; wanted true or false"),
        (lambda r: r.update(point=99), "point is 99"),
        (lambda r: r.update(models="pickle"), "wanted logistic or skops"),
        (lambda r: r["evaluation"]["everything"].update(n_rejected=99), "do not add up"),
        (lambda r: r["certificate"].update(proven=1), "wanted true or false"),
        (lambda r: r.update(notes=[]), "notes"),
        (lambda r: r.pop("columns"), "has no columns"),
    ],
)
def test_checksums_are_not_proof_so_every_field_is_checked(small, tmp_path, change, says):
    with pytest.raises(ModelFileError, match=says):
        load_bytes(changed_json(small, change), tmp_path)


@pytest.mark.parametrize(
    ("name", "array", "says"),
    [
        ("designs", np.array([[0, 0, 2]]), "without gaps"),
        ("designs", np.array([[0, 0, -2]]), "cannot be"),
        ("designs", np.zeros((1, 4), np.int64), "wanted <i8 of shape"),
        ("designs", np.zeros((1, 3)), "wanted <i8 of shape"),
        ("designs", np.zeros((0, 3), np.int64), "cannot be"),
        ("weights", np.zeros(3), "wanted <f8 of shape"),
        ("history", np.zeros((2, 2), np.int64), "wanted <i8 of shape"),
    ],
)
def test_arrays_are_checked_against_each_other(small, tmp_path, name, array, says):
    with pytest.raises(ModelFileError, match=says):
        load_bytes(pack({**unpack(small), f"arrays/{name}.npy": saved(array)}), tmp_path)


def test_numbers_that_are_not_finite_are_refused(small, tmp_path):
    members = unpack(small)
    for name, value in (("weights", np.nan), ("intercepts", np.inf), ("mean_cost", np.nan), ("coverage", 2.0)):
        array = np.load(BytesIO(members[f"arrays/{name}.npy"])).copy()
        array.flat[0] = value
        with pytest.raises(ModelFileError, match=r"not finite|out of range"):
            load_bytes(pack({**members, f"arrays/{name}.npy": saved(array)}), tmp_path)
    for text in (b'{"a": NaN}', b'{"a": -Infinity}', b"[" * 100_000, b"\xff", b"{", b"[" * 70 + b"]" * 70):
        with pytest.raises(ModelFileError, match=r"model.json is"):
            load_bytes(pack({**members, "model.json": text}), tmp_path)


def test_a_pickle_inside_an_array_is_not_run(small, tmp_path):
    trap = tmp_path / "trap"
    head = saved(np.array([None], dtype=object), allow_pickle=True)[:128]
    payload = head + pickle.dumps(Trap(trap))
    np.load(BytesIO(payload), allow_pickle=True)
    trap.unlink()  # the trap works ...
    with pytest.raises(ModelFileError, match=r"not an array that clf\.save writes"):
        load_bytes(pack({**unpack(small), "arrays/weights.npy": payload}), tmp_path)
    assert not trap.exists()  # ... and load does not step into it


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    """The members of a file of random forests."""
    X, y = fuzz_models.patients()
    path = tmp_path_factory.mktemp("forest") / "forest.emsco"
    MultiStageClassifier(estimator=RandomForestClassifier(2, max_depth=2), random_state=0).fit(X, y).save(path)
    return unpack(path.read_bytes())


def test_types_that_are_not_on_the_list_are_not_made(forest, tmp_path):
    parts = container.unpack_plain(forest["models/0.skops"])
    schema = json.loads(parts["schema.json"])
    call = {"__module__": "os", "__class__": "system", "__loader__": "FunctionNode", "content": "system", "__id__": 1}
    schema["content"]["content"]["estimators_"]["content"][0] = call
    data = zipped({**parts, "schema.json": json.dumps(schema).encode()})
    with pytest.raises(ModelFileError, match=r"models/0.skops holds .*system"):
        load_bytes(pack({**forest, "models/0.skops": data}), tmp_path)


def test_indices_inside_trees_are_checked(forest, tmp_path):
    parts = container.unpack_plain(forest["models/0.skops"])
    n_refused = 0
    for name, content in parts.items():
        array = np.load(BytesIO(content)).copy() if name.endswith(".npy") else np.empty(0)
        for field in ("left_child", "right_child", "feature"):
            if field in (array.dtype.names or ()):
                wild = array.copy()
                wild[field][0] = 2**40
                data = zipped({**parts, name: saved(wild)})
                with pytest.raises(ModelFileError, match=r"children after|columns there are"):
                    load_bytes(pack({**forest, "models/0.skops": data}), tmp_path)
                n_refused += 1
    assert n_refused == 6


def test_the_members_of_an_estimator_are_bounded_too(forest, tmp_path):
    parts = container.unpack_plain(forest["models/0.skops"])
    with pytest.raises(ModelFileError, match="neither JSON nor an array"):
        estimators.from_bytes(zipped({**parts, "x.npz": b""}), "it")
    name = next(part for part in parts if part.endswith(".npy"))
    for content in (
        b"",
        saved(np.zeros(3))[:-1],
        saved(np.zeros(3)).replace(b"(3,)", b"(3000000000,)"),
        parts[name] * 2,
    ):
        with pytest.raises(ModelFileError, match="holds an array that cannot be read"):
            estimators.from_bytes(zipped({**parts, name: content}), "it")


def test_bombs_do_not_go_off(small, tmp_path, monkeypatch):
    members = unpack(small)
    monkeypatch.setattr(container, "MAX_BYTES", 200_000)
    bomb = BytesIO()
    with zipfile.ZipFile(bomb, "w") as archive:
        record = {"bytes": 10**7, "sha256": sha256(bytes(10**7)).hexdigest()}
        manifest = {"format": "emsco-model", "version": 1, "members": {"model.json": record}}
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("model.json", bytes(10**7), compress_type=zipfile.ZIP_DEFLATED)
    assert len(bomb.getvalue()) < 20_000
    with pytest.raises(ModelFileError, match="larger than 200,000 bytes"):
        load_bytes(bomb.getvalue(), tmp_path)
    with pytest.raises(ModelFileError, match="larger than 200,000 bytes"):
        load_bytes(bytes(200_001), tmp_path)
    with pytest.raises(ModelFileError, match="Save fewer points"):
        pack({**members, "x": os.urandom(200_001)})
    monkeypatch.undo()
    lying = small[:-12] + b"\xff\xff" + small[-10:]
    with pytest.raises(ModelFileError, match=f"more than {MAX_MEMBERS:,} members"):
        load_bytes(lying, tmp_path)
    assert MAX_BYTES == 2**30


def test_millions_of_designs_are_refused_at_once(small, tmp_path):
    many = saved(np.zeros((2_000_000, 3), np.int64))
    gaps = saved(np.tile([[0, 0, 1]], (200_000, 1)) * 2)
    data = [pack({**unpack(small), "arrays/designs.npy": array}) for array in (many, gaps)]
    assert len(data[0]) < 250_000
    started = process_time()
    for file, says in zip(data, ("the limit is", "without gaps"), strict=True):
        with pytest.raises(ModelFileError, match=says):
            load_bytes(file, tmp_path)
    assert process_time() - started < 10


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match=r"^'[^']*' is not a regular file; copy the model to a file first\.$"):
        emsco.load(tmp_path / "pipe")


def test_what_is_loaded_can_be_saved_again(small, tmp_path):
    members = unpack(small)
    record = json.loads(members["model.json"])
    text = json.dumps({**record, "notes": {"n": "here"}}).replace('"here"', "1e999")
    with pytest.raises(ModelFileError, match="1e999 is no number"):
        load_bytes(pack({**members, "model.json": text.encode()}), tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [("max_stages", -1), ("max_stages", 1.5), ("C", -1), ("C", "much"), ("encoding", "cubic"), ("calibration", "x"),
     ("cache_bytes", 0), ("removal", "yes"), ("random_state", -1), ("final_estimator", "forest"), ("products", 3)],
)  # fmt: skip
def test_parameters_of_a_file_are_checked_as_those_of_a_fit(small, tmp_path, name, value):
    with pytest.raises(ModelFileError, match=name):
        load_bytes(changed_json(small, lambda record: record["parameters"].update({name: value})), tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="permissions and links as POSIX has them")
def test_a_saved_model_keeps_the_permissions_and_the_link_of_its_file(small, tmp_path):
    clf = load_bytes(small, tmp_path)
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "current").symlink_to("file")
    clf.use(len(clf.front_) - 1).save(tmp_path / "current")
    assert (tmp_path / "current").is_symlink()
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    assert emsco.load(tmp_path / "file").point_ == len(clf.front_) - 1


def test_mutated_files_are_refused_or_work():
    counts, failures = fuzz_models.run(300, names=("forest", "boosting", "neighbours", "light", "calibrated", "scaled"))
    assert not failures
    ends = {end: sum(n for (_, e), n in counts.items() if e == end) for _, end in counts}
    assert sum(ends.values()) == 300
    assert ends["refused"] > 150
    assert set(ends) <= {"refused", "refused when used", "works", "unchanged"}


def test_a_file_can_be_loaded_by_another_process(small, tmp_path):
    (tmp_path / "model").write_bytes(small)
    code = f"import emsco; clf = emsco.load({str(tmp_path / 'model')!r}); print(clf.point_, len(clf.front_))"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    clf = load_bytes(small, tmp_path)
    assert done.stdout.split() == [str(clf.point_), str(len(clf.front_))], done.stderr


def test_a_front_of_many_models_is_small_and_quick(tmp_path):
    heart = load_heart_failure()
    clf = fixed(heart.prices, max_stages=4, random_state=0, search="auto", preset="paper")
    clf.fit(heart.data, heart.target)
    assert len(clf.deployed_.models) > 60
    clf.save(tmp_path / "heart.emsco")
    assert (tmp_path / "heart.emsco").stat().st_size < 40_000
    started = process_time()
    emsco.load(tmp_path / "heart.emsco")
    assert process_time() - started < 2
