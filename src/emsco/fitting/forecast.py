"""How long the phases of a fit will take: from counts of what they do, and from how long that has taken so far.

The numbers in here are those of feature sets, designs and points that fits of our benchmarks needed. What a fit finds
does not depend on them, unless it has a time limit.
"""

from dataclasses import dataclass
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray
from emsco.designs.partition import has_at_most
from emsco.fitting.timing import Timing
from emsco.prices.prices import PriceList
from emsco.scoring.judge import Task
from emsco.search.bestfirst import BestFirst
from emsco.search.chains import MOST_LOOKED_FOR, n_orders
from emsco.search.evolution import Evolution
from emsco.search.exact.proof import Exact, estimate_seconds

_BOTH = 1.6  # feature sets of two orders, in those of one
_NEIGHBOURS = 0.08  # feature sets that a design of a best-first search adds to those known, nearly all of all features
_MOST_NEIGHBOURS = 450
_RANDOM = 3.0  # feature sets of a random design
_CHILDREN, _GENERATIONS = 90, 60  # feature sets of a generation, and generations, of an evolution
_PER_DESIGN = 1.2e-4  # seconds that it takes to compare a design, apart from its feature sets
_ASKED = 5  # feature sets that a slow learner is asked of for each place in an order
_MERGED, _FEW_MERGED = 12_000, 1_500  # designs that are made of those of logistic, and of slower stages
_PROMISING, _FEW_PROMISING = 900, 120  # of these, designs whose thresholds are all looked at
_CHOOSING = 0.6  # share of these that there are in most fits
_FEW_UNITS = 25  # of which slower stages have few designs
_POINTS = 1_000
WIDE = 100  # units, which are many
_FEWEST_PLACED, _PLACED_OF_MANY = 10, 12
_FRONT_SETS = 60  # feature sets of a front of logistic stages
_ON_FRONT = 0.35  # share of the feature sets of final stages that is on the front, in time to train


