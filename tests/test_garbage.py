"""Whatever is wrong with the input, the answer is an EmscoError that says what came and what to do."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB

from emsco import EMSCOClassifier, EmscoError, Evolution, MultiStageClassifier
from emsco.exceptions import (
    InvalidEstimatorError,
    InvalidInputError,
    InvalidParameterError,
    InvalidPricesError,
    InvalidTargetError,
    SuspiciousColumnWarning,
)
from tests.classifiers import fixed

QUICK = Evolution(population_size=8, max_generations=1)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


def fit(X=X, y=Y, X_val=None, y_val=None, **kwargs):
    kwargs = {"search": QUICK, "random_state": 0} | kwargs
    return fixed(**kwargs).fit(X, y, X_val=X_val, y_val=y_val)


def with_cell(value, dtype=float):
    bad = X.astype(dtype)
    bad[3, 1] = value
    return bad


TABLES = [
    (np.empty((0, 3)), "0 sample"),
    (np.empty((40, 0)), "0 feature"),
    (pd.DataFrame(), "0 feature"),
    (pd.DataFrame({"a": []}), "0 sample"),
    (pl.DataFrame(), "0 feature"),
    (X[:, 0], "2-dimensional"),
    (X[None], "2-dimensional"),
    (3.0, "2-dimensional"),
    ([[1, 2], [3]], "cannot be read|2-dimensional"),
    (with_cell(np.inf), "'x1' holds inf in row"),
    (with_cell(-np.inf), "'x1' holds inf in row"),
    (FRAME.assign(b=np.where(np.arange(40) == 5, np.inf, 1.0)), "'b' holds inf in row"),
    (csr_matrix(X), "sparse"),
    (X.astype(complex), "Complex"),
    (FRAME.set_axis(["a", "b", "a"], axis=1), r"\['a'\] occur more than once"),
    (FRAME.assign(when=pd.Timestamp("2020-01-01")), "'when' holds dates"),
    (X.astype("datetime64[s]"), "datetime64"),
    (FRAME.assign(when=[date(2020, 1, 1)] * 40), "'when' holds dates"),
    (FRAME.set_axis([0, "b", "c"], axis=1), "string"),
    (pl.DataFrame(X).lazy(), "collect"),
    (with_cell(10**400, object), "'x1' holds inf"),
    ({"a": [1, 2]}, "DataFrame"),
    (None, "NoneType"),
]


@pytest.mark.parametrize(("table", "message"), TABLES)
def test_bad_tables(table, message):
    with pytest.raises(InvalidInputError, match=message):
        fit(table)
    with pytest.raises(InvalidInputError, match=message):
        MultiStageClassifier().fit(table, Y)


TARGETS = [
    (None, "requires y"),
    (np.where(Y == 1, np.nan, 0.0), "missing or infinite"),
    (np.where(Y == 1, np.inf, 0.0), "missing or infinite"),
    ([None if i == 4 else "ab"[i % 2] for i in range(40)], r"1 missing or infinite labels \(first in row 4\)"),
    (pd.Series(["a", pd.NA] * 20), "20 missing"),
    (pl.Series([1, None] * 20), "20 missing"),
    (np.zeros(40), "one class only"),
    (["dies"] * 40, "one class only"),
    (Y[:39], "39 labels, but X has 40 rows"),
    (np.column_stack([Y, Y]), "one label per row"),
    (X[:, 0], "continuous"),
    (np.arange(40), "each of the 40 classes has a single row"),
    ([1, "a"] * 20, "cannot be used|class"),
    ([[1], [2, 3]] * 20, "cannot be read as labels"),
    (pd.Series(pd.to_datetime(["2020-01-01", "2021-01-01"] * 20)), "dates"),
]


@pytest.mark.parametrize(("target", "message"), TARGETS)
def test_bad_labels(target, message):
    with pytest.raises(InvalidTargetError, match=message):
        fit(y=target)


@pytest.mark.parametrize(
    "labels",
    [pd.Categorical(["a", "b"] * 20), pd.Series(["a", "b"] * 20).astype("category"), pd.array(["a", "b"] * 20),
     pd.DataFrame({"y": ["a", "b"] * 20}), ("a", "b") * 20, [np.str_("a"), np.str_("b")] * 20],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_text_labels_of_any_container_are_text(labels):
    clf = fit(y=labels)
    assert clf.classes_.dtype.kind == "U"
    assert clf.classes_.tolist() == ["a", "b"]


class Broken(GaussianNB):
    def __init__(self, how="nan"):
        super().__init__()
        self.how = how

    def predict_proba(self, X):
        good = super().predict_proba(X)
        return good * np.nan if self.how == "nan" else good[:, :1]


@pytest.mark.parametrize("how", ["nan", "narrow"])
def test_an_estimator_whose_probabilities_are_none_is_named(how):
    with pytest.raises(InvalidEstimatorError, match="Broken"):
        fit(estimator=Broken(how))


def test_predict_explains_wrong_columns_with_our_error():
    clf = fit(FRAME)
    with pytest.raises(InvalidInputError, match="feature names should match"):
        clf.predict(FRAME[["c", "b", "a"]])
    with pytest.raises(InvalidInputError, match="expecting 3 features"):
        fit(X).predict(X[:, :2])


def test_a_failed_fit_leaves_nothing_to_predict_with():
    clf = fit(FRAME)
    with pytest.raises(InvalidPricesError):
        clf.set_params(costs={"a": 1}).fit(FRAME, np.where(Y == 1, "yes", "no"))
    with pytest.raises(NotFittedError):
        clf.predict(FRAME)
    with pytest.raises(NotFittedError):
        EMSCOClassifier().use(0)


def test_whether_a_column_is_numbers_does_not_depend_on_the_split():
    mixed = FRAME.assign(b=[*map(str, range(39)), "n/a"])
    for seed in range(6):
        with pytest.warns(SuspiciousColumnWarning, match="'n/a'"):
            fit(mixed, random_state=seed)
    with pytest.warns(SuspiciousColumnWarning):
        fit(FRAME, X_val=mixed, y_val=Y, random_state=0)


def test_mixed_labels_do_not_slip_through_as_text():
    with pytest.raises(InvalidTargetError):
        fit(y=np.array([1, "a"] * 20, dtype=object))


def test_classes_must_be_in_both_parts():
    three = np.where(np.arange(40) < 5, 2, Y)
    with pytest.raises(InvalidTargetError, match=r"validation part holds the classes \[2\].*never"):
        fit(X_val=X, y_val=three)
    with pytest.raises(InvalidTargetError, match=r"no row of the classes \[2\]"):
        fit(y=three, X_val=X, y_val=Y)
    with pytest.raises(InvalidTargetError, match="in the validation part: y holds one class only"):
        fit(X_val=X, y_val=np.zeros(40, int))


def test_a_class_of_one_row_is_trained_and_warned_of():
    from emsco.exceptions import RareClassWarning

    with pytest.warns(RareClassWarning, match=r"classes \[2\] have a single row"):
        clf = fit(y=np.where(np.arange(40) == 7, 2, Y))
    assert clf.classes_.tolist() == [0, 1, 2]


VALIDATION = [
    ({"X_val": X}, "together"),
    ({"y_val": Y}, "together"),
    ({"X_val": X[:, :2], "y_val": Y}, "same columns"),
    ({"X_val": X[:0], "y_val": Y[:0]}, "0 sample"),
    ({"X_val": X[:5], "y_val": Y}, "5 rows"),
]


@pytest.mark.parametrize(("given", "message"), VALIDATION)
def test_bad_validation_rows(given, message):
    with pytest.raises(EmscoError, match=message):
        fit(**given)


PARAMETERS = [
    ({"threshold": 1.5}, "between 0 and 1"),
    ({"threshold": -0.1}, "between 0 and 1"),
    ({"threshold": "high"}, "between 0 and 1"),
    ({"threshold": np.nan}, "between 0 and 1"),
    ({"threshold": True}, "between 0 and 1"),
    ({"validation": 0.0}, "strictly between"),
    ({"validation": 1.0}, "strictly between"),
    ({"validation": 1}, "strictly between"),
    ({"max_stages": 0}, "max_stages"),
    ({"max_stages": 2.5}, "max_stages"),
    ({"search": "quick"}, "search must be"),
    ({"search": Evolution}, "search must be"),
    ({"choose": "cheapest"}, "choose must be"),
    ({"choose": lambda front: 10**6}, "must be one of the points 0 to"),
    ({"cache_bytes": 10}, "cache_bytes"),
    ({"cache_bytes": "1GB"}, "cache_bytes"),
    ({"cache_bytes": -5}, "cache_bytes"),
    ({"random_state": "a"}, "random_state"),
    ({"random_state": np.random.default_rng(0)}, "random_state"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"n_jobs": "two"}, "n_jobs"),
    ({"refit": "no"}, "refit"),
]


@pytest.mark.parametrize(("given", "message"), PARAMETERS)
def test_bad_parameters(given, message):
    with pytest.raises(InvalidParameterError, match=message):
        fit(**given)


@pytest.mark.parametrize("costs", [[1, 2], [1, 2, -3], [1, 2, np.nan], {"a": 1, "b": 2}, {"x0": 1, "x1": 1, "x2": "?"}])
def test_bad_prices(costs):
    with pytest.raises(InvalidPricesError):
        fit(costs=costs)


def test_every_error_says_what_to_do_in_a_sentence():
    with pytest.raises(EmscoError) as caught:
        fit(costs=[1, 2])
    assert str(caught.value).endswith(".")
    assert "one price per column" in str(caught.value)
