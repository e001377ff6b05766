"""Every point of a deployed classifier on labelled rows: what became of them, and what may be promised of losses."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from emsco.arrays import IntArray
from emsco.data.labels import plain_labels
from emsco.data.table import Table
from emsco.deployed.decide import Decisions, Said
from emsco.deployed.evaluation import Evaluation, Result, check_truth, result_of
from emsco.designs.branched import Branched
from emsco.designs.partition import keys_of
from emsco.exceptions import InvalidInputError
from emsco.promises.loss import LossPromise, check_losses, check_promised
from emsco.scoring.rejection import RejectRule, as_rule

if TYPE_CHECKING:
    from emsco.deployed.model import Deployed

_ANSWERS_BYTES = 2**30  # of what stages say, that an evaluation keeps


class _Judge:
    """Rows that every point decides; points share feature sets, so each is asked once."""

    def __init__(self, model: "Deployed", table: Table) -> None:
        self._model, self._table = model, table
        self._column_of = model.positions(table)
        self._known: dict[bytes, Said] = {}

    def chain(self, design: IntArray, rule: RejectRule) -> Decisions:
        """Return what a chain decides."""
        model, table = self._model, self._table
        cascade, keys = model.cascade_of(design), keys_of(design)
        if cascade.is_compiled:
            return model.decisions(table, cascade, rule)
        found = cascade.walked(lambda j: self._ask(keys[j], cascade, j), rule, table.n_rows)
        return model.decided(found, table)

    def tree(self, branched: Branched) -> Decisions:
        """Return what a design decides that branches."""
        model, table = self._model, self._table
        tree = model.tree_of(branched)
        if tree.is_compiled:
            found = tree.outcomes(table, self._column_of)
        else:
            keys = [branched.keys(b) for b in range(branched.n_branches)]
            ask = lambda b, j: self._ask(keys[b][j], tree.chains[b], j)  # noqa: E731
            found = tree.walked(ask, table, self._column_of)
        return model.decided(found, table, branched)

    def _ask(self, key: bytes, cascade: Any, stage: int) -> Said:
        if key not in self._known:
            if len(self._known) * 9 * self._table.n_rows > _ANSWERS_BYTES:
                self._known.pop(next(iter(self._known)))
            self._known[key] = cascade.answers(stage, self._table, self._column_of)
        return self._known[key]


def decide_all(model: "Deployed", table: Table) -> list[tuple[Decisions, list[float], tuple[int, ...]]]:
    """Return what every point decides, what has been paid at each of its exits, and the stages of its branches."""
    judge = _Judge(model, table)
    found: list[Any] = [None] * len(model.designs)
    for i in np.lexsort(model.designs.T[::-1]).tolist():
        branched = model.branches[i] if model.branches else None
        if branched is None:
            paid = model.cascade_of(model.designs[i]).paid.tolist()
            found[i] = judge.chain(model.designs[i], model.rules[i]), paid, ()
        else:
            depths = tuple((branched.rows.max(axis=1) + 1).tolist())
            found[i] = judge.tree(branched), model.tree_of(branched).paid.tolist(), depths
    return found


def evaluate(model: "Deployed", X: Any, y: ArrayLike) -> Evaluation:
    """Judge every point on rows that neither training nor search saw, and buying everything."""
    table, classes = Table(X), model.classes
    truth = check_truth(plain_labels(y), classes, table.n_rows)
    judge, at_once = _Judge(model, table), np.zeros(model.prices.n_units, dtype=np.int64)
    cascade = model.cascade_of(at_once)
    priced, paid = cascade.row_errors(table, model.positions(table)), cascade.paid.tolist()
    amounts = None if priced is None else priced.amounts

    def everything(rule: RejectRule) -> Result:
        return result_of(judge.chain(at_once, rule), truth, classes, paid, amounts)

    return Evaluation(
        points=tuple(
            result_of(decisions, truth, classes, paid, amounts, branches=branches)
            for decisions, paid, branches in decide_all(model, table)
        ),
        everything=everything(model.rule_of_everything),
        always=everything(as_rule(0.0)),
        classes=tuple(classes.tolist()),
        front=model.front,
        point=model.point,
        errors=model.errors,
    )


def promise_loss(model: "Deployed", X: Any, y: ArrayLike, *, at_most: float, confidence: float) -> LossPromise:
    """Say of which points errors cost at most so much on new rows; see ``EMSCOClassifier.promise_loss``."""
    at_most, confidence = check_promised(at_most, confidence)
    errors, front, table = model.errors, model.front, Table(X)
    if errors is None or front is None or errors.at_risk is not None:
        raise InvalidInputError(
            "a promise on the price of errors needs a classifier that was fitted with errors=..., and prices that "
            "do not grow with an amount, which has no largest value."
        )
    truth = np.searchsorted(model.classes, check_truth(plain_labels(y), model.classes, table.n_rows))
    tests, lost = front.mean_cost, front.total - front.mean_cost
    losses = np.empty((len(front), table.n_rows))
    for i, (decided, _, _) in enumerate(decide_all(model, table)):
        answer = np.where(decided.conclusive, np.searchsorted(model.classes, decided.label.data), errors.n_classes)
        losses[i] = errors.price(truth, answer)
    order = np.lexsort((tests, lost))
    return check_losses(losses, order, front.total, at_most=at_most, largest=errors.largest, confidence=confidence)
