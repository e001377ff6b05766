"""Trained stages and new rows -> Decisions. A row is read no further than it has paid."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.data.encoding import Encoder
from emsco.data.table import Numbers, Rows, Table, data_frame, infinite_cell
from emsco.deployed import _rows as rows
from emsco.exceptions import InvalidEstimatorError, InvalidInputError, MissingColumnError
from emsco.markup import Sheet, facts_sheet
from emsco.prices.amounts import amounts_of
from emsco.prices.errors import ErrorPrices
from emsco.scoring.rejection import Threshold, as_rule
from emsco.scoring.words import tenths
from emsco.stages.base import StageModel, outcomes_of
from emsco.stages.logistic import LogisticModel

_MOST_SHOWN = 10  # rows in a notebook
_ROWS_AT_ONCE = 2**14  # a few encoded columns of so many rows fit the second-level cache; also bounds the memory
_ROWS_PER_THREAD = 2**15  # at least: fewer are done almost before a second thread has started


@dataclass(frozen=True, eq=False)
class Stage:
    """One trained stage.

    Attributes
    ----------
    features : tuple of str
        Units bought on reaching the stage.
    price : float
        What an input that reaches it pays.
    model : classifier
        Trained on all features bought so far; its ``predict_proba`` takes the encoded columns ``encoded_columns``.
    new_columns : tuple of int
        Columns of the table that the new units yield.
    encoded_columns : ndarray of int
        Encoded columns the model sees, in ascending order.
    """

    features: tuple[str, ...]
    price: float
    model: StageModel
    new_columns: tuple[int, ...]
    encoded_columns: NDArray[np.int64]

    def __repr__(self) -> str:
        return f"Stage(features={list(self.features)}, price={self.price:g}, model={type(self.model).__name__})"

    def _repr_html_(self) -> str:
        facts = {"buys": ", ".join(self.features), "price": f"{self.price:,.6g}", "model": type(self.model).__name__}
        return facts_sheet(facts.items()).to_html("Stage")


@dataclass(frozen=True, eq=False)
class Decisions:
    """What a classifier decided of each row.

    Attributes
    ----------
    label : masked array of shape (n_rows,)
        The class; masked where the row was rejected (the best guess stays readable in ``label.data``).
    conclusive : ndarray of shape (n_rows,)
        Whether the row got a label.
    confidence : ndarray of shape (n_rows,)
        Top class probability at the stage where the row left.
    stage : ndarray of shape (n_rows,)
        That stage, from 0; of a rejected row the last one.
    cost : ndarray of shape (n_rows,)
        Price of all features bought.
    index : pandas Index or None
        That of the table the rows came from, if it had one.
    sets : ndarray of shape (n_sets, n_units) or None
        Sets of units that rows may have bought.
    set_of : ndarray of shape (n_rows,) or None
        Which of them each row has. None: that of its stage.
    branch : ndarray of shape (n_rows,) or None
        The branch that each row follows, if the design branches; ``stage`` then is one of its chain.
    """

    label: np.ma.MaskedArray[Any, Any]
    conclusive: NDArray[np.bool_]
    confidence: FloatArray
    stage: NDArray[np.intp]
    cost: FloatArray
    index: Any = None
    sets: NDArray[np.bool_] | None = None
    set_of: NDArray[np.intp] | None = None
    branch: NDArray[np.intp] | None = None

    @property
    def bought(self) -> NDArray[np.bool_]:
        """Which units each row has bought, (n_rows, n_units)."""
        if self.sets is None:
            raise InvalidInputError("these decisions do not say what was bought.")
        return self.sets[self.exits]

    @property
    def exits(self) -> NDArray[np.intp]:
        """The stage where each row left; of a design that branches, among those of all branches, one after another."""
        return self.stage if self.set_of is None else self.set_of

    def __len__(self) -> int:
        return int(self.conclusive.size)

    def __repr__(self) -> str:
        n = len(self)
        if not n:
            return "<Decisions of 0 rows>"
        return (
            f"<Decisions of {n} rows: {int(self.conclusive.sum())} conclusive, mean cost {self.cost.mean():g}, "
            f"left at stages {np.bincount(self.stage).tolist()}>"
        )

    def _repr_html_(self) -> str:
        """Return the first decisions as a table, with what became of all of them."""
        n = len(self)
        rows = []
        for i in range(min(n, _MOST_SHOWN)):
            name = str(i if self.index is None else self.index[i])
            label = str(self.label.data[i]) if self.conclusive[i] else "no label"
            rows.append((name, label, f"{self.confidence[i]:.3f}", str(self.stage[i] + 1), f"{self.cost[i]:,.2f}"))
        notes = [f"{n - len(rows):,} more rows: to_frame()."] if n > len(rows) else []
        title = f"{n:,} rows"
        if n:
            left = ", ".join(f"{count:,} at stage {j + 1}" for j, count in enumerate(np.bincount(self.stage)))
            notes.append(f"Decided: {left}.")
            title += f": {tenths(self.conclusive.mean())} labelled, mean cost {self.cost.mean():,.2f}"
        head = ("row", "label", "confidence", "stage", "cost")
        return Sheet(head, tuple(rows), (0, 1), (), tuple(notes)).to_html(title)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per input, with its index; the label of a rejected one is missing."""
        columns = {"conclusive": self.conclusive, "confidence": self.confidence, "stage": self.stage, "cost": self.cost}
        frame = data_frame(columns)
        import pandas

        label = pandas.array(self.label.data.tolist())
        label[~self.conclusive] = pandas.NA
        frame.insert(0, "label", label)
        if self.branch is not None:
            frame["branch"] = self.branch
        return frame if self.index is None else frame.set_axis(self.index, axis=0)


