"""After the search: the front of what final stages, and thresholds of their own, make of the designs it found."""

from typing import Any

import numpy as np

from emsco.arrays import BoolArray, FloatArray
from emsco.designs.partition import distinct_sets
from emsco.fitting.progress import PhaseLine
from emsco.fitting.tuning import tune
from emsco.scoring.front import Front, spread
from emsco.scoring.judge import Judge
from emsco.search.chains import MOST_LOOKED_FOR, finest, merged, orders

SETS_AT_ONCE = 16  # trained between two signs of progress
_MOST_FINAL = 30  # designs of a front whose stages are trained again by a final learner
_MERGED_CELLS = 2**23  # designs x units that need no other feature sets than those trained: 64 MiB


def finish(front: Front, fast: Judge, final: Judge, *, chains: bool, thresholds: bool, line: PhaseLine) -> Front:
    """Return the front of the designs of a search, and of others that need few feature sets more.

    The others are those that merge stages of a design of the front, or that buy in the order in which units are worth
    it. A final learner orders what the fast one proposes.

    Parameters
    ----------
    front : Front
        What the search found.
    fast : Judge
        Of the learner of the search.
    final : Judge
        Of the learner that is put into use; it may be the same.
    chains : bool
        Whether the fast learner is fast enough to order units.
    thresholds : bool
        Whether each design gets thresholds of its own.
    line : PhaseLine
        Shows how far it is.
    """
    task, designs, strong = final.task, front.designs, None
    if final is not fast:
        designs = designs[spread(front, _MOST_FINAL)]
        sets = distinct_sets(designs)
        step = min(SETS_AT_ONCE, final.cache.capacity)
        for i in range(0, len(sets), step):
            final.cache.slots(sets[i : i + step])
            line("training the final stages", min((i + step) / len(sets), 1.0))

        def strong(sets: BoolArray) -> FloatArray:
            line("ordering features", min(sets[0].sum() / MOST_LOOKED_FOR, 1.0))
            return final.sureness(sets)

    if chains:
        designs = np.concatenate([designs, [finest(order) for order in orders(fast.sureness, task.prices, strong)]])
    line.close()
    limits: dict[str, Any] = {"max_stages": task.max_stages, "removal": task.removal}
    limits["most"] = max(_MERGED_CELLS // designs.size, 1)
    designs = np.unique(np.concatenate([merged(design, **limits) for design in designs]), axis=0)
    if thresholds:
        return tune(designs, final)
    return task.front(designs, final.tally(designs))
