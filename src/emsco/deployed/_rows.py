"""Rows of numbers through trained logistic stages, a block at a time. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._compile import kernel, part
from emsco.data.encoding import FARTHEST, NumberTable
from emsco.stages._logistic import margins_of, probabilities_of, top_of

Array = Any

BLOCK = 1024  # rows walked together: their encoded columns fit the second-level cache
_ROWS = 128  # rows encoded together: what they hold of a table of numbers fits the first-level cache


@part()
def _straighten(
    cells: Array, strides: Array, positions: Array, new: Array, base: Array, n: int, numbers: NumberTable, Z: Array
) -> int:
    """Encode new columns of n rows, given by where they start, as NumberCode does; curves are left to _bend.

    Returns how many cells are odd: missing, infinite or absurdly far from the mean. They are left to _settle.
    """
    n_odd = 0
    for start in range(0, n, _ROWS):
        stop = start + _ROWS if start + _ROWS < n else n
        rows = base[start:stop]
        for k in range(new.size):
            c = new[k]
            if numbers.curve_start[c] < numbers.curve_start[c + 1]:
                continue
            at = positions[c] * strides[1]
            z = Z[numbers.place[c], start:stop]
            mean = numbers.mean[c]
            inverse_scale = numbers.inverse_scale[c]
            for i in range(rows.size):  # no branch and no product, so that it is vectorised
                value = cells[at + rows[i]]
                encoded = (value - mean) * inverse_scale
                plain = abs(encoded) <= FARTHEST
                z[i] = encoded if plain else 0.0
                n_odd += 0 if plain else 1
    return n_odd


@part()
def _settle(
    cells: Array, at: int, base: Array, n: int, mean: float, inverse_scale: float, z: Array, missing: Array
) -> Any:
    """Encode the odd cells of one column; return which of the rows holds inf, or -1."""
    infinite = np.int64(-1)
    for i in range(n):
        value = cells[at + base[i]]
        missing[i] = 1.0 if value != value else 0.0
        if abs(value) == np.inf:
            infinite = np.int64(i)
        elif value == value:
            encoded = (value - mean) * inverse_scale
            encoded = encoded if encoded > -FARTHEST else -FARTHEST
            z[i] = encoded if encoded < FARTHEST else FARTHEST
    return infinite


@part()
def _bend(cells: Array, at: int, base: Array, n: int, c: int, numbers: NumberTable, Z: Array, missing: Array) -> Any:
    """Encode one column as CurveCode does; return which of the rows holds inf, or -1."""
    infinite = np.int64(-1)
    first = numbers.curve_start[c]
    n_curves = numbers.curve_start[c + 1] - first
    place = numbers.place[c]
    knots = numbers.knots[c]
    last = numbers.n_knots[c] - 1
    has_zero = numbers.at_zero[first] == numbers.at_zero[first]
    for i in range(n):
        value = cells[at + base[i]]
        missing[i] = 1.0 if value != value else 0.0
        if value != value:
            for j in range(n_curves):
                Z[place + j, i] = 0.0
        elif value == 0.0 and has_zero:
            for j in range(n_curves):
                Z[place + j, i] = numbers.at_zero[first + j]
        else:
            if abs(value) == np.inf:
                infinite = np.int64(i)
            within = value if value > knots[0] else knots[0]
            within = within if within < knots[last] else knots[last]
            low = 0
            n_pieces = last
            while n_pieces > 1:  # no branch to be guessed wrong
                half = n_pieces // 2
                low += half if knots[low + half] <= within else 0
                n_pieces -= half
            share = (within - knots[low]) / (knots[low + 1] - knots[low])
            for j in range(n_curves):
                left = numbers.values[first + j, low]
                Z[place + j, i] = left + share * (numbers.values[first + j, low + 1] - left)
    return infinite


@kernel()
def _walk(
    cells: Array,
    strides: Array,
    positions: Array,
    start: int,
    stop: int,
    numbers: NumberTable,
    new_columns: Array,
    new_starts: Array,
    seen: Array,
    seen_starts: Array,
    theta: Array,
    intercepts: Array,
    bars: Array,
    confidence: Array,
    code: Array,
    exit_stage: Array,
    Z: Array,
    margins: Array,
    answers: Array,
    floats: Array,
    best: Array,
    lists: Array,
) -> Any:
    """Do what `walk` says, in the arrays from Z on."""
    top, total, unused = floats[0], floats[1], floats[2]
    waiting, base, keep, leaving = lists[0], lists[1], lists[2], lists[3]  # base: where a row starts among the cells
    for first in range(start, stop, BLOCK):
        n = BLOCK if first + BLOCK < stop else stop - first
        for i in range(n):
            waiting[i] = first + i
            base[i] = waiting[i] * strides[0]
        for s in range(intercepts.shape[0]):
            new = new_columns[new_starts[s] : new_starts[s + 1]]
            n_odd = _straighten(cells, strides, positions, new, base, n, numbers, Z)
            for k in range(new.size):
                c = new[k]
                place = numbers.place[c]
                at = positions[c] * strides[1]
                missing = Z[numbers.missing_at[c]] if numbers.missing_at[c] >= 0 else unused
                infinite = np.int64(-1)
                if numbers.curve_start[c] < numbers.curve_start[c + 1]:
                    infinite = _bend(cells, at, base, n, c, numbers, Z, missing)
                elif n_odd:
                    infinite = _settle(cells, at, base, n, numbers.mean[c], numbers.inverse_scale[c], Z[place], missing)
                else:
                    for i in range(n):
                        missing[i] = 0.0
                if infinite >= 0:
                    return np.int64(waiting[infinite]), c
            columns = seen[seen_starts[s] : seen_starts[s + 1]]
            margins_of(Z, columns, theta[s], intercepts[s], n, margins)
            probabilities_of(margins, n, answers, total)
            top_of(answers, n, top, best)
            n_leaving = 0
            stay = 0
            for i in range(n):  # both lists are written at every step: no branch to be guessed wrong
                leaves = 1 if top[i] >= bars[s, best[i]] else 0
                leaving[n_leaving] = i
                keep[stay] = i
                n_leaving += leaves
                stay += 1 - leaves
            for k in range(n_leaving):
                i = leaving[k]
                row = waiting[i]
                confidence[row] = top[i]
                code[row] = best[i]
                exit_stage[row] = s
            for i in range(stay):
                waiting[i] = waiting[keep[i]]
                base[i] = base[keep[i]]
            for k in range(columns.size if stay else 0):
                z = Z[columns[k]]
                for i in range(stay):
                    z[i] = z[keep[i]]
            n = stay
            if n == 0:
                break
    return np.int64(-1), np.int64(-1)


def walk(
    cells: Array,
    strides: Array,
    positions: Array,
    start: int,
    stop: int,
    numbers: NumberTable,
    new_columns: Array,
    new_starts: Array,
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
    layout. Column c of the training table is at p = ``positions[c]``, and is encoded as ``numbers`` says. Stage s buys
    the columns ``new_columns[new_starts[s]:new_starts[s + 1]]``; its model sees the encoded columns
    ``seen[seen_starts[s]:seen_starts[s + 1]]`` with the weights ``theta[s]`` and ``intercepts[s]``. A row leaves where
    its top probability reaches ``bars[s]``, of which there is one for all classes or one for each; at the last stage
    every row does.

    Returns the row and column of a cell that holds inf, or -1 and -1.
    """
    n_stages, n_logits = intercepts.shape
    reached = np.empty((n_stages, max(n_logits, 2)))
    reached[:] = bars
    reached[-1] = -1.0
    margins, answers = np.empty((2, n_logits, BLOCK))
    row, column = _walk(
        cells, strides, positions, start, stop, numbers, new_columns, new_starts, seen, seen_starts, theta, intercepts,
        reached, confidence, code, exit_stage, np.empty((numbers.n_encoded, BLOCK)), margins, answers,
        np.empty((3, BLOCK)), np.empty(BLOCK, dtype=np.uint8), np.empty((4, BLOCK), dtype=np.uint64),
    )  # fmt: skip
    return row, column
