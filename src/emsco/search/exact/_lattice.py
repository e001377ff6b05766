"""All designs at once, as chains of feature sets, each a proper part of the next, the last one everything.

With ``removal`` a chain may end at any set. It is then followed by an end that is like everything was: nothing comes
after it. But it costs nothing, and labels nobody. So ``rejected`` is everyone, ``wrong_at_last`` and ``right_at_last``
are nobody, the last stage of a chain is its end, and there is one more of them.

Arrays in, arrays out, no checks. A feature set is the integer whose bit u says that unit u is owned; row s of
``confident``, ``right``, ... are packed samples of set s. A *state* is what a chain leaves behind at its last set: who
waits, how many were told wrong, what was paid, and how many stages may follow. Chains that leave the same state behind
are one from there on. A vector is (q conclusive samples, e wrong ones among them, total cost).
"""

from typing import Any

import numpy as np

from emsco._compile import inlined, kernel, part
from emsco._scalar import popcount
from emsco.search.exact.steps import Steps

Array = Any

# Columns of the figures of a state. The allowance is the most that a design through it may cost, as it was when the
# state was stored: beyond, what it can still reach is beaten. The slack is what its least conceivable cost leaves.
N_WRONG, PAID, N_WAITING, ROOM, PARENT, ALLOWANCE, SLACK = range(7)
N_FIGURES = 7


@part()
def _slowest(ticks: Array, members: Array, shared: Array, owned: int, new: int) -> int:
    """Return what the slowest of some units takes, given those owned, in parallel."""
    slowest = ticks[new]
    for g in range(members.size):
        if new & members[g] and not owned & members[g]:
            slowest = max(slowest, ticks[new & members[g]] + shared[g])
    return slowest  # type: ignore[no-any-return]


@part()
def _slowest_from(ticks: Array, members: Array, shared: Array, owned: int, rest: int, slowest: Array) -> None:
    """Write what the step from a set to each larger one takes, in parallel; 0 for the set itself."""
    slowest[owned] = 0
    more = rest & -rest
    while more:
        first = more & -more
        alone = _slowest(ticks, members, shared, owned, first)
        slowest[owned | more] = max(slowest[owned | (more ^ first)], alone)
        more = (more - rest) & rest  # the next larger part of the rest


@part()
def _enter(
    before: Array, s: int, confident: Array, right: Array, wrong_at_last: Array, rejected: Array, after: Array
) -> tuple[int, int, int, int]:
    """Let those waiting enter set s, and write who stays.

    Returns how many stay and how many are told wrong; then, if all the rest is bought next, how many are rejected and
    how many more are told wrong.
    """
    n_after = n_wrong = n_rejected = n_wrong_at_last = 0
    for w in range(before.size):
        here = before[w] & confident[s, w]
        stay = before[w] ^ here
        after[w] = stay
        n_wrong += popcount(here & ~right[s, w])
        n_after += popcount(stay)
        n_rejected += popcount(stay & rejected[w])
        n_wrong_at_last += popcount(stay & wrong_at_last[w])
    return n_after, n_wrong, n_rejected, n_wrong_at_last


@inlined
def _hope(
    waiting: Array, s: int, n_after: int, n_wrong: int, paid: int, price_of_rest: int, limit: Array, rejected: Array,
    between: Array, doomed: Array, cheapest: Array, removal: bool,
) -> tuple[int, int]:  # fmt: skip
    """Return the least that a design through a state can cost, and the most that it may.

    The best that can come: who can be labelled is, rightly if that can be, at the next set if any can. These pay for
    one more stage at least, the others for all the rest: facts 1 and 2 of `Steps`.
    """
    q = limit.shape[0] - 1
    n_doomed = 0
    n_between = 0
    for w in range(waiting.size):
        stay = waiting[w]
        q -= popcount(stay & rejected[w] & ~between[s, w])
        n_doomed += popcount(stay & doomed[s, w])
        n_between += popcount(stay & between[s, w])
    e = n_wrong + n_doomed
    least = paid + n_between * cheapest[s] + (n_after - n_between) * price_of_rest
    allowance = limit[q, e]
    if removal:
        # Whoever waits pays for one more set at least; who can only be told wrong may get no label instead.
        least = paid + n_after * cheapest[s]
        for n_spared in range(1, n_doomed + 1):
            allowance = max(allowance, limit[q - n_spared, e - n_spared])
    return least, allowance


