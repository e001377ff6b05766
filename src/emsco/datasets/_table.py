"""What every data set is read and handed out with."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from os import environ
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import fetch_openml, get_data_home
from sklearn.utils import Bunch

from emsco.data.table import data_frame
from emsco.exceptions import DataNotAvailableError
from emsco.prices.prices import Prices

Values = NDArray[np.float64]


def carried(name: str, *, columns: Sequence[str] = ()) -> tuple[list[str], Values]:
    """Return the column names and values of a file that the package carries; one without a header needs its columns."""
    with files("emsco.datasets").joinpath("data", name).open(encoding="utf-8") as file:
        return _read(file, columns)


def fetched(name: str, *, openml_id: int, columns: Sequence[str], digest: str) -> Values:
    """Return the values of a file of the folder ``EMSCO_DATA``, of the cache, or of OpenML, in that order.

    Rows are sorted, so that every source gives the same table.

    Raises
    ------
    DataNotAvailableError
        No source has it, or what a source has is not what we know.
    """
    folder = environ.get("EMSCO_DATA")
    if folder:
        return _checked(lambda: _from_file(Path(folder, name), columns), Path(folder, name), digest)
    cached = Path(get_data_home(), "emsco", name)
    if cached.exists():
        return _checked(lambda: _from_file(cached, columns), cached, digest)
    values = _checked(lambda: _from_openml(openml_id, columns), f"OpenML {openml_id}", digest)
    cached.parent.mkdir(parents=True, exist_ok=True)
    partial = cached.with_suffix(".part")
    np.savetxt(partial, values, delimiter=",", header=",".join(columns), comments="", fmt="%.17g")
    partial.replace(cached)
    return values


def make_bunch(
    values: Values,
    names: Sequence[str],
    *,
    prices: Mapping[str, int] | Prices,
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


def _read(file: IO[str], columns: Sequence[str] = ()) -> tuple[list[str], Values]:
    names = list(columns) or file.readline().strip().split(",")
    return names, np.loadtxt((line.replace("?", "nan") for line in file), delimiter=",", ndmin=2)


def _from_file(path: Path, columns: Sequence[str]) -> Values:
    with path.open(encoding="utf-8") as file:
        names, values = _read(file)
    if names != list(columns):
        raise ValueError(f"its columns are {names}, not {list(columns)}")
    return values


def _from_openml(openml_id: int, columns: Sequence[str]) -> Values:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of its retries; what counts is what comes in the end
        table = fetch_openml(data_id=openml_id, as_frame=True, parser="liac-arff", cache=False)
    data = table.data.rename(columns=unquote)  # OpenML writes char_freq_%3B for char_freq_;
    if sorted(data) != sorted(columns[:-1]):
        raise ValueError(f"its columns are {list(data)}, not {list(columns[:-1])}")
    features = data[list(columns[:-1])]
    return np.column_stack([features.astype(np.float64), table.target.astype(np.float64)])


def _checked(read: Callable[[], Values], source: object, digest: str) -> Values:
    try:
        values = read()
    except (OSError, ValueError) as error:
        raise DataNotAvailableError(
            f"could not read the data from {source}: {error}. Connect to the network, or set EMSCO_DATA to a folder "
            "that holds the file."
        ) from error
    values = values[np.lexsort(values.T[::-1])]
    if sha256(values.astype("<f8").tobytes()).hexdigest() != digest:
        raise DataNotAvailableError(f"the values of {source} are not the published ones; remove it and fetch it again.")
    return values
