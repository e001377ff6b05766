"""A run's memory on disk: killed at any moment, the same run goes on from it and ends as if it had not been.

The file is an SQLite database of plain bytes, written in transactions: it is whole whatever happens. It holds what a
run is (so that another one does not take it for its own), every feature set trained, and the last snapshot of the
search. Every row has a checksum, and all are checked when the file is opened. Reading it executes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b, sha256
from io import BytesIO
import json
import os
from os import PathLike, fspath
from pathlib import Path
import sqlite3
import stat
from time import monotonic, perf_counter
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import CheckpointError
from emsco.search.base import Arrays
from emsco.storage.identity import fingerprint, identity_of
from emsco.storage.snapshot import check_snapshot

__all__ = ["Checkpoint", "SearchJournal", "Shelf", "fingerprint", "identity_of"]

_FORMAT = "emsco-checkpoint 2"
_FORMATS = "emsco-checkpoint "  # what those of all versions begin with
_MARK = 0x656D7363  # "emsc": SQLite keeps it in the header, as the id of the application
_SQLITE = b"SQLite format 3\0"
_MARK_AT = slice(68, 72)
_SECONDS = 1.0  # between two commits, at least
_SHARE = 0.05  # of the time of a run may go into snapshots
_PART = 2**26  # bytes of one row: SQLite has a limit
_KEYS = 500  # of one question: SQLite has a limit here too
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLES = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT, checksum BLOB) WITHOUT ROWID",
    "CREATE TABLE sets (units BLOB PRIMARY KEY, number INTEGER, memory BLOB, checksum BLOB)",
    "CREATE TABLE parts (name TEXT, part INTEGER, data BLOB, checksum BLOB)",
)


class Checkpoint:
    """The file of one run.

    Parameters
    ----------
    path : path-like
        Created if it is not there.

    Raises
    ------
    CheckpointError
        The file is something else, damaged, or in use. A file that is something else is left as it is.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(fspath(path))
        if not self._path.parent.is_dir():
            raise CheckpointError(f"the folder of the checkpoint {self._path} does not exist; create it.")
        self._saved = self._committed = monotonic()
        self._interval = _SECONDS
        is_new = _is_new(self._path)
        try:
            self._db = sqlite3.connect(self._path, timeout=1.0, isolation_level=None)
            self._db.text_factory = lambda data: data.decode(errors="surrogateescape")
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("BEGIN IMMEDIATE")
            if is_new or not self._db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                self._create()
            self._commit()
            self._check()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self.close()
            raise self._failed(error, opening=True) from error
        except CheckpointError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is waiting, and let go of the file."""
        if hasattr(self, "_db"):
            with suppress(sqlite3.Error):
                if self._db.in_transaction:
                    self._db.execute("COMMIT")
            self._db.close()

    def seed(self, seed: int) -> int:
        """Return the seed of the run: the one it began with."""
        known = self.fact("seed")
        if known is None:
            self._write(lambda: self._set_fact("seed", str(seed)))
            return seed
        if not known.isdecimal():
            raise self._damaged("its seed is no number")
        return int(known)

    def claim(self, identity: Mapping[str, str]) -> None:
        """Say which run this is; the file of another one is refused."""
        known = self.fact("identity")
        if known is None:
            if self._ask("SELECT 1 FROM sets LIMIT 1") or self._ask("SELECT 1 FROM parts LIMIT 1"):
                raise self._damaged("it does not say of which run it is")
            self._write(lambda: self._set_fact("identity", json.dumps(dict(identity))), now=True)
            return
        try:
            before = json.loads(known)
        except ValueError as error:
            raise self._damaged("it does not say of which run it is") from error
        differs = [name for name, value in identity.items() if before.get(name) != value]
        if differs:
            shown = "; ".join(
                f"{name}: {before.get(name)} there, {identity[name]} here" if name != "data" else "other data"
                for name in differs
            )
            raise CheckpointError(
                f"the checkpoint {self._path} belongs to another run ({shown}). Remove it to begin anew, or give "
                "another file."
            )

    def load(self) -> Arrays | None:
        """Return the last snapshot."""
        arrays: dict[str, list[bytes]] = {}
        for name, part, data, checksum in self._ask("SELECT * FROM parts ORDER BY name, part"):
            self._compare(checksum, "part", name, part, data)
            if part != len(arrays.setdefault(name, [])):
                raise self._damaged(f"a part of {name} is missing")
            arrays[name].append(data)
        sizes = self.fact("snapshot")
        if sizes != (_sizes(arrays) if arrays else None):
            raise self._damaged("parts of its snapshot are missing")
        return {name: self._array(b"".join(parts)) for name, parts in arrays.items()} if arrays else None

    def save(self, snapshot: Callable[[], Arrays]) -> None:
        """Replace the snapshot, unless the last one is so young that snapshots would take a share of the run."""
        began = monotonic()
        if began - self._saved < self._interval:
            return
        arrays = snapshot()
        self._write(lambda: self._set_snapshot(arrays), now=True)
        self._saved = monotonic()
        self._interval = max(_SECONDS, (self._saved - began) / _SHARE)

    def trained(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, bytes]]:
        """Return the number, and what was remembered, of those of the feature sets that are trained already."""
        known: dict[bytes, tuple[int, bytes]] = {}
        for i in range(0, len(keys), _KEYS):
            part = keys[i : i + _KEYS]
            marks = ",".join("?" * len(part))
            for units, number, memory, checksum in self._ask(f"SELECT * FROM sets WHERE units IN ({marks})", part):
                self._compare(checksum, "set", units, number, memory)
                known[units] = (number, memory)
        return known

    def add_trained(self, rows: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Remember feature sets: units, number, memory."""
        marked = [(*row, _checksum("set", *row)) for row in rows]
        self._write(lambda: self._db.executemany("INSERT OR IGNORE INTO sets VALUES (?, ?, ?, ?)", marked))

    def forget(self) -> None:
        """Let go of all feature sets and of the snapshot."""

        def change() -> None:
            for command in ("DELETE FROM sets", "DELETE FROM parts", "DELETE FROM facts WHERE name = 'snapshot'"):
                self._db.execute(command)

        self._write(change, now=True)

    def _create(self) -> None:
        self._db.execute(f"PRAGMA application_id = {_MARK}")
        for table in _TABLES:
            self._db.execute(table)
        self._set_fact("format", _FORMAT)

    def _check(self) -> None:
        """Raise unless the file is of this version, and every row as it was written."""
        form = self.fact("format")
        if form != _FORMAT:
            raise _another_version(self._path, form)
        wrong = self._db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if wrong != "ok":
            raise self._damaged(wrong)
        for kind, table in (("fact", "facts"), ("set", "sets"), ("part", "parts")):
            for *row, checksum in self._db.execute(f"SELECT * FROM {table}"):
                self._compare(checksum, kind, *row)

    def _compare(self, checksum: Any, kind: str, *row: Any) -> None:
        if checksum != _checksum(kind, *row):
            raise self._damaged(f"a {kind} does not have its checksum")

    def fact(self, name: str) -> str | None:
        """Return something that a run has remembered."""
        for row in self._ask("SELECT * FROM facts WHERE name = ?", (name,)):
            self._compare(row[2], "fact", *row[:2])
            return str(row[1])
        return None

    def set_fact(self, name: str, value: str) -> None:
        """Remember something of a run."""
        self._write(lambda: self._set_fact(name, value), now=True)

    def _set_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?, ?)", (name, value, _checksum("fact", name, value)))

    def _set_snapshot(self, arrays: Arrays) -> None:
        self._db.execute("DELETE FROM parts")
        kept: dict[str, list[memoryview]] = {}
        for name, array in arrays.items():
            data = memoryview(_bytes(array))
            kept[name] = [data[start : start + _PART] for start in range(0, len(data), _PART)]
            for part, piece in enumerate(kept[name]):
                row = (name, part, piece)
                self._db.execute("INSERT INTO parts VALUES (?, ?, ?, ?)", (*row, _checksum("part", *row)))
        self._set_fact("snapshot", _sizes(kept))

    def _write(self, change: Callable[[], Any], *, now: bool = False) -> None:
        """Change the file, all or nothing; commit if it is time to, or at once."""
        try:
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("SAVEPOINT change")
            try:
                change()
            except BaseException:  # Ctrl-C too
                with suppress(sqlite3.Error):  # where the disk is full, SQLite has gone back already
                    self._db.execute("ROLLBACK TO change")
                raise
            self._db.execute("RELEASE change")
            if now or monotonic() - self._committed > _SECONDS:
                self._commit()
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _commit(self) -> None:
        self._db.execute("COMMIT")
        self._committed = monotonic()

    def _ask(self, question: str, arguments: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(question, arguments).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._failed(error) from error

    def _array(self, data: bytes) -> NDArray[Any]:
        try:
            return np.asarray(np.lib.format.read_array(BytesIO(data), allow_pickle=False))
        except Exception as error:  # a header is evaluated as literals, which can fail in many ways
            raise self._damaged(f"an array cannot be read, {error}") from error

    def _failed(self, error: Exception, *, opening: bool = False) -> CheckpointError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return CheckpointError(
                f"the disk of the checkpoint {self._path} is full; free some space and repeat the call, which then "
                "goes on from what the checkpoint holds."
            )
        if code in _DAMAGED or isinstance(error, sqlite3.DataError | UnicodeDecodeError):
            return self._damaged(str(error))
        if opening:
            return CheckpointError(
                f"the checkpoint {self._path} cannot be used: {error}. Does another run use it, or is it read-only?"
            )
        return CheckpointError(f"the checkpoint {self._path} failed: {error}. What it holds so far is whole.")

    def _damaged(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self._path} is damaged ({what}); remove it to begin anew, or give another file."
        )


