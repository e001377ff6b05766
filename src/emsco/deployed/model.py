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
from emsco.data.labels import plain_classes
from emsco.data.table import Table
from emsco.deployed.branching import BranchedCascade, with_rules
from emsco.deployed.crossroads import Crossroads
from emsco.deployed.decide import Decisions, Outcomes, Stage, TrainedCascade
from emsco.deployed.evaluation import Evaluation
from emsco.deployed.judging import evaluate, promise_loss
from emsco.deployed.running import check_no_loop, check_run, is_async, run_in_loop, run_in_threads
from emsco.deployed.savings import Saving
from emsco.deployed.session import Accept, Acquire, Itinerary, Reject, Session, continue_session
from emsco.designs.branched import Branched
from emsco.designs.partition import acquired_sets, keys_of
from emsco.exceptions import InvalidInputError, InvalidParameterError
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList
from emsco.promises.guarantee import Promise
from emsco.promises.loss import LossPromise
from emsco.promises.policy import ThresholdPolicy, policy_of
from emsco.scoring.front import Front
from emsco.scoring.objectives import Loss
from emsco.scoring.outlook import Outlook
from emsco.scoring.rejection import RejectRule, as_rule
from emsco.scoring.thresholds import rule_words, rules_words
from emsco.stages.base import StageModel


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
        Then, what buying each stage of each point saves on average; empty if unknown. Of a point that branches, the
        stages of one branch after another.
    branches : tuple of Branched or None
        Of each point its branches, None if it is a chain; empty if all are. Left out, those of the front.
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
    branches: tuple[Branched | None, ...] = ()

    def __post_init__(self) -> None:
        if not self.branches and self.front is not None:
            object.__setattr__(self, "branches", self.front.branched)
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
        branches = self.branches if policy.tunes else with_rules(self.branches, rules)
        changed = not policy.tunes and (self.origin.other_thresholds or rules != self.rules)
        parameters = {**self.origin.parameters, "threshold": threshold}
        origin = replace(self.origin, parameters=parameters, other_thresholds=changed)
        evaluation = self.evaluation if rules == self.rules else None  # that of other thresholds
        return replace(self, policy=policy, rules=rules, origin=origin, evaluation=evaluation, branches=branches)

    def in_use(self) -> "Deployed":
        """Return the same with nothing but the point in use: as little as possible to send elsewhere."""
        branched = self.branched
        keys = keys_of(self.design)
        if branched is not None:
            keys = [key for b in range(branched.n_branches) for key in branched.keys(b)]
        return replace(
            self,
            designs=self.design[None].copy(),
            models={key: self.models[key] for key in keys},
            rules=(self.rule,),
            point=0,
            chosen=0,
            front=None,
            promises=(),
            evaluation=None,
            notes={},
            savings=(self.savings[self.point],) if self.savings else (),
            branches=() if branched is None else (branched,),
        )

    @property
    def design(self) -> IntArray:
        """The design in use."""
        row: IntArray = self.designs[self.point]
        return row

    @property
    def branched(self) -> Branched | None:
        """The branches of the design in use; None if it is a chain."""
        return self.branches[self.point] if self.branches else None

    def require_chain(self, what: str) -> None:
        """Raise if the design in use branches, of which there is no such thing yet."""
        if self.branched is not None:
            chains = [i for i, branched in enumerate(self.branches) if branched is None]
            hint = f", such as use({chains[0]})" if chains else ""
            raise InvalidInputError(
                f"the design in use branches, and there is no {what} of such designs yet; put a point that does not "
                f"branch into use{hint}."
            )

    @property
    def words(self) -> tuple[str, ...]:
        """Which cases follow each branch of the design in use, in words; empty if it is a chain."""
        branched = self.branched
        return () if branched is None else branched.route.words(self.column_names, self.classes.tolist())

    @property
    def rule_words(self) -> str:
        """When the design in use gives a label, in words."""
        if self.branched is not None:
            return rules_words(self.branched, self.classes.tolist())
        return rule_words(self.rule, len(self.stages), self.classes.tolist())

    @property
    def rule(self) -> RejectRule:
        """When the design in use is confident enough; if it branches, each branch has a rule of its own."""
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
        """The stages of the design in use, which is a chain."""
        self.require_chain("one chain of stages")
        return self.cascade_of(self.design)

    @cached_property
    def tree(self) -> BranchedCascade:
        """The stages of the design in use, which branches."""
        assert self.branched is not None
        return self.tree_of(self.branched)

    @property
    def stages(self) -> list[Stage]:
        """What each stage of the design in use buys, its price and its trained model.

        Of a design that branches, the stages of one branch after another; each begins with the root.
        """
        if self.branched is not None:
            return [stage for chain in self.tree.chains for stage in chain.stages]
        return list(self.cascade.stages)

    @property
    def paid(self) -> FloatArray:
        """What has been paid by the end of each of these stages."""
        return self.cascade.paid if self.branched is None else self.tree.paid

    @property
    def n_stages(self) -> int:
        """How many stages a case may pass; of a design that branches, in its deepest branch."""
        return len(self.cascade.stages) if self.branched is None else self.branched.n_stages

    @property
    def columns_bought(self) -> list[int]:
        """Columns of the training table that the design in use may buy, ascending."""
        return sorted({c for stage in self.stages for c in stage.new_columns})

    def tree_of(self, branched: Branched) -> BranchedCascade:
        """Return the stages of a design that branches."""
        chains = [self.cascade_of(row, branched.keys(b)) for b, row in enumerate(branched.rows)]
        return BranchedCascade(branched, chains, self.encoder)

    def cascade_of(self, design: IntArray, keys: Sequence[bytes] | None = None) -> TrainedCascade:
        """Return the stages of a chain whose models are trained; ``keys`` are those of the models, if not of sets."""
        prices = self.prices
        stages = []
        sets = acquired_sets(design[None])[0][0]
        keys = keys_of(design) if keys is None else keys
        for j, units in enumerate(sets):
            new = np.flatnonzero(design == j)
            owned = [c for unit in np.flatnonzero(units) for c in prices.unit_columns[unit]]
            stages.append(
                Stage(
                    features=tuple(prices.unit_names[unit] for unit in new),
                    price=prices.price_of(design == j, (design >= 0) & (design < j)),
                    model=self.models[keys[j]],
                    new_columns=tuple(c for unit in new for c in prices.unit_columns[unit]),
                    encoded_columns=self.encoder.positions(owned),
                )
            )
        paid = prices.paid(sets)
        return TrainedCascade(self.encoder, stages, paid, n_classes=self.classes.size, errors=self.errors)

    def decide(self, X: Any, *, n_jobs: int | None = None) -> Decisions:
        """Decide each row with as few purchases as its design allows, or reject it; see ``EMSCOClassifier.decide``."""
        table = Table(X)
        return self.decided(self.outcomes(table, n_jobs=n_jobs), table, self.branched, self.design)

    def outcomes(self, table: Table, *, n_jobs: int | None = None) -> Outcomes:
        """Return what becomes of each row of a table by the design in use."""
        if self.branched is not None:
            return self.tree.outcomes(table, self.positions(table), n_jobs=n_jobs)
        return self.cascade.outcomes(table, self.positions(table), self.rule, n_jobs=n_jobs)

    def decisions(
        self, table: Table, cascade: TrainedCascade, rule: RejectRule, *, n_jobs: int | None = None
    ) -> Decisions:
        """Return what a chain of stages of this model, that in use or another, decides by a rule."""
        return self.decided(cascade.outcomes(table, self.positions(table), rule, n_jobs=n_jobs), table)

    def decided(
        self, found: Outcomes, table: Table, branched: Branched | None = None, design: IntArray | None = None
    ) -> Decisions:
        """Return outcomes as decisions, with labels; and with what was bought, if the design is given."""
        label = np.ma.MaskedArray(self._labels(found.code), mask=~found.conclusive)
        decisions = Decisions(label, found.conclusive, found.confidence, found.stage, found.cost, table.index)
        if branched is not None:
            sets, starts = branched.sets
            return replace(decisions, sets=sets, set_of=starts[found.branch] + found.stage, branch=found.branch)
        return decisions if design is None else replace(decisions, sets=acquired_sets(design[None])[0][0])

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
        if self.branched is not None:
            return self.tree.probabilities(table, range(self.n_columns))
        return np.ascontiguousarray(self.cascade.probabilities(table, range(self.n_columns), self.rule)[0])

    def row_errors(self, table: Table) -> ErrorPrices | None:
        """Return the prices of errors of all rows of a table with all columns, in the training order."""
        cascade = self.cascade if self.branched is None else self.tree.chains[0]
        return cascade.row_errors(table, range(self.n_columns))

    @cached_property
    def itinerary(self) -> Itinerary:
        """What all sessions of the design in use share."""
        savings = self.savings[self.point] if self.savings else ()
        shared = (self.prices, self.classes, self.errors)
        if self.branched is None:
            return Itinerary(self.encoder, self.stages, self.paid, *shared, savings)
        starts = np.cumsum([0, *(len(chain.stages) for chain in self.tree.chains)])
        ways = [
            Itinerary(self.encoder, chain.stages, chain.paid, *shared, savings[starts[b] : starts[b + 1]], branch=b)
            for b, chain in enumerate(self.tree.chains)
        ]
        return Crossroads(self.branched, ways, self.encoder)

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
        stage = np.array([decision.stage for decision in decided], dtype=np.intp)
        bought: dict[str, Any] = {"sets": acquired_sets(self.design[None])[0][0]}
        if self.branched is not None:
            branch = np.array([decision.branch for decision in decided], dtype=np.intp)
            sets, starts = self.branched.sets
            bought = {"sets": sets, "set_of": starts[branch] + stage, "branch": branch}
        return Decisions(
            label=np.ma.MaskedArray(self.classes.take(np.array(code, dtype=np.intp)), mask=~conclusive),
            conclusive=conclusive,
            confidence=np.array([decision.confidence for decision in decided], dtype=np.float64),
            stage=stage,
            cost=np.array([decision.cost for decision in decided], dtype=np.float64),
            **bought,
        )

    def evaluate(self, X: Any, y: ArrayLike) -> Evaluation:
        """Judge every point on rows that neither training nor search saw, and buying everything."""
        return evaluate(self, X, y)

    def promise_loss(self, X: Any, y: ArrayLike, *, at_most: float, confidence: float) -> LossPromise:
        """Say of which points errors cost at most so much on new rows; see ``EMSCOClassifier.promise_loss``."""
        return promise_loss(self, X, y, at_most=at_most, confidence=confidence)

    def shortages(self) -> list[str]:
        """Say what cannot be promised of the design in use, and what is missing."""
        return [] if self.promise is None else self.promise.shortages()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("cascade", "tree", "itinerary")}


def the_front(deployed: Deployed) -> Front:
    """Return the front of a searched design; of a given one there is none."""
    if deployed.front is None:
        raise InvalidInputError(f"{deployed.origin.kind} has no front: its design was given.")
    return deployed.front
