"""Trained classifiers <-> members of a model file.

Whoever can write a file can also write its checksums, so every number read is checked: against its range, and against
the other numbers.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from itertools import pairwise
import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

import emsco
from emsco.arrays import IntArray
from emsco.data.encoding import ENCODINGS, FARTHEST, RAW, CategoryCode, ColumnCode, CurveCode, Encoder, NumberCode
from emsco.data.labels import plain_classes
from emsco.deployed.model import Deployed, Origin
from emsco.designs.partition import are_designs, check_design
from emsco.exceptions import EmscoError, InvalidParameterError, ModelFileError, shown
from emsco.prices.errors import resolve_errors
from emsco.prices.prices import PriceList, resolve
from emsco.promises.guarantee import Promise
from emsco.promises.policy import ThresholdPolicy, policy_of
from emsco.scoring.certificate import Certificate
from emsco.scoring.front import Front
from emsco.scoring.objectives import PAPER, PAPER_MAXIMISE
from emsco.scoring.rejection import RejectRule
from emsco.stages.base import StageModel
from emsco.stages.learners import BOOSTED, TREE
from emsco.stages.logistic import LogisticModel
from emsco.stages.problem import unit_membership
from emsco.storage import container, estimators
from emsco.storage.branches import Points, branches_from_json, branches_to_json, check_figures, front_paid, needed_sets
from emsco.storage.by_class import by_class, by_class_to_json
from emsco.storage.container import damaged
from emsco.storage.fields import Fields
from emsco.storage.parameters import (
    ESTIMATORS,
    PARAMETERS,
    SEARCHED,
    check_search,
    is_estimator,
    parameters_from_json,
    parameters_to_json,
    preset_from_json,
    price_list_to_json,
    prices_from_json,
    search_to_json,
)
from emsco.storage.results import (
    evaluation_from_json,
    evaluation_to_json,
    promise_to_json,
    promises_from_json,
)
from emsco.storage.savings import savings_from_json, savings_to_json

Members = dict[str, bytes]
_FIGURES = ("coverage", "accuracy", "mean_cost", "fitness")
_MOST_CLASSES = 256
_MOST_DESIGNS = 2**18
_MOST_CELLS = 2**28  # designs x stages x units, which are looked at together
_LARGEST_WEIGHT = 1e200  # times the farthest encoded value, and added up, it stays finite
_LABEL_TYPE = re.compile(r"\|b1|\|O|[<>|][iu][1248]|[<>]f[248]|[<>]U[1-9]\d{0,5}")


def to_members(deployed: Deployed) -> Members:
    """Return the members of the file of a model."""
    origin, designs, front = deployed.origin, deployed.designs, deployed.front
    if origin.kind not in PARAMETERS:
        raise ModelFileError(f"{origin.kind} cannot be saved; only {' and '.join(PARAMETERS)} can.")
    parameters = dict(origin.parameters)
    if deployed.errors is not None:  # in the order of the classes, whatever form they were given in
        parameters["errors"] = deployed.errors.entries()
    given = {name: f"{name}.skops" if is_estimator(parameters[name]) else None for name in ESTIMATORS & set(parameters)}
    record: dict[str, Any] = {
        "written_by": {"emsco": emsco.__version__, "numpy": np.__version__, "scikit-learn": version("scikit-learn")},
        "classifier": origin.kind,
        "parameters": parameters_to_json(parameters),
        **{name: member for name, member in given.items() if name == "estimator" or member is not None},
        "classes": _classes_to_json(deployed.classes),
        "columns": [_column_to_json(code) for code in deployed.encoder.codes],
        "named": deployed.named,
        "feature_names_in": origin.names_are_text,
        "prices": price_list_to_json(deployed.prices),
        "evaluation": evaluation_to_json(deployed.evaluation, designs, deployed.classes.size, deployed.branches),
        "notes": _notes(deployed.notes),
    }
    if deployed.policy.set_aside is not None:
        record["promises"] = [promise_to_json(promise) for promise in deployed.promises]
    if deployed.errors is not None and (at_risk := deployed.errors.at_risk) is not None:
        record["amounts"] = {"mean": at_risk.mean, "largest": at_risk.largest}
    if any(deployed.branches):
        record["branches"] = branches_to_json(deployed.branches)
    if deployed.savings:
        record["savings"] = savings_to_json(deployed.savings)
    arrays: dict[str, NDArray[Any]] = {"designs": designs}
    if front is not None:
        more, found = _front_to_json(deployed, front)
        record |= more
        arrays |= found
    sets, keys = needed_sets(designs, deployed.branches)
    if not sets[0].any():  # the empty design: a constant, which comes first
        constant = deployed.models[keys[0]]
        assert isinstance(constant, LogisticModel)
        arrays["constant"], keys = constant.intercept_, keys[1:]
    kind, weights, members = _models_to_members([deployed.models[key] for key in keys])
    record["models"] = kind
    arrays |= weights
    for name, member in given.items():
        if member is not None:
            members[member] = estimators.to_bytes(parameters[name])
    members |= {f"arrays/{name}.npy": container.array_to_bytes(array) for name, array in arrays.items()}
    return {"model.json": container.to_json(record), **members}


def _front_to_json(deployed: Deployed, front: Front) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return what a search found, and how, as fields and arrays."""
    origin = deployed.origin
    record = {
        "point": deployed.point,
        "chosen": deployed.chosen,
        "n_samples": front.n_samples,
        "certificate": None if front.certificate is None else asdict(front.certificate),
        "objectives": _objectives_to_json(front),
        "search": search_to_json(origin.search),
        "learning": {
            "encoding": origin.encoding, "C": origin.C, "validation": origin.validation, "finished": origin.finished,
            "learner": origin.learner, "retrained": origin.retrained, "other_thresholds": origin.other_thresholds,
        },
        "timed_out": list(origin.timed_out),
        "preset": parameters_to_json(origin.preset),
        "search_seconds": origin.search_seconds,
        "n_generations": origin.n_generations,
        "n_feature_sets": origin.n_feature_sets,
    }  # fmt: skip
    arrays = {name: getattr(front, name) for name in (*_FIGURES, "n_ties", "reached")}
    arrays["history"] = origin.history
    if record["objectives"] is not None:
        arrays["values"] = front.values
    if front.thresholds is not None:
        arrays["thresholds"] = front.thresholds
    more, counts = by_class_to_json(front)
    return record | more, arrays | counts