class Shelf:
    """The feature sets that another trainer of the same run has trained, in the same file.

    Parameters
    ----------
    checkpoint : Checkpoint
    name : str
        What tells the trainer from all others.
    """

    def __init__(self, checkpoint: Checkpoint, name: str) -> None:
        self._checkpoint = checkpoint
        self._mark = sha256(name.encode()).digest()

    def trained(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, bytes]]:
        """Return the number, and what was remembered, of those of the feature sets that are trained already."""
        known = self._checkpoint.trained([self._mark + key for key in keys])
        return {key[len(self._mark) :]: row for key, row in known.items()}

    def add_trained(self, rows: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Remember feature sets: units, number, memory."""
        self._checkpoint.add_trained([(self._mark + key, number, memory) for key, number, memory in rows])


class SearchJournal:
    """The checkpoint as one search sees it: with its kind, how it went and how long it took."""

    def __init__(self, checkpoint: Checkpoint, history: list[tuple[int, int, int]]) -> None:
        self._checkpoint = checkpoint
        self._history = history
        self._arrays = checkpoint.load()
        if self._arrays:
            check_snapshot(self._arrays)
        self.phase = self._arrays["phase"].tobytes().decode() if self._arrays else ""
        self.seconds = float(self._arrays["seconds"]) if self._arrays else 0.0
        self._started = perf_counter() - self.seconds
        if self._arrays:
            history.extend(tuple(row) for row in self._arrays["history"].tolist())

    def begin(self, phase: str) -> None:
        """Say which search it is; what another one left is of no use to it."""
        if phase != self.phase:
            self._arrays, self.phase = None, phase
            self._history.clear()

    def load(self) -> Arrays | None:
        """Return the last snapshot."""
        return self._arrays

    def save(self, snapshot: Callable[[], Arrays]) -> None:
        """Write a snapshot if it is time to."""

        def with_history() -> Arrays:
            return {
                **snapshot(),
                "phase": np.frombuffer(self.phase.encode(), dtype=np.uint8),
                "history": np.array(self._history, dtype=np.int64).reshape(-1, 3),
                "seconds": np.array(perf_counter() - self._started),
            }

        self._checkpoint.save(with_history)


def _is_new(path: Path) -> bool:
    """Return whether there is no file yet; raise if there is one that is not ours, and leave it as it is."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return True
    except (OSError, ValueError) as error:
        raise CheckpointError(f"the checkpoint {path} cannot be used: {error}.") from error
    if not stat.S_ISREG(found.st_mode):
        raise CheckpointError(f"{path} is not a regular file; give another file as the checkpoint.")
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError as error:
        raise CheckpointError(f"the checkpoint {path} cannot be read: {error.strerror}.") from error
    if not header:
        return True
    if not header.startswith(_SQLITE):
        raise CheckpointError(f"{path} is not a checkpoint, or a damaged one; give another file.")
    if header[_MARK_AT] != _MARK.to_bytes(4, "big"):
        form = _old_format(path)
        if form is not None:
            raise _another_version(path, form)
        raise CheckpointError(f"{path} is a database of another kind; give another file as the checkpoint.")
    return False


def _old_format(path: Path) -> str | None:
    """Return the format of a checkpoint of a version without a mark; nothing is written to the file."""
    with suppress(sqlite3.Error):
        db = sqlite3.connect(f"{path.resolve().as_uri()}?immutable=1", uri=True)
        try:
            form = str(db.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()[0])
            return form if form.startswith(_FORMATS) else None
        except TypeError:
            return None
        finally:
            db.close()
    return None


def _another_version(path: Path, form: str | None) -> CheckpointError:
    return CheckpointError(
        f"the checkpoint {path} was written by another version of emsco ({form}; this one reads {_FORMAT}). Go on with "
        "that version, or give another file to begin anew."
    )


def _checksum(*row: Any) -> bytes:
    """Return the checksum of a row: of its values, their types and their lengths."""
    digest = blake2b(digest_size=16)
    for value in row:
        raw = isinstance(value, bytes | memoryview)
        data = value if raw else str(value).encode("utf-8", "surrogateescape")
        digest.update(f"{'bytes' if raw else type(value).__name__} {len(data)} ".encode())
        digest.update(data)
    return digest.digest()


def _sizes(arrays: Mapping[str, Sequence[bytes | memoryview]]) -> str:
    """Return how many bytes of which arrays a snapshot has."""
    return json.dumps({name: sum(map(len, arrays[name])) for name in sorted(arrays)})


def _bytes(array: NDArray[Any]) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()
