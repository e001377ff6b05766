"""A promise on money: the expected price of errors of new rows is at most so much, with a stated confidence.

Points of a front are tested on calibration rows in an order that was fixed before, from the least price of errors on,
until one fails (fixed-sequence testing, as in *Learn then Test*). All points that passed keep the promise together with
the stated confidence, so any of them may be used. ``docs/money.md`` explains.
"""

from dataclasses import dataclass
from math import ceil, exp, log
from typing import Any

import numpy as np

from emsco.arrays import FloatArray, IntArray
from emsco.exceptions import InvalidParameterError


@dataclass(frozen=True)
class LossPromise:
    """What is promised of the price of errors per case, and how it was checked.

    Attributes
    ----------
    at_most : float
        Promised expected price of errors, no answers included, per case.
    confidence : float
        Least probability, over the draw of the calibration rows, that the promise holds.
    point : int or None
        The point in use; None if no point passed.
    passed : tuple of int
        Points of which it holds, in the order in which they were tested.
    loss : float
        Mean price of errors of the calibration rows at that point; where none passed, at the first one tested.
    p_value : float
        Probability of so small a mean if the promise did not hold, at most.
    n_rows : int
        Calibration rows.
    """

    at_most: float
    confidence: float
    point: int | None
    passed: tuple[int, ...]
    loss: float
    p_value: float
    n_rows: int

    def __str__(self) -> str:
        begin = "Asked for, but not promised" if self.point is None else "Promised"
        return (
            f"{begin}: errors cost at most {self.at_most:,.6g} per case, with {100 * self.confidence:.4g} % "
            f"confidence.\nChecked on {self.n_rows:,} rows that nothing else saw: {self.loss:,.4g} per case, p-value "
            f"{self.p_value:.2g}; {len(self.passed)} points passed."
        )


def loss_p_value(mean: float, n_rows: int, at_most: float) -> float:
    """Return how probable so small a mean of losses from 0 to 1 is, at most, if the expected loss is above a limit.

    It is the lesser of the bounds of Hoeffding and Bentkus, both of which hold for every distribution on [0, 1].

    Examples
    --------
    >>> round(loss_p_value(0.0, 100, 0.05), 4), loss_p_value(0.06, 100, 0.05)
    (0.0059, 1.0)
    """
    if at_most >= 1.0:
        return 0.0
    if mean >= at_most or at_most <= 0.0:
        return 1.0
    from scipy.stats import binom

    entropy = (0.0 if mean == 0 else mean * log(mean / at_most)) + (1 - mean) * log((1 - mean) / (1 - at_most))
    n_lost = ceil(n_rows * mean - 1e-9)
    return float(min(exp(-n_rows * entropy), np.e * binom.cdf(n_lost, n_rows, at_most), 1.0))


def check_losses(
    losses: FloatArray, order: IntArray, preference: FloatArray, *, at_most: float, largest: float, confidence: float
) -> LossPromise:
    """Test points in an order until one fails, and return what can be promised.

    Parameters
    ----------
    losses : ndarray of shape (n_points, n_rows)
        Price of the error of each calibration row.
    order : ndarray of shape (n_points,)
        In which points are tested; fixed without a look at these rows.
    preference : ndarray of shape (n_points,)
        Of the points that pass, the one with the least is used; it must not depend on these rows either.
    at_most, largest, confidence : float
        The promise, the largest price that an error can have, and how sure it must be.
    """
    n_rows = losses.shape[1]
    means = losses.mean(axis=1)
    passed: list[int] = []
    p_values: dict[int, float] = {}
    for point in order.tolist():
        p_values[point] = loss_p_value(float(means[point]) / largest, n_rows, at_most / largest)
        if p_values[point] > 1 - confidence:
            break
        passed.append(point)
    best = min(passed, key=lambda point: float(preference[point])) if passed else None
    shown = int(order[0]) if best is None else best
    return LossPromise(at_most, confidence, best, tuple(passed), float(means[shown]), p_values[shown], n_rows)


def check_promised(at_most: Any, confidence: Any) -> tuple[float, float]:
    """Return a limit of the price of errors and a confidence, if they are numbers that can be promised."""
    for name, value, most in (("at_most", at_most, np.inf), ("confidence", confidence, 1.0)):
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not 0 < value < most:
            wanted = "a price above 0" if name == "at_most" else "a share strictly between 0 and 1, such as 0.95"
            raise InvalidParameterError(f"must be {wanted}; got {value!r}.", parameter=name)
    return float(at_most), float(confidence)
