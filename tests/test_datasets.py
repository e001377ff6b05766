from hashlib import sha256
from importlib.resources import files

import numpy as np

from emsco.datasets import load_heart_failure


def test_heart_failure_is_the_published_file():
    content = files("emsco.datasets").joinpath("data/heart_failure.csv").read_bytes()
    assert sha256(content).hexdigest() == "9c73cea7468ff5d517801ec050fe9993da5912fce4b56f296f8df3b38dd75912"


def test_heart_failure_has_the_papers_prices():
    heart = load_heart_failure()
    assert heart.data.shape == (299, 12)
    assert np.bincount(heart.target).tolist() == [203, 96]
    assert list(heart.data) == heart.feature_names == list(heart.prices)
    assert sum(heart.prices.values()) == 750
    assert heart.license == "CC BY 4.0"


def test_arrays_and_frames_hold_the_same():
    heart, arrays = load_heart_failure(), load_heart_failure(as_frame=False)
    np.testing.assert_array_equal(heart.data.to_numpy(), arrays.data)
    np.testing.assert_array_equal(heart.target.to_numpy(), arrays.target)
