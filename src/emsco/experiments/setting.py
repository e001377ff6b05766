"""The paper's data sets with its settings (§4), as problems."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from emsco.data.encoding import Encoder
from emsco.data.labels import check_target
from emsco.data.splits import split_rows
from emsco.data.table import Table
from emsco.datasets import (
    load_australian_credit,
    load_cost_sensitive,
    load_heart_disease,
    load_heart_failure,
    load_pima,
    load_spambase,
    load_thyroid,
    make_synthetic30,
)
from emsco.datasets.cost_sensitive import COST_SENSITIVE
from emsco.prices.prices import resolve
from emsco.search.evolution import Evolution
from emsco.stages.problem import Problem, unit_membership


@dataclass(frozen=True)
class PaperSetting:
    """A data set of the paper, its search settings, and the sizes of its true fronts.

    Attributes
    ----------
    load : callable
        Returns the data as arrays: numbers as in the file, including categories and impossible zeros.
    threshold : float
    evolution : Evolution
    frontier_sizes : dict
        Sizes by the largest number of stages; empty if the paper proved none.
    """

    load: Callable[[], Any]
    threshold: float
    evolution: Evolution
    frontier_sizes: dict[int, int]


PAPER = {
    "heart": PaperSetting(
        load=lambda: load_heart_failure(as_frame=False),
        threshold=0.75,
        evolution=Evolution(patience=None, recombination_rate=0.75, stage_bias=2.0),
        frontier_sizes={2: 24, 3: 28, 4: 33},
    ),
    "credit": PaperSetting(
        load=lambda: load_australian_credit(as_frame=False),
        threshold=0.75,
        evolution=Evolution(patience=None, recombination_rate=0.8, stage_bias=2.5),
        frontier_sizes={2: 47, 3: 141, 4: 171},
    ),
    "pima": PaperSetting(
        load=lambda: load_pima(zeros_as_missing=False, as_frame=False),
        threshold=0.65,
        evolution=Evolution(patience=None, recombination_rate=0.8, stage_bias=2.0),
        frontier_sizes={2: 18, 3: 42, 4: 65},
    ),
    "synthetic30": PaperSetting(
        load=lambda: make_synthetic30(as_frame=False),
        threshold=0.65,
        evolution=Evolution(patience=None, mutation_rate=0.05, recombination_rate=0.8, stage_bias=2.5),
        frontier_sizes={},
    ),
}
BEYOND = {
    "heart-disease": PaperSetting(
        load=load_heart_disease, threshold=0.75, evolution=Evolution(patience=None), frontier_sizes={}
    ),
    "spambase": PaperSetting(
        load=lambda: load_spambase(as_frame=False), threshold=0.75, evolution=Evolution(patience=None),
        frontier_sizes={},
    ),
    "thyroid": PaperSetting(
        load=lambda: load_thyroid(subset="all", as_frame=False), threshold=0.75, evolution=Evolution(patience=None),
        frontier_sizes={},
    ),
} | {
    f"cs-{name}": PaperSetting(
        load=partial(load_cost_sensitive, name), threshold=0.75, evolution=Evolution(patience=None), frontier_sizes={}
    )
    for name in COST_SENSITIVE
}  # fmt: skip
DATASETS = PAPER | BEYOND  # not in the paper: real prices, some with shared costs, rare classes, many features
PROVEN = [name for name, setting in PAPER.items() if setting.frontier_sizes]  # 30 features are too many to prove


def paper_problem(name: str, split: int) -> Problem:
    """Return a data set split 50-25-25 by a seed, without the last quarter, which is for tests."""
    data = PAPER[name].load()
    table = Table(data.data)
    codes, classes = check_target(data.target, table.n_rows)
    rng = np.random.default_rng(split)
    rest, _ = split_rows(codes, 0.25, rng, classes)
    train, validation = (rest[part] for part in split_rows(codes[rest], 1 / 3, rng, classes))
    encoder = Encoder(table, train)
    prices = resolve(list(data.prices.values()), table.names)
    return Problem(
        train=encoder.encode(table, train),
        y_train=codes[train].copy(),
        validation=encoder.encode(table, validation),
        y_validation=codes[validation].copy(),
        n_classes=classes.size,
        unit_columns=unit_membership(encoder, prices),
        prices=prices,
    )
