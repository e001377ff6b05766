"""What the trials of a comparison say: means, paired differences, tables and plots."""

from collections.abc import Iterable, Mapping, Sequence
import csv
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from emsco.arrays import FloatArray
from emsco.data.output import writing_text
from emsco.experiments.comparison import FIGURES, Outcome
from emsco.experiments.pictures import pyplot
from emsco.experiments.published import PaperResult

OURS = "EMSCO"
_N_NAMED = 8  # methods in a scatter plot


@dataclass(frozen=True)
class Row:
    """A method on a data set: the mean of each figure over the trials, its standard error, and its 95 % margin."""

    dataset: str
    method: str
    n_trials: int
    mean: Mapping[str, float]
    error: Mapping[str, float]
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
                {name: _error(column) for name, column in values.items()},
                {name: _margin(column) for name, column in values.items()},
                float(np.mean([outcome.seconds for outcome in group])),
            )
        )
    return rows


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def _error(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1) / sqrt(known.size)) if known.size > 1 else float("nan")


def _margin(values: FloatArray) -> float:
    n_known = int((~np.isnan(values)).sum())
    return float(student.ppf(0.975, n_known - 1) * _error(values)) if n_known > 1 else float("nan")


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


@dataclass(frozen=True)
class Lead:
    """How much EMSCO's combined score exceeds that of a method, on the splits and seeds that both have.

    Attributes
    ----------
    dataset, method : str
    n_pairs : int
    mean : float
        Negative where EMSCO is behind.
    standard_error : float
        NaN for a single pair.
    """

    dataset: str
    method: str
    n_pairs: int
    mean: float
    standard_error: float


def leads(outcomes: Iterable[Outcome]) -> list[Lead]:
    """Return the paired differences of the combined score, EMSCO's largest deficit first."""
    score: dict[tuple[str, str], dict[tuple[int, int], float]] = {}
    for o in outcomes:
        score.setdefault((o.trial.dataset, o.trial.method), {})[o.trial.split, o.trial.seed] = o.combined
    found = []
    for (dataset, method), theirs in score.items():
        ours = score.get((dataset, OURS), {})
        both = sorted(ours.keys() & theirs.keys())
        if method == OURS or not both:
            continue
        ahead = np.array([ours[pair] - theirs[pair] for pair in both])
        error = float(ahead.std(ddof=1) / sqrt(ahead.size)) if ahead.size > 1 else float("nan")
        found.append(Lead(dataset, method, ahead.size, float(ahead.mean()), error))
    return sorted(found, key=lambda lead: lead.mean)


def text_table(
    rows: Sequence[Row], published: Mapping[tuple[str, str], PaperResult], ahead: Sequence[Lead] = ()
) -> str:
    """Return the means with their margins, EMSCO's lead, and the published figures, as plain text."""
    lead_of = {(lead.dataset, lead.method): lead for lead in ahead}
    lines = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        here = [row for row in rows if row.dataset == dataset]
        head = ("", *(name.replace("_", " ") for name in FIGURES), "EMSCO ahead by", "paper", "seconds")
        cells = [head]
        for row in sorted(here, key=lambda r: -r.mean["combined"]):
            figures = (
                f"{row.mean[name]:.{digits}f} +-{row.margin[name]:.{digits}f}"
                for name, digits in zip(FIGURES, (3, 3, 1, 3), strict=True)
            )
            lead = lead_of.get((dataset, row.method))
            shown = f"{lead.mean:+.3f} (se {lead.standard_error:.3f})" if lead else ""
            theirs = published.get((dataset, row.method))
            paper = "  ".join(f"{getattr(theirs, name):g}" for name in FIGURES) if theirs else ""
            cells.append((row.method, *figures, shown, paper, f"{row.seconds:.1f}"))
        lines.append(
            f"{dataset}, {max(row.n_trials for row in here)} trials; +- is the 95 % confidence margin, "
            "se the standard error of paired differences"
        )
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for name, *rest in cells:
            padded = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
            lines.append("  ".join([name.ljust(widths[0]), *padded]))
        for row in here:
            if row.method == OURS:
                better = dominated(row, here)
                lines.append(f"EMSCO is {'dominated by ' + ', '.join(better) if better else 'not dominated'}.")
        behind = [lead.method for lead in ahead if lead.dataset == dataset and lead.mean < 0]
        if behind:
            lines.append(f"EMSCO's combined score is below that of {', '.join(behind)}.")
        lines.append("")
    return "\n".join(lines)