def n_placed(n_sets: int, n_units: int) -> int:
    """Return how many units get their place in an order, if so many feature sets are trained: a third, but not few."""
    return max(n_sets // 3, _FEWEST_PLACED if n_units <= WIDE else _PLACED_OF_MANY)


def typical_sets(n_units: int, sizes: NDArray[Any]) -> BoolArray:
    """Return feature sets of these sizes, of units from everywhere."""
    sets = np.zeros((len(sizes), n_units), dtype=np.bool_)
    for row, size in zip(sets, sizes, strict=True):
        row[np.linspace(0, n_units - 1, max(round(float(size)), 1)).round().astype(np.intp)] = True
    return sets


def ordering_seconds(timing: Timing, prices: PriceList, most: int = MOST_LOOKED_FOR) -> float:
    """Return how long it takes to order units by a learner."""
    sizes = np.arange(1, min(most, prices.n_units) + 1)
    times = _BOTH if n_orders(prices) > 1 else 1.0
    each = timing.seconds(typical_sets(prices.n_units, sizes))
    return times * float((each * (prices.n_units - sizes + 1)).sum())


def search_seconds(search: Any, task: Task, timing: Timing, *, fast: bool) -> float:
    """Return how long a search takes."""
    n_units = task.prices.n_units
    half, everything = timing.seconds(typical_sets(n_units, np.array([n_units / 2, n_units])))
    n_all = math.ldexp(1.0, min(n_units, 1_000)) - 1
    if isinstance(search, Exact):
        size = {"n_units": n_units, "max_stages": task.max_stages, "n_samples": task.y.size, "n_jobs": timing.n_jobs}
        return float(n_all * half + estimate_seconds(**size, removal=task.removal))
    if isinstance(search, Evolution):
        n_generations = min(search.max_generations, _GENERATIONS)
        n_sets = min(_RANDOM * search.population_size / 2 + _CHILDREN * n_generations, n_all)
        return float(n_sets * half + _PER_DESIGN * search.population_size * n_generations)
    assert isinstance(search, BestFirst)
    n_designs = search.max_designs
    if has_at_most(n_designs, n_units, task.max_stages, removal=task.removal):
        return float(n_all * half + _PER_DESIGN * n_designs)
    start = min(_RANDOM * min(25 * n_units, n_designs), n_all) * half
    if search.start == 0:
        start = 0.0
    elif fast and n_units > 15:
        start = ordering_seconds(timing, task.prices)
    n_neighbours = min(_NEIGHBOURS * n_designs, _MOST_NEIGHBOURS, n_all / 3)
    return float(start + n_neighbours * everything + _PER_DESIGN * n_designs)


@dataclass(frozen=True, eq=False)
class Final:
    """Final stages, as far as they take time.

    Attributes
    ----------
    timing : Timing
        Of their feature sets.
    asked : Timing
        Of the feature sets by which units are ordered.
    n_sets : int
        Feature sets of all stages.
    n_placed : int
        Units whose place in an order is looked for.
    n_samples : int
        Rows that judge.
    """

    timing: Timing
    asked: Timing
    n_sets: int
    n_placed: int
    n_samples: int


def forecast(
    task: Task, search: Any, timing: Timing, *, fast: bool, final: Final | None = None, chance: float = 1.0
) -> dict[str, float]:
    """Return how long the phases from the search on will take.

    Parameters
    ----------
    task : Task
    search : Search
        The one that was picked.
    timing : Timing
        Of the learner of the search.
    fast : bool
        Whether that trains in batches.
    final : Final or None
        Final stages of another learner.
    chance : float
        How probable they are.
    """
    searching = search_seconds(search, task, timing, fast=fast)
    phases = {"searching": searching} | _concluded(task, timing, task.y.size, slow=not fast)
    if final is None:
        return phases
    prices, n_units = task.prices, task.prices.n_units
    asked = final.asked.seconds(typical_sets(n_units, np.arange(1, min(final.n_placed, n_units) + 1)))
    finals = _concluded(task, final.timing, final.n_samples, slow=True, n_sets=_ON_FRONT * final.n_sets)
    finals["ordering features"] = float(n_orders(prices) * _ASKED * asked.sum())
    finals["training the final stages"] = final.n_sets * typical_seconds(final.timing, n_units)
    return {"searching": phases["searching"]} | {
        phase: chance * finals.get(phase, 0.0) + (1 - chance) * phases.get(phase, 0.0)
        for phase in phases | finals
        if phase != "searching"
    }


def _concluded(
    task: Task, timing: Timing, n_samples: int, *, slow: bool, n_sets: float = _FRONT_SETS
) -> dict[str, float]:
    """Return how long it takes to choose thresholds, count points and train their models."""
    half = typical_sets(task.prices.n_units, np.array([task.prices.n_units / 2]))
    training = n_sets * float(timing.model_seconds(half)[0]) + _POINTS * point_seconds(n_samples)
    if not task.tunes:
        return {"training the front": training}
    few = slow and task.prices.n_units <= _FEW_UNITS
    n_merged = min(_FEW_MERGED if few else _MERGED, max(2**26 // n_samples, 250))
    n_promising = min(_FEW_PROMISING if few else _PROMISING, max(5 * 10**6 // n_samples, 60))
    walking, counting = walking_seconds(n_samples, n_merged), n_promising * counting_seconds(n_samples)
    choosing = _CHOOSING * (walking + _PER_DESIGN * n_merged + counting)
    return {"choosing thresholds": choosing, "training the front": training}


def walking_seconds(n_samples: int, n_designs: int) -> float:
    """Return how long it takes to compare designs with buying everything, at all thresholds."""
    return 0.02 + n_designs * (2e-5 + 1.3e-7 * n_samples)


def counting_seconds(n_samples: int) -> float:
    """Return how long it takes to count a design at all thresholds."""
    return 1e-3 + 1.2e-6 * n_samples


def point_seconds(n_samples: int) -> float:
    """Return how long it takes to count a point of the front by class."""
    return 7e-4 + 1.5e-7 * n_samples


def typical_seconds(timing: Timing, n_units: int) -> float:
    """Return how long a feature set of a third of all units takes, as a design of the front has."""
    return float(timing.seconds(typical_sets(n_units, np.array([n_units / 3])))[0])
