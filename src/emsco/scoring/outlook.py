"""Outlook: what to expect on new rows of the point that was chosen, with the luck of the choice taken out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from emsco.exceptions import InvalidParameterError
from emsco.markup import Sheet
from emsco.scoring.intervals import binomial_interval, mean_and_error
from emsco.scoring.words import tenths

_FIGURES = ("coverage", "accuracy", "mean_cost")
_WIDER = 1.25  # of all intervals: the learner and the designs that were compared are the choice of these rows, too


@dataclass(frozen=True)
class Outlook:
    """Counts of labels of rows, each judged by a design, thresholds and stages that were chosen and trained without it.

    The figures of a front are of its best points, on the rows that made them the best: they are optimistic. Here the
    point is chosen as often as there are folds, each time without the rows of one, and judged on these. The costs are
    those of the point that is chosen by all rows.

    Attributes
    ----------
    n_right, n_labelled, n_rows : tuple of int
        By class: rows that got the right label, that got one, and all.
    paid : tuple of float
        The prices that were paid.
    n_paid : tuple of int
        How many rows paid each.

    Examples
    --------
    >>> print(Outlook((60, 30), (65, 35), (65, 35), (1.0, 5.0), (80, 20)))
    on new rows                      expected   95 % interval
    accuracy                           90.0 %  80.5 to 96.4 %
    coverage                          100.0 %
    mean cost                            1.80    1.41 to 2.19
    recall by class, in order  92.3 %, 85.7 %
    From 100 rows, each labelled by a design that was chosen and trained without it.
    """

    n_right: tuple[int, ...]
    n_labelled: tuple[int, ...]
    n_rows: tuple[int, ...]
    paid: tuple[float, ...]
    n_paid: tuple[int, ...]

    @property
    def accuracy(self) -> float:
        """Share of the labels given that are right; NaN if none was given."""
        return sum(self.n_right) / sum(self.n_labelled) if sum(self.n_labelled) else np.nan

    @property
    def coverage(self) -> float:
        """Share of the rows that got a label."""
        return sum(self.n_labelled) / sum(self.n_rows)

    @property
    def mean_cost(self) -> float:
        """What a row paid on average."""
        return float(np.dot(self.paid, self.n_paid) / sum(self.n_paid))

    @property
    def recall(self) -> tuple[float, ...]:
        """Share of the rows of each class that got its label; NaN for a class without rows."""
        return tuple(hits / n if n else np.nan for hits, n in zip(self.n_right, self.n_rows, strict=True))

    def interval(self, figure: str, n_rows: int | None = None, level: float = 0.95) -> tuple[float, float]:
        """Return the interval in which a figure is expected, a quarter wider than if nothing else had been chosen.

        Parameters
        ----------
        figure : "coverage", "accuracy" or "mean_cost"
        n_rows : int or None
            Of so many new rows, whose own luck widens the interval. None: in the long run.
        level : float

        Examples
        --------
        >>> outlook = Outlook((60, 30), (65, 35), (65, 35), (1.0, 5.0), (80, 20))
        >>> [round(end, 2) for end in outlook.interval("accuracy")]
        [0.8, 0.96]
        >>> [round(end, 2) for end in outlook.interval("accuracy", n_rows=25)]
        [0.72, 1.0]
        """
        if figure not in _FIGURES:
            raise InvalidParameterError(f"figure must be one of {', '.join(_FIGURES)}; got {figure!r}.")
        from scipy.stats import norm

        if figure == "mean_cost":
            (mean,), (error,) = mean_and_error(np.array([self.n_paid]), np.array([self.paid]))
            spread = 1.0 if n_rows is None else 1 + sum(self.n_paid) / n_rows
            margin = _WIDER * norm.ppf((1 + level) / 2) * error * np.sqrt(spread)
            return max(float(mean - margin), 0.0), float(mean + margin)
        hits, n = sum(self.n_labelled), sum(self.n_rows)
        if figure == "coverage" and hits == n:  # the default choice gives a label to every case: that is no chance
            return 1.0, 1.0
        if figure == "accuracy":
            hits, n = sum(self.n_right), hits
            n_rows = n_rows if n_rows is None else max(round(n_rows * self.coverage), 1)
        low, high = share_interval(hits, n, n_rows, level)
        share = hits / n if n else np.nan
        # Of one new row the share is 0 or 1, so an end may be on the other side of the share: it stays there.
        low, high = min(share - _WIDER * (share - low), low), max(share + _WIDER * (high - share), high)
        return max(low, 0.0), min(high, 1.0)

    def sheet(self) -> Sheet:
        """Return the table that is printed."""
        rows = []
        for name in ("accuracy", "coverage", "mean_cost"):
            shown = "{:,.2f}".format if name == "mean_cost" else tenths
            low, high = self.interval(name)
            span = "" if low == high else f"{shown(low).removesuffix(' %')} to {shown(high)}"
            rows.append((name.replace("_", " "), shown(getattr(self, name)), span))
        rows.append(("recall by class, in order", ", ".join(map(tenths, self.recall)), ""))
        basis = f"From {sum(self.n_rows):,} rows, each labelled by a design that was chosen and trained without it."
        return Sheet(("on new rows", "expected", "95 % interval"), tuple(rows), (0,), notes=(basis,))

    def __str__(self) -> str:
        return self.sheet().to_text()

    def _repr_html_(self) -> str:
        return self.sheet().to_html()

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists and numbers, as JSON has them."""
        return {name: list(values) for name, values in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Sequence[Any]]) -> "Outlook":
        """Return what ``to_dict`` wrote."""
        return cls(**{name: tuple(values) for name, values in record.items()})


def share_interval(n_hits: int, n: int, n_new: int | None = None, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of a share in the long run (Clopper and Pearson), or among so many new rows.

    The number of hits among new rows, given those seen, is beta-binomial (Jeffreys' prior).
    """
    if n_new is None:
        return binomial_interval(n_hits, n, level)
    from scipy.stats import betabinom

    tail = (1 - level) / 2
    expected = betabinom(n_new, n_hits + 0.5, n - n_hits + 0.5)
    return float(expected.ppf(tail) / n_new), float(expected.ppf(1 - tail) / n_new)
