"""The true Pareto frontier, with a certificate: every design is looked at, or proven not to need a look."""

from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any

import numpy as np

from emsco.arrays import IntArray
from emsco.designs.partition import count_solutions
from emsco.exceptions import InvalidParameterError, SpaceTooLargeError
from emsco.scoring.certificate import Certificate
from emsco.scoring.front import Front, make_front
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import PAPER
from emsco.scoring.ranking import pareto_rank
from emsco.search.base import INTERRUPTED, OUT_OF_TIME, Journal, Progress, Run, Searched
from emsco.search.exact.lattice import (
    MAX_STATE_BYTES,
    OUT_OF_MEMORY,
    Bits,
    Lattice,
    all_bits,
    bytes_needed,
)
from emsco.search.exact.money import check_few_units, prove_money
from emsco.search.exact.ties import TiedDesigns

# One thread and 192 validation rows: all designs are looked at where there are few; where there are many, the work is
# that of the pairs of a set and a part of it, of which bounds leave more to do the more stages may follow.
_SECONDS_PER_DESIGN, _SECONDS_PER_PAIR = 3e-8, {4: 1.2e-6, 5: 6e-6}
_SECONDS_PER_DEEP_PAIR = 1.5e-5
_WITH_REMOVAL = 5e-8, {3: 1.6e-6, 4: 7e-6}, 2e-5
_AFFORDABLE_SECONDS, _MAX_SECONDS = 20.0, 3600.0  # on one thread; with all
_MAX_UNITS = 24
_MAX_BYTES = 2**31
_MOST_TIES = 2**63 - 1
FEW_STATES = 2**26  # bytes; a proof that needs more is not one of seconds


@dataclass(frozen=True, kw_only=True)
class Exact:
    """Settings of the exact search.

    Parameters
    ----------
    max_designs : int or None
        Larger spaces are refused before any work. None: those estimated to take more than an hour are.
    time_limit : float or None
        Seconds after which the search ends with the best frontier so far, not proven.
    """

    max_designs: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        designs, limit = self.max_designs, self.time_limit
        if designs is not None and (isinstance(designs, bool) or not isinstance(designs, int) or designs < 1):
            raise InvalidParameterError(
                f"must be a whole number of at least 1, or None; got {designs!r}.", parameter="max_designs"
            )
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0):
            raise InvalidParameterError(f"must be a positive number of seconds; got {limit!r}.", parameter="time_limit")

    def check(self, task: Task) -> None:
        """Raise unless a frontier of such designs can be proven."""
        if task.errors is not None:
            check_few_units(task.prices.n_units)
            return
        if task.rule.n_rows > 1:
            raise InvalidParameterError(
                f"cannot be exact with a threshold per stage ({task.rule}); search best-first (BestFirst) or by "
                "evolution (Evolution), or give one threshold for all stages.",
                parameter="search",
            )
        others = [] if task.aims is None else [name for name in task.aims.names if name not in PAPER]
        if others:
            raise InvalidParameterError(
                f"cannot be exact with the objectives {', '.join(others)}: an exact search proves fronts of coverage, "
                "accuracy and cost. Search best-first (BestFirst) or by evolution (Evolution).",
                parameter="search",
            )

    def search(self, judge: Judge, run: Run, *, max_bytes: int = MAX_STATE_BYTES) -> Searched:
        """Prove the frontier, or give the best found before the search ended.

        Raise ``OutOfMemoryError`` if that takes more than ``max_bytes``, and these are less than the usual bound.
        """
        task = judge.task
        if task.errors is not None:
            return self._search_money(judge, run)
        if run.journal is not None:
            run.journal.begin(type(self).__name__)
        space: dict[str, Any] = {"max_stages": task.max_stages, "removal": task.removal, "n_jobs": run.n_jobs}
        check_affordable(self, n_units=task.prices.n_units, n_samples=task.y.size, **space)
        watched: dict[str, Any] = {"on_progress": run.on_progress, "journal": run.journal}
        bits = all_bits(judge.trainer, task.y, task.prices, threshold=task.rule, cache=judge.cache, **watched)
        deadline = inf if self.time_limit is None else run.started + self.time_limit
        ends = inf if run.pace is None else perf_counter() + run.pace.left()
        watched["deadline"] = min(deadline, ends)
        proof = search_exactly(bits, self, **space, max_bytes=max_bytes, started=run.started, **watched)
        if proof.ended == OUT_OF_MEMORY and max_bytes < MAX_STATE_BYTES:
            raise OutOfMemoryError
        ended = f"of {proof.certificate.n_designs:,} designs {proof.ended}" if proof.ended else ""
        n_sets, timed = 2**task.prices.n_units - 1, proof.ended == OUT_OF_TIME and ends < deadline
        return Searched(proof.front(judge), self, 0, n_sets, run.seconds, ended, timed)

    def _search_money(self, judge: Judge, run: Run) -> Searched:
        """Prove the frontier of money for tests and money for errors."""
        deadline = inf if self.time_limit is None else run.started + self.time_limit
        ends = inf if run.pace is None else perf_counter() + run.pace.left()
        proof = prove_money(judge, deadline=min(deadline, ends), started=run.started)
        front = judge.task.front(proof.designs, judge.tally(proof.designs))
        ended = "" if proof.certificate.proven else f"of {proof.certificate.n_designs:,} designs {OUT_OF_TIME}"
        certified = replace(front, certificate=proof.certificate)
        n_sets, timed = 2**judge.task.prices.n_units, bool(ended) and ends < deadline
        return Searched(certified, self, 0, n_sets, run.seconds, ended, timed)


