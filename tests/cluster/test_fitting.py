"""Tables in partitions: a sample is searched; all rows train and judge logistic stages."""

from itertools import pairwise

import dask
import dask.dataframe as dd
import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from emsco import EMSCOClassifier, Guarantee
from emsco.cluster import fitting, newton
from emsco.cluster.partitions import Partitions
from emsco.data.encoding import Encoder
from emsco.data.table import Table
from emsco.exceptions import InvalidInputError, InvalidTargetError
from emsco.stages.logistic import LogisticModel
from emsco.stages.recipe import Recipe
from tests.classifiers import fixed

COSTS = {"a": 1, "b": 2, "c": 3, "d": 1}


def cases(n=4000, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=n),
            "b": rng.exponential(size=n),
            "c": rng.normal(size=n),
            "d": rng.choice(list("xyz"), n),
        }
    )
    frame.loc[rng.random(n) < 0.05, "c"] = np.nan
    risk = frame["a"] + frame["b"] * (frame["d"] == "x") + frame["c"].fillna(0) + 0.7 * rng.normal(size=n)
    label = np.digitize(risk, [0.8] if n_classes == 2 else [0.0, 1.5])
    return frame, pd.Series(np.array(["low", "mid", "high"])[label], index=frame.index)


def partitions(frame, y, sizes):
    """As Dask collections whose partitions have given sizes, empty ones too."""
    bounds = np.cumsum([0, *sizes])
    assert bounds[-1] == len(frame)
    pairs = [(frame[i:j], y[i:j]) for i, j in pairwise(bounds)]
    with dask.config.set({"dataframe.convert-string": False}):
        X = dd.from_map(lambda i: pairs[i][0], range(len(pairs)), meta=frame[:0])
        return X, dd.from_map(lambda i: pairs[i][1], range(len(pairs)), meta=y[:0])


SIZES = [1500, 0, 700, 1800]


@pytest.fixture
def small_sample(monkeypatch):
    monkeypatch.setattr(fitting, "_SAMPLE_ROWS", 1200)
    monkeypatch.setattr(fitting, "_RARE", 50)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_newton_over_partitions_finds_the_weights_of_one_machine(n_classes):
    frame, y = cases(n_classes=n_classes)
    classes = np.unique(y)
    codes = np.searchsorted(classes, y)
    encoder = Encoder(Table(frame), slice(0, 500))
    how, columns = newton.Encoded(encoder, classes, seed=3), [np.arange(encoder.n_encoded), np.array([0, 2])]
    n_logits = 1 if n_classes == 2 else n_classes
    begin = [np.zeros((n_logits, own.size + 1)) for own in columns]
    with dask.config.set(scheduler="sync"):
        solved = newton.solve(Partitions(*partitions(frame, y, SIZES)), how, columns, begin, C=2.0)
        again = newton.solve(Partitions(*partitions(frame, y, SIZES)), how, columns, begin, C=2.0)
    Z = encoder.encode(Table(frame), slice(None))
    fold = np.concatenate([np.random.default_rng([3, i]).integers(5, size=n) for i, n in enumerate(SIZES)])
    for own, theta, same in zip(columns, solved.weights, again.weights, strict=True):
        assert_array_equal(theta, same)
        for k in range(6):
            rows = fold != k
            expected = Recipe(C=2.0).trainer(_problem(Z[own][:, rows], codes[rows], n_classes), seed=0, n_jobs=1)
            (weights,) = expected.train(np.ones((1, own.size), dtype=bool))
            said = [LogisticModel(each[:, :-1], each[:, -1]).predict_proba(Z[own].T) for each in (theta[k], weights)]
            assert_allclose(said[0], said[1], rtol=0, atol=1e-8)


def _problem(Z, codes, n_classes):
    from emsco.prices.prices import resolve
    from emsco.stages.problem import Problem

    n = len(Z)
    prices = resolve([1.0] * n, [f"x{i}" for i in range(n)])
    none = np.zeros(0, dtype=np.int64)
    return Problem(Z.copy(), codes, Z[:, :0].copy(), none, n_classes, np.eye(n, dtype=bool), prices)


def test_a_sample_has_each_class_in_proportion_and_depends_on_the_seed_alone(small_sample, client):
    frame, y = cases()
    X, labels = partitions(frame, y, SIZES)
    first, second = (fitting.draw(Partitions(X, labels, who), 5) for who in (None, client))
    pd.testing.assert_frame_equal(first.X, second.X)
    assert_array_equal(first.y, second.y)
    assert first.n_rows == 4000
    assert len(first.y) == pytest.approx(1200, abs=2)
    assert np.mean(first.y == "low") == pytest.approx(np.mean(y == "low"), abs=2e-3)
    rows = np.concatenate([rows + start for rows, start in zip(first.rows, np.cumsum([0, *SIZES]), strict=False)])
    pd.testing.assert_frame_equal(first.X, frame.iloc[rows].reset_index(drop=True))
    assert not np.array_equal(first.y, fitting.draw(Partitions(X, labels), 6).y)


