"""A model as JSON: what a client must know to ask it."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from emsco.data.encoding import CategoryCode, ColumnCode, CurveCode, NumberCode
from emsco.deployed.model import Deployed
from emsco.scoring.rejection import NEVER
from emsco.scoring.thresholds import rule_words
from emsco.service.shelf import Served

_MOST_CATEGORIES = 500
_ROUNDING = 1e-9


def describe(served: Served) -> dict[str, Any]:
    """Return classes, features with types and prices, stages, thresholds and the front of a model."""
    model = served.model
    labels = [str(label) for label in served.classes]
    n_stages = len(model.stages)
    return {
        "name": served.name,
        "version": served.version,
        "kind": model.origin.kind,
        "loaded_at": served.loaded_at,
        "classes": served.classes,
        "first_stage": 0,  # stages are numbered from 0 in JSON, and from 1 on pages, in metrics and in files
        "errors": _error_prices(model),
        "features": [_feature(model, u) for u in range(model.prices.n_units)],
        "price_of_everything": model.prices.total,
        "price_rule": model.prices.rule,
        "stages": [
            {
                "features": stage.features,
                "columns": [model.column_names[c] for c in stage.new_columns],
                "price": stage.price,
                "paid": served.paid[j],
                "thresholds": _bars(model, j),
            }
            for j, stage in enumerate(model.stages)
        ],
        "rule": rule_words(model.rule, n_stages, labels),
        "promise": served.promise,
        "front": _front(model),
        "notes": model.notes,
    }


def _error_prices(model: Deployed) -> dict[str, Any] | None:
    """Return what wrong labels cost, a row per true class; None if labels are judged by their probability."""
    if model.errors is None:
        return None
    return {"prices": model.errors.matrix, "no_answer": model.errors.no_answer, "largest": model.errors.largest}


def _feature(model: Deployed, u: int) -> dict[str, Any]:
    """Return a purchase: its price, its stage (None: never bought) and the columns that it yields."""
    prices = model.prices
    group = next((prices.group_names[g] for g in np.flatnonzero(prices.groups[u])), None)
    stage = int(model.design[u])
    return {
        "name": prices.unit_names[u],
        "price": float(prices.prices[u]),
        "group": group,
        "price_in_group": None if group is None else float(prices.own_prices[u]),
        "stage": None if stage < 0 else stage,
        "columns": [_column(model.encoder.codes[c], model.notes) for c in prices.unit_columns[u]],
    }


def _column(code: ColumnCode, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a column is to be asked for."""
    record: dict[str, Any] = {"name": code.name, **_said(notes, code.name)}
    if isinstance(code, CategoryCode):
        known = sorted(category for category in {*code.categories, *code.rare} if category is not None)
        return {**record, "type": "category", "categories": known[:_MOST_CATEGORIES], "n_categories": len(known)}
    record["type"] = "number"
    if isinstance(code, CurveCode):  # the first and the last knot are the least and the largest value of training
        whole = all(float(knot).is_integer() for knot in code.knots)
        return {**record, "range": [code.knots[0], code.knots[-1]], "usual": None, "whole": whole}
    if _is_flag(code):
        return {**record, "range": [0.0, 1.0], "usual": None, "whole": True}
    return {**record, "range": None, "usual": _usual(code), "whole": False}


def _is_flag(code: NumberCode) -> bool:
    """Return whether all values of training were 0 or 1: no others between these have so large a variance."""
    if not 0 < code.mean < 1 or not code.inverse_scale:
        return False
    return abs(code.mean * (1 - code.mean) * code.inverse_scale**2 - 1) < _ROUNDING


def _usual(code: NumberCode) -> list[float] | None:
    """Return where most values of training are: two standard deviations around the mean.

    If one deviation below the mean is still above 0, the values probably are, too, and have a long tail.
    """
    deviation = 1 / code.inverse_scale if code.inverse_scale else 0.0
    low = code.mean - 2 * deviation
    ends = [0.0 if low < 0 < code.mean - deviation else low, code.mean + 2 * deviation]
    return [float(f"{end:.3g}") for end in ends] if all(map(isfinite, ends)) else None


def _said(notes: Mapping[str, Any], column: str) -> dict[str, str | None]:
    """Return the unit and the description of a column, if the notes of the model have them.

    The notes may have ``{"columns": {"serum_sodium": {"unit": "mmol/l", "description": "..."}}}``.
    """
    columns = notes.get("columns") if isinstance(notes, Mapping) else None
    said = columns.get(column) if isinstance(columns, Mapping) else None
    found = said if isinstance(said, Mapping) else {}
    return {key: found[key] if isinstance(found.get(key), str) else None for key in ("unit", "description")}


def _bars(model: Deployed, stage: int) -> list[float | None]:
    """Return the confidence that each class needs at a stage; None: none is enough."""
    bars = [model.rule.bar(stage, code) for code in range(len(model.classes))]
    return [None if bar >= NEVER else bar for bar in bars]


def _front(model: Deployed) -> dict[str, Any] | None:
    """Return the figures of the points on the rows that judged them; None if the design was given."""
    front = model.front
    if front is None:
        return None
    n_stages = (model.designs.max(axis=1) + 1).tolist()
    figures = zip(front.coverage.tolist(), front.accuracy.tolist(), front.mean_cost.tolist(), n_stages, strict=True)
    return {
        "in_use": model.point,
        "rows": front.n_samples,
        "points": [
            {"coverage": coverage, "accuracy": accuracy if isfinite(accuracy) else None, "mean_cost": cost, "stages": n}
            for coverage, accuracy, cost, n in figures
        ],
    }