class OutOfMemoryError(Exception):
    """A proof needs more memory than it was given."""


def is_provable(task: Task) -> bool:
    """Return whether a frontier of such designs can be proven."""
    return task.rule.n_rows == 1 and (task.aims is None or set(task.aims.names) <= set(PAPER))


def estimate_seconds(*, n_units: int, max_stages: int, n_samples: int, n_jobs: int, removal: bool = False) -> float:
    """Return roughly how long a search takes, training apart: within a factor of five on the problems measured."""
    per_design, per_pair, per_deep_pair = _SECONDS_PER_DESIGN, _SECONDS_PER_PAIR, _SECONDS_PER_DEEP_PAIR
    if removal:
        per_design, per_pair, per_deep_pair = _WITH_REMOVAL
    n_designs = count_solutions(n_units, max_stages, removal=removal)
    seconds: float = min(n_designs * per_design, 3**n_units * per_pair.get(max_stages, per_deep_pair))
    return seconds * max(n_samples / 192, 1) / n_jobs


def is_affordable(*, n_units: int, max_stages: int, n_samples: int, removal: bool = False) -> bool:
    """Return whether an exact search is one of seconds, with memory within its bound.

    The number of threads does not enter it: how many there are must not change what is found.
    """
    size = {"n_units": n_units, "max_stages": max_stages, "n_samples": n_samples, "n_jobs": 1}
    return (
        n_units <= _MAX_UNITS
        and estimate_seconds(**size, removal=removal) <= _AFFORDABLE_SECONDS
        and bytes_needed(n_units, n_samples, 1) <= _MAX_BYTES
    )


def check_affordable(
    settings: Exact, *, n_units: int, max_stages: int, n_samples: int, n_jobs: int, removal: bool = False
) -> None:
    """Raise if the space is too large, with its size, the time it would take, and what to do."""
    n_designs = count_solutions(n_units, max_stages, removal=removal)
    advice = "allow fewer stages, buy features together as one unit, or search best-first"
    advice = f"buy every feature (no removal), {advice}" if removal else advice
    size = {"n_units": n_units, "max_stages": max_stages, "n_samples": n_samples, "n_jobs": n_jobs}
    seconds = estimate_seconds(**size, removal=removal)
    limit = f"max_designs is {settings.max_designs:,}" if settings.max_designs else "the limit is one hour"
    if seconds > _MAX_SECONDS if settings.max_designs is None else n_designs > settings.max_designs:
        raise SpaceTooLargeError(
            f"{n_units} features in at most {max_stages} stages make {n_designs:.4g} designs, about "
            f"{_duration(seconds)} with {n_jobs} threads; {limit}. To go on, {advice}, or, in Python, set a larger "
            "max_designs."
        )
    if n_units > _MAX_UNITS or bytes_needed(n_units, n_samples, n_jobs) > _MAX_BYTES:
        raise SpaceTooLargeError(
            f"{n_units} features with {n_samples} validation rows need more than {_MAX_BYTES >> 30} GiB; {advice}, or "
            "validate on fewer rows."
        )


