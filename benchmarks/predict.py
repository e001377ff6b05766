"""`emsco predict` on ten million rows of Parquet, against reading them plus one predict_proba on all columns."""

from collections.abc import Iterator
from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from benchmarks.common import Bar, seconds

N_ROWS, N_FEATURES = 10_000_000, 12

# The peak of the process is read from /proc: what getrusage says begins with that of the parent.

_THEIRS = r"""
import re, sys, numpy as np
from pyarrow import parquet
from sklearn.linear_model import LogisticRegression
train = np.load(sys.argv[2])
model = LogisticRegression().fit(train[:, :-1], train[:, -1])
p = model.predict_proba(parquet.read_table(sys.argv[1]).to_pandas().to_numpy())
print(len(p), re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""
_OURS = r"""
import re, sys
from emsco.cli.app import run
code = run(["predict", *sys.argv[1:3], "-o", sys.argv[3]])
print(code, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""


def write_rows(path: Path, n_rows: int) -> None:
    """Write noisy linear rows, a million at a time."""
    names = [f"f{i}" for i in range(N_FEATURES)]
    writer = None
    for start in range(0, n_rows, 1_000_000):
        X = np.random.default_rng(start).normal(size=(min(1_000_000, n_rows - start), N_FEATURES))
        table = pa.table(dict(zip(names, X.T, strict=True)))
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def bars() -> Iterator[Bar]:
    from emsco import EMSCOClassifier

    rng = np.random.default_rng(0)
    weights = rng.normal(size=N_FEATURES)
    X = rng.normal(size=(3000, N_FEATURES))
    y = X @ weights + rng.normal(size=3000) > 0
    names = [f"f{i}" for i in range(N_FEATURES)]
    frame = pd.DataFrame(X, columns=names)
    prices = rng.choice([1.0, 10.0, 100.0], N_FEATURES)
    clf = EMSCOClassifier(prices, max_stages=4, random_state=0, search="auto", preset="paper").fit(frame, y)
    with TemporaryDirectory() as folder:
        here = Path(folder)
        clf.save(here / "model.emsco")
        np.save(here / "train.npy", np.column_stack([X, y]))
        write_rows(here / "rows.parquet", N_ROWS)
        memory = {}

        def call(name: str, code: str, *arguments: Path) -> None:
            command = [sys.executable, "-c", code, *map(str, arguments)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            memory[name] = int(done.stdout.split()[-1]) / 1024

        def ours(kind: str = "parquet") -> None:
            call(kind, _OURS, here / "model.emsco", here / "rows.parquet", here / f"out.{kind}")

        def theirs() -> None:
            call("theirs", _THEIRS, here / "rows.parquet", here / "train.npy")

        ours()
        theirs()
        _check(clf, here)
        times = [(seconds(ours), seconds(theirs)) for _ in range(2)]
        mine, other = (min(column) for column in zip(*times, strict=True))
        as_csv = seconds(lambda: ours("csv"))
        yield Bar(
            "emsco predict, 10 million rows of Parquet, start included", other / mine, "x", 0.5,
            f"{mine:.1f} s to Parquet, {as_csv:.1f} s to CSV; reading and predict_proba {other:.1f} s; "
            f"{len(clf.stages_)} stages",
        )  # fmt: skip
        yield Bar("the memory it takes at most", memory["parquet"], "MB", 600,
                  f"to CSV {memory['csv']:.0f} MB; reading all of it {memory['theirs']:.0f} MB")  # fmt: skip


def _check(clf, here: Path) -> None:
    """A million rows in the middle are decided as in memory."""
    rows = slice(4_500_000, 5_500_000)
    decided = parquet.read_table(here / "out.parquet").slice(rows.start, 1_000_000)
    expected = clf.decide(parquet.read_table(here / "rows.parquet").slice(rows.start, 1_000_000))
    assert np.array_equal(decided.column("confidence").to_numpy(), expected.confidence)
    assert np.array_equal(decided.column("stage").to_numpy(), expected.stage + 1)
    assert np.array_equal(decided.column("cost").to_numpy(), expected.cost)


if __name__ == "__main__":
    for bar in bars():
        print(bar)
