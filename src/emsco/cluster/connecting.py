"""A cluster as the user names it: the address of a scheduler, its file, or workers on this machine."""

from collections import deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
import json
from pathlib import Path
from pkgutil import resolve_name
import re
from typing import Any

from emsco import __version__
from emsco.drawing import counted
from emsco.exceptions import ClusterError, InvalidParameterError, MissingDependencyError

_LOCAL = re.compile(r"local(?::(\d{1,4}))?")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+:\d+\S*")
_VERSION = "emsco:__version__"
_SECONDS = 20  # until an address that does not answer is given up
_TO_ASK = 5  # seconds until a worker has to say which version it has


@contextmanager
def connected(cluster: str) -> Iterator[Any]:
    """Connect to a cluster for the time of a block.

    Parameters
    ----------
    cluster : str
        ``local``, ``local:N`` (so many processes on this machine, of one thread each), the address of a scheduler such
        as ``tcp://10.0.0.1:8786``, or the path of its file. TLS is as the configuration of Dask says.

    Yields
    ------
    distributed.Client
    """
    distributed = need_distributed()
    local = _LOCAL.fullmatch(cluster)
    if local is not None:
        with _local(distributed, local[1]) as client:
            yield client
        return
    is_address = _ADDRESS.fullmatch(cluster) is not None
    if not is_address and not Path(cluster).is_file():
        raise InvalidParameterError(
            f"must be local, local:N, the address of a scheduler such as tcp://10.0.0.1:8786, or the path of its file; "
            f"got {cluster!r}.",
            parameter="cluster",
        )
    _check_tls(distributed, cluster if is_address else _address_in(cluster))
    where = {"address": cluster} if is_address else {"scheduler_file": cluster}
    try:
        client = distributed.Client(**where, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise ClusterError(
            f"there is no scheduler at {cluster} that answers within {_SECONDS} s ({error}); is it running, and does "
            "the configuration of TLS agree?"
        ) from error
    try:
        yield client
    finally:
        client.close()


def _address_in(path: str) -> str:
    """Return the address that the file of a scheduler holds."""
    try:
        address = json.loads(Path(path).read_text())["address"]
    except (OSError, ValueError, TypeError, KeyError):
        address = None
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise InvalidParameterError(
            f"must be the file that dask scheduler --scheduler-file writes; {path} is another one.", parameter="cluster"
        )
    return address


def _check_tls(distributed: Any, address: str) -> None:
    """Raise if an address needs TLS, for which the configuration of Dask has no certificates, or none that exist."""
    if not address.startswith(("tls:", "wss:")):
        return
    try:
        context = distributed.Security().get_connection_args("client")["ssl_context"]
    except OSError as error:
        raise ClusterError(f"the certificates in the configuration of Dask cannot be read: {error}.") from error
    if context is None:
        raise ClusterError(
            f"{address} needs TLS; set ca-file, and cert and key of the client, under distributed.comm.tls in the "
            "configuration of Dask."
        )


@contextmanager
def _local(distributed: Any, n_workers: str | None) -> Iterator[Any]:
    """Start workers on this machine, and end them with the block."""
    if n_workers == "0":
        raise InvalidParameterError("must have at least one worker: local:1.", parameter="cluster")
    options: dict[str, Any] = {"threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    if n_workers is not None:
        options["n_workers"] = int(n_workers)
    try:
        cluster = distributed.LocalCluster(host="127.0.0.1", **options)
    except (OSError, RuntimeError) as error:
        raise ClusterError(f"workers cannot be started on this machine: {error}") from error
    with cluster, distributed.Client(cluster, set_as_default=False) as client:
        n = len(cluster.workers)
        cluster.adapt(minimum=n, maximum=n)  # a worker that hung for too long is closed, and another one begins
        yield client


def described(client: Any) -> str:
    """Return in words where a cluster is, and what it has."""
    threads = client.nthreads()
    link = client.dashboard_link
    dashboard = f", dashboard {link}" if link else ""
    return f"{client.scheduler.address}: {in_words(threads)}{dashboard}"


def in_words(threads: Mapping[str, int]) -> str:
    """Return how many workers there are, and how many threads they have together."""
    return f"{counted(len(threads), 'worker')}, {counted(sum(threads.values()), 'thread')}"


def check_installed(client: Any, addresses: Collection[str]) -> None:
    """Raise if the scheduler or one of these workers has no EMSCO, or another version of it; tasks would end them.

    Who is too busy to answer is not waited for.
    """
    found: dict[str, Any] = {}
    try:
        with suppress(ValueError):  # it runs nothing for others
            found["the scheduler"] = client.run_on_scheduler(resolve_name, _VERSION)
    except ImportError as error:
        found["the scheduler"] = error
    distributed = need_distributed()
    asked = {address: client.submit(resolve_name, _VERSION, workers=[address], pure=False) for address in addresses}
    with suppress(TimeoutError):
        deque(distributed.as_completed(asked.values(), loop=client.loop, timeout=_TO_ASK))
    for address, future in asked.items():
        if future.status in ("finished", "error"):
            found[f"the worker {address}"] = future.exception() or future.result()
    client.cancel([future for future in asked.values() if not future.done()])
    for who, version in found.items():
        if version != __version__:
            has = f"has EMSCO {version}" if isinstance(version, str) else f"cannot import EMSCO ({version})"
            raise ClusterError(f"{who} {has}; install version {__version__}, which is here, everywhere.")


def need_distributed() -> Any:
    """Return Dask's ``distributed``, or raise with instructions to install it."""
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("a cluster needs Dask: pip install 'emsco[dask]'.") from error
    return distributed
