"""Does a calibrated promise hold as often as it says, and what coverage does it cost? Simulated, so the truth is known.

``python -m benchmarks.guarantee`` prints a table of ``N_RUNS`` calibrations each; the suite runs fewer of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
import sys
from time import perf_counter

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from benchmarks.common import Bar
from emsco.promises.guarantee import Guarantee, Plan, _Counted, check, p_values, plan
from emsco.scoring.answers import Answers
from emsco.scoring.rejection import NEVER, RejectRule

N_RUNS = 2000
_POPULATION = 40_000


@dataclass(frozen=True)
class World:
    """Gaussian classes seen stage by stage; a stage reports its posterior, sharpened by a temperature.

    Scores of a temperature above 1 are too sure of themselves, so a threshold alone promises nothing. The world is a
    finite population, from which rows are drawn with replacement: accuracies on it are the true ones, exactly.
    """

    priors: tuple[float, ...]
    separations: tuple[float, ...]  # of the classes, in what each stage adds
    temperature: float
    population: Answers = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "population", self._populate(_POPULATION, np.random.default_rng(0)))

    def draw(self, n: int, rng: np.random.Generator) -> Answers:
        everyone, rows = self.population, rng.integers(_POPULATION, size=n)
        return Answers(everyone.confidence[:, rows], everyone.label[:, rows], everyone.truth[rows])

    def _populate(self, n: int, rng: np.random.Generator) -> Answers:
        k = len(self.priors)
        y = rng.choice(k, size=n, p=self.priors)
        log = np.repeat(np.log(self.priors)[:, None], n, axis=1)
        confidence, label = [], []
        for separation in self.separations:
            x = rng.normal(size=(k, n))
            x[y, np.arange(n)] += separation
            log = log + separation * x
            z = np.exp(self.temperature * (log - log.max(axis=0)))
            confidence.append(z.max(axis=0) / z.sum(axis=0))
            label.append(z.argmax(axis=0))
        return Answers(np.array(confidence), np.array(label), y)

    def accuracies(self, rule: RejectRule) -> tuple[float, float, NDArray[np.float64]]:
        """Coverage, accuracy, and accuracy of each class's labels, in truth; 1 where none is given."""
        truth = self.population
        stage = np.arange(len(truth.confidence))[:, None]
        confident = rule.confident(truth.confidence, truth.label, stage)
        given = confident.any(axis=0)
        label = np.take_along_axis(truth.label, confident.argmax(axis=0)[None], axis=0)[0][given]
        right = label == truth.truth[given]
        counts = [np.bincount(part, minlength=len(self.priors)) for part in (label, label[right])]
        of_class = np.divide(counts[1], counts[0], out=np.ones(len(self.priors)), where=counts[0] > 0)
        return float(given.mean()), float(right.mean()) if right.size else 1.0, of_class

    def oracle(self, guarantee: Guarantee) -> float:
        """The most coverage that a threshold, or thresholds per class, can have and keep the promise."""
        grid = np.linspace(1 / len(self.priors), 1, 501)

        def keeps(bars: list[float]) -> tuple[float, bool]:
            coverage, accuracy, of_class = self.accuracies(RejectRule.of([bars]))
            return coverage, bool((of_class >= guarantee.accuracy).all() if guarantee.per_class
                                  else accuracy >= guarantee.accuracy)  # fmt: skip

        if not guarantee.per_class:
            return next((c for c, kept in (keeps([bar]) for bar in grid) if kept), 0.0)
        bars = [1.0] * len(self.priors)
        for _ in range(2):  # one class after the other, then again: the others matter little
            for code in range(len(bars)):
                options = [bar for bar in grid[::10] if keeps([*bars[:code], float(bar), *bars[code + 1 :]])[1]]
                bars[code] = float(min(options, default=NEVER))
        return keeps(bars)[0]


CASES = {
    "two classes": (World((0.5, 0.5), (1.0, 1.3), 1.5), False),
    "two classes, unequal": (World((0.75, 0.25), (1.2, 1.0, 0.8), 1.5), False),
    "three classes": (World((0.4, 0.3, 0.3), (1.2, 1.4), 1.5), False),
    "two classes, each": (World((0.6, 0.4), (1.2, 1.5), 1.5), True),
    "three classes, each": (World((0.4, 0.3, 0.3), (1.5, 1.8), 1.5), True),
}


def fixed_sequence(planned: Plan, rows: Answers, labels: list[int]) -> RejectRule:
    """What ``fit`` does."""
    return check(planned, rows, labels).rule


