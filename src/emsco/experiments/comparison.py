"""Every method on the same data, prices and rules (§4.3): tuned on validation rows, scored once on test rows."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import csv
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from itertools import pairwise
import json
from math import ceil, sqrt
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol, TypeAlias
import warnings

from joblib import Parallel, delayed
import numpy as np
from scipy.stats import t as student
from sklearn.exceptions import ConvergenceWarning

from emsco.arrays import FloatArray
from emsco.baselines.budget_prune import BudgetPrune
from emsco.baselines.cact_lasso import CaCTLasso
from emsco.baselines.cegb import CEGB
from emsco.baselines.co_t import CostOrdered
from emsco.baselines.cstc import CSTC
from emsco.baselines.greedy_miser import GreedyMiser
from emsco.baselines.nsga2 import NSGA2
from emsco.baselines.reject_rules import RejectRules
from emsco.baselines.single_stage import SingleStage
from emsco.baselines.stage_lp import StageLP
from emsco.data.labels import check_target
from emsco.data.output import writing_text
from emsco.data.splits import split_rows
from emsco.data.table import Table
from emsco.deployed.decide import Decisions
from emsco.estimators import EMSCOClassifier
from emsco.exceptions import FileError
from emsco.experiments.pictures import pyplot
from emsco.experiments.published import PaperResult
from emsco.experiments.setting import DATASETS, PaperSetting
from emsco.prices.prices import Prices, resolve
from emsco.search.bestfirst import BestFirst

ON_REQUEST = ("EMSCO, C=100",)  # methods that are compared only on request
_FEW_PENALTIES = (0.5, 2.0, 8.0, 32.0)
FIGURES = ("coverage", "accuracy", "mean_cost", "combined")


class Method(Protocol):
    """A method of the comparison."""

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> Any:
        """Train, and tune on the validation rows."""

    def decide(self, X: Any) -> Decisions:
        """Decide rows."""


@dataclass(frozen=True)
class Trial:
    """One method on one split of one data set."""

    setting: str
    dataset: str
    method: str
    split: int
    seed: int


@dataclass(frozen=True)
class Outcome:
    """Result of a trial on its test rows.

    Attributes
    ----------
    trial : Trial
    coverage, accuracy, mean_cost, combined : float
        ``combined`` is coverage + accuracy (0 if undefined) + saved share of the price of everything.
    seconds : float
        Time for training and tuning.
    chosen : str
        JSON of the choice on the validation rows: a design, or the settings of a method.
    """

    trial: Trial
    coverage: float
    accuracy: float
    mean_cost: float
    combined: float
    seconds: float
    chosen: str

    def to_row(self) -> dict[str, Any]:
        """Return a line of the CSV file."""
        row = asdict(self)
        return {**row.pop("trial"), **row}


Factory: TypeAlias = Callable[[PaperSetting, int, bool], Method]


class Paper:
    """EMSCO as in the paper: evolution, the paper's rule for the number of stages, the fittest design."""

    def __init__(self, setting: PaperSetting, seed: int, *, quick: bool, C: float = 1.0) -> None:
        self._setting, self._seed, self._quick, self._C = setting, seed, quick, C

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> "Paper":
        """Search designs on the validation rows."""
        n_features = np.asarray(X).shape[1]
        generations = 10 if self._quick else 150
        search = replace(self._setting.evolution, max_generations=generations, patience=20)
        self.classifier = EMSCOClassifier(
            costs,
            threshold=self._setting.threshold,
            max_stages=max(ceil(n_features / 2), 10),
            search=search,
            C=self._C,
            random_state=self._seed,
            preset="paper",
        ).fit(X, y, X_val, y_val)
        self.settings_ = {"design": self.classifier.design_.tolist()}
        return self

    def decide(self, X: Any) -> Decisions:
        """Decide with the fittest design."""
        return self.classifier.decide(X)


