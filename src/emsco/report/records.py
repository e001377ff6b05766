"""Fitted classifiers and their results as plain records for scripts that read JSON."""

from dataclasses import asdict
import json
from typing import Any

from emsco.deployed.evaluation import Evaluation, Result, by_objectives
from emsco.deployed.model import Deployed, the_front
from emsco.report.learning import learning_record, timed_out_words
from emsco.report.outlook import outlook_record
from emsco.report.tree import tree_record
from emsco.scoring.front import Front
from emsco.scoring.rejection import NEVER
from emsco.scoring.words import never_bought


def print_json(value: Any) -> None:
    """Print a record as JSON."""
    print(json.dumps(_plain(value), indent=2, allow_nan=False))


def _plain(value: Any) -> Any:
    """Return a JSON value: Python numbers, and null for NaN."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and value != value else value


def summary_record(model: Deployed, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the results of a search: the point in use, the certificate, the figures on test rows."""
    front = the_front(model)
    certificate = front.certificate
    return {
        "points": len(front),
        "in_use": point_record(model, model.point),
        "search": model.search_name,
        "seconds": round(model.origin.search_seconds, 3),
        "timed_out": list(model.origin.timed_out),
        "learning": learning_record(model),
        "certificate": None if certificate is None else vars(certificate),
        "guarantee": None if model.promise is None else asdict(model.promise),
        "outlook": outlook_record(model, evaluation),
        "test": None if evaluation is None else results_record(model, evaluation),
    }


def point_record(model: Deployed, i: int) -> dict[str, Any]:
    """Return one point of the front: its figures on the validation rows, and its purchases."""
    front = the_front(model)
    point = front[i]
    names, tree = front.feature_names, tree_record(model, i)
    n_stages = int(point.design.max()) + 1
    stages = [[n for n, s in zip(names, point.design, strict=True) if s == j] for j in range(n_stages)]
    return {
        "point": i, "in_use": i == model.point, "coverage": point.coverage, "accuracy": point.accuracy,
        "mean_cost": point.mean_cost, **_by_class(front, i), "fitness": point.fitness, "ties": point.n_ties,
        "stages": stages, **({} if tree is None else {"tree": tree}), "never": never_bought(point.design, names),
        "objectives": dict(zip(front.objectives, point.values.tolist(), strict=True)),
        "thresholds": [[None if bar >= NEVER else bar for bar in row] for row in model.rules[i].bars],
    }  # fmt: skip


def _by_class(front: Front, i: int) -> dict[str, Any]:
    """Return figures of a point by class; files of older versions have none."""
    if front.confusion is None:
        return {"recall": None, "precision": None, "confusion": None}
    return {
        "recall": dict(zip(front.classes, front.recall[i].tolist(), strict=True)),
        "precision": dict(zip(front.classes, front.precision[i].tolist(), strict=True)),
        "confusion": front.confusion[i].tolist(),
    }


def results_record(model: Deployed, evaluation: Evaluation) -> dict[str, Any]:
    """Return the results of the point in use and of buying everything, with 95 % confidence intervals."""

    def record(result: Result) -> dict[str, Any]:
        figures = {
            figure: {"value": getattr(result, figure), "interval_95": list(result.interval(figure))}
            for figure in ("coverage", "accuracy", "mean_cost")
        }
        counts: dict[str, Any] = {"answered": result.answered, "right": result.right, "inconclusive": result.n_rejected}
        if result.branches:
            counts |= {"stages_of_branches": result.branches, "inconclusive_of_branches": result.silent}
        low, high = result.recall_interval()
        ends = zip(evaluation.classes, result.recall.tolist(), low.tolist(), high.tolist(), strict=True)
        by_class = {
            "recall": {label: {"value": share, "interval_95": [lower, upper]} for label, share, lower, upper in ends},
            "precision": dict(zip(evaluation.classes, result.precision.tolist(), strict=True)),
        }
        worth = {
            name: values[0] for name, values in by_objectives(model.objectives, [result], evaluation.classes).items()
        }
        return {**figures, **counts, **by_class, "confusion": result.confusion, "objectives": worth}

    return {
        "rows": evaluation.n_rows,
        "classes": list(evaluation.classes),
        "base_rate": evaluation.base_rate,
        **({} if evaluation.errors is None else {"money": {n: m.to_dict() for n, m in evaluation.money.items()}}),
        "in_use": record(evaluation.points[model.point]),
        "buy_everything": record(evaluation.everything),
        "buy_everything_always_answer": record(evaluation.always),
    }


def facts_record(model: Deployed) -> dict[str, Any]:
    """Return a description of a classifier: classes, prices, search, stages."""
    facts: dict[str, Any] = {
        "kind": model.origin.kind,
        "classes": model.classes.tolist(),
        "threshold": _threshold(model),
        "columns": model.n_columns,
        "stage classifier": type(model.stages[0].model).__name__,
        "learning": learning_record(model),
    }
    front = model.front
    if front is not None:
        facts["objectives"] = list(front.objectives)
        facts["front"] = f"{len(front)} points, point {model.point} in use"
        facts["search"] = f"{model.search_name}, {model.origin.search_seconds:.1f} s"
        if model.origin.timed_out:
            facts["timed out"] = timed_out_words(model)
        certificate = front.certificate
        if certificate is not None:
            facts["certificate"] = (
                f"{'proven' if certificate.proven else 'not proven'}: {certificate.n_designs:,} designs, "
                f"{certificate.n_walked:,} looked at, {certificate.n_ruled_out:,} ruled out"
            )
    facts["price model"] = model.prices.rule
    if model.promise is not None:
        facts["guarantee"] = str(model.promise)
    facts["prices"] = dict(zip(model.prices.unit_names, model.prices.prices.tolist(), strict=True))
    facts["stages"] = [{"buys": list(stage.features), "price": stage.price} for stage in model.stages]
    if model.branched is not None:
        evaluation = model.evaluation
        facts["stages"] = tree_record(model, model.point, None if evaluation is None else evaluation.in_use)
    if never := never_bought(model.design, model.prices.unit_names):
        facts["never"] = never
    if front is not None:
        facts["in use"] = point_record(model, model.point)
    if model.evaluation is not None:
        facts["test"] = results_record(model, model.evaluation)
    return facts


def _threshold(model: Deployed) -> float | str:
    """Return the threshold in use: a number, or a text with its origin if it was not given."""
    words = model.rule_words
    if model.policy.word:
        return f"{model.policy.word}: {words}"
    return words if model.rule.number is None or model.branched is not None else model.rule.number
