"""Session: one input, one purchase at a time (Acquire | Accept | Reject), with the answers ``decide`` gives.

A session is a function of the values it was given: it holds no clock, no randomness and no connection, so what it was
given is all that has to be kept to continue it in another process.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from reprlib import repr as shorten
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import FloatArray
from emsco.data.encoding import ColumnCode, Encoder, NumberCode
from emsco.data.labels import plain_classes
from emsco.deployed.cells import Cell, read_number, read_text
from emsco.deployed.decide import Stage
from emsco.deployed.fingerprints import recipe, weights
from emsco.deployed.savings import Saving
from emsco.exceptions import InvalidInputError, SessionError
from emsco.markup import facts_sheet
from emsco.prices.errors import ErrorPrices
from emsco.prices.prices import PriceList
from emsco.scoring.rejection import RejectRule
from emsco.stages import _logistic as kernel
from emsco.stages.base import StageModel, outcomes_of
from emsco.stages.logistic import LogisticModel

_VERSION = 1


@dataclass(frozen=True, slots=True, repr=False)
class Acquire:
    """Buy this, then ``give`` the values.

    Attributes
    ----------
    features : tuple of str
        Units to buy now: those of the stage that still have columns to be given.
    columns : tuple of str
        Columns whose values are wanted.
    price : float
        Of the stage, whatever part of it was given before.
    stage : int
        The stage, from 0.
    saves : float or None
        Where errors have prices, what buying saves on average: the price of stopping now, less the money for later
        tests and errors after buying. It is the mean of rows that look alike and did not train. None if unknown.
    """

    features: tuple[str, ...]
    columns: tuple[str, ...]
    price: float
    stage: int
    saves: float | None = None

    def __repr__(self) -> str:
        saves = "" if self.saves is None else f", saves={self.saves:.4g}"
        return (
            f"Acquire(features={self.features!r}, columns={self.columns!r}, price={self.price!r}, "
            f"stage={self.stage!r}{saves})"
        )


@dataclass(frozen=True, slots=True)
class Accept:
    """A label, confident enough.

    Attributes
    ----------
    label : str, int, float or bool
        The class, as plain Python.
    confidence : float
        Its probability.
    cost : float
        Price of all stages reached.
    stage : int
        The stage that was confident, from 0.
    branch : int or None
        The branch that the case follows, from 0; None if the design does not branch.
    """

    label: Any
    confidence: float
    cost: float
    stage: int
    branch: int | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Reject:
    """No label: the last stage is not confident either.

    Attributes
    ----------
    confidence : float
        Top class probability of the last stage, below the threshold.
    cost : float
        Price of all stages.
    stage : int
        The last stage, from 0.
    best_guess : str, int, float or bool
        The class that has the top probability, for whoever decides now.
    branch : int or None
        The branch that the case follows, from 0; None if the design does not branch.
    """

    confidence: float
    cost: float
    stage: int
    best_guess: Any
    branch: int | None = field(default=None, repr=False)


Decision: TypeAlias = Accept | Reject


class Session:
    """One input on its way through the stages; made by ``session()`` of a fitted classifier.

    Ask ``step()`` what to do; if it says ``Acquire``, buy that and ``give`` the values. The answers are those of
    ``decide``, to the bit. The classifier may deploy another point or threshold meanwhile: a session keeps its own.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from emsco import MultiStageClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = MultiStageClassifier(design=[0, 0, 1, 1], costs=[1, 1, 5, 5], threshold=0.8).fit(X, y)
    >>> session = clf.session()
    >>> session.step()
    Acquire(features=('x0', 'x1'), columns=('x0', 'x1'), price=2.0, stage=0)
    >>> session.give({"x0": 6.1, "x1": 2.9})
    >>> session.step()
    Acquire(features=('x2', 'x3'), columns=('x2', 'x3'), price=10.0, stage=1)
    >>> session.give({"x2": 4.7, "x3": None})
    >>> session.step().label
    1
    """

    __slots__ = ("_answer", "_encoded", "_given", "_itinerary", "_rule", "_stage", "_sure", "_way")

    def __init__(self, itinerary: "Itinerary", rule: RejectRule) -> None:
        self._itinerary = self._way = itinerary  # the way is that of the branch, as soon as it is known
        self._rule = rule
        self._stage = 0
        self._sure: float | None = None  # the confidence of the stage before
        self._given: dict[str, Cell] = {}
        self._encoded = [0.0] * itinerary.n_encoded
        if itinerary.first is None:  # nothing is bought: decided at once
            self._go_on({})
        else:
            self._answer: Acquire | Decision = itinerary.first

    def __repr__(self) -> str:
        return f"<Session at stage {self._stage + 1} of {self._way.n_stages}: {self._answer}>"

    def _repr_html_(self) -> str:
        match self._answer:
            case Acquire(features, columns, price, stage, saves):
                facts = {"buy now": ", ".join(features), "give": ", ".join(columns), "price": f"{price:,.6g}"}
                if saves is not None:
                    facts["saves on average"] = f"{saves:,.4g}"
            case Accept(label, confidence, cost, stage):
                facts = {"label": str(label), "confidence": f"{confidence:.3f}", "paid": f"{cost:,.6g}"}
            case Reject(confidence, cost, stage, best_guess):
                guess = f"none; best guess {best_guess}"
                facts = {"label": guess, "confidence": f"{confidence:.3f}", "paid": f"{cost:,.6g}"}
        given = ", ".join(f"{name} = {'missing' if value is None else value}" for name, value in self._given.items())
        title = f"Session at stage {stage + 1} of {self._way.n_stages}"
        return facts_sheet({**facts, "given": given or "nothing yet"}.items()).to_html(title)

    def step(self) -> Acquire | Decision:
        """Return what to do now; the same until values are given.

        Returns
        -------
        Acquire, Accept or Reject
        """
        return self._answer

    def give(self, values: Mapping[str, Any]) -> None:
        """Hand over values of columns; a call that raises has changed nothing.

        Values of the stage may come in several calls. Values of later stages are kept until those are reached; their
        price is charged then all the same. A value may be replaced until its stage is complete. Values of columns that
        the design never buys are passed over.

        Parameters
        ----------
        values : mapping of str to number, text or None
            By column name (``x0``, ``x1``, ... if the training table had no names). None, NaN or pandas' NA: it could
            not be obtained. That is treated as a missing cell, and paid for.

        Raises
        ------
        InvalidInputError
            There is no such column, or the value is not of its kind.
        SessionError
            The session is decided, or the column was used by a stage before.
        """
        if not isinstance(self._answer, Acquire):
            raise SessionError("the session is decided and takes no more values; begin another.")
        if not hasattr(values, "items"):
            raise InvalidInputError(f"give wants a mapping of column name to value; got {shorten(values)}.")
        given = self._given.copy()
        for name, value in values.items():
            column = self._way.columns.get(name) or self._way.find(name)
            if column is None:
                continue
            if column.stage < self._stage:
                raise SessionError(
                    f"{name!r} was given before and stage {column.stage + 1} has used it; begin another session."
                )
            given[column.name] = column.read(value)
        self._go_on(given)

    def _go_on(self, given: dict[str, Cell]) -> None:
        """Walk as far as the given values reach."""
        way, rule, stage, encoded, sure = self._way, self._rule, self._stage, self._encoded, self._sure
        while not (wanted := way.stages[stage].wanted(given)):
            if (taken := way.fork(given)) is not None:
                way, rule = taken
            here = way.stages[stage]
            encoded = encoded.copy()
            for column in here.columns:
                column.encode(given, encoded)
            errors = way.errors_of(given)
            confidence, code = here.outcome(encoded, errors)
            if confidence >= rule.bar(stage, code):
                answer: Acquire | Decision
                if code < len(way.classes):
                    answer = Accept(way.classes[code], confidence, here.paid, stage, way.branch)
                else:  # no answer is cheapest
                    guess = way.classes[here.guess(encoded, errors)]
                    answer = Reject(confidence, here.paid, stage, guess, way.branch)
                break
            if here is way.stages[-1]:
                answer = Reject(confidence, here.paid, stage, way.classes[code], way.branch)
                break
            stage, sure = stage + 1, confidence
        else:
            answer = way.stages[stage].ask(wanted, way.saves(stage, sure))
        # Nothing is kept before everything is computed: an estimator that raises leaves the session as it was.
        self._stage, self._encoded, self._given, self._answer = stage, encoded, given, answer
        self._sure, self._way, self._rule = sure, way, rule

    @property
    def branch(self) -> int | None:
        """The branch that the case follows, from 0; None before it is known, and if the design does not branch."""
        return self._way.branch

    @property
    def state(self) -> dict[str, Any]:
        """Everything needed to continue elsewhere with ``clf.session(state)``: plain values that JSON can hold.

        ``given`` has the values, ``classifier`` the fingerprint of design, prices, threshold and trained models; the
        rest follows from these: ``stage``, from 0, ``cost`` paid so far, and whether the session is ``decided``.
        """
        decided = not isinstance(self._answer, Acquire)
        n_paid = self._stage + decided
        return {
            "version": _VERSION,
            "classifier": self._itinerary.fingerprint(self._rule),
            "stage": self._stage,
            "decided": decided,
            "cost": self._way.stages[n_paid - 1].paid if n_paid else 0.0,
            "given": dict(self._given),
        }


def continue_session(itinerary: "Itinerary", rule: RejectRule, state: Any) -> Session:
    """Return the session whose ``state`` this is.

    Raises
    ------
    SessionError
        It is none, or one of another classifier.
    """
    session = Session(itinerary, rule)
    wanted = session.state
    version = state.get("version", _VERSION) if isinstance(state, Mapping) else _VERSION
    if version != _VERSION:
        raise SessionError(f"the state is of version {shorten(version)}; this release reads version {_VERSION}.")
    if not isinstance(state, Mapping) or state.keys() != wanted.keys() or not isinstance(state["given"], Mapping):
        raise SessionError(
            f"a session is continued from its state, a mapping of {', '.join(wanted)}; got {shorten(state)}."
        )
    if state["classifier"] != wanted["classifier"]:
        raise SessionError(
            f"the state is of the classifier {shorten(state['classifier'])}, this one is {wanted['classifier']!r}: "
            "another design, threshold, price list or training. Use the one it was begun with, or begin anew."
        )
    try:
        session.give(state["given"])
    except InvalidInputError as error:
        raise SessionError(f"the state has been damaged: {error}") from error
    if any(state[name] != session.state[name] for name in ("stage", "decided", "cost")):
        raise SessionError("the state has been damaged: its stage and cost do not follow from the values given.")
    return session


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the training table, for one value at a time."""

    name: str
    unit: str
    stage: int
    code: ColumnCode
    start: int  # its first encoded column

    def encode(self, given: Mapping[str, Cell], encoded: list[float]) -> None:
        """Write the value that was given into the encoded columns."""
        self.code.encode_one(given[self.name], encoded, self.start)  # type: ignore[arg-type]

    def read(self, value: Any) -> Cell:
        """Return a value as it is kept, or say why it cannot be."""
        return read_number(value, self.code) if isinstance(self.code, NumberCode) else read_text(value, self.code)


