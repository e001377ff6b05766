"""Import, and the compilation that only the first search on a machine pays for."""

from collections.abc import Iterator
import os
import subprocess
import sys
import tempfile

from benchmarks.common import Bar

_IMPORT = "from time import perf_counter as t; s = t(); {}; print(t() - s)"
_SEARCH = """
from time import perf_counter
from emsco import EMSCOClassifier
from emsco.datasets import load_heart_failure
heart = load_heart_failure()
start = perf_counter()
clf = EMSCOClassifier(heart.prices, random_state=0, search="auto", preset="paper").fit(heart.data, heart.target)
clf.decide(heart.data)
print(perf_counter() - start)
"""


def run(code: str, **environment: str) -> float:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=os.environ | environment
    )
    return float(done.stdout)


def bars() -> Iterator[Bar]:
    names = "from emsco import EMSCOClassifier"
    run(_IMPORT.format(names))  # the files are read from disk once
    package = min(run(_IMPORT.format("import emsco")) for _ in range(3))
    all_of_it = min(run(_IMPORT.format(names)) for _ in range(3))
    scikit_learn = min(run(_IMPORT.format("import sklearn.base")) for _ in range(3))
    yield Bar(
        "import emsco", package, "s", 1.5,
        f"with EMSCOClassifier {all_of_it:.2f} s, of which scikit-learn's base alone takes {scikit_learn:.2f} s",
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        first = run(_SEARCH, NUMBA_CACHE_DIR=folder)
        second = run(_SEARCH, NUMBA_CACHE_DIR=folder)
    yield Bar("compilation in the first search and decide", first - second, "s", 20, f"the next takes {second:.1f} s")
