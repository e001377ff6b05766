"""Walking the manifest with onnxruntime alone decides as ``decide`` does."""

import json
import subprocess
import sys

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import onnx
import onnxruntime
import pandas as pd
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from emsco import EMSCOClassifier, Evolution, MultiStageClassifier
from emsco.datasets import load_heart_failure
from emsco.deployed import export
from emsco.designs.branched import Route
from emsco.exceptions import ExportError, InvalidParameterError, MissingDependencyError
from tests.classifiers import BARS, CATEGORY, CHAINS, SICK, branching, fixed, sick
from tests.storage.test_storage import Coin
from tests.test_estimators import PANEL, patients


def walk(folder, X):
    """Decide rows as a program without emsco would."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    if manifest["version"] == 2:
        return walk_branches(folder, manifest, X)
    return walk_stages(folder, manifest, manifest["stages"], X)


def walk_branches(folder, manifest, X):
    """Decide rows branch by branch; the route reads the cells, or asks the graph of the root."""
    route, branches = manifest["route"], manifest["branches"]
    place = {value: b for b, group in enumerate(route["groups"]) for value in group}
    if route["kind"] == "leaning":
        root = {**branches[0]["stages"][0], "thresholds": [0.0] * len(manifest["classes"])}
        said = walk_stages(folder, manifest, [root], X)[0]
        branch = np.array([place.get(manifest["classes"].index(label), route["default"]) for label in said])
    else:
        assert route["kind"] == "category"
        branch = np.array([place.get(value, route["default"]) for value in X[route["columns"][0]]])
    found = [np.empty(len(X), dtype=object), np.zeros(len(X), int), np.zeros(len(X)), np.zeros(len(X))]
    for b, part in enumerate(branches):
        for mine, theirs in zip(found, walk_stages(folder, manifest, part["stages"], X[branch == b]), strict=True):
            mine[branch == b] = theirs
    return [found[0].tolist(), *found[1:]]


def walk_stages(folder, manifest, stages, X):
    """Decide rows by a chain."""
    label = np.full(len(X), -1)
    stage = np.zeros(len(X), dtype=int)
    confidence, cost = np.zeros(len(X)), np.zeros(len(X))
    waiting = np.arange(len(X))
    for number, record in enumerate(stages):
        session = onnxruntime.InferenceSession(folder / record["graph"], providers=["CPUExecutionProvider"])
        feeds = {}
        for column in record["inputs"]:
            cells = X[column["column"]].iloc[waiting]
            if column["kind"] == "number":
                cells = cells.astype(float).to_numpy()
            else:
                cells = cells.astype(object).where(cells.notna(), column["missing"]).to_numpy(dtype=object)
            feeds[column["input"]] = cells[:, None]
        _, sure, best = session.run(["probabilities", "confidence", "label"], feeds)
        stage[waiting], confidence[waiting], cost[waiting] = number, sure, record["paid"]
        leaving = sure >= np.array(record["thresholds"])[best]
        label[waiting[leaving]] = best[leaving]
        waiting = waiting[~leaving]
        if not waiting.size:
            break
    if "errors" in manifest:
        label[label == manifest["errors"]["no_answer"]] = -1
    return [None if i < 0 else manifest["classes"][i] for i in label], stage, confidence, cost


def assert_same_walk(clf, X, folder, *, atol=1e-9):
    clf.export_onnx(folder)
    label, stage, confidence, cost = walk(folder, X)
    decisions = clf.decide(X)
    assert label == decisions.label.tolist()
    assert_array_equal(stage, decisions.stage)
    assert_allclose(confidence, decisions.confidence, rtol=0, atol=atol)
    assert_array_equal(cost, decisions.cost)


def test_heart_failure(tmp_path):
    heart = load_heart_failure()
    clf = fixed(heart.prices, max_stages=3, random_state=0).fit(heart.data, heart.target)
    for point in (0, len(clf.front_) // 2, len(clf.front_) - 1):
        assert_same_walk(clf.use(point), heart.data, tmp_path / str(point))


def test_iris_has_three_classes(tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    clf = MultiStageClassifier([0, 0, 1, 1], threshold=0.8).fit(X, names[y])
    assert_same_walk(clf, X, tmp_path)


def test_text_missing_rare_and_unseen_values(tmp_path):
    X, y = patients()
    X["city"] = [f"c{i % 60}" if i % 7 else None for i in range(len(X))]
    clf = MultiStageClassifier([0, 1, 0, 1, 2, 1, 2], threshold=0.9).fit(X, y)
    assert clf.deployed_.encoder.codes[6].pools_rare
    new, _ = patients(500, seed=3)
    new["city"] = [["c1", "c59", "atlantis", None][i % 4] for i in range(len(new))]
    new.loc[::3, "age"] = np.nan
    new.loc[::5, "ward"] = "a new ward"
    new.loc[0, "creatinine"] = 1e300
    assert_same_walk(clf, new, tmp_path)


def measured(n, seed):
    """Zeros, missing values, outliers, two values only, and a scale of its own."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = pd.DataFrame(rng.normal(size=(n, 5)) + y[:, None] * [1.0, 0.5, 0.3, 0.0, 0.2], columns=list("abcde"))
    X["b"] = np.where(rng.random(n) < 0.3, 0.0, np.exp(3 * X["b"]))
    X["c"] = X["c"].round()
    X["d"] = rng.integers(2, size=n)
    X["e"] *= 1e-150
    X["f"] = rng.choice(["u", "v", None], size=n)
    X.loc[rng.random(n) < 0.2, ["a", "b"]] = np.nan
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("encoding", ["rank", "spline"])
def test_curves_with_zeros_and_missing_values(encoding, n_classes, tmp_path):
    X, y = measured(400, 0)
    clf = MultiStageClassifier([0, 1, 1, 2, 0, 2], threshold=0.7, encoding=encoding).fit(X, y % n_classes)
    kinds = [type(code).__name__ for code in clf.deployed_.encoder.codes]
    assert kinds == ["CurveCode", "CurveCode", "CurveCode", "NumberCode", "CurveCode", "CategoryCode"]
    assert clf.deployed_.encoder.codes[1].at_zero is not None
    new, _ = measured(500, 1)
    new.loc[:9, "a"] = [0.0, -0.0, 1e300, -1e300, *clf.deployed_.encoder.codes[0].knots[:6]]
    new.loc[:9, "b"] = [0.0, -0.0, 1e300, -1e300, 1e-320, *clf.deployed_.encoder.codes[1].knots[-5:]]
    new.loc[::11, "c"] = np.nan  # not missing in training
    assert_same_walk(clf, new, tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / "stage-2.onnx", providers=["CPUExecutionProvider"])
    text = new["f"].astype(object).where(new["f"].notna(), "")
    feeds = {f"column_{i}": (text if name == "f" else new[name].astype(float)).to_numpy()[:, None]
             for i, name in enumerate(new)}  # fmt: skip
    probabilities, _, _ = session.run(None, feeds)
    clf.threshold = 1.0  # every row goes through all stages
    assert_allclose(probabilities, clf.predict_proba(new), rtol=0, atol=1e-12)


