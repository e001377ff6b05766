"""What the stage costs that leads from one set of units to a larger one, and the most that the way to all costs."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray

Array = Any  # numba sees concrete arrays


class Steps(NamedTuple):
    """What the stage costs that leads from one set to a larger one.

    Attributes
    ----------
    ticks : ndarray of shape (n_sets,)
        Of each set, the sum of its prices, shared costs included; in parallel, the largest of its own prices.
    of_rest : ndarray of shape (n_sets,)
        What the stage costs that leads from each set to everything; 0 from everything, and where a chain may just end.
    overhead : int
        What each stage costs besides.
    parallel : bool
    members, shared : ndarray of shape (n_groups,)
        In parallel: the set of units of each group, and the cost they share.

    Notes
    -----
    Write c(A, B) for the cost of the stage from A to B, a larger set. The bounds of the search are three facts of it.

    1. c(A, B) >= min over units u not in A of c(A, A + u). The sum of prices grows with B; the largest price of some
       units is at least the least of all.
    2. c(A, B) + c(B, C) >= c(A, C): two stages cost no less than one. Sums are equal, and overhead is paid twice. In
       parallel let u attain c(A, C). If the stage that buys u opens its group, or A has opened it, that stage costs as
       much. Else u is bought in the second stage for its own price at least, and the first one, which opened the group,
       has cost the shared cost at least.
    3. From A to everything in r stages costs at most r overheads and, for sums, c(A, everything) without overhead; in
       parallel the r largest own prices outside of A and the r largest shared costs of groups that A has not opened:
       the units by which the stages are charged differ, and so do the groups that they open.
    """

    ticks: Array
    of_rest: Array
    overhead: int
    parallel: bool
    members: Array
    shared: Array

    def price(self, before: int, owned: int) -> int:
        """Return what the stage costs that leads from one set to a larger one."""
        if not self.parallel:
            return int(self.ticks[owned] - self.ticks[before]) + self.overhead
        new = owned & ~before
        slowest = int(self.ticks[new])
        for members, shared in zip(self.members.tolist(), self.shared.tolist(), strict=True):
            if new & members and not before & members:
                slowest = max(slowest, int(self.ticks[new & members]) + shared)
        return slowest + self.overhead


def dearest(steps: Steps, sets: IntArray, n_units: int) -> NDArray[np.int64]:
    """Return the most that the way from each set to everything costs, by its number of stages (fact 3 of `Steps`).

    The result has shape (n_sets, n_units + 1).
    """
    each = np.full((sets.size, n_units), steps.overhead, dtype=np.int64)
    if steps.parallel:
        own = steps.ticks[(1 << np.arange(n_units)) & ~sets[:, None]]
        unopened = np.zeros_like(each)
        unopened[:, : steps.members.size] = np.where(sets[:, None] & steps.members, 0, steps.shared)
        each += -np.sort(-own, axis=1) - np.sort(-unopened, axis=1)
    else:
        each[:, 0] = steps.of_rest[sets]
    return np.hstack([np.zeros((sets.size, 1), dtype=np.int64), np.cumsum(each, axis=1)])
