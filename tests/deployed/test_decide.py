from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from emsco import Evolution, MultiStageClassifier
from emsco.data.table import Table
from emsco.exceptions import InvalidInputError, MissingColumnError
from tests.classifiers import fixed
from tests.strategies import seeds
from tests.test_estimators import PANEL, QUICK, patients

GARBAGE = [np.nan, np.inf, -np.inf, 1e308, 0.0]


def numbers(seed, n=90, n_features=6, n_classes=2, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features)) * 10.0 ** rng.integers(-2, 3, size=n_features)
    y = (X / np.abs(X).max(axis=0) @ rng.normal(size=(n_features, n_classes))).argmax(axis=1)
    y[:n_classes] = np.arange(n_classes)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y


def assert_same(a, b):
    assert_array_equal(a.label.data, b.label.data)
    assert_array_equal(a.conclusive, b.conclusive)
    assert_array_equal(a.confidence, b.confidence)
    assert_array_equal(a.stage, b.stage)
    assert_array_equal(a.cost, b.cost)


def unbought(clf, decisions, n_columns):
    """Cells that the row never paid for."""
    cells = np.ones((len(decisions), n_columns), dtype=bool)
    for j, stage in enumerate(clf.stages_):
        for column in stage.new_columns:
            cells[decisions.stage >= j, column] = False
    return cells


@settings(max_examples=30)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.2]), st.booleans())
def test_no_peeking_on_numbers(seed, n_classes, missing, general):
    X, y = numbers(seed, n_classes=n_classes, missing=missing)
    rng = np.random.default_rng(seed)
    design = [[f"x{i}" for i in part] for part in np.array_split(rng.permutation(6), rng.integers(1, 7))]
    estimator = DecisionTreeClassifier(max_depth=2, random_state=0) if general else None
    clf = MultiStageClassifier(design, [1, 2, 3, 4, 5, 6], threshold=0.8, estimator=estimator).fit(X, y)
    decisions = clf.decide(X)
    garbage = X.copy()
    cells = unbought(clf, decisions, 6)
    garbage[cells] = rng.choice(GARBAGE, size=int(cells.sum()))
    assert_same(clf.decide(garbage), decisions)


def test_no_peeking_on_a_mixed_table():
    X, y = patients()
    clf = fixed(PANEL, threshold=0.8, search=QUICK, random_state=0).fit(X, y)
    X_new, _ = patients(200, seed=5)
    for i in range(len(clf.front_)):
        decisions = clf.use(i).decide(X_new)
        garbage = X_new.astype(object)
        cells = unbought(clf, decisions, X.shape[1])
        for c, name in enumerate(X.columns):
            garbage.loc[cells[:, c], name] = f"garbage in {name}"
        assert_same(clf.decide(garbage), decisions)


def test_columns_nobody_needs_may_be_absent():
    X, y = patients()
    clf = MultiStageClassifier([["blood panel"], ["age", "ward"], ["smokes", "visits"]], PANEL, threshold=0.5).fit(X, y)
    decisions = clf.decide(X)
    assert decisions.stage.max() == 0  # with two classes everyone is at least 50 % sure
    assert_same(clf.decide(X[["creatinine", "sodium"]]), decisions)
    clf.threshold = 0.9
    with pytest.raises(MissingColumnError, match=r"'age' is not in the table, but rows .* stage 2"):
        clf.decide(X[["creatinine", "sodium"]])


@settings(max_examples=30)
@given(seeds(), st.sampled_from([2, 3, 5]), st.sampled_from([0.0, 0.3]), st.floats(0.3, 1.0), st.integers(1, 3))
def test_the_compiled_walk_equals_the_general_one_to_the_bit(seed, n_classes, missing, threshold, n_jobs):
    X, y = numbers(seed, n_classes=n_classes, missing=missing)
    design = np.random.default_rng(seed).permutation(6) // 2
    clf = MultiStageClassifier(design, threshold=threshold, n_jobs=n_jobs).fit(X, y)
    X_new, _ = numbers(seed + 1, n=700, n_classes=n_classes, missing=missing)
    decisions = clf.decide(X_new)
    probabilities, stage = clf.deployed_.cascade.probabilities(Table(X_new), range(6), threshold)
    assert_array_equal(decisions.confidence, probabilities.max(axis=1))
    assert_array_equal(decisions.label.data, clf.classes_[probabilities.argmax(axis=1)])
    assert_array_equal(decisions.stage, stage)
    assert_array_equal(decisions.conclusive, probabilities.max(axis=1) >= threshold)


def test_many_rows_in_many_threads_equal_one_row_at_a_time(monkeypatch):
    monkeypatch.setattr("emsco.deployed.decide._ROWS_PER_THREAD", 4096)
    X, y = numbers(0, missing=0.1)
    clf = MultiStageClassifier([0, 1, 1, 2, 2, 2], n_jobs=3).fit(X, y)
    X_new, _ = numbers(1, n=50_000, missing=0.1)
    decisions = clf.decide(X_new)
    for i in range(0, 50_000, 4999):
        one = clf.decide(X_new[i : i + 1])
        assert (one.confidence[0], one.stage[0], one.cost[0]) == (
            decisions.confidence[i], decisions.stage[i], decisions.cost[i],
        )  # fmt: skip


