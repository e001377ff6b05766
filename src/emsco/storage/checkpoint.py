"""A run's memory on disk: killed at any moment, the same run goes on from it and ends as if it had not been.

The file is an SQLite database of plain bytes, written in transactions: it is whole whatever happens. It holds what a
run is (so that another one does not take it for its own), every feature set trained, and the last snapshot of the
search. Reading it executes nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from hashlib import sha256
from io import BytesIO
import json
from os import PathLike, fspath
from pathlib import Path
import re
import sqlite3
from time import monotonic, perf_counter
from types import CodeType, FunctionType, TracebackType
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import CheckpointError
from emsco.search.base import Arrays

_FORMAT = "emsco-checkpoint 1"
_SECONDS = 1.0  # between two commits, at least
_SHARE = 0.05  # of the time of a run may go into snapshots
_PART = 2**26  # bytes of one row: SQLite has a limit
_LONGEST = 300  # characters of an object that are shown
_KEYS = 500  # of one question: SQLite has a limit here too


class Checkpoint:
    """The file of one run.

    Parameters
    ----------
    path : path-like
        Created if it is not there.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(fspath(path))
        if not self._path.parent.is_dir():
            raise CheckpointError(f"the folder of the checkpoint {self._path} does not exist; create it.")
        self._saved = self._committed = monotonic()
        self._interval = _SECONDS
        try:
            self._db = sqlite3.connect(self._path, timeout=1.0, isolation_level=None)
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
            self._db.execute("CREATE TABLE IF NOT EXISTS sets (units BLOB PRIMARY KEY, number INTEGER, memory BLOB)")
            self._db.execute("CREATE TABLE IF NOT EXISTS parts (name TEXT, part INTEGER, data BLOB)")
            found = self._db.execute("SELECT value FROM facts WHERE name = 'format'").fetchone()
            form = found[0] if found else None
            n_facts = self._db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0]
            if form is None and n_facts > 3:
                raise CheckpointError(f"{self._path} is a database of another kind; give another file.")
            self._set_fact("format", form or _FORMAT)
            self._commit()
        except sqlite3.OperationalError as error:
            self.close()
            raise CheckpointError(
                f"the checkpoint {self._path} cannot be used: {error}. Does another run use it, or is it read-only?"
            ) from error
        except (sqlite3.DatabaseError, CheckpointError) as error:
            self.close()
            raise CheckpointError(
                f"{self._path} is no checkpoint, or a damaged one ({error}); remove it, or give another file."
            ) from error
        if form not in (None, _FORMAT):
            self.close()
            raise CheckpointError(f"{self._path} was written by another version ({form}); remove it.")

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
        return seed if known is None else int(known)

    def claim(self, identity: Mapping[str, str]) -> None:
        """Say which run this is; the file of another one is refused."""
        known = self.fact("identity")
        if known is None:
            self._write(lambda: self._set_fact("identity", json.dumps(dict(identity))), now=True)
            return
        before = json.loads(known)
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
        rows = self._ask("SELECT name, data FROM parts ORDER BY name, part")
        arrays: dict[str, list[bytes]] = {}
        for name, data in rows:
            arrays.setdefault(name, []).append(data)
        return {name: _array(b"".join(parts)) for name, parts in arrays.items()} if arrays else None

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
            rows = self._ask(f"SELECT units, number, memory FROM sets WHERE units IN ({marks})", part)
            known.update((units, (number, memory)) for units, number, memory in rows)
        return known

    def add_trained(self, rows: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Remember feature sets: units, number, memory."""
        self._write(lambda: self._db.executemany("INSERT OR IGNORE INTO sets VALUES (?, ?, ?)", rows))

    def fact(self, name: str) -> str | None:
        """Return something that a run has remembered."""
        rows = self._ask("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def set_fact(self, name: str, value: str) -> None:
        """Remember something of a run."""
        self._write(lambda: self._set_fact(name, value), now=True)

    def _set_fact(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def _set_snapshot(self, arrays: Arrays) -> None:
        self._db.execute("DELETE FROM parts")
        for name, array in arrays.items():
            data = memoryview(_bytes(array))
            for part, start in enumerate(range(0, len(data), _PART)):
                self._db.execute("INSERT INTO parts VALUES (?, ?, ?)", (name, part, data[start : start + _PART]))

    def _write(self, change: Callable[[], Any], *, now: bool = False) -> None:
        """Change the file, all or nothing; commit if it is time to, or at once."""
        try:
            if not self._db.in_transaction:
                self._db.execute("BEGIN IMMEDIATE")
            self._db.execute("SAVEPOINT change")
            try:
                change()
            except BaseException:  # Ctrl-C too
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
        except sqlite3.Error as error:
            raise self._failed(error) from error

    def _failed(self, error: sqlite3.Error) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self._path} failed: {error}. Is the disk full? What it holds so far is whole."
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


def identity_of(thing: Any) -> str:
    """Return what tells an object from others, the same in every process: how it looks, and a hash of what it holds.

    How it looks is not enough: scikit-learn cuts the middle out of long estimators. Functions are told by their code.
    """
    with suppress(TypeError, ValueError):
        return json.dumps(thing)
    seen = " ".join(re.sub(r"(RandomState\(\w+\))? at 0x\w+", "", repr(thing)).split())
    return f"{seen if len(seen) <= _LONGEST else seen[: _LONGEST - 3] + '...'} {sha256(_told(thing)).hexdigest()[:16]}"


def _told(thing: Any) -> bytes:
    if isinstance(thing, FunctionType):
        closed = [cell.cell_contents for cell in thing.__closure__ or ()]
        held = [*_code(thing.__code__), thing.__defaults__, thing.__kwdefaults__, *closed]
        return repr([thing.__module__, thing.__qualname__]).encode() + _told(held)
    if is_dataclass(thing) and not isinstance(thing, type):
        return _told([type(thing).__qualname__, *(getattr(thing, field.name) for field in fields(thing))])
    if isinstance(thing, list | tuple):
        return b"(" + b",".join(map(_told, thing)) + b")"
    if isinstance(thing, dict):
        return _told([*thing.items()])
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        return _told([type(thing).__module__, type(thing).__qualname__, sorted(thing.get_params(deep=False).items())])
    try:
        return str(joblib.hash(thing)).encode()
    except Exception:  # nothing else that it may be is known; an address in memory makes it another run
        return repr(thing).encode()


def _code(code: CodeType) -> list[Any]:
    return [
        code.co_code, code.co_names, *(_code(part) if isinstance(part, CodeType) else part for part in code.co_consts),
    ]  # fmt: skip


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a short name of the contents of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).tobytes() if array.size else b"")
    return digest.hexdigest()[:16]


def _bytes(array: NDArray[Any]) -> bytes:
    buffer = BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), allow_pickle=False)
    return buffer.getvalue()


def _array(data: bytes) -> NDArray[Any]:
    try:
        return np.asarray(np.lib.format.read_array(BytesIO(data), allow_pickle=False))
    except ValueError as error:
        raise CheckpointError(f"the checkpoint holds an array that cannot be read ({error}); remove it.") from error
