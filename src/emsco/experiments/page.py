"""The tables of the page on competing methods, computed from its trials, so that page and trials always agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
import re

import numpy as np

from emsco.exceptions import FileError
from emsco.experiments.comparison import FIGURES, Outcome
from emsco.experiments.methods import DEPLOYED, EQUAL, PAPER_RULES, RIVALS
from emsco.experiments.published import STAGE_CORRELATIONS, paper_comparison
from emsco.experiments.setting import BEYOND, PAPER
from emsco.experiments.splits import plot as plot_splits
from emsco.experiments.splits import spreads
from emsco.experiments.stages import assignments
from emsco.experiments.stages import plot as plot_stages
from emsco.experiments.standings import OURS, Lead, Row, lead_rows, leads, markdown, plot_bars, plot_scatter, summarise

LARGE = ["spambase", "thyroid", "cs-nursery", "cs-soybean"]
SMALL = [name for name in BEYOND if name not in (*LARGE, "heart-disease")]
GROUPS = {"paper": [*PAPER, "heart-disease"], "small": SMALL, "large": LARGE}
_CLEAR = 2.0  # standard errors
_MANY = 6  # methods that are counted instead of listed
_BLOCK = re.compile(r"(<!-- table: (?P<name>[a-z -]+) -->\n)(?P<table>.*?)(<!-- end -->)", re.DOTALL)

Table = Callable[[Sequence[Outcome]], str]


def fill(page: str, outcomes: Iterable[Outcome]) -> str:
    """Return the page with each table between ``<!-- table: NAME -->`` and ``<!-- end -->`` computed from trials.

    Raises
    ------
    FileError
        The page has no such places, or asks for a table that does not exist.
    """
    trials = [outcome for outcome in outcomes if not outcome.trial.quick]
    names = [match["name"] for match in _BLOCK.finditer(page)]
    if not names or (unknown := sorted({*names} - {*TABLES})):
        wanted = f"there is no table {', '.join(unknown)}" if names else "the page has no line <!-- table: NAME -->"
        raise FileError(f"{wanted}; tables: {', '.join(TABLES)}.")
    return _BLOCK.sub(lambda match: f"{match[1]}\n{TABLES[match['name']](trials)}\n{match[4]}", page)


def lead_table(outcomes: Sequence[Outcome], setting: str, datasets: Sequence[str]) -> str:
    """Return EMSCO's leads on some data sets; where there are no trials, an empty cell."""
    here = _of(outcomes, setting, datasets)
    rows = sorted(summarise(here), key=lambda row: list(datasets).index(row.dataset))
    return markdown(lead_rows(rows, leads(here))) if rows else "No trials.\n"


def verdict_table(outcomes: Sequence[Outcome], setting: str) -> str:
    """Return, per data set, how many methods are ahead of EMSCO and behind it, and the closest one."""
    head = [
        "data set",
        "splits",
        "EMSCO",
        "methods",
        "ahead",
        "clearly",
        "behind",
        "clearly",
        "best other",
        "lead over it",
    ]
    lines = [head]
    for dataset in [*PAPER, *BEYOND]:
        here = _of(outcomes, setting, [dataset])
        ahead = leads(here)
        if not ahead:
            continue
        (ours,) = (row for row in summarise(here) if row.method == OURS)
        lost, won = [lead for lead in ahead if lead.mean < 0], [lead for lead in ahead if lead.mean >= 0]
        counts = [len(lost), sum(map(_clearly, lost)), len(won), sum(map(_clearly, won))]
        lines.append(
            [dataset, f"{ours.n_trials}", f"{ours.mean['combined']:.3f}", f"{len(ahead)}", *map(str, counts),
             ahead[0].method, _lead(ahead[0], ours.n_trials)]
        )  # fmt: skip
    return markdown(lines)


def loss_table(outcomes: Sequence[Outcome], setting: str) -> str:
    """Return the methods that are ahead of EMSCO, with the figures of both on the splits that both have."""
    lines = [["data set", "ahead of EMSCO", "by", "splits", "coverage", "accuracy", "mean cost"]]
    for dataset in [*PAPER, *BEYOND]:
        here = _of(outcomes, setting, [dataset])
        for lead in leads(here):
            if lead.mean >= 0:
                continue
            shared = _shared(here, lead.method)
            theirs, ours = (
                next(row for row in summarise(shared) if row.method == name) for name in (lead.method, OURS)
            )
            by = f"{-lead.mean:.3f}" + ("" if np.isnan(lead.standard_error) else f" ± {lead.standard_error:.3f}")
            digits = zip(FIGURES[:3], (3, 3, 1), strict=True)
            figures = [f"{theirs.mean[f]:.{d}f} ({ours.mean[f]:.{d}f})" for f, d in digits]
            lines.append([dataset, lead.method, by, f"{lead.n_pairs}", *figures])
    return markdown(lines) if len(lines) > 1 else "No method is ahead.\n"


