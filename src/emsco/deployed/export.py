"""A trained design as ONNX graphs, one per stage, and a manifest that says how to walk them. ``docs/onnx.md`` explains.

A graph takes the columns owned at its stage as users have them and does the encoding itself, so that whoever runs it
needs neither this package nor Python.
"""

from collections.abc import Iterator
from importlib import import_module
from itertools import chain, count
import json
from os import PathLike
from pathlib import Path
from typing import Any
import warnings

import numpy as np
from numpy.typing import NDArray

from emsco.data.encoding import FARTHEST, CategoryCode, ColumnCode, CurveCode, Encoder, NumberCode
from emsco.data.output import write_atomically
from emsco.deployed.decide import Stage, TrainedCascade
from emsco.deployed.model import Deployed
from emsco.exceptions import ExportError, InvalidParameterError, MissingDependencyError, shown
from emsco.prices.errors import ErrorPrices
from emsco.scoring.rejection import RejectRule
from emsco.stages.logistic import LogisticModel

FORMAT, VERSION = "emsco-onnx", 1
BRANCHED_VERSION = 2  # of a manifest with branches, which readers of the first version must refuse
_OPSET, _ML_OPSET, _IR = 18, 3, 8
_AXES_ARE_INPUTS = 18  # from this opset on
_PROBES = 200  # rows on which a graph must agree with us
_TOLERANCE = {"float64": 1e-10, "float32": 1e-5}


def export_onnx(model: Deployed, folder: str | PathLike[str]) -> None:
    """Write the design in use of a classifier; see ``EMSCOClassifier.export_onnx``."""
    if not isinstance(folder, str | PathLike):
        raise InvalidParameterError(f"folder must be text or a path; got {folder!r}.")
    errors = model.errors
    _check_priced(model)
    graphs: dict[str, bytes] = {}
    classes = model.classes.tolist()
    manifest: dict[str, Any] = {"format": FORMAT, "version": VERSION, "threshold": None, "classes": classes}
    if model.branched is None:
        manifest["threshold"] = model.rule.number
        manifest["stages"] = _stages(model, model.cascade, model.rule, graphs)
    else:
        parts = enumerate(zip(model.words, model.tree.chains, model.branched.rules, strict=True))
        manifest["version"] = BRANCHED_VERSION
        manifest["route"] = _route(model)
        manifest["branches"] = [
            {"words": words, "stages": _stages(model, part, rule, graphs, f"branch-{b}-")}
            for b, (words, part, rule) in parts
        ]
    if errors is not None:
        no_answer = None if errors.no_answer is None else errors.n_classes
        manifest["errors"] = {"prices": errors.table.tolist(), "largest": errors.largest, "no_answer": no_answer}
    target = Path(folder)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExportError(f"the folder {str(target)!r} cannot be made: {error}.") from error
    described = json.dumps(manifest, allow_nan=False, indent=1).encode()
    for name, data in {**graphs, "manifest.json": described}.items():  # the manifest last: it names the others
        write_atomically(target / name, data, ExportError)


def _stages(
    model: Deployed, cascade: TrainedCascade, rule: RejectRule, graphs: dict[str, bytes], prefix: str = ""
) -> list[dict[str, Any]]:
    """Return a record per stage of a chain, and add its graphs; all branches share the graph of the root."""
    encoder, errors, bars = model.encoder, model.errors, rule.matrix(len(cascade.stages))
    stages: list[dict[str, Any]] = []
    columns: list[int] = []
    for number, (stage, paid) in enumerate(zip(cascade.stages, cascade.paid.tolist(), strict=True)):
        columns = sorted([*columns, *stage.new_columns])
        name = f"{prefix if number else ''}stage-{number}.onnx"
        precision = "float64" if isinstance(stage.model, LogisticModel) else "float32"
        if name not in graphs:
            graphs[name] = _graph(encoder, columns, stage, precision, errors)
            _check(graphs[name], encoder, columns, stage, precision, errors)
        stages.append(
            {
                "features": list(stage.features),
                "columns": [encoder.codes[c].name for c in stage.new_columns],
                "price": stage.price,
                "paid": paid,
                "thresholds": np.broadcast_to(
                    bars[number], errors.n_answers if errors else model.classes.size
                ).tolist(),
                "graph": name,
                "precision": precision,
                "inputs": [{"input": _input(c), **_describe(encoder.codes[c])} for c in columns],
            }
        )
    return stages


