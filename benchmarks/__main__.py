"""Print every bar with its floor; exit with 1 if one is missed. Each comparison first checks that both sides agree."""

import sys

from benchmarks import (
    decide,
    exact,
    fits,
    frontier,
    generation,
    guarantee,
    predict,
    search,
    session,
    spambase,
    startup,
    train,
)


def main() -> int:
    """Print the bars; return how many are missed."""
    print(f"{'':<58} {'measured':>10} {'bar':>9}")
    missed = 0
    for module in (
        train,
        generation,
        decide,
        predict,
        session,
        search,
        exact,
        frontier,
        guarantee,
        spambase,
        startup,
        fits,
    ):
        for bar in module.bars():
            sign = ">=" if bar.more_is_better else "<="
            verdict = "" if bar.met else "  MISSED"
            missed += not bar.met
            shown = f"{bar.value:.3g}" if bar.value < 1000 else f"{bar.value:.0f}"
            print(f"{bar.name:<58} {shown + ' ' + bar.unit:>10} {f'{sign} {bar.floor:g}':>9}{verdict}   {bar.detail}")
            sys.stdout.flush()
    return missed


if __name__ == "__main__":
    sys.exit(main() > 0)
