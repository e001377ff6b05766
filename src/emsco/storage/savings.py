"""What buying each stage saves <-> JSON."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from emsco.arrays import IntArray
from emsco.deployed.savings import Saving
from emsco.designs.branched import Branched
from emsco.designs.partition import stage_counts
from emsco.storage.container import damaged
from emsco.storage.fields import Fields


def savings_to_json(savings: tuple[tuple[Saving, ...], ...]) -> list[list[dict[str, Any]]]:
    """Return a list per point, with an object per stage."""
    return [[{"up_to": list(s.up_to), "saves": list(s.saves)} for s in stages] for stages in savings]


def savings_from_json(
    record: Fields, designs: IntArray, branches: Sequence[Branched | None] = ()
) -> tuple[tuple[Saving, ...], ...]:
    """Return what buying each stage of each design, branch after branch, saves; older files do not say."""
    if "savings" not in record:
        return ()
    points, n_stages = record.items("savings", len(designs)), np.maximum(stage_counts(designs), 1).tolist()
    for i, branched in enumerate(branches):
        n_stages[i] = n_stages[i] if branched is None else int((branched.rows.max(axis=1) + 1).sum())
    savings = []
    for stages, n in zip(points, n_stages, strict=True):
        parts = Fields({"stages": stages}, "savings").parts("stages")
        if len(parts) != n:
            raise damaged("savings are not those of the stages")
        savings.append(tuple(_saving(part) for part in parts))
    return tuple(savings)


def _saving(record: Fields) -> Saving:
    saving = Saving(record.numbers("up_to"), record.numbers("saves"))
    if len(saving.up_to) != max(len(saving.saves) - 1, 0) or any(a >= b for a, b in pairwise(saving.up_to)):
        raise damaged("savings are not by ascending prices")
    return saving
