"""Sets of samples as rows of 64-bit words: pack, and walk designs over them. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._kernels.compile import kernel
from emsco._kernels.scalar import popcount

Array = Any


def pack(bits: Array) -> Array:
    """Words (n_rows, n_words) of a boolean array (n_rows, n_samples); the bits past the last sample are zero."""
    n_rows, n_samples = bits.shape
    n_words = -(-n_samples // 64)
    packed = np.zeros((n_rows, n_words * 8), dtype=np.uint8)
    packed[:, : -(-n_samples // 8)] = np.packbits(bits, axis=1, bitorder="little")
    return packed.view(np.uint64)


@kernel()
def walk(
    slots: Array,
    n_stages: Array,
    everyone: Array,
    confident: Array,
    right: Array,
    reached: Array,
    n_conclusive: Array,
    n_correct: Array,
) -> None:
    """Send all samples through each design and count them (paper, section 2).

    ``slots[d, j]`` is the row of ``confident`` and ``right`` (confident and correct) that belongs to stage j of design
    d. Fills ``reached[d, j]``, the samples that reach (and pay for) stage j, and the counts of those that leave with a
    label and with the right one.
    """
    n_words = everyone.size
    waiting = np.empty(n_words, np.uint64)
    for d in range(slots.shape[0]):
        n_waiting = 0
        for w in range(n_words):
            waiting[w] = everyone[w]
            n_waiting += popcount(waiting[w])
        n_samples = n_waiting
        correct = 0
        for j in range(n_stages[d]):
            reached[d, j] = n_waiting
            if n_waiting == 0:
                continue
            slot = slots[d, j]
            n_waiting = 0
            for w in range(n_words):
                correct += popcount(waiting[w] & right[slot, w])
                waiting[w] &= ~confident[slot, w]
                n_waiting += popcount(waiting[w])
        n_conclusive[d] = n_samples - n_waiting
        n_correct[d] = correct
