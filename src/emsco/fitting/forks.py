"""Designs that branch, where errors have prices: the best chain of each branch, and what says whether it pays.

Money adds up over rows. So the best branched design of a root and a route has the best chain in each branch, and all
roots and routes can be looked at: first by two stages without bars, which is a product of matrices, then the most
promising ones by chains with bars.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.data.encoding import Encoder
from emsco.designs.branched import Branched, Route
from emsco.designs.partition import acquired_sets
from emsco.fitting._money import least_money
from emsco.fitting.money import DEEPEST, Priced, Purse, pick
from emsco.fitting.rehearsal import Rehearsal
from emsco.fitting.routes import branches_of, routes
from emsco.scoring.rejection import RejectRule

Routes = Sequence[tuple[Route, NDArray[np.intp]]]  # with the branch of each sample that judges
_ROOT_UNITS = 2
_PROMISING = 8  # routes, of all roots, for which chains with bars are looked for
_BEGINNINGS = 60  # second stages that a branch begins with
_EXTENDED = 4  # chains that get another stage
_EXTENSIONS = 2
_PASSES = 2
_MOST_CELLS = 1.2e8  # multiplications of the first look
_COMPARED = 400  # chains that are chosen from without a fold
_HOPELESS = 0.5  # standard errors, up to which a gain on the rows that chose is not looked at closer
NEEDED = 2.0  # standard errors, of the gain on the rows that chose and on rows that did not, together


@dataclass(frozen=True, eq=False)
class Fork:
    """A branched design, and what it costs.

    Attributes
    ----------
    route : Route
    rows : ndarray of shape (n_branches, n_units)
        The chain of each branch, whose first stage is the root.
    numbers : ndarray of shape (n_branches, n_stages)
        Numbers of the bars of each stage; 0 beyond the last one.
    branch : ndarray of shape (n_samples,)
        The branch of each sample that judges.
    slots : tuple of list of int
        Numbers of the feature sets of each chain in the purse.
    """

    route: Route
    rows: IntArray
    numbers: IntArray
    branch: NDArray[np.intp]
    slots: tuple[list[int], ...]

    def branched(self, levels: FloatArray) -> Branched:
        """Return the design, with bars as confidences; ``levels`` has those of the numbers."""
        rules = []
        for slots, numbers in zip(self.slots, self.numbers, strict=True):
            early = [(float(levels[number]),) for number in numbers[: len(slots) - 1]]
            rules.append(RejectRule((*early, (0.0,))))
        return Branched(self.rows, self.route, tuple(rules), ("shared",) * len(rules))


@dataclass(frozen=True, eq=False)
class _Root:
    """A root, its routes, and where it may go on."""

    slot: int
    larger: IntArray
    steps: FloatArray
    routes: Routes


class Forks:
    """Looks for branched designs among the feature sets that a purse knows.

    Parameters
    ----------
    purse : Purse
    routes_of : callable
        Routes of a root, (n_units,) -> pairs of a route and the branch of each sample that judges.
    limit : float
        Money of a chain; a root that costs more is not looked at.
    """

    def __init__(self, purse: Purse, routes_of: Callable[[BoolArray], Routes], limit: float) -> None:
        self.purse = purse
        self.sets, self.level, self.price = purse.known()
        self._prices = purse.judge.task.prices
        self._deepest = min(purse.judge.task.max_stages, DEEPEST)
        alone = self._prices.stage_ticks(self.sets[:, None, :])[:, 0] / self._prices.scale
        size = self.sets.sum(axis=1)
        slots = np.flatnonzero((size >= 1) & (size <= _ROOT_UNITS) & (alone < limit))
        self._alone, self._routes_of, self._slots = alone, routes_of, slots[np.argsort(alone[slots], kind="stable")]

    @cached_property
    def roots(self) -> list[_Root]:
        """Roots with routes, the cheapest first, as many as can be looked at."""
        found, cells = [], 0.0
        for slot in self._slots.tolist():
            routes = self._routes_of(self.sets[slot])
            if not routes:
                continue
            larger = np.flatnonzero((self.sets >= self.sets[slot]).all(axis=1))
            n_branches = sum(route.n_branches for route, _ in routes)
            cells += float(n_branches) * larger.size * self.price.shape[1]
            if cells > _MOST_CELLS:
                break
            steps = self._steps([[slot, other] for other in larger.tolist()])[:, 1]
            found.append(_Root(slot, larger, steps, routes))
        return found

    def best(self, samples: NDArray[np.intp]) -> Fork | None:
        """Return the branched design that costs these samples least, None if nothing can be branched."""
        looks = [self._look(root, samples) for root in self.roots]
        totals = [(total, r, i) for r, look in enumerate(looks) for i, total in enumerate(look.tolist())]
        best, least = None, np.inf
        for _, r, i in sorted(totals)[:_PROMISING]:
            fork = self._filled(self.roots[r], i, samples)
            money = float(self.money(fork, samples).sum())
            if money < least - 1e-9:
                best, least = fork, money
        return best

    def money(self, fork: Fork, samples: NDArray[np.intp]) -> FloatArray:
        """Return what each of these samples costs with a branched design."""
        money = np.empty(samples.size)
        for b, slots in enumerate(fork.slots):
            mine = fork.branch[samples] == b
            money[mine] = self.chain_money(slots, fork.numbers[b], samples[mine])
        return money

    def chain_money(self, slots: list[int], numbers: IntArray, samples: NDArray[np.intp]) -> FloatArray:
        """Return what each of these samples costs with a chain of feature sets and its bars."""
        paid = self._steps([slots])[0].cumsum()
        money = np.empty(samples.size)
        waiting = np.ones(samples.size, dtype=np.bool_)
        for j, slot in enumerate(slots):
            leaves = waiting & ((self.level[slot, samples] <= numbers[j]) | (j == len(slots) - 1))
            money[leaves] = paid[j] + self.price[slot, samples[leaves]]
            waiting &= ~leaves
        return money

    def _look(self, root: _Root, samples: NDArray[np.intp]) -> FloatArray:
        """Return what each route costs if each branch goes on to one set, or stops."""
        price = self.price[np.ix_(root.larger, samples)].T
        totals = np.full(len(root.routes), self._alone[root.slot] * samples.size)
        for i, (route, branch) in enumerate(root.routes):
            masks = (branch[samples] == np.arange(route.n_branches)[:, None]).astype(np.float64)
            totals[i] += (masks @ price + masks.sum(axis=1)[:, None] * root.steps).min(axis=1).sum()
        return totals

    def _filled(self, root: _Root, i: int, samples: NDArray[np.intp]) -> Fork:
        """Return the branched design of a route, with the best chain found for each branch."""
        route, branch = root.routes[i]
        chains = [self._chain(root, samples[branch[samples] == b]) for b in range(route.n_branches)]
        deepest = max(len(slots) for slots, _ in chains)
        numbers = np.array([np.pad(bars, (0, deepest - bars.size)) for _, bars in chains])
        rows = np.array([_design(self.sets[slots]) for slots, _ in chains])
        return Fork(route, rows, numbers, branch, tuple(slots for slots, _ in chains))

    def _chain(self, root: _Root, samples: NDArray[np.intp]) -> tuple[list[int], IntArray]:
        """Return the chain from the root on that costs these samples least, and the numbers of its bars."""
        level, price = np.ascontiguousarray(self.level[:, samples]), np.ascontiguousarray(self.price[:, samples])
        costs = root.steps * samples.size + price[root.larger].sum(axis=1)
        order = root.larger[np.argsort(costs, kind="stable")[:_BEGINNINGS]]
        chains = [[root.slot], *([root.slot, int(other)] for other in order if other != root.slot)]
        best, least = (chains[0], np.zeros(1, dtype=np.int64)), np.inf
        for _ in range(1 + _EXTENSIONS):
            numbers, totals = self._least(chains, level, price)
            ranked = np.argsort(totals, kind="stable")
            first = int(ranked[0])
            if totals[first] >= least - 1e-9:
                break
            best, least = (chains[first], numbers[first, : len(chains[first])]), float(totals[first])
            longer = {c for k in ranked[:_EXTENDED] for c in self._extended(chains[k])}
            if not longer:
                break
            chains = [list(c) for c in sorted(longer)]
        return best

    def _least(
        self, chains: list[list[int]], level: NDArray[np.uint8], price: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return the numbers of the best bars of chains, and what all samples cost together."""
        n_stages = np.array([len(chain) for chain in chains])
        slots = np.array([chain + [chain[-1]] * (n_stages.max() - len(chain)) for chain in chains])
        numbers, money = np.zeros(slots.shape, dtype=np.int64), np.empty((len(chains), level.shape[1]))
        least_money(slots, n_stages, self._steps(slots), level, price, self.purse.levels.size, _PASSES, numbers, money)
        return numbers, money.sum(axis=1)

    def _steps(self, chains: Sequence[Sequence[int]] | IntArray) -> FloatArray:
        """Return the price of each stage of chains of feature sets."""
        return np.asarray(self._prices.stage_ticks(self.sets[np.array(chains)]) / self._prices.scale)

    def _extended(self, chain: list[int]) -> list[tuple[int, ...]]:
        """Return a chain with another set before its last one, or one unit more after it."""
        if not 2 <= len(chain) < self._deepest:
            return []
        below, last = self.sets[chain[-2]], self.sets[chain[-1]]
        between = (self.sets >= below).all(axis=1) & (self.sets <= last).all(axis=1)
        between[chain[-2:]] = False
        beyond = (self.sets >= last).all(axis=1) & (self.sets.sum(axis=1) == last.sum() + 1)
        longer = [(*chain[:-1], int(s), chain[-1]) for s in np.flatnonzero(between)]
        return longer + [(*chain, int(s)) for s in np.flatnonzero(beyond)]


