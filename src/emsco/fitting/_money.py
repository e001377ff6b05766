"""Kernel: the least money per design, tests and errors together, with a bar for each of its stages."""

from typing import Any

import numpy as np

from emsco._compile import inlined, kernel

Array = Any


@inlined
def _best_bar(saved: Array) -> int:
    """Return the bar up to which stopping saves most: the middle one of equals that follow each other."""
    total = 0.0
    least = 0.0
    first = 0
    last = 0
    for t in range(saved.size):
        total += saved[t]
        if t == 0 or total < least - 1e-12:
            least, first, last = total, t, t
        elif total <= least + 1e-12 and last == t - 1:
            last = t
    return (first + last) // 2


@kernel()
def least_money(
    slots: Array, n_stages: Array, paid: Array, level: Array, price: Array, n_bars: int, n_passes: int, bars: Array,
    money: Array,
) -> None:  # fmt: skip
    """Fill bars (n_designs, n_stages) and money (n_designs, n_samples).

    ``slots[d, j]`` is the row of ``level`` and ``price`` that belongs to stage j of design d: a sample whose level is
    at most the bar of the stage leaves there, and its label costs ``price``. ``paid[d, j]`` is the price of the stage.
    The last stage lets everybody leave. Bars are found backwards, from the last stage on: each is the one with which
    all samples that may reach it cost least, given the bars after it; then each again, by those that do reach it.
    """
    n_samples = level.shape[1]
    saved = np.empty(n_bars)
    on = np.empty(n_samples)
    for d in range(slots.shape[0]):
        k = n_stages[d]
        for n_pass in range(1 if k < 3 else n_passes):
            for i in range(n_samples):
                on[i] = price[slots[d, k - 1], i]
            for back in range(k - 1):
                j = k - 2 - back
                s = slots[d, j]
                for t in range(n_bars):
                    saved[t] = 0.0
                for i in range(n_samples):
                    on[i] += paid[d, j + 1]
                    if level[s, i] < n_bars:
                        here = True
                        for earlier in range(j if n_pass else 0):
                            if level[slots[d, earlier], i] <= bars[d, earlier]:
                                here = False
                        if here:
                            saved[level[s, i]] += price[s, i] - on[i]
                t = _best_bar(saved)
                bars[d, j] = t
                for i in range(n_samples):
                    if level[s, i] <= t:
                        on[i] = price[s, i]
        for i in range(n_samples):
            money[d, i] = on[i] + paid[d, 0]
