from hypothesis import given, settings
from hypothesis import strategies as st
import numpy as np
from numpy.testing import assert_array_equal
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from emsco import Evolution, MultiStageClassifier
from emsco.data.table import Table
from emsco.deployed.decide import n_cores
from emsco.exceptions import InvalidInputError, MissingColumnError
from emsco.scoring.rejection import NEVER, RejectRule
from emsco.stages.base import outcomes_of
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


def assert_as_general(clf, X):
    """What `decide` says is, to the bit, what the general walk says."""
    decisions, cascade, rule = clf.decide(X), clf.deployed_.cascade, clf.deployed_.rule
    assert cascade._numbers(Table(X), range(X.shape[1])) is not None
    probabilities, stage = cascade.probabilities(Table(X), range(X.shape[1]), rule)
    confidence, code = probabilities.max(axis=1), probabilities.argmax(axis=1)
    assert_array_equal(decisions.confidence, confidence)
    assert_array_equal(decisions.label.data, clf.classes_[code])
    assert_array_equal(decisions.stage, stage)
    assert_array_equal(decisions.conclusive, rule.confident(confidence, code, stage))
    assert_array_equal(decisions.cost, cascade.paid[stage])


@settings(max_examples=30)
@given(seeds(), st.sampled_from([2, 3, 5]), st.sampled_from([0.0, 0.3]), st.floats(0.3, 1.0), st.integers(1, 3))
def test_the_compiled_walk_equals_the_general_one_to_the_bit(seed, n_classes, missing, threshold, n_jobs):
    X, y = numbers(seed, n_classes=n_classes, missing=missing)
    design = np.random.default_rng(seed).permutation(6) // 2
    clf = MultiStageClassifier(design, threshold=threshold, n_jobs=n_jobs).fit(X, y)
    assert_as_general(clf, numbers(seed + 1, n=700, n_classes=n_classes, missing=missing)[0])


@settings(max_examples=30)
@given(seeds(), st.sampled_from([2, 3]), st.sampled_from([0.0, 0.3]), st.sampled_from(["rank", "spline"]))
def test_the_compiled_walk_of_curves_equals_the_general_one_to_the_bit(seed, n_classes, missing, encoding):
    rng = np.random.default_rng(seed)
    X, y = numbers(seed, n_classes=n_classes, missing=missing)
    X[:, 0] = np.exp(3 * np.sign(X[:, 0]) * np.abs(X[:, 0]) ** 0.2)  # most of its knots are close together
    X[rng.random(len(X)) < 0.3, 1] = 0.0  # a value of its own
    X[:, 2] = np.round(X[:, 2] / np.nanstd(X[:, 2]))  # cells that are knots
    clf = MultiStageClassifier(rng.permutation(6) // 2, threshold=0.8, encoding=encoding).fit(X, y)
    farther = X * rng.choice([1.0, 0.999, -1.5, 3.0], size=X.shape)
    assert_as_general(clf, np.vstack([X, farther, np.zeros((1, 6)), np.full((1, 6), 1e300)]))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_row_exactly_at_a_threshold_leaves_and_one_just_below_stays(n_classes):
    X, y = numbers(0, n=400, n_classes=n_classes)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2], threshold=1.0).fit(X, y)
    first, _ = outcomes_of(clf.deployed_.cascade.first(1).probabilities(Table(X), range(6), 0.0)[0])
    for i in range(0, 400, 13):
        clf.threshold = [float(first[i]), 1.0]
        assert_as_general(clf, X)
        assert clf.decide(X).stage[i] == 0
        clf.threshold = [float(np.nextafter(first[i], 2)), 1.0]
        assert_as_general(clf, X)
        assert clf.decide(X).stage[i] > 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, [0.7, 0.0, 0.9], [1.0, 0.4], {0: 0.9, 1: 0.55, 2: 0.3}])
def test_thresholds_of_every_kind_are_those_of_the_general_walk(n_classes, threshold):
    X, y = numbers(1, n=300, n_classes=n_classes, missing=0.1)
    known = {c: threshold[c] for c in range(n_classes)} if isinstance(threshold, dict) else threshold
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2], threshold=known).fit(X, y)
    assert_as_general(clf, X)


def test_a_class_that_is_never_confident_enough_stays():
    X, y = numbers(2, n=300)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2], threshold=0.6).fit(X, y)
    never = RejectRule(((NEVER, 0.6),))
    confidence, code, stage, conclusive, *_ = clf.deployed_.cascade.outcomes(Table(X), range(6), never)
    assert (stage[code == 0] == 2).all()
    assert_array_equal(conclusive, (code == 1) & (confidence >= 0.6))