def _models_to_members(models: list[StageModel]) -> tuple[str, dict[str, NDArray[Any]], Members]:
    """Return how the models are kept: as weights in arrays, or each as a member."""
    logistic = [model for model in models if isinstance(model, LogisticModel)]
    if len(logistic) < len(models):
        return "skops", {}, {f"models/{i}.skops": estimators.to_bytes(model) for i, model in enumerate(models)}
    weights = np.concatenate([model.coef_.ravel() for model in logistic])
    return "logistic", {"weights": weights, "intercepts": np.array([model.intercept_ for model in logistic])}, {}


def from_members(members: Mapping[str, bytes]) -> Deployed:
    """Return the model of a file."""
    return _Reading(members).deployed()


class _Reading:
    """One file being read; ``left`` holds the members nobody has asked for."""

    def __init__(self, members: Mapping[str, bytes]) -> None:
        self.left = dict(members)
        self.record = Fields(container.from_json(self.member("model.json"), "model.json"), "model.json")

    def member(self, name: str) -> bytes:
        if name not in self.left:
            raise damaged(f"{name} is missing")
        return self.left.pop(name)

    def array(self, name: str, dtype: str, *shape: int | None) -> NDArray[Any]:
        return container.array_from_bytes(self.member(f"arrays/{name}.npy"), name, dtype, shape)

    def deployed(self) -> Deployed:
        record = self.record
        kind = record.text("classifier")
        if kind not in PARAMETERS:
            record.refuse("classifier", f"one of {', '.join(PARAMETERS)}")
        searched = kind == SEARCHED
        parameters = self.parameters(kind)
        classes = _classes_from_json(record.part("classes"))
        encoder = _encoder(record)
        prices = _price_list(record, len(encoder.codes))
        designs = self.designs(prices)
        if not searched and len(designs) > 1:
            raise damaged("a classifier of a given design has several")
        branches = branches_from_json(record, designs, encoder, prices, classes.size) if searched else ()
        models = self.models(designs, branches, encoder, prices, classes.size)
        front = self.front(designs, branches, prices, classes) if searched else None
        origin = self.origin(kind, parameters)
        threshold = parameters["threshold"]
        if threshold is None:
            threshold = origin.preset.get("threshold")
        policy, rules, promises = self.rules(threshold, classes, designs, front)
        errors = None
        if parameters.get("errors") is not None:
            try:
                errors = resolve_errors(parameters["errors"], classes)
                if errors.at_risk is not None:
                    if errors.at_risk.column not in [code.name for code in encoder.codes]:
                        raise damaged("prices of errors depend on a column that is not there")
                    amounts = record.part("amounts")
                    errors = errors.scaled(amounts.number("mean", 0), amounts.number("largest", 0))
            except EmscoError as error:
                raise damaged(str(error).rstrip(".")) from error
        last = len(designs) - 1
        point = record.whole("point", most=last) if searched else 0
        evaluation = evaluation_from_json(record, designs, classes, front, point, branches)
        deployed = Deployed(
            classes=classes,
            encoder=encoder,
            named=record.flag("named"),
            prices=prices,
            designs=designs,
            models=models,
            policy=policy,
            rules=rules,
            origin=origin,
            point=point,
            chosen=record.whole("chosen", most=last) if "chosen" in record else point,
            front=front,
            promises=promises,
            evaluation=evaluation if evaluation is None else replace(evaluation, errors=errors),
            notes=record.part("notes").plain(),
            errors=errors,
            savings=savings_from_json(record, designs, branches) if errors is not None else (),
        )
        if self.left:
            raise damaged(f"nothing refers to {shown(sorted(self.left))}")
        return deployed

    def parameters(self, kind: str) -> dict[str, Any]:
        """Return all parameters of the estimator; those that an older file lacks have their defaults."""
        record, known = self.record, PARAMETERS[kind]
        parameters = {**known, **parameters_from_json(record.part("parameters"), known)}
        for name in sorted(ESTIMATORS & set(known)):
            if record.raw(name) if name == "estimator" or name in record else None:
                parameters[name] = estimators.from_bytes(self.member(f"{name}.skops"), f"{name}.skops")
        return parameters

    def rules(
        self, threshold: Any, classes: NDArray[Any], designs: IntArray, front: Front | None
    ) -> tuple[ThresholdPolicy, tuple[RejectRule, ...], tuple[Promise, ...]]:
        """Return what the threshold means, the rule of each point, and what was promised of it."""
        own = None if front is None else front.thresholds
        promises: tuple[Promise, ...] = ()
        try:
            policy = policy_of(threshold)
            if policy.set_aside is not None:
                promises = promises_from_json(self.record, policy.threshold, plain_classes(classes), len(designs))
            if policy.tunes and own is None:
                raise damaged("thresholds of the front are missing")
            return policy, policy.rules(classes, designs, own, promises), promises
        except ModelFileError:
            raise
        except EmscoError as error:
            raise damaged(str(error).rstrip(".")) from error

    def origin(self, kind: str, parameters: dict[str, Any]) -> Origin:
        """Return how the model came about."""
        record = self.record
        names = record.flag("feature_names_in")
        if kind != SEARCHED:
            encoding, C = parameters["encoding"], float(parameters["C"])
            return Origin(kind, parameters, encoding=encoding, C=C, names_are_text=names)
        preset = preset_from_json(record.part("preset")) if "preset" in record else {}
        return Origin(
            kind=kind,
            parameters=parameters,
            preset=preset,
            **_learning(record),
            search=check_search(record.part("search")),
            search_seconds=record.number("search_seconds", 0),
            n_generations=record.whole("n_generations"),
            n_feature_sets=record.whole("n_feature_sets"),
            history=self.array("history", "<i8", None, 3),
            names_are_text=names,
            timed_out=record.texts("timed_out") if "timed_out" in record else (),
        )

    def designs(self, prices: PriceList) -> IntArray:
        designs = self.array("designs", "<i8", None, prices.n_units)
        if len(designs) > _MOST_DESIGNS:
            raise ModelFileError(f"the file has {len(designs):,} designs; the limit is {_MOST_DESIGNS:,}.")
        if not len(designs) or not -1 <= designs.min() <= designs.max() < prices.n_units:
            raise damaged("designs hold stages that there cannot be")
        if designs.size * (int(designs.max()) + 1) > _MOST_CELLS:
            raise ModelFileError(f"{len(designs):,} designs of {prices.n_units:,} units are more than can be read.")
        try:
            empty = (designs < 0).all(axis=1) & (self.record.part("parameters").plain().get("errors") is not None)
            for design in designs[~are_designs(designs) & ~empty]:
                check_design(design, prices.unit_names)  # says what is wrong
        except EmscoError as error:
            raise damaged(str(error).rstrip(".")) from error
        return designs

    def models(
        self, designs: IntArray, branches: Points, encoder: Encoder, prices: PriceList, n_classes: int
    ) -> dict[bytes, StageModel]:
        """Return the models of the feature sets that the designs need; these come in the order of the sets."""
        (sets, keys), constant = needed_sets(designs, branches), {}
        n_logits = 1 if n_classes == 2 else n_classes
        if not sets[0].any():
            intercept = self.array("constant", "<f8", n_logits)
            if not (np.abs(intercept) <= _LARGEST_WEIGHT).all():
                raise damaged("weights are not finite")
            constant, sets = {keys.pop(0): LogisticModel(np.zeros((n_logits, 0)), intercept)}, sets[1:]
        widths = (sets @ unit_membership(encoder, prices)).sum(axis=1).tolist()
        models: list[StageModel]
        if self.record.text("models") == "logistic":
            weights = self.array("weights", "<f8", n_logits * sum(widths))
            intercepts = self.array("intercepts", "<f8", len(sets), n_logits)
            if not all((np.abs(numbers) <= _LARGEST_WEIGHT).all() for numbers in (weights, intercepts)):
                raise damaged("weights are not finite")
            parts = np.split(weights, n_logits * np.cumsum(widths)[:-1])
            models = [LogisticModel(w.reshape(n_logits, -1), b) for w, b in zip(parts, intercepts, strict=True)]
        elif self.record.text("models") == "skops":
            models = []
            for i, width in enumerate(widths):
                name = f"models/{i}.skops"
                models.append(estimators.from_bytes(self.member(name), name))
                estimators.check_model(models[-1], name, n_columns=width, n_classes=n_classes)
        else:
            self.record.refuse("models", "logistic or skops")
        return constant | dict(zip(keys, models, strict=True))

    def front(self, designs: IntArray, branches: Points, prices: PriceList, classes: NDArray[Any]) -> Front:
        n = len(designs)
        n_samples = self.record.whole("n_samples", 1)
        figures: dict[str, Any] = {name: self.array(name, "<f8", n) for name in _FIGURES}
        n_ties, reached = self.array("n_ties", "<i8", n), self.array("reached", "<i8", n, None)
        shares = (figures["coverage"], figures["accuracy"][~np.isnan(figures["accuracy"])])
        sound = (
            all(((share >= 0) & (share <= 1)).all() for share in shares)
            and all(np.isfinite(figures[name]).all() and figures[name].min() >= 0 for name in ("mean_cost", "fitness"))
            and n_ties.min() >= 1
            and reached.shape[1] > designs.max()
            and 0 <= reached.min() <= reached.max() <= n_samples
        )
        if not sound:
            raise damaged("figures of the front are out of range")
        certificate = None
        if self.record.raw("certificate") is not None:
            part = self.record.part("certificate")
            counts = {name: part.whole(name, most=10**100) for name in ("n_designs", "n_walked", "n_ruled_out")}
            certificate = Certificate(**counts, seconds=part.number("seconds", 0), proven=part.flag("proven"))
        check_figures(branches, figures, reached, n_samples)
        paid = front_paid(designs, branches, prices, reached.shape[1])
        objectives, maximise, values = self.objectives(figures)
        thresholds = self.array("thresholds", "<f8", n, None) if "arrays/thresholds.npy" in self.left else None
        if thresholds is not None and not (
            ((thresholds >= 0) & (thresholds <= 1)).all() and 2 <= thresholds.shape[1] <= max(prices.n_units, 2)
        ):
            raise damaged("thresholds of the front are no probabilities")
        for array in (designs, *figures.values(), n_ties, reached, paid, values):
            array.setflags(write=False)
        ties = tuple(designs[i : i + 1] for i in range(n))
        names = prices.unit_names
        return Front(designs, **figures, n_ties=n_ties, ties=ties, feature_names=names, n_samples=n_samples,
                     reached=reached, paid=paid, total_price=prices.total, objectives=objectives, maximise=maximise,
                     values=values, certificate=certificate, thresholds=thresholds,
                     classes=tuple(plain_classes(classes)), branched=branches,
                     **by_class(self, figures, n_samples, classes.size))  # fmt: skip

    def objectives(self, figures: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[bool, ...], NDArray[Any]]:
        """Return names, directions and values of the objectives; those of the paper are not in the file again."""
        three = {"coverage": figures["coverage"], "accuracy": figures["accuracy"], "cost": figures["mean_cost"]}
        if "objectives" not in self.record or self.record.raw("objectives") is None:  # older files have no such field
            return PAPER, PAPER_MAXIMISE, np.column_stack(list(three.values()))
        parts = self.record.parts("objectives")
        names, maximise = tuple(p.text("name") for p in parts), tuple(p.flag("maximise") for p in parts)
        values = self.array("values", "<f8", len(figures["coverage"]), len(parts))
        sound = 2 <= len(parts) == len(set(names)) and all(name.strip() and name.isprintable() for name in names)
        for name, up, column in zip(names, maximise, values.T, strict=True):
            if name in three:
                sound &= np.array_equal(column, three[name], equal_nan=True) and up == (name != "cost")
            else:
                sound &= bool(np.isfinite(column).all())
        if not sound:
            raise damaged("the objectives of the front are out of range")
        return names, maximise, values