@dataclass(frozen=True, slots=True)
class _Stop:
    """One stage of an itinerary."""

    columns: tuple[_Column, ...]
    price: float
    paid: float  # by whoever has reached it
    model: StageModel
    seen: NDArray[np.int64]

    def wanted(self, given: Mapping[str, Cell]) -> tuple[_Column, ...]:
        """Return the columns that were not given yet."""
        return tuple([column for column in self.columns if column.name not in given])

    def ask(self, wanted: tuple[_Column, ...], saves: float | None) -> Acquire:
        """Ask for columns of this stage."""
        features = tuple(dict.fromkeys(column.unit for column in wanted))
        return Acquire(features, tuple(column.name for column in wanted), self.price, wanted[0].stage, saves)

    def guess(self, encoded: list[float], errors: ErrorPrices | None) -> int:
        """Return the label of least expected price, where no answer is cheaper."""
        assert errors is not None
        Z = np.array(encoded)[:, None]
        return int(errors.guess(np.asarray(self.model.predict_proba(Z[self.seen].T), dtype=np.float64))[0])

    def outcome(self, encoded: list[float], errors: ErrorPrices | None) -> tuple[float, int]:
        """Return confidence and class index, with the bits that ``decide`` gives one row."""
        Z = np.array(encoded)[:, None]
        if isinstance(self.model, LogisticModel) and errors is None:
            answers = kernel.predict(Z, self.seen, self.model.coef_, self.model.intercept_)
            probabilities: list[float] = answers[:, 0].tolist()
            top = max(probabilities)
            return top, probabilities.index(top)
        confidence, code = outcomes_of(np.asarray(self.model.predict_proba(Z[self.seen].T), dtype=np.float64), errors)
        return float(confidence[0]), int(code[0])