@kernel()
def grow(
    sets: Array,
    n_units: int,
    figures: Array,
    waiting: Array,
    spans: Array,
    confident: Array,
    right: Array,
    steps: Steps,
    dearest: Array,
    rejected: Array,
    wrong_at_last: Array,
    between: Array,
    doomed: Array,
    fallible: Array,
    cheapest: Array,
    limit: Array,
    width: int,
    most_states: int,
    n_states: Array,
    best: Array,
    best_parent: Array,
    best_set: Array,
    stop: Array,
    removal: bool,
    new: Array,
    new_waiting: Array,
    kept: Array,
    kept_waiting: Array,
    n_kept_of: Array,
) -> tuple[Array, Array, int, int]:
    """Extend the states of all proper parts of each of some sets to that set; return the states to keep there.

    A state is dropped if everything that it can reach is strictly beaten: by a known vector (a design of q, e costs
    more than ``limit[q, e]``), or by what another state of the same set reaches the same way. Equal states are merged.
    Of more than ``width`` the most promising are kept. Along the way the design that buys all the rest next is scored
    and entered into ``best`` if nothing known beats it. ``spans`` are the states of each set after which two more sets
    may come before everything; those after which one may are not extended here but by `finish`.

    Returns the figures and waiting samples of the kept states, how many designs were scored, and how many sets had
    states cut off by the width. Adds to ``n_kept_of`` how many states were kept of each set: those to extend here, then
    those to finish. The four arrays before it are room for states; where it ends, they are replaced by longer ones.
    """
    ticks, of_rest, overhead, parallel, members, shared = steps
    full = (np.int64(1) << n_units) - 1
    n_samples = limit.shape[0] - 1
    n_kept = np.int64(0)
    n_walked = n_cut = 0
    for i in range(sets.size):
        if stop[0] or n_states[0] > most_states:
            break
        s = sets[i]
        n_rest = popcount(np.uint64(full ^ s)) + (1 if removal else 0)
        price_of_rest = of_rest[s]
        n_new = np.int64(0)  # a plain 0 is a type of its own, and everything called with it is compiled twice
        n_many = np.int64(1024)
        is_cut = False
        part = s
        while part:
            part = (part - 1) & s
            while n_new + spans[part, 1] - spans[part, 0] >= len(new):
                new = _longer(new)
                new_waiting = _longer(new_waiting)
            price = ticks[s] - ticks[part] + overhead
            if parallel:
                price = _slowest(ticks, members, shared, part, s ^ part) + overhead
            for parent in range(spans[part, 0], spans[part, 1]):
                paid = figures[parent, PAID] + figures[parent, N_WAITING] * price
                if paid > figures[parent, ALLOWANCE]:
                    continue
                n_after, n_wrong, n_rejected, n_wrong_at_last = _enter(
                    waiting[parent], s, confident, right, wrong_at_last, rejected, new_waiting[n_new]
                )
                n_wrong += figures[parent, N_WRONG]
                n_walked += 1
                q = n_samples - n_rejected
                e = n_wrong + n_wrong_at_last
                total = paid + n_after * price_of_rest
                if total <= limit[q, e] and total < best[q, e]:
                    best[q, e] = total
                    best_parent[q, e] = parent
                    best_set[q, e] = s
                room = min(figures[parent, ROOM] - 1, n_rest)
                if room < 2 or n_after == 0:
                    continue
                least, allowance = _hope(
                    new_waiting[n_new], s, n_after, n_wrong, paid, price_of_rest, limit, rejected, between, doomed,
                    cheapest, removal,
                )  # fmt: skip
                if least > allowance:
                    continue
                new[n_new, N_WRONG] = n_wrong
                new[n_new, PAID] = paid
                new[n_new, N_WAITING] = n_after
                new[n_new, ROOM] = room
                new[n_new, PARENT] = parent
                new[n_new, ALLOWANCE] = allowance
                new[n_new, SLACK] = allowance - least
                n_new += 1
            if n_new > n_many or part == 0:
                n_chosen = _choose(new, new_waiting, n_new, 8 * width)
                is_cut = is_cut or n_chosen < n_new
                n_new = _filter(new, new_waiting, n_chosen, cheapest[s], dearest[i], fallible[s], rejected)
                n_many = max(n_many, 2 * n_new)
        n_chosen = _choose(new, new_waiting, n_new, width)
        n_cut += is_cut or n_chosen < n_new
        n_states[0] += n_chosen  # by all threads: near enough for a bound
        while n_kept + n_chosen > len(kept):
            kept = _longer(kept)
            kept_waiting = _longer(kept_waiting)
        for last in range(2):
            for j in range(n_chosen):
                if (new[j, ROOM] == 2) == (last == 1):
                    _copy_row(new, j, kept, n_kept)
                    _copy_row(new_waiting, j, kept_waiting, n_kept)
                    n_kept += 1
                    n_kept_of[i, last] += 1
    return kept[:n_kept], kept_waiting[:n_kept], n_walked, n_cut


