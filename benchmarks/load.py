"""A client that sends prepared HTTP requests over many connections, as fast as it can or at a given rate."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
import gc
import socket
from time import perf_counter

import numpy as np


def request_of(path: str, body: bytes, kind: str = "application/json", host: str = "localhost") -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@dataclass
class Result:
    """What came back: times in seconds from sending to the last byte, and how many were not 200."""

    seconds: float = 0.0
    times: list[float] = field(default_factory=list)
    n_failed: int = 0  # another status
    n_broken: int = 0  # no answer: the connection was refused or ended

    @property
    def rate(self) -> float:
        return len(self.times) / self.seconds

    def quantile(self, share: float) -> float:
        return float(np.quantile(self.times, share))


Check = Callable[[int, bytes], bool]


class Connection:
    """One connection; it is opened again if it ends."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open the connection, unless it is."""
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port, limit=2**24)
        return self._streams

    async def send(self, request: bytes) -> tuple[int, bytes]:
        """Return status and body of the answer."""
        reader, writer = await self.open()
        try:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            lower = head.lower()
            at = lower.index(b"content-length:") + 15
            body = await reader.readexactly(int(lower[at : lower.index(b"\r", at)]))
            if b"connection: close" in lower:
                self.close()
            return int(head[9:12]), body
        except (OSError, asyncio.IncompleteReadError):
            self.close()
            raise

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def flood(
    port: int, requests: Sequence[bytes], *, n_connections: int, seconds: float | None = None, n: int | None = None,
    check: Check | None = None,
) -> Result:  # fmt: skip
    """Send requests one after the other on each connection, for some seconds or a number of them."""
    result, began = Result(), perf_counter()
    sent = 0

    async def run() -> None:
        nonlocal sent
        connection = Connection(port)
        while (seconds is None or perf_counter() - began < seconds) and (n is None or sent < n):
            i, sent = sent % len(requests), sent + 1
            start = perf_counter()
            try:
                status, body = await connection.send(requests[i])
            except (OSError, asyncio.IncompleteReadError):
                result.n_broken += 1
                await asyncio.sleep(0.01)
                continue
            if status != 200 or (check is not None and not check(i, body)):
                result.n_failed += 1
            result.times.append(perf_counter() - start)
        connection.close()

    await asyncio.gather(*(run() for _ in range(n_connections)))
    result.seconds = perf_counter() - began
    return result


def one_by_one(port: int, request: bytes, n: int) -> tuple[Result, bytes]:
    """Send a request n times on a connection that waits for each answer; return the last one, too."""
    result, began = Result(), perf_counter()
    view = memoryview(bytearray(2**24))
    with socket.create_connection(("127.0.0.1", port)) as connection:
        for _ in range(n):
            start = perf_counter()
            connection.sendall(request)
            n_bytes, end = 0, None
            while end is None or n_bytes < end:
                received = connection.recv_into(view[n_bytes:])
                if not received:
                    raise ConnectionError("the connection was closed")
                n_bytes += received
                end = end or _end_of(bytes(view[: min(n_bytes, 2**12)]))
            result.times.append(perf_counter() - start)
            result.n_failed += bytes(view[9:12]) != b"200"
    result.seconds = perf_counter() - began
    return result, bytes(view[:n_bytes]).partition(b"\r\n\r\n")[2]


def _end_of(begin: bytes) -> int | None:
    """Return how long an answer is, if its head is complete."""
    head, blank, _ = begin.partition(b"\r\n\r\n")
    if not blank:
        return None
    _, _, rest = head.lower().partition(b"content-length:")
    return len(head) + len(blank) + int(rest.partition(b"\r")[0])


async def steady(port: int, requests: Sequence[bytes], *, rate: float, seconds: float, n_connections: int) -> Result:
    """Send requests at random moments with a given mean rate; waiting for a free connection counts as time."""
    result = Result()
    rng = np.random.default_rng(0)
    moments = np.cumsum(rng.exponential(1 / rate, int(rate * seconds)))
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(n_connections):
        connection = Connection(port)
        await connection.open()
        free.put_nowait(connection)

    async def one(i: int, moment: float) -> None:
        connection = await free.get()
        try:
            status, _ = await connection.send(requests[i % len(requests)])
            result.n_failed += status != 200
            result.times.append(perf_counter() - began - moment)
        except (OSError, asyncio.IncompleteReadError):
            result.n_broken += 1
        finally:
            free.put_nowait(connection)

    tasks: set[asyncio.Task[None]] = set()
    gc.collect()
    gc.disable()  # a pause of this client would be counted as one of the service
    began = perf_counter()  # after the collection, which takes a tenth of a second
    try:
        for i, moment in enumerate(moments.tolist()):
            delay = moment - (perf_counter() - began)
            if delay > 0:
                await asyncio.sleep(delay)
            task = asyncio.create_task(one(i, moment))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
    finally:
        gc.enable()
    result.seconds = perf_counter() - began
    while not free.empty():
        free.get_nowait().close()
    return result
