"""The proof where errors have prices: all non-dominated pairs of money for tests and money for errors.

What a design will cost from a stage on depends only on the units it owns and on the rows that wait. Both kinds of
money add up over rows. So of all beginnings that own the same units, have the same rows waiting and the same number of
stages, only those matter that no other one beats in both kinds of money.
"""

from dataclasses import dataclass
from math import inf
from time import perf_counter

import numpy as np

from emsco.arrays import BoolArray, IntArray
from emsco.designs.partition import count_solutions
from emsco.exceptions import SpaceTooLargeError
from emsco.prices.prices import to_ticks
from emsco.scoring.certificate import Certificate
from emsco.scoring.judge import Judge

_MOST_UNITS = 10

Chain = tuple[int, ...]  # sets of units, as numbers, stage by stage
Money = tuple[int, int]  # ticks for tests, ticks for errors
Beginning = tuple[int, int]  # the rows that wait, as bits, and the number of stages


def check_few_units(n_units: int) -> None:
    """Raise if there are too many units for a proof."""
    if n_units > _MOST_UNITS:
        raise SpaceTooLargeError(
            f"{n_units} features are too many for an exact search where errors have prices; the limit is "
            f"{_MOST_UNITS}. Buy features together as one unit, or leave search=None."
        )


@dataclass(frozen=True, eq=False)
class MoneyProof:
    """Designs of all non-dominated pairs, and what was done to find them."""

    designs: IntArray
    certificate: Certificate


@dataclass(frozen=True)
class _Set:
    """What a set of units makes of the rows: who leaves before the last stage, and whose label costs how much."""

    leaves: int
    priced: tuple[tuple[int, int], ...]  # ticks, and the rows whose label costs so many

    def loss(self, rows: int) -> int:
        return sum(ticks * (rows & those).bit_count() for ticks, those in self.priced)


def prove_money(judge: Judge, *, deadline: float = inf, started: float | None = None) -> MoneyProof:
    """Return a design of each non-dominated pair; all of them, unless the time is up."""
    task = judge.task
    started = perf_counter() if started is None else started
    n_units, full = task.prices.n_units, 2**task.prices.n_units - 1
    sets = _sets(judge)
    units: BoolArray = ((np.arange(full + 1)[:, None] >> np.arange(n_units)) & 1).astype(np.bool_)
    everyone = (1 << task.y.size) - 1
    begun: list[dict[Beginning, dict[Money, Chain]]] = [{} for _ in sets]
    begun[0][everyone, 0] = {(0, 0): ()}
    ended: dict[Money, Chain] = {(0, sets[0].loss(everyone)): ()} if task.removal else {}
    n_walked, timed_out = len(ended), False
    for owned in sorted(range(full), key=int.bit_count):
        if not begun[owned]:
            continue
        larger = [s for s in range(full + 1) if s & owned == owned and s != owned]
        steps = task.prices.stage_ticks(np.stack([np.tile(units[owned], (len(larger), 1)), units[larger]], axis=1))
        for s, price in zip(larger, steps[:, 1].tolist(), strict=True):
            for (waiting, n_stages), beginnings in begun[owned].items():
                paid, gone = price * waiting.bit_count(), sets[s].leaves & waiting
                at_last, early = sets[s].loss(waiting), sets[s].loss(gone)
                for (tests, errors), chain in beginnings.items():
                    n_walked += 1
                    if task.removal or s == full:
                        _add(ended, (tests + paid, errors + at_last), (*chain, s))
                    if s == full or n_stages + 1 >= task.max_stages:
                        continue
                    if gone == waiting:  # whatever comes later, nobody pays for it
                        _add(ended, (tests + paid, errors + early), (*chain, s) if task.removal else (*chain, s, full))
                        continue
                    there = begun[s].setdefault((waiting & ~gone, n_stages + 1), {})
                    _add(there, (tests + paid, errors + early), (*chain, s))
        begun[owned] = {}
        if perf_counter() > deadline:
            timed_out = True
            break
    n_designs = count_solutions(n_units, task.max_stages, removal=task.removal) + task.removal
    if not ended:
        ended[0, 0] = (full,)
    designs = np.array([_design(chain, n_units) for chain in ended.values()])
    n_ruled_out = 0 if timed_out else n_designs - min(n_walked, n_designs)
    seconds = perf_counter() - started
    return MoneyProof(designs, Certificate(n_designs, n_walked, n_ruled_out, seconds, proven=not timed_out))


def _sets(judge: Judge) -> list[_Set]:
    """Return what every set of units makes of the rows, the empty one first."""
    task = judge.task
    assert task.errors is not None
    ticks = to_ticks(np.column_stack([task.errors.matrix, task.errors.rejected]))[0]
    n_units, bar = task.prices.n_units, task.rule.bars[0][0]
    units = ((np.arange(2**n_units)[:, None] >> np.arange(n_units)) & 1).astype(np.bool_)
    found = []
    step = max(min(judge.cache.capacity, 256), 1)
    for i in range(0, len(units), step):
        outcomes = judge.cache.outcomes(units[i : i + step])
        for confidence, label in zip(outcomes.confidence, outcomes.label, strict=True):
            price = ticks[task.y, label]
            priced = tuple((int(p), _bits(price == p)) for p in np.unique(price))
            found.append(_Set(_bits(confidence >= bar), priced))
    return found


def _bits(rows: BoolArray) -> int:
    return int.from_bytes(np.packbits(rows, bitorder="little").tobytes(), "little")


def _add(found: dict[Money, Chain], money: Money, chain: Chain) -> None:
    """Add a pair unless another one is at least as good in both; drop those that it beats."""
    if any(tests <= money[0] and errors <= money[1] for tests, errors in found):
        return
    for other in [other for other in found if money[0] <= other[0] and money[1] <= other[1]]:
        del found[other]
    found[money] = chain


def _design(chain: Chain, n_units: int) -> list[int]:
    """Return the design that owns these sets, stage by stage."""
    design = [-1] * n_units
    for stage, owned in enumerate(chain):
        for unit in range(n_units):
            if owned >> unit & 1 and design[unit] < 0:
                design[unit] = stage
    return design
