"""``emsco serve``: models behind HTTP."""

from importlib.util import find_spec
import os
from pathlib import Path
from typing import Any

import click

from emsco.cli.options import FILE, Command

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_NAMES = {
    "host": "--host",
    "sources": "MODEL",
    "tls_cert": "--tls-cert",
    "workers": "--workers",
    "body": "--max-body",
    "rows": "--max-rows",
    "columns": "--max-columns",
    "text": "--max-text",
    "at_once": "--max-requests",
    "connections": "--max-connections",
    "seconds": "--timeout",
}


@click.command(cls=Command, names=_NAMES, short_help="Decide cases over HTTP, and on a page in the browser.")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at. One that others can reach "
              "needs --token-file or --insecure.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port; 0: any free one.")
@click.option("--token-file", type=FILE, help="File of tokens that clients must send, one per line, each with the date "
              "when it ends, if it does. Read again when it changes.")  # fmt: skip
@click.option("--insecure", is_flag=True, help="Answer everybody, without tokens, at an address that others can reach.")
@click.option("--allow-host", multiple=True, metavar="NAME", help="Name under which clients address the service, such "
              "as that of a proxy; repeatable.")  # fmt: skip
@click.option("--tls-cert", type=FILE, help="Certificate for HTTPS.")
@click.option("--tls-key", type=FILE, help="Its key.")
@click.option(
    "--outcomes", type=FILE, help="File that stores true labels as they come in, and what monitors have seen."
)
@click.option("--workers", type=int, default=1, show_default=True, help="Number of processes.")
@click.option("--max-body", type=int, default=16 * 2**20, show_default=True, help="Bytes of a request.")
@click.option("--max-rows", type=int, default=100_000, show_default=True, help="Rows of a table.")
@click.option("--max-columns", type=int, default=2_000, show_default=True, help="Columns of a table.")
@click.option("--max-text", type=int, default=4_096, show_default=True, help="Characters of a value.")
@click.option("--max-requests", type=int, default=64, show_default=True, help="Requests in progress, per worker.")
@click.option("--max-connections", type=int, default=1_000, show_default=True, help="Connections, per worker.")
@click.option("--timeout", type=float, default=30.0, show_default=True, help="Seconds for a request.")
@click.option("--drain-delay", type=click.FloatRange(0), default=1.0, show_default=True, help="Seconds after SIGTERM "
              "in which requests are still taken, while readiness says no.")  # fmt: skip
@click.option("--drain-time", type=click.FloatRange(1), default=20.0, show_default=True, help="Seconds that requests "
              "in progress may then take.")  # fmt: skip
@click.option("--log-values", is_flag=True, help="Log the values of cases, too.")
@click.option("--quiet", is_flag=True, help="Log only problems.")
def serve(models: tuple[str, ...], **options: Any) -> int:
    """Answer requests for the models in MODEL: model files, NAME=FILE, or folders of model files.

    The page is at the address that is printed. A model file that is replaced is loaded again. docs/service.md has the
    routes.
    """
    for name in _THREADS:  # before numpy is loaded: many cases are decided at once, so each has one thread
        os.environ.setdefault(name, "1")
    if not all(map(find_spec, ("fastapi", "uvicorn"))):  # not imported here: the workers do it
        raise click.UsageError("the service needs additional packages: pip install 'emsco[serve]'")
    from emsco.service.server import serve as run
    from emsco.service.settings import Limits, Settings

    limits = Limits(
        body=options["max_body"], rows=options["max_rows"], columns=options["max_columns"], text=options["max_text"],
        at_once=options["max_requests"], connections=options["max_connections"], seconds=options["timeout"],
    )  # fmt: skip
    settings = Settings(
        sources=tuple(map(_source, models)),
        limits=limits,
        hosts=options["allow_host"],
        drain_seconds=options["drain_time"],
        **{name: options[name] for name in (
            "host", "port", "token_file", "insecure", "outcomes", "workers", "drain_delay", "tls_cert", "tls_key",
            "log_values", "quiet",
        )},
    )  # fmt: skip
    return run(settings, lambda address: click.echo(f"The page is at {address}. Ctrl-C ends the service."))


def _source(text: str) -> Any:
    """Return a file, a folder or NAME=FILE as a source of models."""
    from emsco.service.settings import Source

    name, equals, rest = text.partition("=")
    if equals and not Path(text).exists():
        return Source(Path(rest), name)
    return Source(Path(text))
