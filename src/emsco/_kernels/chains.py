"""Every design as a chain of feature sets, each a proper part of the next, the last one everything.

Arrays in, arrays out, no checks. A feature set is the integer whose bit u says that unit u is owned; row s of
``confident`` and ``right`` are the packed samples of set s. Chains are walked depth first, so that a design costs one
step more than its prefix. A vector is (q conclusive samples, c correct ones, total cost).
"""

from typing import Any

import numpy as np

from emsco._kernels.compile import kernel
from emsco._kernels.scalar import popcount

Array = Any


@kernel()
def is_simpler(chain: Array, n_stages: int, other: Array, n_other: int, n_units: int) -> bool:
    """Whether a chain has fewer stages than another or, with as many, the smaller row of stage numbers."""
    if n_stages != n_other:
        return n_stages < n_other
    for unit in range(n_units):
        stage = 0
        stage_of_other = 0
        for j in range(n_stages):
            stage += 1 - ((chain[j] >> unit) & 1)
            stage_of_other += 1 - ((other[j] >> unit) & 1)
        if stage != stage_of_other:
            return stage < stage_of_other
    return False


@kernel()
def _enter(
    q: int, c: int, total: int, weight: int, chain: Array, n_stages: int, n_units: int, best: Array, place: Array,
    n_ties: Array, chains: Array, lengths: Array, listed: Array,
) -> None:  # fmt: skip
    """Enter ``weight`` designs of one vector into the tables; ``chain`` is the simplest of them.

    Without a ``place``, the least cost of each (q, c) and a chain that has it are kept. With it, vectors sought have
    their cost in ``best`` and a row in the other tables: their designs are counted, the simplest chain is kept, and
    while there is room in ``listed`` all of them are.
    """
    if place.size == 0:
        if total < best[q, c]:
            best[q, c] = total
            row = q * best.shape[1] + c
            lengths[row] = n_stages
            for j in range(n_stages):
                chains[row, j] = chain[j]
    elif total == best[q, c]:
        row = place[q, c]
        if n_ties[row] < listed.shape[0]:
            for j in range(n_stages):
                listed[n_ties[row], j] = chain[j]
        n_ties[row] += weight
        if lengths[row] == 0 or is_simpler(chain, n_stages, chains[row], lengths[row], n_units):
            lengths[row] = n_stages
            for j in range(n_stages):
                chains[row, j] = chain[j]