Said = tuple[FloatArray, NDArray[np.uint8]]  # confidences and class indices, row by row


class Outcomes(NamedTuple):
    """What becomes of each row, in arrays of shape (n_rows,).

    Attributes
    ----------
    confidence : ndarray
        Top class probability at the stage where the row leaves.
    code : ndarray of int
        Index of that class.
    stage : ndarray of int
        The stage, from 0.
    conclusive : ndarray of bool
        Whether the row is confident enough for a label.
    cost : ndarray
        What it has paid.
    branch : ndarray of int or None
        Which branch it follows, if the design branches.
    """

    confidence: FloatArray
    code: NDArray[np.intp]
    stage: NDArray[np.intp]
    conclusive: NDArray[np.bool_]
    cost: FloatArray
    branch: NDArray[np.intp] | None = None

    @classmethod
    def empty(cls, n_rows: int) -> "Outcomes":
        """Return arrays to be filled."""
        return cls(
            confidence=np.empty(n_rows),
            code=np.empty(n_rows, dtype=np.intp),
            stage=np.empty(n_rows, dtype=np.intp),
            conclusive=np.empty(n_rows, dtype=np.bool_),
            cost=np.empty(n_rows),
        )

    def put(self, rows: NDArray[np.intp], values: Sequence[NDArray[Any]]) -> None:
        """Fill in some rows."""
        for mine, theirs in zip(self[:5], values, strict=True):
            mine[rows] = theirs


