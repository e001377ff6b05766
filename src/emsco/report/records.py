"""Fitted classifiers and their results as plain records for scripts that read JSON."""

from dataclasses import asdict
import json
from typing import Any

from emsco.deployed.evaluation import Evaluation, Result, by_objectives
from emsco.promises.guarantee import Guarantee
from emsco.promises.thresholds import is_auto
from emsco.report.learning import learning_record
from emsco.scoring.front import never_bought
from emsco.scoring.rejection import NEVER, RejectRule


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


def summary_record(clf: Any, evaluation: Evaluation | None) -> dict[str, Any]:
    """Return the results of a search: the point in use, the certificate, the figures on test rows."""
    certificate = clf.front_.certificate
    return {
        "points": len(clf.front_),
        "in_use": point_record(clf, clf.point_),
        "search": type(clf.search_).__name__,
        "seconds": round(clf.search_seconds_, 3),
        "learning": learning_record(clf),
        "certificate": None if certificate is None else vars(certificate),
        "guarantee": asdict(clf.guarantee_) if isinstance(clf.threshold, Guarantee) else None,
        "test": None if evaluation is None else results_record(clf, evaluation),
    }


def point_record(clf: Any, i: int) -> dict[str, Any]:
    """Return one point of the front: its figures on the validation rows, and its purchases."""
    point = clf.front_[i]
    names = clf.front_.feature_names
    stages = [[n for n, s in zip(names, point.design, strict=True) if s == j] for j in range(point.n_stages)]
    return {
        "point": i, "in_use": i == clf.point_, "coverage": point.coverage, "accuracy": point.accuracy,
        "mean_cost": point.mean_cost, "fitness": point.fitness, "ties": point.n_ties, "stages": stages,
        "never": never_bought(point.design, names),
        "objectives": dict(zip(clf.front_.objectives, point.values.tolist(), strict=True)),
        "thresholds": [[None if bar >= NEVER else bar for bar in row] for row in clf._rule(i).bars],
    }  # fmt: skip


def results_record(clf: Any, evaluation: Evaluation) -> dict[str, Any]:
    """Return the results of the point in use and of buying everything, with 95 % confidence intervals."""

    def record(result: Result) -> dict[str, Any]:
        figures = {
            figure: {"value": getattr(result, figure), "interval_95": list(result.interval(figure))}
            for figure in ("coverage", "accuracy", "mean_cost")
        }
        counts = {"answered": result.answered, "right": result.right, "inconclusive": result.n_rejected}
        worth = {name: values[0] for name, values in by_objectives(getattr(clf, "objectives", None), [result]).items()}
        return {**figures, **counts, "confusion": result.confusion, "objectives": worth}

    return {
        "rows": evaluation.n_rows,
        "classes": list(evaluation.classes),
        "in_use": record(evaluation.points[getattr(clf, "point_", 0)]),
        "buy_everything": record(evaluation.everything),
        "buy_everything_always_answer": record(evaluation.always),
    }


def facts_record(clf: Any) -> dict[str, Any]:
    """Return a description of a classifier: classes, prices, search, stages."""
    facts: dict[str, Any] = {
        "kind": type(clf).__name__,
        "classes": clf.classes_.tolist(),
        "threshold": _threshold(clf),
        "columns": clf.n_features_in_,
        "stage classifier": type(clf.stages_[0].model).__name__,
        "learning": learning_record(clf),
    }
    if hasattr(clf, "front_"):
        facts["objectives"] = list(clf.front_.objectives)
        facts["front"] = f"{len(clf.front_)} points, point {clf.point_} in use"
        facts["search"] = f"{type(clf.search_).__name__}, {clf.search_seconds_:.1f} s"
        certificate = clf.front_.certificate
        if certificate is not None:
            facts["certificate"] = (
                f"{'proven' if certificate.proven else 'not proven'}: {certificate.n_designs:,} designs, "
                f"{certificate.n_walked:,} looked at, {certificate.n_ruled_out:,} ruled out"
            )
    facts["price model"] = clf._prices.rule
    if isinstance(clf.threshold, Guarantee):
        facts["guarantee"] = str(clf.guarantee_)
    facts["prices"] = dict(zip(clf._prices.unit_names, clf._prices.prices.tolist(), strict=True))
    facts["stages"] = [{"buys": list(stage.features), "price": stage.price} for stage in clf.stages_]
    if never := never_bought(clf.design_, clf._prices.unit_names):
        facts["never"] = never
    return facts


def _threshold(clf: Any) -> float | str:
    """Return the threshold in use: a number, or a text with its origin if it was not given."""
    rule: RejectRule = clf._rule()
    words = rule.in_words(clf.classes_.tolist())
    if is_auto(clf.threshold):
        return f"auto: {words}"
    if isinstance(clf.threshold, Guarantee):
        return f"calibrated: {words}"
    return words if rule.number is None else rule.number
