"""Auto: which search, when. A proof where that is one of seconds, else the best-first search."""

from dataclasses import dataclass

from emsco.designs.partition import count_solutions
from emsco.scoring.judge import Judge, Task
from emsco.search.base import Run, Search, Searched
from emsco.search.bestfirst import BestFirst
from emsco.search.evolution import Evolution
from emsco.search.exact.proof import FEW_STATES, Exact, OutOfMemoryError, estimate_seconds, is_affordable, is_provable

_FEW_DESIGNS = 6_000  # where thresholds come later, and with them thousands of other designs
BRIEFLY = BestFirst(max_designs=1_000, focus=0.5)  # where another learner takes over, which sees a few of its designs
BARELY = BestFirst(max_designs=8, start=0)  # where feature sets are slow to train, and units are ordered otherwise
_FEW_UNITS = 14  # all their feature sets are trained in seconds


@dataclass(frozen=True)
class Auto:
    """Picks the search: ``Exact()`` where it takes seconds, else ``BestFirst()``; with an estimator ``Evolution()``."""

    def check(self, task: Task) -> None:
        """Accept any task."""

    def search(self, judge: Judge, run: Run) -> Searched:
        """Search as picked; where a proof needs more memory than one of seconds does, best first."""
        picked = self.picked(judge.task, fast=judge.fast)
        instead = _best_first(judge.task.prices.n_units)
        if not isinstance(picked, Exact):
            return picked.search(judge, run)
        if run.journal is not None and run.journal.phase == type(instead).__name__:
            return instead.search(judge, run)  # the proof was given up before
        run.on_progress("searching exactly", 0.0, _announced(judge.task, run.n_jobs))
        try:
            return picked.search(judge, run, max_bytes=FEW_STATES)
        except OutOfMemoryError:
            return instead.search(judge, run)

    def picked(self, task: Task, *, fast: bool) -> Search:
        """Return the search for a task; the number of workers does not enter it.

        Parameters
        ----------
        task : Task
        fast : bool
            Whether feature sets are trained in batches.
        """
        if not fast:
            return Evolution(init_rate=0.5)  # few generations: begin with designs of many stages
        n_units = task.prices.n_units
        size = {"n_units": n_units, "max_stages": task.max_stages, "n_samples": task.y.size}
        if task.tunes:  # a proof would be one at a threshold that no point has in the end
            return BestFirst(max_designs=_FEW_DESIGNS, focus=0.5)
        if is_provable(task) and is_affordable(**size, removal=task.removal):
            return Exact()
        return _best_first(n_units)


def _best_first(n_units: int) -> BestFirst:
    """Return how to search what cannot be proven: many features make many sets to train."""
    return BestFirst(focus=0.5) if n_units <= _FEW_UNITS else BestFirst(max_designs=30_000, focus=0.5)


def _announced(task: Task, n_jobs: int) -> str:
    n_units, max_stages, removal = task.prices.n_units, task.max_stages, task.removal
    n_designs = count_solutions(n_units, max_stages, removal=removal)
    size = {"n_units": n_units, "max_stages": max_stages, "n_samples": task.y.size, "n_jobs": n_jobs}
    return f"{n_designs:,} designs, about {estimate_seconds(**size, removal=removal):.1g} s"
