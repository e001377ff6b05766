"""From a judge to a front: runs the search that settings stand for, and shows how far it is."""

from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, TypeAlias
import warnings

import numpy as np

from emsco.arrays import IntArray
from emsco.exceptions import SearchInterruptedWarning
from emsco.fitting.progress import PhaseLine
from emsco.scoring.front import Front, make_front
from emsco.scoring.judge import Judge
from emsco.scoring.ranking import pareto_rank
from emsco.search.bestfirst import CHAINS, BestFirst, Pool, search_best_first
from emsco.search.chains import cuts, orders
from emsco.search.evolution import Evolution, State, evolve
from emsco.search.exact.lattice import MAX_STATE_BYTES, OUT_OF_MEMORY, all_bits
from emsco.search.exact.proof import Exact, check_affordable, search_exactly
from emsco.stages.base import StageTrainer
from emsco.storage.checkpoint import SearchJournal

Settings: TypeAlias = Evolution | BestFirst | Exact
History: TypeAlias = list[tuple[int, int, int]]  # designs evaluated, designs on the front, feature sets trained
_FEW_STATES = 2**26  # bytes; a proof that needs more is not one of seconds


@dataclass(frozen=True)
class Searched:
    """What a search found, and how.

    Attributes
    ----------
    front : Front
    settings : Evolution, BestFirst or Exact
    seconds : float
        With those of runs that were cut off.
    n_feature_sets : int
        How many were trained.
    """

    front: Front
    settings: Settings
    seconds: float
    n_feature_sets: int


def run(
    judge: Judge,
    trainer: StageTrainer,
    settings: Settings,
    *,
    instead: BestFirst | None,
    fast: bool,
    rng: np.random.Generator,
    n_jobs: int,
    history: History,
    journal: SearchJournal | None,
    line: PhaseLine,
) -> Searched:
    """Search as settings say.

    Parameters
    ----------
    judge : Judge
    trainer : StageTrainer
        Of the judge.
    settings : Evolution, BestFirst or Exact
    instead : BestFirst or None
        Takes over if a proof turns out to need more memory than one of seconds does. None: it may take what it needs.
    fast : bool
        Whether the learner is fast enough to order units; a slow one does only if settings ask for it.
    rng : Generator
    n_jobs : int
        Threads of a proof.
    history : list
        A line per generation or batch is added.
    journal : SearchJournal or None
        What a run before this one remembers.
    line : PhaseLine
        Shows how far it is.
    """
    if instead is not None and journal is not None and journal.phase == BestFirst.__name__:
        settings = instead  # the proof was given up before
    started = perf_counter() - (journal.seconds if journal else 0.0)
    if isinstance(settings, Exact):
        proven = _prove(judge, trainer, settings, n_jobs, started, journal, line, or_nothing=instead is not None)
        if proven is not None:
            return Searched(proven, settings, perf_counter() - started, 2**judge.task.prices.n_units - 1)
        assert instead is not None
        settings = instead
    front = _explore(judge, settings, rng, history, journal, line, fast=fast)
    return Searched(front, settings, perf_counter() - started, judge.cache.n_trained)


