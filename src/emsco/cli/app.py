"""The command ``emsco``: the group of all commands, and how a run ends."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
import signal
import sys
import threading
from typing import Any
import warnings

import click

from emsco import __version__
from emsco.cli.ask import ask
from emsco.cli.compare import compare
from emsco.cli.demo import demo
from emsco.cli.evaluate import evaluate
from emsco.cli.experiments import experiments
from emsco.cli.export import export
from emsco.cli.fit import fit
from emsco.cli.front import front
from emsco.cli.inspect import inspect
from emsco.cli.options import INTERRUPTED, fail, show_warning
from emsco.cli.predict import predict
from emsco.cli.report import report
from emsco.cli.retrain import retrain
from emsco.cli.serve import serve
from emsco.cli.use import use

_HELP = """Classifiers that buy their features in stages, answer early, and reject cases that remain uncertain.

You have a table of cases with known labels, and a price for each feature. EMSCO searches the ways to buy the features
in stages, and finds the Pareto-optimal designs: no other design has a higher coverage, a higher accuracy or a lower
mean cost without being worse in one of the others. If you set nothing else, the cheapest design that is no worse than
buying everything, for any class, is put into use.

\b
A first run:
  emsco fit patients.csv --target died --costs prices.csv
  emsco front model.emsco                         list the Pareto-optimal designs
  emsco use model.emsco --max-cost 40             put another design into use
  emsco report model.emsco                        write a page for the browser
  emsco predict model.emsco new.csv -o out.csv    decide new cases
  emsco ask model.emsco                           decide one case, step by step
  emsco serve model.emsco                         decide cases over HTTP, and on a page
"""

_EPILOG = """\b
Exit codes: 0 success, 1 error in the input (one line says which), 2 wrong usage,
130 interrupted, 143 terminated."""


class _InOrder(click.Group):
    """Commands in the order of their use, not of the alphabet."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_InOrder,
    help=_HELP,
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="emsco")
def emsco() -> None:
    """Hold the commands; the help text is ``_HELP``."""


for _command in (
    fit, front, use, predict, evaluate, compare, retrain, report, ask, serve, inspect, export, demo, experiments
):  # fmt: skip
    emsco.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. A mistake of the user ends in one line, never in a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a file name may hold bytes that no encoding has
            stream.reconfigure(errors="backslashreplace")
    with warnings.catch_warnings(), _orderly_end():
        warnings.showwarning = show_warning
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        return _exit_code(list(arguments))


@contextmanager
def _orderly_end() -> Iterator[None]:
    """Let SIGTERM end a run like an error: pools of workers are closed, which otherwise go on and complain later."""

    def end(number: int, _: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _exit_code(arguments: list[str]) -> int:
    try:
        code: Any = emsco.main(arguments, prog_name="emsco", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        click.echo("\ninterrupted", err=True)
        return INTERRUPTED
    except SystemExit as ended:
        click.echo("\nterminated", err=True)
        return int(ended.code or 0)
    except BrokenPipeError:
        sys.stdout = None  # the reader has seen enough; nothing to flush
        return 0
    except MemoryError:
        return fail("out of memory; give fewer rows or columns, or search less.")
    except OSError as error:
        return fail(f"{error.filename or 'a file'}: {error.strerror or error}.")
    return code if isinstance(code, int) else 0
