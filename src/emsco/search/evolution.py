"""The evolutionary search of the paper (§3, Algorithm 3)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.designs.operators.elitism import best_first, count_elite, next_size, unique_rows, unique_vectors
from emsco.designs.operators.mutation import mutate
from emsco.designs.operators.recombination import recombine
from emsco.designs.operators.removal import leave_out
from emsco.designs.operators.selection import select
from emsco.designs.partition import compress
from emsco.exceptions import InvalidParameterError
from emsco.scoring.front import Front, make_front
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import Measure, measure
from emsco.scoring.ranking import log_fitness, norm, pareto_rank, selection_probabilities
from emsco.scoring.tally import Tally, join_tallies, pack_tally, restore_tally
from emsco.search.base import (
    INTERRUPTED,
    OUT_OF_TIME,
    Arrays,
    Journal,
    Pace,
    Run,
    Searched,
    TimeUpError,
    affordable,
    pack_generator,
    restore_generator,
)

Evaluate = Callable[[IntArray], Tally]


@dataclass(frozen=True, kw_only=True)
class Evolution:
    """Settings of the evolutionary search; the defaults are the paper's, except ``unique``.

    Parameters
    ----------
    population_size : int
        Designs per generation. With ``unique="vectors"`` it grows for a while if the distinct non-dominated vectors
        fill four fifths of it.
    max_generations : int
        Generations after which the search ends.
    patience : int or None
        It also ends when the fittest design has been the same for so many generations; None: it does not.
    mutation_rate : float
        Probability that a child's feature is reassigned (m_hat).
    recombination_rate : float
        Probability that a child mixes two parents instead of copying one (r_hat).
    elite_fraction : float
        Share of the unique designs that pass unchanged (b); all non-dominated ones always do.
    stage_bias : float
        Preference of mutation for early stages (beta), above 1; at 1, all stages would be equally probable.
    epsilon : float
        How much more than the largest ratio of norms one level of rank weighs.
    init_rate : float or None
        Mutation rate of the one-stage design that makes the first generation; None: ``mutation_rate``, as in the paper.
    unique : "vectors" or "rows"
        Designs that count as different among the elites. "vectors": designs with different objectives, each the
        simplest one. "rows": as published, all different designs. The population then never grows, and the search
        ends when non-dominated designs fill it, because there is no room for children.
    """

    population_size: int = 300
    max_generations: int = 150
    patience: int | None = 20
    mutation_rate: float = 0.075
    recombination_rate: float = 0.8
    elite_fraction: float = 0.2
    stage_bias: float = 2.0
    epsilon: float = 0.01
    init_rate: float | None = None
    unique: str = "vectors"

    def __post_init__(self) -> None:
        for name, least in (("population_size", 2), ("max_generations", 0), ("patience", 1)):
            value = getattr(self, name)
            if name == "patience" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                raise InvalidParameterError(
                    f"must be a whole number of at least {least}; got {value!r}.", parameter=name
                )
        for name in ("mutation_rate", "recombination_rate", "elite_fraction", "init_rate"):
            if name == "init_rate" and self.init_rate is None:
                continue
            if not _is_number(getattr(self, name)) or not 0 <= getattr(self, name) <= 1:
                raise InvalidParameterError(f"must be between 0 and 1; got {getattr(self, name)!r}.", parameter=name)
        if not _is_number(self.epsilon) or not 0 < self.epsilon < np.inf:
            raise InvalidParameterError(f"must be a positive number; got {self.epsilon!r}.", parameter="epsilon")
        if not _is_number(self.stage_bias) or not 1 < self.stage_bias < np.inf:
            raise InvalidParameterError(
                "must be a number above 1, so that mutation prefers early stages (beta > alpha = 1 in the paper); got "
                f"{self.stage_bias!r}.",
                parameter="stage_bias",
            )
        if self.unique not in ("vectors", "rows"):
            raise InvalidParameterError(f"must be 'vectors' or 'rows'; got {self.unique!r}.", parameter="unique")

    @property
    def first_rate(self) -> float:
        """Mutation rate of the first generation."""
        return self.mutation_rate if self.init_rate is None else self.init_rate

    def check(self, task: Task) -> None:
        """Accept any task."""

    def search(self, judge: Judge, run: Run) -> Searched:
        """Evolve designs of the task."""
        task, history = judge.task, run.history

        def on_generation(state: State) -> None:
            n_evaluated = (history[-1][0] if history else 0) + len(state.population) - state.n_elite
            share = state.generation / max(self.max_generations, 1)
            run.note("evolving", share, n_evaluated, state.n_nondominated, judge.cache.n_trained)

        run.begin(self, judge)
        found = evolve(
            judge.tally,
            self,
            n_features=task.prices.n_units,
            max_stages=task.max_stages,
            removal=task.removal,
            rng=run.rng,
            measure=task.measure,
            journal=run.journal,
            on_generation=on_generation,
            pace=run.pace,
        )
        ended = f"{found.ended} after generation {found.n_generations}" if found.ended else ""
        n_steps, timed = max(len(history) - 1, 0), found.ended == OUT_OF_TIME
        return Searched(found.front(task), self, n_steps, judge.cache.n_trained, run.seconds, ended, timed)


@dataclass(frozen=True)
class State:
    """A generation, scored and ranked.

    Attributes
    ----------
    generation : int
    population : ndarray of shape (n_designs, n_features)
    tally : Tally
    rank : ndarray of shape (n_designs,)
    norms : ndarray of shape (n_designs,)
    unique : ndarray
        One row per distinct objective vector, the simplest design, or one per distinct design; fittest first, so that
        the non-dominated ones lead.
    n_nondominated : int
    unchanged : int
        For how many generations the fittest design has been the same.
    n_elite : int
        Leading rows of the population that were carried over from the last generation.
    """

    generation: int
    population: IntArray
    tally: Tally
    rank: NDArray[np.int64]
    norms: FloatArray
    unique: NDArray[np.intp]
    n_nondominated: int
    unchanged: int
    n_elite: int

    @property
    def fittest(self) -> IntArray:
        """The design of highest fitness."""
        row: IntArray = self.population[self.unique[0]]
        return row


@dataclass(frozen=True)
class Found:
    """What a search found: non-dominated designs of distinct vectors, and of each all designs met that share it.

    ``ended`` says why it ended early; it is empty if it did not.
    """

    designs: IntArray
    tally: Tally
    ties: list[IntArray]
    n_generations: int
    ended: str

    def front(self, task: Task) -> Front:
        """Return the front of these designs."""
        n_ties = np.array([len(tied) for tied in self.ties])
        return make_front(self.designs, self.tally, n_ties, self.ties, task.prices, aims=task.aims)


def evolve(
    evaluate: Evaluate,
    settings: Evolution,
    *,
    n_features: int,
    max_stages: int,
    rng: np.random.Generator,
    removal: bool = False,
    on_generation: Callable[[State], None] | None = None,
    journal: Journal | None = None,
    measure: Measure = measure,
    pace: Pace | None = None,
) -> Found:
    """Search the designs of n_features in at most max_stages (Algorithm 3); with removal, they may leave some out.

    With a journal it goes on from the last snapshot of the same search. Ctrl-C ends the search with the last finished
    generation; before the first one it is passed on. With a pace, the last generation has as many children as there is
    time for.
    """
    max_stages = min(max_stages, n_features)
    ties = _Ties()
    state: State | None = None
    ended = ""
    options: dict[str, Any] = {"max_stages": max_stages, "rng": rng, "removal": removal, "measure": measure}
    options["pace"] = pace
    try:
        snapshot = journal.load() if journal else None
        if snapshot is None:
            first = affordable(pace, _initial(settings, n_features, max_stages, rng, removal=removal), first=True)
            state = _ranked(first, evaluate(first), None, settings, n_elite=0, measure=measure)
        else:
            restore_generator(rng, snapshot["rng"])
            ties.restore(snapshot)
            state = step(_restored(snapshot, settings, measure), evaluate, settings, **options)
        while True:
            ties.update(state)
            if on_generation is not None:
                on_generation(state)
            if _converged(state, settings):
                break
            if journal is not None and (pace is None or not pace.cut):
                journal.save(partial(_packed, state, ties, rng))
            state = step(state, evaluate, settings, **options)
    except (KeyboardInterrupt, TimeUpError) as reason:
        if state is None:
            raise
        ended = OUT_OF_TIME if isinstance(reason, TimeUpError) else INTERRUPTED
        ties.update(state)  # it may have been cut short; twice counts no design twice
    best = unique_vectors(state.unique[: state.n_nondominated], state.tally.vectors)
    designs = state.population[best]
    tied = [ties.designs(vector) for vector in state.tally.vectors[best]]
    return Found(designs, state.tally.select(best), tied, state.generation, ended)


def step(
    state: State,
    evaluate: Evaluate,
    settings: Evolution,
    *,
    max_stages: int,
    rng: np.random.Generator,
    removal: bool = False,
    measure: Measure = measure,
    pace: Pace | None = None,
) -> State:
    """Return the next generation: elites, then mutated children of selected parents (Algorithm 3, the loop)."""
    n_elite = _n_elite(state, settings)
    elite = state.population[state.unique[:n_elite]]
    grows = settings.unique == "vectors"
    n_children = (next_size(n_elite, settings.population_size) if grows else settings.population_size) - n_elite
    probabilities = selection_probabilities(log_fitness(state.rank, state.norms, epsilon=settings.epsilon))
    parents = select(probabilities, n_pairs=n_children, rng=rng)
    children = recombine(
        state.population[parents[:, 0]], state.population[parents[:, 1]], rate=settings.recombination_rate, rng=rng
    )
    children = mutate(
        children,
        rate=settings.mutation_rate,
        stage_bias=settings.stage_bias,
        max_stages=max_stages,
        rng=rng,
        removal=removal,
    )
    children = affordable(pace, compress(children))
    if not len(children):
        raise TimeUpError
    tally = join_tallies(state.tally.select(state.unique[:n_elite]), evaluate(children))
    return _ranked(np.concatenate([elite, children]), tally, state, settings, n_elite=n_elite, measure=measure)


def _n_elite(state: State, settings: Evolution) -> int:
    """Return how many designs pass unchanged to the next generation."""
    return count_elite(
        state.unique.size,
        state.n_nondominated,
        elite_fraction=settings.elite_fraction,
        population_size=settings.population_size if settings.unique == "vectors" else None,
    )


def _initial(
    settings: Evolution, n_features: int, max_stages: int, rng: np.random.Generator, *, removal: bool
) -> IntArray:
    one_stage = np.zeros((settings.population_size, n_features), dtype=np.int64)
    designs = mutate(
        one_stage, rate=settings.first_rate, stage_bias=settings.stage_bias, max_stages=max_stages, rng=rng
    )
    return leave_out(designs, rng=rng) if removal else designs


def _ranked(
    population: IntArray, tally: Tally, previous: State | None, settings: Evolution, *, n_elite: int, measure: Measure
) -> State:
    objectives = measure(tally)
    rank = pareto_rank(objectives)
    norms = norm(objectives)
    order = best_first(population, rank, norms)
    by_row = settings.unique == "rows"
    unique = unique_rows(order, population) if by_row else unique_vectors(order, tally.vectors)
    n_nondominated = int((rank[unique] == rank.max()).sum())
    same = previous is not None and np.array_equal(previous.fittest, population[unique[0]])
    return State(
        generation=0 if previous is None else previous.generation + 1,
        population=population,
        tally=tally,
        rank=rank,
        norms=norms,
        unique=unique,
        n_nondominated=n_nondominated,
        unchanged=previous.unchanged + 1 if same and previous is not None else 0,
        n_elite=n_elite,
    )


def _packed(state: State, ties: "_Ties", rng: np.random.Generator) -> Arrays:
    counts = np.array([state.generation, state.unchanged, state.n_elite])
    parts = {"population": state.population, "counts": counts, "rng": pack_generator(rng)}
    return {**parts, **pack_tally(state.tally), **ties.packed()}


def _restored(arrays: Arrays, settings: Evolution, measure: Measure) -> State:
    generation, unchanged, n_elite = arrays["counts"].tolist()
    state = _ranked(arrays["population"], restore_tally(arrays), None, settings, n_elite=n_elite, measure=measure)
    return replace(state, generation=generation, unchanged=unchanged)


class _Ties:
    """The designs met so far of each vector that nothing beats yet."""

    def __init__(self) -> None:
        self._met: dict[bytes, set[bytes]] = {}

    def update(self, state: State) -> None:
        """Add the new designs of a generation; forget the vectors it beats."""
        vectors = state.tally.vectors
        best = [vectors[i].tobytes() for i in state.unique[: state.n_nondominated]]
        self._met = {vector: self._met.get(vector, set()) for vector in best}
        new = np.flatnonzero(state.rank[state.n_elite :] == state.rank.max()) + state.n_elite
        for i in new:
            self._met[vectors[i].tobytes()].add(state.population[i].tobytes())

    def packed(self) -> Arrays:
        """Return all of it as arrays."""
        met = [b"".join(sorted(designs)) for designs in self._met.values()]
        return {
            "tie_vectors": np.frombuffer(b"".join(self._met), dtype=np.int64),
            "tie_sizes": np.array([len(designs) for designs in met]),
            "tie_designs": np.frombuffer(b"".join(met), dtype=np.int64),
        }

    def restore(self, arrays: Arrays) -> None:
        """Take all of it from arrays."""
        vectors = arrays["tie_vectors"].reshape(len(arrays["tie_sizes"]), -1)
        ends = np.cumsum(arrays["tie_sizes"])
        designs = arrays["tie_designs"].tobytes()
        width = 8 * arrays["population"].shape[1]
        for vector, size, end in zip(vectors, arrays["tie_sizes"].tolist(), ends.tolist(), strict=True):
            self._met[vector.tobytes()] = {designs[i : i + width] for i in range(end - size, end, width)}

    def designs(self, vector: IntArray) -> IntArray:
        """Return the designs with this vector that were met, the simplest first."""
        met = self._met[vector.tobytes()]
        rows = np.frombuffer(b"".join(met), dtype=np.int64).reshape(len(met), -1)
        same = np.zeros(len(met))
        return rows[best_first(rows, same.astype(np.int64), same)]


def _converged(state: State, settings: Evolution) -> bool:
    if settings.unique == "rows" and _n_elite(state, settings) >= settings.population_size:
        return True  # there is no room for children
    return state.generation >= settings.max_generations or (
        settings.patience is not None and state.unchanged >= settings.patience
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
