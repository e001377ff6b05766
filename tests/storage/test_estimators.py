"""Estimators on the list come back bit for bit; nothing else is made, and nothing that could crash compiled code."""

from io import BytesIO
import json
import resource
import subprocess
import sys
import warnings

from lightgbm import Booster, LGBMClassifier
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, StackingClassifier
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures
from sklearn.svm import SVC
import skops.io

from emsco.exceptions import ModelFileError
from emsco.storage import estimators
from emsco.storage.container import unpack_plain
from emsco.storage.estimator_specs import CLASSIFIERS, TRANSFORMERS
from emsco.storage.estimator_trees import booster_text
from tests.storage.fuzz_models import saved, zipped
from tests.storage.zoo import classes, machine, rows, zoo

ZOO = zoo()


def trained(estimator, n_classes=2):
    estimator = clone(estimator)
    seeds = {name: 0 for name in estimator.get_params() if name.endswith("random_state")}
    X = rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few iterations, settings that will go
        return estimator.set_params(**seeds).fit(X, classes(X, n_classes))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", [*ZOO, "machine"])
def test_an_estimator_on_the_list_comes_back(name, n_classes):
    if name == "support vectors" and n_classes == 3:
        pytest.skip("the frozen part knows two classes")
    model = trained(machine() if name == "machine" else ZOO[name], n_classes)
    again = estimators.from_bytes(estimators.to_bytes(model), name)
    estimators.check_model(again, name, n_columns=3, n_classes=n_classes)
    new = rows(200, seed=9)
    assert_array_equal(again.predict_proba(new), model.predict_proba(new))


@pytest.mark.parametrize("name", ZOO)
def test_an_estimator_that_is_not_trained_comes_back_with_its_settings(name):
    again = estimators.from_bytes(estimators.to_bytes(ZOO[name]), name)
    assert repr(again) == repr(ZOO[name])
    assert not hasattr(again, "classes_") or name == "support vectors"


def test_every_class_on_the_list_is_tried():
    text = repr([*ZOO.values(), machine()])
    assert not [name for name in (*CLASSIFIERS, *TRANSFORMERS) if f"{name}(" not in text]


def schema_of(data):
    parts = unpack_plain(data)
    return parts, json.loads(parts["schema.json"])


def with_schema(parts, schema):
    return zipped({**parts, "schema.json": json.dumps(schema).encode()})


def attributes(schema):
    return schema["content"]["content"]


@pytest.mark.parametrize(
    ("estimator", "holds"),
    [
        (make_pipeline(SelectKBest(k=2), LogisticRegression()), "SelectKBest"),
        (make_pipeline(FunctionTransformer(np.abs), LogisticRegression()), "FunctionTransformer"),
        (StackingClassifier([("bayes", GaussianNB()), ("boost", HistGradientBoostingRegressor(max_iter=2))],
                            stack_method="predict", cv=2), "HistGradientBoostingRegressor"),
    ],
)  # fmt: skip
def test_an_estimator_that_is_not_on_the_list_is_refused_by_name_when_it_is_saved(estimator, holds):
    says = (
        rf"cannot be saved: it holds sklearn\..*{holds}, which is not among the estimators that a model file may hold"
    )
    with pytest.raises(ModelFileError, match=says):
        estimators.to_bytes(trained(estimator))


@pytest.mark.parametrize(
    ("estimator", "says"),
    [
        (KNeighborsClassifier(weights=np.negative), "weights"),
        (make_pipeline(OneHotEncoder(drop="first", handle_unknown="ignore"), LogisticRegression()), "drop"),
        (SVC(kernel=np.dot), "kernel"),
        (LogisticRegression(n_jobs=10_000), "n_jobs"),
        (LGBMClassifier(nthreads=10_000), "known settings only"),
        (LGBMClassifier(max_bin="255 num_threads=10000"), "a number from"),
        (LGBMClassifier(num_leaves="31 num_threads=10000"), "num_leaves"),
        (LGBMClassifier(importance_type="split num_threads=10000"), "importance_type"),
    ],
)
def test_settings_that_a_file_cannot_hold_are_refused_by_name(estimator, says):
    with pytest.raises(ModelFileError, match=f"cannot be saved: .*{says}"):
        estimators.to_bytes(estimator)