@part()
def _longer(array: Array) -> Array:
    """Return a copy of a matrix with room for as many rows again."""
    longer = np.empty((2 * array.shape[0], array.shape[1]), array.dtype)
    for i in range(array.shape[0]):
        _copy_row(array, i, longer, i)
    return longer


@part()
def _filter(
    new: Array,
    waiting: Array,
    n: int,
    cheapest: int,
    dearest: Array,
    fallible: Array,
    rejected: Array,
) -> int:
    """Move the states of one set that another of them does not strictly beat to the front; return how many they are.

    State a beats state b if, however both go on in the same way, a ends with no fewer labels, no more wrong ones and no
    higher cost, and with one of the last two better. Those who wait only in a must get a label at last, are wrong
    wherever they can be, and pay the most that the way to everything can cost; those who wait only in b pay for the
    cheapest stage. Of equal states one is kept.
    """
    n_words = waiting.shape[1]
    key = np.empty(n, np.int64)
    for i in range(n):
        key[i] = new[i, PAID] + new[i, N_WAITING] * cheapest
    # Of those kept, side by side: the row, and what rules most of them out at a glance.
    kept = np.empty(n, np.int64)
    n_wrong = np.empty(n, np.int64)
    room = np.empty(n, np.int64)
    doubtful = np.empty(n, np.int64)  # who waits and everything would reject, folded into one word
    n_kept = 0
    order = _ascending(key)
    for i in range(n):  # who beats has the smaller key
        b = order[i]
        fold = np.int64(0)
        for w in range(n_words):
            fold |= np.int64(waiting[b, w] & rejected[w])
        beaten = False
        for j in range(n_kept):
            if doubtful[j] & ~fold or n_wrong[j] > new[b, N_WRONG] or room[j] < new[b, ROOM]:
                continue
            a = kept[j]
            n_only_a = n_only_b = n_fallible = 0
            comparable = True
            for w in range(n_words):
                only_a = waiting[a, w] & ~waiting[b, w]
                if only_a:
                    if only_a & rejected[w]:
                        comparable = False
                        break
                    n_only_a += popcount(only_a)
                    n_fallible += popcount(only_a & fallible[w])
                n_only_b += popcount(waiting[b, w] & ~waiting[a, w])
            if not comparable:
                continue
            wrong = new[a, N_WRONG] + n_fallible - new[b, N_WRONG]
            cost = new[a, PAID] + n_only_a * dearest[new[b, ROOM]] - new[b, PAID] - n_only_b * cheapest
            if wrong > 0 or cost > 0:
                continue
            same = n_only_a == 0 and n_only_b == 0 and new[a, ROOM] == new[b, ROOM]
            if wrong < 0 or cost < 0 or same:
                beaten = True
                sooner = j // 2  # who beats one beats others: try it sooner
                kept[j], kept[sooner] = kept[sooner], kept[j]
                n_wrong[j], n_wrong[sooner] = n_wrong[sooner], n_wrong[j]
                room[j], room[sooner] = room[sooner], room[j]
                doubtful[j], doubtful[sooner] = doubtful[sooner], doubtful[j]
                break
        if not beaten:
            kept[n_kept] = b
            n_wrong[n_kept] = new[b, N_WRONG]
            room[n_kept] = new[b, ROOM]
            doubtful[n_kept] = fold
            n_kept += 1
    _move_to_front(new, waiting, n, kept[:n_kept])
    return n_kept


