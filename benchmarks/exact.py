"""The exact search: all designs of a space, training included."""

from collections.abc import Iterator
import json
import subprocess
import sys

from benchmarks.common import Bar, numeric_problem, seconds
from emsco.designs.partition import count_solutions
from emsco.search.exact.lattice import all_bits
from emsco.search.exact.proof import Exact, search_exactly
from emsco.stages.logistic import LogisticTrainer


def prove(n_features: int, max_stages: int, n_jobs: int = 2):
    problem = numeric_problem(345, 172, n_features)
    bits = all_bits(LogisticTrainer(problem, n_jobs=n_jobs), problem.y_validation, problem.prices, threshold=0.75)
    return search_exactly(bits, Exact(), max_stages=max_stages, n_jobs=n_jobs)


class ExactSearch:
    def setup(self):
        prove(6, 3)

    def time_14_features_4_stages(self):
        prove(14, 4)

    def peakmem_14_features_4_stages(self):
        prove(14, 4)


def _alone(n_features: int, max_stages: int) -> dict[str, float]:
    """Prove a space in a process of its own; return seconds and peak memory in MB."""
    code = (
        "import json\n"
        "from benchmarks.common import peak_memory, seconds\n"
        "from benchmarks.exact import prove\n"
        "prove(6, 3)\n"
        f"taken = seconds(lambda: prove({n_features}, {max_stages}))\n"
        "print(json.dumps({'seconds': taken, 'peak': peak_memory()}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def bars() -> Iterator[Bar]:
    prove(6, 3)
    proofs = []
    taken = seconds(lambda: proofs.append(prove(14, 4)))
    certificate = proofs[0].certificate
    assert certificate.proven
    assert certificate.n_walked + certificate.n_ruled_out == certificate.n_designs == count_solutions(14, 4)
    rate = certificate.n_designs / taken / 1e6
    yield Bar(
        "exact front of (14, 4), 172 samples", taken, "s", 10,
        f"{certificate.n_designs:,} designs, {certificate.n_walked:,} looked at: {rate:.0f} million per second; "
        f"{len(proofs[0].designs)} vectors",
    )  # fmt: skip
    for n_features, max_stages, limit in ((16, 4, 180), (20, 3, 360), (12, 12, 10), (14, 14, 180)):
        run = _alone(n_features, max_stages)
        yield Bar(
            f"exact front of ({n_features}, {max_stages})", run["seconds"], "s", limit,
            f"{count_solutions(n_features, max_stages):,} designs; peak memory {run['peak']:.0f} MB",
        )  # fmt: skip
