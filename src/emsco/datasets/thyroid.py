"""Thyroid screening with real prices of tests: many healthy patients, two rare diseases."""

import gzip
from importlib.resources import files
from io import StringIO
from typing import Any

import numpy as np

from emsco.datasets._table import make_bunch
from emsco.exceptions import InvalidParameterError

_SUBSETS = {"train": ("ann-train",), "test": ("ann-test",), "all": ("ann-train", "ann-test")}

_DESCRIPTION = """\
Thyroid Disease (ANN version): 3772 patients to train and 3428 to test, 21 features. Predict the state of the thyroid:
1, hyperthyroid (93 and 73 patients); 2, subnormal (191 and 177); 3, normal (3488 and 3178). Few are ill, so a
classifier that calls everybody healthy is right for 92.5 %.

Prices are real: Canadian dollars, from the fee schedule of the Ontario Health Insurance Program, collected by Turney
(1995). `FTI` is computed from `TT4` and `T4U`, so alone it costs as much as both, 25.92. Everything costs 102.03.

Source: UCI Machine Learning Repository; R. Quinlan (1987). Prices: P. D. Turney (1995). Licence: CC BY 4.0.
"""


def load_thyroid(*, subset: str = "train", as_frame: bool = True) -> Any:
    """Load the thyroid data, with the prices of the tests.

    Parameters
    ----------
    subset : "train", "test" or "all"
        The published training rows, the published test rows, or both, in this order.
    as_frame : bool
        Give ``data`` and ``target`` as pandas objects, with column names, instead of arrays.

    Returns
    -------
    Bunch
        ``data`` (3772, 3428 or 7200 rows x 21), ``target`` (1 hyperthyroid, 2 subnormal, 3 normal), ``feature_names``,
        ``prices`` (a mapping by feature name), ``DESCR`` and ``license``.

    Examples
    --------
    >>> thyroid = load_thyroid()
    >>> thyroid.data.shape, round(sum(thyroid.prices.values()), 2)
    ((3772, 21), 102.03)
    >>> thyroid.target.value_counts().sort_index().tolist()
    [93, 191, 3488]
    """
    if subset not in _SUBSETS:
        raise InvalidParameterError(f"must be one of {', '.join(_SUBSETS)}; got {subset!r}.", parameter="subset")
    folder = files("emsco.datasets").joinpath("data", "thyroid")
    lines = folder.joinpath("ann-thyroid.cost").read_text().split()
    prices = {name: float(price) for name, price in (line.split(":") for line in lines)}
    prices["FTI"] = round(prices["TT4"] + prices["T4U"], 2)
    parts = [gzip.decompress(folder.joinpath(f"{name}.data.gz").read_bytes()).decode() for name in _SUBSETS[subset]]
    values = np.concatenate([np.loadtxt(StringIO(part)) for part in parts])
    names = [*prices, "state"]
    return make_bunch(values, names, prices=prices, description=_DESCRIPTION, license="CC BY 4.0", as_frame=as_frame)
