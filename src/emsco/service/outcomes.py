"""True labels as they come in, in a file that outlasts the service. What was acknowledged is on the disk."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
import json
from pathlib import Path
import sqlite3
import time
from typing import Any

from emsco.exceptions import FileError
from emsco.service.ids import DecisionId
from emsco.service.problems import ProblemError

_APPLICATION = 0x454D5343  # "EMSC": tells our files from other ones
_SCHEMA = """
CREATE TABLE outcomes (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, model TEXT NOT NULL, version TEXT NOT NULL,
    stage INTEGER NOT NULL, code INTEGER NOT NULL, conclusive INTEGER NOT NULL, truth TEXT NOT NULL,
    received REAL NOT NULL
);
CREATE INDEX outcomes_of ON outcomes (model, version, seq);
CREATE TABLE monitors (
    model TEXT NOT NULL, version TEXT NOT NULL, state TEXT NOT NULL, PRIMARY KEY (model, version)
);
"""
_PATIENCE = 5.0  # seconds that another worker may take to write


class Store:
    """The file of outcomes.

    Parameters
    ----------
    path : path
        Made if it is not there. It must be on a disk of this machine.

    Raises
    ------
    FileError
        It cannot be used, or is another kind of file; that one is left as it is.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.is_dir() or not path.parent.is_dir():
            raise FileError(f"{path} cannot store outcomes: it is a folder, or its folder is not there.")
        try:
            new = not path.exists() or not path.stat().st_size
            self._file = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
            if not new:
                self._check()
            self._write_ahead()
            self._file.execute("PRAGMA synchronous=FULL")  # an acknowledged outcome survives a power failure
            self._file.execute("PRAGMA journal_size_limit=4194304")
            with _Transaction(self._file):
                if not self._tables():
                    for statement in _SCHEMA.split(";"):
                        self._file.execute(statement)
                    self._file.execute(f"PRAGMA application_id={_APPLICATION}")
        except sqlite3.Error as error:
            raise FileError(f"{path} cannot store outcomes: {error}.") from error

    def _write_ahead(self) -> None:
        """Switch to a write-ahead log. SQLite does not wait for others here, as it does elsewhere; so we do."""
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                self._file.execute("PRAGMA journal_mode=WAL")
                return
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            time.sleep(0.01)

    def _tables(self) -> int:
        (n,) = self._file.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()
        return int(n)

    def _check(self) -> None:
        used = self._tables()  # first: tables come together with the id, perhaps made by another worker just now
        (application,) = self._file.execute("PRAGMA application_id").fetchone()
        if used and application != _APPLICATION:
            self._file.close()
            raise FileError(f"{self._path} is a database of something else; give the name of a new file.")

    def add(self, model: str, outcomes: Sequence[tuple[str, DecisionId, Any]]) -> tuple[int, int]:
        """Store truths, all of them or none; return how many are new, and how many were there before.

        Parameters
        ----------
        model : str
        outcomes : sequence of (str, DecisionId, label)
            The id, what it says, and the true label.
        """
        n_new, now = 0, time.time()
        try:
            with _Transaction(self._file):
                for text, said, truth in outcomes:
                    row = (text, model, said.version, said.stage, said.code, said.conclusive, json.dumps(truth), now)
                    done = self._file.execute(
                        "INSERT OR IGNORE INTO outcomes (id, model, version, stage, code, conclusive, truth, received) "
                        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                        row,
                    )
                    n_new += done.rowcount
                    if not done.rowcount:
                        self._check_same(text, model, json.dumps(truth))
        except sqlite3.Error as error:
            raise _refused(error) from error
        return n_new, len(outcomes) - n_new

    def _check_same(self, text: str, model: str, truth: str) -> None:
        known = self._file.execute("SELECT model, truth FROM outcomes WHERE id = ?", (text,)).fetchone()
        if known != (model, truth):
            raise ProblemError(409, f"the outcome of {text} was sent before, with another truth; nothing was stored.")

    def since(self, model: str, version: str, seq: int) -> list[tuple[int, int, bool, Any]]:
        """Return what came after a place in the file, in order: place, class, whether it was given, truth."""
        rows = self._file.execute(
            "SELECT seq, code, conclusive, truth FROM outcomes WHERE model = ? AND version = ? AND seq > ? "
            "ORDER BY seq LIMIT 100000",
            (model, version, seq),
        )
        return [(place, code, bool(sure), json.loads(truth)) for place, code, sure, truth in rows]

    def counts(self, model: str, version: str) -> dict[str, int]:
        """Return how many outcomes of a version there are, how many of cases with a label."""
        total, labelled = self._file.execute(
            "SELECT count(*), coalesce(sum(conclusive), 0) FROM outcomes WHERE model = ? AND version = ?",
            (model, version),
        ).fetchone()
        return {"cases": total, "labelled": labelled}

    def state(self, model: str, version: str) -> Mapping[str, Any] | None:
        """Return what a monitor had seen when it was stored; None if it never was."""
        found = self._file.execute(
            "SELECT state FROM monitors WHERE model = ? AND version = ?", (model, version)
        ).fetchone()
        return None if found is None else json.loads(found[0])

    def set_state(self, model: str, version: str, state: Mapping[str, Any]) -> None:
        """Store what a monitor has seen."""
        try:
            with _Transaction(self._file):
                self._file.execute(
                    "INSERT OR REPLACE INTO monitors VALUES (?, ?, ?)", (model, version, json.dumps(state))
                )
        except sqlite3.Error as error:
            raise _refused(error) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Transaction:
    """Everything that is done within, or nothing."""

    def __init__(self, file: sqlite3.Connection) -> None:
        self._file = file

    def __enter__(self) -> None:
        self._file.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self._file.execute("COMMIT")
        finally:
            if self._file.in_transaction:
                with suppress(sqlite3.Error):
                    self._file.execute("ROLLBACK")


def _refused(error: sqlite3.Error) -> ProblemError:
    """Return what a client is told: nothing of its request was stored."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return ProblemError(507, "the disk of the service is full; nothing of this was stored. Send it again later.")
    said = "outcomes cannot be stored now; nothing of this was. Try again."
    return ProblemError(503, said, headers={"Retry-After": "5"})
