"""What a user set <-> JSON: parameters, prices, searches."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, fields
from importlib import import_module
from typing import Any

import numpy as np

from emsco.checks import check_cache_bytes, check_flag, check_seed, check_time_limit
from emsco.designs.branch import Branch, check_branch
from emsco.designs.partition import check_max_stages
from emsco.exceptions import EmscoError, InvalidParameterError, ModelFileError, shown
from emsco.prices.prices import Costs, PriceList, Prices
from emsco.promises.guarantee import Guarantee
from emsco.scoring.choice import BY_CLASS, PRESET_CHOICES
from emsco.scoring.objectives import Loss, Objective, Recall
from emsco.stages.learners import check_calibration, check_estimator, check_learning, check_products
from emsco.storage.container import damaged
from emsco.storage.fields import Fields

SEARCHED = "EMSCOClassifier"
# Parameters of the estimators that can be saved, with what a file that does not know one means.
PARAMETERS: dict[str, dict[str, Any]] = {
    SEARCHED: {
        "errors": None, "branch": None,
        "costs": None, "threshold": None, "objectives": None, "choose": None, "preset": "best", "search": None,
        "max_stages": None, "removal": None, "encoding": None, "C": None, "products": False, "estimator": None,
        "final_estimator": None, "calibration": None, "validation": None, "refit": False, "random_state": None,
        "n_jobs": None, "time_limit": None, "verbose": None, "cache_bytes": 2**28,
    },
    "MultiStageClassifier": {
        "design": None, "costs": None, "threshold": 0.75, "encoding": "linear", "C": 1.0, "products": False,
        "estimator": None, "random_state": None, "n_jobs": None,
    },
}  # fmt: skip
_LABELS = (str, bool, int, float)  # what a class, or a share of it, is in a file
ESTIMATORS = {"estimator", "final_estimator"}  # parameters that may be classifiers, kept apart
# Where the settings of searches are; serving a model imports none of them.
_SEARCHES = {
    "Evolution": "emsco.search.evolution",
    "BestFirst": "emsco.search.bestfirst",
    "Exact": "emsco.search.exact.proof",
}


def is_estimator(value: Any) -> bool:
    """Return whether a parameter is a classifier, neither the name of one nor nothing."""
    return value is not None and not isinstance(value, str)


def parameters_to_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a classifier, estimators apart; functions, splitters and generators are not kept."""
    record: dict[str, Any] = {}
    for name, value in sorted(parameters.items()):  # equal models give equal files
        if name == "costs":
            record[name] = costs_to_json(value)
        elif name == "search":
            record[name] = value if value is None or isinstance(value, str) else search_to_json(value)
        elif name == "design":
            record[name] = _design_to_json(value)
        elif name == "threshold":
            record[name] = _threshold_to_json(value)
        elif name == "choose" and callable(value):
            record[name] = "fitness"
        elif name == "choose" and isinstance(value, Mapping):
            record[name] = {str(key): _choice_to_json(f"choose[{key!r}]", item) for key, item in value.items()}
        elif name == "objectives" and value is not None:
            record[name] = _objectives_to_json(value)
        elif name == "branch" and (value is None or isinstance(value, Branch)):
            if value is not None:  # without, a file is as it was before there were designs that branch
                record[name] = {**asdict(value), "on": list(value.units) or None, "min_rows": int(value.min_rows)}
        elif name == "errors" and value is not None:
            record[name] = value if isinstance(value, list) else np.asarray(value, dtype=np.float64).tolist()
        elif name == "random_state" and not isinstance(value, int | np.integer):
            record[name] = None
        elif not (name in ESTIMATORS and is_estimator(value)) and not (
            name == "validation" and hasattr(value, "split")
        ):
            record[name] = _scalar(name, value)
    return record


