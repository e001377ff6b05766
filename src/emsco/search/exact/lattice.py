"""The chains of feature sets, searched over the lattice of sets until nothing is left to find.

A design is a chain of sets. What a chain leaves behind at its last set is a state (`_lattice`); equal
states are merged, and a state is dropped once everything that it can reach is proven to be strictly dominated.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import comb
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray
from emsco.prices.prices import PriceList
from emsco.scoring import _bitset as bitset
from emsco.scoring.cache import StageCache, sets_at_once, to_bits
from emsco.scoring.rejection import Threshold
from emsco.search.base import INTERRUPTED, OUT_OF_TIME, Arrays, Journal, Progress
from emsco.search.exact import _lattice as lattice
from emsco.search.exact.incumbents import NEVER, Chain, Incumbents, Vector
from emsco.search.exact.steps import Steps, dearest
from emsco.search.exact.ties import Hit, StateGraph, TiedDesigns
from emsco.stages.base import StageTrainer

# States per set in each pass: narrow passes find good designs, with which the next one drops more.
_WIDTHS = (16, 128, 1024, 2**48)
OUT_OF_MEMORY = "out of memory"
MAX_STATE_BYTES = 2**31  # and as much again while they are moved
_ROOM_FOR_TIES = 64  # designs of the vectors sought after some states; if there are more, they are found again


@dataclass(frozen=True)
class Bits:
    """What every feature set says of every validation sample, by the integer whose bits are the units it owns.

    ``ticks`` and what follows ``n_units`` is what `Steps` wants to know.
    """

    confident: NDArray[np.uint64]
    right: NDArray[np.uint64]
    everyone: NDArray[np.uint64]
    ticks: IntArray
    n_samples: int
    n_units: int
    overhead: int = 0
    parallel: bool = False
    members: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    shared: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @cached_property
    def steps(self) -> Steps:
        """What the stage costs that leads from one set to a larger one."""
        of_rest = np.zeros_like(self.ticks) if self.parallel else self.ticks[-1] - self.ticks
        if self.parallel:
            for unit in range(self.n_units):
                slowest = of_rest.reshape(-1, 2, 1 << unit)[:, 0]
                np.maximum(slowest, self.unit_ticks(unit), out=slowest)
        of_rest[:-1] += self.overhead
        return Steps(self.ticks, of_rest, self.overhead, self.parallel, self.members, self.shared)

    def unit_ticks(self, unit: int) -> IntArray:
        """Return what a unit costs, overhead apart, given each set without it, (..., 2**unit), in ascending order."""
        without, owned = np.moveaxis(self.ticks.reshape(-1, 2, 1 << unit), 1, 0)
        if not self.parallel:
            return np.asarray(owned - without)
        sets = np.arange(self.ticks.size).reshape(-1, 2, 1 << unit)[:, 0]
        price = np.full(sets.shape, self.ticks[1 << unit])
        for members, shared in zip(self.members, self.shared, strict=True):
            if members >> unit & 1:
                price += shared * (sets & members == 0)
        return price


def all_bits(
    trainer: StageTrainer,
    y: IntArray,
    prices: PriceList,
    *,
    threshold: Threshold,
    cache: StageCache | None = None,
    on_progress: Progress | None = None,
    journal: Journal | None = None,
) -> Bits:
    """Train every feature set and keep its bits; with a journal, only those that it does not hold.

    The threshold is a number, or a rule that is the same at all stages: a set is not told at which stage it is owned.
    A cache with room for all sets takes them over, so that nobody trains them again.
    """
    n_units, n_samples = prices.n_units, y.size
    n_sets, n_words = 2**n_units, -(-n_samples // 64)
    confident = np.zeros((n_sets, n_words), dtype=np.uint64)
    right = np.zeros((n_sets, n_words), dtype=np.uint64)
    ticks = np.zeros(n_sets, dtype=np.int64)
    step = sets_at_once(n_samples)
    snapshot = (journal.load() if journal else None) or {}
    n_known = 1
    if "confident" in snapshot:
        n_known = len(snapshot["confident"])
        confident[:n_known], right[:n_known], ticks[:n_known] = (snapshot[x] for x in ("confident", "right", "ticks"))
    for start in range(n_known, n_sets, step):
        sets = np.arange(start, min(start + step, n_sets))
        units = ((sets[:, None] >> np.arange(n_units)) & 1).astype(np.bool_)
        memory = trainer.train(units)
        confident[sets], right[sets] = to_bits(trainer.outcomes(units, memory), y, threshold)
        if cache is not None and cache.capacity >= n_sets - 1:
            cache.remember(units, memory, confident[sets], right[sets])
        ticks[sets] = prices.set_ticks(units)
        if on_progress is not None:
            on_progress("training", sets[-1] / (n_sets - 1))
        if journal is not None:
            end = int(sets[-1]) + 1
            journal.save(partial(dict, confident=confident[:end], right=right[:end], ticks=ticks[:end]))
    everyone = bitset.pack(np.ones((1, n_samples), dtype=np.bool_))[0]
    members = (prices.groups.T @ (1 << np.arange(n_units))).astype(np.int64)
    rules = (prices.overhead_ticks, prices.parallel, members, prices.shared_ticks.copy())
    return Bits(confident, right, everyone, ticks, n_samples, n_units, *rules)


def bytes_needed(n_units: int, n_samples: int, n_jobs: int) -> int:
    """Return the memory that a search needs before it has any states."""
    words_of_sets = 2**n_units * (8 * -(-n_samples // 64) + 4)
    words_of_tables = (3 * n_jobs + 3) * (n_samples + 1) ** 2
    return int(8 * (words_of_sets + words_of_tables))


class _States:
    """The states kept in one pass; the first one owns nothing.

    Attributes
    ----------
    spans : ndarray of shape (n_sets, 2)
        Of each set, the first state that two more sets may follow before everything, and the end of these.
    """

    def __init__(self, bits: Bits, max_stages: int) -> None:
        self.spans = np.zeros((2**bits.n_units, 2), dtype=np.int64)
        self.spans[0, 1] = max_stages > 2
        self._figures = np.array([[0, 0, bits.n_samples, max_stages, -1, NEVER, 0]])
        self._waiting = bits.everyone[None].copy()
        self._set_of = np.zeros(1, dtype=np.int64)
        self.n_states = 1

    @property
    def figures(self) -> IntArray:
        """What `emsco.search.exact._lattice` says of each state."""
        return self._figures[: self.n_states]

    @property
    def waiting(self) -> NDArray[np.uint64]:
        """Who waits."""
        return self._waiting[: self.n_states]

    @property
    def set_of(self) -> IntArray:
        """The set owned."""
        return self._set_of[: self.n_states]

    def append(self, sets: IntArray, figures: IntArray, waiting: NDArray[np.uint64], counts: IntArray) -> None:
        """Add the states of some sets: so many of each that two more sets may follow, then those that one may."""
        end = self.n_states + len(figures)
        if end > len(self._figures):
            room = max(end, 2 * len(self._figures)) - self.n_states
            self._figures = np.concatenate([self.figures, np.empty((room, figures.shape[1]), np.int64)])
            self._waiting = np.concatenate([self.waiting, np.empty((room, waiting.shape[1]), np.uint64)])
            self._set_of = np.concatenate([self.set_of, np.empty(room, np.int64)])
        self._figures[self.n_states : end] = figures
        self._waiting[self.n_states : end] = waiting
        of_set = counts.sum(axis=1)
        self._set_of[self.n_states : end] = np.repeat(sets, of_set)
        first = self.n_states + np.cumsum(of_set) - of_set
        self.spans[sets] = np.column_stack([first, first + counts[:, 0]])
        self.n_states = end

    def packed(self) -> Arrays:
        """Return all states as arrays."""
        return {"figures": self.figures, "waiting": self.waiting, "set_of": self.set_of, "spans": self.spans}

    def restore(self, arrays: Arrays) -> None:
        """Take all states from arrays."""
        self._figures, self._waiting, self._set_of = (arrays[name] for name in ("figures", "waiting", "set_of"))
        self.spans = arrays["spans"]
        self.n_states = len(self._figures)

    def chain(self, state: int) -> Chain:
        """Return one of the chains that lead to a state."""
        chain: list[int] = []
        while state > 0:
            chain.append(int(self._set_of[state]))
            state = int(self._figures[state, lattice.PARENT])
        return tuple(reversed(chain))


class Lattice:
    """Searches all chains of up to ``max_stages`` sets, layer after layer of sets of the same size, on several threads.

    Parameters
    ----------
    bits : Bits
    max_stages : int
    removal : bool
        Whether a chain may end before it owns everything.
    n_jobs : int
    max_bytes : int
        Memory for states; a search that needs more ends.
    deadline : float or None
        On the clock of ``perf_counter``.
    on_progress : callable or None
    journal : Journal or None
        A search that was cut off goes on from the layer it had reached.
    by_counts : bool
        As `Incumbents` has it.

    Attributes
    ----------
    incumbents : Incumbents
        The frontier found so far; the true one after a search that has not ended early.
    n_walked : int
        Designs looked at in the last pass.
    ended : str
        Why the search ended early, or nothing.
    """

    def __init__(
        self,
        bits: Bits,
        *,
        max_stages: int,
        removal: bool = False,
        n_jobs: int = 1,
        max_bytes: int = MAX_STATE_BYTES,
        deadline: float | None = None,
        on_progress: Progress | None = None,
        journal: Journal | None = None,
        by_counts: bool = False,
    ) -> None:
        self._bits = bits
        self._journal = journal
        self._full = 2**bits.n_units - 1
        self._removal = removal
        self._max_stages = min(max_stages, bits.n_units) + removal  # the end of a chain counts as one
        self._n_jobs = n_jobs
        self._most_states = max_bytes // (8 * (lattice.N_FIGURES + 1 + bits.everyone.size))
        nobody = np.zeros_like(bits.everyone)
        self._rejected = bits.everyone if removal else bits.everyone & ~bits.confident[self._full]
        self._right_at_last = nobody if removal else bits.right[self._full]
        self._wrong_at_last = nobody if removal else bits.confident[self._full] & ~bits.right[self._full]
        self._steps = bits.steps._replace(of_rest=np.zeros_like(bits.ticks)) if removal else bits.steps
        self._deadline = deadline
        self._on_progress = on_progress
        self._stop = np.zeros(1, dtype=np.uint8)
        self._states = _States(bits, self._max_stages)
        size = (bits.n_samples + 1,) * 2
        self._tables = [
            (np.full(size, NEVER), np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64))
            for _ in range(n_jobs)
        ]
        self.incumbents = Incumbents(bits.n_samples, by_counts=by_counts)
        self.incumbents.add({self._one_stage: (self._full,)})  # a frontier whenever the search is stopped
        self.n_walked = 1
        self.ended = ""

    def search(self) -> None:
        """Find all non-dominated vectors, in passes that keep more and more states per set.

        The pass that need not cut any off, the last at the latest, is the proof.
        """
        snapshot = (self._journal.load() if self._journal else None) or {}
        first = 0
        if "figures" in snapshot:
            first = int(snapshot["progress"][0])
            self.incumbents.restore(snapshot)
        for number in range(first, len(_WIDTHS)):
            n_cut = self._search_once(number, snapshot)
            snapshot = {}
            if n_cut == 0 or self.ended:
                return

    def ties(self) -> list[TiedDesigns]:
        """Return all designs of each vector of the frontier; nothing if ended early."""
        bits, states = self._bits, self._states
        vectors = self.incumbents.vectors.tolist()
        cost_of = np.full((bits.n_samples + 1,) * 2, np.int64(-1))
        hits: dict[tuple[int, int], list[Hit]] = {}
        for q, e, cost in vectors:
            cost_of[q, e] = cost
            hits[q, e] = []
            if (q, e, cost) == self._one_stage and not self._removal:
                hits[q, e].append(Hit(0, self._full, 0))

        def closing(chunk: IntArray, _: int) -> Any:
            room = _ROOM_FOR_TIES
            while True:
                found = np.empty((room, 5), dtype=np.int64)
                n_found = self._finish(chunk, 0, cost_of, found)[1]
                if n_found <= room:
                    return found[:n_found]
                room = n_found

        if self._max_stages > 1:
            for _, found in self._run(closing, np.arange(states.n_states), "counting ties", (0.0, 1.0)):
                for state, last, q, e, room in found.tolist():
                    hits[q, e].append(Hit(state, last, room - self._removal))
        if self.ended:
            return []
        graph = self._graph({hit.state for of_vector in hits.values() for hit in of_vector})
        return [TiedDesigns(graph, hits[q, e], bits.n_units, removal=self._removal) for q, e, _ in vectors]

    @cached_property
    def _one_stage(self) -> Vector:
        """The vector of the design that buys everything at once."""
        bits, full = self._bits, self._full
        q = int(np.bitwise_count(bits.confident[full]).sum())
        return q, q - int(np.bitwise_count(bits.right[full]).sum()), bits.n_samples * int(bits.steps.of_rest[0])

    @cached_property
    def _layers(self) -> list[tuple[IntArray, float, float]]:
        """The sets of one unit, of two, ... of all but one; each with the shares of the work before and after it.

        With removal the last one is that of all.
        """
        if self._max_stages == 1:
            return []
        n = self._bits.n_units
        sizes = range(1, n + self._removal)
        size = np.bitwise_count(np.arange(self._full + 1))
        work = np.cumsum([0, *(comb(n, j) * 2**j for j in sizes)]) / 3**n
        return [(np.flatnonzero(size == j), float(work[j - 1]), float(work[j])) for j in sizes]

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], IntArray]:
        """What can still happen after each set, by set.

        Who may get a label between it and the last stage; who will be told wrong (with removal: or nothing) and can
        never be told right; who may be told wrong; and the least that the next stage costs.
        """
        bits, full = self._bits, self._full
        confident = bits.confident.copy()
        if not self._removal:
            confident[full] = 0
        between = _any_larger(confident, bits.n_units)
        doomed = ~_any_larger(bits.right, bits.n_units)
        doomed &= between if self._removal else self._wrong_at_last
        fallible = _any_larger(bits.confident & ~bits.right, bits.n_units)
        cheapest = np.full(full + 1, NEVER)
        cheapest[full] = 0
        for unit in range(bits.n_units):
            least = cheapest.reshape(-1, 2, 1 << unit)[:, 0]
            np.minimum(least, bits.unit_ticks(unit) + bits.overhead, out=least)
        return between, doomed, fallible, cheapest

    def _search_once(self, number: int, snapshot: Arrays) -> int:
        """Search with as many states per set as this pass has; return of how many sets some were cut off."""
        bits, width = self._bits, _WIDTHS[number]
        self._states = states = _States(bits, self._max_stages)
        self.n_walked = 1 - self._removal  # all at once: with removal it is met among the others
        n_cut = n_layers = 0
        n_states = np.ones(1, dtype=np.int64)
        if "figures" in snapshot:
            states.restore(snapshot)
            _, n_layers, n_cut, self.n_walked, n_states[0] = snapshot["progress"].tolist()
        bounds = self._bounds
        shapes = ((lattice.N_FIGURES, np.int64), (bits.everyone.size, np.uint64))

        def grow(sets: IntArray, thread: int) -> Any:
            room = [np.empty((1024, n_columns), dtype) for _ in range(2) for n_columns, dtype in shapes]
            counts = np.zeros((sets.size, 2), dtype=np.int64)
            figures, waiting, n_walked, n_cut = lattice.grow(
                sets, bits.n_units, states.figures, states.waiting, states.spans, bits.confident, bits.right,
                self._steps, dearest(self._steps, sets, bits.n_units), self._rejected, self._wrong_at_last, *bounds,
                self.incumbents.limit, width, self._most_states, n_states, *self._tables[thread], self._stop,
                self._removal, *room, counts,
            )  # fmt: skip
            return figures, waiting, counts, n_walked, n_cut

        def finish(chunk: IntArray, thread: int) -> Any:
            return self._finish(chunk, thread, self.incumbents.limit)[0]

        if self._max_stages == 2:
            self.n_walked += sum(n for _, n in self._run(finish, np.arange(1), "searching", (0.0, 1.0)))
            self._add_found()
            return 0
        phase = "searching with all states" if width == _WIDTHS[-1] else f"searching with {width} states per set"
        for layer, (sets, begin, end) in enumerate(self._layers[n_layers:], n_layers + 1):
            n_before = states.n_states
            for chunk, (*kept, n_walked, n_cut_here) in self._run(grow, sets, phase, (begin, (begin + end) / 2)):
                states.append(chunk, *kept)
                self.n_walked += n_walked
                n_cut += n_cut_here
            self._add_found()
            last = n_before + np.flatnonzero(states.figures[n_before:, lattice.ROOM] == 2)
            self.n_walked += sum(n for _, n in self._run(finish, last, phase, ((begin + end) / 2, end)))
            self._add_found()
            if max(n_states[0], states.n_states) > self._most_states:  # threads may lose some of the first count
                self.ended = OUT_OF_MEMORY
            if self.ended:
                break
            if self._journal is not None:
                self._journal.save(partial(self._packed, [number, layer, n_cut, self.n_walked, int(n_states[0])]))
        return n_cut

    def _finish(self, chunk: IntArray, thread: int, limit: IntArray, found: IntArray | None = None) -> Any:
        """Score, or with ``found`` find, all designs that buy one more set after some states, then all the rest."""
        bits, states = self._bits, self._states
        ties = found is not None
        charge = np.empty(self._full + 1 if bits.parallel else 0, dtype=np.int64)
        return lattice.finish(
            chunk, states.set_of, bits.n_units, states.figures, states.waiting, bits.confident, bits.right,
            self._steps, self._rejected, self._right_at_last, limit, *self._tables[thread], self._stop, self._removal,
            ties, charge, np.empty((0, 5), dtype=np.int64) if found is None else found,
        )  # fmt: skip

    def _packed(self, progress: list[int]) -> Arrays:
        """Return everything that the next layer needs as arrays, the bits included."""
        bits = self._bits
        return {
            "confident": bits.confident,
            "right": bits.right,
            "ticks": bits.ticks,
            "progress": np.array(progress),
            **self._states.packed(),
            **self.incumbents.packed(),
        }

    def _add_found(self) -> None:
        """Make incumbents of the designs in the tables of the threads."""
        found: dict[Vector, Chain] = {}
        for best, parent, last in self._tables:
            for q, e in np.argwhere(best < NEVER).tolist():
                chain = (*self._states.chain(int(parent[q, e])), int(last[q, e]))
                found[q, e, int(best[q, e])] = chain if self._removal else (*chain, self._full)
            best.fill(NEVER)
        if found:
            self.incumbents.add(found)

    def _graph(self, needed: set[int]) -> StateGraph:
        """Return the set and all parents of the states needed, of their parents, and so on."""
        bits, states = self._bits, self._states
        graph: StateGraph = {}
        at_set: dict[int, list[int]] = {}

        def need(state: int) -> None:
            if state not in graph:
                owned = int(states.set_of[state])
                graph[state] = (owned, [])
                at_set.setdefault(owned, []).append(state)

        for state in sorted(needed):
            need(state)
        for size in range(bits.n_units - 1, 0, -1):
            for s in [s for s in at_set if s.bit_count() == size]:
                found = lattice.parents(
                    np.array(at_set[s]), s, bits.n_units, states.figures, states.waiting, states.spans,
                    bits.confident, bits.right, self._steps, self._removal, np.zeros_like(bits.everyone),
                    np.empty_like(bits.everyone), np.empty((64, 2), dtype=np.int64),
                )  # fmt: skip
                for parent, target in found.tolist():
                    graph[target][1].append(parent)
                    need(parent)
        return graph

    def _run(
        self, task: Callable[[IntArray, int], Any], items: IntArray, phase: str, share: tuple[float, float]
    ) -> Iterator[tuple[IntArray, Any]]:
        """Run a task on chunks of the items, on threads; yield chunks and results, in order."""
        chunks = np.array_split(items, min(-(-items.size // 4), 16 * self._n_jobs)) if items.size else []
        free: SimpleQueue[int] = SimpleQueue()
        for thread in range(self._n_jobs):
            free.put(thread)

        def run(chunk: IntArray) -> Any:
            thread = free.get()
            try:
                return task(chunk, thread)
            finally:
                free.put(thread)

        with ThreadPoolExecutor(self._n_jobs) as pool:
            futures = [pool.submit(run, chunk) for chunk in chunks]
            self._watch(futures, phase, share)
        for chunk, future in zip(chunks, futures, strict=True):
            yield chunk, future.result()

    def _watch(self, futures: list[Future[Any]], phase: str, share: tuple[float, float]) -> None:
        """Wait for the tasks; raise the flag that ends them on Ctrl-C or when the time is up."""
        begin, end = share
        waiting = set(futures)
        while waiting:
            try:
                _, waiting = wait(waiting, timeout=0.1, return_when=FIRST_COMPLETED)
                if self._on_progress is not None:
                    self._on_progress(phase, end - (end - begin) * len(waiting) / len(futures))
                if self._deadline is not None and perf_counter() > self._deadline:
                    self.ended = OUT_OF_TIME
                    self._stop[0] = 1
            except KeyboardInterrupt:
                self.ended = INTERRUPTED
                self._stop[0] = 1
            except BaseException:  # such as the end of the process
                self._stop[0] = 1
                raise


def _any_larger(rows: NDArray[np.uint64], n_units: int) -> NDArray[np.uint64]:
    """Return, for each set, the union of the rows of all sets of which it is a proper part."""
    union = rows.copy()
    larger = np.zeros_like(rows)
    for unit in range(n_units):
        halves = union.reshape(-1, 2, 1 << unit, rows.shape[1])
        halves[:, 0] |= halves[:, 1]
    for unit in range(n_units):
        larger.reshape(-1, 2, 1 << unit, rows.shape[1])[:, 0] |= union.reshape(-1, 2, 1 << unit, rows.shape[1])[:, 1]
    return larger
