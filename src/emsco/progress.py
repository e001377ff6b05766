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
