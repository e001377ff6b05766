"""A table in parts, with its labels: nothing but a part or two per thread is in memory at a time."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.data.table import is_dask
from emsco.exceptions import ClusterError, EmscoError, InvalidInputError, InvalidTargetError

_AHEAD = 2  # partitions per thread that are asked for at a time


class Parts(ABC):
    """Rows and their labels, part by part.

    Attributes
    ----------
    names : list of str
        Columns.
    judges_others : bool
        Whether what is trained on a sample is judged on all other rows, too.
    """

    names: list[str]
    judges_others = True

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of parts."""

    @abstractmethod
    def each(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield ``function(rows, labels, number, *arguments)`` of each part, in order."""

    def total(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the sum of what a function gives of each part, in their order: the same for any workers."""
        total: Any = None
        for part in self.each(function, *arguments):
            total = part if total is None else [a + b for a, b in zip(total, part, strict=True)]
        return total


class Partitions(Parts):
    """A Dask DataFrame and the Dask Series of its labels.

    Parameters
    ----------
    X : dask.dataframe.DataFrame
    y : dask.dataframe.Series or str
        Of the same partitions; or the name of the column of ``X`` that holds the labels.
    client : distributed.Client or None
        Who computes. None: whoever computes Dask collections here.

    Attributes
    ----------
    names : list of str
        Columns.
    """

    def __init__(self, X: Any, y: Any, client: Any = None) -> None:
        if not hasattr(X, "map_partitions") or X.ndim != 2:
            raise InvalidInputError(f"X is a {type(X).__name__} of Dask; give a Dask DataFrame.")
        self._client = client
        self._label = y if isinstance(y, str) else None
        self.names = [str(name) for name in X.columns if name != self._label]
        if self._label is not None:
            if self._label not in X.columns:
                raise InvalidTargetError(f"is {y!r}, which is no column of X.", parameter="y")
            self._parts = [(part, None) for part in X.to_delayed()]
            return
        if not is_dask(y) or not hasattr(y, "map_partitions") or y.ndim != 1:
            raise InvalidTargetError(
                f"must be a Dask Series or the name of a column, as X is a Dask DataFrame; got {type(y).__name__}.",
                parameter="y",
            )
        n = X.npartitions
        if y.npartitions != n:
            raise InvalidTargetError(
                f"has {y.npartitions} partitions, but X has {n}; take both from one DataFrame.", parameter="y"
            )
        rows, labels = X.to_delayed(), y.to_delayed()
        if not len(rows) == len(labels) == n:  # Dask reads small partitions together, more of them of one column
            rows, labels = X.to_delayed(optimize_graph=False), y.to_delayed(optimize_graph=False)
        self._parts = list(zip(rows, labels, strict=True))

    def __len__(self) -> int:
        return len(self._parts)

    def each(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield ``function(rows, labels, number, *arguments)`` of each partition, in order."""
        import dask

        call = dask.delayed(_parted, pure=False, traverse=False)
        shared = [dask.delayed(argument, traverse=False) for argument in arguments]
        n_threads = 4 if self._client is None else max(sum(self._client.nthreads().values()), 1)
        step = _AHEAD * n_threads
        for start in range(0, len(self), step):
            stop = min(start + step, len(self))
            tasks = [call(function, self._label, *self._parts[i], i, *shared) for i in range(start, stop)]
            try:
                yield from dask.compute(*tasks, **({} if self._client is None else {"scheduler": self._client}))
            except EmscoError:
                raise
            except Exception as error:
                if type(error).__module__.partition(".")[0] != "distributed":
                    raise
                raise ClusterError(
                    f"partitions {start} to {start + len(tasks) - 1} could not be computed: {error}"
                ) from error


def _parted(function: Callable[..., Any], label: str | None, X: Any, y: Any, number: int, *arguments: Any) -> Any:
    """Call a function of the rows of a partition and their labels."""
    if label is not None:
        X, y = X.drop(columns=[label]), X[label]
    return function(X, y, number, *arguments)


def labels_of(y: Any, n_rows: int, number: int) -> NDArray[Any]:
    """Return the labels of a partition as NumPy knows them."""
    if len(y) != n_rows:
        raise InvalidTargetError(f"has {len(y)} labels in partition {number}, but X has {n_rows} rows.", parameter="y")
    if y.isna().any():
        raise InvalidTargetError(f"has missing labels in partition {number}; drop these rows.", parameter="y")
    values = y.astype(object).to_numpy()
    return np.array(values.tolist()) if values.size else values


def codes_of(y: Any, classes: NDArray[Any], n_rows: int, number: int) -> IntArray:
    """Return the class indices of the labels of a partition."""
    if not n_rows:
        return np.zeros(0, dtype=np.int64)
    return np.searchsorted(classes, labels_of(y, n_rows, number)).astype(np.int64)
