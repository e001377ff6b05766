"""Searches killed with SIGKILL at random moments and begun again, 50 times: `python -m benchmarks.kills`.

Each search is that of one command; what it prints in the end must be what it prints when nobody kills it.
"""

from pathlib import Path
import subprocess
import sys
from tempfile import TemporaryDirectory
import time

import numpy as np

N_KILLS = 50
SCRIPT = """
import sys
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier
from emsco import BestFirst, EMSCOClassifier, Evolution, Exact
runs = {
    "exact": {"search": Exact(), "max_stages": 6},
    "best first": {"search": BestFirst(max_designs=400_000, patience=None, start=5), "max_stages": 8},
    "evolution of trees": {
        "search": Evolution(population_size=100, max_generations=30, patience=None), "max_stages": 6,
        "estimator": DecisionTreeClassifier(max_depth=4, max_features=3),
    },
}
X, y = make_classification(700, 13, n_informative=8, n_redundant=3, flip_y=0.15, random_state=3)
n_jobs = 2 if sys.argv[1] == "exact" else 1
clf = EMSCOClassifier(costs=range(1, 14), random_state=0, n_jobs=n_jobs, preset="paper", **runs[sys.argv[1]])
clf.fit(X, y, checkpoint=sys.argv[2] or None)
front = clf.front_
print(front.designs.tolist(), front.n_ties.tolist(), front.mean_cost.tolist(), front.accuracy.tolist(),
      clf.history_.tolist(), clf.n_feature_sets_, clf.predict_proba(X).sum().hex(),
      front.certificate and (front.certificate.n_walked, front.certificate.proven))
"""


def start(name: str, path: Path | str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, name, str(path)], stdout=subprocess.PIPE, text=True)


def main() -> int:
    """Kill, and compare; return 1 if an answer differs."""
    rng = np.random.default_rng(0)
    n_kills = n_in_search = n_ends = 0
    whole: dict[str, tuple[str, float]] = {}
    with TemporaryDirectory() as folder:
        while n_kills < N_KILLS:
            for name in ("exact", "best first", "evolution of trees"):
                if name not in whole:
                    began = time.monotonic()
                    whole[name] = start(name, "").communicate()[0], time.monotonic() - began
                    print(f"{name}: {whole[name][1]:.1f} s when nobody kills it", flush=True)
                path = Path(folder) / f"{name} {n_ends}.ckpt"
                while True:
                    process = start(name, path)
                    moment = rng.uniform(0.5, 0.6 * whole[name][1] + 3)
                    try:
                        output = process.communicate(timeout=moment)[0]
                    except subprocess.TimeoutExpired:
                        process.kill()
                        process.communicate()
                        n_kills += 1
                        n_in_search += path.exists() and path.stat().st_size > 50_000
                        continue
                    n_ends += 1
                    if output != whole[name][0]:
                        print(f"{name}: another answer after kills")
                        return 1
                    break
                print(f"{n_kills} kills, {n_in_search} with work on disk; {n_ends} searches ended alike", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
