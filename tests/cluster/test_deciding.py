"""Dask DataFrames are decided partition by partition, as the whole frame is."""

import dask
import dask.dataframe as dd
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest

from emsco import MultiStageClassifier
from emsco.exceptions import InvalidInputError, MissingColumnError
from tests.service.conftest import DESIGN, PRICES, mixed_cases

X, Y = mixed_cases(600)


@pytest.fixture(scope="module")
def clf():
    return MultiStageClassifier(DESIGN, PRICES, threshold=0.85).fit(X[:300], Y[:300])


def same(frame, clf, of, **how):
    decided = clf.decide(frame)
    assert type(decided).__module__.startswith("dask.")
    together = decided.compute(**how)
    expected = clf.decide(of).to_frame()
    pd.testing.assert_frame_equal(together, expected)
    assert decided.dtypes.to_dict() == expected.dtypes.to_dict()
    assert_array_equal(together["confidence"].to_numpy().view(np.uint64), expected["confidence"].to_numpy().view("u8"))
    return decided


def test_partitions_are_decided_as_the_whole_frame_is(clf, client):
    new = X[300:]
    same(dd.from_pandas(new, npartitions=3), clf, new, scheduler=client)


@pytest.mark.parametrize("text", ["object", "string[python]", "string[pyarrow]", "str", "category"])
def test_text_of_any_kind(clf, text):
    new = X[300:].astype({"country": text})
    with dask.config.set({"dataframe.convert-string": False}):
        same(dd.from_pandas(new, npartitions=4), clf, new, scheduler="sync")


def test_an_empty_partition_and_an_unknown_category_in_one(clf):
    new = X[300:].copy()
    new.loc[new.index[-40:], "country"] = "Atlantis"
    parts = [new[:100], new[:0], new[100:260], new[260:], new[:0]]
    with dask.config.set({"dataframe.convert-string": False}):
        frame = dd.concat([dd.from_pandas(part, npartitions=1) for part in parts], interleave_partitions=False)
        decided = same(frame, clf, new, scheduler="sync")
    sizes = [len(part) for part in dask.compute(*decided.to_delayed(), scheduler="sync")]
    assert sorted(sizes) == [0, 0, 40, 100, 160]


@pytest.mark.parametrize("labels", [np.array([3, 7]), np.array([1.0, 2.0]), np.array([False, True])])
def test_labels_of_any_type_have_it_in_empty_partitions_too(labels):
    y = labels[(Y[:300] == "sick").astype(int)]
    clf = MultiStageClassifier(DESIGN, PRICES, threshold=0.85).fit(X[:300], y)
    frame = dd.from_pandas(X[300:], npartitions=2)
    empty = dd.from_pandas(X[:0], npartitions=1)
    same(dd.concat([frame, empty]), clf, X[300:], scheduler="sync")


def test_nothing_is_computed_and_columns_that_no_stage_buys_are_not_read(tmp_path):
    X[300:].assign(unread=[f"text {i}" for i in range(300)]).to_parquet(tmp_path / "rows.parquet")
    clf = MultiStageClassifier([["age"], ["smokes"]], {"age": 1, "smokes": 1}, threshold=0.85)
    clf.fit(X.loc[:299, ["age", "smokes"]], Y[:300])
    frame = dd.read_parquet(tmp_path / "rows.parquet")
    decided = same(frame, clf, X[300:], scheduler="sync")
    plan = decided.optimize(fuse=False).expr.tree_repr()
    assert "['age', 'smokes']" in plan
    assert "country" not in plan
    (tmp_path / "rows.parquet").unlink()
    clf.decide(frame)


def test_rows_that_wait_for_a_column_that_is_not_there_are_an_error(clf):
    frame = dd.from_pandas(X[300:].drop(columns=["country"]), npartitions=2)
    with pytest.raises(MissingColumnError, match="country"):
        clf.decide(frame).compute(scheduler="sync")


def test_other_collections_are_refused_in_words(clf):
    frame = dd.from_pandas(X[300:], npartitions=2)
    with pytest.raises(InvalidInputError, match="from_dask_array"):
        clf.decide(frame[["age"]].to_dask_array())
    with pytest.raises(InvalidInputError, match=r"X\.compute\(\)"):
        clf.predict(frame)
