"""The gate: a root is used where its gain over chains of the same price is more than luck.

The gain is measured twice. First the best designs with the root are compared with the best chains on the rows that
chose both: most roots fail already here, where luck is on their side. For the others everything is chosen again without
each fold, the order of units included, and judged on the rows of that fold, beside a chain that was chosen likewise.
The gate asks for 1 + sqrt(2 log n) standard errors of the paired difference, n being the number of roots: the best of
many is lucky. At the prices beside one where a root passes, a gain of one standard error will do.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.fitting.rooted import EVERYONE, Ground, Lane, Rooted, rows_of
from emsco.scoring.compose import compose
from emsco.scoring.gains import Gain

_N_BUDGETS = 5
_CHEAPEST = 1 / 50  # of the price of the most accurate chain
_AROUND = 0.15  # share of a price by which chains are cheaper and dearer that say what more money is worth
MOST_SUMS = 200  # points of a sum
_LEAST_ERROR = 1e-9

Range: TypeAlias = tuple[float, float]  # of price, in ticks per row
_Picks: TypeAlias = list[tuple[Lane, IntArray, float]]  # of each branch the kind, design and exit threshold


class Verdict(NamedTuple):
    """What the gate says of a root.

    Attributes
    ----------
    gain : Gain
    ranges : list of pairs of float
        Prices, in ticks per row, where the gain is no luck.
    worth : float
        The sum of the gains at these prices.
    """

    gain: Gain
    ranges: list[Range]
    worth: float


def pass_gate(rooted: Rooted, ground: Ground, n_roots: int) -> Verdict:
    """Return what a root gains, and at which prices that is no luck."""
    budgets = _budgets(rooted, ground)
    needed = 1 + float(np.sqrt(2 * np.log(n_roots)))
    why = ""
    for views, words in (([EVERYONE], "less than luck explains, even on the rows that chose it"),
                        (list(range(ground.n_folds)), "less than luck explains")):  # fmt: skip
        rooted.search(views)
        gain, error = _gains(rooted, ground, budgets, views)
        passes = gain > needed * error
        if not passes.any():
            why = words
            break
    best = int((gain / error).argmax())
    edges = np.sqrt(budgets[1:] * budgets[:-1])
    beyond = budgets[-1] ** 2 / edges[-1] if edges.size else np.inf
    low, high = np.append(0.0, edges), np.append(edges, beyond)
    used = np.zeros(0, dtype=np.intp) if why else np.flatnonzero(_beside(passes, gain > error))
    root, prices = rooted.root, ground.prices
    said = Gain(
        root=tuple(prices.unit_names[u] for u in np.flatnonzero(root.units)),
        branches=root.route.words(ground.rehearsal.table.names, ground.classes),
        budget=float(budgets[best] / prices.scale),
        gain=float(gain[best]),
        error=float(error[best]),
        needed=needed,
        kept=not why,
        why=why,
    )
    return Verdict(said, [(float(low[k]), float(high[k])) for k in used], float(gain[used].sum()))


def _beside(passes: BoolArray, nearly: BoolArray) -> BoolArray:
    """Return where something passes, or nearly does without a gap to where it passes.

    Examples
    --------
    >>> nearly = np.array([True, False, True, True, True])
    >>> _beside(np.array([False, False, False, True, False]), nearly).tolist()
    [False, False, True, True, True]
    """
    found = passes.copy()
    for order in (range(1, passes.size), range(passes.size - 2, -1, -1)):
        for k in order:
            found[k] |= nearly[k] and found[k - order.step]
    return found


def _budgets(rooted: Rooted, ground: Ground) -> FloatArray:
    """Return prices per row, in ticks, at which chains and branches are compared: up to that of the best chain."""
    right, ticks = ground.chains.within(np.ones(ground.n_folds, dtype=np.bool_))
    root = float(ground.prices.stage_ticks(rooted.root.units[None])[0])
    high = max(float(ticks[right == right.max()].min()) / ground.n_samples, root, 1.0)
    low = max(float(ticks.min()) / ground.n_samples, root, _CHEAPEST * high)
    return np.geomspace(low, high, _N_BUDGETS + 1)[1:] if high > low else np.array([high])


def _gains(rooted: Rooted, ground: Ground, budgets: FloatArray, views: Sequence[int]) -> tuple[FloatArray, FloatArray]:
    """Return by budget the paired gain in right labels over the best chain, and its standard error.

    Whichever costs more is charged with what chains gain for more money.
    """
    n = ground.n_samples
    gained, seen = np.zeros((budgets.size, n)), np.zeros((budgets.size, n), dtype=np.bool_)
    slopes = _slopes(ground, budgets)
    for view in views:
        judged = np.ones(n, dtype=np.bool_) if view == EVERYONE else ground.folds == view
        pairs = zip(_chosen(rooted, ground, budgets, view), _chosen_chains(ground, budgets, view), strict=True)
        for k, (picks, chain) in enumerate(pairs):
            if picks is None or chain is None:
                continue
            right, paid = _rows(picks, n)
            other, other_paid = rows_of(ground.judge, *chain)
            more = right.astype(np.float64) - other - slopes[k] * (paid - other_paid)
            gained[k, judged], seen[k, judged] = more[judged], True
    error = np.maximum(gained.std(axis=1, ddof=1) / np.sqrt(n), _LEAST_ERROR)
    whole = seen.all(axis=1)
    return np.where(whole, gained.mean(axis=1), 0.0), np.where(whole, error, np.inf)


def _slopes(ground: Ground, budgets: FloatArray) -> FloatArray:
    """Return how many right labels chains gain per tick, about each budget."""
    right, ticks = ground.chains.within(np.ones(ground.n_folds, dtype=np.bool_))
    slopes = np.zeros(budgets.size)
    for k, budget in enumerate((budgets * ground.n_samples).tolist()):
        low, high = (1 - _AROUND) * budget, (1 + _AROUND) * budget
        if (ticks <= low).any():
            slopes[k] = (right[ticks <= high].max() - right[ticks <= low].max()) / (high - low)
    return slopes


def _chosen_chains(ground: Ground, budgets: FloatArray, view: int) -> list[tuple[IntArray, float] | None]:
    """Return the chain and exit with the most right labels within each budget, a fold left out."""
    folds = ground.judged_without(view)
    right, ticks = ground.chains.within(folds)
    n = int(folds[ground.folds].sum())
    found: list[tuple[IntArray, float] | None] = []
    for budget in budgets:
        allowed = np.flatnonzero(ticks <= budget * n)
        order = allowed[np.lexsort((ticks[allowed], -right[allowed]))]
        found.append(ground.chains.one(int(order[0])) if order.size else None)
    return found


def _chosen(rooted: Rooted, ground: Ground, budgets: FloatArray, view: int) -> list[_Picks | None]:
    """Return design and exit of each branch with the most right labels within each budget, a fold left out."""
    folds = ground.judged_without(view)
    lanes, parts = rooted.chosen(view), []
    for lane in lanes:
        right, ticks = lane.by_view[view].within(folds)
        n = int(folds[lane.folds].sum())
        parts.append(np.column_stack([np.full(right.size, n), n - right, ticks]))
    total = compose(parts, most=MOST_SUMS)
    n = int(total.counts[0, 0])
    found: list[_Picks | None] = []
    for budget in budgets:
        allowed = np.flatnonzero(total.counts[:, 2] <= budget * n)
        if not allowed.size:
            found.append(None)
            continue
        best = allowed[total.counts[allowed, 1].argmin()]
        rows = zip(lanes, total.picks[best].tolist(), strict=True)
        found.append([(lane, *lane.by_view[view].one(row)) for lane, row in rows])
    return found


def _rows(picks: _Picks, n_samples: int) -> tuple[BoolArray, IntArray]:
    """Return which samples get the right label, and what each pays, in ticks."""
    right, paid = np.zeros(n_samples, dtype=np.bool_), np.zeros(n_samples, dtype=np.int64)
    for lane, design, exit_at in picks:
        right[lane.samples], paid[lane.samples] = rows_of(lane.judge, design, exit_at)
    return right, paid
