"""Rows of numbers through trained logistic stages, a block at a time. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._compile import kernel, part
from emsco._scalar import double_at, single_at
from emsco.data.encoding import FARTHEST, N_STEPS, NumberTable
from emsco.stages._logistic import margins_of, probabilities_of, top_of

Array = Any

BLOCK = 1024  # rows walked together: what they need stays in the first two caches
_SLACK = 1e-12  # far more than the rounding of a probability
_MISSING, _ZERO = N_STEPS, N_STEPS + 1  # after the steps of a grid
_NONE, _ONE = np.uint64(0), np.uint64(1)


@part()
def _read(address: int, stride: int, single: bool, rows: Array, n: int, cells: Array) -> None:
    """Copy the cells of n rows of a column from where it lies in memory."""
    if single:
        for i in range(n):
            cells[i] = single_at(address + np.int64(rows[i]) * stride)
    else:
        for i in range(n):
            cells[i] = double_at(address + np.int64(rows[i]) * stride)


@part()
def _straighten(cells: Array, n: int, mean: float, inverse_scale: float, Z: Array, place: int) -> int:
    """Encode n cells as NumberCode does, but for odd ones: missing, infinite or absurdly far. Return their number."""
    n_odd = 0
    for i in range(n):  # no branch, so that it is vectorised
        encoded = (cells[i] - mean) * inverse_scale
        plain = abs(encoded) <= FARTHEST
        Z[place, i] = encoded if plain else 0.0
        n_odd += 0 if plain else 1
    return n_odd


@part()
def _bend(
    cells: Array,
    n: int,
    c: int,
    numbers: NumberTable,
    Z: Array,
    within: Array,
    share: Array,
    steps: Array,
    piece: Array,
) -> int:
    """Encode n cells of column c as CurveCode does; return how many are missing or infinite."""
    first = numbers.ends[c, 0]
    last = numbers.ends[c, 1]
    scale = numbers.grid_scale[c]
    zero = numbers.zero[c]
    n_odd = 0
    for i in range(n):  # no branch, so that it is vectorised
        value = cells[i]
        inside = value if value > first else first
        inside = inside if inside < last else last
        step = np.int32((inside - first) * scale)
        step = step if value == value else np.int32(_MISSING)
        step = step if value != zero else np.int32(_ZERO)
        within[i] = inside
        steps[i] = step
        n_odd += 0 if value - value == 0.0 else 1
    for i in range(n):
        inside = within[i]
        at = np.uint64(numbers.grid[c, np.uint32(steps[i])])
        stride = numbers.reach[c]
        while stride > _ONE:
            at += stride if numbers.knots[c, at + stride] <= inside else _NONE
            stride >>= _ONE
        at += np.uint64(numbers.knots[c, at + _ONE] <= inside)
        piece[i] = at
        share[i] = (inside - numbers.left[c, at]) / numbers.width[c, at]
    for curve in range(numbers.curve_start[c], numbers.curve_start[c + 1]):
        place = numbers.place[c] + curve - numbers.curve_start[c]
        for i in range(n):
            at = piece[i]
            Z[place, i] = numbers.values[curve, at] + share[i] * numbers.rises[curve, at]
    return n_odd


@part()
def _settle(cells: Array, n: int, mean: float, inverse_scale: float, Z: Array, place: int) -> None:
    """Encode n cells as NumberCode does."""
    for i in range(n):
        value = cells[i]
        encoded = (value - mean) * inverse_scale
        encoded = encoded if encoded > -FARTHEST else -FARTHEST
        encoded = encoded if encoded < FARTHEST else FARTHEST
        Z[place, i] = encoded if value == value else 0.0


@part()
def _leads_of(margins: Array, n: int, lead: Array, largest: Array) -> None:
    """How far the largest of n margins is ahead of the next."""
    for i in range(n):  # lead is the second largest until the end
        largest[i] = margins[0, i]
        lead[i] = -np.inf
    for a in range(1, margins.shape[0]):
        for i in range(n):
            margin = margins[a, i]
            smaller = margin if margin < largest[i] else largest[i]
            lead[i] = smaller if smaller > lead[i] else lead[i]
            largest[i] = margin if margin > largest[i] else largest[i]
    for i in range(n):
        lead[i] = largest[i] - lead[i]


@kernel()
def _walk(
    addresses: Array,
    strides: Array,
    single: Array,
    order: Array,
    start: int,
    stop: int,
    skip: int,
    numbers: NumberTable,
    new_columns: Array,
    new_starts: Array,
    seen: Array,
    seen_starts: Array,
    theta: Array,
    intercepts: Array,
    bars: Array,
    least: Array,
    paid: Array,
    confidence: Array,
    code: Array,
    exit_stage: Array,
    conclusive: Array,
    cost: Array,
    Z: Array,
    margins: Array,
    chosen: Array,
    answers: Array,
    floats: Array,
    steps: Array,
    best: Array,
    lists: Array,
) -> Any:
    """Do what `walk` says, in the arrays from Z on."""
    cells, within, share, top, total = floats[0], floats[1], floats[2], floats[3], floats[4]
    lead = floats[5] if margins.shape[0] > 1 else margins[0]  # of two classes the margin, which has a sign
    rows, piece, maybe, keep = lists[0], lists[1], lists[2], lists[3]
    last = intercepts.shape[0] - 1
    for first in range(start, stop, BLOCK):
        n = BLOCK if first + BLOCK < stop else stop - first
        if order.size:
            for i in range(n):
                rows[i] = order[first + i]
        else:
            for i in range(n):
                rows[i] = first + i
        for s in range(last + 1):
            for k in range(new_starts[s], new_starts[s + 1]):
                c = new_columns[k]
                _read(addresses[k], strides[k], single[k], rows, n, cells)
                if numbers.curve_start[c] < numbers.curve_start[c + 1]:
                    n_odd = _bend(cells, n, c, numbers, Z, within, share, steps, piece)
                else:
                    mean = numbers.mean[c]
                    inverse_scale = numbers.inverse_scale[c]
                    n_odd = _straighten(cells, n, mean, inverse_scale, Z, numbers.place[c])
                    if n_odd:
                        _settle(cells, n, mean, inverse_scale, Z, numbers.place[c])
                missing = numbers.missing_at[c]
                for i in range(n if missing >= 0 else 0):
                    Z[missing, i] = 0.0 if cells[i] == cells[i] else 1.0
                for i in range(n if n_odd else 0):
                    if abs(cells[i]) == np.inf:
                        return np.int64(rows[i]), c
            if s < skip:
                continue
            columns = seen[seen_starts[s] : seen_starts[s + 1]]
            margins_of(Z, columns, theta[s], intercepts[s], n, margins)
            if margins.shape[0] > 1:
                _leads_of(margins, n, lead, total)
            n_maybe = 0
            for i in range(n):
                n_maybe += 0 if abs(lead[i]) < least[s] else 1
            if n_maybe == 0:
                continue
            at = stay = _NONE
            for i in range(n):  # both lists are written at every step: no branch to be guessed wrong
                stays = np.uint64(abs(lead[i]) < least[s])
                maybe[at] = i
                keep[stay] = i
                at += _ONE - stays
                stay += stays
            for a in range(margins.shape[0]):
                for k in range(n_maybe):
                    chosen[a, k] = margins[a, maybe[k]]
            probabilities_of(chosen, n_maybe, answers, total)
            top_of(answers, n_maybe, top, best)
            n_sure = 0
            for k in range(n_maybe):  # a row that stays after all is written again when it leaves
                row = rows[maybe[k]]
                confident = top[k] >= bars[s, best[k]]
                confidence[row] = top[k]
                code[row] = best[k]
                exit_stage[row] = s
                conclusive[row] = confident
                cost[row] = paid[s]
                n_sure += confident
            if s == last:
                break
            if n_sure < n_maybe:
                k = 0
                stay = _NONE
                for i in range(n):
                    keep[stay] = i
                    asked = k < n_maybe and maybe[k] == i
                    stay += _NONE if asked and top[k] >= bars[s, best[k]] else _ONE
                    k += asked
            if stay == n:
                continue
            n = int(stay)
            for i in range(n):
                rows[i] = rows[keep[i]]
            for k in range(columns.size):
                z = columns[k]
                for i in range(n):
                    Z[z, i] = Z[z, keep[i]]
            if n == 0:
                break
    return np.int64(-1), np.int64(-1)


def walk(
    addresses: Array,
    strides: Array,
    single: Array,
    order: Array,
    start: int,
    stop: int,
    skip: int,
    numbers: NumberTable,
    new_columns: Array,
    new_starts: Array,
    seen: Array,
    seen_starts: Array,
    theta: Array,
    intercepts: Array,
    paid: Array,
    bars: Array,
    confidence: Array,
    code: Array,
    exit_stage: Array,
    conclusive: Array,
    cost: Array,
) -> tuple[int, int]:
    """Decide the rows ``order[start:stop]`` of a table, reading a cell only when its row has bought it.

    An empty order means all rows in theirs. The first ``skip`` stages only buy: their rows are known to go on.

    Stage s buys the columns ``new_columns[new_starts[s]:new_starts[s + 1]]`` of the training table, which are encoded
    as ``numbers`` says. The cell of row r in the k-th of all new columns is at ``addresses[k] + r * strides[k]`` in
    memory, of single precision if ``single[k]``, else of double: one type, and so one compilation, for every table. The
    model of stage s sees the encoded columns ``seen[seen_starts[s]:seen_starts[s + 1]]`` with the weights ``theta[s]``
    and ``intercepts[s]``. A row leaves, and is conclusive, where its top probability reaches ``bars[s]``, of which
    there is one for all classes or one for each; at the last stage every row leaves. It has paid ``paid[s]``.

    Probabilities are computed only for rows that may leave: if the margin of the top class is ahead of the next by x,
    its probability is at most 1 / (1 + exp(-x)).

    Returns the row and column of a cell that holds inf, or -1 and -1.
    """
    n_stages, n_logits = intercepts.shape
    reached = np.empty((n_stages, max(n_logits, 2)))
    reached[:] = bars
    least = np.array([_least_lead(bar) for bar in reached.min(axis=1).tolist()])
    least[-1] = -1.0
    margins, chosen, answers = np.empty((3, n_logits, BLOCK))
    row, column = _walk(
        addresses, strides, single, order, start, stop, skip, numbers, new_columns, new_starts, seen, seen_starts,
        theta, intercepts, reached, least, paid, confidence, code, exit_stage, conclusive, cost,
        np.empty((numbers.n_encoded, BLOCK)), margins, chosen, answers, np.empty((6, BLOCK)),
        np.empty(BLOCK, dtype=np.int32), np.empty(BLOCK, dtype=np.uint8), np.empty((4, BLOCK), dtype=np.uint64),
    )  # fmt: skip
    return row, column


def _least_lead(bar: float) -> float:
    """Return a lead below which no probability reaches the bar, as computed."""
    p = bar - _SLACK
    if p <= 0.5:
        return 0.0
    return float(np.log(p / (1.0 - p))) if p < 1 else np.inf