@pytest.mark.parametrize("name", ["forest", "boosting", "gradient", "light", "one hot", "network", "gaussian"])
def test_an_attribute_that_is_not_known_is_refused(name):
    parts, schema = schema_of(estimators.to_bytes(trained(ZOO[name])))
    kinds = schema["content"]["key_types"]["content"]
    kinds.append(kinds[0])
    attributes(schema)["extra_"] = next(iter(attributes(schema).values()))
    with pytest.raises(ModelFileError, match=r"not known: \['extra_'\]"):
        estimators.from_bytes(with_schema(parts, schema), "it")


def test_a_class_is_not_taken_from_where_the_file_says():
    parts, schema = schema_of(estimators.to_bytes(trained(GaussianNB())))
    schema["__module__"] = "sklearn.not.there"
    assert isinstance(estimators.from_bytes(with_schema(parts, schema), "it"), GaussianNB)
    schema["__module__"] = "os"
    with pytest.raises(ModelFileError, match=r"it holds os\.GaussianNB, which is not among"):
        estimators.from_bytes(with_schema(parts, schema), "it")


CRASHES = """
import sys
from emsco.exceptions import ModelFileError
from emsco.storage import estimators
try:
    model = estimators.from_bytes(open(sys.argv[1], "rb").read(), "it")
    estimators.check_model(model, "it", n_columns=3, n_classes=2)
    print("loaded")
except ModelFileError as error:
    print("refused:", error)
"""


def outcome(data, tmp_path):
    """Return what a process of its own says of an estimator, within limits."""
    (tmp_path / "it").write_bytes(data)

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    done = subprocess.run(
        [sys.executable, "-c", CRASHES, str(tmp_path / "it")], capture_output=True, text=True, check=False,
        preexec_fn=limits, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def test_the_files_that_crashed_or_hung_are_refused(tmp_path):
    X = rows()
    y = classes(X, 2)
    boosters = [("boost", HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5)), ("bayes", GaussianNB())]
    stacked = skops.io.dumps(StackingClassifier(boosters, stack_method="predict", cv=2).fit(X, y))
    assert "refused" in outcome(stacked, tmp_path)
    parts, schema = schema_of(estimators.to_bytes(trained(ZOO["one hot"])))
    encoder = attributes(schema)["steps"]["content"][0]["content"][1]["content"]["content"]
    outs = encoder["_n_features_outs"]["content"]
    outs[0]["content"], outs[1]["content"] = "7000000", "-6999992"
    assert "loaded" in outcome(with_schema(parts, schema), tmp_path)  # the numbers are computed again
    parts, schema = schema_of(estimators.to_bytes(trained(ZOO["boosting"])))
    for change in ({"feature_idx": 2**30}, {"left": 0, "right": 0, "is_leaf": 0}, {"is_categorical": 1}):
        changed = {name: wild(content, change) for name, content in parts.items()}
        assert changed != parts
        with pytest.raises(ModelFileError, match=r"children after|columns there are|without categories"):
            estimators.from_bytes(zipped(changed), "it")


def wild(content, change):
    array = np.load(BytesIO(content)) if content.startswith(b"\x93NUMPY") else np.empty(0)
    if not set(change) <= set(array.dtype.names or ()):
        return content
    array = array.copy()
    for field, value in change.items():
        array[field][0] = value
    return saved(array)


