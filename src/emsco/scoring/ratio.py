"""Which point of a front is best if errors cost more, or less, than their prices."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from emsco.arrays import FloatArray
from emsco.data.table import data_frame
from emsco.markup import Sheet


@dataclass(frozen=True)
class PriceStep:
    """From a multiple of the prices of errors on, a point costs least.

    Attributes
    ----------
    multiple : float
        From so many times the prices of errors on, up to the multiple of the next step.
    point : int
    tests, errors : float
        Its money per case for tests, and for errors at their prices.
    buys : str
        Its design.
    """

    multiple: float
    point: int
    tests: float
    errors: float
    buys: str


@dataclass(frozen=True)
class PriceSteps:
    """The best point by the price of errors. It prints as a table.

    Attributes
    ----------
    steps : tuple of PriceStep
        By multiple, from 0 on.
    """

    steps: tuple[PriceStep, ...]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[PriceStep]:
        return iter(self.steps)

    def at(self, multiple: float) -> PriceStep:
        """Return the step that holds if errors cost so many times their prices."""
        return max((step for step in self.steps if step.multiple <= multiple), key=lambda step: step.multiple)

    def to_records(self) -> list[dict[str, Any]]:
        """Return plain records, as JSON has them."""
        return [asdict(step) for step in self.steps]

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with one row per step."""
        records = self.to_records()
        return data_frame({name: [record[name] for record in records] for name in records[0]})

    def sheet(self) -> Sheet:
        """Return the table that is printed."""
        rows = tuple(
            (f"{step.multiple:.3g}", str(step.point), f"{step.tests:,.2f}", f"{step.errors:,.2f}", step.buys)
            for step in self.steps
        )
        head = ("from x errors", "point", "tests", "errors", "buys, stage | stage")
        note = (
            "The point costs least if errors cost so many times their prices, or more, up to the next line. Errors: at "
            "their prices, x 1. Designs were searched for 0.1 to 10 times."
        )
        return Sheet(head, rows, (4,), notes=(note,))

    def __str__(self) -> str:
        return self.sheet().to_text()

    def _repr_html_(self) -> str:
        return self.sheet().to_html()


def best_by_multiple(tests: FloatArray, errors: FloatArray) -> list[tuple[float, int]]:
    """Return from which multiple m of the errors on which point has the least tests + m errors, for all m from 0 on.

    Examples
    --------
    >>> best_by_multiple(np.array([0.0, 1.0, 3.0, 2.9]), np.array([8.0, 3.5, 0.5, 3.4]))
    [(0.0, 0), (0.2222222222222222, 1), (0.6666666666666666, 2)]
    """
    here = int(np.lexsort((errors, tests))[0])
    steps, multiple = [(0.0, here)], 0.0
    while (less := np.flatnonzero(errors < errors[here])).size:
        crossing = (tests[less] - tests[here]) / (errors[here] - errors[less])
        first = crossing.min()
        ends = less[crossing <= first * (1 + 1e-12)]
        multiple, here = max(float(first), multiple), int(ends[errors[ends].argmin()])
        steps.append((multiple, here))
    return steps


def price_steps(tests: FloatArray, total: FloatArray, in_words: Callable[[int], str]) -> PriceSteps:
    """Return the best point by the price of errors, from the money of all points for tests, and in total."""
    errors = np.maximum(total - tests, 0.0)
    return PriceSteps(
        tuple(
            PriceStep(multiple, i, float(tests[i]), float(errors[i]), in_words(i))
            for multiple, i in best_by_multiple(tests, errors)
        )
    )
