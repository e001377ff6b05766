"""Run an experiment: ``python -m emsco.experiments global --help``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
import sys
from typing import Any

from emsco.data.output import writing_text
from emsco.exceptions import EmscoError, FileError, InvalidParameterError
from emsco.experiments import (
    budgets,
    comparison,
    global_optima,
    landscape,
    methods,
    page,
    public,
    splits,
    stages,
    standings,
    sweep,
    thresholds,
)
from emsco.experiments.published import paper_comparison
from emsco.experiments.setting import DATASETS, PAPER, PROVEN
from emsco.fitting.progress import PhaseLine, ProgressLine


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse arguments, run the experiment, print its tables; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"error: cannot write to the folder {options.out}: {error}", file=sys.stderr)
        return 1
    try:
        code: int = options.run(options)
    except EmscoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="emsco experiments", description="The paper's experiments and our own.")
    commands = parser.add_subparsers(dest="experiment", required=True)
    _add_global(commands)
    _add_comparison(commands)
    _add_budgets(commands)
    _add_landscapes(commands)
    _add_sweep(commands)
    command = _add(commands, "thresholds", _thresholds, "the effect of the confidence threshold",
                   "Sweep the thresholds of a cost-ordered two-stage design on many random data sets, as in the "
                   "paper's figure 2: thresholds.csv and thresholds.png.")  # fmt: skip
    command.add_argument("--draws", type=_positive, default=20, help="number of random data sets")
    command = _add(commands, "public", _public, "Spambase on public splits, beside published figures",
                   "Fit Spambase on two public splits of 2,761, 920 and 920 rows with every feature at a price of 1, "
                   "choose points that label everybody within 5, 10 and 25 features, and print their accuracy on the "
                   "test rows beside that of greedy dynamic feature selection: public.csv.")  # fmt: skip
    command.add_argument("--quick", action="store_true", help="small searches, for a quick check")
    _add(commands, "stages", _stages, "stage of each feature, against its price",
         "From the trials of a comparison in the same folder: the mean stage in which the designs of EMSCO buy each "
         "feature, as in the paper's figure 13: stages.csv and stages.png. Run the comparison first.",
         out="comparison")  # fmt: skip
    _add(commands, "splits", _splits, "influence of the split on a result",
         "From the trials of a comparison in the same folder, EMSCO and CO-T on the same splits: the variation of the "
         "score, how easy the paper's split was, and the expected score on such a split: splits.png. Run the "
         "comparison first, with many splits.", out="comparison")  # fmt: skip
    command = _add(commands, "page", _page, "tables of docs/baselines.md, from its trials",
                   "Compute the tables and pictures of the page on competing methods from its trials again. To add "
                   "trials, copy the file of trials to trials.csv in a folder and run the comparison with this "
                   "folder as --out.", out="docs/images")  # fmt: skip
    command.add_argument("--trials", type=Path, default=Path("docs/tables/comparison-trials.csv"))
    command.add_argument("--page", type=Path, default=Path("docs/baselines.md"), help="the page to fill")
    return parser


def _add(commands: Any, name: str, run: Any, short: str, long: str, out: str | None = None) -> argparse.ArgumentParser:
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=short, description=long, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    command.add_argument("--out", type=Path, default=Path(out or name), help="folder of the results")
    command.set_defaults(run=run)
    return command


def _add_global(commands: Any) -> None:
    command = _add(
        commands, "global", _global, "true fronts, and the share that a search holds",
        "Prove the true fronts of the paper's spaces on several splits, then run searches on the first split and count "
        "the share of the front they hold after each generation. Prints tables and writes frontiers.csv, curves.csv "
        "and global.png. Ctrl-C keeps the finished part.",
    )  # fmt: skip
    command.add_argument("--data", nargs="+", choices=list(PROVEN), default=list(PROVEN), help="data sets")
    command.add_argument("--stages", nargs="+", type=_positive, default=[2, 3, 4], metavar="K", help="most stages")
    command.add_argument("--search", nargs="+", choices=list(global_optima.SEARCHES), default=["evolution"])
    command.add_argument("--runs", type=_positive, default=100, help="runs per search and space")
    command.add_argument("--generations", type=_positive, default=500, help="generations of 300 designs")
    command.add_argument("--splits", type=_positive, default=5, help="splits with proven fronts")
    command.add_argument("--jobs", type=_positive, default=1, help="processes, and threads of the proofs")


def _add_comparison(commands: Any) -> None:
    command = _add(
        commands, "comparison", _comparison, "every method on the same data, prices and rules",
        "Tune every method on validation rows, with its full grid, and score it once on test rows (50-25-25), on many "
        "splits. trials.csv has one line per trial, table.csv the means with 95 % confidence intervals, leads.csv the "
        "paired differences with EMSCO; bars.png and scatter.png are plots. An interrupted run continues: trials in "
        "the folder are not run again. Quick trials are marked and never mixed with full ones.",
    )  # fmt: skip
    command.add_argument("--setting", nargs="+", choices=list(methods.SETTINGS), default=[methods.PAPER_RULES],
                         help="; ".join(f"{name}: {words}" for name, words in methods.SETTINGS.items()))  # fmt: skip
    command.add_argument("--data", nargs="+", choices=list(DATASETS), default=list(PAPER), help="data sets")
    command.add_argument(
        "--method",
        nargs="+",
        metavar="NAME",
        help=f"only these methods; on request also: {', '.join(methods.ON_REQUEST)}",
    )
    command.add_argument("--splits", type=_positive, default=20)
    command.add_argument("--seeds", type=_positive, default=1, help="runs per split, with different seeds")
    command.add_argument("--jobs", type=_positive, default=1, help="processes")
    command.add_argument("--quick", action="store_true", help="two splits and small grids, for a quick check")


def _add_budgets(commands: Any) -> None:
    command = _add(
        commands, "budgets", _budgets, "the best accuracy within a budget",
        "Tune EMSCO with boosted stages and automatic thresholds, and CEGB, on validation rows for the best accuracy "
        "at a coverage and a mean cost, and score them once on test rows (50-25-25). budgets.csv has one line per "
        "split, method and budget; budgets.png is a plot. An interrupted run continues.",
    )  # fmt: skip
    command.add_argument("--data", choices=list(DATASETS), default="spambase", help="data set")
    command.add_argument("--splits", type=_positive, default=5)
    command.add_argument("--coverage", type=_share, default=0.9, help="least coverage")
    command.add_argument("--budget", nargs="+", type=float, default=[3.0, 5.0, 8.0, 12.0, 20.0], metavar="COST",
                         help="largest mean cost")  # fmt: skip
    command.add_argument("--jobs", type=_positive, default=1, help="processes")
    command.add_argument("--quick", action="store_true", help="small searches and grids, for a quick check")


def _add_landscapes(commands: Any) -> None:
    command = _add(
        commands, "landscape", _landscape, "the objectives of random designs",
        "Score random designs of a data set of the paper on validation rows, as in its figure 3: landscape.csv and "
        "landscape.png.",
    )  # fmt: skip
    command.add_argument("--data", choices=PROVEN, default="heart", help="data set")
    command.add_argument("--stages", type=_positive, default=3, metavar="K", help="most stages")
    command.add_argument("--designs", type=_positive, default=5000, help="number of designs")
    command = _add(
        commands, "neighbourhood", _neighbourhood, "the objectives of the neighbours of a design",
        "Score a good design and all designs that differ from it by one stage in one feature, as in the paper's figure "
        "6: neighbourhood.csv and neighbourhood.png.",
    )  # fmt: skip
    command.add_argument("--data", choices=PROVEN, default="credit", help="data set")
    command.add_argument("--stages", type=_positive, default=4, metavar="K", help="most stages")


def _add_sweep(commands: Any) -> None:
    command = _add(
        commands, "sweep", _sweep, "the settings of the evolution, one at a time",
        "Search with other populations, rates, biases and shares of elites than the paper's, one at a time, and count "
        "the share of the true front that is held after the same number of designs: sweep.csv and sweep.png.",
    )  # fmt: skip
    command.add_argument("--data", nargs="+", choices=PROVEN, default=PROVEN, help="data sets")
    command.add_argument("--stages", type=_positive, default=3, metavar="K", help="most stages")
    command.add_argument("--designs", type=_positive, default=30_000, help="designs per run")
    command.add_argument("--runs", type=_positive, default=20, help="runs per value")
    command.add_argument("--setting", nargs="+", choices=list(sweep.VALUES), default=list(sweep.VALUES))
    command.add_argument("--jobs", type=_positive, default=1, help="processes")


def _share(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not a share between 0 and 1")
    return number


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _global(options: argparse.Namespace) -> int:
    line = ProgressLine()
    frontiers, curves = [], []
    interrupted = False
    try:
        for frontier, truth in global_optima.prove_frontiers(
            options.data, options.stages, options.splits, n_jobs=options.jobs
        ):
            frontiers.append((frontier, truth))
            line(f"{frontier.dataset} k={frontier.max_stages}, split {frontier.split}: {frontier.n_vectors} vectors")
        first = [(frontier, truth) for frontier, truth in frontiers if frontier.split == 0]
        for curve in global_optima.draw_curves(
            first, options.search, runs=options.runs, generations=options.generations, n_jobs=options.jobs,
            on_progress=line,
        ):  # fmt: skip
            curves.append(curve)
            global_optima.write_curves(curves, options.out / "curves.csv")
    except KeyboardInterrupt:
        interrupted = True
    line.close()
    if frontiers:
        sizes = [frontier for frontier, _ in frontiers]
        global_optima.write_frontiers(sizes, options.out / "frontiers.csv")
        print(global_optima.frontier_table(sizes))
    if curves:
        print(global_optima.share_table(curves))
        global_optima.plot_curves(curves, options.out / "global.png")
    print(f"{'Interrupted; the finished part' if interrupted else 'The result'} is in {options.out}/.")
    return 130 if interrupted else 0


def _comparison(options: argparse.Namespace) -> int:
    known = methods.methods(methods.PAPER_RULES)
    unknown = [name for name in options.method or [] if name not in known]
    if unknown:
        raise InvalidParameterError(f"there is no method {unknown}; methods: {', '.join(known)}.")
    n_splits = min(options.splits, 2) if options.quick else options.splits
    trials = [
        comparison.Trial(setting, dataset, method, split, seed, options.quick)
        for split in range(n_splits)
        for dataset in options.data
        for setting in options.setting
        for method in options.method or [name for name in known if name not in methods.ON_REQUEST]
        for seed in range(options.seeds)
    ]
    path = options.out / "trials.csv"
    line = PhaseLine(shown=sys.stderr.isatty())
    interrupted = False
    try:
        for n_done, n_all, outcome in comparison.run_trials(trials, path, n_jobs=options.jobs):
            last = "" if outcome is None else f"{outcome.trial.method} on {outcome.trial.dataset}"
            line("comparing", n_done / n_all, last)
    except KeyboardInterrupt:
        interrupted = True
    line.close()
    order = {trial: i for i, trial in enumerate(trials)}
    outcomes = [outcome for outcome in comparison.read_outcomes(path) if outcome.trial in order]
    outcomes.sort(key=lambda outcome: order[outcome.trial])
    for setting in options.setting:
        here = [outcome for outcome in outcomes if outcome.trial.setting == setting]
        _show_standings(setting, here, options.out if len(options.setting) == 1 else options.out / setting)
    if interrupted:
        print(f"Interrupted after {len(outcomes)} of {len(trials)} trials; repeat the command to continue.")
        return 130
    print(f"The result is in {options.out}/.")
    return 0


def _show_standings(setting: str, outcomes: Sequence[comparison.Outcome], folder: Path) -> None:
    """Print the table of one setting, and write its tables and plots."""
    if not outcomes:
        return
    folder.mkdir(exist_ok=True)
    rows, ahead = standings.summarise(outcomes), standings.leads(outcomes)
    print(f"Setting {setting}, {methods.SETTINGS[setting]}\n")
    print(standings.text_table(rows, {(p.dataset, p.method): p for p in paper_comparison()}, ahead))
    standings.write_table(rows, folder / "table.csv")
    standings.write_leads(ahead, folder / "leads.csv")
    (folder / "table.md").write_text(standings.markdown_table(rows, ahead), encoding="utf-8")
    standings.plot_bars(rows, folder / "bars.png")
    standings.plot_scatter(rows, folder / "scatter.png")


def _page(options: argparse.Namespace) -> int:
    if not options.trials.exists() or not options.page.exists():
        raise FileError(f"there is no file {options.trials if options.page.exists() else options.page}.")
    outcomes = comparison.read_outcomes(options.trials)
    filled = page.fill(options.page.read_text(encoding="utf-8"), outcomes)
    with writing_text(options.page) as file:
        file.write(filled)
    page.plot(outcomes, options.out)
    print(f"{options.page} has the tables of {len(outcomes)} trials; the pictures are in {options.out}/.")
    return 0


def _budgets(options: argparse.Namespace) -> int:
    path = options.out / "budgets.csv"
    wanted = budgets.Wanted(options.coverage, tuple(sorted(set(options.budget))))
    line = PhaseLine(shown=sys.stderr.isatty())
    interrupted = False
    try:
        for n_done, n_all in budgets.run(
            options.data, options.splits, wanted, path, quick=options.quick, n_jobs=options.jobs
        ):
            line("spending", n_done / n_all, f"{n_done} of {n_all}")
    except KeyboardInterrupt:
        interrupted = True
    line.close()
    if spent := budgets.read(path):
        print(budgets.text_table(spent))
        budgets.plot(spent, options.out / "budgets.png")
    if interrupted:
        print("Interrupted; repeat the command to continue.")
        return 130
    print(f"The result is in {options.out}/.")
    return 0


def _public(options: argparse.Namespace) -> int:
    line = PhaseLine(shown=sys.stderr.isatty())
    n_all = 2 * len(public.SPLITS) * len(public.FITS) * len(public.BUDGETS)
    results: list[public.Result] = []
    for result in public.run(quick=options.quick):
        results.append(result)
        line("measuring", len(results) / n_all, f"{result.split}, {result.trained_on}")
    line.close()
    print(public.text_table(results))
    public.write(results, options.out / "public.csv")
    print(f"public.csv is in {options.out}/.")
    return 0


def _thresholds(options: argparse.Namespace) -> int:
    sweep = thresholds.run(n_draws=options.draws)
    thresholds.write(sweep, options.out / "thresholds.csv")
    thresholds.plot(sweep, options.out / "thresholds.png")
    print(f"thresholds.csv and thresholds.png are in {options.out}/.")
    return 0


def _landscape(options: argparse.Namespace) -> int:
    found = landscape.sample(options.data, options.stages, options.designs)
    print(landscape.text_sample(found))
    landscape.write(found, options.out / "landscape.csv")
    landscape.plot_sample(found, options.out / "landscape.png")
    print(f"landscape.csv and landscape.png are in {options.out}/.")
    return 0


def _neighbourhood(options: argparse.Namespace) -> int:
    found = landscape.neighbourhood(options.data, options.stages)
    print(landscape.text_neighbourhood(found))
    landscape.write(found, options.out / "neighbourhood.csv")
    landscape.plot_neighbourhood(found, options.out / "neighbourhood.png")
    print(f"neighbourhood.csv and neighbourhood.png are in {options.out}/.")
    return 0


def _sweep(options: argparse.Namespace) -> int:
    line = PhaseLine(shown=sys.stderr.isatty())
    values = {name: sweep.VALUES[name] for name in options.setting}
    n_all = len(options.data) * sum(map(len, values.values()))
    found: list[sweep.Tried] = []
    interrupted = False
    try:
        for tried in sweep.run(
            options.data, options.stages, n_designs=options.designs, n_runs=options.runs, n_jobs=options.jobs,
            values=values,
        ):  # fmt: skip
            found.append(tried)
            line("sweeping", len(found) / n_all, f"{tried.dataset}, {tried.setting} = {tried.value:g}")
    except KeyboardInterrupt:
        interrupted = True
    line.close()
    if found:
        print(sweep.text_table(found))
        sweep.write(found, options.out / "sweep.csv")
        sweep.plot(found, options.out / "sweep.png")
    print(f"{'Interrupted; the finished part' if interrupted else 'The result'} is in {options.out}/.")
    return 130 if interrupted else 0


def _stages(options: argparse.Namespace) -> int:
    found = stages.assignments(comparison.in_the_paper(comparison.read_outcomes(options.out / "trials.csv")))
    if not found:
        raise FileError(f"there are no trials of EMSCO in {options.out}; run the comparison with this --out first.")
    print(stages.text_table(found))
    stages.write(found, options.out / "stages.csv")
    stages.plot(found, options.out / "stages.png")
    print(f"stages.csv and stages.png are in {options.out}/.")
    return 0


def _splits(options: argparse.Namespace) -> int:
    found = splits.spreads(comparison.in_the_paper(comparison.read_outcomes(options.out / "trials.csv")))
    if not found:
        raise FileError(
            f"there are no trials of EMSCO and CO-T on three splits or more in {options.out}; run the comparison with "
            "this --out first."
        )
    print(splits.text_table(found))
    splits.plot(found, options.out / "splits.png")
    print(f"splits.png is in {options.out}/.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