class TrainedCascade:
    """Trained stages with the encoder they were trained behind.

    Parameters
    ----------
    encoder : Encoder
    stages : sequence of Stage
    paid : ndarray of shape (n_stages,)
        What a row has paid by the end of each stage.
    n_classes : int
    errors : ErrorPrices or None
        If errors have prices, a stage gives the label of least expected price, or no answer.
    """

    def __init__(
        self,
        encoder: Encoder,
        stages: Sequence[Stage],
        paid: FloatArray,
        *,
        n_classes: int,
        errors: ErrorPrices | None = None,
    ) -> None:
        self.stages = tuple(stages)
        self.paid = paid
        self._encoder = encoder
        self._n_classes = n_classes
        self._errors = errors
        self._compiled = _compiled_arguments(encoder, stages) if errors is None else None

    def first(self, n_stages: int) -> "TrainedCascade":
        """Return the walk that ends after so many stages, whatever it is confident of."""
        part = self.stages[:n_stages]
        options: dict[str, Any] = {"n_classes": self._n_classes, "errors": self._errors}
        return TrainedCascade(self._encoder, part, self.paid[:n_stages], **options)

    def outcomes(
        self,
        table: Table,
        column_of: Sequence[int | None],
        threshold: Threshold,
        *,
        n_jobs: int | None = None,
        some: NDArray[np.intp] | None = None,
        skip: int = 0,
        into: Outcomes | None = None,
    ) -> Outcomes:
        """Return what becomes of each row.

        Parameters
        ----------
        table : Table
        column_of : sequence
            Where each column of the training table is in this one; None where it is not.
        threshold : float or RejectRule
        n_jobs : int or None
            Threads, where the compiled walk applies: logistic stages on a large table of numbers. None: one per core.
            The result does not depend on it.
        some : ndarray of int or None
            Rows to decide, ascending; the others are not looked at. None: all.
        skip : int
            Stages at which no row leaves, whose classifiers are not asked.
        into : Outcomes or None
            Where to write, in place of new arrays.
        """
        rule, found = as_rule(threshold), Outcomes.empty(table.n_rows) if into is None else into
        columns = self._numbers(table, column_of)
        if self._compiled is None or columns is None:
            chosen = np.arange(table.n_rows) if some is None else some
            probabilities, stage = self.probabilities(table, column_of, rule, some=some, skip=skip)
            errors = self.row_errors(table, column_of)
            if some is not None:
                probabilities, stage, errors = probabilities[some], stage[some], errors and errors.rows(some)
            confidence, code = outcomes_of(probabilities, errors)
            conclusive = rule.confident(confidence, code, stage) & (code < self._n_classes)
            if errors is not None:
                code = np.where(code < self._n_classes, code, errors.guess(probabilities))
            found.put(chosen, (confidence, code, stage, conclusive, self.paid.take(stage)))
            return found
        order = np.empty(0, dtype=np.intp) if some is None else some
        n_rows = table.n_rows if some is None else some.size
        compiled, bars = self._compiled, rule.matrix(len(self.stages))

        def task(start: int) -> None:
            stop = min(start + step, n_rows)
            arguments = (*columns[:3], order, start, stop, skip, *compiled, self.paid, bars, *found[:5])
            row, column = rows.walk(*arguments)
            if row >= 0:
                raise InvalidInputError(infinite_cell(self._encoder.codes[column].name, row))

        step = max(-(-n_rows // (n_cores() if n_jobs is None else n_jobs)), _ROWS_PER_THREAD)
        first, *others = range(0, max(n_rows, 1), step)
        if others:
            with ThreadPoolExecutor(len(others)) as pool:
                done = pool.map(task, others)
                task(first)
                list(done)
        else:
            task(first)
        return found

    def row_errors(self, table: Table, column_of: Sequence[int | None]) -> ErrorPrices | None:
        """Return the prices of errors of all rows of a table."""
        if self._errors is None or self._errors.at_risk is None:
            return self._errors
        name = self._errors.at_risk.column
        place = next(c for c, code in enumerate(self._encoder.codes) if code.name == name)
        return self._errors.at(amounts_of(table, column_of[place], name))

    @property
    def is_compiled(self) -> bool:
        """Whether a compiled walk decides tables of numbers."""
        return self._compiled is not None

    def answers(
        self, stage: int, table: Table, column_of: Sequence[int | None]
    ) -> tuple[FloatArray, NDArray[np.uint8]]:
        """Return what one stage says of every row: confidence and code."""
        asked, confidence = self.stages[stage], np.empty(table.n_rows)
        code, columns = np.empty(table.n_rows, dtype=np.uint8), {}
        owned, errors = [c for each in self.stages[: stage + 1] for c in each.new_columns], None
        if self._errors is not None:
            errors = self.row_errors(table, column_of)
        for start in range(0, table.n_rows, _ROWS_AT_ONCE):
            part = slice(start, min(start + _ROWS_AT_ONCE, table.n_rows))
            Z = np.empty((self._encoder.n_encoded, part.stop - start))
            for c in owned:
                if c not in columns:
                    columns[c] = bought_column(table, column_of[c], self._encoder.codes[c].name, stage)
                self._encoder.encode_column(c, columns[c], part, Z)
            priced = None if errors is None else errors.rows(part)
            confidence[part], code[part] = outcomes_of(self._ask(asked.model, Z[asked.encoded_columns].T), priced)
        return confidence, code

    def walked(self, ask: Callable[[int], Said], threshold: Threshold, n_rows: int) -> Outcomes:
        """Return what becomes of each row, given what each stage says of every row."""
        rule, last = as_rule(threshold), len(self.stages) - 1
        confidence, code = np.empty(n_rows), np.empty(n_rows, dtype=np.intp)
        stage = np.full(n_rows, last, dtype=np.intp)
        waiting = np.ones(n_rows, dtype=np.bool_)
        for j in range(last + 1):
            sure, said = ask(j)
            leaving = waiting if j == last else waiting & rule.confident(sure, said, j)
            confidence[leaving], code[leaving], stage[leaving] = sure[leaving], said[leaving], j
            waiting = waiting & ~leaving
            if not waiting.any():
                break
        conclusive = rule.confident(confidence, code, stage) & (code < self._n_classes)
        code = np.minimum(code, self._n_classes - 1)  # of no answer, which is masked
        return Outcomes(confidence, code, stage, conclusive, self.paid.take(stage))

    def _numbers(self, table: Table, column_of: Sequence[int | None]) -> Numbers | None:
        """Return the columns that the stages buy, in their order, if the compiled walk can read them."""
        positions = [column_of[c] for stage in self.stages for c in stage.new_columns]
        bought = [p for p in positions if p is not None]
        return table.numbers(bought) if self._compiled is not None and len(bought) == len(positions) else None

    def probabilities(
        self,
        table: Table,
        column_of: Sequence[int | None],
        threshold: Threshold,
        *,
        some: NDArray[np.intp] | None = None,
        skip: int = 0,
    ) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return class probabilities at the exit stage, (n_rows, n_classes), and that stage.

        A row that is never confident leaves at the last stage. Parameters as in ``outcomes``; of rows that are not
        looked at, the numbers mean nothing.
        """
        probabilities = np.empty((self._n_classes, table.n_rows)).T
        exit_stage = np.empty(table.n_rows, dtype=np.intp)
        n_rows = table.n_rows if some is None else some.size
        columns: dict[int, NDArray[Any]] = {}
        rule, errors = as_rule(threshold), self.row_errors(table, column_of)
        for start in range(0, n_rows, _ROWS_AT_ONCE):
            block = slice(start, min(start + _ROWS_AT_ONCE, n_rows))
            waiting = np.arange(block.start, block.stop) if some is None else some[block]
            read: Rows = block if some is None else waiting
            Z = np.empty((self._encoder.n_encoded, waiting.size))
            for j, stage in enumerate(self.stages):
                for c in stage.new_columns:
                    if c not in columns:
                        columns[c] = bought_column(table, column_of[c], self._encoder.codes[c].name, j)
                    self._encoder.encode_column(c, columns[c], read, Z)
                if j < skip:
                    continue
                answers = self._ask(stage.model, Z[stage.encoded_columns].T)
                if j == len(self.stages) - 1:
                    probabilities[read] = answers
                    exit_stage[read] = j
                    break
                confident = rule.confident(*outcomes_of(answers, None if errors is None else errors.rows(waiting)), j)
                leaving = waiting[confident]
                probabilities[leaving] = answers[confident]
                exit_stage[leaving] = j
                read = waiting = waiting[~confident]
                if not waiting.size:
                    break
                kept = np.empty((self._encoder.n_encoded, waiting.size))
                kept[stage.encoded_columns] = Z[stage.encoded_columns][:, ~confident]
                Z = kept
        return probabilities, exit_stage

    def _ask(self, model: StageModel, X: FloatArray) -> FloatArray:
        try:
            # In double precision, as the search compares: else a row could leave as confident and have no label.
            answers = np.asarray(model.predict_proba(X), dtype=np.float64)
        except Exception as error:  # an estimator of somebody else, or one that was tampered with in a file
            raise InvalidEstimatorError(f"{type(model).__name__}.predict_proba failed: {error}") from error
        if answers.shape != (len(X), self._n_classes):
            raise InvalidEstimatorError(
                f"{type(model).__name__}.predict_proba gave an array of shape {answers.shape}; wanted "
                f"{(len(X), self._n_classes)}."
            )
        return answers


@cache
def n_cores() -> int:
    """Return how many cores this process may use; as for OpenMP and BLAS, OMP_NUM_THREADS bounds them."""
    bound = os.environ.get("OMP_NUM_THREADS", "")
    if bound.isdigit() and int(bound) <= 1:
        return 1
    from joblib import cpu_count  # here: it takes a while to load, and a service has one thread for each case

    n = int(cpu_count())
    return min(n, int(bound)) if bound.isdigit() else n


def _compiled_arguments(encoder: Encoder, stages: Sequence[Stage]) -> tuple[Any, ...] | None:
    """Return the classifier as arrays for the compiled walk, or None where it does not apply."""
    numbers = encoder.numbers()
    models = [stage.model for stage in stages if isinstance(stage.model, LogisticModel)]
    if numbers is None or len(models) < len(stages):
        return None
    widest = max(model.coef_.shape[1] for model in models)
    theta = np.zeros((len(models), models[0].coef_.shape[0], widest))
    for weights, model in zip(theta, models, strict=True):
        weights[:, : model.coef_.shape[1]] = model.coef_
    return (
        numbers,
        np.concatenate([np.array(stage.new_columns, dtype=np.int64) for stage in stages]),
        np.cumsum([0, *(len(stage.new_columns) for stage in stages)]),
        np.concatenate([stage.encoded_columns for stage in stages]),
        np.cumsum([0, *(stage.encoded_columns.size for stage in stages)]),
        theta,
        np.array([model.intercept_ for model in models]),
    )


def bought_column(table: Table, position: int | None, name: str, stage: int) -> NDArray[Any]:
    """Return a column that a stage buys, or raise if the table does not have it."""
    if position is None:
        raise MissingColumnError(
            f"column {name!r} is not in the table, but rows are still undecided when stage {stage + 1} buys it; add it "
            "(missing values are allowed)."
        )
    return table.column(position)