def test_probabilities_agree_to_twelve_digits(tmp_path):
    X, y = patients(1000)
    clf = MultiStageClassifier().fit(X, y)
    clf.export_onnx(tmp_path)
    session = onnxruntime.InferenceSession(tmp_path / "stage-0.onnx", providers=["CPUExecutionProvider"])
    feeds = {}
    for i, name in enumerate(X):
        text = name == "ward"
        feeds[f"column_{i}"] = X[name].astype(object).where(X[name].notna(), "") if text else X[name].astype(float)
        feeds[f"column_{i}"] = feeds[f"column_{i}"].to_numpy()[:, None]
    probabilities, _, _ = session.run(None, feeds)
    assert probabilities.dtype == np.float64
    assert_allclose(probabilities, clf.predict_proba(X), rtol=0, atol=1e-12)


def test_an_empty_text_may_be_a_category(tmp_path):
    X = pd.DataFrame({"ward": ["", "a", "b", None] * 30, "age": np.arange(120.0)})
    clf = MultiStageClassifier().fit(X, (X["ward"] == "") | (X["age"] > 100))
    assert_same_walk(clf, X, tmp_path)
    (column, _) = json.loads((tmp_path / "manifest.json").read_text())["stages"][0]["inputs"]
    assert column["categories"] == ["", "a", "b"]
    assert column["missing"] == "missing 0"


