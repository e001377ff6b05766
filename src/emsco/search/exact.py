"""The true Pareto frontier, with a certificate: every design is looked at, or proven not to need a look."""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco._kernels import bitset, chains
from emsco.exceptions import InvalidParameterError, SpaceTooLargeError
from emsco.objectives import Objectives
from emsco.partition import IntArray, count_solutions
from emsco.prices import PriceList
from emsco.ranking import pareto_rank
from emsco.stages.base import StageTrainer
from emsco.stages.cache import sets_at_once, to_bits

_MAX_DESIGNS = 2 * 10**10  # walked in minutes
# One thread, two passes, a few hundred samples: chains of up to four sets end in a tight loop, longer ones do not.
_SECONDS_PER_SHALLOW_DESIGN, _SECONDS_PER_DEEP_DESIGN = 3e-8, 2e-7
_AFFORDABLE_SECONDS = 10.0
_MAX_UNITS = 24
_MAX_BYTES = 2**31
_NEVER = np.int64(2**62)

Progress = Callable[[str, float], None]


@dataclass(frozen=True)
class Exact:
    """Settings of the exact search.

    Parameters
    ----------
    max_designs : int or None
        Larger spaces are refused before any work. None: 20 billion.
    time_limit : float or None
        Seconds after which the search ends with the best frontier so far, not proven.
    """

    max_designs: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        designs, limit = self.max_designs, self.time_limit
        if designs is not None and (isinstance(designs, bool) or not isinstance(designs, int) or designs < 1):
            raise InvalidParameterError(f"max_designs must be a whole number of at least 1, or None; got {designs!r}.")
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0):
            raise InvalidParameterError(f"time_limit must be a positive number of seconds, or None; got {limit!r}.")


@dataclass(frozen=True)
class Certificate:
    """What an exact search did.

    Attributes
    ----------
    n_designs : int
        Designs in the space.
    n_walked : int
        Designs looked at.
    n_ruled_out : int
        Designs proven to share the vector of one looked at.
    seconds : float
    proven : bool
        Whether every design was looked at or ruled out: the frontier is the true one.
    """

    n_designs: int
    n_walked: int
    n_ruled_out: int
    seconds: float
    proven: bool


@dataclass(frozen=True)
class Bits:
    """What every feature set says of every validation sample, by the integer whose bits are the units it owns."""

    confident: NDArray[np.uint64]
    right: NDArray[np.uint64]
    everyone: NDArray[np.uint64]
    ticks: IntArray
    n_samples: int
    n_units: int


def estimate_seconds(*, n_units: int, max_stages: int, n_jobs: int) -> float:
    """Return roughly how long the walk of all designs takes, training apart."""
    per_design = _SECONDS_PER_SHALLOW_DESIGN if max_stages <= 4 else _SECONDS_PER_DEEP_DESIGN
    return count_solutions(n_units, max_stages) * per_design / n_jobs


def is_affordable(*, n_units: int, max_stages: int, n_samples: int, n_jobs: int) -> bool:
    """Return whether an exact search takes seconds, and memory within its bound."""
    return (
        n_units <= _MAX_UNITS
        and estimate_seconds(n_units=n_units, max_stages=max_stages, n_jobs=n_jobs) <= _AFFORDABLE_SECONDS
        and _bytes_needed(n_units, max_stages, n_samples, n_jobs) <= _MAX_BYTES
    )


def check_affordable(settings: Exact, *, n_units: int, max_stages: int, n_samples: int, n_jobs: int) -> None:
    """Raise if the space is too large, with its size, the time it would take, and what to do."""
    n_designs = count_solutions(n_units, max_stages)
    limit = _MAX_DESIGNS if settings.max_designs is None else settings.max_designs
    advice = "use fewer stages (max_stages), buy features together (Prices units), or search with Evolution"
    if n_designs > limit:
        hours = estimate_seconds(n_units=n_units, max_stages=max_stages, n_jobs=n_jobs) / 3600
        raise SpaceTooLargeError(
            f"{n_units} features in at most {max_stages} stages make {n_designs:.4g} designs, about {hours:.3g} hours "
            f"with {n_jobs} threads; the limit is {limit:.4g}. To go on, {advice}, or raise max_designs."
        )
    if n_units > _MAX_UNITS or _bytes_needed(n_units, max_stages, n_samples, n_jobs) > _MAX_BYTES:
        raise SpaceTooLargeError(
            f"{n_units} features with {n_samples} validation rows need more than {_MAX_BYTES >> 30} GiB; {advice}, or "
            "validate on fewer rows."
        )