class Best(Paper):
    """EMSCO beyond the paper, by the paper's score: the paper's threshold, the point of the best combined score."""

    def fit(self, X: Any, y: Any, costs: Any, X_val: Any, y_val: Any) -> "Best":
        """Search with cross-validation on training and validation rows."""
        rows = stacked(X, X_val)
        self.classifier = EMSCOClassifier(
            costs,
            threshold=self._setting.threshold,
            choose="combined",
            final_estimator="search",
            random_state=self._seed,
        )
        if self._quick:
            self.classifier.set_params(search=BestFirst(max_designs=500))
        self.classifier.fit(rows, np.concatenate([y, y_val]))
        self.settings_ = {"design": self.classifier.design_.tolist()}
        return self


def stacked(X: Any, more: Any) -> Any:
    """Return the rows of one table followed by those of another."""
    if isinstance(X, np.ndarray):
        return np.vstack([X, more])
    import pandas

    return pandas.concat([X, more])


def methods(setting: str) -> dict[str, Factory]:
    """Return the methods by name; their grids are thinned if a full one takes minutes."""
    ours = Paper if setting == "paper" else Best
    return {
        "EMSCO": lambda s, seed, quick: ours(s, seed, quick=quick),
        "EMSCO, C=100": lambda s, seed, quick: Paper(s, seed, quick=quick, C=100.0),
        "Single-Stage": _single,
        "Single-Stage, reject": _single_reject,
        "CO-T": _cost_ordered,
        "CaCT LASSO": _lasso,
        "GM*": _greedy_miser,
        "CSTC*": _cstc,
        "CEGB*": _cegb,
        "Reject rules": _reject_rules,
        "Stage LP": _stage_lp,
        "BudgetPrune": _budget_prune,
        "NSGA-II": _nsga2,
    }


def _single(s: PaperSetting, seed: int, quick: bool) -> Method:
    return SingleStage(threshold=0.0, random_state=seed)


def _single_reject(s: PaperSetting, seed: int, quick: bool) -> Method:
    return SingleStage(threshold=s.threshold, random_state=seed)


def _cost_ordered(s: PaperSetting, seed: int, quick: bool) -> Method:
    return CostOrdered(threshold=s.threshold, random_state=seed)


def _lasso(s: PaperSetting, seed: int, quick: bool) -> Method:
    return CaCTLasso(threshold=s.threshold, penalties=_FEW_PENALTIES if quick else None, random_state=seed)


def _greedy_miser(s: PaperSetting, seed: int, quick: bool) -> Method:
    few: dict[str, Any] = {"price_weights": (0.0, 0.1, 1.0), "rounds": (20, 50)} if quick else {}
    return GreedyMiser(threshold=s.threshold, random_state=seed, **few)


def _cstc(s: PaperSetting, seed: int, quick: bool) -> Method:
    grid: dict[str, Any] = {"levels": (1, 3), "sparsities": (1e-3,), "temperatures": (1.0,), "C": (1.0,)}
    if quick:
        grid |= {"price_weights": (0.1, 1.0), "levels": (2,), "omegas": ("leaves",)}
    return CSTC(threshold=s.threshold, random_state=seed, **grid)


def _cegb(s: PaperSetting, seed: int, quick: bool) -> Method:
    grid: dict[str, Any] = {"learning_rates": (0.1,), "num_leaves": (4, 8), "min_rows_in_leaf": (5,)}
    if quick:
        grid |= {"price_weights": (0.0, 0.1, 1.0), "num_leaves": (8,), "n_rounds": 50}
    return CEGB(threshold=s.threshold, random_state=seed, **grid)


def _reject_rules(s: PaperSetting, seed: int, quick: bool) -> Method:
    few: dict[str, Any] = {"price_weights": (0.0, 0.1)} if quick else {}
    return RejectRules(threshold=s.threshold, random_state=seed, **few)


def _stage_lp(s: PaperSetting, seed: int, quick: bool) -> Method:
    few: dict[str, Any] = {"price_weights": (0.1,), "inputs": ("confidence",)} if quick else {}
    return StageLP(threshold=s.threshold, random_state=seed, **few)


