"""Classifier and Evaluation as plain numbers. All figures of plots and pages are computed here, once."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from math import isfinite, isnan
import platform
from typing import Any

import numpy as np

from emsco import __version__
from emsco.data.labels import plain_labels
from emsco.data.table import Table
from emsco.deployed.decide import Decisions
from emsco.deployed.evaluation import Evaluation, Result, by_objectives, check_truth, result_of
from emsco.deployed.model import Deployed
from emsco.designs.branched import Branched
from emsco.exceptions import InvalidInputError
from emsco.prices.prices import PriceList
from emsco.report.by_class import class_tables, told_by_class
from emsco.report.learning import judged, learning_record, selected, stage_words, timed_out_words
from emsco.report.money import money_record
from emsco.report.outlook import outlook_record, outlook_words
from emsco.report.tree import answered_by_depth, tree_record
from emsco.scoring.classes import base_rate
from emsco.scoring.front import Front
from emsco.scoring.intervals import binomial_interval
from emsco.scoring.rejection import as_rule, check_threshold
from emsco.scoring.thresholds import rule_words, rules_words

_MOST_STEPS = 300  # of a search's history; a screen cannot show more
_LEAST_IN_BIN = 10  # a share of fewer rows is meaningless


def summarise(
    model: Deployed, *, evaluation: Evaluation | None = None, notes: Mapping[str, str | float] | None = None
) -> dict[str, Any]:
    """Return the content of the report as JSON values.

    Computed figures are rounded to six significant digits; counts and prices are exact. Undefined and unknown values
    are None.

    Parameters
    ----------
    model : Deployed
    evaluation : Evaluation or None
        Result of ``evaluate``. None: that of the model, if there is one.
    notes : mapping of str to str or number, or None
        Notes on the run for the reader. None: those of the model.
    """
    evaluation = model.evaluation if evaluation is None else evaluation
    notes = model.notes if notes is None else notes
    front, designs, total = model.front, model.designs, model.prices.total
    if evaluation is not None and len(evaluation.points) != len(designs):
        raise InvalidInputError(
            f"the evaluation has {len(evaluation.points)} designs, the classifier has {len(designs)}; give the result "
            "of its own evaluate."
        )
    labels = [str(label) for label in model.classes.tolist()]
    shortlist = () if front is None else front.shortlist(in_use=model.point).picks
    everything_labels_all = model.rule_of_everything.labels_all(1, len(labels))
    return {
        "version": __version__,
        "kind": model.origin.kind,
        "classes": labels,
        "threshold": None if model.branched is not None else model.rule.number,
        "searched_with": model.policy.searched_with,
        "thresholds": model.rule_words if model.branched is not None else model.rule.in_words(labels),
        "promise": None if model.promise is None else str(model.promise).splitlines(),
        "n_validation": None if front is None else front.n_samples,
        "judged": judged(model),
        "selected": selected(model),
        "learning": " ".join(learning_record(model)["in_words"]),
        "stages": stage_words(model),
        "money": _rounded_all(money_record(model, evaluation)),
        "base_rate": _base_rates(front, evaluation, labels),
        "shortlist": [{"point": pick.point, "reason": pick.reason} for pick in shortlist],
        "outlook": _outlook(model, evaluation),
        "n_test": None if evaluation is None else evaluation.n_rows,
        "total": total,
        "price_rule": model.prices.rule,
        "units": _units(model.prices, model.column_names),
        "in_use": model.point,
        "objectives": [] if front is None else list(front.objectives),
        "extra": [] if front is None else list(front.extra),
        "points": _points(model, evaluation, [pick.point for pick in shortlist]),
        "everything": None if evaluation is None else _tested(evaluation.everything, total, everything_labels_all),
        "always": None if evaluation is None else _tested(evaluation.always, total, labels_all=True),
        "search": None if front is None else _search(model, front),
        "settings": _settings(model),
        "notes": {str(name): _plain(value) for name, value in notes.items()},
    }


def _points(model: Deployed, evaluation: Evaluation | None, listed: Sequence[int]) -> list[dict[str, Any]]:
    """Return every point: its design, prices, thresholds and figures; its classes only if it is listed, or few are."""
    front, total, labels = model.front, model.prices.total, [str(label) for label in model.classes.tolist()]
    told = told_by_class(len(model.designs), len(labels), [model.point, model.chosen, *listed])
    intervals = {} if front is None else {name: front.interval(name) for name in ("coverage", "accuracy", "cost")}
    points: list[dict[str, Any]] = []
    for i, design in enumerate(model.designs):
        if model.branches and (branched := model.branches[i]) is not None:
            points.append(_branched(model, i, branched, evaluation, intervals, i in told))
            continue
        cascade = model.cascade_of(design)
        stages = cascade.stages
        everyone = model.rules[i].labels_all(len(stages), len(labels))
        points.append(
            {
                "design": design.tolist(),
                "price": [stage.price for stage in stages],
                "paid": cascade.paid.tolist(),
                "thresholds": rule_words(model.rules[i], len(stages), labels),
                "labels_all": everyone,
                "validation": None,
                "test": None if evaluation is None else _tested(evaluation.points[i], total, everyone, i in told),
            }
        )
        if front is not None:
            points[i]["validation"] = _validated(front, i, len(stages), total, intervals, everyone, i in told)
    if evaluation is not None and front is not None:
        worth = by_objectives(model.objectives, evaluation.points, evaluation.classes)
        for i, point in enumerate(points):
            point["test"]["extra"] = [_rounded(worth[name][i]) if name in worth else None for name in front.extra]
    return points


def _branched(
    model: Deployed,
    i: int,
    branched: Branched,
    evaluation: Evaluation | None,
    intervals: Mapping[str, tuple[Any, Any]],
    by_class: bool,
) -> dict[str, Any]:
    """Return a point that branches: the prices are those of its dearest branch, ``tree`` has all of them."""
    tree, labels, total = model.tree_of(branched), model.classes.tolist(), model.prices.total
    chain = max(tree.chains, key=lambda chain: float(chain.paid[-1]))
    depths = branched.rows.max(axis=1) + 1
    everyone = all(rule.labels_all(n, len(labels)) for rule, n in zip(branched.rules, depths.tolist(), strict=True))
    result = None if evaluation is None else evaluation.points[i]
    return {
        "design": model.designs[i].tolist(),
        "price": [stage.price for stage in chain.stages],
        "paid": chain.paid.tolist(),
        "thresholds": rules_words(branched, [str(label) for label in labels]),
        "labels_all": everyone,
        "tree": {
            "test": None if result is None else tree_record(model, i, result),
            "validation": tree_record(model, i),
        },
        "test": None if result is None else _tested(result, total, everyone, by_class),
        "validation": None
        if model.front is None
        else _validated(model.front, i, branched.n_stages, total, intervals, everyone, by_class),
    }


def stage_flow(model: Deployed, X: Any = None, y: Any = None) -> dict[str, Any]:
    """Return how many cases reach each stage of the design in use, and how many leave there.

    Parameters
    ----------
    model : Deployed
    X : array-like or DataFrame, optional
        Rows to count. None: the validation rows.
    y : array-like, optional
        Their labels.

    Returns
    -------
    dict
        ``n_rows``; for each stage ``reached``, ``answered`` (left with a label) and ``right`` (with a correct label;
        None if unknown); ``rejected``, the rows without a label.
    """
    if X is None:
        if y is not None:
            raise InvalidInputError("y was given without X; give both, or X alone.")
        if model.front is None:
            raise InvalidInputError(f"{model.origin.kind} has no validation rows to count; give X, and y if known.")
        model.require_chain("flow by stage")
        return _front_flow(model.front, model.point, len(model.stages))
    model.require_chain("flow by stage")
    decisions = model.decide(X)
    if y is not None:
        truth = check_truth(plain_labels(y), model.classes, len(decisions))
        return _result_flow(result_of(decisions, truth, model.classes, model.paid.tolist()))
    if not len(decisions):
        raise InvalidInputError("X has no rows to count.")
    return _decision_flow(decisions, len(model.stages))


def threshold_sweep(model: Deployed, X: Any, y: Any, thresholds: Sequence[float]) -> list[Result]:
    """Return the results of the design in use at other thresholds, without any training."""
    table = Table(X)
    model.require_chain("sweep of thresholds")
    truth, paid = check_truth(plain_labels(y), model.classes, table.n_rows), model.paid.tolist()
    rules = [as_rule(check_threshold(threshold)) for threshold in thresholds]
    return [result_of(model.decisions(table, model.cascade, rule), truth, model.classes, paid) for rule in rules]


def stage_reliability(model: Deployed, X: Any, y: Any, n_bins: int) -> list[dict[str, Any]]:
    """Return the calibration of each stage: its accuracy by confidence, on the rows that reach it.

    Each stage is a dict of lists with one entry per bin; bins have about equal size. The entries are the mean
    ``confidence``, ``right`` (number of correct top classes), ``count``, and the 95 % ``interval`` of the share. The
    lists are empty if no row reaches the stage.
    """
    model.require_chain("plot of confidence by stage")
    table = Table(X)
    truth = check_truth(plain_labels(y), model.classes, table.n_rows)
    stages = []
    for j in range(len(model.stages)):
        # For rows that reach stage j, a cascade of the first stages ends with the prediction of stage j.
        decisions = model.decisions(table, model.cascade.first(j + 1), model.rule)
        here = decisions.stage == j
        confidence, right = decisions.confidence[here], (decisions.label.data == truth)[here]
        stages.append(_reliability(confidence, right, n_bins))
    return stages


def _reliability(confidence: Any, right: Any, n_bins: int) -> dict[str, Any]:
    bins: dict[str, Any] = {"confidence": [], "right": [], "count": [], "interval": []}
    if not confidence.size:
        return bins
    n_bins = max(min(n_bins, confidence.size // _LEAST_IN_BIN), 1)
    edges = np.quantile(confidence, np.linspace(0, 1, n_bins + 1)[1:-1])
    bin_of = np.searchsorted(edges, confidence, side="right")
    for b in np.unique(bin_of):
        inside = bin_of == b
        n, n_right = int(inside.sum()), int(right[inside].sum())
        bins["confidence"].append(float(confidence[inside].mean()))
        bins["right"].append(n_right)
        bins["count"].append(n)
        bins["interval"].append(binomial_interval(n_right, n))
    return bins


def _flow(answered: list[int], right: list[int] | None, rejected: int) -> dict[str, Any]:
    n_rows = sum(answered) + rejected
    reached = [n_rows - sum(answered[:j]) for j in range(len(answered))]
    return {"n_rows": n_rows, "reached": reached, "answered": answered, "right": right, "rejected": rejected}


def _result_flow(result: Result) -> dict[str, Any]:
    return _flow(_by_depth(result.answered, result), _by_depth(result.right, result), result.n_rejected)


def _by_depth(counts: Sequence[int], result: Result) -> list[int]:
    """Return counts by stage; of a design that branches, those of all branches together."""
    if not result.branches:
        return list(counts)
    total, start = [0] * max(result.branches), 0
    for depth in result.branches:
        for j in range(depth):
            total[j] += counts[start + j]
        start += depth
    return total


def _decision_flow(decisions: Decisions, n_stages: int) -> dict[str, Any]:
    answered = np.bincount(decisions.stage[decisions.conclusive], minlength=n_stages).tolist()
    return _flow(answered, None, int((~decisions.conclusive).sum()))


def _front_flow(front: Front, point: int, n_stages: int) -> dict[str, Any]:
    reached = front.reached[point, :n_stages].tolist()
    rejected = front.n_samples - round(float(front.coverage[point]) * front.n_samples)
    answered = [here - after for here, after in zip(reached, [*reached[1:], rejected], strict=True)]
    if front.branched and (branched := front.branched[point]) is not None:
        known = answered_by_depth(branched, n_stages)
        answered = [front.n_samples - rejected, *[0] * (n_stages - 1)] if known is None else known
    return _flow(answered, None, rejected)


def _base_rates(front: Front | None, evaluation: Evaluation | None, labels: Sequence[str]) -> dict[str, str | None]:
    """Return what always answering the most frequent class would score, on the validation and on the test rows."""
    counts = None if front is None or front.confusion is None else front.confusion[0].sum(axis=1)
    tested = None if evaluation is None else [sum(row) for row in evaluation.everything.confusion]
    return {
        "validation": None if counts is None else base_rate(counts, labels),
        "test": None if tested is None else base_rate(tested, labels),
    }


def _outlook(model: Deployed, evaluation: Evaluation | None) -> dict[str, Any] | None:
    record = outlook_record(model, evaluation)
    if record is None:
        return None
    return {**_rounded_all(record), "in_words": outlook_words(record)}


def _rounded_all(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded_all(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded_all(part) for part in value]
    return _rounded(value) if isinstance(value, float) else value


def _validated(
    front: Front,
    point: int,
    n_stages: int,
    total: float,
    intervals: Mapping[str, tuple[Any, Any]],
    labels_all: bool,
    by_class: bool,
) -> dict[str, Any]:
    cost = float(front.mean_cost[point])
    counts = front.confusion[point] if by_class and front.confusion is not None else None
    return {
        "coverage": _rounded(front.coverage[point]),
        "accuracy": _rounded(front.accuracy[point]),
        "cost": _rounded(cost),
        "saving": _saving(cost, total),
        "fitness": _rounded(front.fitness[point]),
        "ties": int(front.n_ties[point]),
        "extra": [_rounded(values[point]) for values in front.extra.values()],
        "worst_recall": _rounded(front.worst_recall[point]),
        **class_tables(counts),
        **{f"{name}_interval": [_rounded(end[point]) for end in ends] for name, ends in intervals.items()},
        **({"coverage_interval": [1.0, 1.0]} if labels_all and front.coverage[point] == 1 else {}),
        **_front_flow(front, point, n_stages),
    }


def _tested(result: Result, total: float, labels_all: bool, by_class: bool = True) -> dict[str, Any]:
    # A label for every case is no matter of chance, so it has no interval.
    coverage = (result.coverage,) * 2 if labels_all else result.interval("coverage")
    return {
        "coverage": _rounded(result.coverage),
        "coverage_interval": [_rounded(end) for end in coverage],
        "accuracy": _rounded(result.accuracy),
        "accuracy_interval": [_rounded(end) for end in result.interval("accuracy")],
        "cost": _rounded(result.mean_cost),
        "cost_interval": [_rounded(end) for end in result.interval("mean_cost")],
        "saving": _saving(result.mean_cost, total),
        **_result_flow(result),
        "worst_recall": _rounded(result.worst_recall),
        **class_tables(result.confusion if by_class else None),
    }


def _units(prices: PriceList, columns: Sequence[str]) -> list[dict[str, Any]]:
    units = []
    for u, name in enumerate(prices.unit_names):
        group = next((prices.group_names[g] for g in np.flatnonzero(prices.groups[u])), None)
        units.append(
            {
                "name": name,
                "columns": [columns[c] for c in prices.unit_columns[u]],
                "sources": prices.source_names(u),
                "price": float(prices.prices[u]),
                "group": group,
                "discount": None if group is None else float(prices.own_prices[u]),
            }
        )
    return units


def _search(model: Deployed, front: Front) -> dict[str, Any]:
    origin, history = model.origin, model.origin.history
    shown = np.unique(np.linspace(0, len(history) - 1, min(len(history), _MOST_STEPS)).round().astype(np.int64))
    certificate = front.certificate
    names = ("n_designs", "n_walked", "n_ruled_out", "seconds", "proven")
    return {
        "name": model.search_name,
        "seconds": _rounded(origin.search_seconds),
        "n_feature_sets": origin.n_feature_sets,
        "timed_out": timed_out_words(model),
        "certificate": None if certificate is None else {name: _plain(getattr(certificate, name)) for name in names},
        "n_steps": len(history),
        "n_designs": history[shown, 0].tolist(),
        "n_front": history[shown, 1].tolist(),
        "n_sets": history[shown, 2].tolist(),
    }


def _settings(model: Deployed) -> dict[str, str]:
    """Return the parameters in words, except prices, which have their own table, and the package versions."""
    origin = model.origin
    given = {name: value for name, value in {**origin.parameters, **origin.preset}.items() if name != "costs"}
    settings = {name: _in_words(value) for name, value in given.items()}
    used = {"search": origin.search, "encoding": origin.encoding, "C": origin.C}
    for name, value in used.items():
        if settings.get(name) == "auto":
            settings[name] += f", which used {_in_words(value)}"
    return {
        **settings,
        "emsco": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": version("scikit-learn"),
    }


def _in_words(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and "kind" in value:  # the settings of a search, from a file
        settings = ", ".join(f"{name}={setting!r}" for name, setting in value.items() if name != "kind")
        return f"{value['kind']}({settings})"
    if callable(value) and hasattr(value, "__qualname__"):  # its repr contains a memory address
        return f"{value.__module__}.{value.__qualname__}"
    return " ".join(repr(value).split())


def _plain(value: Any) -> Any:
    """Return a JSON value: text, a number, true or false; anything else in words."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and isfinite(value):
        return _rounded(value)
    return value if isinstance(value, str | int) or value is None else _in_words(value)


def _rounded(value: float) -> float | None:
    return None if isnan(value) else float(f"{value:.6g}")


def _saving(cost: float, total: float) -> float | None:
    """Return the saved share of the price of everything; None if everything is free."""
    return _rounded(1 - cost / total) if total > 0 else None
