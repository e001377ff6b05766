"""What every data set is read and handed out with."""

from collections.abc import Callable, Mapping, Sequence
import gzip
from importlib.resources import files
from io import StringIO
from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from emsco.data.table import data_frame
from emsco.prices.prices import Prices

Values = NDArray[np.float64]


def carried(name: str, *, columns: Sequence[str] = ()) -> tuple[list[str], Values]:
    """Return the column names and values of a file that the package carries; one without a header needs its columns."""
    content = files("emsco.datasets").joinpath("data", name).read_bytes()
    file = StringIO((gzip.decompress(content) if name.endswith(".gz") else content).decode())
    names = list(columns) or file.readline().strip().split(",")
    return names, np.loadtxt((line.replace("?", "nan") for line in file), delimiter=",", ndmin=2)


def with_sorted_rows(values: Values) -> Values:
    """Return the rows in order of their values, the first column first."""
    return values[np.lexsort(values.T[::-1])]


def make_bunch(
    values: Values,
    names: Sequence[str],
    *,
    prices: Mapping[str, float] | Prices,
    description: str,
    license: str,
    categories: Sequence[str] = (),
    as_frame: bool,
) -> Any:
    """Return features and target, the last column, as scikit-learn's loaders do, with prices."""
    *features, target_name = names
    data: Any = values[:, :-1]
    target: Any = values[:, -1].astype(np.int64)
    if as_frame:
        frame = data_frame(dict(zip(names, values.T, strict=True)))
        whole = [name for name in names if (frame[name] % 1 == 0).all()]
        frame = frame.astype(dict.fromkeys(whole, np.int64)).astype(dict.fromkeys(categories, "category"))
        data, target = frame[features], frame[target_name]
    return Bunch(
        data=data,
        target=target,
        feature_names=features,
        prices=prices,
        DESCR=description,
        license=license,
    )


def renamed(load: Callable[..., Any], old: str, *, as_frame: bool) -> Any:
    """Load the data under the name that a function had before, with a warning that gives the new one."""
    new = load.__name__
    warnings.warn(f"{old} is deprecated: the package carries the data now; use {new}.", FutureWarning, stacklevel=3)
    return load(as_frame=as_frame)
