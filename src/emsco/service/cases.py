"""One case, question by question, with nothing kept between two questions."""

from collections.abc import Mapping
from typing import Any

from emsco.data.encoding import CategoryCode
from emsco.deployed.explain import Explanation, explain
from emsco.deployed.session import Accept, Acquire, Reject, Session
from emsco.exceptions import EmscoError, SessionError, shown
from emsco.service.bodies import check_number, check_texts
from emsco.service.problems import ProblemError
from emsco.service.settings import Limits
from emsco.service.shapes import NextQuestion
from emsco.service.shelf import Served


def known_values(served: Served, question: NextQuestion, limits: Limits) -> dict[str, Any]:
    """Return what is known of a case, by column, None for what could not be obtained."""
    values, unavailable = question.values, question.unavailable
    check_number(len(values) + len(unavailable), limits.columns, "values")
    check_texts(values.values(), limits, "a value")
    if not unavailable:
        return values
    missing = [column for name in unavailable for column in _columns_of(served, name)]
    twice = sorted(column for column in missing if values.get(column) is not None)
    if twice:
        found = [{"field": f"values.{column}", "detail": "unavailable has it, too"} for column in twice]
        raise ProblemError(
            422, f"values and unavailable both have {', '.join(twice)}; give each column once.", errors=found
        )
    return {**values, **dict.fromkeys(missing)}


def _columns_of(served: Served, name: str) -> list[str]:
    """Return the columns of a feature; a column is one by itself, and an unknown name is left to the session."""
    return [name] if name in served.columns else served.units.get(name, [name])


def walk(served: Served, values: Mapping[str, Any]) -> Session:
    """Return the session of a case after all that is known of it."""
    unknown = [name for name in values if name not in served.columns]
    session = served.model.session()
    try:
        if not isinstance(session.step(), Acquire):  # nothing is bought: decided before any value
            if unknown:
                raise SessionError(f"there is no column {shown(unknown[0])}.")
        elif values:
            session.give(values)
    except EmscoError as error:
        if not unknown:
            raise
        found = [{"field": f"values.{name[:100]}", "detail": "the model has no such column"} for name in unknown[:20]]
        raise ProblemError(422, str(error), errors=found) from None
    return session


def answer_of(served: Served, session: Session, *, explained: bool, decision_id: str | None) -> dict[str, Any]:
    """Return what to do now: buy something, or take the decision."""
    answer: dict[str, Any] = {"model": served.name, "version": served.version}
    match session.step():
        case Acquire(features, columns, price, stage, saves):
            answer["acquire"] = {
                "features": features,
                "columns": columns,
                "price": price,
                "stage": stage,
                "stages": len(served.paid),
                "paid": served.paid[stage - 1] if stage else 0.0,
                **({} if saves is None else {"saves": saves}),
            }
        case Accept(label, confidence, cost, stage):
            answer["decision"] = _decision(served, label, label, confidence, stage, cost, decision_id)
        case Reject(confidence, cost, stage, best_guess):
            answer["decision"] = _decision(served, None, best_guess, confidence, stage, cost, decision_id)
    unseen = unseen_columns(served, session.state["given"])
    if unseen:
        answer["unseen"] = unseen
    if explained:
        answer["explanation"] = explanation_record(explain(served.model, session))
    return answer


def unseen_columns(served: Served, given: Mapping[str, Any]) -> list[str]:
    """Return the columns whose value is a category that training did not have."""
    return [
        code.name
        for codes in served.codes_by_stage
        for code in codes
        if isinstance(code, CategoryCode)
        and (value := given.get(code.name)) is not None
        and value not in code.positions
    ]


def _decision(
    served: Served, label: Any, best_guess: Any, confidence: float, stage: int, cost: float, decision_id: str | None
) -> dict[str, Any]:
    record = {
        "label": label,
        "best_guess": best_guess,
        "confidence": confidence,
        "stage": stage,
        "cost": cost,
        "promise": served.promise,
    }
    if served.model.errors is not None:
        record["expected_price"] = float(served.model.errors.expected(confidence))
    return record if decision_id is None else {**record, "id": decision_id}


def explanation_record(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON values."""
    others = [{"label": label, "probability": share} for label, share in explanation.probabilities]
    return {
        "stages": [vars(passed) for passed in explanation.passed],
        "probabilities": others,
        "runner_up": others[1] if others else None,
        "features": [vars(contribution) for contribution in explanation.contributions],
    }