def _budget_prune(s: PaperSetting, seed: int, quick: bool) -> Method:
    grid: dict[str, Any] = {"n_trees": (10,), "max_depths": (6, 10)}
    if quick:
        grid |= {"price_weights": (0.0, 0.1), "max_depths": (6,)}
    return BudgetPrune(threshold=s.threshold, random_state=seed, **grid)


def _nsga2(s: PaperSetting, seed: int, quick: bool) -> Method:
    e = s.evolution
    return NSGA2(
        threshold=s.threshold, population_size=50 if quick else e.population_size,
        max_generations=10 if quick else 150, mutation_rate=e.mutation_rate,
        recombination_rate=e.recombination_rate, stage_bias=e.stage_bias, random_state=seed,
    )  # fmt: skip


@lru_cache(maxsize=4)
def _load(dataset: str) -> Any:
    return DATASETS[dataset].load()


def split(dataset: str, number: int) -> tuple[Any, Any, Any, Any, Any, Any, Any]:
    """Return prices, and train, validation and test rows (50-25-25, classes in proportion) of one split."""
    data = _load(dataset)
    codes, classes = check_target(data.target, len(data.target))
    rng = np.random.default_rng(number)
    rest, test = split_rows(codes, 0.25, rng, classes)
    train, validation = (rest[part] for part in split_rows(codes[rest], 1 / 3, rng, classes))
    y = np.asarray(data.target)
    by_name = isinstance(data.prices, Prices)
    prices = data.prices if by_name else list(data.prices.values())
    X = data.data.iloc if by_name else np.asarray(data.data)
    return prices, X[train], y[train], X[validation], y[validation], X[test], y[test]


def run_trial(trial: Trial, *, quick: bool) -> Outcome:
    """Train, tune and score."""
    costs, X, y, X_val, y_val, X_test, y_test = split(trial.dataset, trial.split)
    method = methods(trial.setting)[trial.method](DATASETS[trial.dataset], trial.seed, quick)
    started = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        method.fit(X, y, costs, X_val, y_val)
    seconds = perf_counter() - started
    decisions = method.decide(X_test)
    given = decisions.conclusive
    accuracy = float((decisions.label.data == y_test)[given].mean()) if given.any() else float("nan")
    mean_cost = float(decisions.cost.mean())
    total = resolve(costs, Table(X).names).total
    score = float(given.mean()) + float(np.nan_to_num(accuracy)) + 1 - mean_cost / total
    chosen = json.dumps(getattr(method, "settings_", {}), default=lambda value: getattr(value, "tolist", str)())
    return Outcome(trial, float(given.mean()), accuracy, mean_cost, score, round(seconds, 3), chosen)


def run_trials(
    trials: Sequence[Trial], path: Path, *, quick: bool = False, n_jobs: int = 1
) -> Iterator[tuple[int, int, Outcome | None]]:
    """Run the trials that the file lacks, in parallel; each is written to the file when it is done.

    Yields the number done, the total number and the last trial; first, without a trial, the number done before.
    """
    done = {outcome.trial: outcome for outcome in read_outcomes(path)}
    write_outcomes(done.values(), path)  # without a truncated last line
    left = [trial for trial in trials if trial not in done]
    n_done = len(trials) - len(left)
    yield n_done, len(trials), None
    run = delayed(run_trial)
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, _columns())
        for outcome in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(run(t, quick=quick) for t in left):
            writer.writerow(outcome.to_row())
            file.flush()
            n_done += 1
            yield n_done, len(trials), outcome


def _columns() -> list[str]:
    return [f.name for f in fields(Trial)] + [f.name for f in fields(Outcome)[1:]]


def write_outcomes(outcomes: Iterable[Outcome], path: Path) -> None:
    """Write a tidy CSV file, one line per trial."""
    with writing_text(path) as file:
        writer = csv.DictWriter(file, _columns())
        writer.writeheader()
        writer.writerows(outcome.to_row() for outcome in outcomes)