def paper_table(outcomes: Sequence[Outcome], dataset: str) -> str:
    """Return the figures of all methods with the paper's rules, beside the published ones."""
    here = _of(outcomes, PAPER_RULES, [dataset])
    published = {(result.dataset, result.method): result for result in paper_comparison()}
    lines = [["method", "splits", *(name.replace("_", " ") for name in FIGURES), "EMSCO's lead", "paper's combined"]]
    lead_of = {lead.method: lead for lead in leads(here)}
    for row in sorted(summarise(here), key=lambda row: -row.mean["combined"]):
        theirs, lead = published.get((dataset, row.method)), lead_of.get(row.method)
        figures = [_with_error(row, name, digits) for name, digits in zip(FIGURES, (3, 3, 1, 3), strict=True)]
        name = f"**{row.method}**" if row.method == OURS else row.method
        shown = _lead(lead, row.n_trials) if lead else ""
        lines.append([name, f"{row.n_trials}", *figures, shown, f"{theirs.combined:g}" if theirs else ""])
    return markdown(lines)


def figure_table(outcomes: Sequence[Outcome], setting: str, datasets: Sequence[str]) -> str:
    """Return the figures of all methods on some data sets, the best combined score first."""
    lines = [["data set", "method", "splits", *(name.replace("_", " ") for name in FIGURES)]]
    for dataset in datasets:
        for row in sorted(summarise(_of(outcomes, setting, [dataset])), key=lambda row: -row.mean["combined"]):
            figures = [f"{row.mean[name]:.{digits}f}" for name, digits in zip(FIGURES, (3, 3, 1, 3), strict=True)]
            lines.append([dataset, row.method, f"{row.n_trials}", *figures])
    return markdown(lines)


def seconds_table(outcomes: Sequence[Outcome], datasets: Sequence[str]) -> str:
    """Return the median processor time of a trial, like for like and as deployed."""
    times: dict[tuple[str, str, str], list[float]] = {}
    for o in outcomes:
        times.setdefault((o.trial.method, o.trial.dataset, o.trial.setting), []).append(o.seconds)
    shown = [name for name in datasets if any(dataset == name for _, dataset, _ in times)]
    lines = [["method", *shown]]
    for method in dict.fromkeys(o.trial.method for o in outcomes):
        cells = [[times.get((method, name, setting)) for setting in (EQUAL, DEPLOYED)] for name in shown]
        if any(map(any, cells)):
            lines.append([method, *(", ".join(f"{np.median(t):.1f}" for t in pair if t) for pair in cells)])
    return markdown([lines[0], *sorted(lines[1:])])


def hours_table(outcomes: Sequence[Outcome]) -> str:
    """Return the splits that were run, and the processor time of a split of all methods like for like and as deployed.

    A rival tunes for both settings at once, so that its time is that like for like; EMSCO has one for each.
    """
    lines = [["data set", "splits of EMSCO", "fewest splits", "not run", "minutes a split", "hours for 20 splits"]]
    for dataset in [*PAPER, *BEYOND]:
        times: dict[str, dict[str, list[float]]] = {}
        for o in _of(outcomes, EQUAL, [dataset]) + _of(outcomes, DEPLOYED, [dataset]):
            times.setdefault(o.trial.method, {}).setdefault(o.trial.setting, []).append(o.seconds)
        if not times:
            continue
        medians = {m: [float(np.median(found)) for found in of.values()] for m, of in times.items()}
        minutes = sum(sum(found) if method == OURS else found[0] for method, found in medians.items()) / 60
        n_splits = {method: max(map(len, of.values())) for method, of in times.items()}
        absent = [name for name in RIVALS if name not in times]
        fewest = min(n_splits.values())
        few = "" if fewest == n_splits[OURS] else ", ".join(m for m, n in n_splits.items() if n == fewest)
        shown = f"{fewest}" + (f": {few}" if few and len(few) < 60 else "")
        hours = f"{minutes / 3:.1f}"
        missing = ", ".join(absent) if len(absent) < _MANY else f"{len(absent)} methods"
        lines.append([dataset, f"{n_splits[OURS]}", shown, missing, f"{minutes:.1f}", hours])
    return markdown(lines)


