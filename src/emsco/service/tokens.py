"""Tokens that clients must send: several, with an end if wanted, read again when their file changes."""

from base64 import b64decode
import binascii
from datetime import UTC, datetime
from hashlib import sha256
from hmac import compare_digest
from math import inf
import os
from pathlib import Path

from emsco.data.documents import read_text
from emsco.exceptions import FileError

_SHORTEST = 16  # characters: 16 random letters cannot be guessed


class Tokens:
    """The tokens of a file.

    A line holds a token and, if it ends, a blank and when: ``2027-01-31`` or ``2027-01-31T12:00:00+00:00``. Empty lines
    and those that begin with ``#`` are passed over.

    Parameters
    ----------
    path : path

    Raises
    ------
    FileError
        The file cannot be read, or a line of it is wrong.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: list[tuple[bytes, float]] = []
        self._stamp: tuple[int, int, int] | None = None
        self.look()

    def look(self) -> bool:
        """Read the file again if it has changed; return whether it has. One that is wrong changes nothing."""
        try:
            found = os.stat(self._path)
        except OSError as error:
            raise FileError(f"{self._path} cannot be read: {error.strerror}.") from error
        stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
        if stamp == self._stamp:
            return False
        self._stamp = stamp
        self._known = _read(self._path)
        return True

    def allow(self, header: bytes | None, now: float) -> bool:
        """Return whether an Authorization header holds a token, as Bearer or as the password of Basic.

        Every known token is compared, in a time that does not depend on where they differ.
        """
        digest = sha256(_sent(header)).digest()
        allowed = False
        for known, end in self._known:
            allowed |= compare_digest(known, digest) and now < end
        return allowed


def _sent(header: bytes | None) -> bytes:
    """Return the token of a header; empty if there is none."""
    kind, _, rest = (header or b"").partition(b" ")
    if kind.lower() == b"bearer":
        return rest.strip()
    if kind.lower() == b"basic":
        try:
            return b64decode(rest.strip(), validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""


def _read(path: Path) -> list[tuple[bytes, float]]:
    known = []
    for i, line in enumerate(read_text(path).splitlines(), 1):
        parts = line.split()
        if not parts or parts[0].startswith("#"):
            continue
        if len(parts) > 2 or len(parts[0]) < _SHORTEST:
            raise FileError(
                f"line {i} of {path} is no token: give at least {_SHORTEST} characters without a blank, and after a "
                "blank the date when it ends, if it does."
            )
        known.append((sha256(parts[0].encode()).digest(), inf if len(parts) == 1 else _end(parts[1], i, path)))
    if not known:
        raise FileError(f"{path} holds no token; write one per line.")
    return known


def _end(text: str, i: int, path: Path) -> float:
    try:
        end = datetime.fromisoformat(text)
    except ValueError:
        raise FileError(f"line {i} of {path} ends its token at no date; write it as 2027-01-31.") from None
    return (end if end.tzinfo else end.replace(tzinfo=UTC)).timestamp()