@pytest.mark.parametrize(
    "estimator",
    [
        RandomForestClassifier(5, max_depth=4),
        DecisionTreeClassifier(max_depth=3),
        make_pipeline(StandardScaler(), GaussianNB()),
    ],
    ids=lambda e: type(e).__name__,
)
def test_other_estimators_are_converted_in_single_precision(estimator, tmp_path):
    X, y = patients()
    clf = MultiStageClassifier([0, 1, 0, 1, 1, 0], estimator=estimator, random_state=0).fit(X, y)
    assert_same_walk(clf, X, tmp_path, atol=1e-5)
    assert json.loads((tmp_path / "manifest.json").read_text())["stages"][0]["precision"] == "float32"


def test_an_estimator_that_cannot_be_converted_is_named(tmp_path):
    X, y = patients()
    with pytest.raises(ExportError, match="cannot convert Coin"):
        MultiStageClassifier(estimator=Coin()).fit(X, y).export_onnx(tmp_path / "coin")
    assert not (tmp_path / "coin").exists()


def test_a_graph_that_does_not_agree_is_not_written(tmp_path, monkeypatch):
    X, y = patients()
    clf = MultiStageClassifier([0, 1, 0, 1, 1, 0]).fit(X, y)
    whole = export._add_logistic

    def wrong(builder, model, encoded):
        whole(builder, type(model)(model.coef_ + 1e-6, model.intercept_), encoded)

    monkeypatch.setattr(export, "_add_logistic", wrong)
    with pytest.raises(ExportError, match=r"LogisticModel gives probabilities up to .* away from ours"):
        clf.export_onnx(tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()
    monkeypatch.undo()
    isotonic = CalibratedClassifierCV(GaussianNB(), cv=2, method="isotonic")
    with pytest.raises(ExportError, match="CalibratedClassifierCV gives probabilities"):  # skl2onnx rounds its steps
        MultiStageClassifier(estimator=isotonic).fit(X, y).export_onnx(tmp_path / "wrong")


def test_the_manifest_says_what_each_stage_buys(tmp_path):
    X, y = patients()
    search = Evolution(population_size=20, max_generations=2)
    clf = fixed(PANEL, threshold=0.8, search=search, random_state=0, preset="paper").fit(X, y)
    clf.use(int(clf.front_.n_stages.argmax())).export_onnx(str(tmp_path / "a" / "b"))
    manifest = json.loads((tmp_path / "a" / "b" / "manifest.json").read_text())
    assert (manifest["format"], manifest["version"], manifest["threshold"]) == ("emsco-onnx", 1, 0.8)
    assert manifest["classes"] == ["dies", "lives"]
    assert [tuple(s["features"]) for s in manifest["stages"]] == [s.features for s in clf.stages_]
    assert sum(s["price"] for s in manifest["stages"]) == manifest["stages"][-1]["paid"] == 44
    for stage in manifest["stages"]:
        graph = onnx.load(tmp_path / "a" / "b" / stage["graph"]).graph
        assert [i.name for i in graph.input] == [i["input"] for i in stage["inputs"]]
        assert set(stage["columns"]) <= {i["column"] for i in stage["inputs"]}


def test_what_cannot_be_exported_is_an_error(tmp_path, monkeypatch):
    X, y = patients()
    clf = MultiStageClassifier().fit(X, y)
    with pytest.raises(NotFittedError):
        MultiStageClassifier().export_onnx(tmp_path)
    with pytest.raises(InvalidParameterError, match="folder must be"):
        clf.export_onnx(3)
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be made"):
        clf.export_onnx(tmp_path / "file")
    (tmp_path / "manifest.json").mkdir()
    with pytest.raises(ExportError, match="is a folder"):
        clf.export_onnx(tmp_path)
    for package in ("onnx", "onnxruntime"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(MissingDependencyError, match=r"pip install 'emsco\[onnx\]'"):
                clf.export_onnx(tmp_path / "x")


def test_onnx_and_skops_are_imported_when_they_are_needed():
    code = (
        "import sys, emsco; emsco.EMSCOClassifier, emsco.load;"
        "sys.exit(any(m in sys.modules for m in ('onnx', 'onnxruntime', 'skl2onnx', 'skops')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("threshold", [{"setosa": 0.9, "versicolor": 0.5, "virginica": 0.7}, [0.9, 0.6], 0.8])
def test_thresholds_per_class_and_stage_are_in_the_manifest(threshold, tmp_path):
    X, y = load_iris(return_X_y=True, as_frame=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    clf = MultiStageClassifier([0, 0, 1, 1], threshold=threshold).fit(X, names[y])
    assert_same_walk(clf, X, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["threshold"] == (threshold if isinstance(threshold, float) else None)
    assert [stage["thresholds"] for stage in manifest["stages"]] == [
        np.broadcast_to(row, 3).tolist() for row in clf.deployed_.rule.matrix(2)
    ]


def _priced(errors, **parameters):
    """Rows of three tests, each better and dearer than the one before, and a classifier with prices of errors."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    X = pd.DataFrame({f"t{i}": y + rng.normal(0, 1.2 / (i + 1), 400) for i in range(3)})
    return EMSCOClassifier([1, 3, 8], errors=errors, random_state=0, **parameters).fit(X, y), X


_ERRORS = np.array([[0, 30, 60], [40, 0, 20], [90, 30, 0]])


@pytest.mark.parametrize("reject", [None, 14])
@pytest.mark.parametrize(
    "parameters", [{"final_estimator": "search"}, {"estimator": DecisionTreeClassifier(max_depth=3)}, {}]
)
def test_graphs_of_a_money_model_give_the_answer_of_least_expected_price(reject, parameters, tmp_path):
    errors = _ERRORS if reject is None else np.column_stack([_ERRORS, [reject] * 3])
    clf, X = _priced(errors, **parameters)
    buys = np.flatnonzero((clf.front_.designs >= 0).any(axis=1))
    cheapest, dearest = (int(buys[order(clf.front_.mean_cost[buys])]) for order in (np.argmin, np.argmax))
    for point in {clf.point_, cheapest, dearest}:
        assert_same_walk(clf.use(point), X, tmp_path / str(point), atol=1e-6)
    manifest = json.loads((tmp_path / str(dearest) / "manifest.json").read_text())
    assert manifest["errors"]["prices"] == errors.tolist()
    assert manifest["errors"]["no_answer"] == (None if reject is None else 3)
    assert clf.use(cheapest).decide(X).conclusive.all() == (reject is None)


def test_money_models_that_graphs_cannot_stand_for_are_refused(tmp_path):
    clf, _ = _priced(_ERRORS)
    with pytest.raises(ExportError, match="buys nothing"):
        clf.use(int(clf.front_.mean_cost.argmin())).export_onnx(tmp_path)
    errors = [["0 + 1 * t0" if i != j else 0 for j in range(3)] for i in range(3)]
    X = pd.DataFrame({"t0": [1.0, 2.0, 3.0] * 20, "t1": [0.0, 1.0, 2.0] * 20})
    clf = EMSCOClassifier([0, 1], errors=errors, random_state=0).fit(X, [0, 1, 2] * 20)
    with pytest.raises(ExportError, match="grow with the column 't0'"):
        clf.export_onnx(tmp_path)


@pytest.mark.parametrize("kind", ["category", "leaning"])
def test_a_design_that_branches_is_walked_branch_by_branch(kind, tmp_path):
    X, y = sick()
    leaning = Route("leaning", -1, groups=((0,), (1,)), n_branches=2)
    n = 3 if kind == "category" else 2
    route = CATEGORY if kind == "category" else leaning
    clf = branching(X, y, CHAINS[:n], route, BARS[:n], costs=SICK, experts=("own", "shared", "weighted")[:n])
    assert_same_walk(clf, X, tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["version"] == 2
    assert [len(part["stages"]) for part in manifest["branches"]] == [3, 2, 3][:n]
    assert {part["stages"][0]["graph"] for part in manifest["branches"]} == {"stage-0.onnx"}
