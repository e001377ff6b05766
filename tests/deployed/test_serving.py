"""Serving never imports searching."""

import subprocess
import sys

import numpy as np
import pytest

from tests.classifiers import fixed

SERVING = {
    "_compile", "_scalar", "arrays", "checks", "data", "data.encoding", "data.labels", "data.output", "data.table",
    "deployed", "deployed._rows", "deployed.branching", "deployed.cells", "deployed.crossroads", "deployed.decide",
    "deployed.fingerprints", "deployed.judging", "designs.branch", "designs.branched", "scoring.branches",
    "scoring.certificate", "scoring.gains",
    "deployed.evaluation", "deployed.model", "deployed.money",
    "deployed.running", "deployed.savings", "deployed.session", "designs", "designs.operators",
    "designs.operators.elitism",
    "designs.partition", "estimators", "estimators.base", "estimators.given", "estimators.loading",
    "estimators.searched", "exceptions", "markup", "prices", "prices.amounts", "prices.derived", "prices.errors",
    "prices.groups", "prices.prices", "promises", "promises.guarantee", "promises.loss", "promises.own",
    "promises.policy", "scoring", "scoring.answers",
    "scoring.choice", "scoring.classes", "scoring.front", "scoring.intervals", "scoring.objectives", "scoring.outlook",
    "scoring.ranking", "scoring.ratio", "scoring.rejection", "scoring.shortlist", "scoring.tables", "scoring.tally",
    "scoring.thresholds", "scoring.words", "stages", "stages._logistic", "stages.base", "stages.learners",
    "stages.logistic", "stages.problem", "storage", "storage.branches", "storage.by_class", "storage.codec",
    "storage.container", "storage.estimator_checks", "storage.estimator_specs", "storage.estimator_together",
    "storage.estimator_trees", "storage.estimators", "storage.fields", "storage.model_file", "storage.outlook",
    "storage.parameters", "storage.results", "storage.savings", "storage.skops_file",
}  # fmt: skip

SCRIPT = """
import sys
import emsco
import numpy as np
decisions = emsco.load(sys.argv[1]).decide(np.load(sys.argv[2]))
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "emsco"))
print("sqlite3" in sys.modules)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    folder = tmp_path_factory.mktemp("serving")
    fixed([1, 2, 3], random_state=0).fit(X, X[:, 0] > 0).save(folder / "model.emsco")
    np.save(folder / "rows.npy", X)
    return folder


def test_a_saved_model_decides_without_the_search_the_fit_the_report_and_a_database(saved):
    command = [sys.executable, "-c", SCRIPT, str(saved / "model.emsco"), str(saved / "rows.npy")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    modules, database = done.stdout.splitlines()
    loaded = {name.removeprefix("emsco.") for name in modules.split()} - {"emsco"}
    assert loaded <= SERVING
    assert not {name.partition(".")[0] for name in loaded} & {"search", "fitting", "report", "cli", "experiments"}
    assert database == "False"
