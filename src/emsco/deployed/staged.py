"""What both classifiers do once their stages are trained: decide, judge, save, draw, and go step by step."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any
import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from emsco.arrays import IntArray
from emsco.checks import check_n_jobs
from emsco.data.encoding import Encoder
from emsco.data.labels import plain_labels
from emsco.data.table import Table, check_size
from emsco.deployed.decide import Decisions, Stage, TrainedCascade
from emsco.deployed.evaluation import Evaluation, Result, check_truth, judge
from emsco.deployed.running import check_no_loop, check_run, is_async, run_in_loop, run_in_threads
from emsco.deployed.session import Accept, Acquire, Plan, Reject, Session, continue_session, plain_classes
from emsco.designs.partition import acquired_sets, set_key
from emsco.exceptions import GuaranteeWarning, InvalidInputError, InvalidParameterError
from emsco.prices.prices import PriceList
from emsco.promises.guarantee import Guarantee, Promise
from emsco.promises.thresholds import is_auto, rule_of, searched_with
from emsco.scoring.answers import Answers
from emsco.scoring.rejection import RejectRule, Threshold, as_rule, resolve_rule
from emsco.stages.base import StageModel, outcomes_of

if TYPE_CHECKING:
    from emsco.report.plots import StagesDisplay

_MOST_ANSWERS = 2**24  # of feature sets on rows, remembered together


class StagedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """What both classifiers do once they have trained stages."""

    threshold: Any
    n_jobs: int | None
    classes_: NDArray[Any]
    n_features_in_: int
    design_: IntArray
    stages_: list[Stage]
    _encoder: Encoder
    _prices: PriceList
    _named: bool
    _cascade: TrainedCascade
    _paid: NDArray[np.float64]
    _plan: Plan | None = None  # of sessions of the deployed design; made when the first one begins
    _promises: tuple[Promise, ...] = ()  # of each design, if the threshold is a Guarantee
    _models: dict[bytes, StageModel]  # of each set of units that a design needs; the set of all is always there

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        return tags

    def decide(self, X: Any) -> Decisions:
        """Decide each row with as few purchases as its design allows, or reject it.

        A cell is read only if its row has paid for it: unbought cells may hold anything, and a column that no waiting
        row needs, or the design never buys, may be absent. Columns of a DataFrame are matched by name.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)

        Returns
        -------
        Decisions
        """
        check_is_fitted(self)
        decisions = self._decide(Table(X), self._cascade, self._paid, self._rule())
        return replace(decisions, sets=acquired_sets(self.design_[None])[0][0])

    def _decide(
        self, table: Table, cascade: TrainedCascade, paid: NDArray[np.float64], threshold: Threshold
    ) -> Decisions:
        rule = as_rule(threshold)
        confidence, code, stage = self._outcomes(table, cascade, rule)
        conclusive = rule.confident(confidence, code, stage)
        label = np.ma.MaskedArray(self.classes_.take(code), mask=~conclusive)
        return Decisions(label, conclusive, confidence, stage, paid.take(stage), table.index)

    def _outcomes(
        self, table: Table, cascade: TrainedCascade, rule: RejectRule
    ) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.intp]]:
        """Return confidence, class index and exit stage of each row, columns matched by name where there are names."""
        column_of: list[int | None]
        if table.named and self._named:
            position = {name: i for i, name in enumerate(table.names)}
            column_of = [position.get(code.name) for code in self._encoder.codes]
        elif len(table.names) == self.n_features_in_:
            column_of = list(range(self.n_features_in_))
        else:
            raise InvalidInputError(
                f"X has {len(table.names)} columns, but {type(self).__name__} was fitted on {self.n_features_in_}; "
                "without column names on both, give all of them, in the same order."
            )
        n_jobs = 1 if self.n_jobs is None else check_n_jobs(self.n_jobs)
        return cascade.outcomes(table, column_of, rule, n_jobs=n_jobs)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the class probabilities of the stage where each row leaves, whether confident or not.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            All columns of the training table, in the same order.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        check_is_fitted(self)
        table = Table(X)
        check_size(table)
        self._check_names(X, reset=False)
        if isinstance(X, np.ndarray) and X.dtype.kind == "f" and np.isinf(X).any():
            raise InvalidInputError("X contains inf; replace it by a finite number, or by NaN if it is unknown.")
        everything = range(self.n_features_in_)
        return np.ascontiguousarray(self._cascade.probabilities(table, everything, self._rule())[0])

    def predict(self, X: Any) -> NDArray[Any]:
        """Return a class for every row; ``decide`` is the answer that may say nothing.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
            All columns of the training table, in the same order.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        codes = outcomes_of(self.predict_proba(X))[1]
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def session(self, state: Mapping[str, Any] | None = None) -> Session:
        """Begin to decide one input whose values are bought one stage at a time, or continue.

        Parameters
        ----------
        state : mapping, optional
            ``state`` of a session of the same classifier (design, threshold, training), in this process or another.

        Returns
        -------
        Session
        """
        plan, rule = self._deployed()
        return Session(plan, rule) if state is None else continue_session(plan, rule, state)

    def run(
        self,
        acquire: Callable[[Any, Acquire], Any],
        inputs: Iterable[Any],
        *,
        max_in_flight: int = 8,
        on_decision: Callable[[Any, Accept | Reject], object] | None = None,
    ) -> Decisions:
        """Decide many inputs at once by a callback that buys what each needs, and nothing else.

        Parameters
        ----------
        acquire : callable
            ``acquire(input, request)`` buys what an ``Acquire`` asks for and returns the values by column name, None
            for what could not be obtained. It is called once per input and stage that the input reaches: by threads,
            or if it is an async function, in an event loop.
        inputs : iterable
            Anything that tells ``acquire`` whom to buy for. No more are taken than are in flight.
        max_in_flight : int
            Most calls of ``acquire`` at the same time.
        on_decision : callable, optional
            ``on_decision(input, decision)`` is called here, by the caller's thread, as inputs are decided: to show
            progress, or to store what an interrupt must not lose.

        Returns
        -------
        Decisions
            In the order of the inputs, whatever the order of completion.

        Raises
        ------
        RunInterruptedError
            A call failed. No further call was started, and those in flight were awaited; the error holds what was
            decided, and its ``__cause__`` is the reason. Ctrl-C raises KeyboardInterrupt in the same way.
        """
        limit, begin = check_run(acquire, inputs, max_in_flight), partial(Session, *self._deployed())
        if not is_async(acquire):
            decided = run_in_threads(begin, acquire, inputs, max_in_flight=limit, on_decision=on_decision)
        else:
            check_no_loop()
            decided = asyncio.run(run_in_loop(begin, acquire, inputs, max_in_flight=limit, on_decision=on_decision))
        return self._gather(decided)

    async def run_async(
        self,
        acquire: Callable[[Any, Acquire], Awaitable[Any]],
        inputs: Iterable[Any],
        *,
        max_in_flight: int = 8,
        on_decision: Callable[[Any, Accept | Reject], object] | None = None,
    ) -> Decisions:
        """Do what ``run`` does, with an async callback, inside a running event loop.

        Parameters and result as of ``run``. Cancelling cancels the calls in flight.
        """
        limit, begin = check_run(acquire, inputs, max_in_flight), partial(Session, *self._deployed())
        return self._gather(await run_in_loop(begin, acquire, inputs, max_in_flight=limit, on_decision=on_decision))

    def evaluate(self, X: Any, y: ArrayLike) -> Evaluation:
        """Judge on rows that neither training nor search saw: every point of the front, and buying everything.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,)

        Returns
        -------
        Evaluation
            Counts, with figures and their confidence intervals.
        """
        check_is_fitted(self)
        table = Table(X)
        truth = check_truth(plain_labels(y), self.classes_, table.n_rows)
        # It is no design of the front: nothing is promised of it, and no thresholds were chosen with it.
        searched = searched_with(self.threshold)
        at_once_rule = self._rule() if searched is None else as_rule(searched)

        def result(design: IntArray, rule: RejectRule) -> Result:
            _, paid, cascade = self._build(design)
            decisions = self._decide(table, cascade, paid, rule)
            return judge(decisions, truth, self.classes_, paid.tolist())

        at_once = np.zeros(self._prices.n_units, dtype=np.int64)
        return Evaluation(
            points=tuple(result(design, self._rule(i)) for i, design in enumerate(self._designs())),
            everything=result(at_once, at_once_rule),
            always=result(at_once, as_rule(0.0)),
            classes=tuple(self.classes_.tolist()),
        )

    def save(self, path: str | PathLike[str], *, evaluation: Evaluation | None = None, notes: Any = None) -> None:
        """Write the classifier, every point of its front included, to a file that ``emsco.load`` reads.

        Parameters
        ----------
        path : str or path
            The file; one that is there is replaced, whole or not at all.
        evaluation : Evaluation or None
            What ``evaluate`` returned, to be kept with the model. None: that of the file it was loaded from, if any.
        notes : dict or None
            Anything that JSON can hold, such as where the data come from. None: those of the file it was loaded from.

        Raises
        ------
        ModelFileError
            The file cannot be written, or holds an estimator that could not be loaded again.
        """
        from emsco.storage.model_file import save

        save(self, path, evaluation=evaluation, notes=notes)

    def _deployed(self) -> tuple[Plan, RejectRule]:
        """Return all that a session needs of the classifier as it is now."""
        if not hasattr(self, "_cascade"):  # check_is_fitted itself takes longer than a session
            check_is_fitted(self)
        if self._plan is None:
            self._plan = Plan(self._encoder, self.stages_, self._paid, self._prices, self.classes_)
        return self._plan, self._rule()

    @property
    def guarantee_(self) -> Promise:
        """What is promised of the design in use, and how it was checked; only if the threshold is a ``Guarantee``."""
        if not isinstance(self.threshold, Guarantee) or not hasattr(self, "_cascade"):
            raise AttributeError("there is no guarantee_: nothing was promised; give threshold=Guarantee(...) and fit.")
        return self._promise()

    def _promise(self, point: int | None = None) -> Promise:
        if not self._promises or self._promises[0].guarantee != self.threshold:
            raise InvalidParameterError(
                f"the threshold was set to {self.threshold!r} after fit; a promise needs calibration: fit again."
            )
        return self._promises[getattr(self, "point_", 0) if point is None else point]

    def _rule(self, point: int | None = None) -> RejectRule:
        """Return when a design is confident enough: the one in use, or another by its number."""
        if isinstance(self.threshold, Guarantee):
            return self._promise(point).rule
        if is_auto(self.threshold):
            return self._own_rule(point)
        return resolve_rule(self.threshold, self.classes_)

    def _own_rule(self, point: int | None) -> RejectRule:
        """Return the thresholds that were chosen with a design."""
        front = getattr(self, "front_", None)
        if front is None or front.thresholds is None:
            raise InvalidParameterError("the threshold was set to 'auto' after fit; fit again to choose thresholds.")
        i = getattr(self, "point_", 0) if point is None else point
        exit_at, last_at = front.thresholds[i].tolist()
        return rule_of(exit_at, last_at, int(front.designs[i].max()) + 1)

    def _answering(self, encoded: NDArray[np.float64], truth: IntArray) -> Callable[[IntArray], Answers]:
        """Return a function of a design: what all its stages say of encoded rows; each model is asked once."""
        asked: dict[int, tuple[NDArray[np.float64], NDArray[np.uint8]]] = {}

        def answers(design: IntArray) -> Answers:
            if len(asked) * truth.size > _MOST_ANSWERS:
                asked.clear()
            stages = self._build(design)[0]
            for stage in stages:
                if id(stage.model) not in asked:
                    X = encoded[stage.encoded_columns].T
                    confidence, label = outcomes_of(np.asarray(stage.model.predict_proba(X), dtype=np.float64))
                    asked[id(stage.model)] = confidence, label.astype(np.uint8)
            confidences, labels = zip(*(asked[id(stage.model)] for stage in stages), strict=True)
            return Answers(np.array(confidences), np.array(labels), truth)

        return answers

    def _warn_of_shortage(self) -> None:
        """Warn if the promise of the design in use, or of one of its classes, cannot be made."""
        if not isinstance(self.threshold, Guarantee) or self._promise().passed:
            return
        promise = self._promise()
        for check in promise.checks:
            if not check.passed:
                what = "no label will be given" if check.label is None else f"the label {check.label!r} is never given"
                warnings.warn(
                    f"{what}: the calibration rows cannot support that {promise.guarantee} ({check.n_errors} of "
                    f"{check.n_rows} labels wrong). {promise.shortage(check)}",
                    GuaranteeWarning,
                    stacklevel=3,
                )

    def _gather(self, decided: Sequence[Accept | Reject]) -> Decisions:
        """Return decisions of single inputs as those of a table."""
        position = {label: code for code, label in enumerate(plain_classes(self.classes_))}
        code = [position[d.label if isinstance(d, Accept) else d.best_guess] for d in decided]
        conclusive = np.array([isinstance(d, Accept) for d in decided], dtype=np.bool_)
        return Decisions(
            label=np.ma.MaskedArray(self.classes_.take(np.array(code, dtype=np.intp)), mask=~conclusive),
            conclusive=conclusive,
            confidence=np.array([decision.confidence for decision in decided], dtype=np.float64),
            stage=np.array([decision.stage for decision in decided], dtype=np.intp),
            cost=np.array([decision.cost for decision in decided], dtype=np.float64),
            sets=acquired_sets(self.design_[None])[0][0],
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_plan"}

    def plot_stages(self, X: Any = None, y: ArrayLike | None = None, *, ax: Any = None) -> "StagesDisplay":
        """Draw how many inputs leave at each stage of the design in use, and what is paid; needs matplotlib.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_rows, n_columns), optional
            Rows to draw. None: the validation rows of the search.
        y : array-like of shape (n_rows,), optional
            Their labels, which split those who leave into right and wrong.
        ax : pair of Axes, or None
            Where. None: a new figure.

        Returns
        -------
        StagesDisplay
            With the axes as ``ax_`` and the figure as ``figure_``.
        """
        from emsco.report.plots import StagesDisplay

        return StagesDisplay.from_estimator(self, X, y, ax=ax)

    def export_onnx(self, folder: str | PathLike[str]) -> None:
        """Write the design in use as ONNX graphs, one per stage, and ``manifest.json``, which says how to walk them.

        The graphs take raw columns: numbers (NaN where missing) and text. Each was compared with this classifier on
        rows like those of training before anything is written.

        Parameters
        ----------
        folder : str or path
            Made if it is not there.

        Raises
        ------
        ExportError
            A stage's estimator cannot be converted, or its graph does not agree with it.
        """
        from emsco.deployed.export import export_onnx

        export_onnx(self, folder)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_cascade")

    def _read_table(self, X: Any) -> Table:
        """Check the training table and record its columns as scikit-learn does; what was fitted before is void."""
        for name in ("_cascade", "front_", "evaluation_", "notes_", "_promises"):
            self.__dict__.pop(name, None)
        table = Table(X)
        check_size(table)
        self._check_names(X, reset=True)
        return table

    def _check_names(self, X: Any, *, reset: bool) -> None:
        try:
            validate_data(self, X, reset=reset, skip_check_array=True)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(str(error)) from error

    def _deploy(self, design: IntArray) -> None:
        """Use a design whose stage models are trained."""
        self.design_ = design
        self._plan = None
        self.stages_, self._paid, self._cascade = self._build(design)

    def _designs(self) -> IntArray:
        """All designs that can be deployed, a row each."""
        return self.design_[None]

    def _build(self, design: IntArray) -> tuple[list[Stage], NDArray[np.float64], TrainedCascade]:
        """Return the stages of a design, what has been paid by the end of each, and the walk through them."""
        prices = self._prices
        stages = []
        sets = acquired_sets(design[None])[0][0]
        for j, units in enumerate(sets):
            new = np.flatnonzero(design == j)
            owned = [c for unit in np.flatnonzero(units) for c in prices.unit_columns[unit]]
            stages.append(
                Stage(
                    features=tuple(prices.unit_names[unit] for unit in new),
                    price=prices.price_of(design == j, (design >= 0) & (design < j)),
                    model=self._models[set_key(units)],
                    new_columns=tuple(c for unit in new for c in prices.unit_columns[unit]),
                    encoded_columns=self._encoder.positions(owned),
                )
            )
        return stages, prices.paid(sets), TrainedCascade(self._encoder, stages, n_classes=self.classes_.size)
