"""The outlook and the counts by class in a model file: kept to the number, and refused where they do not add up."""

from io import BytesIO
import json

import numpy as np
from numpy.testing import assert_array_equal
import pytest

import emsco
from emsco import BestFirst
from emsco.exceptions import InvalidParameterError, ModelFileError
from emsco.scoring.choice import choose_point
from emsco.storage.container import pack, unpack
from tests.classifiers import fixed
from tests.storage.test_storage import changed_json, load_bytes


@pytest.fixture(scope="module")
def fitted():
    """A classifier whose points have thresholds of their own, three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    X = rng.normal(size=(150, 4)) + y[:, None] * [1.5, 0.5, 0.3, 0]
    search = BestFirst(max_designs=50)
    clf = fixed([1, 1, 2, 5], threshold=None, choose="no_worse", search=search, validation=3, random_state=0)
    return clf.fit(X, y)


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory):
    path = tmp_path_factory.mktemp("outlook") / "m.emsco"
    fitted.save(path)
    return path.read_bytes()


def test_a_file_keeps_what_a_front_knows_by_class_and_of_new_rows(fitted, saved, tmp_path):
    front, again = fitted.front_, load_bytes(saved, tmp_path).front_
    assert (again.outlook, again.margin, again.classes) == (front.outlook, front.margin, front.classes)
    assert again.n_wrong_with_everything == front.n_wrong_with_everything
    for name in ("confusion", "against"):
        assert_array_equal(getattr(again, name), getattr(front, name))
        assert not getattr(again, name).flags.writeable
    assert sum(again.outlook.n_rows) == sum(again.outlook.n_paid) == 150


def test_the_outlook_stays_with_its_point_and_its_thresholds_whatever_changes_them(fitted, saved, tmp_path):
    path, point = tmp_path / "m.emsco", fitted.point_
    clf = load_bytes(saved, tmp_path)
    assert clf.outlook_ == fitted.outlook_ is not None
    clf.use((point + 1) % len(clf.front_)).save(path)
    again = emsco.load(path)
    assert again.outlook_ is None
    assert again.use(point).outlook_ == fitted.outlook_
    for change in ({"threshold": 0.9}, {"threshold": [0.9, 0.8]}, {"threshold": {0: 0.9, 1: 0.8, 2: 0.8}}):
        again.set_params(**change).save(path)
        assert again.outlook_ is None
        assert emsco.load(path).outlook_ is None
        assert emsco.load(path).deployed_.origin.other_thresholds
    again.threshold = None
    assert again.outlook_ == fitted.outlook_


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("n_right", lambda values: [*values[:-1], values[-1] + 200]),  # more than got a label
        ("n_right", lambda values: values[:-1]),
        ("n_right", lambda values: [-1, *values[1:]]),
        ("n_right", lambda values: [0.5, *values[1:]]),
        ("n_right", lambda values: [True, *values[1:]]),
        ("n_labelled", lambda values: [*values, 0]),
        ("n_rows", lambda values: [values[0] + 1, *values[1:]]),  # more than paid
        ("n_rows", lambda values: [2**60, *values[1:]]),
        ("n_rows", lambda values: "many"),
        ("n_paid", lambda values: values[:-1]),
        ("n_paid", lambda values: [-values[0], *values[1:]]),
        ("paid", lambda values: [-1.0, *values[1:]]),
        ("paid", lambda values: ["much", *values[1:]]),
        ("paid", lambda values: []),
    ],
)
def test_an_outlook_that_does_not_add_up_is_refused(saved, tmp_path, field, change):
    def damage(record):
        record["outlook"][field] = change(record["outlook"][field])

    with pytest.raises(ModelFileError):
        load_bytes(changed_json(saved, damage), tmp_path)


def test_an_outlook_without_a_field_is_refused(saved, tmp_path):
    for field in ("n_right", "n_labelled", "n_rows", "paid", "n_paid"):
        with pytest.raises(ModelFileError):
            load_bytes(changed_json(saved, lambda record, field=field: record["outlook"].pop(field)), tmp_path)


@pytest.mark.parametrize("record", [{"n_wrong": -1}, {"n_wrong": 151}, {"margin": 11}, {"margin": "wide"}])
def test_margins_and_counts_out_of_range_are_refused(saved, tmp_path, record):
    with pytest.raises(ModelFileError):
        load_bytes(changed_json(saved, lambda whole: whole["against"].update(record)), tmp_path)


@pytest.mark.parametrize(("name", "cell"), [("confusion", (0, 0, 0)), ("against", (0, 0, 0))])
@pytest.mark.parametrize("value", [-1, 151])
def test_counts_by_class_that_cannot_be_are_refused(saved, tmp_path, name, cell, value):
    members = unpack(saved)
    array = np.load(BytesIO(members[f"arrays/{name}.npy"])).copy()
    array[cell] = value
    stream = BytesIO()
    np.save(stream, array)
    with pytest.raises(ModelFileError, match="counts"):
        load_bytes(pack({**members, f"arrays/{name}.npy": stream.getvalue()}), tmp_path)


def test_a_file_of_before_knows_neither_and_says_so_when_asked(saved, tmp_path):
    members = {
        name: data for name, data in unpack(saved).items() if not name.endswith(("confusion.npy", "against.npy"))
    }
    record = json.loads(members["model.json"])
    del record["outlook"], record["against"], record["learning"]["learner"]
    clf = load_bytes(pack({**members, "model.json": json.dumps(record).encode()}), tmp_path)
    front = clf.front_
    assert (front.outlook, front.confusion, front.against, front.margin) == (None, None, None, 1.0)
    assert clf.learner_ == "logistic"
    with pytest.raises(InvalidParameterError, match="choose cannot be 'no_worse': a file of an older version"):
        choose_point(front, "no_worse", best="combined")
    clf.save(tmp_path / "again")
    assert emsco.load(tmp_path / "again").front_.outlook is None


def test_a_learner_that_does_not_exist_is_refused(saved, tmp_path):
    with pytest.raises(ModelFileError, match="learner"):
        load_bytes(changed_json(saved, lambda record: record["learning"].update(learner="huge")), tmp_path)