def markdown_table(rows: Sequence[Row], ahead: Sequence[Lead]) -> str:
    """Return ``lead_rows`` as Markdown, with the range of the mean times of each method."""
    lines = lead_rows(rows, ahead)
    for name, line in zip(["", OURS, *(line[0] for line in lines[2:])], lines, strict=True):
        times = [row.seconds for row in rows if row.method == name]
        line.append(f"{min(times):.1f} to {max(times):.1f}" if times else "seconds")
    return markdown(lines)


def lead_rows(rows: Sequence[Row], ahead: Sequence[Lead]) -> list[list[str]]:
    """Return the cells of a table: EMSCO's combined scores, and its lead over each method with the standard error.

    Methods are in the order of their lead, EMSCO's losses first. A cell without an error has a single pair.
    """
    datasets = list(dict.fromkeys(row.dataset for row in rows))
    lead_of = {(lead.dataset, lead.method): lead for lead in ahead}
    by_method: dict[str, list[Lead]] = {}
    for lead in ahead:
        by_method.setdefault(lead.method, []).append(lead)
    order = sorted(by_method, key=lambda name: min(lead.mean for lead in by_method[name]))
    ours = {row.dataset: row for row in rows if row.method == OURS}
    lines = [["EMSCO ahead of", *datasets], [f"(score of {OURS}, splits)", *(_score(ours.get(d)) for d in datasets)]]
    return lines + [[m, *(_lead_cell(lead_of.get((d, m)), ours.get(d)) for d in datasets)] for m in order]


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """Return cells as a Markdown table; the first line is its head."""
    head, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return "\n".join([head, "|---" * len(lines[0]) + "|", *rest]) + "\n"


def _score(row: Row | None) -> str:
    return f"{row.mean['combined']:.3f} ({row.n_trials})" if row else ""


def _lead_cell(lead: Lead | None, ours: Row | None) -> str:
    """Return a lead with its error, and the number of pairs if EMSCO has more trials."""
    if lead is None:
        return ""
    error = "" if np.isnan(lead.standard_error) else f" ± {lead.standard_error:.3f}"
    pairs = f" ({lead.n_pairs})" if ours and lead.n_pairs < ours.n_trials else ""
    return f"{lead.mean:+.3f}{error}{pairs}"


def write_leads(ahead: Sequence[Lead], path: Path) -> None:
    """Write the paired differences as CSV."""
    with writing_text(path) as file:
        writer = csv.writer(file)
        writer.writerow(["dataset", "method", "pairs", "lead", "standard_error"])
        for lead in ahead:
            writer.writerow([lead.dataset, lead.method, lead.n_pairs, f"{lead.mean:.6g}", f"{lead.standard_error:.6g}"])


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
    """Plot coverage, accuracy, mean cost and combined score, as in the paper, with standard errors."""
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
        colours = ["#D55E00" if name == OURS else "#56B4E9" for name in names]
        for ax, name in zip(line, FIGURES, strict=True):
            errors = [np.nan_to_num(row.error[name]) for row in here]
            ax.barh(names, [row.mean[name] for row in here], xerr=errors, color=colours, height=0.7, capsize=2)
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
    """Plot accuracy against mean cost, coloured by coverage, one panel per data set; the best scores are named."""
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
        area = [110 if row.method == OURS else 50 for row in here]
        points = ax.scatter(x, y, c=colour, s=area, cmap="cividis", vmin=0, vmax=100, edgecolors="black", zorder=3)
        best = sorted(here, key=lambda row: -row.mean["combined"])[:_N_NAMED]
        named = [i for i, row in enumerate(here) if row in best or row.method == OURS]
        for i, height in zip(named, _label_heights([y[i] for i in named]), strict=True):
            row, a, b = here[i], x[i], y[i]
            weight = "bold" if row.method == OURS else "normal"
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
