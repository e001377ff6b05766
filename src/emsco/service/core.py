"""Service: what the routes of one worker share."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import time
from typing import Any

import numpy as np

from emsco.deployed.decide import Decisions
from emsco.deployed.session import Accept, Reject, Session
from emsco.exceptions import EmscoError
from emsco.service.counters import Counters, Key, total_of
from emsco.service.ids import DecisionId, make_ids
from emsco.service.logs import Log
from emsco.service.outcomes import Store
from emsco.service.profiles import case_profile, table_profile
from emsco.service.settings import Settings
from emsco.service.shelf import Served, Shelf
from emsco.service.tokens import Tokens
from emsco.service.watching import Watcher

_THREADS = 2  # that decide tables, while the event loop answers the small requests


class Service:
    """Models, tokens, counters and files of one worker.

    Parameters
    ----------
    settings : Settings
    folder : path or None
        Where workers leave what the others must see; None: there is one worker.
    slot : int
        Which of the workers this is.

    Attributes
    ----------
    shelf : Shelf
    tokens : Tokens or None
    counters : Counters
    log : Log
    pool, clerk : ThreadPoolExecutor
        Threads that decide tables, and the one that reads and writes the file of outcomes.
    store : Store or None
    watcher : Watcher
    draining : bool
        Whether the service is about to end.
    """

    def __init__(self, settings: Settings, *, folder: Path | None = None, slot: int = 0) -> None:
        self.settings = settings
        self.folder = folder
        self.slot = slot
        self.log = Log(quiet=settings.quiet)
        self.draining = False
        self.tokens = None if settings.token_file is None else Tokens(settings.token_file)
        self.counters = Counters(None if folder is None else folder / f"{slot}.counters")
        self.shelf = Shelf(settings.sources, self.log.say)
        self.pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="table")
        self.store = None if settings.outcomes is None else Store(settings.outcomes)
        self.clerk = ThreadPoolExecutor(1, thread_name_prefix="store")  # one at a time writes to the file
        self.watcher = Watcher(folder, self.store, self.log)

    @property
    def ready(self) -> bool:
        """Whether requests should be sent here."""
        return bool(self.shelf.served) and not self.draining

    def fill(self) -> None:
        """Load the models for the first time."""
        self.shelf.fill()
        if not self.shelf.served:
            places = ", ".join(str(source.path) for source in self.settings.sources)
            self.log.say("no model yet", looking_in=places)

    def look(self) -> None:
        """Look whether files have changed; what cannot be used is said, and what was there stays."""
        before = dict(self.shelf.troubles)
        try:
            for name in self.shelf.look():
                self.counters.add(("reloads", name, "ok"))
        except EmscoError as error:
            self.log.say("models not looked at", reason=str(error))
        for name, trouble in self.shelf.troubles.items():
            if before.get(name) != trouble:
                self.counters.add(("reloads", name, "refused"))
        if self.tokens is not None:
            try:
                if self.tokens.look():
                    self.log.say("tokens read again")
            except EmscoError as error:
                self.log.say("tokens not read", reason=str(error))

    def totals(self) -> Mapping[Key, float]:
        """Return the counters of all workers."""
        return total_of(self.folder, self.counters)

    def watch(self) -> None:
        """Let the monitors see what is new; one worker does it for all."""
        if self.slot == 0:
            self.watcher.look(self.shelf.served, self.totals())

    def allows(self, header: bytes | None) -> bool:
        """Return whether a client may ask."""
        return self.tokens is None or self.tokens.allow(header, time.time())

    def record_case(self, served: Served, session: Session, replaces: DecisionId | None = None) -> str:
        """Count the decision of a case, which may replace one before a correction; return its id."""
        answer = session.step()
        assert isinstance(answer, Accept | Reject)
        sure = isinstance(answer, Accept)
        code = served.codes[answer.label if isinstance(answer, Accept) else answer.best_guess]
        if replaces is not None:
            self._withdraw(served, replaces)
        self._count(served, answer.stage, code, sure, 1, self._new_cost(served, answer, replaces))
        for what, column, amount in case_profile(served, session.state["given"], answer.stage):
            self.counters.add((what, served.name, column), amount)
        return make_ids(served.version, [answer.stage], [code], [sure])[0]

    def record_table(self, served: Served, table: Any, decisions: Decisions) -> None:
        """Count the decisions of a table."""
        n_classes = len(served.classes)
        kinds = (decisions.stage * n_classes + served.codes_of(decisions.label.data)) * 2 + decisions.conclusive
        for kind, n in enumerate(np.bincount(kinds).tolist()):
            if not n:
                continue
            (stage, code), sure = divmod(kind // 2, n_classes), bool(kind % 2)
            self._count(served, stage, code, sure, n, n * served.paid[stage])
        for (what, column), amount in table_profile(served, table, decisions).items():
            self.counters.add((what, served.name, column), amount)

    def _count(self, served: Served, stage: int, code: int, sure: bool, n: int, cost: float) -> None:
        label = str(code) if sure else ""
        self.counters.add(("decided", served.name, served.version, str(stage), label), n)
        self.counters.add(("cost", served.name), cost)

    def _new_cost(self, served: Served, answer: Accept | Reject, replaces: DecisionId | None) -> float:
        """Return what a case has cost that was not counted before: a corrected value is not bought again."""
        known = replaces is not None and replaces.version == served.version and replaces.stage < len(served.paid)
        before = served.paid[replaces.stage] if known and replaces is not None else 0.0
        return max(answer.cost - before, 0.0)

    def _withdraw(self, served: Served, said: DecisionId) -> None:
        """Take note that a decision does not count any more."""
        label = str(said.code) if said.conclusive else ""
        self.counters.add(("withdrawn", served.name, said.version, str(said.stage), label))

    def ids_of(self, served: Served, decisions: Decisions) -> list[str]:
        """Return an id for each decision of a table."""
        codes = served.codes_of(decisions.label.data).tolist()
        return make_ids(served.version, decisions.stage.tolist(), codes, decisions.conclusive.tolist())

    def close(self) -> None:
        """Let go of threads and files."""
        self.pool.shutdown(wait=False)
        self.clerk.shutdown(wait=True)
        if self.store is not None:
            self.store.close()