def parameters_from_json(record: Fields, known: Collection[str]) -> dict[str, Any]:
    """Return the parameters that a file has."""
    parameters: dict[str, Any] = {}
    for name in record:
        if name not in known:
            raise damaged(f"there is no parameter {shown(name)}")
        value = record.raw(name)
        if name == "costs":
            parameters[name] = None if value is None else costs_from_json(record.part(name))
        elif name == "search" and isinstance(value, dict):
            parameters[name] = search_from_json(record.part(name).plain())
        elif name == "threshold" and isinstance(value, dict):
            parameters[name] = _threshold_from_json(record.part(name))
        elif name == "design" and value is not None:
            if not _are(record.items(name), int) and not all(_are(stage, str) for stage in record.items(name)):
                record.refuse(name, "stage numbers, or names per stage")
            parameters[name] = value
        elif name == "choose" and isinstance(value, dict):
            parameters[name] = _choose_from_json(record.part(name))
        elif name == "objectives" and value is not None:
            parameters[name] = _objectives_from_json(record)
        elif name == "branch" and isinstance(value, dict):
            parameters[name] = _branch_from_json(record.part(name))
        elif name == "errors" and value is not None:
            rows = record.items(name)
            if not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows) or not all(
                _are([cell], float) or isinstance(cell, str) for row in rows for cell in row
            ):
                record.refuse(name, "a matrix of prices")
            parameters[name] = rows
        elif name == "n_jobs" and value is not None:
            parameters[name] = record.whole(name, -(2**15), 2**15) or record.refuse(name, "workers")
        elif isinstance(value, dict | list):
            record.refuse(name, "a single value")
        else:
            parameters[name] = value
    try:
        _check(parameters, automatic="preset" in known)
    except EmscoError as error:
        raise damaged(str(error).rstrip(".")) from error
    return parameters


def _check(parameters: Mapping[str, Any], *, automatic: bool) -> None:
    """Raise where a number or a name is out of range."""
    if parameters.get("preset", "best") not in PRESET_CHOICES:
        known = ", ".join(PRESET_CHOICES)
        raise InvalidParameterError(f"must be one of {known}; got {shown(parameters['preset'])}.", parameter="preset")
    encoding, C = parameters.get("encoding"), parameters.get("C")
    check_max_stages(parameters.get("max_stages"), 1)
    check_learning("linear" if encoding is None else encoding, 1.0 if C is None else C, automatic=automatic)
    if parameters.get("random_state") is not None:
        check_seed(parameters["random_state"])
    check_calibration(parameters.get("calibration"))
    check_cache_bytes(parameters.get("cache_bytes", 1))
    check_time_limit(parameters.get("time_limit"))
    for name in ESTIMATORS & set(parameters):
        check_estimator(parameters[name], name)
    check_products(parameters.get("products", False), parameters.get("estimator"))
    check_branch(parameters.get("branch"))
    for name in {"removal", "refit", "verbose"} & set(parameters):
        if parameters[name] is not None:
            check_flag(parameters[name], name)


def preset_from_json(record: Fields) -> dict[str, Any]:
    """Return what parameters left to the preset stood for; a search stays a record, so that serving loads none."""
    rest = Fields({name: value for name, value in record.plain().items() if name != "search"}, "preset")
    preset = parameters_from_json(rest, PARAMETERS[SEARCHED])
    if "search" in record:
        preset["search"] = check_search(record.part("search")) if isinstance(record.raw("search"), dict) else "auto"
    return preset


def search_to_json(search: Any) -> dict[str, Any]:
    """Return the settings of a search; a loaded model has them so already."""
    if isinstance(search, Mapping):
        return dict(search)
    return {"kind": type(search).__name__, **{key: _scalar(key, value) for key, value in asdict(search).items()}}


def search_from_json(record: Mapping[str, Any]) -> Any:
    """Return the settings of a search; they check themselves."""
    settings = dict(record)
    kind = settings.pop("kind", None)
    if kind not in _SEARCHES:
        raise damaged(f"the search is {shown(kind)}; wanted one of {', '.join(_SEARCHES)}")
    made = getattr(import_module(_SEARCHES[kind]), kind)
    if not set(settings) <= {field.name for field in fields(made)}:
        raise damaged(f"{kind} has no settings {shown(sorted(settings))}")
    try:
        return made(**settings)
    except (EmscoError, OverflowError) as error:
        raise damaged(str(error).rstrip(".")) from error