def _route(model: Deployed) -> dict[str, Any]:
    """Return which branch a case takes, for programs that walk the manifest."""
    assert model.branched is not None
    route = model.branched.route
    return {
        "kind": route.kind,
        "columns": [model.column_names[c] for c in route.columns],
        "groups": [list(group) for group in route.groups],
        "cuts": list(route.cuts),
        "default": route.default,
    }


def _check_priced(model: Deployed) -> None:
    """Raise for a model with prices of errors that graphs of columns cannot stand for."""
    errors = model.errors
    if errors is not None and errors.at_risk is not None:
        raise ExportError(
            f"prices of errors grow with the column {errors.at_risk.column!r}, which the graphs do not know; save the "
            "model and use emsco.load."
        )
    if not model.stages[0].features:
        raise ExportError("the design in use buys nothing: there is no graph to write; use another point.")


class _Builder:
    """Nodes of a graph as they are made; every value gets a name of its own."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, *inputs: str, to: str | None = None, domain: str = "", **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        from onnx import helper

        output = to or f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **attributes))
        return output

    def cast(self, value: str, kind: str, to: str | None = None) -> str:
        """Append a change of type and return the name of its output."""
        from onnx import TensorProto, helper

        output = to or f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node("Cast", [value], [output], to=getattr(TensorProto, kind)))
        return output

    def constant(self, value: Any) -> str:
        """Return the name of a constant."""
        from onnx import numpy_helper

        self.constants.append(numpy_helper.from_array(np.asarray(value), f"constant_{len(self.constants)}"))
        return str(self.constants[-1].name)


def _graph(
    encoder: Encoder, columns: list[int], stage: Stage, precision: str, errors: ErrorPrices | None = None
) -> bytes:
    """Return the graph of a stage: raw columns in, probabilities, confidence and label out."""
    onnx = _package("onnx")
    from onnx import TensorProto, helper

    builder = _Builder()
    pieces = [piece for c in columns for piece in _encode(builder, encoder.codes[c], _input(c))]
    encoded = builder.add("Concat", *pieces, axis=1)
    opset = _OPSET
    if isinstance(stage.model, LogisticModel):
        n_classes = len(stage.model.classes_)
        _add_logistic(builder, stage.model, encoded)
    else:
        n_classes, opset = _add_estimator(builder, stage.model, encoded, len(stage.encoded_columns))
    if errors is None:
        _reduce(builder, "ReduceMax", "probabilities", opset, to="confidence")
        builder.add("ArgMax", "probabilities", to="label", axis=1, keepdims=0)
    else:
        _add_least_price(builder, errors, opset)
    kinds = {c: TensorProto.DOUBLE if isinstance(encoder.codes[c], NumberCode) else TensorProto.STRING for c in columns}
    graph = helper.make_graph(
        builder.nodes,
        "stage",
        [helper.make_tensor_value_info(_input(c), kinds[c], ["rows", 1]) for c in columns],
        [
            helper.make_tensor_value_info("probabilities", TensorProto.DOUBLE, ["rows", n_classes]),
            helper.make_tensor_value_info("confidence", TensorProto.DOUBLE, ["rows"]),
            helper.make_tensor_value_info("label", TensorProto.INT64, ["rows"]),
        ],
        builder.constants,
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR, producer_name="emsco")
    onnx.checker.check_model(model, full_check=True)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _reduce(builder: _Builder, operator: str, value: str, opset: int, to: str | None = None) -> str:
    """Add the largest or least value of each row, and return its name."""
    if opset < _AXES_ARE_INPUTS:
        return builder.add(operator, value, to=to, axes=[1], keepdims=0)
    return builder.add(operator, value, builder.constant([1]), to=to, keepdims=0)


def _add_least_price(builder: _Builder, errors: ErrorPrices, opset: int) -> None:
    """Add the answer of least expected price, and 1 - that price / the largest one as its confidence."""
    prices = builder.add("MatMul", "probabilities", builder.constant(np.array(errors.table)))
    builder.add("ArgMin", prices, to="label", axis=1, keepdims=0)
    least = _reduce(builder, "ReduceMin", prices, opset)
    share = builder.add("Div", least, builder.constant(errors.largest))
    rest = builder.add("Sub", builder.constant(1.0), share)
    builder.add("Clip", rest, builder.constant(0.0), builder.constant(1.0), to="confidence")


def _encode(builder: _Builder, code: ColumnCode, column: str) -> Iterator[str]:
    """Yield the encoded columns of one raw column, each (rows, width), as ``encoding`` makes them."""
    if isinstance(code, CategoryCode):
        marker = _missing_marker(code)
        number = builder.add(
            "LabelEncoder",
            column,
            domain="ai.onnx.ml",
            keys_strings=[marker if key is None else key for key in code.positions],
            values_int64s=list(code.positions.values()),
            default_int64=-1,
        )
        same = builder.add("Equal", number, builder.constant(np.arange(len(code.names))[None]))
        yield builder.cast(same, "DOUBLE")
        return
    if isinstance(code, CurveCode):
        yield from _encode_curves(builder, code, column)
        return
    deviation = builder.add("Sub", column, builder.constant(code.mean))
    scaled = builder.add("Mul", deviation, builder.constant(code.inverse_scale))
    near = builder.add("Clip", scaled, builder.constant(-FARTHEST), builder.constant(FARTHEST))
    missing = builder.add("IsNaN", column)
    yield builder.add("Where", missing, builder.constant(0.0), near)
    if code.missing_at is not None:
        yield builder.cast(missing, "DOUBLE")


def _encode_curves(builder: _Builder, code: CurveCode, column: str) -> Iterator[str]:
    """Yield curves as sums over the pieces between two knots: the share of each that is passed, times its rise."""
    knots, curves = np.array(code.knots), np.array(code.curves)
    missing = builder.add("IsNaN", column)
    known = builder.add("Where", missing, builder.constant(knots[0]), column)
    begun = builder.add("Max", known, builder.constant(knots[None, :-1]))
    within = builder.add("Min", begun, builder.constant(knots[None, 1:]))
    passed = builder.add("Sub", within, builder.constant(knots[None, :-1]))
    share = builder.add("Div", passed, builder.constant(np.diff(knots)[None]))
    risen = builder.add("MatMul", share, builder.constant(np.diff(curves, axis=1).T))
    encoded = builder.add("Add", risen, builder.constant(curves[None, :, 0]))
    if code.at_zero is not None:
        is_zero = builder.add("Equal", known, builder.constant(0.0))
        encoded = builder.add("Where", is_zero, builder.constant(np.array([code.at_zero])), encoded)
    yield builder.add("Where", missing, builder.constant(0.0), encoded)
    if code.missing_at is not None:
        yield builder.cast(missing, "DOUBLE")


def _add_logistic(builder: _Builder, model: LogisticModel, encoded: str) -> None:
    products = builder.add("MatMul", encoded, builder.constant(model.coef_.T))
    margins = builder.add("Add", products, builder.constant(model.intercept_))
    if len(model.intercept_) > 1:
        builder.add("Softmax", margins, to="probabilities", axis=1)
        return
    second = builder.add("Sigmoid", margins)
    first = builder.add("Sub", builder.constant(1.0), second)
    builder.add("Concat", first, second, to="probabilities", axis=1)


def _add_estimator(builder: _Builder, model: Any, encoded: str, n_columns: int) -> tuple[int, int]:
    """Add what skl2onnx makes of an estimator, in single precision; return the number of classes and the opset."""
    _package("skl2onnx")
    from onnx import compose
    from skl2onnx import convert_sklearn
    from skl2onnx.common.data_types import FloatTensorType

    name = type(model).__name__
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of packages newer than skl2onnx has seen; the graph is checked below
            converted = convert_sklearn(
                model,
                initial_types=[("encoded", FloatTensorType([None, n_columns]))],
                options={"zipmap": False},
                target_opset={"": _OPSET, "ai.onnx.ml": _ML_OPSET},
            )
    except Exception as error:  # skl2onnx raises whatever stopped it
        raise ExportError(
            f"skl2onnx cannot convert {name} ({type(error).__name__}: {shown(str(error))}); export a classifier with "
            "another estimator, such as the default one."
        ) from error
    converted = compose.add_prefix(converted, "model/")
    builder.cast(encoded, "FLOAT", to="model/encoded")
    builder.nodes += converted.graph.node
    builder.constants += converted.graph.initializer
    builder.cast(converted.graph.output[1].name, "DOUBLE", to="probabilities")
    opset = max((entry.version for entry in converted.opset_import if not entry.domain), default=_OPSET)
    return len(model.classes_), opset


def _check(
    data: bytes,
    encoder: Encoder,
    columns: list[int],
    stage: Stage,
    precision: str,
    errors: ErrorPrices | None = None,
) -> None:
    """Raise unless a graph gives our probabilities of rows like those of training, missing and unseen values included.

    Behind single precision, ours are those of encoded columns rounded as the graph rounds them.
    """
    rng = np.random.default_rng(0)
    Z = np.empty((encoder.n_encoded, _PROBES))
    feeds = {}
    for c in columns:
        code = encoder.codes[c]
        values = _probes(code, rng)
        encoder.encode_column(c, values, slice(None), Z)
        if isinstance(code, CategoryCode):
            marker = _missing_marker(code)
            values = np.array([marker if value is None else value for value in values], dtype=object)
        feeds[_input(c)] = values[:, None]
    inputs = Z[stage.encoded_columns].astype(precision).astype(np.float64).T
    expected = stage.model.predict_proba(inputs)
    runtime = _package("onnxruntime")
    options = runtime.SessionOptions()
    options.log_severity_level = 3  # errors
    try:
        session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        probabilities, confidence, label = session.run(None, feeds)
    except Exception as error:  # onnxruntime has errors of its own
        raise ExportError(f"onnxruntime cannot run the graph of {stage!r}: {error}") from error
    if probabilities.shape == expected.shape:
        worst = float(np.abs(probabilities - expected).max())
        if errors is None:
            same = (confidence == probabilities.max(axis=1)).all() and (label == probabilities.argmax(axis=1)).all()
        else:  # two answers may be of one price, but for rounding
            prices = probabilities @ errors.table
            given = np.take_along_axis(prices, label[:, None], axis=1)[:, 0]
            near = _TOLERANCE["float64"] * errors.largest
            same = (given <= prices.min(axis=1) + near).all()
            same &= np.abs(errors.expected(confidence) - prices.min(axis=1)).max() <= near
        if worst <= _TOLERANCE[precision] and same:
            return
    else:
        worst = np.inf
    raise ExportError(
        f"the graph of {type(stage.model).__name__} gives probabilities up to {worst:.2g} away from ours; nothing was "
        "written. Export a classifier with another estimator, such as the default one."
    )


def _probes(code: ColumnCode, rng: np.random.Generator) -> NDArray[Any]:
    missing = rng.random(_PROBES) < 0.2
    if isinstance(code, NumberCode):
        numbers = code.mean + rng.normal(scale=2.0, size=_PROBES) / code.inverse_scale
        if isinstance(code, CurveCode) and code.at_zero is not None:
            numbers[rng.random(_PROBES) < 0.2] = 0.0
        return np.where(missing, np.nan, numbers)
    known = sorted(c for c in (*code.categories, *code.rare) if c is not None)
    texts = np.array([*known, "never seen before"], dtype=object)[rng.integers(len(known) + 1, size=_PROBES)]
    texts[missing] = None
    return texts


def _describe(code: ColumnCode) -> dict[str, Any]:
    if isinstance(code, NumberCode):
        return {"column": code.name, "kind": "number", "missing": "NaN"}
    return {
        "column": code.name,
        "kind": "text",
        "categories": [c for c in code.categories if c is not None],
        "rare": sorted(c for c in code.rare if c is not None),
        "missing": _missing_marker(code),
    }


def _missing_marker(code: CategoryCode) -> str:
    """Return the text that stands for a missing value: empty, unless that is a category."""
    known = {*code.categories, *code.rare}
    return next(text for text in chain([""], (f"missing {i}" for i in count())) if text not in known)


def _input(column: int) -> str:
    return f"column_{column}"


def _package(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(f"export_onnx needs {name}: pip install 'emsco[onnx]'.") from error
