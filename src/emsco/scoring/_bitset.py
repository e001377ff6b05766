"""Sets of samples as rows of 64-bit words: pack, and walk designs over them. Arrays in, arrays out, no checks."""

from typing import Any

import numpy as np

from emsco._compile import kernel
from emsco._scalar import popcount

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


@kernel()
def walk_two_classes(
    slots: Array,
    n_stages: Array,
    truth: Array,
    confident: Array,
    labels: Array,
    reached: Array,
    confusion: Array,
) -> None:
    """Do what ``walk_by_class`` does, for two classes: three counts at the end, from which the others follow."""
    n_words = truth.shape[1]
    no, yes = truth[0], truth[1]
    everyone = np.empty(n_words, np.uint64)
    waiting = np.empty(n_words, np.uint64)
    told = np.empty(n_words, np.uint64)
    n_no = n_yes = 0
    for w in range(n_words):
        everyone[w] = no[w] | yes[w]
        n_no += popcount(no[w])
        n_yes += popcount(yes[w])
    for d in range(slots.shape[0]):
        n_waiting = n_no + n_yes
        last = n_stages[d] - 1
        for j in range(last):
            reached[d, j] = n_waiting
            if n_waiting == 0:
                continue
            slot = slots[d, j]
            n_waiting = 0
            if j == 0:
                for w in range(n_words):
                    told[w] = everyone[w] & labels[slot, 0, w]
                    waiting[w] = everyone[w] & ~confident[slot, w]
                    n_waiting += popcount(waiting[w])
                continue
            for w in range(n_words):
                waits = waiting[w]
                told[w] |= waits & labels[slot, 0, w]
                waits &= ~confident[slot, w]
                waiting[w] = waits
                n_waiting += popcount(waits)
        if last == 0:
            for w in range(n_words):
                told[w] = 0
                waiting[w] = everyone[w]
        reached[d, last] = n_waiting
        slot = slots[d, last]
        false = right = kept = silent = 0
        for w in range(n_words):  # the last stage: nothing of it is written down before it is counted
            yet = told[w] | (waiting[w] & labels[slot, 0, w])
            left = waiting[w] & ~confident[slot, w]
            false += popcount(yet & no[w])
            right += popcount(yet & yes[w])
            kept += popcount(left & no[w])
            silent += popcount(left & yes[w])
        confusion[d, 0, 0] = n_no - false - kept
        confusion[d, 0, 1] = false
        confusion[d, 0, 2] = kept
        confusion[d, 1, 0] = n_yes - right - silent
        confusion[d, 1, 1] = right
        confusion[d, 1, 2] = silent


@kernel()
def walk_by_class(
    slots: Array,
    n_stages: Array,
    truth: Array,
    confident: Array,
    labels: Array,
    reached: Array,
    confusion: Array,
) -> None:
    """Send all samples through each design and count them by true class and label.

    Row t of ``truth`` holds the samples of class t; ``labels[s, b]`` those of which slot s is confident and that it
    gives a class whose bit b is set. Fills ``reached`` as ``walk`` does, and ``confusion[d, t, p]``, the samples of
    class t that leave with the label p, the last p those that leave with none, because they are left or because no
    answer is what they leave with: the label that has the number of classes as its index.

    Labels are written down as samples leave, and counted at the end; label 0, whose bits are all zero, is what is left
    of a class.
    """
    n_classes, n_words = truth.shape
    n_bits = labels.shape[1]
    waiting = np.empty(n_words, np.uint64)
    these = np.empty(n_words, np.uint64)
    told = np.empty((n_bits, n_words), np.uint64)
    everyone = np.zeros(n_words, np.uint64)
    n_true = np.zeros(n_classes, np.int64)
    for t in range(n_classes):
        for w in range(n_words):
            everyone[w] |= truth[t, w]
            n_true[t] += popcount(truth[t, w])
    for d in range(slots.shape[0]):
        for w in range(n_words):  # waiting[:] = everyone would compile for seconds: the text of its error
            waiting[w] = everyone[w]
            for b in range(n_bits):
                told[b, w] = 0
        n_waiting = 0
        for t in range(n_classes):
            n_waiting += n_true[t]
        for j in range(n_stages[d]):
            reached[d, j] = n_waiting
            if n_waiting == 0:
                continue
            slot = slots[d, j]
            for b in range(n_bits):
                for w in range(n_words):
                    told[b, w] |= waiting[w] & labels[slot, b, w]
            n_waiting = 0
            for w in range(n_words):
                waiting[w] &= ~confident[slot, w]
                n_waiting += popcount(waiting[w])
        for t in range(n_classes):
            confusion[d, t, 0] = n_true[t]
        for p in range(1, n_classes + 1):
            for w in range(n_words):
                these[w] = everyone[w]
            if p >> n_bits == 0:
                for b in range(n_bits):
                    flipped = np.uint64(0) if (p >> b) & 1 else ~np.uint64(0)
                    for w in range(n_words):
                        these[w] &= told[b, w] ^ flipped
            if p == n_classes:
                for w in range(n_words):
                    these[w] = waiting[w] | (these[w] if p >> n_bits == 0 else np.uint64(0))
            for t in range(n_classes):
                n = 0
                for w in range(n_words):
                    n += popcount(these[w] & truth[t, w])
                confusion[d, t, p] = n
                confusion[d, t, 0] -= n
