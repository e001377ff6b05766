"""What the service is told when it starts."""

from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from emsco.exceptions import InvalidParameterError


@dataclass(frozen=True)
class Limits:
    """How much a client may ask for; beyond, it is told which limit it has met.

    Attributes
    ----------
    body : int
        Bytes of a request.
    rows, columns : int
        Of a table.
    text : int
        Characters of a name or a value.
    at_once : int
        Requests in progress, per worker.
    connections : int
        Open connections, per worker.
    seconds : float
        For a request, from its first byte to the answer.
    """

    body: int = 16 * 2**20
    rows: int = 100_000
    columns: int = 2_000
    text: int = 4_096
    at_once: int = 64
    connections: int = 1_000
    seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value <= 0:
                raise InvalidParameterError(f"must be more than 0; got {value!r}.", parameter=name)


@dataclass(frozen=True)
class Source:
    """Where a model comes from.

    Attributes
    ----------
    path : path
        A model file, or a folder of them.
    name : str or None
        Of the model; None: that of the file, without its ending.
    """

    path: Path
    name: str | None = None


@dataclass(frozen=True)
class Settings:
    """Settings of the service.

    Attributes
    ----------
    sources : tuple of Source
    host, port : str, int
    token_file : path or None
        Tokens that clients must send, one per line.
    insecure : bool
        Whether to answer without tokens on an address that others can reach.
    hosts : tuple of str
        Names under which clients may address the service. On a loopback address those of the machine itself are added:
        a page in the browser of the same machine must not reach it under a name of its own.
    outcomes : path or None
        File for outcomes and for the evidence of monitors.
    workers : int
        Processes.
    look_seconds : float
        How often files are looked at: models, tokens.
    drain_delay, drain_seconds : float
        After SIGTERM: how long requests are still taken while readiness says no, and how long those in progress may
        then take.
    limits : Limits
    tls_cert, tls_key : path or None
    log_values : bool
        Whether the values of cases are logged.
    quiet : bool
        Whether only problems are logged.
    """

    sources: tuple[Source, ...]
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: Path | None = None
    insecure: bool = False
    hosts: tuple[str, ...] = ()
    outcomes: Path | None = None
    workers: int = 1
    look_seconds: float = 1.0
    drain_delay: float = 1.0
    drain_seconds: float = 20.0
    limits: Limits = field(default_factory=Limits)
    tls_cert: Path | None = None
    tls_key: Path | None = None
    log_values: bool = False
    quiet: bool = False

    def __post_init__(self) -> None:
        if not self.sources:
            raise InvalidParameterError("is empty; give a model file, or a folder of them.", parameter="sources")
        if not self.is_local and self.token_file is None and not self.insecure:
            raise InvalidParameterError(
                f"is {self.host!r}, which others can reach. Give a file of tokens that clients must send, or say that "
                "everybody may ask.",
                parameter="host",
            )
        if (self.tls_cert is None) != (self.tls_key is None):
            raise InvalidParameterError("needs both a certificate and its key.", parameter="tls_cert")
        if self.workers < 1:
            raise InvalidParameterError(f"must be at least 1; got {self.workers}.", parameter="workers")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the service."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def allowed_hosts(self) -> frozenset[str] | None:
        """Names under which clients may address the service; None: any."""
        if self.is_local:
            return frozenset({"localhost", "127.0.0.1", "[::1]", self.host.lower(), *map(str.lower, self.hosts)})
        return frozenset(map(str.lower, self.hosts)) or None
