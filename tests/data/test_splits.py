import numpy as np
import pytest

from emsco.exceptions import InvalidParameterError
from tests.classifiers import fixed


def test_a_list_of_splits_is_refused_without_printing_its_arrays():
    rows = np.arange(500)
    wrong = [(rows[::2], rows[1::2]), (rows[1::2], rows[::2])]
    with pytest.raises(InvalidParameterError, match=r"^validation must be a share of the rows") as caught:
        fixed(validation=wrong).fit(np.random.default_rng(0).normal(size=(500, 2)), rows % 2)
    assert str(caught.value).endswith("got a list of 2; give the splitter, not its splits.")
