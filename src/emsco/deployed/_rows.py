"""Rows of numbers through trained logistic stages, a block at a time. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._compile import kernel
from emsco.data.encoding import FARTHEST
from emsco.stages._logistic import margins_of, probabilities_of

Array = Any

_ROWS = 128  # rows encoded together: what they hold of a table of numbers fits the first-level cache
_BLOCK = 1024  # rows walked together: their encoded columns fit the second-level cache


@kernel()
def _encode(
    cells: Array,
    strides: Array,
    positions: Array,
    new: Array,
    waiting: Array,
    means: Array,
    inverse_scales: Array,
    places: Array,
    curve_starts: Array,
    Z: Array,
) -> int:
    """Encode new columns of waiting rows, given by where they start, as NumberCode does; curves are left to _bend.

    Returns how many cells are odd: missing, infinite or absurdly far from the mean. They are left to _settle.
    """
    n_odd = 0
    for start in range(0, waiting.size, _ROWS):
        part = waiting[start : start + _ROWS]
        for k in range(new.size):
            c = new[k]
            if curve_starts[c] < curve_starts[c + 1]:
                continue
            at = positions[c] * strides[1]
            z = Z[places[c], start : start + _ROWS]
            mean = means[c]
            inverse_scale = inverse_scales[c]
            for i in range(part.size):  # no branch and no product, so that it is vectorised
                value = cells[at + part[i]]
                encoded = (value - mean) * inverse_scale
                plain = abs(encoded) <= FARTHEST
                z[i] = encoded if plain else 0.0
                n_odd += 0 if plain else 1
    return n_odd


@kernel()
def _settle(cells: Array, at: int, waiting: Array, mean: float, inverse_scale: float, z: Array, missing: Array) -> Any:
    """Encode the odd cells of one column; return which of the rows holds inf, or -1."""
    infinite = np.int64(-1)
    for i in range(waiting.size):
        value = cells[at + waiting[i]]
        missing[i] = 1.0 if value != value else 0.0
        if abs(value) == np.inf:
            infinite = np.int64(i)
        elif value == value:
            z[i] = min(max((value - mean) * inverse_scale, -FARTHEST), FARTHEST)
    return infinite


@kernel()
def _bend(cells: Array, at: int, waiting: Array, knots: Array, curves: Array, at_zero: Array, Z: Array) -> Any:
    """Encode one column as CurveCode does, the last row of Z saying missing; return which row holds inf, or -1."""
    infinite = np.int64(-1)
    n_curves = len(curves)
    last = knots.size - 1
    for i in range(waiting.size):
        value = cells[at + waiting[i]]
        Z[n_curves, i] = 0.0
        if value != value:
            for j in range(n_curves):
                Z[j, i] = 0.0
            Z[n_curves, i] = 1.0
        elif value == 0.0 and at_zero.size:
            for j in range(n_curves):
                Z[j, i] = at_zero[j]
        else:
            if abs(value) == np.inf:
                infinite = np.int64(i)
            within = min(max(value, knots[0]), knots[last])
            low = 0
            n_pieces = last
            while n_pieces > 1:  # no branch to be guessed wrong
                half = n_pieces // 2
                low += half if knots[low + half] <= within else 0
                n_pieces -= half
            share = (within - knots[low]) / (knots[low + 1] - knots[low])
            for j in range(n_curves):
                Z[j, i] = curves[j, low] + share * (curves[j, low + 1] - curves[j, low])
    return infinite


@kernel()
def walk(
    cells: Array,
    strides: Array,
    positions: Array,
    start: int,
    stop: int,
    n_encoded: int,
    new_columns: Array,
    new_starts: Array,
    means: Array,
    inverse_scales: Array,
    places: Array,
    flags: Array,
    curve_starts: Array,
    knots: Array,
    curve_values: Array,
    at_zero: Array,
    has_zero: Array,
    seen: Array,
    seen_starts: Array,
    theta: Array,
    intercepts: Array,
    bars: Array,
    confidence: Array,
    code: Array,
    exit_stage: Array,
) -> tuple[int, int]:
    """Decide the rows start..stop of a table, reading a cell only when its row has bought it.

    Cell (r, p) of the table is ``cells[r * strides[0] + p * strides[1]]``: one type, and so one compilation, for every
    layout. Column c of the training table is at p = ``positions[c]``; it is encoded into row ``places[c]`` and, where
    ``flags[c]``, the next one says missing. Columns with curves have the rows ``curve_starts[c]:curve_starts[c + 1]``
    of ``curve_values``, values at as many of ``knots[c]`` as are not NaN. Stage s buys the columns
    ``new_columns[new_starts[s]:new_starts[s + 1]]``; its model sees the encoded columns
    ``seen[seen_starts[s]:seen_starts[s + 1]]`` with the weights ``theta[s]`` and ``intercepts[s]``. A row leaves where
    its top probability reaches ``bars[s]``, of which there is one for all classes or one for each.

    Returns the row and column of a cell that holds inf, or -1 and -1.
    """
    n_stages, n_logits = intercepts.shape
    Z = np.empty((n_encoded, _BLOCK))
    margin_buffer = np.empty(n_logits * _BLOCK)
    answer_buffer = np.empty(n_logits * _BLOCK)
    top = np.empty(_BLOCK)
    most_curves = 0  # loops here and below: NumPy's functions and slices take seconds to compile
    for c in range(curve_starts.size - 1):
        most_curves = max(most_curves, curve_starts[c + 1] - curve_starts[c])
    scratch = np.empty((most_curves + 1, _BLOCK))
    best = np.empty(_BLOCK, np.uint8)
    keep = np.empty(_BLOCK, np.uint64)
    leaving = np.empty(_BLOCK, np.uint64)
    block = np.empty(_BLOCK, np.uint64)  # the rows that still wait,
    base = np.empty(_BLOCK, np.uint64)  # and where each starts among the cells
    for first in range(start, stop, _BLOCK):
        n = min(_BLOCK, stop - first)
        for i in range(n):
            block[i] = first + i
            base[i] = block[i] * strides[0]
        for s in range(n_stages):
            waiting = base[:n]
            new = new_columns[new_starts[s] : new_starts[s + 1]]
            n_odd = _encode(cells, strides, positions, new, waiting, means, inverse_scales, places, curve_starts, Z)
            for k in range(new.size):
                c = new[k]
                if curve_starts[c] < curve_starts[c + 1]:
                    n_curves = curve_starts[c + 1] - curve_starts[c]
                    n_knots = knots.shape[1]
                    while knots[c, n_knots - 1] != knots[c, n_knots - 1]:
                        n_knots -= 1
                    zeros = at_zero[curve_starts[c] : curve_starts[c + 1]] if has_zero[c] else at_zero[:0]
                    bent = Z[places[c] : places[c] + n_curves + 1] if flags[c] else scratch[: n_curves + 1]
                    infinite = _bend(
                        cells, positions[c] * strides[1], waiting, knots[c, :n_knots],
                        curve_values[curve_starts[c] : curve_starts[c + 1]], zeros, bent,
                    )  # fmt: skip
                    if infinite >= 0:
                        return int(block[infinite]), c
                    if not flags[c]:
                        for j in range(n_curves):
                            for i in range(n):
                                Z[places[c] + j, i] = scratch[j, i]
                elif n_odd:
                    missing = Z[places[c] + 1] if flags[c] else top
                    infinite = _settle(
                        cells, positions[c] * strides[1], waiting, means[c], inverse_scales[c], Z[places[c]], missing
                    )
                    if infinite >= 0:
                        return int(block[infinite]), c
                elif flags[c]:
                    for i in range(n):
                        Z[places[c] + 1, i] = 0.0
            columns = seen[seen_starts[s] : seen_starts[s + 1]]
            margins = margin_buffer[: n_logits * n].reshape(n_logits, n)
            answers = answer_buffer[: n_logits * n].reshape(n_logits, n)
            margins_of(Z, columns, theta[s], intercepts[s], margins)
            probabilities_of(margins, answers)
            if n_logits == 1:
                second = answers[0]
                for i in range(n):
                    p = second[i]
                    q = 1.0 - p
                    best[i] = 1 if p > q else 0
                    top[i] = p if p > q else q
            else:
                for i in range(n):
                    best[i] = 0
                    top[i] = answers[0, i]
                    for a in range(1, n_logits):
                        if answers[a, i] > top[i]:
                            best[i] = a
                            top[i] = answers[a, i]
            n_leaving = 0
            stay = 0
            if bars.shape[1] == 1 or s == n_stages - 1:
                bar = bars[s, 0] if s < n_stages - 1 else -1.0  # nobody waits for a stage that does not exist
                for i in range(n):  # both lists are written at every step: no branch to be guessed wrong
                    leaves = 1 if top[i] >= bar else 0
                    leaving[n_leaving] = i
                    keep[stay] = i
                    n_leaving += leaves
                    stay += 1 - leaves
            else:
                for i in range(n):
                    leaves = 1 if top[i] >= bars[s, best[i]] else 0
                    leaving[n_leaving] = i
                    keep[stay] = i
                    n_leaving += leaves
                    stay += 1 - leaves
            for k in range(n_leaving):
                i = leaving[k]
                row = block[i]
                confidence[row] = top[i]
                code[row] = best[i]
                exit_stage[row] = s
            if stay == 0:
                break
            for i in range(stay):
                block[i] = block[keep[i]]
                base[i] = base[keep[i]]
            for k in range(columns.size):
                z = Z[columns[k]]
                for i in range(stay):
                    z[i] = z[keep[i]]
            n = stay
    return -1, -1
