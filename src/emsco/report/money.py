"""Money per case of the design in use, beside buying everything and buying nothing."""

from typing import Any

from emsco.deployed.evaluation import Evaluation
from emsco.deployed.model import Deployed
from emsco.deployed.money import Money, always_money, best_constant, money_of


def validation_money(model: Deployed) -> dict[str, Money] | None:
    """Return the money per case on the validation rows; None if errors have no prices, or there is no front."""
    front, errors, i = model.front, model.errors, model.point
    if front is None or errors is None or front.confusion is None or errors.at_risk is not None:
        return None
    counts = front.confusion[i].sum(axis=1)
    best = best_constant(counts, errors)
    return {
        "the design in use": money_of(front.confusion[i], errors, front.left[i], front.paid[i]),
        f'buy nothing, always "{front.classes[best]}"': always_money(counts, errors, best),
    }


def money_record(model: Deployed, evaluation: Evaluation | None) -> list[dict[str, Any]] | None:
    """Return money per case as records: on the test rows if there are any, else on the validation rows."""
    if evaluation is not None and model.errors is not None:
        money: dict[str, Money] | None = evaluation.money
    else:
        money = validation_money(model)
    return None if money is None else [{"name": name, **each.to_dict()} for name, each in money.items()]
