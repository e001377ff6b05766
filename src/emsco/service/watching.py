"""One worker watches over what all of them decide, and leaves what it sees where the others find it."""

from collections.abc import Mapping
import json
from pathlib import Path
from typing import Any

import numpy as np

from emsco.data.output import write_atomically
from emsco.deployed.monitor import Monitor
from emsco.exceptions import EmscoError
from emsco.service.counters import Key, decided_of
from emsco.service.logs import Log
from emsco.service.outcomes import Store
from emsco.service.problems import ProblemError
from emsco.service.shelf import Served

_FILE = "monitors.json"


class Watcher:
    """The monitors of the models in use.

    Parameters
    ----------
    folder : path or None
        Where the other workers read; None: there are none.
    store : Store or None
    log : Log
    """

    def __init__(self, folder: Path | None, store: Store | None, log: Log) -> None:
        self._path = None if folder is None else folder / _FILE
        self._store = store
        self._log = log
        self._watched: dict[str, _Watched] = {}
        self._records: dict[str, Any] = {}
        self._left = self._read_left()

    def _read_left(self) -> dict[str, Any]:
        """Return what a worker that this one replaces has left."""
        if self._path is None or not self._path.exists():
            return {}
        left: dict[str, Any] = json.loads(self._path.read_bytes())
        return left

    def records(self) -> dict[str, Any]:
        """Return what is watched, by model, whichever worker this is."""
        return self._records if self._path is None else self._read_left()

    def look(self, served: Mapping[str, Served], totals: Mapping[Key, float]) -> None:
        """Take note of what was decided, and of truths that came, since the last look."""
        changed = set(served) != set(self._records)
        for name, model in served.items():
            watched = self._watched.get(name)
            if watched is None or watched.version != model.version:
                watched = self._watched[name] = self._begin(model)
                changed = True
            try:
                changed |= watched.look(model, totals, self._store, self._log)
            except ProblemError as problem:
                self._log.say("monitor not stored", model=name, reason=problem.detail)
        self._watched = {name: watched for name, watched in self._watched.items() if name in served}
        if changed:
            self._records = {name: watched.record() for name, watched in self._watched.items()}
            if self._path is not None:
                write_atomically(self._path, json.dumps(self._records).encode())

    def _begin(self, model: Served) -> "_Watched":
        left = self._left.get(model.name)
        if left is not None and left["version"] == model.version:
            return _Watched(model, left["state"], left["exits"], left["seq"])
        stored = None if self._store is None else self._store.state(model.name, model.version)
        return _Watched(model, stored and stored["monitor"], None, stored["seq"] if stored else 0)


class _Watched:
    """The monitor of one version of a model, and how far it has looked."""

    def __init__(self, model: Served, state: Any, exits: Any, seq: int) -> None:
        self.version = model.version
        self._n_exits = len(model.paid) + 1
        self._exits = np.array(exits if exits is not None else [0] * self._n_exits)
        self._seq = seq
        self._reason: str | None = None
        self._monitor: Monitor | None = None
        try:
            try:
                self._monitor = Monitor(model.model, state=state)
            except EmscoError:
                if state is None:
                    raise
                self._monitor, self._seq = Monitor(model.model), 0  # the state of another release
        except EmscoError as error:
            self._reason = str(error)

    def look(self, model: Served, totals: Mapping[Key, float], store: Store | None, log: Log) -> bool:
        """Add what is new; return whether anything is."""
        exits = self._exits_of(model, totals)
        new = np.maximum(exits - self._exits, 0)  # fewer: a case was corrected, and the next one there is no news
        truths = [] if store is None else store.since(model.name, model.version, self._seq)
        if self._monitor is None or not (new.any() or truths):
            return False
        alarms = self._monitor.add_exits(new) if new.any() else []
        if truths:
            known = [(code, model.codes[truth]) for _, code, sure, truth in truths if sure and truth in model.codes]
            given, true = np.array(known, dtype=np.int64).reshape(-1, 2).T
            alarms += self._monitor.add_codes(given, true)
            self._seq = truths[-1][0]
        self._exits = np.maximum(self._exits, exits)
        for alarm in alarms:
            facts = {"watch": alarm.watch, "limit": alarm.limit, "found": alarm.found, "cases": alarm.n}
            log.say("alarm", model=model.name, version=model.version, **facts)
        if store is not None:
            store.set_state(model.name, model.version, {"monitor": self._monitor.state, "seq": self._seq})
        return True

    def _exits_of(self, model: Served, totals: Mapping[Key, float]) -> Any:
        """Return how many cases got a label at each stage so far, and last, how many got none."""
        exits = np.zeros(self._n_exits, dtype=np.int64)
        for (stage, code), n in decided_of(totals, model.name, model.version).items():
            if stage < len(model.paid):
                exits[stage if code is not None else -1] += n
        return exits

    def record(self) -> dict[str, Any]:
        """Return what is watched, and all that another worker needs to go on from here."""
        watches = () if self._monitor is None else self._monitor.watches
        return {
            "version": self.version,
            "state": None if self._monitor is None else self._monitor.state,
            "exits": self._exits.tolist(),
            "seq": self._seq,
            "reason": self._reason,
            "false_alarms": None if self._monitor is None else self._monitor.false_alarms,
            "watches": [
                {
                    "name": watch.name,
                    "limit": watch.limit,
                    "is_least": watch.is_least,
                    "found": watch.found if watch.n else None,
                    "cases": watch.n,
                    "evidence": watch.evidence,
                    "source": watch.source,
                    "alarm": None if watch.alarm is None else vars(watch.alarm),
                }
                for watch in watches
            ],
        }