def _duration(seconds: float) -> str:
    for unit, length in (("hours", 3600), ("minutes", 60)):
        if seconds >= length:
            return f"{seconds / length:.3g} {unit}"
    return f"{seconds:.1g} seconds"


@dataclass(frozen=True)
class Proof:
    """What an exact search found: the simplest design of every non-dominated vector, and its ties."""

    designs: IntArray
    n_ties: IntArray
    ties: list[TiedDesigns]
    certificate: Certificate
    ended: str

    def front(self, judge: Judge) -> Front:
        """Return the front of these designs."""
        task, tally = judge.task, judge.tally(self.designs)
        best = np.arange(len(self.designs))
        if task.aims is not None:
            # By two of the three objectives, the frontier is what is not dominated within the frontier of all three.
            # Let no design dominate d in the two. Some d' of the frontier of all three is no worse than d in any of
            # them, so in the two it equals d: no vector is missing. A d' that any d dominates in the two is, for the
            # same reason, dominated by one of that frontier: there is none too many. And none comes twice: of d' and
            # d'' that are equal in two objectives one would dominate the other by the third.
            rank = pareto_rank(task.measure(tally))
            best = np.flatnonzero(rank == rank.max())
        ties = [self.ties[i] for i in best]
        counted = tally.select(best)
        certificate = self.certificate
        return make_front(self.designs[best], counted, self.n_ties[best], ties, task.prices, certificate, task.aims)


def search_exactly(
    bits: Bits,
    settings: Exact,
    *,
    max_stages: int,
    removal: bool = False,
    n_jobs: int = 1,
    max_bytes: int = MAX_STATE_BYTES,
    started: float | None = None,
    deadline: float | None = None,
    on_progress: Progress | None = None,
    journal: Journal | None = None,
    by_counts: bool = False,
) -> Proof:
    """Find every non-dominated vector of the designs in at most max_stages; with removal, of those that leave some out.

    With a journal it goes on from the last snapshot of the same search. Ctrl-C, the time limit and the memory bound end
    the search with the best frontier so far and a certificate that says *not proven*; the designs then need not be the
    simplest, and their ties are not counted. The time limit is that of the settings, unless a deadline is given.
    ``by_counts`` is as `Incumbents` has it.
    """
    started = perf_counter() if started is None else started
    if deadline is None and settings.time_limit is not None:
        deadline = started + settings.time_limit
    lattice = Lattice(
        bits,
        max_stages=max_stages,
        removal=removal,
        n_jobs=n_jobs,
        max_bytes=max_bytes,
        deadline=deadline,
        on_progress=on_progress,
        journal=journal,
        by_counts=by_counts,
    )
    ties: list[TiedDesigns] = []
    try:
        lattice.search()
        if not lattice.ended:
            ties = lattice.ties()
    except KeyboardInterrupt:
        lattice.ended = INTERRUPTED
    if lattice.ended:
        ties = [TiedDesigns.of_chain(chain, bits.n_units) for chain in lattice.incumbents.chains.values()]
    n_designs = count_solutions(bits.n_units, max_stages, removal=removal)
    certificate = Certificate(
        n_designs=n_designs,
        n_walked=lattice.n_walked,
        n_ruled_out=0 if lattice.ended else n_designs - lattice.n_walked,
        seconds=perf_counter() - started,
        proven=not lattice.ended,
    )
    designs = np.array([tied.simplest() for tied in ties])
    n_ties = np.array([min(tied.n_designs, _MOST_TIES) for tied in ties])
    return Proof(designs, n_ties, ties, certificate, lattice.ended)