@pytest.mark.parametrize("kind", [np.float32, np.int64, np.bool_, object])
def test_other_number_types_are_read_alike(kind):
    X, y = numbers(0)
    X = (X > 0).astype(kind)
    clf = MultiStageClassifier([0, 1, 1, 2, 2, 2]).fit(X, y)
    assert_same(clf.decide(X), clf.decide(X.astype(float)))
    assert_same(clf.decide(pd.DataFrame(X, columns=list("abcdef"))), clf.decide(X.astype(float)))


def test_an_infinite_cell_that_was_bought_is_an_error_that_names_it():
    X, y = numbers(0)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(X, y)
    X[17, 1] = np.inf
    with pytest.raises(InvalidInputError, match="'x1' holds inf in row 17"):
        clf.decide(X)
    with pytest.raises(InvalidInputError, match="'x1' holds inf in row 17"):
        clf.decide(X.astype(object))
    with pytest.raises(InvalidInputError, match="inf"):
        clf.predict(X)


def test_columns_with_numbers_for_names_are_matched_by_name_too():
    X, y = numbers(0)
    frame = pd.DataFrame(X)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(frame, y)
    assert_same(clf.decide(frame[[5, 3, 1, 0, 2, 4]]), clf.decide(frame))


def test_every_memory_layout_is_read_alike():
    X, y = numbers(0, missing=0.1)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(X, y)
    expected = clf.decide(X)
    wide = np.zeros((2 * len(X), 12))
    wide[::2, ::2] = X
    for table in (np.asfortranarray(X), wide[::2, ::2], X[::-1][::-1], pd.DataFrame(X)):
        assert_same(clf.decide(table), expected)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_absurdly_large_cells_do_not_become_certainties_of_nothing(n_classes):
    X, y = numbers(0, n_classes=n_classes)
    clf = MultiStageClassifier([0] * 6).fit(X, y)
    for sign in (1, -1):
        huge = np.full((1, 6), sign * 1e307)
        fast, general = clf.decide(huge), clf.decide(huge.astype(object))
        assert np.isfinite(fast.confidence).all()
        assert_same(fast, general)
    one, other = (np.zeros((1, 6)), np.zeros((1, 6)))
    one[0, 0], other[0, 0] = 1e307, -1e307
    assert clf.predict(one)[0] != clf.predict(other)[0]


def test_no_rows_give_no_decisions():
    X, y = numbers(0)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(X, y)
    d = clf.decide(X[:0])
    assert len(d) == 0
    assert repr(d) == "<Decisions of 0 rows>"
    assert len(d.to_frame()) == 0


def test_a_table_of_another_width_is_an_error():
    X, y = numbers(0)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(X, y)
    with pytest.raises(InvalidInputError, match="X has 5 columns, but MultiStageClassifier was fitted on 6"):
        clf.decide(X[:, :5])


def test_decisions_as_a_frame():
    X, y = patients()
    clf = fixed(PANEL, threshold=0.9, search=Evolution(population_size=9, max_generations=1), random_state=0)
    d = clf.fit(X, y).decide(X)
    frame = d.to_frame()
    assert list(frame) == ["label", "conclusive", "confidence", "stage", "cost"]
    assert_array_equal(frame["label"].isna(), ~d.conclusive)
    assert_array_equal(frame.loc[d.conclusive, "label"].to_numpy(), d.label.compressed())
    shuffled = X.sample(frac=1, random_state=0)
    joined = shuffled.join(clf.decide(shuffled).to_frame())
    assert_array_equal(joined.loc[X.index, "confidence"], d.confidence)
    clf.threshold = 1.0
    assert clf.decide(X).to_frame()["label"].dtype == frame["label"].dtype
    clf.threshold = 0.9
    assert repr(d).startswith(f"<Decisions of 240 rows: {d.conclusive.sum()} conclusive")


class Even:
    """A classifier of single precision that is 70 % sure of everything."""

    classes_ = np.arange(2)

    def predict_proba(self, X):
        return np.full((len(X), 2), [0.3, 0.7], dtype=np.float32)


def test_single_precision_is_compared_in_double():
    X, y = numbers(0)
    clf = MultiStageClassifier([0, 0, 0, 1, 1, 1], threshold=0.7).fit(X, y)
    for stage in clf.stages_:
        object.__setattr__(stage, "model", Even())
    clf.deployed_.cascade._compiled = None
    decisions = clf.decide(X)
    assert (decisions.confidence < 0.7).all()
    assert not decisions.conclusive.any()
    assert (decisions.stage == 1).all()  # nobody leaves as confident and is refused a label


def test_decisions_and_stages_are_tables_in_a_notebook():
    X = pd.DataFrame(numbers(0, n=60)[0]).rename(columns=lambda c: f"<b>{c}</b>")
    y = np.where(X.iloc[:, 0] > 0, "<i>sick</i>", "well")
    clf = MultiStageClassifier([0, 1, 1, 1, 1, 1], threshold=0.9).fit(X, y)
    decisions = clf.decide(X.set_axis([f"<u>{i}" for i in range(60)]))
    html = decisions._repr_html_()
    assert html.count("<tr>") == 10
    assert "50 more rows: to_frame()." in html
    assert f"{100 * decisions.conclusive.mean():.1f} % labelled" in html
    for text in (html, clf.stages_[0]._repr_html_()):
        assert not any(tag in text for tag in ("<b>0", "<i>", "<u>"))
        assert "&lt;" in text
    assert "0 rows" in clf.decide(X[:0])._repr_html_()