@pytest.mark.parametrize("n_jobs", [3, None])
def test_many_rows_in_many_threads_equal_one_row_at_a_time(monkeypatch, n_jobs):
    monkeypatch.setattr("emsco.deployed.decide._ROWS_PER_THREAD", 4096)
    monkeypatch.setattr("emsco.deployed.decide.n_cores", lambda: 4)
    X, y = numbers(0, missing=0.1)
    clf = MultiStageClassifier([0, 1, 1, 2, 2, 2], n_jobs=n_jobs).fit(X, y)
    X_new, _ = numbers(1, n=50_000, missing=0.1)
    decisions = clf.decide(X_new)
    for i in range(0, 50_000, 4999):
        one = clf.decide(X_new[i : i + 1])
        assert (one.confidence[0], one.stage[0], one.cost[0]) == (
            decisions.confidence[i], decisions.stage[i], decisions.cost[i],
        )  # fmt: skip
    X_new[[20_001, 40_000], 0] = np.inf  # in two threads: the first of them is named
    with pytest.raises(InvalidInputError, match="'x0' holds inf in row 20001"):
        clf.decide(X_new)


@pytest.mark.parametrize(("bound", "n"), [("", 8), ("3", 3), ("0", 1), ("64", 8), ("none", 8)])
def test_threads_are_at_most_those_of_openmp(monkeypatch, bound, n):
    monkeypatch.setenv("OMP_NUM_THREADS", bound)
    monkeypatch.setattr("joblib.cpu_count", lambda: 8)
    assert n_cores.__wrapped__() == n


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


def tables_of(X):
    """The same cells in many tables."""
    names = list("abcdef")
    wide = np.zeros((2 * len(X), 12), dtype=X.dtype)
    wide[::2, ::2] = X
    unaligned = np.zeros(len(X), dtype=[("pad", "u1"), ("cells", X.dtype, 6)])["cells"]
    unaligned[:] = X
    parts = pd.DataFrame(X[:, :3], columns=names[:3])
    for i in (3, 4, 5):
        parts[names[i]] = X[:, i]
    yield from (np.asfortranarray(X), wide[::2, ::2], X[::-1].copy()[::-1], np.flip(np.flip(X).copy()), unaligned)
    yield from (X.astype(X.dtype.newbyteorder()), pd.DataFrame(X, columns=names), parts, parts.assign(more="text"))
    yield from (pl.DataFrame(X, schema=names), pa.table(dict(zip(names, X.T, strict=True))))
    yield pa.concat_tables([pa.table(dict(zip(names, part.T, strict=True))) for part in (X[:7], X[7:])])


@pytest.mark.parametrize("few", [0, 10_000])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_every_table_of_numbers_is_read_alike_where_it_lies(monkeypatch, kind, few):
    monkeypatch.setattr("emsco.data.table._FEW_ROWS", few)
    X, y = numbers(0, missing=0.1)
    X = X.astype(kind)
    frame = pd.DataFrame(X.astype(np.float64), columns=list("abcdef"))
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(frame, y)
    expected = clf.decide(frame.astype(object))
    for table in tables_of(X):
        assert_same(clf.decide(table), expected)
        assert Table(table).numbers(range(6)) is not None
    for table in (X, X[::2, ::-1], pd.DataFrame(X), pd.DataFrame(X, columns=list("abcdef")).assign(a=X[:, 0])):
        read = Table(table).numbers(range(6))
        assert (read.single == (kind is np.float32)).all()
    assert Table(X).numbers(range(6)).arrays[0] is X


def test_columns_of_several_types_are_read_alike(monkeypatch):
    X, y = numbers(0)
    frame = pd.DataFrame(
        {
            "a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": X[:, 2].round().astype(np.int16), "d": X[:, 3] > 0,
            "e": X[:, 4].round().astype(np.uint64) % 7, "f": X[:, 5].astype(np.float16),
        }
    )  # fmt: skip
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(frame, y)
    expected = clf.decide(frame.astype(object))
    assert_same(clf.decide(frame), expected)
    assert_same(clf.decide(pa.table(dict(frame.items()))), expected)
    assert_same(clf.decide(pl.DataFrame({name: values.to_numpy() for name, values in frame.items()})), expected)
    monkeypatch.setattr("emsco.data.table._FEW_ROWS", 0)
    assert_same(clf.decide(frame), expected)


def test_columns_with_numbers_for_names_are_matched_by_name_too():
    X, y = numbers(0)
    frame = pd.DataFrame(X)
    clf = MultiStageClassifier([0, 0, 1, 1, 2, 2]).fit(frame, y)
    assert_same(clf.decide(frame[[5, 3, 1, 0, 2, 4]]), clf.decide(frame))


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