@part()
def _choose(new: Array, waiting: Array, n: int, width: int) -> int:
    """Move the ``width`` states of the most slack to the front; return how many there are."""
    if n <= width:
        return n
    minus_slack = np.empty(n, np.int64)
    for i in range(n):
        minus_slack[i] = -new[i, SLACK]
    _move_to_front(new, waiting, n, _ascending(minus_slack)[:width])
    return width


@part()
def _ascending(key: Array) -> Array:
    """Return the stable order of the keys: np.argsort, which takes seconds to compile, by merging."""
    n = key.size
    order = np.empty(n, np.int64)
    for i in range(n):
        order[i] = i
    merged = np.empty(n, np.int64)
    width = 1
    while width < n:
        for begin in range(0, n, 2 * width):
            i, middle = begin, min(begin + width, n)
            j, end = middle, min(begin + 2 * width, n)
            for to in range(begin, end):
                if j == end or (i < middle and key[order[i]] <= key[order[j]]):
                    merged[to] = order[i]
                    i += 1
                else:
                    merged[to] = order[j]
                    j += 1
        order, merged = merged, order
        width *= 2
    return order


@part()
def _move_to_front(new: Array, waiting: Array, n: int, rows: Array) -> None:
    chosen = np.empty(n, np.int64)
    for i in range(n):
        chosen[i] = 0
    for i in range(rows.size):
        chosen[rows[i]] = 1
    to = np.int64(0)
    for i in range(n):
        if chosen[i]:
            _copy_row(new, i, new, to)
            _copy_row(waiting, i, waiting, to)
            to += 1


@part()
def _copy_row(source: Array, i: int, target: Array, j: int) -> None:
    for column in range(source.shape[1]):
        target[j, column] = source[i, column]


@part()
def _close(
    before: Array, s: int, confident: Array, right: Array, rejected: Array, right_at_last: Array
) -> tuple[int, int, int]:
    """Let those waiting enter set s, then everything; return how many pay twice, are rejected, and are told right."""
    n_after = n_rejected = n_right = 0
    for w in range(before.size):
        after = before[w] & ~confident[s, w]
        n_after += popcount(after)
        n_rejected += popcount(after & rejected[w])
        n_right += popcount((before[w] & right[s, w]) | (after & right_at_last[w]))
    return n_after, n_rejected, n_right