def _explore(
    judge: Judge,
    settings: Evolution | BestFirst,
    rng: np.random.Generator,
    history: History,
    journal: SearchJournal | None,
    line: PhaseLine,
    *,
    fast: bool,
) -> Front:
    task, cache = judge.task, judge.cache
    limit = settings.max_generations if isinstance(settings, Evolution) else settings.max_designs

    def on_generation(state: State) -> None:
        n_evaluated = (history[-1][0] if history else 0) + len(state.population) - state.n_elite
        note("evolving", state.generation, n_evaluated, state.n_nondominated)

    def on_batch(pool: Pool) -> None:
        note("searching", pool.n_evaluated, pool.n_evaluated, int((pool.leads & (pool.level == 0)).sum()))

    def note(phase: str, done: int, n_evaluated: int, n_best: int) -> None:
        history.append((n_evaluated, n_best, cache.n_trained))
        line(phase, done / max(limit, 1), f"{n_best} on the front, {cache.n_trained:,} sets trained")

    if journal is not None:
        journal.begin(type(settings).__name__)
        cache.n_trained = history[-1][2] if history else 0
    space: dict[str, Any] = {
        "n_features": task.prices.n_units, "max_stages": task.max_stages, "removal": task.removal, "rng": rng,
        "measure": task.measure, "journal": journal,
    }  # fmt: skip
    if isinstance(settings, Evolution):
        found = evolve(judge.tally, settings, **space, on_generation=on_generation)
    else:
        chains = partial(_chains, judge) if fast or settings.start == CHAINS else None
        found = search_best_first(judge.tally, settings, **space, on_batch=on_batch, score=task.score, chains=chains)
    line.close()
    if found.interrupted:
        warnings.warn(
            f"search interrupted after {'generation' if isinstance(settings, Evolution) else 'batch'} "
            f"{found.n_generations}; the front is the best found so far.",
            SearchInterruptedWarning,
            stacklevel=5,
        )
    n_ties = np.array([len(tied) for tied in found.ties])
    return make_front(found.designs, found.tally, n_ties, found.ties, task.prices, aims=task.aims)


def _chains(judge: Judge, most: int) -> IntArray:
    """Return up to so many designs that buy in the orders in which units are worth it."""
    task = judge.task
    found = orders(judge.sureness, task.prices)
    limits: dict[str, Any] = {"max_stages": task.max_stages, "removal": task.removal}
    limits["most"] = max(most // len(found), 1)
    return np.unique(np.concatenate([cuts(order, **limits) for order in found]), axis=0)


def _prove(
    judge: Judge,
    trainer: StageTrainer,
    settings: Exact,
    n_jobs: int,
    started: float,
    journal: SearchJournal | None,
    line: PhaseLine,
    *,
    or_nothing: bool,
) -> Front | None:
    """Return the true frontier, or the best found before the search ended; or nothing, if it needs much memory."""
    task = judge.task
    if journal is not None:
        journal.begin(Exact.__name__)
    space: dict[str, Any] = {"max_stages": task.max_stages, "removal": task.removal, "n_jobs": n_jobs}
    check_affordable(settings, n_units=task.prices.n_units, n_samples=task.y.size, **space)
    watched: dict[str, Any] = {"on_progress": line, "journal": journal}
    bits = all_bits(trainer, task.y, task.prices, threshold=task.rule, **watched)
    max_bytes = _FEW_STATES if or_nothing else MAX_STATE_BYTES
    proof = search_exactly(bits, settings, **space, max_bytes=max_bytes, started=started, **watched)
    line.close()
    if or_nothing and proof.ended == OUT_OF_MEMORY:
        return None
    if proof.ended:
        warnings.warn(
            f"exact search of {proof.certificate.n_designs:,} designs {proof.ended}; the front is the best found "
            "so far, not proven.",
            SearchInterruptedWarning,
            stacklevel=5,
        )
    tally = judge.tally(proof.designs)
    best = np.arange(len(proof.designs))
    if task.aims is not None:
        # By two of the three objectives, the frontier is what is not dominated within the frontier of all three.
        # Let no design dominate d in the two. Some d' of the frontier of all three is no worse than d in any of
        # them, so in the two it equals d: no vector is missing. A d' that any d dominates in the two is, for the
        # same reason, dominated by one of that frontier: there is none too many. And none comes twice: of d' and
        # d'' that are equal in two objectives one would dominate the other by the third.
        rank = pareto_rank(task.measure(tally))
        best = np.flatnonzero(rank == rank.max())
    ties = [proof.ties[i] for i in best]
    return make_front(
        proof.designs[best], tally.select(best), proof.n_ties[best], ties, task.prices, proof.certificate, task.aims
    )