def split_budget(n_thresholds: int) -> Callable[[Plan, Answers, list[int]], RejectRule]:
    """The other design: the budget is split over a grid of thresholds, and the lowest that passes is taken."""

    def calibrate(planned: Plan, rows: Answers, labels: list[int]) -> RejectRule:
        bars = []
        for code, sequence in enumerate(planned.sequences):
            each = planned.guarantee.per_class
            grid = sequence.candidates[:: max(-(-sequence.candidates.size // n_thresholds), 1)]
            if each:
                grid = grid[grid >= planned.floors[code]]
            counted = _Counted.of_class(rows, code, planned.floors) if each else _Counted.of_all(rows)
            n_rows, n_errors, n_lost = counted.at(grid)
            passed = p_values(n_rows - n_lost, n_errors, planned.guarantee.accuracy) <= sequence.level / n_thresholds
            bars.append(float(grid[passed].min(initial=NEVER)))
        return RejectRule.of([bars])

    return calibrate


@dataclass(frozen=True)
class Study:
    """What became of many calibrations."""

    n_runs: int
    n_broken: int  # promises that do not hold in truth
    n_silent: int  # nothing is ever answered
    coverage: float
    milliseconds: float

    def exceeds(self, budget: float) -> bool:
        """Whether so many broken promises would be a surprise (1 in 1000) if the budget were kept."""
        return bool(binom.sf(self.n_broken - 1, self.n_runs, budget) < 1e-3)


def simulate(
    world: World,
    guarantee: Guarantee,
    *,
    n_pilot: int,
    n_rows: int,
    n_runs: int,
    seed: int = 1,
    calibrate: Callable[[Plan, Answers, list[int]], RejectRule] = fixed_sequence,
) -> Study:
    rng = np.random.default_rng(seed)
    labels = list(range(len(world.priors)))
    n_broken = n_silent = 0
    coverages = []
    seconds = 0.0
    for _ in range(n_runs):
        pilot, rows = world.draw(n_pilot, rng), world.draw(n_rows, rng)
        start = perf_counter()
        rule = calibrate(plan(guarantee, pilot, n_classes=len(labels), n_rows=n_rows), rows, labels)
        seconds += perf_counter() - start
        coverage, accuracy, of_class = world.accuracies(rule)
        n_broken += (of_class.min() if guarantee.per_class else accuracy) < guarantee.accuracy
        n_silent += coverage == 0
        coverages.append(coverage)
    return Study(n_runs, int(n_broken), int(n_silent), float(np.mean(coverages)), 1000 * seconds / n_runs)


def bars() -> Iterator[Bar]:
    for name, (world, per_class) in CASES.items():
        guarantee = Guarantee(0.9, 0.95, per_class=per_class)
        study = simulate(world, guarantee, n_pilot=300, n_rows=300, n_runs=200)
        best = world.oracle(guarantee)
        yield Bar(
            f"promises of 90 % that do not hold, {name}", 100 * study.n_broken / study.n_runs, "of 100", 10,
            f"5 allowed in the long run; coverage {study.coverage:.2f} of at most {best:.2f}; "
            f"{study.milliseconds:.1f} ms each",
        )  # fmt: skip


def main() -> None:
    """Print the whole table: how often promises break, and what coverage each design keeps."""
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else N_RUNS
    print("promise: accuracy 0.9, confidence 0.95; split: coverage if the budget is split over 10 or 20 thresholds")
    heads = ("rows", "best", "broken", "silent", "coverage", "split 10", "split 20")
    print(f"{'':<22} {' '.join(f'{head:>8}' for head in heads)}")
    for name, (world, per_class) in CASES.items():
        guarantee = Guarantee(0.9, 0.95, per_class=per_class)
        best = world.oracle(guarantee)
        for n_rows in (100, 300, 1000, 3000):
            size = {"n_pilot": n_rows, "n_rows": n_rows, "n_runs": n_runs}
            study = simulate(world, guarantee, **size)
            others = [simulate(world, guarantee, **size, calibrate=split_budget(n)) for n in (10, 20)]
            shares = (best, study.n_broken / n_runs, study.n_silent / n_runs, study.coverage)
            shown = " ".join(f"{share:>8.3f}" for share in (*shares, *(other.coverage for other in others)))
            verdict = "  TOO MANY" if any(s.exceeds(1 - guarantee.confidence) for s in (study, *others)) else ""
            print(f"{name:<22} {n_rows:>8} {shown}{verdict}", flush=True)


if __name__ == "__main__":
    main()