@kernel()
def finish(
    states: Array,
    set_of: Array,
    n_units: int,
    figures: Array,
    waiting: Array,
    confident: Array,
    right: Array,
    steps: Steps,
    rejected: Array,
    right_at_last: Array,
    limit: Array,
    best: Array,
    best_parent: Array,
    best_set: Array,
    stop: Array,
    removal: bool,
    ties: bool,
    charge: Array,
    found: Array,
) -> tuple[int, int]:
    """Score all designs that buy one more set after some states, then all the rest; return how many were scored.

    Nearly all designs of few stages are met here. They are entered into ``best`` if nothing known beats them. To find
    ``ties``, ``limit[q, e]`` is instead the cost sought, or -1, and the designs of that cost are written to ``found``
    and counted, also those for which it has no room: an array that grows here would slow the loop by a quarter. Their
    rows are the state, the set, q, e, and how many stages may follow the set if nobody waits any more, else 1: the last
    one, which with ``removal`` is the end. ``charge`` is an array to work in, by set.
    """
    ticks, of_rest, overhead, parallel, members, shared = steps
    full = (np.int64(1) << n_units) - 1
    if not parallel:
        charge = ticks  # by set: a stage costs the difference, and overhead
    charged_from = np.int64(-1)
    n_samples = limit.shape[0] - 1
    n_walked = 0
    n_found = 0
    for i in range(states.size):
        if stop[0]:
            break
        state = states[i]
        owned = set_of[state]
        rest = full ^ owned
        n_before = figures[state, N_WAITING]
        allowance = figures[state, ALLOWANCE]
        if parallel and owned != charged_from:
            _slowest_from(ticks, members, shared, owned, rest, charge)
            charged_from = owned
        start = figures[state, PAID] + n_before * (overhead - charge[owned])
        n_right_before = n_samples - n_before - figures[state, N_WRONG]
        before = waiting[state]
        more = rest if removal else (rest - 1) & rest
        while more:
            s = owned | more
            more = (more - 1) & rest
            paid = start + n_before * charge[s]
            if paid > allowance:
                continue
            n_walked += 1
            n_after, n_rejected, n_right = _close(before, s, confident, right, rejected, right_at_last)
            q = n_samples - n_rejected
            e = q - n_right_before - n_right
            total = paid + n_after * of_rest[s]
            if total > limit[q, e]:
                continue
            if not ties:
                if total < best[q, e]:
                    best[q, e] = total
                    best_parent[q, e] = state
                    best_set[q, e] = s
            elif total == limit[q, e]:
                if n_found < found.shape[0]:
                    found[n_found, 0] = state
                    found[n_found, 1] = s
                    found[n_found, 2] = q
                    found[n_found, 3] = e
                    n_left = popcount(np.uint64(full ^ s)) + (1 if removal else 0)
                    found[n_found, 4] = min(figures[state, ROOM] - 1, n_left) if n_after == 0 else 1
                n_found += 1
    return n_walked, n_found


@kernel()
def parents(
    targets: Array,
    s: int,
    n_units: int,
    figures: Array,
    waiting: Array,
    spans: Array,
    confident: Array,
    right: Array,
    steps: Steps,
    removal: bool,
    nobody: Array,
    after: Array,
    found: Array,
) -> Array:
    """Return all pairs of a state and one of the targets, states of set s, that it becomes there.

    The last three are an empty set of samples and arrays to work in: for another, and for pairs.
    """
    ticks, _, overhead, parallel, members, shared = steps
    full = (np.int64(1) << n_units) - 1
    n_rest = popcount(np.uint64(full ^ s)) + (1 if removal else 0)
    n_found = 0
    part = s
    while part:
        part = (part - 1) & s
        price = ticks[s] - ticks[part] + overhead
        if parallel:
            price = _slowest(ticks, members, shared, part, s ^ part) + overhead
        for parent in range(spans[part, 0], spans[part, 1]):
            paid = figures[parent, PAID] + figures[parent, N_WAITING] * price
            for t in range(targets.size):
                target = targets[t]
                if paid != figures[target, PAID]:
                    continue
                _, n_wrong, _, _ = _enter(waiting[parent], s, confident, right, nobody, nobody, after)
                same = figures[parent, N_WRONG] + n_wrong == figures[target, N_WRONG]
                same = same and min(figures[parent, ROOM] - 1, n_rest) == figures[target, ROOM]
                for w in range(after.size):
                    same = same and after[w] == waiting[target, w]
                if same:
                    if n_found == len(found):
                        found = _longer(found)
                    found[n_found, 0] = parent
                    found[n_found, 1] = target
                    n_found += 1
    return found[:n_found]
