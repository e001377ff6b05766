"""Model files that version 0.1.0 wrote are read, and decide as they did then."""

import json
from pathlib import Path

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
import pandas as pd
import pytest

import emsco

FOLDER = Path(__file__).parent / "data" / "v0.1.0"
EXPECTED = json.loads((FOLDER / "expected.json").read_text())


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
@pytest.mark.parametrize("name", EXPECTED["models"])
def test_a_file_of_version_0_1_0_decides_as_it_did(name):
    clf = emsco.load(FOLDER / f"{name}.emsco")
    rows = pd.DataFrame(EXPECTED["rows"], columns=EXPECTED["columns"])
    expected = EXPECTED["models"][name]
    assert clf.notes_ == {"by": "0.1.0"}
    assert getattr(clf, "point_", None) == expected["point"]
    for point, then in enumerate(expected["points"]):
        if expected["point"] is not None:
            clf.use(point)
        assert_array_equal(clf.design_, then["design"])
        decisions = clf.decide(rows)
        for figure in ("label", "conclusive", "stage", "cost"):
            assert_array_equal(np.asarray(getattr(decisions, figure)), then[figure], err_msg=figure)
        assert_allclose(decisions.confidence, then["confidence"], rtol=0, atol=1e-9)
