"""Deployed classifiers and their results as plain text."""

from collections.abc import Sequence
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

import numpy as np

from emsco.decisions import Decisions, Stage
from emsco.front import percent


def stage_table(stages: Sequence[Stage], decisions: Decisions, *, noun: str = "inputs") -> str:
    """Return what each stage buys, its price, and the share of the decided inputs that leave there with a label."""
    lines = []
    for j, stage in enumerate(stages):
        leaves = np.mean((decisions.stage == j) & decisions.conclusive)
        bought = ", ".join(stage.features)
        text = f"stage {j + 1}: {bought} - price {stage.price:g} - {percent(leaves)} of {noun} leave here"
        lines.extend(wrap(text, get_terminal_size((110, 24)).columns, subsequent_indent=" " * 9))
    lines.append(f"inconclusive: {percent(1 - decisions.conclusive.mean())} of {noun} get no label")
    return "\n".join(lines)


def result_row(name: str, decisions: Decisions, y: Any) -> str:
    """Return coverage, accuracy of the labels given, and mean cost, on inputs with known labels."""
    truth = np.asarray(y)
    n_given = int(decisions.conclusive.sum())
    n_right = int((decisions.label.data == truth)[decisions.conclusive].sum())
    accuracy = n_right / n_given if n_given else np.nan
    return (
        f"{name:<32} {percent(n_given / truth.size):>8}  {percent(accuracy):>8}  {f'{n_right} of {n_given}':>14}  "
        f"{decisions.cost.mean():10,.2f}"
    )


RESULT_HEADER = f"{'':<32} {'coverage':>8}  {'accuracy':>8}  {'right of given':>14}  {'mean cost':>10}"
