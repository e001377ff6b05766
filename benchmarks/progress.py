"""The time left that a fit shows, against the time that it took: five default fits, on a terminal that is made up.

    python -m benchmarks.progress                     # all five; prints a line for each
    python -m benchmarks.progress --data heart        # some of them
    python -m benchmarks.progress --data heart --log  # and what was shown, second by second

*Error* is the factor between the time left that was shown and the true one, median and 90 % quantile over all seconds
from 10 % of the time on; *within 2* is the share of these seconds in which it is at most two. *Silence* is the longest
time without a change on the line.
"""

import argparse
import io
import re
import sys
from time import monotonic
from typing import Any
import warnings

import numpy as np
from sklearn.datasets import make_classification

from emsco import EMSCOClassifier, datasets

_LEFT = re.compile(r"(\d+) %, [\d:]+, ([\d:]+) left")


def _generated() -> tuple[Any, Any, Any]:
    X, y = make_classification(20_000, 40, n_informative=8, n_redundant=0, flip_y=0.1, random_state=0)
    return X, y, np.random.default_rng(0).choice([1.0, 10.0, 100.0], 40)


def _loaded(bunch: Any) -> tuple[Any, Any, Any]:
    return bunch.data, np.asarray(bunch.target), bunch.prices


DATA = {
    "heart": lambda: _loaded(datasets.load_heart_failure()),
    "thyroid": lambda: _loaded(datasets.load_thyroid()),
    "spambase": lambda: _loaded(datasets.load_spambase()),
    "cs-nursery": lambda: _loaded(datasets.load_cost_sensitive("nursery")),
    "20000x40": _generated,
}


class Terminal(io.StringIO):
    """Remembers what is written, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.began = monotonic()
        self.seen: list[tuple[float, str]] = []

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        line = text.strip()
        if line and (not self.seen or self.seen[-1][1] != line):
            self.seen.append((monotonic() - self.began, line))
        return len(text)


def recorded(name: str, **settings: Any) -> tuple[float, list[tuple[float, str]]]:
    """Return how long a fit took, and what it showed when."""
    X, y, prices = DATA[name]()
    terminal, stderr = Terminal(), sys.stderr
    sys.stderr = terminal
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            EMSCOClassifier(prices, random_state=0, **settings).fit(X, y)
    finally:
        sys.stderr = stderr
    return monotonic() - terminal.began, terminal.seen


def errors(taken: float, seen: list[tuple[float, str]]) -> np.ndarray:
    """Return the factor by which the time left was wrong, second by second, from a tenth of the time on.

    Below two seconds all times left are the same.
    """
    told = [(at, int(found[1]), _seconds(found[2])) for at, line in seen if (found := _LEFT.search(line))]
    at, left = np.array([at for at, _, _ in told]), np.array([left for _, _, left in told])
    seconds = np.arange(0.1 * taken, taken, min(1.0, taken / 100))
    shown = left[np.maximum(np.searchsorted(at, seconds, side="right") - 1, 0)]
    ratio = np.maximum(shown, 2.0) / np.maximum(taken - seconds, 2.0)
    return np.maximum(ratio, 1 / ratio)


def _seconds(text: str) -> float:
    return float(sum(int(part) * 60**i for i, part in enumerate(reversed(text.split(":")))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=list(DATA), default=list(DATA))
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--log", action="store_true")
    options = parser.parse_args()
    print(f"{'':<12} {'seconds':>8} {'error':>7} {'90 %':>7} {'within 2':>9} {'silence':>8}")
    together = []
    for name in options.data:
        taken, seen = recorded(name, time_limit=options.time_limit)
        wrong = errors(taken, seen)
        together.append(wrong)
        silence = np.diff([0.0, *(at for at, _ in seen), taken]).max()
        figures = f"{np.median(wrong):>6.2f}x {np.quantile(wrong, 0.9):>6.2f}x {(wrong <= 2).mean():>9.0%}"
        print(f"{name:<12} {taken:>8.1f} {figures} {silence:>6.1f} s", flush=True)
        if options.log:
            print("\n".join(f"  {at:7.1f}  {line}" for at, line in seen))
    print(f"Median error: {np.median(np.concatenate(together)):.2f}x")


if __name__ == "__main__":
    main()