def test_a_small_file_cannot_fill_the_memory():
    parts, schema = schema_of(estimators.to_bytes(trained(GaussianNB())))
    for text in (b"[" + b"{}," * 2_000_000 + b"{}]", b"[" * 100_000, b" " * 2**26):
        with pytest.raises(ModelFileError, match=r"values, which is the limit|is no JSON|the limit"):
            estimators.from_bytes(zipped({**parts, "schema.json": text}), "it")
    deep = schema
    for _ in range(70):
        deep = {"__loader__": "ListNode", "__class__": "list", "__module__": "builtins", "content": [deep]}
    with pytest.raises(ModelFileError, match="nested more than 128 deep"):
        estimators.from_bytes(with_schema(parts, {**deep, "protocol": 2}), "it")
    again = [attributes(schema)["theta_"]] * 10_000
    deep = {"__loader__": "ListNode", "__class__": "list", "__module__": "builtins", "content": again, "protocol": 2}
    with pytest.raises(ModelFileError, match="used too often"):
        estimators.from_bytes(with_schema(parts, deep), "it")


def test_products_of_too_many_columns_are_refused():
    model = make_pipeline(PolynomialFeatures(2), LogisticRegression())
    parts, schema = schema_of(estimators.to_bytes(trained(model)))
    step = attributes(schema)["steps"]["content"][0]["content"][1]["content"]["content"]
    for degree, says in (("7", "degree"), ("-1", "degree"), ('"x"', "degree"), ("3", "coef_|f, but|n_features_in_")):
        step["degree"]["content"] = degree
        with pytest.raises(ModelFileError, match=says):
            estimators.from_bytes(with_schema(parts, schema), "it")


LIGHT = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=2
objective=binary sigmoid:1
feature_names=Column_0 Column_1 Column_2
feature_infos=[-3.5:3.25] [-3.5:2.5] [-2.5:1.5]
tree_sizes=366

Tree=0
num_leaves=4
num_cat=0
split_feature=0 1 2
split_gain=131.757 9.5229 5.27684
threshold=0.048 -0.49 0.30
decision_type=2 2 2
left_child=1 -1 -2
right_child=2 -3 -4
leaf_value=-0.236 0.049 -1.15e-05 0.16
leaf_weight=16.5 5.25 10.75 17.5
leaf_count=66 21 43 70
internal_value=-0.04 -0.188 0.137
internal_weight=49.98 27.25 22.75
internal_count=200 109 91
is_linear=0
shrinkage=1


end of trees

parameters:
[boosting: gbdt]
end of parameters
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("split_feature=", "split_feature=9 "), ("left_child=1", "left_child=0"), ("left_child=1", "left_child=7"),
        ("right_child=2", "right_child=-9"), ("num_cat=0", "num_cat=1"), ("is_linear=0", "is_linear=1"),
        ("num_leaves=4", "num_leaves=400"), ("num_leaves=4", "num_leaves=-4"), ("num_class=1", "num_class=9"),
        ("max_feature_idx=2", "max_feature_idx=1"), ("threshold=", "threshold=nan "), ("leaf_value=", "leaf_value=x"),
        ("decision_type=2", "decision_type=1"), ("version=v4", "version=v3"), ("shrinkage=1", "shrinkage=1e99999"),
        ("objective=binary sigmoid:1", "objective=lambdarank"),
    ],
)  # fmt: skip
def test_the_trees_of_lightgbm_are_checked_number_by_number(before, after):
    assert before in LIGHT
    with pytest.raises((ValueError, KeyError)):
        booster_text(LIGHT.replace(before, after, 1), 3, 2)


def test_what_lightgbm_reads_is_written_by_us():
    """Sizes of trees are offsets into the text: those of a file are not believed."""
    hostile = LIGHT.replace("tree_sizes=", "tree_sizes=99999999 ").replace("[boosting: gbdt]", "[data: /etc/passwd]")
    assert booster_text(hostile, 3, 2) == booster_text(LIGHT, 3, 2)
    assert "passwd" not in booster_text(hostile, 3, 2)
    read = Booster(model_str=booster_text(LIGHT, 3, 2))
    assert read.predict([[0, -1, 0]], raw_score=True).tolist() == [-0.236]
