"""A model file decides alike on processors that round differently."""

import subprocess
import sys

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier

import emsco
from emsco import BestFirst, Guarantee, MultiStageClassifier
from emsco.datasets import load_heart_disease, load_heart_failure, load_spambase
from tests.classifiers import fixed
from tests.other_processor import environment

DECIDE = """
import sys
import numpy as np
import emsco
decisions = emsco.load(sys.argv[1]).decide(np.load(sys.argv[2]))
np.savez(sys.argv[3], label=decisions.label.filled(-1), confidence=decisions.confidence, stage=decisions.stage,
         cost=decisions.cost)
"""


def heart_failure():
    data = load_heart_failure(as_frame=False)
    return fixed(list(data.prices.values()), threshold=0.8, max_stages=3, random_state=0), data


def promised():
    data = load_heart_failure(as_frame=False)
    search = BestFirst(max_designs=200)
    return fixed(threshold=Guarantee(0.8, 0.8), search=search, encoding="spline", random_state=0), data


def missing_values():
    data = load_heart_disease(as_frame=False)
    return MultiStageClassifier([0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 3, 3], products=True, threshold=0.85), data


def many_rows():
    return MultiStageClassifier(np.arange(57) % 4, threshold=0.9, encoding="rank"), load_spambase(as_frame=False)


def three_classes():
    return MultiStageClassifier([0, 1, 2, 3], threshold=0.9), load_iris()


def boosting():
    return MultiStageClassifier([0, 1, 2, 3], estimator=HistGradientBoostingClassifier(max_iter=20)), load_iris()


@pytest.mark.slow
@pytest.mark.parametrize("make", [heart_failure, promised, missing_values, many_rows, three_classes, boosting])
def test_a_model_file_decides_alike_on_another_processor(make, tmp_path):
    """That a confidence is as near to its threshold as they differ, is one case in a billion."""
    clf, data = make()
    path = tmp_path / "model.emsco"
    clf.fit(data.data, data.target).save(path)
    np.save(tmp_path / "rows.npy", data.data)
    here = emsco.load(path).decide(data.data)
    arguments = [str(path), str(tmp_path / "rows.npy"), str(tmp_path / "there.npz")]
    subprocess.run([sys.executable, "-c", DECIDE, *arguments], env=environment(), check=True)
    there = np.load(tmp_path / "there.npz")
    assert_allclose(there["confidence"], here.confidence, atol=1e-9, rtol=0)
    assert_array_equal(there["label"], here.label.filled(-1))
    assert_array_equal(there["stage"], here.stage)
    assert_array_equal(there["cost"], here.cost)
