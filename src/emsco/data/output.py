"""The one way to write a file: whole or not at all, and nothing is replaced that is not a regular file."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
import errno
from io import StringIO
import os
from os import PathLike
from pathlib import Path
import secrets
import stat
from typing import NoReturn

from emsco.exceptions import EmscoError, FileError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


class Output:
    """A file being written; what fails raises an error that names the file.

    Parameters
    ----------
    handle : int
        Descriptor of the open file.
    path : path
        The file as the user named it.
    error : type of EmscoError
        What to raise.
    """

    def __init__(self, handle: int, path: Path, error: type[EmscoError]) -> None:
        self._file = os.fdopen(handle, "wb")
        self._path = path
        self._error = error
        self._n_bytes = 0

    @property
    def closed(self) -> bool:
        """Whether it takes no more bytes."""
        return self._file.closed

    def write(self, data: bytes) -> int:
        """Add bytes."""
        try:
            self._file.write(data)
        except OSError as error:
            refuse(self._path, error, self._error)
        self._n_bytes += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes so far; pipes are counted too."""
        return self._n_bytes

    def flush(self) -> None:
        """Hand the bytes to the system."""
        try:
            self._file.flush()
        except OSError as error:
            refuse(self._path, error, self._error)

    def synchronise(self) -> None:
        """Wait until the bytes are on the disk."""
        self.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Take no more bytes."""
        with suppress(OSError):  # whoever wants the bytes has flushed them before
            self._file.close()


def write_atomically(path: Path, data: bytes, error: type[EmscoError] = FileError) -> None:
    """Write a file whole or not at all: readers see the old one or the new one, even if the power fails."""
    with writing(path, error) as output:
        output.write(data)


@contextmanager
def writing_text(path: Path, error: type[EmscoError] = FileError) -> Iterator[StringIO]:
    """Open a short text to be written as a whole when the block ends; lines end as they are written."""
    text = StringIO(newline="")
    yield text
    write_atomically(path, text.getvalue().encode(), error)


@contextmanager
def writing(path: Path, error: type[EmscoError] = FileError) -> Iterator[Output]:
    """Open a file to be written in pieces.

    A regular file takes its name when the block ends without an error, and keeps the permissions and, where possible,
    the owner of the file that it replaces. A symbolic link stays: its target is replaced. A device, a pipe or
    ``/dev/stdout`` is written to and never replaced.

    Parameters
    ----------
    path : path
    error : type of EmscoError
        What to raise if the file cannot be written. The old file is then untouched.
    """
    found = _status(path, error)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise error(f"{str(path)!r} is a folder; give the name of a file.")
    if _is_special(path, found):
        with _through(path, error) as output:
            yield output
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise error(f"there is no folder {str(target.parent)!r} to write {target.name!r} to; create it first.")
    temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
    try:
        try:
            handle = os.open(temporary, _NEW, 0o666 if found is None else 0o600)
        except (OSError, ValueError) as reason:
            refuse(path, reason, error)
        output = Output(handle, path, error)
        try:
            yield output
            try:
                output.synchronise()
                output.close()
                if found is not None:
                    _keep_permissions(temporary, found)
                os.replace(temporary, target)
                _synchronise_folder(target.parent)
            except OSError as reason:
                refuse(path, reason, error)
        finally:
            output.close()
    finally:
        with suppress(OSError, ValueError):
            temporary.unlink(missing_ok=True)


def refuse(path: str | PathLike[str], reason: Exception, error: type[EmscoError]) -> NoReturn:
    """Raise the error of a file that cannot be written."""
    if isinstance(reason, BrokenPipeError):
        raise reason  # the reader of a pipe has seen enough
    said = getattr(reason, "strerror", None) or str(reason)
    advice = " Free some space and try again." if getattr(reason, "errno", None) in _FULL else ""
    raise error(f"{os.fspath(path)!r} cannot be written: {said}.{advice}") from reason


def _status(path: Path, error: type[EmscoError]) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as reason:  # ValueError: a path that holds a null
        refuse(path, reason, error)


def _is_special(path: Path, found: os.stat_result | None) -> bool:
    """Return whether a path stands for something that must not be replaced by a file.

    ``/dev/stdout`` may lead to a regular file that another program holds open.
    """
    if found is not None and not stat.S_ISREG(found.st_mode):
        return True
    return found is not None and os.path.abspath(path).startswith(("/dev/fd/", "/dev/std", "/proc/"))


@contextmanager
def _through(path: Path, error: type[EmscoError]) -> Iterator[Output]:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError as reason:
        refuse(path, reason, error)
    output = Output(handle, path, error)
    try:
        yield output
        output.flush()
    finally:
        output.close()


def _keep_permissions(path: Path, before: os.stat_result) -> None:
    mode = stat.S_IMODE(before.st_mode)
    if hasattr(os, "chown"):
        try:
            os.chown(path, before.st_uid, before.st_gid)
        except OSError:
            try:
                os.chown(path, -1, before.st_gid)
            except OSError:
                mode &= ~stat.S_IRWXG  # what was granted to one group is not granted to another
    os.chmod(path, mode)


def _synchronise_folder(folder: Path) -> None:
    """Wait until the new name is on the disk, too; Windows has no way to ask."""
    if hasattr(os, "O_DIRECTORY"):
        handle = os.open(folder, os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
