"""Calls on the workers of a cluster, whatever becomes of single workers: the results are those of one process.

What calls share, such as an encoded table, is sent once; tables that share arrays share them there, too. A worker that
dies costs what it was doing: Dask does it again elsewhere, and what was sent to nobody else is sent again.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
import pickle
from time import perf_counter, sleep
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

import cloudpickle

from emsco.cluster.connecting import check_installed, need_distributed
from emsco.drawing import counted
from emsco.exceptions import ClusterError, InvalidParameterError

_APART = 2**16  # bytes of an array from which on it is sent by itself
_AHEAD = 3  # tasks per thread that are with the scheduler at a time
_REPEATS = 20  # times that what was lost is sent again, without a result in between
_PAUSE = 0.05  # seconds until it is


@dataclass(frozen=True, eq=False)
class Call:
    """A call of ``function(thing, *arguments)`` on a worker; functions and arguments are small, things may be large."""

    function: Callable[..., Any]
    thing: Any
    arguments: tuple[Any, ...]
    name: str


@dataclass(eq=False)
class Totals:
    """What a crew has done.

    Attributes
    ----------
    tasks, sent, again : int
        Tasks that ended, bytes that were sent to workers, tasks that began again because what they need was lost.
    busy : float
        Seconds that workers have worked.
    log : list
        Of each run of calls: when it began and ended, and the seconds of its tasks.
    """

    tasks: int = 0
    sent: int = 0
    again: int = 0
    busy: float = 0.0
    log: list[tuple[float, float, list[float]]] = field(default_factory=list)


class _Array:
    """An array that is on the cluster."""

    def __init__(self, source: pickle.PickleBuffer) -> None:
        self.source = source
        self.future: Any = None


@dataclass(frozen=True, eq=False)
class _Sent:
    """A thing as it is sent: small parts in each call, arrays by themselves."""

    skeleton: bytes
    arrays: tuple[_Array, ...]


class KilledError(ClusterError):
    """A call has ended several workers; ``number`` says which."""

    number = 0


class Crew:
    """The workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
        It is used and not closed.
    """

    def __init__(self, client: Any) -> None:
        self._distributed = need_distributed()
        if not isinstance(client, self._distributed.Client) or client.asynchronous:
            raise InvalidParameterError(
                f"must be a synchronous distributed.Client; got {client!r}.", parameter="client"
            )
        self._client = client
        self._sent: WeakKeyDictionary[Any, _Sent] = WeakKeyDictionary()
        self._arrays: WeakValueDictionary[bytes, _Array] = WeakValueDictionary()
        self._began = perf_counter()
        self._asked: set[str] = set()
        self._size = self._look()
        self.totals = Totals()

    @property
    def client(self) -> Any:
        """The client."""
        return self._client

    @property
    def n_threads(self) -> int:
        """Threads of all workers, when work was given to them last; at least one."""
        return max(self._size[1], 1)

    def in_words(self) -> str:
        """Return what is there and what has been done, briefly."""
        tasks = counted(self.totals.tasks, "task")
        return f"{counted(self._size[0], 'worker')}, {tasks}, {self.totals.sent / 1e6:,.0f} MB sent"

    def run(self, calls: Sequence[Call], *, alone: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield the number of each call and what it returns, as they end; ``alone``: one call at a time.

        Raises
        ------
        ClusterError
            The scheduler is gone, or a call has killed several workers; it says which.
        """
        began, log, flying = perf_counter() - self._began, [], dict[str, tuple[int, Any]]()
        todo, suspects, repeats = deque(range(len(calls))), deque[int](), 0
        ended = self._distributed.as_completed(loop=self._client.loop)
        if self._is_there():
            self._size = self._look()
        most = 1 if alone else _AHEAD * self.n_threads
        try:
            while todo or suspects or flying:
                while todo and len(flying) < most:
                    self._submit(todo.popleft(), calls, flying, ended)
                if not flying:  # whoever killed workers beside others is tried alone
                    most = 1
                    todo.append(suspects.popleft())
                    continue
                future = next(ended)
                i, _ = flying.pop(future.key)
                try:
                    result, seconds = future.result()
                except Exception as error:
                    if future.status == "error":
                        self._look_at(i, calls[i], error, alone=most == 1)
                        suspects.append(i)
                    else:  # it is lost, or its result is
                        repeats += 1
                        self._check_there(repeats, error)
                        todo.appendleft(i)
                    continue
                repeats, self.totals.tasks = 0, self.totals.tasks + 1
                self.totals.busy += seconds
                log.append(seconds)
                yield i, result
        finally:
            if flying and self._client.status == "running":
                self._client.cancel([future for _, future in flying.values()])
            self.totals.log.append((began, perf_counter() - self._began, log))

    def _look(self) -> tuple[int, int]:
        """Return how many workers there are, and how many threads; new workers have to have what they need."""
        threads = self._client.nthreads()
        new = [address for address in threads if address not in self._asked]
        if new:
            check_installed(self._client, new)
            self._asked.update(new)
        return len(threads), sum(threads.values())

    def _submit(self, i: int, calls: Sequence[Call], flying: dict[str, tuple[int, Any]], ended: Any) -> None:
        call = calls[i]
        sent = self._hold(call.thing)
        arguments = cloudpickle.dumps((call.function, call.arguments))
        arrays = [self._future(array) for array in sent.arrays]
        try:
            future = self._client.submit(_called, arguments, sent.skeleton, *arrays, pure=False)
        except Exception as error:
            self._check_there(0, error)
            raise
        flying[future.key] = (i, future)
        ended.add(future)

    def _hold(self, thing: Any) -> _Sent:
        """Return a thing as it is sent; what was sent before is not sent again."""
        sent = self._sent.get(thing)
        if sent is None:
            buffers: list[pickle.PickleBuffer] = []

            def apart(buffer: pickle.PickleBuffer) -> bool:
                if buffer.raw().nbytes < _APART:
                    return True
                buffers.append(buffer)
                return False

            skeleton = cloudpickle.dumps(thing, protocol=5, buffer_callback=apart)
            sent = self._sent[thing] = _Sent(skeleton, tuple(map(self._known, buffers)))
        return sent

    def _known(self, buffer: pickle.PickleBuffer) -> _Array:
        digest = blake2b(buffer.raw(), digest_size=16, key=b"r" if buffer.raw().readonly else b"w").digest()
        array = self._arrays.get(digest)
        if array is None:
            array = self._arrays[digest] = _Array(buffer)
        return array

    def _future(self, array: _Array) -> Any:
        """Return an array on the cluster; it is sent if it is not there, or not any more."""
        import numpy as np

        repeats = 0
        while array.future is None or array.future.cancelled():
            raw = array.source.raw()
            try:
                array.future = self._client.scatter(np.frombuffer(raw, dtype=np.uint8), hash=False)
            except Exception as error:  # the worker that got it died, or there is none for now
                repeats += not isinstance(error, TimeoutError)
                self._check_there(repeats, error)
                sleep(_PAUSE)
            else:
                self.totals.sent += raw.nbytes
        return array.future

    def _check_there(self, repeats: int, reason: Exception | None = None) -> None:
        """Raise if the scheduler is gone, or if what is sent is lost again and again."""
        self.totals.again += 1
        if not self._is_there():
            raise ClusterError(
                "the scheduler of the cluster is gone; what was done so far is in the checkpoint or the output folder, "
                "if there is one. Start a scheduler, and call again."
            ) from reason
        if repeats > _REPEATS * self.n_threads:
            raise ClusterError(
                "workers of the cluster are lost faster than they get their work; look at their logs."
            ) from reason

    def _is_there(self) -> bool:
        """Ask the scheduler."""
        if self._client.status != "running":
            return False
        try:
            self._client.ncores()
        except Exception:
            return False
        return bool(self._client.status == "running")

    def _look_at(self, number: int, call: Call, error: Exception, *, alone: bool) -> None:
        """Raise what a call has raised; one that ended workers, and may not have been alone, is tried again."""
        if not isinstance(error, self._distributed.KilledWorker):
            raise error
        if alone:
            killed = KilledError(
                f"{call.name} has ended several workers, one after the other; it probably needs more memory than a "
                f"worker has. The last one was {getattr(error, 'last_worker', None) or 'unknown'}; look at its log."
            )
            killed.number = number
            raise killed from error


def _called(arguments: bytes, skeleton: bytes, *arrays: Any) -> tuple[Any, float]:
    """Do a call, on a worker; return also how long it took."""
    began = perf_counter()
    function, rest = pickle.loads(arguments)
    thing = pickle.loads(skeleton, buffers=[memoryview(array) for array in arrays])
    return function(thing, *rest), perf_counter() - began
