"""What buying a stage saves on average, where errors have prices: from rows that look alike."""

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.prices.errors import ErrorPrices
from emsco.scoring.answers import Answers
from emsco.scoring.rejection import RejectRule

_ALIKE = 40  # rows that are averaged, about
_MOST_PARTS = 8


@dataclass(frozen=True)
class Saving:
    """What buying a stage saves on average, by the price that stopping before it is expected to cost.

    Attributes
    ----------
    up_to : tuple of float
        Expected prices of stopping, ascending, that end all parts but the last.
    saves : tuple of float
        Of each part, the mean price of stopping less the mean money for later tests and errors after buying. Empty if
        no row reached the stage.

    Examples
    --------
    >>> saving = Saving(up_to=(10.0, 20.0), saves=(1.5, 4.0, 12.4))
    >>> saving.at(10.0), saving.at(17.0), saving.at(95.0)
    (1.5, 4.0, 12.4)
    """

    up_to: tuple[float, ...]
    saves: tuple[float, ...]

    def at(self, expected: float) -> float | None:
        """Return what buying saves a case that is expected to cost so much if it stops; None if that is unknown."""
        return self.saves[bisect_left(self.up_to, expected)] if self.saves else None


def savings_of(answers: Answers, rule: RejectRule, errors: ErrorPrices, paid: FloatArray) -> tuple[Saving, ...]:
    """Return what buying each stage of a design saves the rows that buy it.

    Parameters
    ----------
    answers : Answers
        Of the stages of the design, for rows that did not train them.
    rule : RejectRule
        When rows leave.
    errors : ErrorPrices
    paid : ndarray of shape (n_stages,)
        What has been paid by the end of each stage.

    Notes
    -----
    The first stage is compared with the constant answer of least price, since nothing is known before it.
    """
    rows = np.arange(answers.n_rows)
    stage = answers.leaving(rule)[0]
    money = paid[stage] + errors.price(answers.truth, answers.label[stage, rows])
    savings = [Saving((), (float(errors.constant(answers.truth) - money.mean()),))]
    for j in range(1, len(paid)):
        here = np.flatnonzero(stage >= j)
        stopped = errors.rows(here).price(answers.truth[here], answers.label[j - 1, here])
        saved = stopped - (money[here] - paid[j - 1])
        savings.append(_by_parts(errors.expected(answers.confidence[j - 1, here]), saved))
    return tuple(savings)


def _by_parts(expected: FloatArray, saved: FloatArray) -> Saving:
    """Average over rows of similar expected price; rows of equal price stay together."""
    n_parts = int(np.clip(saved.size // _ALIKE, 1, _MOST_PARTS)) if saved.size else 0
    if not n_parts:
        return Saving((), ())
    ends: NDArray[np.float64] = np.unique(np.quantile(expected, np.arange(1, n_parts) / n_parts, method="lower"))
    part = np.searchsorted(ends, expected, side="left")
    counts = np.bincount(part, minlength=ends.size + 1)
    kept = np.flatnonzero(counts)  # the last part may be empty, if many rows have the largest price
    means = np.bincount(part, weights=saved, minlength=ends.size + 1)[kept] / counts[kept]
    return Saving(tuple(ends[: len(kept) - 1].tolist()), tuple(means.tolist()))
