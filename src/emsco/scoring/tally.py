"""Tally: what becomes of the samples along each design, as whole counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import IntArray


@dataclass(frozen=True)
class Tally:
    """Integer counts of designs on the same samples. Counts compare exactly; divisions come later.

    Attributes
    ----------
    n_samples : int
    reached : ndarray of shape (n_designs, n_stages)
        Samples that reach, and pay for, each stage.
    n_conclusive, n_correct : ndarray of shape (n_designs,)
        Samples that leave with a label, and with a correct label.
    total_ticks : ndarray of shape (n_designs,)
        Total cost of all samples, in ticks of the price list.
    scale : float
        Ticks per price unit.
    least_price : float
        The smallest price above 0, in price units.
    values : ndarray of shape (n_designs, n_objectives) or None
        Values of the objectives that the user chose; None for those of the paper, which follow from the counts.
    """

    n_samples: int
    reached: IntArray
    n_conclusive: IntArray
    n_correct: IntArray
    total_ticks: IntArray
    scale: float
    least_price: float
    values: NDArray[np.float64] | None = None

    @property
    def vectors(self) -> IntArray:
        """Integers per design; equal rows are equal objective vectors.

        (n_conclusive, n_correct, total_ticks); for objectives that the user chose, the bits of their values.
        """
        if self.values is not None:
            return self.values.view(np.int64)
        return np.column_stack([self.n_conclusive, self.n_correct, self.total_ticks])

    def select(self, designs: NDArray[np.intp]) -> "Tally":
        """Return the counts of the selected designs."""
        return Tally(
            self.n_samples,
            self.reached[designs],
            self.n_conclusive[designs],
            self.n_correct[designs],
            self.total_ticks[designs],
            self.scale,
            self.least_price,
            None if self.values is None else self.values[designs],
        )


def join_tallies(*parts: Tally) -> Tally:
    """Return the counts of several groups of designs as one."""
    if len(parts) == 1:
        return parts[0]
    deepest = max(part.reached.shape[1] for part in parts)
    reached = [np.pad(part.reached, ((0, 0), (0, deepest - part.reached.shape[1]))) for part in parts]
    return Tally(
        parts[0].n_samples,
        np.concatenate(reached),
        np.concatenate([part.n_conclusive for part in parts]),
        np.concatenate([part.n_correct for part in parts]),
        np.concatenate([part.total_ticks for part in parts]),
        parts[0].scale,
        parts[0].least_price,
        None if parts[0].values is None else np.concatenate([part.values for part in parts if part.values is not None]),
    )


def pack_tally(tally: Tally) -> dict[str, NDArray[Any]]:
    """Return the counts as arrays."""
    return {
        "reached": tally.reached,
        "figures": np.array([tally.n_conclusive, tally.n_correct, tally.total_ticks]),
        "n_samples": np.array(tally.n_samples),
        "money": np.array([tally.scale, tally.least_price]),
        **({} if tally.values is None else {"values": tally.values}),
    }


def restore_tally(arrays: Mapping[str, NDArray[Any]]) -> Tally:
    """Return the counts from the arrays of ``pack_tally``."""
    n_conclusive, n_correct, total_ticks = arrays["figures"]
    counts = (int(arrays["n_samples"]), arrays["reached"], n_conclusive, n_correct, total_ticks)
    scale, least_price = arrays["money"].tolist()
    return Tally(*counts, scale, least_price, arrays.get("values"))
