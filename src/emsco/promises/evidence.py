"""Evidence that a mean has crossed a limit, valid however often one looks at it.

A player bets against "the mean is at most the limit". Each bet multiplies its stake by 1 + b (x - limit), which is fair
or worse for the player as long as the mean is at most the limit. So the wealth of the player stays below 1 / a for ever
with probability at least 1 - a (Ville's inequality): wealth is evidence, and no number of looks spoils it (Waudby-Smith
and Ramdas, *Estimating means of bounded random variables by betting*, 2024).

A mean may change late. A player who has lost everything by then could not tell. So the money is put in little by
little: at each observation a small part of it, the parts adding up to 1 (the mixture over change points of Shin, Ramdas
and Rinaldo, *E-detectors*, 2024).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from emsco.arrays import FloatArray, IntArray

_N_BETS = 10
_SMALLEST_RISE = 0.005  # of the mean, that the most careful bet is made for
_LIKELY_RISE = 0.9  # of the way from the limit to 1, that the boldest bet is made for
_LEAST_LIMIT = 1e-6  # below, a single 1 would be an alarm
_AT_ONCE = 2**14  # observations
_STEPS = 60  # of a bisection: the interval of doubles


@dataclass(frozen=True)
class Bets:
    """Bets against "the mean of numbers between 0 and 1 is at most a limit".

    Attributes
    ----------
    values : tuple of float
        The numbers that can occur, from 0 to 1.
    limit : float
        What the mean is at most, if nothing is wrong.
    """

    values: tuple[float, ...]
    limit: float

    @property
    def log_factors(self) -> FloatArray:
        """By what each value multiplies the stake of each bet, in logarithms, (n_bets, n_values).

        A bet is best if the mean has risen to one level; the levels are spread from a small rise to a large one.
        """
        limit = min(max(self.limit, _LEAST_LIMIT), 1 - _LEAST_LIMIT)
        least = min(_SMALLEST_RISE, (1 - limit) / 2)
        rises = np.geomspace(least, max(_LIKELY_RISE * (1 - limit), least), _N_BETS)
        bets = rises / (limit * (1 - limit))
        return np.log1p(bets[:, None] * (np.array(self.values) - limit))


@dataclass(frozen=True)
class Wealth:
    """What bets have made of 1 so far.

    Attributes
    ----------
    n : int
        Observations.
    logs : tuple of float
        The logarithm of the wealth of each bet.
    """

    n: int = 0
    logs: tuple[float, ...] = (-np.inf,) * _N_BETS

    @property
    def log(self) -> float:
        """The logarithm of the wealth of all bets."""
        return float(_mixed(np.array(self.logs)))

    def after_block(self, bets: Bets, counts: ArrayLike) -> "Wealth":
        """Return the wealth after observations whose order is unknown: how often each value occurred."""
        n = int(np.sum(counts))
        if not n:
            return self
        begun = np.logaddexp(self.logs, np.log(_kept(self.n) - _kept(self.n + n)))
        return Wealth(self.n + n, tuple((begun + bets.log_factors @ np.asarray(counts)).tolist()))

    def after(self, bets: Bets, observed: IntArray) -> tuple["Wealth", FloatArray]:
        """Return the wealth after observations in order, and its logarithm after each of them.

        Parameters
        ----------
        bets : Bets
        observed : ndarray of shape (n,)
            Positions of the values observed.
        """
        wealth, path = self, [np.empty(0)]
        factors = bets.log_factors
        for start in range(0, len(observed), _AT_ONCE):
            part = observed[start : start + _AT_ONCE]
            grown = factors[:, part].cumsum(axis=1)  # what a stake of 1 at the beginning would have become
            times = wealth.n + np.arange(len(part) + 1)
            stakes = np.log(-np.diff(_kept(times)))
            before = np.concatenate([np.zeros((_N_BETS, 1)), grown[:, :-1]], axis=1)
            stakes = np.concatenate([np.array(wealth.logs)[:, None], stakes - before], axis=1)
            logs = grown + np.logaddexp.accumulate(stakes, axis=1)[:, 1:]
            path.append(_mixed(logs))
            wealth = Wealth(wealth.n + len(part), tuple(logs[:, -1].tolist()))
        return wealth, np.concatenate(path)


def _kept(n: Any) -> Any:
    """Return which part of the money is not yet put in after so many observations: little, for a very long time."""
    return 1 / (1 + np.log1p(n))


def _mixed(logs: FloatArray) -> FloatArray:
    return np.asarray(np.logaddexp.reduce(logs, axis=0) - np.log(_N_BETS))


def highest_mean(values: Sequence[float], counts: Sequence[int], risk: float) -> float:
    """Return what a mean of numbers between 0 and 1 is at most, with probability 1 - risk, by how often each occurred.

    It is the least mean that bets have made implausible. No distribution is assumed, and no large number.

    Examples
    --------
    >>> round(highest_mean([0.0, 0.5, 1.0], [80, 15, 5], 0.05), 2)
    0.23
    """
    x, n = np.array(values, dtype=np.float64), np.array(counts)
    bets = np.geomspace(0.02, 0.999, _N_BETS)[:, None]

    def implausible(mean: float) -> bool:
        return bool(_mixed(np.log1p(bets * (mean - x)) @ n) >= np.log(1 / risk))

    if not n.sum() or not implausible(1.0):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if implausible(middle) else (middle, high)
    return high