def _objectives_to_json(front: Front) -> list[dict[str, Any]] | None:
    if front.objectives == PAPER:
        return None
    return [{"name": n, "maximise": up} for n, up in zip(front.objectives, front.maximise, strict=True)]


def _classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    labels = classes.tolist()
    if not _LABEL_TYPE.fullmatch(classes.dtype.str) or not all(isinstance(v, bool | int | float | str) for v in labels):
        raise ModelFileError(f"labels of type {classes.dtype} cannot be saved; use text, numbers or booleans.")
    return {"dtype": classes.dtype.str, "labels": labels}


def _classes_from_json(record: Fields) -> NDArray[Any]:
    dtype, labels = record.text("dtype"), record.items("labels")
    if not _LABEL_TYPE.fullmatch(dtype) or not 2 <= len(labels) <= _MOST_CLASSES:
        raise damaged(f"{len(labels)} labels of type {shown(dtype)}")
    wanted = {"b": bool, "i": int, "u": int, "f": float, "U": str}.get(np.dtype(dtype).kind)
    if not all(type(v) is wanted if wanted else isinstance(v, bool | int | float | str) for v in labels):
        record.refuse("labels", f"labels of type {dtype}")
    try:
        classes = np.array(labels, dtype=dtype)
        sound = classes.tolist() == labels and bool((classes[:-1] < classes[1:]).all())
    except (ValueError, TypeError, OverflowError) as error:
        raise damaged(f"the labels cannot be read ({error})") from error
    if not sound:
        record.refuse("labels", "distinct labels in order")
    return classes


