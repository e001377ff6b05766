"""The best accuracy within a budget, at a given coverage, for EMSCO and CEGB."""

from collections.abc import Iterable, Iterator, Sequence
import csv
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
import warnings

from joblib import Parallel, delayed
import numpy as np

from emsco.baselines.base import Candidate, Model, measure
from emsco.baselines.cegb import CEGB
from emsco.data.output import writing_text
from emsco.deployed.decide import Decisions
from emsco.estimators import EMSCOClassifier
from emsco.exceptions import FileError, MissingDependencyError, NoSuchPointError
from emsco.experiments.comparison import split
from emsco.experiments.methods import stacked
from emsco.experiments.pictures import pyplot
from emsco.fitting.tuning import LASTS
from emsco.scoring.front import Front
from emsco.search.bestfirst import BestFirst
from emsco.stages.problem import Problem


@dataclass(frozen=True)
class Spent:
    """Result of a method tuned for a budget, on the test rows of a split."""

    split: int
    method: str
    budget: float
    coverage: float
    accuracy: float
    mean_cost: float
    seconds: float


class Ours:
    """EMSCO with automatic thresholds and boosted stages, cross-validated on training and validation rows."""

    turns = True

    def __init__(self, seed: int, *, quick: bool) -> None:
        self._seed, self._quick = seed, quick

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any, wanted: "Wanted") -> None:
        """Search once, for all budgets."""
        self.classifier = EMSCOClassifier(
            costs,
            threshold="auto",
            choose="combined",
            search=BestFirst(max_designs=30_000, focus=0.5),
            final_estimator=_boosting(quick=self._quick),
            random_state=self._seed,
        )
        if self._quick:
            self.classifier.set_params(search=BestFirst(max_designs=500), encoding="rank", C=10.0)
        if self.turns:
            self.classifier.fit(stacked(X, X_val), np.concatenate([y, y_val]))
        else:
            self.classifier.fit(X, y, X_val, y_val)
        self._wanted = wanted

    def decide(self, X: Any, budget: float) -> Decisions:
        """Decide with the point of the front for a budget."""
        return self.classifier.use(_choice(self.classifier.front_, self._wanted, budget)).decide(X)


class OursAsSplit(Ours):
    """The same, trained on the training rows only."""

    turns = False


class _Budgeted(CEGB):
    """CEGB that keeps, for each budget, the best model and threshold on the validation rows."""

    wanted: "Wanted"

    def at(self, budget: float) -> CEGB:
        """Use the model and threshold kept for a budget."""
        self._model, self.threshold = self._kept[budget]
        return self

    def _choose(self, candidates: Iterable[Candidate], problem: Problem, threshold: float) -> None:
        best: dict[float, tuple[bool, float]] = {}
        self._kept: dict[float, tuple[Model, float]] = {}
        for candidate in candidates:
            trace = candidate.model.trace(problem.validation)
            cost = self._cost(trace)[1]
            for level in LASTS:
                figures = measure(trace, problem.y_validation, cost, level, problem.prices)
                if figures.coverage < self.wanted.coverage:
                    continue
                for budget in self.wanted.budgets:
                    within = figures.mean_cost <= budget
                    score = within, figures.accuracy if within else -figures.mean_cost
                    if budget not in best or score > best[budget]:
                        best[budget] = score
                        self._kept[budget] = candidate.model, level
        self.at(self.wanted.budgets[0])


class Theirs:
    """CEGB with a tuned threshold."""

    def __init__(self, seed: int, *, quick: bool) -> None:
        self._rival = _Budgeted(learning_rates=(0.1,), num_leaves=(4, 8, 16), min_rows_in_leaf=(5,), random_state=seed)
        if quick:
            self._rival.set_params(price_weights=(0.1, 1.0), num_leaves=(8,), n_rounds=50)

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any, wanted: "Wanted") -> None:
        """Train the grid once, for all budgets."""
        self._rival.wanted = wanted
        self._rival.fit(X, y, costs, X_val, y_val)

    def decide(self, X: Any, budget: float) -> Decisions:
        """Decide with the model and the threshold for a budget."""
        return self._rival.at(budget).decide(X)


METHODS: dict[str, Any] = {"EMSCO": Ours, "EMSCO, trained on half": OursAsSplit, "CEGB*": Theirs}


@dataclass(frozen=True)
class Wanted:
    """Least coverage and largest mean costs."""

    coverage: float
    budgets: tuple[float, ...]


def _choice(front: Front, wanted: Wanted, budget: float) -> int:
    try:
        return front.choose(min_coverage=wanted.coverage, max_cost=budget, best="accuracy")
    except NoSuchPointError:
        return front.choose(min_coverage=wanted.coverage, best="cost")


