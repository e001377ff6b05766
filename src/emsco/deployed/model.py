"""Deployed: what is left when the search is over. It decides, opens sessions, is saved, exported and reported.

It is frozen. Another point or another threshold makes another object, so every thread that holds one has a design, a
rule and a price list that belong together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from emsco.arrays import FloatArray, IntArray
from emsco.data.encoding import Encoder
from emsco.data.labels import plain_classes, plain_labels
from emsco.data.table import Table
from emsco.deployed.decide import Decisions, Outcomes, Said, Stage, TrainedCascade
from emsco.deployed.evaluation import Evaluation, check_truth, result_of
from emsco.deployed.running import check_no_loop, check_run, is_async, run_in_loop, run_in_threads
from emsco.deployed.savings import Saving
from emsco.deployed.session import Accept, Acquire, Itinerary, Reject, Session, continue_session
from emsco.designs.partition import acquired_sets, set_key
from emsco.exceptions import InvalidInputError, InvalidParameterError
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList
from emsco.promises.guarantee import Promise
from emsco.promises.loss import LossPromise, check_losses, check_promised
from emsco.promises.policy import ThresholdPolicy, policy_of
from emsco.scoring.front import Front
from emsco.scoring.objectives import Loss
from emsco.scoring.outlook import Outlook
from emsco.scoring.rejection import RejectRule, as_rule
from emsco.stages.base import StageModel

_ANSWERS_BYTES = 2**30  # of what stages say, that an evaluation keeps


@dataclass(frozen=True, eq=False)
class Origin:
    """How a deployed classifier came about.

    Attributes
    ----------
    kind : str
        Name of the estimator that was fitted.
    parameters : mapping
        Its parameters, as given.
    preset : mapping
        The parameters that were left to the preset, and what they stand for.
    encoding, C
        How the stages in use were trained.
    validation : int, float, "given" or None
        How the rows behind the figures of the front were judged: folds, a share of the rows, or rows that were given.
        None: there is no front, or a file of an older version does not say.
    finished : bool
        Whether the stages are those of the final estimator and calibration, if these are set.
    learner : str or None
        Kind of boosted trees that won the race of final learners; None: logistic stages did, or there was no race.
    retrained : bool
        Whether the stages were trained again on other rows, which are now those behind the figures of the front.
    other_thresholds : bool
        Whether the thresholds were changed after the figures of the front were counted.
    search : settings of a search, a record of them, or None
        What found the front; of a loaded one a record, ``{"kind": "Exact", ...}``, so that serving loads no search.
    search_seconds : float
    n_generations, n_feature_sets : int
        Generations or batches of the search, and feature sets that it trained.
    history : ndarray of shape (n_steps, 3)
        How the search went.
    names_are_text : bool
        Whether the columns had names that scikit-learn records.
    timed_out : tuple of str
        What a time limit cut short, in words; empty if nothing.
    """

    kind: str
    parameters: Mapping[str, Any]
    preset: Mapping[str, Any] = field(default_factory=dict)
    encoding: str = "linear"
    C: float = 1.0
    validation: int | float | str | None = None
    finished: bool = True
    learner: str | None = None
    retrained: bool = False
    other_thresholds: bool = False
    search: Any = None
    search_seconds: float = 0.0
    n_generations: int = 0
    n_feature_sets: int = 0
    history: IntArray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))
    names_are_text: bool = False
    timed_out: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Deployed:
    """Trained stages of every point of a front, one of which is in use.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
    encoder : Encoder
    named : bool
        Whether the training table had column names.
    prices : PriceList
    designs : ndarray of shape (n_points, n_units)
    models : mapping of bytes to model
        Of each set of units that a design needs (``set_key``), and of all units.
    policy : ThresholdPolicy
        What the user's threshold means.
    rules : tuple of RejectRule
        When each point is confident enough.
    origin : Origin
    point : int
        The point in use.
    chosen : int
        The point that fit chose, before anybody saw how the calibration rows turned out.
    front : Front or None
        Figures of the points on the rows that judged them; None if the design was given.
    promises : tuple of Promise
        What is promised of each point; empty if nothing is.
    evaluation : Evaluation or None
    notes : dict
        Saved with the model.
    errors : ErrorPrices or None
        If errors have prices, each stage gives the label of least expected price.
    savings : tuple of tuple of Saving
        Then, what buying each stage of each point saves on average; empty if unknown.
    """

    classes: NDArray[Any]
    encoder: Encoder
    named: bool
    prices: PriceList
    designs: IntArray
    models: Mapping[bytes, StageModel]
    policy: ThresholdPolicy
    rules: tuple[RejectRule, ...]
    origin: Origin
    point: int = 0
    chosen: int = 0
    front: Front | None = None
    promises: tuple[Promise, ...] = ()
    evaluation: Evaluation | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    errors: ErrorPrices | None = None
    savings: tuple[tuple[Saving, ...], ...] = ()

    def __post_init__(self) -> None:
        self.designs.setflags(write=False)

    def use(self, point: int) -> "Deployed":
        """Return the same with another point in use."""
        n = len(self.designs)
        if isinstance(point, bool) or not isinstance(point, int | np.integer) or not 0 <= point < n:
            raise InvalidParameterError(
                f"must be one of the points 0 to {n - 1} of the front; got {point!r}.", parameter="point"
            )
        evaluation = None if self.evaluation is None else replace(self.evaluation, point=int(point))
        return replace(self, point=int(point), evaluation=evaluation)

    def with_threshold(self, threshold: Any) -> "Deployed":
        """Return the same with another threshold, None being that of the preset; nothing is trained."""
        if self.errors is not None and threshold is not None:
            raise InvalidParameterError(
                f"was set to {threshold!r}, but errors have prices, so each point has bars of its own; set it to None.",
                parameter="threshold",
            )
        policy = policy_of(self.origin.preset.get("threshold") if threshold is None else threshold)
        own = None if self.front is None else self.front.thresholds
        rules = policy.rules(self.classes, self.designs, own, self.promises)
        changed = not policy.tunes and (self.origin.other_thresholds or rules != self.rules)
        parameters = {**self.origin.parameters, "threshold": threshold}
        origin = replace(self.origin, parameters=parameters, other_thresholds=changed)
        evaluation = self.evaluation if rules == self.rules else None  # that of other thresholds
        return replace(self, policy=policy, rules=rules, origin=origin, evaluation=evaluation)

    def in_use(self) -> "Deployed":
        """Return the same with nothing but the point in use: as little as possible to send elsewhere."""
        sets = acquired_sets(self.design[None])[0][0]
        return replace(
            self,
            designs=self.design[None].copy(),
            models={key: self.models[key] for key in map(set_key, sets)},
            rules=(self.rule,),
            point=0,
            chosen=0,
            front=None,
            promises=(),
            evaluation=None,
            notes={},
        )

    @property
    def design(self) -> IntArray:
        """The design in use."""
        row: IntArray = self.designs[self.point]
        return row

    @property
    def rule(self) -> RejectRule:
        """When the design in use is confident enough."""
        return self.rules[self.point]

    @property
    def rule_of_everything(self) -> RejectRule:
        """When buying everything at once is confident enough.

        That is no point of the front: nothing is promised of it, and no thresholds were chosen with it.
        """
        if self.errors is not None:  # at the only stage, everybody leaves
            return as_rule(0.0)
        searched = self.policy.searched_with
        return self.rule if searched is None else as_rule(searched)

    @property
    def promise(self) -> Promise | None:
        """What is promised of the design in use."""
        if not self.promises or self.policy.set_aside is None:
            return None
        return replace(self.promises[self.point], by_hand=self.point != self.chosen)

    @property
    def outlook(self) -> Outlook | None:
        """What to expect on new rows of the point that fit chose; None if unknown, or with other thresholds in use."""
        return None if self.front is None or not self.policy.tunes else self.front.outlook

    @property
    def objectives(self) -> Sequence[Any] | None:
        """What designs were compared by, as given; None: coverage, accuracy and cost."""
        if self.errors is not None and self.errors.at_risk is not None:
            return None  # counts by class and label do not tell the loss
        if self.errors is not None:
            return ["cost", Loss(self.errors.matrix, self.errors.rejected)]
        return self.origin.parameters.get("objectives")

    @property
    def search_name(self) -> str:
        """Name of the search that found the front."""
        search = self.origin.search
        if search is None:
            return ""
        return str(search["kind"]) if isinstance(search, Mapping) else type(search).__name__

    @property
    def column_names(self) -> list[str]:
        """Columns of the training table."""
        return [code.name for code in self.encoder.codes]

    @property
    def n_columns(self) -> int:
        """How many columns the training table had."""
        return len(self.encoder.codes)

    @cached_property
    def cascade(self) -> TrainedCascade:
        """The stages of the design in use."""
        return self.cascade_of(self.design)

    @property
    def stages(self) -> list[Stage]:
        """What each stage of the design in use buys, its price and its trained model."""
        return list(self.cascade.stages)

    @property
    def paid(self) -> FloatArray:
        """What has been paid by the end of each of its stages."""
        return self.cascade.paid

    def cascade_of(self, design: IntArray) -> TrainedCascade:
        """Return the stages of a design whose models are trained."""
        prices = self.prices
        stages = []
        sets = acquired_sets(design[None])[0][0]
        for j, units in enumerate(sets):
            new = np.flatnonzero(design == j)
            owned = [c for unit in np.flatnonzero(units) for c in prices.unit_columns[unit]]
            stages.append(
                Stage(
                    features=tuple(prices.unit_names[unit] for unit in new),
                    price=prices.price_of(design == j, (design >= 0) & (design < j)),
                    model=self.models[set_key(units)],
                    new_columns=tuple(c for unit in new for c in prices.unit_columns[unit]),
                    encoded_columns=self.encoder.positions(owned),
                )
            )
        paid = prices.paid(sets)
        return TrainedCascade(self.encoder, stages, paid, n_classes=self.classes.size, errors=self.errors)

    def decide(self, X: Any, *, n_jobs: int | None = None) -> Decisions:
        """Decide each row with as few purchases as its design allows, or reject it; see ``EMSCOClassifier.decide``."""
        decisions = self.decisions(Table(X), self.cascade, self.rule, n_jobs=n_jobs)
        return replace(decisions, sets=acquired_sets(self.design[None])[0][0])

    def decisions(
        self, table: Table, cascade: TrainedCascade, rule: RejectRule, *, n_jobs: int | None = None
    ) -> Decisions:
        """Return what stages of this model, those in use or others, decide by a rule."""
        return self._decisions(cascade.outcomes(table, self.positions(table), rule, n_jobs=n_jobs), table)

    def _decisions(self, found: Outcomes, table: Table) -> Decisions:
        label = np.ma.MaskedArray(self._labels(found.code), mask=~found.conclusive)
        return Decisions(label, found.conclusive, found.confidence, found.stage, found.cost, table.index)

    def _labels(self, code: NDArray[np.intp]) -> NDArray[Any]:
        """Return classes by their indices; where these are the classes, no copy."""
        classes = self.classes
        same = classes.dtype == code.dtype and np.array_equal(classes, np.arange(classes.size))
        return code if same else classes.take(code)

    def positions(self, table: Table) -> list[int | None]:
        """Return where each column of the training table is in another one: by name where both have names."""
        if table.named and self.named:
            position = {name: i for i, name in enumerate(table.names)}
            return [position.get(name) for name in self.column_names]
        if len(table.names) != self.n_columns:
            raise InvalidInputError(
                f"X has {len(table.names)} columns, but {self.origin.kind} was fitted on {self.n_columns}; without "
                "column names on both, give all of them, in the same order."
            )
        return list(range(self.n_columns))

    def predict_proba(self, table: Table) -> FloatArray:
        """Return the class probabilities of the stage where each row leaves; all columns, in the training order."""
        return np.ascontiguousarray(self.cascade.probabilities(table, range(self.n_columns), self.rule)[0])

    @cached_property
    def itinerary(self) -> Itinerary:
        """What all sessions of the design in use share."""
        savings = self.savings[self.point] if self.savings else ()
        return Itinerary(self.encoder, self.stages, self.paid, self.prices, self.classes, self.errors, savings)

    def session(self, state: Mapping[str, Any] | None = None) -> Session:
        """Begin to decide one input whose values are bought one stage at a time, or continue from a state."""
        if state is None:
            return Session(self.itinerary, self.rule)
        return continue_session(self.itinerary, self.rule, state)

    def run(
        self,
        acquire: Callable[[Any, Acquire], Any],
        inputs: Iterable[Any],
        *,
        max_in_flight: int = 8,
        on_decision: Callable[[Any, Accept | Reject], object] | None = None,
    ) -> Decisions:
        """Decide many inputs at once by a callback that buys what each needs; see ``EMSCOClassifier.run``."""
        limit, begin = check_run(acquire, inputs, max_in_flight), partial(Session, self.itinerary, self.rule)
        if not is_async(acquire):
            decided = run_in_threads(begin, acquire, inputs, max_in_flight=limit, on_decision=on_decision)
        else:
            check_no_loop()
            decided = asyncio.run(run_in_loop(begin, acquire, inputs, max_in_flight=limit, on_decision=on_decision))
        return self._gathered(decided)

    async def run_async(
        self,
        acquire: Callable[[Any, Acquire], Awaitable[Any]],
        inputs: Iterable[Any],
        *,
        max_in_flight: int = 8,
        on_decision: Callable[[Any, Accept | Reject], object] | None = None,
    ) -> Decisions:
        """Do what ``run`` does, with an async callback, inside a running event loop."""
        limit, begin = check_run(acquire, inputs, max_in_flight), partial(Session, self.itinerary, self.rule)
        return self._gathered(await run_in_loop(begin, acquire, inputs, max_in_flight=limit, on_decision=on_decision))

    def _gathered(self, decided: Sequence[Accept | Reject]) -> Decisions:
        """Return decisions of single inputs as those of a table."""
        position = {label: code for code, label in enumerate(plain_classes(self.classes))}
        code = [position[d.label if isinstance(d, Accept) else d.best_guess] for d in decided]
        conclusive = np.array([isinstance(d, Accept) for d in decided], dtype=np.bool_)
        return Decisions(
            label=np.ma.MaskedArray(self.classes.take(np.array(code, dtype=np.intp)), mask=~conclusive),
            conclusive=conclusive,
            confidence=np.array([decision.confidence for decision in decided], dtype=np.float64),
            stage=np.array([decision.stage for decision in decided], dtype=np.intp),
            cost=np.array([decision.cost for decision in decided], dtype=np.float64),
            sets=acquired_sets(self.design[None])[0][0],
        )

    def evaluate(self, X: Any, y: ArrayLike) -> Evaluation:
        """Judge every point on rows that neither training nor search saw, and buying everything."""
        table = Table(X)
        truth = check_truth(plain_labels(y), self.classes, table.n_rows)
        column_of, n_rows = self.positions(table), table.n_rows
        priced = self.cascade.row_errors(table, column_of)
        amounts = None if priced is None else priced.amounts
        known: dict[bytes, Said] = {}  # points share feature sets: each is asked once

        def result(design: IntArray, rule: RejectRule) -> Any:
            cascade, sets = self.cascade_of(design), acquired_sets(design[None])[0][0]
            if cascade.is_compiled:
                decisions = self.decisions(table, cascade, rule)
            else:

                def ask(stage: int) -> Said:
                    key = set_key(sets[stage])
                    if key not in known:
                        if len(known) * 9 * n_rows > _ANSWERS_BYTES:
                            known.pop(next(iter(known)))
                        known[key] = cascade.answers(stage, table, column_of)
                    return known[key]

                decisions = self._decisions(cascade.walked(ask, rule, n_rows), table)
            return result_of(decisions, truth, self.classes, cascade.paid.tolist(), amounts)

        at_once = np.zeros(self.prices.n_units, dtype=np.int64)
        points: list[Any] = [None] * len(self.designs)
        for i in np.lexsort(self.designs.T[::-1]).tolist():
            points[i] = result(self.designs[i], self.rules[i])
        return Evaluation(
            points=tuple(points),
            everything=result(at_once, self.rule_of_everything),
            always=result(at_once, as_rule(0.0)),
            classes=tuple(self.classes.tolist()),
            front=self.front,
            point=self.point,
            errors=self.errors,
        )

    def promise_loss(self, X: Any, y: ArrayLike, *, at_most: float, confidence: float) -> LossPromise:
        """Say of which points errors cost at most so much on new rows; see ``EMSCOClassifier.promise_loss``."""
        at_most, confidence = check_promised(at_most, confidence)
        errors, front, table = self.errors, self.front, Table(X)
        if errors is None or front is None or errors.at_risk is not None:
            raise InvalidInputError(
                "a promise on the price of errors needs a classifier that was fitted with errors=..., and prices that "
                "do not grow with an amount, which has no largest value."
            )
        truth = np.searchsorted(self.classes, check_truth(plain_labels(y), self.classes, table.n_rows))
        tests, lost = front.mean_cost, front.total - front.mean_cost
        losses = np.empty((len(front), table.n_rows))
        for i, (design, rule) in enumerate(zip(self.designs, self.rules, strict=True)):
            decided = self.decisions(table, self.cascade_of(design), rule)
            answer = np.where(decided.conclusive, np.searchsorted(self.classes, decided.label.data), errors.n_classes)
            losses[i] = errors.price(truth, answer)
        order = np.lexsort((tests, lost))
        return check_losses(losses, order, front.total, at_most=at_most, largest=errors.largest, confidence=confidence)

    def shortages(self) -> list[str]:
        """Say what cannot be promised of the design in use, and what is missing."""
        return [] if self.promise is None else self.promise.shortages()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("cascade", "itinerary")}


def the_front(deployed: Deployed) -> Front:
    """Return the front of a searched design; of a given one there is none."""
    if deployed.front is None:
        raise InvalidInputError(f"{deployed.origin.kind} has no front: its design was given.")
    return deployed.front