def _column_to_json(code: ColumnCode) -> dict[str, Any]:
    if isinstance(code, NumberCode):
        return {"kind": "curves" if isinstance(code, CurveCode) else "number", **asdict(code)}
    rare = sorted(code.rare, key=lambda c: (c is None, c or ""))
    return {"kind": "category", "name": code.name, "categories": list(code.categories), "rare": rare}


def _encoder(record: Fields) -> Encoder:
    codes = [_column_from_json(column) for column in record.parts("columns")]
    if not codes or len({code.name for code in codes}) < len(codes):
        raise damaged("column names are not distinct")
    return Encoder.of(codes)


def _column_from_json(record: Fields) -> ColumnCode:
    name = record.text("name")
    if record.text("kind") in ("number", "curves"):
        scale = record.number("inverse_scale", np.nextafter(0, 1))
        line = NumberCode(name, record.number("mean"), scale, record.flag("flags_missing"))
        return _curves(record, line) if record.text("kind") == "curves" else line
    if record.text("kind") != "category":
        record.refuse("kind", "number, curves or category")
    categories, rare = record.items("categories"), record.items("rare")
    known = [*categories, *rare]
    if not categories or not all(c is None or isinstance(c, str) for c in known) or len(set(known)) < len(known):
        raise damaged(f"the categories of {shown(name)} are not distinct texts")
    return CategoryCode(name, tuple(categories), bool(rare), frozenset(rare))


