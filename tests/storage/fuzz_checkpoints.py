"""Checkpoints with flipped bytes: the run that goes on from one ends as if nothing had been, or with CheckpointError.

``python -m tests.storage.fuzz_checkpoints 200`` tries so many and prints what became of them.
"""

from collections import Counter
from contextlib import suppress
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
from unittest.mock import patch
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.naive_bayes import GaussianNB

from emsco import BestFirst, Evolution, Exact
from emsco.exceptions import CheckpointError
from emsco.storage import checkpoint
from emsco.storage.checkpoint import Checkpoint
from tests.classifiers import fixed

RUNS = {
    "evolution": {"search": Evolution(population_size=16, max_generations=6, patience=None), "max_stages": 3},
    "best first": {"search": BestFirst(max_designs=400, start=2), "max_stages": 4},
    "exact": {"search": Exact(), "max_stages": 3},
    "bayes": {"search": Evolution(population_size=6, max_generations=2), "max_stages": 2, "estimator": GaussianNB()},
}
N_SNAPSHOTS = {"evolution": 3, "best first": 2, "exact": 2, "bayes": 1}


class KilledError(Exception):
    """Stands for kill -9."""


def fit(name, path):
    X, y = make_classification(120, 6, n_informative=4, flip_y=0.2, random_state=3)
    clf = fixed(random_state=0, preset="paper", threshold=0.8, **RUNS[name])
    return clf.fit(X, y, checkpoint=path)


def result(clf):
    """Return all that a run ends with, as text."""
    front = clf.front_
    arrays = (front.designs, front.values, front.n_ties, front.reached, clf.history_)
    return repr([array.tolist() for array in arrays]) + repr((clf.n_feature_sets_, clf.n_generations_))


def cut_off(name, path):
    """Leave the checkpoint of a run that is killed after a few snapshots."""
    original, left = Checkpoint.save, N_SNAPSHOTS[name]

    def save(self, snapshot):
        nonlocal left
        original(self, snapshot)
        left -= 1
        if not left:
            raise KilledError

    with patch.object(Checkpoint, "save", save), suppress(KilledError):
        fit(name, path)


def run(n, seed=0):
    """Flip bytes of n checkpoints; return how many runs ended how."""
    outcomes = Counter()
    at_once = {"_SECONDS": -1.0, "_SHARE": 1e9}
    with TemporaryDirectory() as folder, warnings.catch_warnings(), patch.multiple(checkpoint, **at_once):
        warnings.simplefilter("ignore")
        path = Path(folder) / "run.ckpt"
        files, expected = {}, {}
        for name in RUNS:
            expected[name] = result(fit(name, None))
            cut_off(name, path)
            files[name] = path.read_bytes()
            path.unlink()
        for i in range(n):
            rng = np.random.default_rng([seed, i])
            name = list(RUNS)[i % len(RUNS)]
            changed = bytearray(files[name])
            for place in rng.integers(len(changed), size=rng.integers(1, 4)):
                changed[place] ^= 1 << rng.integers(8)
            path.write_bytes(bytes(changed))
            try:
                end = "the same" if result(fit(name, path)) == expected[name] else f"another result ({name}, {i})"
            except CheckpointError:
                end = "refused"
            except Exception as error:
                raise AssertionError(f"flip {i} of seed {seed} ({name})") from error
            outcomes[end] += 1
            for left in Path(folder).iterdir():
                left.unlink()
    return outcomes


def main():
    for end, count in sorted(run(int(sys.argv[1]) if len(sys.argv) > 1 else 200).items()):
        print(f"{end:<12} {count:5d}")


if __name__ == "__main__":
    main()
