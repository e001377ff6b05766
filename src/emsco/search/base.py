"""What every search is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass, field
import json
from time import perf_counter
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.scoring.front import Front
from emsco.scoring.judge import Judge, Task
from emsco.search.chains import Order

INTERRUPTED, OUT_OF_TIME = "interrupted", "out of time"  # why a search ended early
Arrays: TypeAlias = dict[str, NDArray[Any]]
History: TypeAlias = list[tuple[int, int, int]]  # designs evaluated, designs on the front, feature sets trained


class Progress(Protocol):
    """Callback for progress."""

    def __call__(self, phase: str, share: float, more: str = "") -> object:
        """Show which share of a phase is done, and what else there is to say of it."""


class TimeUpError(Exception):
    """The time of a phase is up; what was found before is kept."""


class Pace(Protocol):
    """What a search sees of a time limit: which work there is still time for.

    Attributes
    ----------
    cut : bool
        Whether there was not for some of it: from then on the search is not that of a run without a limit.
    """

    cut: bool

    def left(self) -> float:
        """Return the seconds left."""

    def n_designs(self, designs: IntArray) -> int:
        """Return for how many of the designs, the first ones, there is time."""

    def orders(self) -> list[Order]:
        """Return orders in which units are worth buying, as far as there is time to train the sets they lead to."""


class Journal(Protocol):
    """What a search sees of a checkpoint."""

    def load(self) -> Arrays | None:
        """Return the last snapshot, or nothing at the beginning of a run."""

    def save(self, snapshot: Callable[[], Arrays]) -> None:
        """Take a snapshot, if it is time for one."""


class RunJournal(Journal, Protocol):
    """The checkpoint of a whole run: it knows which search wrote it, and how long that took.

    Attributes
    ----------
    phase : str
        The search that wrote the last snapshot; empty at the beginning of a run.
    seconds : float
        What runs that were cut off have taken.
    """

    phase: str
    seconds: float

    def begin(self, phase: str) -> None:
        """Say which search it is; what another one left is of no use to it."""


@dataclass
class Run:
    """One run of a search: its random numbers, its workers, its memory, and who watches it.

    Attributes
    ----------
    rng : Generator
    n_jobs : int
        Threads of a proof.
    on_progress : callable
        Shows how far it is.
    history : list
        A line per generation or batch: designs evaluated, vectors on the front, feature sets trained.
    journal : RunJournal or None
        What a run before this one remembers.
    pace : Pace or None
        What there is time for; None: there is no limit.
    """

    rng: np.random.Generator
    n_jobs: int
    on_progress: Progress
    history: History = field(default_factory=list)
    journal: RunJournal | None = None
    pace: Pace | None = None

    def __post_init__(self) -> None:
        self.started = perf_counter() - (self.journal.seconds if self.journal else 0.0)

    def begin(self, search: "Search", judge: Judge) -> None:
        """Say which search begins, or goes on from the journal."""
        if self.journal is not None:
            self.journal.begin(type(search).__name__)
            judge.cache.n_trained = self.history[-1][2] if self.history else 0

    def note(self, phase: str, share: float, n_evaluated: int, n_best: int, n_trained: int) -> None:
        """Write a line of the history, and show it."""
        self.history.append((n_evaluated, n_best, n_trained))
        self.on_progress(phase, share, f"{n_best} on the front, {n_trained:,} sets trained")

    @property
    def seconds(self) -> float:
        """How long it has taken, runs that were cut off included."""
        return perf_counter() - self.started


@dataclass(frozen=True)
class Searched:
    """What a search found, and how.

    Attributes
    ----------
    front : Front
    search : Search
        The search that found it; with "auto", the one that was picked.
    n_steps : int
        Generations of an evolution, batches of a best-first search, 0 of an exact one.
    n_feature_sets : int
        How many were trained.
    seconds : float
        How long it took, runs that were cut off included.
    ended : str
        Why it ended early, as the end of a sentence about it; empty if it did not.
    out_of_time : bool
        Whether the time limit of the fit was the reason.
    """

    front: Front
    search: "Search"
    n_steps: int
    n_feature_sets: int
    seconds: float
    ended: str = ""
    out_of_time: bool = False


class Search(Protocol):
    """A way to search designs. Its settings are a frozen dataclass, which runs and files tell apart by its fields."""

    def check(self, task: Task) -> None:
        """Raise if it cannot search such designs."""

    def search(self, judge: Judge, run: Run) -> Searched:
        """Search; Ctrl-C ends it with the best front so far, before the first step it is passed on."""


def affordable(pace: Pace | None, designs: IntArray, *, first: bool = False) -> IntArray:
    """Return the designs that there is time for; of the ``first`` ones at least one, that buys everything at once."""
    if pace is None:
        return designs
    n_designs = pace.n_designs(designs)
    if first and not n_designs:
        return np.zeros_like(designs[:1])
    return designs[:n_designs]


def pack_generator(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the state of a generator as an array."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), dtype=np.uint8)


def restore_generator(rng: np.random.Generator, packed: NDArray[np.uint8]) -> None:
    """Set a generator to a packed state."""
    rng.bit_generator.state = json.loads(packed.tobytes())
