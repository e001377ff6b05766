"""Run an experiment: ``python -m emsco.experiments global --help``."""

import argparse
from collections.abc import Sequence
from pathlib import Path
import sys

from emsco.exceptions import EmscoError
from emsco.experiments import global_optima
from emsco.experiments.setting import PAPER
from emsco.progress import ProgressLine


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse arguments, run the experiment, print its tables; return the exit status."""
    options = _parser().parse_args(arguments)
    try:
        return _global(options)
    except EmscoError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emsco.experiments", description="The paper's experiments.")
    commands = parser.add_subparsers(dest="experiment", required=True)
    command = commands.add_parser(
        "global",
        help="true frontiers, and how much of them a search holds",
        description="Prove the true frontiers of the paper's spaces on several splits, then run searches on the first "
        "split and count what they hold of it after each generation. Tables are printed; frontiers.csv, curves.csv and "
        "global.png are written. Ctrl-C keeps what is done.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    command.add_argument("--data", nargs="+", choices=list(PAPER), default=list(PAPER), help="data sets")
    command.add_argument("--stages", nargs="+", type=_positive, default=[2, 3, 4], metavar="K", help="most stages")
    command.add_argument("--search", nargs="+", choices=list(global_optima.SEARCHES), default=["evolution"])
    command.add_argument("--runs", type=_positive, default=100, help="runs per search and space")
    command.add_argument("--generations", type=_positive, default=500, help="of 300 designs")
    command.add_argument("--splits", type=_positive, default=5, help="splits whose frontiers are proven")
    command.add_argument("--jobs", type=_positive, default=1, help="processes, and threads of the proofs")
    command.add_argument("--out", type=Path, default=Path("global"), help="folder of the results")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return number


def _global(options: argparse.Namespace) -> int:
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        print(f"error: cannot write to the folder {options.out}: {error}", file=sys.stderr)
        return 1
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
    print(f"{'Interrupted; what was done' if interrupted else 'All of it'} is in {options.out}/.")
    return 130 if interrupted else 0


if __name__ == "__main__":
    sys.exit(main())
