"""The proof of designs that branch: all of them with a given root and given branches, by the stages of chains.

In a branch, the designs are the chains of the units that the root has not bought, and its rows are those that the root
leaves there. Each branch is searched as a space of its own, by counts: more labels, fewer wrong ones, lower cost. Sums
of what is best so hold everything that is best by coverage, accuracy and cost (`emsco.scoring.compose`).
"""

from dataclasses import dataclass, replace
from math import prod
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, IntArray
from emsco.exceptions import InvalidParameterError
from emsco.prices.prices import PriceList
from emsco.scoring import _bitset as bitset
from emsco.scoring.certificate import Certificate
from emsco.scoring.compose import compose
from emsco.search.exact.lattice import Bits
from emsco.search.exact.proof import Exact, search_exactly


@dataclass(frozen=True, eq=False)
class BranchedProof:
    """What is best with one root.

    Attributes
    ----------
    counts : ndarray of shape (n_points, 3)
        Labels, wrong ones among them, and ticks, cheapest first: all that no other one beats in all three.
    designs : ndarray of shape (n_points, n_branches, n_units)
        A design of each: the chain of each branch.
    certificate : Certificate
    """

    counts: IntArray
    designs: IntArray
    certificate: Certificate


def prove_branched(
    bits: Bits,
    prices: PriceList,
    root: BoolArray,
    branch: NDArray[np.intp],
    settings: Exact | None = None,
    *,
    max_stages: int,
    removal: bool = False,
    n_jobs: int = 1,
) -> BranchedProof:
    """Return everything that is best of all designs that buy a root and go on in each branch in their own way.

    Parameters
    ----------
    bits : Bits
        What every feature set says of every sample.
    prices : PriceList
    root : ndarray of shape (n_units,)
        What the first stage buys; not nothing.
    branch : ndarray of shape (n_samples,)
        The branch of each sample, from 0.
    settings : Exact or None
    max_stages : int
        Most stages of a branch, the root's included.
    removal : bool
        Whether a branch may leave units out, or end with the root.
    n_jobs : int
    """
    settings, started = Exact() if settings is None else settings, perf_counter()
    if not root.any() or (max_stages < 2 and not removal and not root.all()):
        raise InvalidParameterError("a design that branches has a root, and stages enough for what it must buy.")
    owned, n_units = int((root * (1 << np.arange(root.size))).sum()), root.size
    price = int(prices.stage_ticks(root[None])[0])
    rest = np.flatnonzero(~root)
    parts, designs, proofs = [], [], []
    for b in range(int(branch.max()) + 1):
        rows = bitset.pack((branch == b)[None])[0]
        of_root = _counts(rows, bits, owned, price)
        chains = _after(bits, owned, rest, rows)
        found = [np.where(root, 0, -1)] if removal or not rest.size else []
        counts = [of_root] * len(found)
        if rest.size and not chains.n_samples:
            found, counts = [np.where(root, 0, -1 if removal else 1)], [of_root]
        elif rest.size and max_stages > 1:
            proof = search_exactly(
                chains, settings, max_stages=max_stages - 1, removal=removal, n_jobs=n_jobs, started=started,
                by_counts=True,
            )  # fmt: skip
            proofs.append((proof, proof.certificate.n_designs + removal))
            for design in proof.designs:
                row = np.where(root, 0, -1)
                row[rest] = np.where(design < 0, -1, design + 1)
                found.append(row)
                counts.append(of_root + _walked(chains, design))
        parts.append(np.array(counts, dtype=np.int64).reshape(-1, 3))
        designs.append(np.array(found, dtype=np.int64).reshape(-1, n_units))
    total = compose(parts)
    picked = np.array([[designs[b][i] for b, i in enumerate(picks)] for picks in total.picks.tolist()], dtype=np.int64)
    n_designs = prod(n for _, n in proofs)
    n_walked = min(sum(proof.certificate.n_walked for proof, _ in proofs), n_designs)
    proven = all(proof.certificate.proven for proof, _ in proofs)
    n_ruled_out = n_designs - n_walked if proven else 0
    certificate = Certificate(n_designs, n_walked, n_ruled_out, perf_counter() - started, proven)
    return BranchedProof(total.counts, picked.reshape(len(total.counts), len(parts), n_units), certificate)


def _after(bits: Bits, root: int, rest: IntArray, rows: NDArray[np.uint64]) -> Bits:
    """Return the bits of the units beyond the root, for the rows of a branch that the root leaves there."""
    sets = np.full(1 << rest.size, root, dtype=np.int64)
    for i, unit in enumerate(rest.tolist()):
        sets |= ((np.arange(sets.size) >> i) & 1) << unit
    waiting = rows & ~bits.confident[root]
    ticks = bits.ticks[sets & ~root] if bits.parallel else bits.ticks[sets] - bits.ticks[root]
    opened = (bits.members & root) != 0
    members = np.array([sum(int(m >> u & 1) << i for i, u in enumerate(rest.tolist())) for m in bits.members.tolist()])
    return replace(
        bits,
        confident=bits.confident[sets] & waiting,
        right=bits.right[sets] & waiting,
        everyone=waiting,
        ticks=ticks,
        n_samples=int(np.bitwise_count(waiting).sum()),
        n_units=int(rest.size),
        members=members[~opened].astype(np.int64),
        shared=bits.shared[~opened],
    )


def _counts(rows: NDArray[np.uint64], bits: Bits, root: int, price: int) -> IntArray:
    """Return labels, wrong ones and ticks of the rows of a branch at the root."""
    here = rows & bits.confident[root]
    n_here, n_right = (int(np.bitwise_count(part).sum()) for part in (here, here & bits.right[root]))
    return np.array([n_here, n_here - n_right, price * int(np.bitwise_count(rows).sum())])


def _walked(bits: Bits, design: IntArray) -> IntArray:
    """Return labels, wrong ones and ticks of a chain."""
    waiting, counts, before = bits.everyone.copy(), np.zeros(3, dtype=np.int64), 0
    steps = bits.steps
    for stage in range(int(design.max()) + 1):
        owned = int((((design >= 0) & (design <= stage)) * (1 << np.arange(design.size))).sum())
        counts[2] += int(np.bitwise_count(waiting).sum()) * steps.price(before, owned)
        here = waiting & bits.confident[owned]
        counts[0] += int(np.bitwise_count(here).sum())
        counts[1] += int(np.bitwise_count(here & ~bits.right[owned]).sum())
        waiting, before = waiting & ~here, owned
    return counts
