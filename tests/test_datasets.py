from hashlib import sha256
from importlib.resources import files
import os

import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.utils import Bunch

from emsco import EMSCOClassifier
from emsco.datasets import _table, fetch_australian_credit, load_heart_failure, load_pima
from emsco.exceptions import DataNotAvailableError
from tests.conftest import needs_credit


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("heart_failure.csv", "9c73cea7468ff5d517801ec050fe9993da5912fce4b56f296f8df3b38dd75912"),
        ("pima.csv", "698c203a14aa31941d2251175330c9199f3ccdb31597abbba2a3e35416257a72"),
    ],
)
def test_carried_files_are_the_published_ones(name, digest):
    content = files("emsco.datasets").joinpath("data", name).read_bytes()
    assert sha256(content).hexdigest() == digest


@pytest.mark.parametrize(
    ("load", "shape", "counts", "total", "licence"),
    [
        (load_heart_failure, (299, 12), [203, 96], 750, "CC BY 4.0"),
        (load_pima, (768, 8), [500, 268], 1600, "CC0 1.0"),
    ],
)
def test_carried_data_have_the_papers_prices_as_frames_and_arrays(load, shape, counts, total, licence):
    check(load, shape, counts, total, licence)


@needs_credit
def test_credit_has_the_papers_prices_as_frame_and_arrays():
    check(fetch_australian_credit, (690, 14), [383, 307], 1760, "CC BY 4.0")


def check(load, shape, counts, total, licence):
    frame, arrays = load(), load(as_frame=False)
    assert frame.data.shape == arrays.data.shape == shape
    assert np.bincount(frame.target).tolist() == counts
    assert list(frame.data) == frame.feature_names == list(frame.prices)
    assert sum(frame.prices.values()) == total
    assert frame.license == licence
    assert licence.split()[0] in frame.DESCR
    assert_array_equal(frame.data.to_numpy(dtype=float), arrays.data)
    assert_array_equal(frame.target.to_numpy(), arrays.target)


def test_impossible_zeros_of_pima_are_missing_unless_asked_otherwise():
    missing = load_pima().data.isna().sum()
    assert missing[missing > 0].to_dict() == {
        "Glucose": 5, "BloodPressure": 35, "SkinThickness": 227, "Insulin": 374, "BMI": 11,
    }  # fmt: skip
    assert not load_pima(zeros_as_missing=False).data.isna().any(axis=None)
    clf = EMSCOClassifier(load_pima().prices, max_stages=2, random_state=0).fit(load_pima().data, load_pima().target)
    assert clf.front_.certificate.proven


@needs_credit
def test_categories_of_credit_are_categories():
    types = fetch_australian_credit().data.dtypes
    assert [name for name, kind in types.items() if kind == "category"] == ["A4", "A5", "A6", "A12"]


def published():
    credit = fetch_australian_credit(as_frame=False)
    return np.column_stack([credit.data, credit.target]), [*credit.feature_names, "class"]


@needs_credit
def test_without_a_folder_credit_is_downloaded_once_and_cached(monkeypatch, tmp_path):
    values, names = published()
    monkeypatch.delenv("EMSCO_DATA")
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    calls = []

    def fetch_openml(*, data_id, as_frame, parser, cache):
        calls.append(data_id)
        table = pd.DataFrame(values[::-1], columns=names)  # in another order, with labels as text
        return Bunch(data=table[names[:-1]].astype({"A4": "category"}), target=table["class"].astype(int).astype(str))

    monkeypatch.setattr(_table, "fetch_openml", fetch_openml)
    for _ in range(2):
        assert_array_equal(np.column_stack(list(fetch_australian_credit(as_frame=False).values())[:2]), values)
    assert calls == [40981]
    assert os.listdir(tmp_path / "emsco") == ["australian.csv"]


@needs_credit
def test_values_that_are_not_the_published_ones_are_refused(monkeypatch, tmp_path):
    values, names = published()
    monkeypatch.setenv("EMSCO_DATA", str(tmp_path))
    with pytest.raises(DataNotAvailableError, match=r"could not read the data from .*australian\.csv.*set EMSCO_DATA"):
        fetch_australian_credit()
    values[3, 1] += 1
    np.savetxt(tmp_path / "australian.csv", values, delimiter=",", header=",".join(names), comments="")
    with pytest.raises(DataNotAvailableError, match="not the published ones"):
        fetch_australian_credit()
    (tmp_path / "australian.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataNotAvailableError, match=r"its columns are \['a', 'b'\]"):
        fetch_australian_credit()


def test_no_network_and_no_folder_is_explained(monkeypatch, tmp_path):
    monkeypatch.delenv("EMSCO_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))

    def unreachable(**_):
        raise OSError("no route to host")

    monkeypatch.setattr(_table, "fetch_openml", unreachable)
    with pytest.raises(DataNotAvailableError, match=r"no route to host\. Connect to the network, or set EMSCO_DATA"):
        fetch_australian_credit()