def stage_table(outcomes: Sequence[Outcome]) -> str:
    """Return how prices and stages of the designs of the paper's EMSCO are related, beside the published relation."""
    lines = [["data set", "designs", "rank correlation of price and mean stage", "paper"]]
    for a in assignments(_of(outcomes, PAPER_RULES, [*PAPER])):
        lines.append([a.dataset, f"{a.n_designs}", f"{a.correlation:.2f}", f"{STAGE_CORRELATIONS[a.dataset]:.2f}"])
    return markdown(lines)


def split_table(outcomes: Sequence[Outcome]) -> str:
    """Return how the score of the paper's EMSCO varies, how easy the paper's split was, and what to expect on it."""
    head = [
        "data set",
        "method",
        "splits",
        "combined",
        "deviation",
        "range",
        "as easy for CO-T",
        "expected there",
        "paper",
    ]
    lines = [head]
    for s in spreads(_of(outcomes, PAPER_RULES, [*PAPER])):
        low, high, share = s.combined.min(), s.combined.max(), 100 * s.easier
        figures = [f"{s.combined.size}", f"{s.combined.mean():.3f}", f"{s.combined.std(ddof=1):.3f}"]
        rest = [f"{low:.3f} to {high:.3f}", f"{share:.0f} %", f"{s.expected:.3f}", f"{s.paper_combined:g}"]
        lines.append([s.dataset, s.method, *figures, *rest])
    return markdown(lines)


def plot(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Write the pictures of the page: all methods like for like, on the first group of data sets; stages; splits."""
    full = [outcome for outcome in outcomes if not outcome.trial.quick]
    shown = _of(full, EQUAL, GROUPS["paper"])
    rows = sorted(summarise(shown), key=lambda row: GROUPS["paper"].index(row.dataset))
    plot_bars(rows, folder / "comparison-bars.png")
    plot_scatter(rows, folder / "comparison-scatter.png")
    paper = _of(full, PAPER_RULES, [*PAPER])
    if found := assignments(paper):
        plot_stages(found, folder / "comparison-stages.png")
    if spread := [s for s in spreads(paper) if s.dataset == "heart"]:
        plot_splits(spread, folder / "comparison-splits.png")


def _of(outcomes: Iterable[Outcome], setting: str, datasets: Sequence[str]) -> list[Outcome]:
    return [o for o in outcomes if o.trial.setting == setting and o.trial.dataset in datasets]


def _shared(outcomes: Sequence[Outcome], method: str) -> list[Outcome]:
    """Return the trials of EMSCO and a method on the splits that both have."""
    pairs: dict[tuple[int, int], list[Outcome]] = {}
    for o in outcomes:
        if o.trial.method in (OURS, method):
            pairs.setdefault((o.trial.split, o.trial.seed), []).append(o)
    return [o for both in pairs.values() if len(both) > 1 for o in both]


def _clearly(lead: Lead) -> bool:
    return abs(lead.mean) > _CLEAR * lead.standard_error  # never for a single pair, whose error is NaN


def _lead(lead: Lead, n_splits: int) -> str:
    error = "" if np.isnan(lead.standard_error) else f" ± {lead.standard_error:.3f}"
    return f"{lead.mean:+.3f}{error}" + (f" ({lead.n_pairs})" if lead.n_pairs < n_splits else "")


def _with_error(row: Row, name: str, digits: int) -> str:
    error = row.error[name]
    return f"{row.mean[name]:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


def _tables() -> Mapping[str, Table]:
    def bind(function: Callable[..., str], *arguments: object) -> Table:
        return lambda outcomes: function(outcomes, *arguments)

    found: dict[str, Table] = {"seconds " + group: bind(seconds_table, names) for group, names in GROUPS.items()}
    for setting in (EQUAL, DEPLOYED):
        found[f"verdicts {setting}"] = bind(verdict_table, setting)
        found[f"losses {setting}"] = bind(loss_table, setting)
        found |= {f"leads {setting} {group}": bind(lead_table, setting, names) for group, names in GROUPS.items()}
        found |= {f"figures {setting} {group}": bind(figure_table, setting, names) for group, names in GROUPS.items()}
    found |= {"hours": hours_table, "stages": stage_table, "splits": split_table}
    return found | {f"paper {name}": bind(paper_table, name) for name in PAPER}


TABLES = _tables()