@kernel()
def walk(
    firsts: Array,
    n_units: int,
    max_stages: int,
    confident: Array,
    right: Array,
    ticks: Array,
    everyone: Array,
    below: Array,
    best: Array,
    place: Array,
    n_ties: Array,
    chains: Array,
    lengths: Array,
    listed: Array,
    stop: Array,
) -> tuple[int, int]:
    """Walk all designs whose first stage buys one of the sets ``firsts``.

    Returns how many were walked, and how many were ruled out without a look: when nobody waits any more, all ways to go
    on have the vector of stopping here. ``below[m, k]`` is the number of ways to buy m units in at most k stages. With
    room in ``listed`` nothing is ruled out. Ends early when ``stop[0]`` is set.
    """
    n_words = everyone.size
    full = (np.int64(1) << n_units) - 1
    n_samples = 0
    rejected = np.empty(n_words, np.uint64)
    for w in range(n_words):
        n_samples += popcount(everyone[w])
        rejected[w] = everyone[w] & ~confident[full, w]
    right_at_last = right[full]
    chain = np.zeros(max_stages + 1, np.int64)
    todo = np.zeros(max_stages + 1, np.int64)  # subsets of what is not owned, still to be bought next
    waiting = np.zeros((max_stages + 1, n_words), np.uint64)
    n_waiting = np.zeros(max_stages + 1, np.int64)
    correct = np.zeros(max_stages + 1, np.int64)
    paid = np.zeros(max_stages + 1, np.int64)
    for w in range(n_words):
        waiting[0, w] = everyone[w]
    n_waiting[0] = n_samples
    n_walked = 0
    n_ruled_out = 0
    for first in firsts:
        depth = 0  # sets before the one being entered
        owned = np.int64(0)
        entering = np.int64(first)
        if entering != full and max_stages == 1:
            continue
        while True:
            if stop[0]:
                return n_walked, n_ruled_out
            # Enter a set: whoever it is confident of leaves.
            n = 0
            good = correct[depth]
            for w in range(n_words):
                before = waiting[depth, w]
                good += popcount(before & right[entering, w])
                after = before & ~confident[entering, w]
                waiting[depth + 1, w] = after
                n += popcount(after)
            total = paid[depth] + n_waiting[depth] * (ticks[entering] - ticks[owned])
            chain[depth] = entering
            depth += 1
            correct[depth] = good
            n_waiting[depth] = n
            paid[depth] = total
            # Close the design here: the last stage buys all the rest.
            rest = full ^ entering
            more: Any = np.int64(0)
            weight: Any = np.int64(1)
            n_stages = depth
            left = n
            if rest:
                left = 0
                for w in range(n_words):
                    left += popcount(waiting[depth, w] & rejected[w])
                    good += popcount(waiting[depth, w] & right_at_last[w])
                total += n * (ticks[full] - ticks[entering])
                chain[depth] = full
                n_stages = depth + 1
                room = max_stages - depth  # stages that may still follow, the last one included
                if room > 1:
                    more = (rest - 1) & rest
                if n == 0 and more and listed.shape[0] == 0:
                    weight = below[popcount(np.uint64(rest)), room]
                    more = np.int64(0)
            _enter(
                n_samples - left,
                good,
                total,
                weight,
                chain,
                n_stages,
                n_units,
                best,
                place,
                n_ties,
                chains,
                lengths,
                listed,
            )
            n_walked += 1
            n_ruled_out += weight - 1
            if more and max_stages - depth == 2:
                n_walked += _leaves(
                    depth, entering, rest, confident, right, ticks, rejected, right_at_last, waiting[depth], n,
                    correct[depth], paid[depth], n_samples, n_units, chain, best, place, n_ties, chains, lengths,
                    listed,
                )  # fmt: skip
                more = np.int64(0)
            todo[depth] = more
            # The next set: one that owns more if there is any, else back up.
            while depth > 0 and todo[depth] == 0:
                depth -= 1
            if depth == 0:
                break
            owned = chain[depth - 1]
            entering = owned | todo[depth]
            todo[depth] = (todo[depth] - 1) & (full ^ owned)
    return n_walked, n_ruled_out


@kernel()
def _leaves(
    depth: int,
    owned: int,
    rest: int,
    confident: Array,
    right: Array,
    ticks: Array,
    rejected: Array,
    right_at_last: Array,
    waiting: Array,
    n_waiting: int,
    correct: int,
    paid: int,
    n_samples: int,
    n_units: int,
    chain: Array,
    best: Array,
    place: Array,
    n_ties: Array,
    chains: Array,
    lengths: Array,
    listed: Array,
) -> int:
    """Walk the designs with exactly one more set between ``owned`` and everything: nearly all designs are met here."""
    n_words = rejected.size
    seeking = place.size > 0
    full = owned | rest
    everything = ticks[full]
    start = paid - n_waiting * ticks[owned]
    n_walked = 0
    more = (rest - 1) & rest
    while more:
        entering = owned | more
        n = 0
        left = 0
        good = correct
        for w in range(n_words):
            before = waiting[w]
            after = before & ~confident[entering, w]
            n += popcount(after)
            left += popcount(after & rejected[w])
            good += popcount((before & right[entering, w]) | (after & right_at_last[w]))
        total = start + n_waiting * ticks[entering] + n * (everything - ticks[entering])
        q = n_samples - left
        known = best[q, good]
        if total < known or (seeking and total == known):
            chain[depth] = entering
            chain[depth + 1] = full
            _enter(q, good, total, 1, chain, depth + 2, n_units, best, place, n_ties, chains, lengths, listed)
        n_walked += 1
        more = (more - 1) & rest
    return n_walked
