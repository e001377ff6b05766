"""Progress of long work: one line on standard error."""

from math import inf
from shutil import get_terminal_size
import sys
from time import monotonic
from typing import Self

_SECONDS = 10.0
_BAR = 20


class ProgressLine:
    """A line that is rewritten in a terminal, and printed anew every ten seconds elsewhere."""

    def __init__(self) -> None:
        self._printed = -inf
        self._text = ""

    def __call__(self, text: str) -> None:
        """Show how far the work is."""
        self._text = text
        if sys.stderr.isatty():
            width = get_terminal_size().columns - 1
            print(f"\r\x1b[K{text[:width]}", end="", file=sys.stderr, flush=True)
        elif monotonic() - self._printed > _SECONDS:
            self._print()

    def close(self) -> None:
        """Leave the line of a terminal, or print the last text."""
        if sys.stderr.isatty():
            print(file=sys.stderr, flush=True)
        else:
            self._print()

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
        left = f", {_duration(taken * (1 - share) / done)} left" if taken > 1 and done > 0 and share < 1 else ""
        full = round(_BAR * min(max(share, 0.0), 1.0))
        bar = "█" * full + "░" * (_BAR - full)
        self._line(f"{phase} {bar} {100 * share:.0f} %{left}{', ' + more if more else ''}")

    def close(self) -> None:
        """Leave the line, if there is one."""
        if self._phase:
            self._line.close()
            self._phase = ""


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