def _bytes_needed(n_units: int, max_stages: int, n_samples: int, n_jobs: int) -> int:
    sets: int = 2**n_units * (2 * 8 * -(-n_samples // 64) + 8)
    return sets + n_jobs * (n_samples + 1) ** 2 * 8 * (2 + max_stages)


def all_bits(
    trainer: StageTrainer, y: IntArray, prices: PriceList, *, threshold: float, on_progress: Progress | None = None
) -> Bits:
    """Train every feature set and keep its bits."""
    n_units, n_samples = prices.n_units, y.size
    n_sets, n_words = 2**n_units, -(-n_samples // 64)
    confident = np.zeros((n_sets, n_words), dtype=np.uint64)
    right = np.zeros((n_sets, n_words), dtype=np.uint64)
    ticks = np.zeros(n_sets, dtype=np.int64)
    step = sets_at_once(n_samples)
    for start in range(1, n_sets, step):
        sets = np.arange(start, min(start + step, n_sets))
        units = ((sets[:, None] >> np.arange(n_units)) & 1).astype(np.bool_)
        outcomes = trainer.outcomes(units, trainer.train(units))
        confident[sets], right[sets] = to_bits(outcomes, y, threshold)
        ticks[sets] = prices.stage_ticks(units[:, None, :])[:, 0]
        if on_progress is not None:
            on_progress("training", sets[-1] / (n_sets - 1))
    everyone = bitset.pack(np.ones((1, n_samples), dtype=np.bool_))[0]
    return Bits(confident, right, everyone, ticks, n_samples, n_units)


class ChainWalker:
    """Walks all designs of up to ``max_stages``, on several threads, until done or stopped.

    Parameters
    ----------
    bits : Bits
    max_stages : int
    n_jobs : int
    deadline : float or None
        On the clock of ``perf_counter``.
    on_progress : callable or None
    """

    def __init__(
        self,
        bits: Bits,
        *,
        max_stages: int,
        n_jobs: int = 1,
        deadline: float | None = None,
        on_progress: Progress | None = None,
    ) -> None:
        self._bits = bits
        self._max_stages = min(max_stages, bits.n_units)
        self._n_jobs = n_jobs
        self._deadline = deadline
        self._on_progress = on_progress
        self._stop = np.zeros(1, dtype=np.uint8)
        self._below = np.zeros((bits.n_units + 1, self._max_stages + 1), dtype=np.int64)
        for m in range(1, bits.n_units + 1):
            for k in range(1, self._max_stages + 1):
                self._below[m, k] = min(count_solutions(m, k), 2**62)
        self.interrupted = False
        self.n_walked = 0
        self.n_ruled_out = 0

    @property
    def stopped(self) -> bool:
        """Whether the walk ended early."""
        return bool(self._stop[0])

    def least_costs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the non-dominated vectors (q, c, cost), and a design of each as a chain, with its length."""
        n = self._bits.n_samples + 1

        def tables() -> tuple[Any, ...]:
            best = np.full((n, n), _NEVER)
            chain = np.zeros((n * n, self._max_stages), dtype=np.int64)
            return best, np.empty((0, 0), dtype=np.int64), np.zeros(1, dtype=np.int64), chain, np.zeros(n * n, np.int64)

        results = self._run(tables, "searching")
        best = np.min([table[0] for table in results], axis=0)
        q, c = np.nonzero(best < _NEVER)
        cost = best[q, c]
        on_front = _nondominated(q, c, cost)
        vectors = np.column_stack([q, c, cost])[on_front]
        found, lengths = [], []
        for q_i, c_i, cost_i in vectors.tolist():
            table = next(t for t in results if t[0][q_i, c_i] == cost_i)
            found.append(table[3][q_i * n + c_i])
            lengths.append(table[4][q_i * n + c_i])
        return vectors, np.array(found), np.array(lengths)

    def ties(self, vectors: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return how many designs have each vector, and the simplest of them as a chain, with its length."""
        best, place = self._sought(vectors)

        def tables() -> tuple[Any, ...]:
            m = len(vectors)
            chain = np.zeros((m, self._max_stages), dtype=np.int64)
            return best, place, np.zeros(m, dtype=np.int64), chain, np.zeros(m, dtype=np.int64)

        n_walked, n_ruled_out = self.n_walked, self.n_ruled_out
        results = self._run(tables, "counting ties")
        self.n_walked, self.n_ruled_out = n_walked, n_ruled_out  # the same designs, seen a second time
        n_ties, chain, lengths = results[0][2:]
        for _, _, more_ties, other, other_lengths in results[1:]:
            n_ties = n_ties + more_ties
            for i in np.flatnonzero(other_lengths):
                simpler = chains.is_simpler(other[i], other_lengths[i], chain[i], lengths[i], self._bits.n_units)
                if lengths[i] == 0 or simpler:
                    chain[i], lengths[i] = other[i], other_lengths[i]
        return n_ties, chain, lengths

    def tied_designs(self, vector: IntArray) -> Iterator[IntArray]:
        """Yield every design that has the vector, a row each, found as they are asked for."""
        best, place = self._sought(vector[None])
        room = 1024
        for first in range(1, 2**self._bits.n_units):
            while True:
                n_ties = np.zeros(1, dtype=np.int64)
                listed = np.full((room, self._max_stages), 2**self._bits.n_units - 1)
                one = np.zeros((1, self._max_stages), dtype=np.int64), np.zeros(1, dtype=np.int64)
                self._walk(np.array([first]), best, place, n_ties, *one, listed)
                if n_ties[0] <= room:
                    break
                room = int(n_ties[0])
            yield from to_rows(listed[: n_ties[0]], self._bits.n_units)

    def _sought(self, vectors: IntArray) -> tuple[IntArray, IntArray]:
        n = self._bits.n_samples + 1
        best = np.full((n, n), -1, dtype=np.int64)
        place = np.zeros((n, n), dtype=np.int64)
        best[vectors[:, 0], vectors[:, 1]] = vectors[:, 2]
        place[vectors[:, 0], vectors[:, 1]] = np.arange(len(vectors))
        return best, place

    def _walk(self, firsts: IntArray, *tables: Any) -> tuple[int, int]:
        bits = self._bits
        arguments = (firsts, bits.n_units, self._max_stages, bits.confident, bits.right, bits.ticks, bits.everyone)
        n_walked, n_ruled_out = chains.walk(*arguments, self._below, *tables, self._stop)
        return int(n_walked), int(n_ruled_out)

    def _run(self, tables: Callable[[], tuple[Any, ...]], phase: str) -> list[tuple[Any, ...]]:
        """Walk all first sets on threads with tables of their own; return the tables."""
        results = [tables() for _ in range(self._n_jobs)]
        free: SimpleQueue[int] = SimpleQueue()
        for i in range(self._n_jobs):
            free.put(i)
        nothing_listed = np.empty((0, 0), dtype=np.int64)

        def task(firsts: IntArray) -> tuple[int, int]:
            mine = free.get()
            try:
                return self._walk(firsts, *results[mine], nothing_listed)
            finally:
                free.put(mine)

        # The design of one stage comes first, and alone: there is a frontier whenever the walk is stopped.
        n_walked, n_ruled_out = task(np.array([2**self._bits.n_units - 1]))
        self.n_walked += n_walked
        self.n_ruled_out += n_ruled_out
        groups, shares = self._groups()
        with ThreadPoolExecutor(self._n_jobs) as pool:
            share_of: dict[Future[tuple[int, int]], float] = {
                pool.submit(task, group): share for group, share in zip(groups, shares, strict=True)
            }
            self._watch(share_of, phase)
            for future in share_of:
                n_walked, n_ruled_out = future.result()
                self.n_walked += n_walked
                self.n_ruled_out += n_ruled_out
        return results

    def _watch(self, share_of: dict[Future[tuple[int, int]], float], phase: str) -> None:
        """Wait for the tasks; raise the flag that ends them on Ctrl-C or when the time is up."""
        waiting = set(share_of)
        done_share = 0.0
        while waiting:
            try:
                done, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                done_share += sum(share_of[future] for future in done)
                if self._on_progress is not None:
                    self._on_progress(phase, done_share)
                if self._deadline is not None and perf_counter() > self._deadline:
                    self._stop[0] = 1
            except KeyboardInterrupt:
                self.interrupted = True
                self._stop[0] = 1

    def _groups(self) -> tuple[list[IntArray], list[float]]:
        """Return the first sets but everything, in groups of about the same work, and the share of the work in each."""
        n_units = self._bits.n_units
        if n_units == 1:
            return [], []
        firsts = np.arange(1, 2**n_units - 1)
        size = np.array([int(first).bit_count() for first in firsts])
        work = 1.0 + self._below[n_units - size, self._max_stages - 1]
        ends = np.cumsum(work) / work.sum()
        group = np.minimum((ends * 64 * self._n_jobs).astype(np.int64), 64 * self._n_jobs - 1)
        cuts = np.flatnonzero(np.diff(group)) + 1
        parts = np.split(firsts, cuts)
        return parts, [float(part.sum() / work.sum()) for part in np.split(work, cuts)]


class TiedDesigns:
    """The designs of one vector, walked each time they are iterated over."""

    def __init__(self, walker: ChainWalker, vector: IntArray) -> None:
        self._walker = walker
        self._vector = vector

    def __iter__(self) -> Iterator[IntArray]:
        return self._walker.tied_designs(self._vector)


def to_rows(found: IntArray, n_units: int) -> IntArray:
    """Return chains (n_designs, max_stages), padded with the set of everything, as rows of stage numbers."""
    owned = (found[:, :, None] >> np.arange(n_units)) & 1
    return np.asarray((1 - owned).sum(axis=1))


@dataclass(frozen=True)
class Proof:
    """What an exact search found: the simplest design of every non-dominated vector, and its ties."""

    designs: IntArray
    n_ties: IntArray
    ties: list[TiedDesigns]
    certificate: Certificate
    interrupted: bool


def search_exactly(
    bits: Bits,
    settings: Exact,
    *,
    max_stages: int,
    n_jobs: int = 1,
    started: float | None = None,
    on_progress: Progress | None = None,
) -> Proof:
    """Find every non-dominated vector of the designs in at most max_stages.

    Ctrl-C and the time limit end the search with the best frontier so far and a certificate that says *not proven*; the
    designs then need not be the simplest, and their ties are not counted.
    """
    started = perf_counter() if started is None else started
    deadline = None if settings.time_limit is None else started + settings.time_limit
    walker = ChainWalker(bits, max_stages=max_stages, n_jobs=n_jobs, deadline=deadline, on_progress=on_progress)
    vectors, found, lengths = walker.least_costs()
    n_ties = np.ones(len(vectors), dtype=np.int64)
    if not walker.stopped:
        counted = walker.ties(vectors)
        if not walker.stopped:
            n_ties, found, lengths = counted
    found = np.where(np.arange(found.shape[1]) < lengths[:, None], found, 2**bits.n_units - 1)
    certificate = Certificate(
        n_designs=count_solutions(bits.n_units, max_stages),
        n_walked=walker.n_walked,
        n_ruled_out=walker.n_ruled_out,
        seconds=perf_counter() - started,
        proven=not walker.stopped,
    )
    again = ChainWalker(bits, max_stages=max_stages)
    ties = [TiedDesigns(again, vector) for vector in vectors]
    return Proof(to_rows(found, bits.n_units), n_ties, ties, certificate, walker.interrupted)


def _nondominated(q: IntArray, c: IntArray, cost: IntArray) -> NDArray[np.bool_]:
    accuracy = np.divide(c, q, out=np.zeros(q.size), where=q > 0)
    rank = pareto_rank(Objectives(q.astype(np.float64), accuracy, cost.astype(np.float64), 1.0))
    return np.asarray(rank == rank.max())