def read_outcomes(path: Path) -> list[Outcome]:
    """Return the trials of a file; none if there is no file. A truncated last line is ignored."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if rows and list(rows[0]) != _columns():
        raise FileError(f"{path} is not a file of trials; give another folder.")
    outcomes = []
    for number, row in enumerate(rows):
        try:
            trial = Trial(row["setting"], row["dataset"], row["method"], int(row["split"]), int(row["seed"]))
            json.loads(row["chosen"])
            coverage, accuracy, mean_cost, score, seconds = (float(row[name]) for name in (*FIGURES, "seconds"))
            outcomes.append(Outcome(trial, coverage, accuracy, mean_cost, score, seconds, row["chosen"]))
        except (TypeError, ValueError) as error:
            if number < len(rows) - 1:
                raise FileError(f"line {number + 2} of {path} is damaged ({error}); remove it.") from error
    return outcomes


@dataclass(frozen=True)
class Row:
    """A method on a data set: the mean of each figure over the trials, with its 95 % confidence margin."""

    dataset: str
    method: str
    n_trials: int
    mean: Mapping[str, float]
    margin: Mapping[str, float]
    seconds: float


def summarise(outcomes: Iterable[Outcome]) -> list[Row]:
    """Return means and margins by data set and method, in the order of the trials."""
    groups: dict[tuple[str, str], list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault((outcome.trial.dataset, outcome.trial.method), []).append(outcome)
    rows = []
    for (dataset, method), group in groups.items():
        values = {name: np.array([getattr(outcome, name) for outcome in group]) for name in FIGURES}
        rows.append(
            Row(
                dataset,
                method,
                len(group),
                {name: _mean(column) for name, column in values.items()},
                {name: _margin(column) for name, column in values.items()},
                float(np.mean([outcome.seconds for outcome in group])),
            )
        )
    return rows


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _margin(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    if known.size < 2:
        return float("nan")
    return float(student.ppf(0.975, known.size - 1) * known.std(ddof=1) / sqrt(known.size))


def dominated(row: Row, rows: Iterable[Row]) -> list[str]:
    """Return the methods whose means are at least as good in coverage, accuracy and cost, and better in one."""

    def gains(r: Row) -> FloatArray:
        return np.array([r.mean["coverage"], np.nan_to_num(r.mean["accuracy"]), -r.mean["mean_cost"]])

    mine = gains(row)
    return [
        other.method
        for other in rows
        if other.dataset == row.dataset and (gains(other) >= mine).all() and (gains(other) > mine).any()
    ]


def text_table(rows: Sequence[Row], published: Mapping[tuple[str, str], PaperResult]) -> str:
    """Return the means with their margins, beside the published figures, as plain text."""
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        lines.append(f"{dataset}, {max(row.n_trials for row in here)} trials; +- is the 95 % confidence margin")
        lines.append(
            f"{'':<22}{'coverage':>15}{'accuracy':>15}{'mean cost':>18}{'combined':>15}{'paper':>26}{'seconds':>9}"
        )
        for row in sorted(here, key=lambda r: -r.mean["combined"]):
            figures = "".join(
                f"{row.mean[name]:>{width - 8}.{digits}f} +-{row.margin[name]:<5.{digits}f}"
                for name, width, digits in zip(FIGURES, (15, 15, 18, 15), (3, 3, 1, 3), strict=True)
            )
            theirs = published.get((dataset, row.method))
            paper = "  ".join(f"{getattr(theirs, name):g}" for name in FIGURES) if theirs else ""
            lines.append(f"{row.method:<22}{figures}{paper:>26}{row.seconds:>9.1f}")
        for row in here:
            if row.method == "EMSCO":
                better = dominated(row, here)
                lines.append(f"EMSCO is {'dominated by ' + ', '.join(better) if better else 'not dominated'}.")
        lines.append("")
    return "\n".join(lines)


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write means and margins as CSV."""
    names = [f"{name}{suffix}" for name in FIGURES for suffix in ("", "_margin")]
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "method", "trials", *names, "seconds"])
        for row in rows:
            values = [f"{value:.6g}" for name in FIGURES for value in (row.mean[name], row.margin[name])]
            writer.writerow([row.dataset, row.method, row.n_trials, *values, f"{row.seconds:.3g}"])