def _design(sets: BoolArray) -> IntArray:
    """Return the row of a chain of growing sets."""
    return np.where(sets.any(axis=0), sets.argmax(axis=0), -1)


@dataclass(frozen=True, eq=False)
class Saved:
    """What a branched design saves, beside the chain that was chosen.

    Attributes
    ----------
    seen, unseen : ndarray of shape (n_samples,)
        Saved per sample: of the rows that chose both, and if both are chosen without the fold of the row.
    """

    seen: FloatArray
    unseen: FloatArray

    @property
    def pays(self) -> bool:
        """Whether both save something, and together so many standard errors."""
        seen, unseen = errors_of_gain(self.seen), errors_of_gain(self.unseen)
        return seen > 0 and unseen > 0 and seen + unseen > NEEDED


def routes_of(
    rehearsal: Rehearsal, encoder: Encoder, min_rows: int, wanted: tuple[tuple[int, ...], int | None] = ((), None)
) -> Callable[[BoolArray], Routes]:
    """Return a function of what a root buys: the routes by its values, and the branch of each sample that judges.

    ``wanted`` says what the root must buy, if not anything, and which unit must lead the way, if one must.
    """
    by_unit: dict[int, list[tuple[Route, NDArray[np.intp]]]] = {}
    bought, by = wanted

    def found(units: BoolArray) -> Routes:
        if bought and tuple(np.flatnonzero(units).tolist()) != tuple(sorted(bought)):
            return []
        leading = [unit for unit in np.flatnonzero(units).tolist() if by is None or unit == by]
        for unit in leading:
            if unit not in by_unit:
                roots = routes(
                    rehearsal.table, rehearsal.learn, encoder, rehearsal.prices, min_rows=min_rows, units=(unit,)
                )
                by_unit[unit] = [(root.route, branch_of_samples(root.route, rehearsal)) for root in roots]
        return [pair for unit in leading for pair in by_unit[unit]]

    return found