def check_search(record: Fields) -> dict[str, Any]:
    """Return the record of a search whose kind is known; its settings are read when somebody asks for them."""
    if record.text("kind") not in _SEARCHES:
        record.refuse("kind", f"one of {', '.join(_SEARCHES)}")
    settings = record.plain()
    if any(isinstance(value, dict | list) for value in settings.values()):
        raise damaged("the settings of the search are no single values")
    return settings


def _branch_from_json(record: Fields) -> Branch:
    """Return how designs that branch were looked for."""
    settings = record.plain()
    if not set(settings) <= {field.name for field in fields(Branch)}:
        raise damaged(f"a branch has no settings {shown(sorted(settings))}")
    return Branch(**settings)


def _choice_to_json(name: str, value: Any) -> Any:
    """Return an argument of ``Front.choose``: a single value, or pairs of a label and a share."""
    if isinstance(value, Mapping):
        return [[_scalar(name, label), _scalar(name, share)] for label, share in value.items()]
    return _scalar(name, value)


def _choose_from_json(record: Fields) -> dict[str, Any]:
    choice: dict[str, Any] = {}
    for name in record:
        value = record.raw(name)
        if name in BY_CLASS and isinstance(value, list):
            if not all(isinstance(pair, list) and [type(v) in _LABELS for v in pair] == [True, True] for pair in value):
                record.refuse(name, "pairs of a label and a share")
            value = dict(value)
        elif isinstance(value, dict | list):
            record.refuse(name, "a single value per argument")
        choice[name] = value
    return choice


def _objectives_to_json(objectives: Sequence[Any]) -> list[Any] | None:
    """Return chosen objectives; with a function among them there is nothing to keep."""
    if any(isinstance(objective, Objective) for objective in objectives):
        return None
    return [_objective_to_json(objective) for objective in objectives]


def _objective_to_json(objective: Any) -> Any:
    if isinstance(objective, Loss):
        return {"matrix": objective.matrix, "reject": objective.reject}
    return {"recall": objective.label} if isinstance(objective, Recall) else str(objective)


def _objectives_from_json(record: Fields) -> tuple[Any, ...]:
    chosen: list[Any] = record.items("objectives")
    for i, objective in enumerate(chosen):
        if isinstance(objective, dict):
            part = Fields(objective, "objectives")
            try:
                if "recall" in part:
                    chosen[i] = Recall(part.raw("recall"))
                else:
                    chosen[i] = Loss(part.items("matrix"), part.items("reject"))
            except (EmscoError, OverflowError) as error:
                raise damaged(str(error).rstrip(".")) from error
        elif not isinstance(objective, str):
            record.refuse("objectives", "names, recalls and losses")
    return tuple(chosen)


def costs_to_json(costs: Costs) -> dict[str, Any] | None:
    """Return prices as the user gave them."""
    if costs is None:
        return None
    if isinstance(costs, Prices):
        return {"kind": "prices", **_prices_to_json(costs)}
    if hasattr(costs, "to_dict") and not isinstance(costs, Mapping):  # a pandas Series, by name unless it only counts
        by_name = list(costs.index) != list(range(len(costs)))  # type: ignore[union-attr,arg-type]
        costs = costs.to_dict() if by_name else costs.to_numpy()  # type: ignore[union-attr]
    if isinstance(costs, Mapping):
        return {"kind": "mapping", "price": {str(key): float(value) for key, value in costs.items()}}
    return {"kind": "array", "price": np.asarray(costs, dtype=np.float64).tolist()}


def costs_from_json(record: Fields) -> Costs:
    """Return prices in the form in which they were given."""
    kind = record.text("kind")
    if kind == "prices":
        return prices_from_json(record)
    if kind == "mapping":
        return _numbers(record.part("price"))
    if kind != "array":
        record.refuse("kind", "prices, mapping or array")
    values = Fields(dict(enumerate(record.items("price"))), "costs.price")
    return np.array([values.number(i) for i in values])


