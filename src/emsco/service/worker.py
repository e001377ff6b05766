"""A process that serves: the application behind its HTTP server, until it is told to end."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
import ctypes
import gc
import logging
import os
from pathlib import Path
import signal
import socket
import sys
import time
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emsco.exceptions import EmscoError, InvalidParameterError, printable
from emsco.service.app import create_app
from emsco.service.core import Service
from emsco.service.logs import Log
from emsco.service.server import REFUSED, SERVED
from emsco.service.settings import Limits, Settings

_LONGEST_HEAD = 2**16  # bytes of a request before its body
_MOST_UNREAD = 2**20  # bytes of a body that are taken before its route is asked to read them
_TRIM, _MMAP = (-1, 2**26), (-3, 2**25)  # mallopt of glibc: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD, in bytes
_KEEP_ALIVE = 75  # seconds; longer than proxies keep a connection, so that they close it and not the service


def unusable(settings: Settings, error: Exception) -> InvalidParameterError:
    """Return what to say of an address that cannot be used."""
    said = getattr(error, "strerror", None) or error
    return InvalidParameterError(f"{settings.host}, port {settings.port}, cannot be listened at: {said}.")


def work(settings: Settings, listening: socket.socket, on_loaded: Callable[[], object]) -> int:
    """Serve in this process, the only one; return its exit code."""
    service = Service(settings)
    service.fill()
    on_loaded()
    _run(service, listening, None)
    return 0


def _keep_memory() -> None:
    """Let glibc keep what one request has freed for the next: the kernel takes 1 ms to give 1 MB anew."""
    with suppress(OSError, AttributeError, TypeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(*_TRIM)
        mallopt(*_MMAP)


def _run(service: Service, listening: socket.socket, parent: int | None) -> None:
    settings = service.settings
    _keep_memory()
    _log_as_json(service.log)
    try:
        listening.listen(2048)
    except OSError as error:
        raise unusable(settings, error) from error
    config = uvicorn.Config(
        create_app(service),
        http=_protocol(settings.limits),
        loop="auto",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=max(round(settings.drain_seconds), 1),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
    gc.collect()
    gc.freeze()  # modules and models stay: no collection has to walk them
    gc.enable()
    _Server(config, service, parent).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that says on its readiness that it will end, before it does.

    Parameters
    ----------
    config : uvicorn.Config
    service : Service
    parent : int or None
        The process that watches over this one; without it, this one ends.
    """

    def __init__(self, config: uvicorn.Config, service: Service, parent: int | None) -> None:
        super().__init__(config)
        self._service = service
        self._parent = parent
        self._end = 0.0

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end; a second signal, or Ctrl-C, ends at once."""
        if self._service.draining or sig == signal.SIGINT:
            self.force_exit = self.should_exit
            self.should_exit = True
            return
        self._service.draining = True
        self._end = time.monotonic() + self._service.settings.drain_delay

    async def on_tick(self, counter: int) -> bool:
        """Do what is to be done ten times a second; return whether to end."""
        if self._parent is not None and os.getppid() != self._parent:
            self.should_exit = True
        if self._service.draining and time.monotonic() >= self._end:
            self.should_exit = True
        return await super().on_tick(counter)


class _WholeBodies(HttpToolsProtocol):
    """Gives a body to its route when it is complete or long: waking the route for every part is slow."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._parts: list[bytes] = []  # of the body, that the route has not got
        self._n_unread = 0  # bytes in them

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._parts, self._n_unread = [], 0

    def on_body(self, body: bytes) -> None:
        if self.cycle.response_complete:
            return
        self._parts.append(body)
        self._n_unread += len(body)
        if self._n_unread > _MOST_UNREAD:
            self._hand_over()
            self.flow.pause_reading()
            self.cycle.message_event.set()

    def on_message_complete(self) -> None:
        self._hand_over()
        super().on_message_complete()

    def _hand_over(self) -> None:
        if self._parts:
            self.cycle.body = b"".join((self.cycle.body, *self._parts))  # type: ignore[assignment]
            self._parts, self._n_unread = [], 0


def _protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return the HTTP protocol, with limits on connections, and on the head of a request: its time and its length."""

    class Protocol(_WholeBodies):
        _patience: asyncio.TimerHandle | None = None  # None: the head is complete
        _n_bytes = 0  # of the head so far

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.close()
                return
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._patience is not None:
                self._n_bytes += len(data)
                if self._n_bytes > _LONGEST_HEAD:
                    self._give_up()

        def _wait(self) -> None:
            self._n_bytes = 0
            self._patience = self.loop.call_later(limits.seconds, self._give_up)

        def _give_up(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

        def on_message_begin(self) -> None:
            super().on_message_begin()
            if self._patience is None:  # a further request on the same connection
                self._wait()

        def on_headers_complete(self) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
            super().on_headers_complete()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._patience is not None:
                self._patience.cancel()
                self._patience = None
            super().connection_lost(exc)

    return Protocol


class _JsonHandler(logging.Handler):
    """Writes what libraries log as one line of JSON."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record: where an error was raised, but not its message, which may hold a value."""
        if record.exc_info and record.exc_info[1] is not None:
            self._log.failure(record.exc_info[1], logger=record.name)
        else:
            self._log.say("log", logger=record.name, level=record.levelname, message=record.getMessage())


def _log_as_json(log: Log) -> None:
    root = logging.getLogger()
    root.handlers = [_JsonHandler(log)]
    root.setLevel(logging.WARNING)


def run_worker(settings: Settings, listening: socket.socket, folder: Path, slot: int, replaces: bool) -> None:
    """Serve in a process of its own.

    One that replaces another waits for models that can be used: the others still serve what the files held before.
    """
    service = Service(settings, folder=folder, slot=slot)
    parent = os.getppid()
    while True:
        try:
            service.fill()
            break
        except EmscoError as error:
            service.log.say("not started", worker=slot, reason=printable(str(error)))
            if not replaces or os.getppid() != parent:
                (folder / REFUSED).write_text(str(error), encoding="utf-8")
                sys.exit(1)
            time.sleep(settings.look_seconds)
    (folder / SERVED).touch()
    _run(service, listening, parent)