def _boosting(*, quick: bool) -> Any:
    try:
        from lightgbm import LGBMClassifier
    except ImportError as error:
        raise MissingDependencyError(
            "this experiment needs LightGBM, which is not installed: pip install 'emsco[baselines]'."
        ) from error
    return LGBMClassifier(
        n_estimators=20 if quick else 150, learning_rate=0.08, num_leaves=12, min_child_samples=10, subsample=0.8,
        subsample_freq=1, colsample_bytree=0.6, reg_lambda=2.0, n_jobs=1, verbose=-1,
    )  # fmt: skip


def run(
    dataset: str, n_splits: int, wanted: Wanted, path: Path, *, quick: bool = False, n_jobs: int = 1
) -> Iterator[tuple[int, int]]:
    """Run what the file lacks, write it after each method and split, and yield the progress."""
    done = read(path)
    all_of_it = [(number, name) for number in range(n_splits) for name in METHODS]
    held = {(spent.split, spent.method, spent.budget) for spent in done}
    left = [job for job in all_of_it if any((*job, budget) not in held for budget in wanted.budgets)]
    yield len(all_of_it) - len(left), len(all_of_it)
    one = delayed(partial(_run_one, dataset, wanted, quick))
    for n, spent in enumerate(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(one(*job) for job in left), 1):
        done = [old for old in done if (old.split, old.method) != (spent[0].split, spent[0].method)] + spent
        write(done, path)
        yield len(all_of_it) - len(left) + n, len(all_of_it)


def _run_one(dataset: str, wanted: Wanted, quick: bool, number: int, name: str) -> list[Spent]:
    costs, X, y, X_val, y_val, X_test, y_test = split(dataset, number)
    method = METHODS[name](0, quick=quick)
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")  # of LightGBM's own arrays
        method.fit(X, y, costs, X_val, y_val, wanted)
        seconds = round(perf_counter() - started, 1)
        found = []
        for budget in wanted.budgets:
            decisions = method.decide(X_test, budget)
            given = decisions.conclusive
            accuracy = float((decisions.label.data == y_test)[given].mean()) if given.any() else float("nan")
            found.append(
                Spent(number, name, budget, float(given.mean()), accuracy, float(decisions.cost.mean()), seconds)
            )
    return found


def write(spent: Iterable[Spent], path: Path) -> None:
    """Write a CSV file, whole or not at all."""
    with writing_text(path) as file:
        writer = csv.DictWriter(file, [field.name for field in fields(Spent)])
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(spent, key=lambda s: (s.split, s.method, s.budget)))


def read(path: Path) -> list[Spent]:
    """Return the content of a file; empty if there is none."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    try:
        return [
            Spent(int(row["split"]), row["method"], *(float(row[field.name]) for field in fields(Spent)[2:]))
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise FileError(f"{path} is not a file of this experiment ({error}); give another folder.") from error


def text_table(spent: Sequence[Spent]) -> str:
    """Return the means by budget and method."""
    lines = [
        f"{'budget':>8}  {'method':24}{'splits':>7}{'coverage':>10}{'accuracy':>10}{'mean cost':>11}{'seconds':>9}"
    ]
    for (budget, method), rows in sorted(_groups(spent).items(), key=lambda group: group[0]):
        figures = _means(rows)
        lines.append(
            f"{budget:8g}  {method:24}{len(rows):7d}{figures[0]:10.3f}{figures[1]:10.4f}{figures[2]:11.2f}"
            f"{figures[3]:9.0f}"
        )
    return "\n".join(lines)


def plot(spent: Sequence[Spent], path: Path) -> None:
    """Plot mean accuracy against mean cost, one line per method."""
    plt = pyplot()
    figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    colours = dict(zip(METHODS, ("#0072B2", "#56B4E9", "#D55E00"), strict=True))
    for name, colour in colours.items():
        points = np.array([_means(rows) for (_, method), rows in sorted(_groups(spent).items()) if method == name])
        if len(points):
            ax.plot(points[:, 2], points[:, 1], "o-", color=colour, label=name, markersize=5)
    ax.set_xlabel("mean cost on test rows")
    ax.set_ylabel("accuracy of the labels given")
    ax.legend()
    ax.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _groups(spent: Sequence[Spent]) -> dict[tuple[float, str], list[Spent]]:
    groups: dict[tuple[float, str], list[Spent]] = {}
    for row in spent:
        groups.setdefault((row.budget, row.method), []).append(row)
    return groups


def _means(rows: Sequence[Spent]) -> tuple[float, ...]:
    return tuple(
        float(np.nanmean([getattr(row, name) for row in rows]))
        for name in ("coverage", "accuracy", "mean_cost", "seconds")
    )
