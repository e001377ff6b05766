"""The processes of the service: one that serves, or one that watches over several that do."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
import logging
from multiprocessing import get_context
from multiprocessing.connection import wait
import os
from pathlib import Path
import signal
import socket
import sys
from tempfile import TemporaryDirectory
import time
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from emsco.exceptions import EmscoError, InvalidParameterError, printable
from emsco.service.app import create_app
from emsco.service.core import Service
from emsco.service.logs import Log
from emsco.service.settings import Limits, Settings

_SHORT_LIFE = 5.0  # seconds; a worker that ends sooner, several times in a row, will not live the next time either
_MOST_SHORT_LIVES = 5


def serve(settings: Settings, on_address: Callable[[str], object] = lambda _: None) -> int:
    """Serve until the process is told to end; return its exit code.

    Parameters
    ----------
    settings : Settings
    on_address : callable
        Called with the address of the service, as soon as it is known.
    """
    with _bound(settings) as listening:
        address = listening.getsockname()
        scheme = "http" if settings.tls_cert is None else "https"
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        url = f"{scheme}://{host}:{address[1]}"
        Log().say("starting", address=url, workers=settings.workers)
        on_address(url)
        if settings.workers == 1:
            return work(settings, listening)
        with TemporaryDirectory(prefix="emsco-") as folder:
            return _Supervisor(settings, listening, Path(folder)).run()


def _bound(settings: Settings) -> socket.socket:
    """Return a socket at the address of the settings; it listens when the models are loaded, not sooner."""
    try:
        family, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.setblocking(False)
    except (OSError, OverflowError) as error:
        raise _unusable(settings, error) from error
    return listening


def _unusable(settings: Settings, error: Exception) -> InvalidParameterError:
    said = getattr(error, "strerror", None) or error
    return InvalidParameterError(f"{settings.host}, port {settings.port}, cannot be listened at: {said}.")


def work(settings: Settings, listening: socket.socket) -> int:
    """Serve in this process, the only one; return its exit code."""
    service = Service(settings)
    service.fill()
    _run(service, listening, None)
    return 0


def _run(service: Service, listening: socket.socket, parent: int | None) -> None:
    settings = service.settings
    _log_as_json(service.log)
    try:
        listening.listen(2048)
    except OSError as error:
        raise _unusable(settings, error) from error
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
        timeout_graceful_shutdown=max(round(settings.drain_seconds), 1),
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
    )
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


def _protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return the HTTP protocol, with limits on connections and on the time that the head of a request may take."""

    class Protocol(HttpToolsProtocol):
        _patience: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.close()
                return
            self._wait()

        def _wait(self) -> None:
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


class _Supervisor:
    """Starts workers, replaces those that end, and ends them.

    Parameters
    ----------
    settings : Settings
    listening : socket
        From which all workers take connections.
    folder : path
        Where they leave what the others must see.
    """

    def __init__(self, settings: Settings, listening: socket.socket, folder: Path) -> None:
        self._settings = settings
        self._listening = listening
        self._folder = folder
        self._log = Log()
        self._spawn = get_context("spawn")  # a fork would share the threads' locks of BLAS and OpenMP
        self._workers: dict[int, Any] = {}
        self._all_started = False
        self._began: dict[int, float] = {}
        self._short_lives = 0
        self._ending = False

    def run(self) -> int:
        """Watch over the workers until the process is told to end; return its exit code."""
        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, self._end)
        for slot in range(self._settings.workers):
            self._start(slot)
        self._all_started = True
        while not self._ending:
            wait([worker.sentinel for worker in self._workers.values()], timeout=0.5)
            for slot, worker in list(self._workers.items()):
                if worker.exitcode is not None and not self._ending and not self._replace(slot, worker.exitcode):
                    self._end_workers()
                    return 1
        return self._end_workers()

    def _start(self, slot: int) -> None:
        arguments = (self._settings, self._listening, self._folder, slot, self._all_started)
        self._workers[slot] = self._spawn.Process(target=_worker, args=arguments, name=f"emsco-{slot}")
        self._began[slot] = time.monotonic()
        self._workers[slot].start()
        self._log.say("worker started", worker=slot, pid=self._workers[slot].pid)

    def _replace(self, slot: int, code: int) -> bool:
        """Start a worker in place of one that ended; return False if that is no use."""
        short = time.monotonic() - self._began[slot] < _SHORT_LIFE
        self._short_lives = self._short_lives + 1 if short else 0
        self._log.say("worker ended", worker=slot, exit_code=code)
        if self._short_lives >= _MOST_SHORT_LIVES:
            self._log.say("not started", reason="workers end as soon as they are started")
            return False
        self._start(slot)
        return True

    def _end(self, sig: int, frame: FrameType | None) -> None:
        self._ending = True

    def _end_workers(self) -> int:
        """End the workers, and kill those that take longer than they may."""
        self._listening.close()  # the workers have it, too
        for worker in self._workers.values():
            with suppress(OSError):
                os.kill(worker.pid, signal.SIGTERM)
        patience = time.monotonic() + self._settings.drain_delay + self._settings.drain_seconds + 2
        for worker in self._workers.values():
            worker.join(max(patience - time.monotonic(), 0.1))
            if worker.exitcode is None:
                self._log.say("worker killed", pid=worker.pid)
                worker.kill()
                worker.join()
        return 0


def _worker(settings: Settings, listening: socket.socket, folder: Path, slot: int, replaces: bool) -> None:
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
                sys.exit(1)
            time.sleep(settings.look_seconds)
    _run(service, listening, parent)
