"""Best-first search: chains or a short evolution, then the neighbours of good designs, those of the best first.

The distinct objective vectors met are peeled into non-dominated levels, and not only the best level is expanded: on the
way from one design of the frontier to the next there are dominated ones. No neighbour is looked at twice. A space that
fits the budget is enumerated instead.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.designs.operators.elitism import best_first
from emsco.designs.operators.neighbours import far_swaps, jumps, near_swaps, steps
from emsco.designs.operators.removal import leave_out
from emsco.designs.partition import all_designs, compress, has_at_most
from emsco.exceptions import InvalidParameterError
from emsco.scoring.judge import Judge, Task
from emsco.scoring.objectives import Measure, measure
from emsco.scoring.ranking import pareto_rank
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
from emsco.search.chains import cuts, orders
from emsco.search.evolution import Evaluate, Evolution, Found, evolve

_BATCH = 2_000  # designs evaluated at once, about; levels are peeled once a batch
_FOCUSED_BATCH = 300  # fewer at a time climb higher
_GENERATION = 300
_INIT_RATE = 0.5  # of the generations it starts from: designs of many stages
CHAINS = "chains"
_NEAR = 15  # features, up to which random designs are a start as good as any
Score = Callable[[Tally], FloatArray]
_NEIGHBOURHOODS = (steps, near_swaps, far_swaps, jumps)


@dataclass(frozen=True, kw_only=True)
class BestFirst:
    """Settings of the best-first search.

    Parameters
    ----------
    max_designs : int
        Designs evaluated, after which the search ends.
    patience : int or None
        It also ends when so many designs in a row have added nothing to the frontier; None: it does not.
    start : int, "chains" or None
        What it starts from, with no more than half of the designs. "chains": the designs that buy features in the order
        of what each adds to those before. A number: so many generations of the paper's evolution; 0: random designs.
        None: with more than 15 features, from where on random designs are far from the frontier, "chains", or as many
        generations as features if ``estimator`` is set, with which chains take long; else 0.
    pool_size : int
        Distinct objective vectors remembered for expansion, the best levels first.
    max_level : int or None
        Designs of higher non-dominated levels are not expanded; 0: only non-dominated ones are. None: no limit.
    swap_delay : int or None
        How many levels later than the steps of a design its exchanges of two features are looked at; twice as many if
        their stages are not side by side. None: never. Where features may be left out, doing so in another stage than
        the last waits as long as an exchange.
    focus : float
        Share of the designs that are neighbours of those with the best combined score, however much of the frontier
        is elsewhere; 0: none.
    """

    max_designs: int = 90_000
    patience: int | None = 15_000
    start: int | str | None = None
    pool_size: int = 5_000
    max_level: int | None = None
    swap_delay: int | None = 6
    focus: float = 0.0

    def __post_init__(self) -> None:
        least_of = {"max_designs": 1, "patience": 1, "start": 0, "pool_size": 1, "max_level": 0, "swap_delay": 0}
        for name, least in least_of.items():
            value = getattr(self, name)
            if value is None and name not in ("max_designs", "pool_size"):
                continue
            if name == "start" and isinstance(value, str) and value == CHAINS:
                continue
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
                other = f", or {CHAINS!r}" if name == "start" else ""
                raise InvalidParameterError(
                    f"must be a whole number of at least {least}{other}; got {value!r}.", parameter=name
                )
        number = isinstance(self.focus, int | float | np.integer | np.floating) and not isinstance(self.focus, bool)
        if not number or not 0 <= self.focus <= 1:
            raise InvalidParameterError(f"must be a share between 0 and 1; got {self.focus!r}.", parameter="focus")

    def check(self, task: Task) -> None:
        """Accept any task."""

    def search(self, judge: Judge, run: Run) -> Searched:
        """Search designs of the task, the neighbours of the best first."""
        task = judge.task

        def on_batch(pool: Pool) -> None:
            n_best = int((pool.leads & (pool.level == 0)).sum())
            run.note("searching", pool.n_evaluated / self.max_designs, pool.n_evaluated, n_best, judge.cache.n_trained)

        run.begin(self, judge)
        found = search_best_first(
            judge.tally,
            self,
            n_features=task.prices.n_units,
            max_stages=task.max_stages,
            removal=task.removal,
            rng=run.rng,
            measure=task.measure,
            journal=run.journal,
            on_batch=on_batch,
            score=task.score,
            chains=partial(_chains, judge, run) if judge.fast or self.start == CHAINS else None,
            pace=run.pace,
        )
        ended = f"{found.ended} after {run.history[-1][0]:,} designs" if found.ended else ""
        n_steps, timed = len(run.history), found.ended == OUT_OF_TIME
        return Searched(found.front(task), self, n_steps, judge.cache.n_trained, run.seconds, ended, timed)


def _chains(judge: Judge, run: Run, most: int) -> IntArray:
    """Return up to so many designs that buy in the orders in which units are worth it."""
    task = judge.task
    found = orders(judge.sureness, task.prices) if run.pace is None else run.pace.orders()
    limits: dict[str, Any] = {"max_stages": task.max_stages, "removal": task.removal}
    limits["most"] = max(most // len(found), 1)
    return np.unique(np.concatenate([cuts(order, **limits) for order in found]), axis=0)


@dataclass(frozen=True)
class Pool:
    """What a search remembers after a batch.

    Attributes
    ----------
    designs : ndarray of shape (n_pooled, n_features)
        Of non-dominated vectors all designs met, of others the first.
    tally : Tally
    level : ndarray of shape (n_pooled,)
        Non-dominated level of each design; 0 is the best.
    leads : ndarray of shape (n_pooled,)
        Whether the design is the first met of its vector: those are expanded.
    expanded : ndarray of shape (n_pooled, n_neighbourhoods)
        Which neighbourhoods were looked at.
    n_batches, n_evaluated : int
    n_unchanged : int
        Designs evaluated since the frontier changed.
    n_focused : int
        Designs evaluated because they are near the best score.
    """

    designs: IntArray
    tally: Tally
    level: IntArray
    leads: BoolArray
    expanded: BoolArray
    n_batches: int
    n_evaluated: int
    n_unchanged: int
    n_focused: int = 0


def search_best_first(
    evaluate: Evaluate,
    settings: BestFirst,
    *,
    n_features: int,
    max_stages: int,
    rng: np.random.Generator,
    removal: bool = False,
    on_batch: Callable[[Pool], None] | None = None,
    journal: Journal | None = None,
    measure: Measure = measure,
    score: Score | None = None,
    chains: Callable[[int], IntArray] | None = None,
    pace: Pace | None = None,
) -> Found:
    """Search the designs of n_features in at most max_stages; with removal, they may leave some out.

    With ``score``, a share of the designs is looked for where it is highest. ``chains`` gives up to so many designs to
    start from; without it, an evolution of as many generations as there are features takes their place.

    With a journal it goes on from the last snapshot of the same search. Ctrl-C ends the search with the last finished
    batch; before the first one it is passed on. With a pace, the last batch is as large as there is time for.
    """
    max_stages = min(max_stages, n_features)
    queue = _Queue(settings, n_features, max_stages, rng, removal=removal, score=score)
    pool: Pool | None = None
    ended = ""

    def evaluate_and_pool(designs: IntArray) -> Tally:
        nonlocal pool
        tally = evaluate(designs)
        new = queue.mark(designs)
        pool = _joined(pool, designs[new], tally.select(new), settings, n_evaluated=len(designs), measure=measure)
        pool = replace(pool, n_focused=pool.n_focused + queue.focused * len(designs))
        if on_batch is not None:
            on_batch(pool)
        return tally

    try:
        snapshot = journal.load() if journal else None
        if snapshot is not None:
            pool = _restored(snapshot)
            queue.restore(snapshot)
        start: int | str = (CHAINS if n_features > _NEAR else 0) if settings.start is None else settings.start
        if isinstance(start, str):
            start = n_features if chains is None else 0
            if chains is not None and not queue.enumerates and pool is None:
                evaluate_and_pool(affordable(pace, chains(settings.max_designs // 2), first=True))
        n_generations = min(start, settings.max_designs // (2 * _GENERATION))
        if n_generations > 1 and not queue.enumerates and pool is None:
            evolution = Evolution(
                population_size=_GENERATION, max_generations=n_generations - 1, patience=None, init_rate=_INIT_RATE
            )
            size: dict[str, Any] = {"n_features": n_features, "max_stages": max_stages, "removal": removal}
            ended = evolve(evaluate_and_pool, evolution, **size, rng=rng, measure=measure, pace=pace).ended
        while not ended and len(batch := queue.next(pool)):
            if not len(batch := affordable(pace, batch, first=pool is None)):
                raise TimeUpError
            evaluate_and_pool(batch)
            if journal is not None and pool is not None and (pace is None or not pace.cut):
                journal.save(partial(_packed, pool, queue))
    except (KeyboardInterrupt, TimeUpError) as reason:
        ended = OUT_OF_TIME if isinstance(reason, TimeUpError) else INTERRUPTED
        if pool is None:
            raise
    assert pool is not None  # the first batch is not empty
    return _found(pool, ended)


class _Queue:
    """Gives the designs to evaluate next, none that was met before."""

    def __init__(
        self,
        settings: BestFirst,
        n_features: int,
        max_stages: int,
        rng: np.random.Generator,
        *,
        removal: bool,
        score: Score | None,
    ) -> None:
        self._removal = removal
        self._score = score
        self.focused = False  # whether the batch given last is near the best score
        self._settings = settings
        self._n_features = n_features
        self._max_stages = max_stages
        self._rng = rng
        self._seen: set[bytes] = set()
        self._sizes = np.full(len(_NEIGHBOURHOODS), 4.0 * n_features)  # designs in a neighbourhood, as last seen
        later = np.inf if settings.swap_delay is None else settings.swap_delay
        self._delays = np.array([0, later, 2 * later, later if removal else np.inf])
        self.enumerates = has_at_most(settings.max_designs, n_features, max_stages, removal=removal)
        self._rest = np.empty((0, n_features), np.int64)
        if self.enumerates:
            self._rest = all_designs(n_features, max_stages, removal=removal)

    def next(self, pool: Pool | None) -> IntArray:
        """Return new designs: neighbours of pooled ones, random ones where all are expanded; none at the end."""
        settings = self._settings
        if self.enumerates:
            batch, self._rest = np.split(self._rest, [_BATCH])
            return batch
        if pool is None:
            return self._new_among(self._random(25 * self._n_features))[: settings.max_designs]
        n_left = settings.max_designs - pool.n_evaluated
        if settings.patience is not None and pool.n_unchanged >= settings.patience:
            n_left = 0
        self.focused = self._score is not None and pool.n_focused < settings.focus * pool.n_evaluated
        while n_left > 0 and (places := self._next_places(pool)).size:
            batch = self._new_among(self._neighbours(pool, places))
            if len(batch):
                return batch[:n_left]
        return self._new_among(self._random(_BATCH))[: max(n_left, 0)]

    def mark(self, designs: IntArray) -> NDArray[np.intp]:
        """Return the rows not met before, each design once, and remember them."""
        keys = _keys(designs)
        new = self._first_rows(keys)
        self._seen.update(keys[i] for i in new)
        return np.array(new, dtype=np.intp)

    def packed(self) -> Arrays:
        """Return what was met, and the state of the generator, as arrays."""
        seen = np.frombuffer(b"".join(sorted(self._seen)), dtype=np.uint16)
        return {"seen": seen, "sizes": self._sizes, "rng": pack_generator(self._rng)}

    def restore(self, arrays: Arrays) -> None:
        """Take all of it from arrays."""
        self._sizes = arrays["sizes"]
        seen, width = arrays["seen"].tobytes(), 2 * self._n_features
        self._seen = {seen[i : i + width] for i in range(0, len(seen), width)}
        self._rest = self._rest[len(self._seen) :]
        restore_generator(self._rng, arrays["rng"])

    def _next_places(self, pool: Pool) -> NDArray[np.intp]:
        """Return the places in ``pool.expanded`` to expand now: least level plus delay first, the order else random."""
        urgency = pool.level[:, None] + self._delays
        if self.focused and self._score is not None:
            order = np.argsort(-self._score(pool.tally), kind="stable")
            place = np.empty(order.size)
            place[order] = np.arange(order.size)
            urgency = place[:, None] + self._delays
        priority = np.where(pool.expanded | ~pool.leads[:, None], np.inf, urgency)
        if self._settings.max_level is not None:
            priority[pool.level > self._settings.max_level] = np.inf
        places = np.flatnonzero(np.isfinite(priority))
        places = places[np.lexsort((self._rng.random(places.size), priority.ravel()[places]))]
        n_children = np.cumsum(self._sizes[places % len(_NEIGHBOURHOODS)])
        return places[: int(np.searchsorted(n_children, _FOCUSED_BATCH if self.focused else _BATCH)) + 1]

    def _neighbours(self, pool: Pool, places: NDArray[np.intp]) -> IntArray:
        """Expand designs of the pool, and mark it; of more neighbours of a kind than a batch take a sample."""
        rows, kinds = np.divmod(places, len(_NEIGHBOURHOODS))
        pool.expanded[rows, kinds] = True
        parts = []
        for kind in np.unique(kinds):
            parents = rows[kinds == kind]
            near = partial(steps, removal=self._removal) if kind == 0 else _NEIGHBOURHOODS[kind]
            children = near(pool.designs[parents], self._max_stages)
            self._sizes[kind] = max(len(children) / parents.size, 1)
            if len(children) > _BATCH:
                children = self._rng.choice(children, _BATCH, replace=False)
            parts.append(children)
        return np.concatenate(parts)

    def _random(self, n_designs: int) -> IntArray:
        designs = compress(self._rng.integers(self._max_stages, size=(n_designs, self._n_features)))
        return leave_out(designs, rng=self._rng) if self._removal else designs

    def _new_among(self, designs: IntArray) -> IntArray:
        return designs[self._first_rows(_keys(designs))]

    def _first_rows(self, keys: list[bytes]) -> list[int]:
        first: dict[bytes, int] = {}
        for i, key in enumerate(keys):
            if key not in self._seen:
                first.setdefault(key, i)
        return list(first.values())


def _keys(designs: IntArray) -> list[bytes]:
    packed = designs.astype(np.uint16)
    keys: list[bytes] = packed.view(np.dtype((np.void, packed.itemsize * packed.shape[1])))[:, 0].tolist()
    return keys


def _joined(
    pool: Pool | None, designs: IntArray, tally: Tally, settings: BestFirst, *, n_evaluated: int, measure: Measure
) -> Pool:
    """Return the pool with the new designs of a batch added: ranked anew, and cut to the best vectors."""
    n_new = len(designs)
    expanded = np.zeros((n_new, len(_NEIGHBOURHOODS)), dtype=np.bool_)
    if pool is not None:
        designs = np.concatenate([pool.designs, designs])
        tally = join_tallies(pool.tally, tally)
        expanded = np.concatenate([pool.expanded, expanded])
    first, number = _distinct(tally.vectors)
    rank = pareto_rank(measure(tally.select(first)))
    levels = rank.max() - rank
    worst = np.sort(levels)[min(settings.pool_size, levels.size) - 1]
    level = levels[number]
    leads = np.zeros(len(designs), dtype=np.bool_)
    leads[first] = True
    kept = np.flatnonzero((level == 0) | (leads & (level <= worst)))
    n_before = len(designs) - n_new
    changed = bool((leads[n_before:] & (level[n_before:] == 0)).any())
    return Pool(
        designs[kept],
        tally.select(kept),
        level[kept],
        leads[kept],
        expanded[kept],
        n_batches=1 if pool is None else pool.n_batches + 1,
        n_evaluated=n_evaluated if pool is None else pool.n_evaluated + n_evaluated,
        n_unchanged=0 if pool is None or changed else pool.n_unchanged + n_evaluated,
        n_focused=0 if pool is None else pool.n_focused,
    )


def _packed(pool: Pool, queue: _Queue) -> Arrays:
    counts = np.array([pool.n_batches, pool.n_evaluated, pool.n_unchanged, pool.n_focused])
    parts = {"designs": pool.designs, "level": pool.level, "leads": pool.leads, "expanded": pool.expanded}
    return {**parts, "counts": counts, **pack_tally(pool.tally), **queue.packed()}


def _restored(arrays: Arrays) -> Pool:
    level, leads, expanded = (arrays[name] for name in ("level", "leads", "expanded"))
    return Pool(arrays["designs"], restore_tally(arrays), level, leads, expanded, *arrays["counts"].tolist())


def _distinct(vectors: IntArray) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the first row of each distinct vector, and the number of the vector of each row."""
    order = np.lexsort(vectors.T)
    differs = np.ones(len(vectors), dtype=np.bool_)
    differs[1:] = (vectors[order[1:]] != vectors[order[:-1]]).any(axis=1)
    number = np.empty(len(vectors), dtype=np.intp)
    number[order] = np.cumsum(differs) - 1
    return order[differs], number


def _found(pool: Pool, ended: str) -> Found:
    best = np.flatnonzero(pool.level == 0)
    same = np.zeros(best.size)
    best = best[best_first(pool.designs[best], same.astype(np.int64), same)]
    first, number = _distinct(pool.tally.vectors[best])
    ties: list[Any] = [pool.designs[best[number == i]] for i in range(first.size)]
    return Found(pool.designs[best[first]], pool.tally.select(best[first]), ties, pool.n_batches, ended)