def branch_of_samples(route: Route, rehearsal: Rehearsal) -> NDArray[np.intp]:
    """Return the branch of each sample that judges; the route reads values."""
    if rehearsal.folds is None:
        assert rehearsal.judges is not None
        return branches_of(route, rehearsal.judges[0])
    branch = branches_of(route, rehearsal.table)
    return np.concatenate([branch[judges] for _, judges in rehearsal.folds])


def errors_of_gain(saved: FloatArray) -> float:
    """Return a mean saving in standard errors."""
    error = float(saved.std()) / np.sqrt(saved.size)
    return float(saved.mean()) / error if error > 0 else 0.0


def find_fork(
    purse: Purse, priced: Priced, chosen: int, routes_of: Callable[[BoolArray], Routes], parts: NDArray[np.intp]
) -> tuple[Fork, Saved] | None:
    """Return the branched design that costs least and what it saves; None if it cannot save anything.

    What it costs on the rows that chose it is too little, as it is the best of many. So the choice is rehearsed: chain
    and branched design are both chosen without each fold, and compared on it.

    Parameters
    ----------
    purse : Purse
    priced : Priced
        Chains.
    chosen : int
        The chain to beat.
    routes_of : callable
    parts : ndarray of shape (n_samples,)
        The fold of each sample that judges.
    """
    if purse.judge.task.max_stages < 2:
        return None
    chain = purse.money(priced.designs[[chosen]])[1][0]
    forks = Forks(purse, routes_of, float(chain.mean()))
    everyone = np.arange(chain.size)
    fork = forks.best(everyone)
    if fork is None:
        return None
    seen = chain - forks.money(fork, everyone)
    if errors_of_gain(seen) <= _HOPELESS:
        return fork, Saved(seen, np.zeros_like(seen))
    unseen = np.zeros_like(seen)
    few = np.argsort(priced.money, kind="stable")[:_COMPARED]
    for part in np.unique(parts):
        chooses, judges = np.flatnonzero(parts != part), np.flatnonzero(parts == part)
        other = forks.best(chooses)
        again = purse.priced(priced.designs[few], samples=chooses)
        own = again.designs[[pick(purse, again, samples=chooses)]]
        acquired, exists = acquired_sets(own)
        numbers = purse.money(own, samples=chooses)[0][0]
        alone = forks.chain_money(purse.rows(acquired[exists]).tolist(), numbers, judges)
        unseen[judges] = alone - (alone if other is None else forks.money(other, judges))
    return fork, Saved(seen, unseen)
