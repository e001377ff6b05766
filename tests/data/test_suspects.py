import warnings

import numpy as np
import pandas as pd
import pytest

from emsco.data.suspects import warn_of_suspects
from emsco.data.table import Table
from emsco.exceptions import SuspiciousColumnWarning

CODES = np.arange(30) % 2


@pytest.mark.parametrize(
    ("cells", "says"),
    [
        ([7] * 30, "has the same value in every row"),
        (["here"] * 30, "has the same value in every row"),
        ([f"case {i}" for i in range(30)], "has another value in every row, as an id has"),
        (range(100, 130), "has another value in every row, as an id has"),
        (np.arange(30) ** 2, "has another value in every row, as an id has"),  # rows in between are left out
        (np.random.default_rng(0).permutation(30) + 7.0, "has another value in every row, as an id has"),
        (np.where(CODES == 1, "ill", "well"), "determines the label of every row"),
        (CODES * 2.0, "determines the label of every row"),
    ],
)
def test_a_column_that_is_probably_not_a_feature_draws_a_warning(cells, says):
    with pytest.warns(SuspiciousColumnWarning, match=f"column 'x' {says}"):
        warn_of_suspects(Table(pd.DataFrame({"x": cells})), CODES)


def test_features_draw_no_warning():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "count": rng.choice(1000, 30, replace=False),
            "number": rng.normal(size=30),
            "sorted": np.sort(rng.random(30)),
            "word": ["a", "b", "c"] * 10,
            "flag": CODES ^ (CODES.cumsum() == 1),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_suspects(Table(frame), CODES)
        warn_of_suspects(Table(frame.iloc[:10, :0].assign(x=1)), CODES[:10])
