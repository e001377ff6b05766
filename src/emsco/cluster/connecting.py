"""A cluster as the user names it: the address of a scheduler, its file, or workers on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
import re
from typing import Any

from emsco.exceptions import ClusterError, InvalidParameterError, MissingDependencyError

_LOCAL = re.compile(r"local(?::(\d{1,4}))?")
_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://\S+")
_SECONDS = 20  # until an address that does not answer is given up


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
    if not _ADDRESS.fullmatch(cluster) and not Path(cluster).is_file():
        raise InvalidParameterError(
            f"must be local, local:N, the address of a scheduler such as tcp://10.0.0.1:8786, or the path of its file; "
            f"got {cluster!r}.",
            parameter="cluster",
        )
    where = {"address": cluster} if _ADDRESS.fullmatch(cluster) else {"scheduler_file": cluster}
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
    n_workers, n_threads = size_of(client)
    link = client.dashboard_link
    dashboard = f", dashboard {link}" if link else ""
    return f"{client.scheduler.address}: {n_workers} workers, {n_threads} threads{dashboard}"


def size_of(client: Any) -> tuple[int, int]:
    """Return how many workers a cluster has now, and how many threads."""
    threads = client.nthreads()
    return len(threads), sum(threads.values())


def need_distributed() -> Any:
    """Return Dask's ``distributed``, or raise with instructions to install it."""
    try:
        import distributed
    except ImportError as error:
        raise MissingDependencyError("a cluster needs Dask: pip install 'emsco[dask]'.") from error
    return distributed
