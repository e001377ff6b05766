"""Designs that branch on new rows: each row goes to its branch, and the stages of that branch decide it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.data.encoding import Encoder, NumberCode
from emsco.data.table import Table, to_numbers
from emsco.deployed.decide import Outcomes, Said, TrainedCascade, bought_column
from emsco.designs.branched import Branched
from emsco.scoring.rejection import RejectRule, as_rule

_ALL = slice(None)
_ROOT_ONLY = as_rule(0.0)  # the root is asked, whatever becomes of the row


class BranchedCascade:
    """The trained stages of every branch.

    Parameters
    ----------
    branched : Branched
    chains : sequence of TrainedCascade
        One per branch; the first stage of all is the root.
    encoder : Encoder

    Attributes
    ----------
    paid : ndarray of shape (n_exits,)
        What has been paid by the end of each stage of one branch after another.
    """

    def __init__(self, branched: Branched, chains: Sequence[TrainedCascade], encoder: Encoder) -> None:
        self.branched = branched
        self._encoder = encoder
        self.chains = tuple(chains)
        self.paid: FloatArray = np.concatenate([chain.paid for chain in chains])
        self._root = chains[0].first(1)

    @property
    def is_compiled(self) -> bool:
        """Whether a compiled walk decides tables of numbers."""
        return all(chain.is_compiled for chain in self.chains)

    def outcomes(self, table: Table, column_of: Sequence[int | None], *, n_jobs: int | None = None) -> Outcomes:
        """Return what becomes of each row; parameters as those of a chain."""
        found = Outcomes.empty(table.n_rows)
        once = self.branched.route.kind == "leaning" and self._root.row_errors(table, column_of) is None
        leaning = None
        if once:
            leaning = self._root.outcomes(table, column_of, _ROOT_ONLY, n_jobs=n_jobs, into=found).code.copy()
        branch = self.branches(table, column_of, leaning)
        for b, (chain, rule) in enumerate(zip(self.chains, self.branched.rules, strict=True)):
            rows = np.flatnonzero(branch == b)
            if once:  # the root has spoken: only rows that it is not sure of go on
                sure = rule.confident(found.confidence[rows], found.code[rows], 0)
                found.conclusive[rows] = sure
                rows = rows[~sure] if len(chain.stages) > 1 else rows[:0]
            if rows.size:
                chain.outcomes(table, column_of, rule, n_jobs=n_jobs, some=rows, skip=int(once), into=found)
        return found._replace(branch=branch)

    def probabilities(self, table: Table, column_of: Sequence[int | None]) -> FloatArray:
        """Return class probabilities where each row leaves, (n_rows, n_classes)."""
        branch = self.branches(table, column_of)
        parts = [
            (rows, chain.probabilities(table, column_of, rule, some=rows)[0][rows])
            for chain, rule, rows in zip(
                self.chains, self.branched.rules, rows_by(branch, len(self.chains)), strict=True
            )
        ]
        found = np.empty((table.n_rows, parts[0][1].shape[1]))
        for rows, values in parts:
            found[rows] = values
        return found

    def walked(self, ask: Callable[[int, int], Said], table: Table, column_of: Sequence[int | None]) -> Outcomes:
        """Return what becomes of each row, given what each stage of each branch says of every row."""
        leaning = ask(0, 0)[1] if self.branched.route.kind == "leaning" else None
        branch = self.branches(table, column_of, leaning)
        found = Outcomes.empty(table.n_rows)
        for b, rows in enumerate(rows_by(branch, len(self.chains))):
            theirs = self.chains[b].walked(partial(ask, b), self.branched.rules[b], table.n_rows)
            found.put(rows, [values[rows] for values in theirs[:5]])
        return found._replace(branch=branch)

    def branches(
        self, table: Table, column_of: Sequence[int | None], leaning: NDArray[Any] | None = None
    ) -> NDArray[np.intp]:
        """Return the branch of each row; the root is asked if what it leans to is not given."""
        route, columns = self.branched.route, []
        if route.kind == "leaning" and leaning is None:
            leaning = self._root.answers(0, table, column_of)[1]
        for c in route.columns:
            code = self._encoder.codes[c]
            values = bought_column(table, column_of[c], code.name, 0)
            columns.append(to_numbers(values, code.name, _ALL) if isinstance(code, NumberCode) else values)
        return route.branch(columns, leaning)


def with_rules(points: Sequence[Branched | None], rules: Sequence[RejectRule]) -> tuple[Branched | None, ...]:
    """Return points with the rule of each for all of its branches."""
    return tuple(
        None if point is None else replace(point, rules=(rule,) * point.n_branches)
        for point, rule in zip(points, rules, strict=False)
    )


def rows_by(branch: NDArray[np.intp], n_branches: int) -> list[NDArray[np.intp]]:
    """Return the rows of each branch."""
    return [np.flatnonzero(branch == b) for b in range(n_branches)]
