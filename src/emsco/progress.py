"""Progress of long work: one line on standard error."""

from math import inf
from shutil import get_terminal_size
import sys
from time import monotonic

_SECONDS = 10.0


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
    """How far each phase of a long work is, and about how long it still takes."""

    def __init__(self) -> None:
        self._line = ProgressLine()
        self._phase = ""
        self._began = 0.0

    def __call__(self, phase: str, share: float) -> None:
        """Show which share of a phase is done."""
        if phase != self._phase:
            self._phase, self._began = phase, monotonic()
        taken = monotonic() - self._began
        left = f", about {taken * (1 - share) / share:.0f} s left" if taken > 1 and 0 < share < 1 else ""
        self._line(f"{phase}: {100 * share:.0f} %{left}")

    def close(self) -> None:
        """Leave the line."""
        self._line.close()