class Itinerary:
    """What all sessions of one deployed design share, computed once.

    Parameters
    ----------
    encoder : Encoder
    stages : sequence of Stage
    paid : ndarray of shape (n_stages,)
        What has been paid by the end of each stage.
    prices : PriceList
    classes : ndarray of shape (n_classes,)
    errors : ErrorPrices or None
        If errors have prices, a stage gives the label of least expected price, or no answer.
    savings : tuple of Saving
        What buying each stage saves, if that is known.

    Attributes
    ----------
    stages : tuple of stops
    first : Acquire or None
        What every session begins with; None if the design buys nothing.
    columns : dict of str to column
        Those that the design buys.
    classes : list
        As plain Python.
    n_encoded : int
    n_stages : int
    branch : int or None
        The branch of a design whose chain this is.
    """

    def __init__(
        self,
        encoder: Encoder,
        stages: Sequence[Stage],
        paid: FloatArray,
        prices: PriceList,
        classes: NDArray[Any],
        errors: ErrorPrices | None = None,
        savings: tuple[Saving, ...] = (),
        branch: int | None = None,
    ) -> None:
        self.branch, self.n_stages = branch, len(stages)
        units = {c: name for name, columns in zip(prices.unit_names, prices.unit_columns, strict=True) for c in columns}
        codes, starts = encoder.codes, encoder.starts.tolist()
        self.n_encoded = encoder.n_encoded
        self.classes = plain_classes(classes)
        self._amount = None if errors is None or errors.at_risk is None else errors.at_risk.column
        first = [c for c, code in enumerate(codes) if code.name == self._amount]  # what prices depend on, before all
        bought = [[*first, *(c for c in stages[0].new_columns if c not in first)]]
        bought += [[c for c in stage.new_columns if c not in first] for stage in stages[1:]]
        self.stages = tuple(
            _Stop(
                tuple(_Column(codes[c].name, units[c], j, codes[c], starts[c]) for c in bought[j]),
                stage.price,
                total,
                stage.model,
                stage.encoded_columns,
            )
            for j, (stage, total) in enumerate(zip(stages, paid.tolist(), strict=True))
        )
        self.errors = errors
        self._savings = savings
        begin = self.stages[0]
        self.first = begin.ask(begin.columns, self.saves(0, None)) if begin.columns else None
        self.columns = {column.name: column for stage in self.stages for column in stage.columns}
        self._never = {code.name for code in codes} - self.columns.keys()

    def fork(self, given: Mapping[str, Cell]) -> "tuple[Itinerary, RejectRule] | None":
        """Return the chain of the branch that a case follows, and its rule, now that the root's values are there.

        None: there is nothing to choose any more.
        """
        return None

    def errors_of(self, given: Mapping[str, Cell]) -> ErrorPrices | None:
        """Return the prices of errors of a case, by the amount at risk if they depend on one."""
        if self._amount is None or self.errors is None:
            return self.errors
        amount = given[self._amount]
        if not isinstance(amount, float) or amount < 0:
            raise InvalidInputError(
                f"{self._amount!r} is the amount that prices of errors depend on; give a number of at least 0, got "
                f"{amount!r}."
            )
        return self.errors.at(np.array([amount]))

    def saves(self, stage: int, sure: float | None) -> float | None:
        """Return what buying a stage saves on average, by the confidence of the stage before."""
        if not self._savings or self.errors is None:
            return None
        return self._savings[stage].at(0.0 if sure is None else float(self.errors.expected(sure)))

    def find(self, name: Any) -> _Column | None:
        """Return the column of a name that is no key: a number turned into text, as tables do, or an error.

        None is a column that the design never buys.
        """
        if (column := self.columns.get(str(name))) is not None or str(name) in self._never:
            return column
        inside = [column.name for column in self.columns.values() if column.unit == name]
        if inside:
            raise InvalidInputError(f"{name!r} is what is bought; give the values of its columns {inside}.")
        close = get_close_matches(str(name), self.columns, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"columns: {shorten(list(self.columns))}."
        raise InvalidInputError(f"there is no column {shorten(name)}; {hint}")

    def fingerprint(self, rule: RejectRule) -> str:
        """Return 16 digits that tell deployed classifiers apart, the same in every process."""
        return sha256(self._digest + rule.key.encode()).hexdigest()[:16]

    @cached_property
    def _digest(self) -> bytes:
        digest = sha256(ascii(self.classes).encode())
        for stage in self.stages:
            columns = [(column.unit, column.start, recipe(column.code)) for column in stage.columns]
            digest.update(ascii((stage.price, stage.paid, columns)).encode())
            digest.update(weights(stage.model, stage.seen.size).astype("<f8").tobytes())
        return digest.digest()
