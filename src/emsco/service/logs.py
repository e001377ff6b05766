"""One line of JSON per event, on standard error. Values of cases are never in it, unless that was asked for."""

from datetime import UTC, datetime
import json
import sys
import traceback
from typing import Any


class Log:
    """Writes events.

    Parameters
    ----------
    quiet : bool
        Whether requests that were answered are left out.
    """

    def __init__(self, *, quiet: bool = False) -> None:
        self.quiet = quiet

    def say(self, event: str, **facts: Any) -> None:
        """Write an event."""
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        sys.stderr.write(json.dumps({"time": time, "event": event, **facts}) + "\n")
        sys.stderr.flush()

    def failure(self, error: BaseException, **facts: Any) -> None:
        """Write an error that nobody expected: where it was raised, but not its message, which may hold a value."""
        places = [
            f"{frame.filename}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(error.__traceback__)
        ]
        self.say("error", kind=type(error).__name__, where=places[-12:], **facts)