def test_logistic_stages_learn_from_all_rows_and_are_judged_on_all(small_sample, client):
    frame, y = cases()
    settings = {"random_state": 0, "encoding": "linear", "C": 1.0}
    clfs = [fixed(COSTS, **settings, client=who).fit(*partitions(frame, y, SIZES)) for who in (None, client)]
    clf, other = clfs
    assert clf.front_.n_samples == 4000
    assert_array_equal(clf.front_.designs, other.front_.designs)
    assert_array_equal(clf.front_.reached, other.front_.reached)
    first, second = clf.decide(frame), other.decide(frame)
    assert_array_equal(first.confidence.view(np.uint64), second.confidence.view(np.uint64))
    for stage in clf.stages_:
        Z = clf.deployed_.encoder.encode(Table(frame), slice(None))[stage.encoded_columns]
        codes = np.searchsorted(clf.classes_, y)
        (weights,) = Recipe().trainer(_problem(Z, codes, 2), seed=0, n_jobs=1).train(np.ones((1, len(Z)), dtype=bool))
        expected = LogisticModel(weights[:, :-1], weights[:, -1]).predict_proba(Z.T)
        assert_allclose(stage.model.predict_proba(Z.T), expected, rtol=0, atol=1e-8)
    seen = clf.evaluate(frame, y).points[clf.point_]
    assert clf.front_.coverage[clf.point_] == pytest.approx(seen.coverage, abs=0.01)
    assert clf.front_.confusion[clf.point_].sum() == 4000


@pytest.mark.parametrize("text", ["object", "string[pyarrow]"])
def test_text_of_any_kind_and_a_category_of_one_partition_alone(text, small_sample, client):
    frame, y = cases()
    frame.loc[frame.index[-40:], "d"] = "only here"
    settings = {"random_state": 0, "encoding": "linear", "C": 1.0}
    one = fixed(COSTS, **settings).fit(*partitions(frame, y, SIZES))
    many = fixed(COSTS, **settings, client=client).fit(*partitions(frame.astype({"d": text}), y, SIZES))
    assert many.front_.n_samples == 4000
    assert_array_equal(one.front_.designs, many.front_.designs)
    first, second = one.decide(frame), many.decide(frame.astype({"d": text}))
    assert_array_equal(first.confidence.view(np.uint64), second.confidence.view(np.uint64))


def test_other_learners_learn_from_the_sample_and_are_judged_on_the_other_rows(small_sample):
    frame, y = cases()
    clf = fixed(COSTS, random_state=0, estimator=DecisionTreeClassifier(max_depth=3), search=None)
    from emsco import Evolution

    clf.set_params(search=Evolution(population_size=20, max_generations=2))
    clf.fit(*partitions(frame, y, SIZES))
    sample = fitting.draw(Partitions(*partitions(frame, y, SIZES)), _seed(0))
    rows = np.concatenate([rows + start for rows, start in zip(sample.rows, np.cumsum([0, *SIZES]), strict=False)])
    held_out = np.setdiff1d(np.arange(4000), rows)
    assert clf.front_.n_samples == held_out.size
    for point in range(len(clf.front_)):
        decisions = clf.deployed_.use(point).decide(frame.iloc[held_out])
        assert clf.front_.coverage[point] == decisions.conclusive.mean()
        assert clf.front_.mean_cost[point] == pytest.approx(decisions.cost.mean())


def _seed(random_state):
    from emsco.checks import check_seed

    return check_seed(random_state)


def test_a_table_that_fits_is_fitted_as_it_is():
    frame, y = cases(600)
    settings = {"random_state": 0, "encoding": "linear", "C": 1.0}
    whole = fixed(COSTS, **settings).fit(frame, y)
    clf = fixed(COSTS, **settings).fit(*partitions(frame, y, [200, 0, 400]))
    assert_array_equal(clf.front_.designs, whole.front_.designs)
    assert_array_equal(clf.decide(frame).confidence, whole.decide(frame).confidence)


def test_labels_may_be_a_column_and_files_may_be_read_together(small_sample, tmp_path):
    frame, y = cases()
    for i in range(8):
        frame[500 * i : 500 * (i + 1)].assign(label=y[500 * i : 500 * (i + 1)]).to_parquet(tmp_path / f"{i}.parquet")
    read = dd.read_parquet(tmp_path)
    settings = {"random_state": 0, "encoding": "linear", "C": 1.0}
    named = fixed(COSTS, **settings).fit(read, "label")
    apart = fixed(COSTS, **settings).fit(read[list(frame)], read["label"])
    assert named.feature_names_in_.tolist() == list(frame)
    for clf in (named, apart):
        assert clf.front_.n_samples == 4000
        decisions = clf.decide(frame)
        assert np.mean(decisions.label.data[decisions.conclusive] == y[decisions.conclusive]) > 0.8


def test_what_cannot_be_is_refused_in_words():
    frame, y = cases(600)
    X, labels = partitions(frame, y, [200, 400])
    with pytest.raises(InvalidTargetError, match="y must be a Dask Series"):
        EMSCOClassifier(COSTS).fit(X, y)
    with pytest.raises(InvalidTargetError, match="y has 1 partitions, but X has 2"):
        EMSCOClassifier(COSTS).fit(X, dd.from_pandas(y, npartitions=1))
    with pytest.raises(InvalidInputError, match="a Guarantee"):
        EMSCOClassifier(COSTS, threshold=Guarantee(0.8)).fit(X, labels)
    with pytest.raises(InvalidTargetError, match="missing labels in partition 1"):
        EMSCOClassifier(COSTS).fit(*partitions(frame, y.where(np.arange(600) != 400), [200, 400]))
