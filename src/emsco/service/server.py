"""The processes of the service: one that serves, or one that watches over several that do.

The one that watches loads nothing of what the others need: they start sooner, and it takes less memory.
"""

from collections.abc import Callable
from contextlib import suppress
import gc
from multiprocessing import get_context
from multiprocessing.connection import wait
import os
from pathlib import Path
import signal
import socket
from tempfile import TemporaryDirectory
import time
from types import FrameType
from typing import Any

from emsco.exceptions import InvalidParameterError, ModelFileError
from emsco.service.logs import Log
from emsco.service.settings import Settings
from emsco.service.tokens import Tokens

_SHORT_LIFE = 5.0  # seconds; a worker that ends sooner, several times in a row, will not live the next time either
_MOST_SHORT_LIVES = 5
SERVED, REFUSED = "served", "refused"  # files by which workers tell that one has served, and why one did not start


def serve(settings: Settings, on_address: Callable[[str], object] = lambda _: None) -> int:
    """Serve until the process is told to end; return its exit code.

    Parameters
    ----------
    settings : Settings
    on_address : callable
        Called with the address of the service, when a worker has loaded its models.
    """
    with _bound(settings) as listening:
        address = listening.getsockname()
        scheme = "http" if settings.tls_cert is None else "https"
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
        url = f"{scheme}://{host}:{address[1]}"
        Log().say("starting", address=url, workers=settings.workers)
        if settings.token_file is not None:
            Tokens(settings.token_file)  # a file that is wrong is told once, not by each worker
        if settings.workers == 1:
            gc.disable()  # until the worker answers: what is loaded stays, so that looking for garbage is no use
            try:
                from emsco.service.worker import work

                return work(settings, listening, lambda: on_address(url))
            finally:
                gc.enable()
        with TemporaryDirectory(prefix="emsco-") as folder:
            return _Supervisor(settings, listening, Path(folder), lambda: on_address(url)).run()


def _bound(settings: Settings) -> socket.socket:
    """Return a socket at the address of the settings; it listens when the models are loaded, not sooner."""
    try:
        family, *_, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
    except (OSError, OverflowError) as error:
        said = getattr(error, "strerror", None) or error
        raise InvalidParameterError(f"{settings.host}, port {settings.port}, cannot be listened at: {said}.") from error
    return listening


class _Supervisor:
    """Starts workers, replaces those that end, and ends them.

    Parameters
    ----------
    settings : Settings
    listening : socket
        From which all workers take connections.
    folder : path
        Where they leave what the others must see.
    on_served : callable
        Called when the first of them has loaded its models.
    """

    def __init__(
        self, settings: Settings, listening: socket.socket, folder: Path, on_served: Callable[[], object]
    ) -> None:
        self._settings = settings
        self._listening = listening
        self._folder = folder
        self._log = Log()
        self._spawn = get_context("spawn")  # a fork would share the threads' locks of BLAS and OpenMP
        self._workers: dict[int, Any] = {}
        self._on_served = on_served
        self._has_served = False
        self._began: dict[int, float] = {}
        self._short_lives = 0
        self._ending = False

    def run(self) -> int:
        """Watch over the workers until the process is told to end; return its exit code."""
        for sig in (signal.SIGTERM, signal.SIGINT):
            signal.signal(sig, self._end)
        for slot in range(self._settings.workers):
            self._start(slot)
        while not self._ending:
            self._look()
            wait([worker.sentinel for worker in self._workers.values()], timeout=0.5)
            self._look()
            for slot, worker in list(self._workers.items()):
                if worker.exitcode is not None and not self._ending and not self._replace(slot, worker.exitcode):
                    self._end_workers()
                    return 1
        return self._end_workers()

    def _look(self) -> None:
        """Take note that a worker has served; if none ever has and one could not start, say why, and end all."""
        if not self._has_served and (self._folder / SERVED).exists():
            self._has_served = True
            self._on_served()
        if not self._has_served and (self._folder / REFUSED).exists():
            self._end_workers()
            raise ModelFileError((self._folder / REFUSED).read_text(encoding="utf-8"))

    def _start(self, slot: int) -> None:
        arguments = (self._settings, self._listening, self._folder, slot, self._has_served)
        self._workers[slot] = self._spawn.Process(target=_work, args=arguments, name=f"emsco-{slot}")
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


def _work(settings: Settings, listening: socket.socket, folder: Path, slot: int, replaces: bool) -> None:
    gc.disable()
    from emsco.service.worker import run_worker

    run_worker(settings, listening, folder, slot, replaces)