def _curves(record: Fields, line: NumberCode) -> CurveCode:
    knots = record.numbers("knots")
    curves = [Fields({"curve": curve}, "curves").numbers("curve", FARTHEST) for curve in record.items("curves")]
    at_zero = None if record.raw("at_zero") is None else record.numbers("at_zero", FARTHEST)
    sound = len(knots) > 1 and all(a < b for a, b in pairwise(knots)) and np.isfinite(knots[-1] - knots[0])
    if not sound or not curves or any(len(curve) != len(knots) for curve in curves):
        raise damaged(f"the curves of {shown(line.name)} are not values at increasing knots")
    if at_zero is not None and len(at_zero) != len(curves):
        raise damaged(f"the curves of {shown(line.name)} have {len(at_zero)} values at zero")
    shared = (line.name, line.mean, line.inverse_scale, line.flags_missing)
    return CurveCode(*shared, knots, tuple(curves), at_zero)


def _learning(record: Fields) -> dict[str, Any]:
    """Return how the stages learned and how rows were judged, as fields of an origin; older files say less."""
    if "learning" not in record:
        return {}
    learning = record.part("learning")
    encoding, C = learning.text("encoding"), learning.number("C", np.nextafter(0, 1))
    if encoding not in (*ENCODINGS, RAW):
        learning.refuse("encoding", f"one of {', '.join((*ENCODINGS, RAW))}")
    validation = learning.raw("validation") if "validation" in learning else None
    if isinstance(validation, int):
        validation = learning.whole("validation", 2)
    elif isinstance(validation, float):
        validation = learning.number("validation", 0, 1)
    elif validation not in (None, "given"):
        learning.refuse("validation", "a number of folds, a share or given")
    learner = learning.raw("learner") if "learner" in learning else None
    if learner is not None and learner not in (*BOOSTED, TREE):
        learning.refuse("learner", f"one of {', '.join((*BOOSTED, TREE))}")
    flags = {name: learning.flag(name) for name in ("finished", "retrained", "other_thresholds") if name in learning}
    return {"encoding": encoding, "C": C, "validation": validation, "learner": learner, **flags}


def _price_list(record: Fields, n_columns: int) -> PriceList:
    """Return the prices of a file's columns; the columns go by their positions."""
    try:
        prices = resolve(prices_from_json(record.part("prices")), [str(i) for i in range(n_columns)])
    except EmscoError as error:
        raise damaged(str(error).rstrip(".")) from error
    if list(prices.unit_names) != list(record.part("prices").part("units")):
        raise damaged("the units are not in the order of their columns")
    return prices


def _notes(notes: Any) -> dict[str, Any]:
    try:
        if not isinstance(notes, dict) or container.depth(notes) >= container.MAX_JSON_DEPTH:
            raise TypeError("it is not a dict of JSON's kinds")
        container.to_json(notes)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidParameterError(
            f"notes must be a dict of text, numbers, lists and dicts, as JSON has them; got {shown(notes)}: {error}."
        ) from error
    return notes