def price_list_to_json(prices: PriceList) -> dict[str, Any]:
    """Return what units cost, from which the rest of a price list follows; columns are given by position."""
    names = prices.unit_names
    derived = {names[u]: [names[s] for s in sources] for u, sources in enumerate(prices.sources) if sources}
    return {
        "units": {name: list(columns) for name, columns in zip(names, prices.unit_columns, strict=True)},
        "price": {name: p for name, p in zip(names, prices.prices.tolist(), strict=True) if name not in derived},
        "groups": {
            group: [name for name, member in zip(names, members, strict=True) if member]
            for group, members in zip(prices.group_names, prices.groups.T, strict=True)
        },
        "discount": {names[unit]: float(prices.own_prices[unit]) for unit in np.flatnonzero(prices.groups.any(axis=1))},
        **({"derived": derived} if derived else {}),
        "overhead": prices.overhead,
        "parallel": prices.parallel,
    }


def prices_from_json(record: Fields) -> Prices:
    """Return prices whose units list columns by name, or by position as text.

    Files that know no overhead, parallel prices or derived units have none.
    """
    parts: dict[str, Any] = {}
    for name in ("units", "groups", *(["derived"] if "derived" in record else [])):
        part = record.part(name)
        parts[name] = {key: [str(member) for member in part.items(key)] for key in part}
    if "overhead" in record:
        parts["overhead"] = record.number("overhead", 0)
    if "parallel" in record:
        parts["parallel"] = record.flag("parallel")
    return Prices(price=_numbers(record.part("price")), discount=_numbers(record.part("discount")), **parts)


def _prices_to_json(prices: Prices) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name in ("units", "groups", *(["derived"] if prices.derived else [])):
        record[name] = {str(key): [str(m) for m in members] for key, members in getattr(prices, name).items()}
    for name in ("price", "discount"):
        record[name] = {str(key): float(value) for key, value in getattr(prices, name).items()}
    return {**record, "overhead": float(prices.overhead), "parallel": bool(prices.parallel)}


def _threshold_to_json(threshold: Any) -> Any:
    if isinstance(threshold, Guarantee):
        return {"kind": "guarantee", **{key: _scalar(key, value) for key, value in asdict(threshold).items()}}
    if isinstance(threshold, Mapping):
        bars = [[_scalar("threshold", label), float(bar)] for label, bar in threshold.items()]
        return {"kind": "classes", "thresholds": bars}
    if isinstance(threshold, list | tuple | np.ndarray):
        return {"kind": "stages", "thresholds": [float(bar) for bar in threshold]}
    return _scalar("threshold", threshold)


def _threshold_from_json(record: Fields) -> Any:
    """Return a threshold that is no number; whether its numbers are probabilities is seen where it is used."""
    kind = record.text("kind")
    if kind == "guarantee":
        settings = {name: record.raw(name) for name in record if name != "kind"}
        if not set(settings) <= {field.name for field in fields(Guarantee)}:
            raise damaged(f"a guarantee has no settings {shown(sorted(settings))}")
        try:
            return Guarantee(**settings)
        except EmscoError as error:
            raise damaged(str(error).rstrip(".")) from error
    bars = record.items("thresholds")
    if kind == "stages":
        return bars
    if kind != "classes":
        record.refuse("kind", "classes, stages or guarantee")
    if not all(isinstance(pair, list) and len(pair) == 2 and not isinstance(pair[0], dict | list) for pair in bars):
        record.refuse("thresholds", "pairs of a label and a number")
    return dict(bars)


def _numbers(record: Fields) -> dict[str, float]:
    return {key: record.number(key) for key in record}


def _design_to_json(design: Any) -> list[Any] | None:
    if design is None:
        return None
    entries = list(getattr(design, "design", design))
    if all(isinstance(entry, Sequence | set | frozenset | np.ndarray) for entry in entries):
        return [[str(name) for name in stage] for stage in entries]
    return [int(stage) for stage in entries]


def _are(values: Any, kind: type) -> bool:
    return isinstance(values, list) and all(isinstance(v, kind) and not isinstance(v, bool) for v in values)


def _scalar(name: str, value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, bool | int | float | str):
        raise ModelFileError(f"the parameter {name} is {shown(value)}, which a model file cannot hold.")
    return value
