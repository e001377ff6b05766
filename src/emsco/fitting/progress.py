"""Progress of long work: one line on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from math import inf
from shutil import get_terminal_size
import sys
from threading import Event, Thread
from time import monotonic
from typing import Self

_SECONDS = 10.0
_TICK = 1.0  # seconds between two signs of life
_BAR = 20


def is_live() -> bool:
    """Return whether standard error is a terminal or belongs to a notebook: there a line can be rewritten."""
    stream = sys.stderr
    return stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel"))


def is_shown(verbose: bool | None) -> bool:
    """Return whether progress is shown; None: on a terminal and in a notebook."""
    return is_live() if verbose is None else verbose


class ProgressLine:
    """A line that is rewritten in a terminal or notebook, and printed anew every ten seconds elsewhere."""

    def __init__(self) -> None:
        self._printed = -inf
        self._text = ""
        self._width = 0  # characters on the line now

    def __call__(self, text: str) -> None:
        """Show how far the work is."""
        self._text = text
        if is_live():
            self._rewrite(text[: get_terminal_size().columns - 1])
        elif monotonic() - self._printed > _SECONDS:
            self._print()

    def note(self, text: str) -> None:
        """Show something that is worth a line of its own where lines are printed anew."""
        self._text = text
        if not is_live():
            self._print()

    def clear(self) -> None:
        """Make room for somebody else's line."""
        if self._width:
            self._rewrite("")

    def close(self) -> None:
        """Leave the line of a terminal, or print the last text."""
        if not is_live():
            self._print()
        elif self._width:
            print(file=sys.stderr, flush=True)
            self._width = 0

    def _rewrite(self, text: str) -> None:
        """Replace the line; blanks hide the rest of the last one, as notebooks know no code that erases it."""
        blanks = " " * max(self._width - len(text), 0)
        print(f"\r{text}{blanks}", end="\r" if not text else "", file=sys.stderr, flush=True)
        self._width = len(text)

    def _print(self) -> None:
        self._printed = monotonic()
        print(self._text, file=sys.stderr, flush=True)


class PhaseLine:
    """A bar: how far each phase of a long work is, and how long it still takes at most.

    Parameters
    ----------
    shown : bool
        Whether anything is printed at all.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self._line = ProgressLine()
        self._shown = shown
        self._phase = ""
        self._began = (0.0, 0.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, phase: str, share: float, more: str = "") -> None:
        """Show which share of a phase is done, and what else there is to say of it."""
        if not self._shown:
            return
        if phase != self._phase:
            self._phase, self._began = phase, (monotonic(), share)
        taken, done = monotonic() - self._began[0], share - self._began[1]
        left = f", {duration(taken * (1 - share) / done)} left" if taken > 1 and done > 0 and share < 1 else ""
        self._line(f"{phase} {drawn(share)} {100 * share:.0f} %{left}{', ' + more if more else ''}")

    def close(self) -> None:
        """Leave the line, if there is one."""
        if self._phase:
            self._line.close()
            self._phase = ""


class Ticker:
    """Calls a function every second, on a thread of its own, until it is closed."""

    def __init__(self, tick: Callable[[], object]) -> None:
        self._tick = tick
        self._closed = Event()
        self._thread = Thread(target=self._run, name="emsco-progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(_TICK):
            with suppress(OSError, ValueError):  # whoever looked at the line has closed it
                self._tick()


@contextmanager
def doing(what: str) -> Iterator[None]:
    """Say on a terminal what is going on, and since when; the line is gone afterwards."""
    if not is_live():
        yield
        return
    line, began = ProgressLine(), monotonic()
    line(what)
    ticker = Ticker(lambda: line(f"{what}, {minutes(monotonic() - began)}"))
    try:
        yield
    finally:
        ticker.close()
        line.clear()


def drawn(share: float, width: int = _BAR) -> str:
    """Return a bar of which a share is full."""
    full = round(width * min(max(share, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


def minutes(seconds: float) -> str:
    """Return a time as a clock shows it.

    Examples
    --------
    >>> minutes(7.2), minutes(75), minutes(3675)
    ('0:07', '1:15', '1:01:15')
    """
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    shown = f"{rest // 60}:{rest % 60:02}"
    return shown if not hours else f"{hours}:{rest // 60:02}:{rest % 60:02}"


def duration(seconds: float) -> str:
    """Return a time in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
