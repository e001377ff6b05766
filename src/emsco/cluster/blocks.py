"""A Parquet file larger than the memory, a block of rows at a time, in the threads of this process."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from emsco.arrays import BoolArray
from emsco.cluster.partitions import Parts
from emsco.data.files import BLOCK_ROWS, TableFile

_AHEAD = 2  # blocks per thread that are read and not yet done


class Blocks(Parts):
    """The rows of a file that have a label, some of them left out.

    Parameters
    ----------
    file : TableFile
        Of Parquet.
    names : sequence of str
        Columns to learn from.
    target : str
        The column of the labels.
    left_out : ndarray of int
        Rows of the file that nobody learns from.
    n_jobs : int
        Threads. What is summed is the same for any number.
    """

    judges_others = False

    def __init__(
        self, file: TableFile, names: Sequence[str], target: str, left_out: NDArray[np.intp], *, n_jobs: int = 1
    ) -> None:
        self.names = list(names)
        self._file = file
        self._target = target
        self._left_out: BoolArray = np.zeros(file.n_rows, dtype=np.bool_)
        self._left_out[left_out] = True
        self._n_jobs = n_jobs

    def __len__(self) -> int:
        return -(-self._left_out.size // BLOCK_ROWS)

    def each(self, function: Callable[..., Any], *arguments: Any) -> Iterator[Any]:
        """Yield ``function(rows, labels, number, *arguments)`` of each block, in order."""
        pool = ThreadPoolExecutor(self._n_jobs)
        waiting: deque[Any] = deque()
        try:
            with ThreadpoolController().limit(limits=1, user_api="blas"):
                start = 0
                columns = [*self.names, self._target]
                for number, (block, _) in enumerate(self._file.blocks(columns, numbers=())):
                    left_out = self._left_out[start : start + block.num_rows]
                    start += block.num_rows
                    waiting.append(pool.submit(self._call, function, block, left_out, number, *arguments))
                    if len(waiting) >= _AHEAD * self._n_jobs:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _call(self, function: Callable[..., Any], block: Any, left_out: BoolArray, number: int, *arguments: Any) -> Any:
        """Call a function of the rows of a block."""
        import pyarrow

        known = np.asarray(block.column(self._target).is_valid()) & ~left_out
        frame = block.filter(pyarrow.array(known)).to_pandas()
        return function(frame[self.names], frame[self._target], number, *arguments)


class SampledFile(NamedTuple):
    """A sample of the rows of a file, to be searched, and all of them.

    Attributes
    ----------
    X
        Features of the sample.
    blocks : Blocks
        All rows to learn from.
    n_rows : int
        How many these are.
    """

    X: Any
    blocks: Blocks
    n_rows: int
