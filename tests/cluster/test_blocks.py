"""A Parquet file larger than its sample: logistic stages learn from all rows, block by block, without a cluster."""

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pyarrow as pa
from pyarrow import parquet
import pytest

import emsco
from emsco.cluster import newton
from emsco.cluster.blocks import Blocks
from emsco.data.encoding import Encoder
from emsco.data.files import TableFile
from emsco.data.table import Table
from emsco.exceptions import InvalidInputError
from emsco.stages.logistic import LogisticModel
from emsco.stages.problem import Problem
from emsco.stages.recipe import Recipe
from tests.cli.calls import call

NAMES = ["a", "b", "c", "d"]
N, BLOCK = 5000, 512


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("emsco.data.files.BLOCK_ROWS", BLOCK)
    monkeypatch.setattr("emsco.cluster.blocks.BLOCK_ROWS", BLOCK)


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=NAMES[:3]).assign(d=rng.choice(list("xyz"), N))
    frame.loc[rng.random(N) < 0.05, "c"] = np.nan
    risk = frame["a"] + frame["b"] * (frame["d"] == "x") + frame["c"].fillna(0) + 0.7 * rng.normal(size=N)
    frame["y"] = np.where(risk > 0.5, "high", "low")
    frame.loc[rng.random(N) < 0.02, "y"] = None
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=1300)
    return path


def solved_alone(Z, codes, C=1.0):
    """Return the weights of all rows by the trainer of tables in memory."""
    n = len(Z)
    prices = emsco.Prices(price=dict.fromkeys([f"x{i}" for i in range(n)], 1.0))
    from emsco.prices.prices import resolve

    none = np.zeros(0, dtype=np.int64)
    names = [f"x{i}" for i in range(n)]
    problem = Problem(Z.copy(), codes, Z[:, :0].copy(), none, 2, np.eye(n, dtype=bool), resolve(prices, names))
    return Recipe(C=C).trainer(problem, seed=0, n_jobs=1).train(np.ones((1, n), dtype=bool))[0]


def said(weights, Z):
    return LogisticModel(weights[:, :-1], weights[:, -1]).predict_proba(Z.T)


def test_each_block_has_its_rows_with_a_label_in_order(path):
    frame, left_out = pd.read_parquet(path), np.arange(0, N, 7)
    blocks = Blocks(TableFile(path), NAMES, "y", left_out, n_jobs=2)
    parts = list(blocks.each(lambda X, y, number: (X, y, number)))
    assert [number for *_, number in parts] == list(range(len(parts)))
    assert len(parts) == len(blocks) == -(-N // BLOCK)
    wanted = frame.drop(index=left_out).dropna(subset=["y"])
    pd.testing.assert_frame_equal(
        pd.concat([X for X, *_ in parts], ignore_index=True), wanted[NAMES].reset_index(drop=True)
    )
    assert_array_equal(np.concatenate([y for _, y, _ in parts]), wanted["y"])


def test_newton_over_blocks_finds_the_weights_of_one_table_for_any_threads(path):
    frame = pd.read_parquet(path).dropna(subset=["y"]).reset_index(drop=True)
    encoder, classes = Encoder(Table(frame[NAMES]), slice(0, 500)), np.array(["high", "low"])
    how, columns = newton.Encoded(encoder, classes, seed=3), [np.arange(encoder.n_encoded), np.array([0, 2])]
    begin = [np.zeros((1, own.size + 1)) for own in columns]
    nobody = np.zeros(0, dtype=np.intp)
    one, two = (newton.solve(Blocks(TableFile(path), NAMES, "y", nobody, n_jobs=n), how, columns, begin, C=2.0)
                for n in (1, 3))  # fmt: skip
    Z, codes = encoder.encode(Table(frame[NAMES]), slice(None)), (frame["y"] == "low").to_numpy().astype(np.int64)
    for own, theta, same in zip(columns, one.weights, two.weights, strict=True):
        assert_array_equal(theta, same)
        assert_allclose(said(theta[-1], Z[own]), said(solved_alone(Z[own], codes, 2.0), Z[own]), rtol=0, atol=1e-8)


def test_an_error_in_a_block_ends_the_pass(path):
    def fail(X, y, number):
        raise InvalidInputError(f"block {number}")

    with pytest.raises(InvalidInputError, match="block 0"):
        list(Blocks(TableFile(path), NAMES, "y", np.zeros(0, dtype=np.intp), n_jobs=2).each(fail))


def fitted(capsys, path, tmp_path, *options):
    prices = tmp_path / "prices.csv"
    prices.write_text("feature,price\na,1\nb,2\nc,3\nd,1\n", encoding="utf-8")
    printed = call(capsys, "fit", path, "--target", "y", "--costs", prices, "--max-stages", "3", "--jobs", "2",
                   "-o", tmp_path / "m.emsco", *options)  # fmt: skip
    return emsco.load(tmp_path / "m.emsco"), printed


def test_the_command_trains_logistic_stages_on_all_rows_that_it_does_not_test_on(path, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("emsco.data.files.MAX_ROWS", 1500)
    monkeypatch.setattr("emsco.data.files._RARE", 10)
    clf, printed = fitted(capsys, path, tmp_path, "--final", "search")
    frame = pd.read_parquet(path)
    n_known = int(frame["y"].notna().sum())
    assert f"{n_known:,} rows with a label; " in printed.err
    assert "logistic stages learn from all rows" in printed.err
    n_test = clf.evaluation_.n_rows
    assert n_test == pytest.approx(0.25 * 1500, abs=2)
    assert clf.front_.n_samples == n_known - n_test
    assert f"{n_known - n_test} training rows" in printed.out.replace(",", "")
    assert (clf.front_.confusion.sum(axis=(1, 2)) == n_known - n_test).all()
    # The rows tested on are nowhere among them: the weights are those of all the others.
    encoder = clf.deployed_.encoder
    labelled = TableFile(path).sample([*NAMES, "y"], "y", 1500, seed=0)
    from emsco.cli.fit import _held_out

    y = labelled[0].column("y").to_pandas().to_numpy()
    out = labelled[2][_held_out(y, 0.25, 0)[1]]
    rest = frame.drop(index=out).dropna(subset=["y"])
    Z, codes = encoder.encode(Table(rest[NAMES]), slice(None)), (rest["y"] == "low").to_numpy().astype(np.int64)
    for stage in clf.stages_:
        own = Z[stage.encoded_columns]
        assert_allclose(
            stage.model.predict_proba(own.T),
            said(solved_alone(own, codes, clf.deployed_.origin.C), own),
            rtol=0,
            atol=1e-8,
        )


@pytest.mark.parametrize("options", [["--products"], ["--checkpoint", "run.ckpt"]])
def test_other_stages_and_fits_with_a_checkpoint_are_those_of_the_sample(path, tmp_path, capsys, monkeypatch, options):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("emsco.data.files.MAX_ROWS", 1500)
    monkeypatch.setattr("emsco.data.files._RARE", 10)
    pytest.importorskip("skops")
    clf, printed = fitted(capsys, path, tmp_path, "--final", "search", *options)
    assert ("others from these" in printed.err) == ("--checkpoint" not in options)
    assert clf.front_.n_samples == pytest.approx(0.75 * 1500, abs=3)
    assert f"{clf.front_.n_samples} training rows" in printed.out.replace(",", "")