def plot_bars(rows: Sequence[Row], path: Path) -> None:
    """Plot coverage, accuracy, saved share of the price, and their sum, as in the paper."""
    plt = pyplot()
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    n_methods = max(sum(row.dataset == d for row in rows) for d in datasets)
    figure, axes = plt.subplots(
        len(datasets), 4, figsize=(12, len(datasets) * (0.9 + 0.24 * n_methods)), squeeze=False, sharey="row",
        layout="constrained",
    )  # fmt: skip
    for line, dataset in zip(axes, datasets, strict=True):
        here = sorted((row for row in rows if row.dataset == dataset), key=lambda r: r.mean["combined"])
        names = [row.method for row in here]
        colours = ["#D55E00" if name == "EMSCO" else "#56B4E9" for name in names]
        for ax, name in zip(line, FIGURES, strict=True):
            margins = [np.nan_to_num(row.margin[name]) for row in here]
            ax.barh(names, [row.mean[name] for row in here], xerr=margins, color=colours, height=0.7, capsize=2)
            ax.set_title(f"{dataset}: {name.replace('_', ' ')}", fontsize=9)
            ax.tick_params(labelsize=8)
            ax.spines[["top", "right"]].set_visible(False)
            limits = {"combined": (min(1.0, *(row.mean[name] for row in here)) - 0.05, 3.0), "mean_cost": (0.0, None)}
            ax.set_xlim(*limits.get(name, (0.0, 1.0)))
    figure.savefig(path, dpi=150)
    plt.close(figure)


def _label_heights(values: Sequence[float]) -> FloatArray:
    """Return heights for labels beside points, moved apart if they would overlap."""
    order = np.argsort(values, kind="stable")
    heights = np.array(values, dtype=np.float64)
    gap = 0.032 * max(float(np.ptp(heights)), 1e-9)
    for below, above in pairwise(order):
        heights[above] = max(heights[above], heights[below] + gap)
    return np.asarray(heights - (heights - np.array(values)).mean())


def plot_scatter(rows: Sequence[Row], path: Path) -> None:
    """Plot accuracy against mean cost, coloured by coverage, one panel per data set."""
    plt = pyplot()
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    n_lines = ceil(len(datasets) / 2)
    width = min(len(datasets), 2)
    figure, axes = plt.subplots(
        n_lines, width, figsize=(5.2 * width, 4.4 * n_lines), squeeze=False, layout="constrained"
    )
    for ax in axes.ravel()[len(datasets) :]:
        ax.set_visible(False)
    points = None
    for ax, dataset in zip(axes.ravel(), datasets, strict=False):
        here = [row for row in rows if row.dataset == dataset and not np.isnan(row.mean["accuracy"])]
        x, y = [row.mean["mean_cost"] for row in here], [100 * row.mean["accuracy"] for row in here]
        colour = [100 * row.mean["coverage"] for row in here]
        area = [110 if row.method == "EMSCO" else 50 for row in here]
        points = ax.scatter(x, y, c=colour, s=area, cmap="cividis", vmin=0, vmax=100, edgecolors="black", zorder=3)
        for row, a, b, height in zip(here, x, y, _label_heights(y), strict=True):
            weight = "bold" if row.method == "EMSCO" else "normal"
            side = -1 if a > 0.6 * max(x) else 1  # into the picture
            ax.annotate(
                row.method, (a, b), xytext=(a + side * 0.03 * max(x), height), fontsize=7, fontweight=weight,
                ha="left" if side > 0 else "right", va="center",
                arrowprops={"arrowstyle": "-", "color": "#999999", "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
            )  # fmt: skip
        ax.set_title(dataset)
        ax.set_xlabel("mean cost")
        ax.grid(alpha=0.3)
        ax.margins(x=0.18)
    for ax in axes[:, 0]:
        ax.set_ylabel("accuracy of the labels given (%)")
    figure.colorbar(points, ax=axes.ravel().tolist(), label="coverage (%)")
    figure.savefig(path, dpi=150)
    plt.close(figure)
