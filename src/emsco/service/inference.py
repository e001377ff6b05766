"""The Open Inference Protocol, version 2: a tensor per column in, a tensor per figure out; also in binary."""

from collections.abc import Mapping, Sequence
import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco import __version__
from emsco.data.encoding import NumberCode
from emsco.deployed.decide import Decisions
from emsco.deployed.streaming import INCONCLUSIVE
from emsco.exceptions import shown
from emsco.service.bodies import JSON, as_shape, check_number, check_texts, parse_json
from emsco.service.problems import ProblemError
from emsco.service.settings import Limits
from emsco.service.shapes import InferRequest, Tensor
from emsco.service.shelf import Served
from emsco.service.tables import check_names, table_of

BINARY = "application/octet-stream"
HEADER_LENGTH = "inference-header-content-length"
_TEXT = "BYTES"
_TYPES = {
    "BOOL": "?", "UINT8": "<u1", "UINT16": "<u2", "UINT32": "<u4", "UINT64": "<u8", "INT8": "<i1", "INT16": "<i2",
    "INT32": "<i4", "INT64": "<i8", "FP16": "<f2", "FP32": "<f4", "FP64": "<f8",
}  # fmt: skip
OUTPUTS = {
    "label": _TEXT, "best_guess": _TEXT, "conclusive": "BOOL", "confidence": "FP64", "stage": "INT64", "cost": "FP64",
}  # fmt: skip
_LENGTH = struct.Struct("<I")  # before each text of a binary tensor

SERVER = {"name": "emsco", "version": __version__, "extensions": ["binary_tensor_data"]}


def metadata(served: Served) -> dict[str, Any]:
    """Return what the protocol wants to know of a model: the columns that it buys, and its outputs."""
    model = served.model
    bought = sorted(c for stage in model.stages for c in stage.new_columns)
    codes = [model.encoder.codes[c] for c in bought]
    kinds = [(code.name, "FP64" if isinstance(code, NumberCode) else _TEXT) for code in codes]
    return {
        "name": served.name,
        "versions": [served.version],
        "platform": "emsco",
        "inputs": [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in kinds],
        "outputs": [{"name": name, "datatype": kind, "shape": [-1]} for name, kind in OUTPUTS.items()],
    }


def read_request(data: bytes, header_length: str | None) -> tuple[InferRequest, memoryview]:
    """Return the JSON part of a request, and the bytes of its binary tensors."""
    if header_length is None:
        return as_shape(parse_json(data), InferRequest), memoryview(b"")
    if not header_length.isdecimal() or int(header_length) > len(data):
        raise ProblemError(400, f"{HEADER_LENGTH} is not the length of the JSON part of the body.")
    n_bytes = int(header_length)
    return as_shape(parse_json(data[:n_bytes]), InferRequest), memoryview(data)[n_bytes:]


def table_from(served: Served, request: InferRequest, rest: memoryview, limits: Limits) -> Any:
    """Return the tensors of a request as an Arrow table."""
    check_number(len(request.inputs), limits.columns, "inputs")
    cells: dict[str, Sequence[Any] | NDArray[Any]] = {}
    n_rows: int | None = None
    for tensor in request.inputs:
        n = tensor.shape[0] if tensor.shape else 0
        check_number(n, limits.rows, "rows")
        if n_rows not in (None, n):
            raise ProblemError(422, f"the input {shown(tensor.name)} has {n} rows, others have {n_rows}.")
        n_rows = n
        values, rest = _values(tensor, rest)
        check_texts(values if isinstance(values, list) else (), limits, "a value")
        for name, column in _columns(served, tensor, values, len(request.inputs)).items():
            if name in cells:
                raise ProblemError(422, f"the input {shown(name)} comes twice; send it once.")
            cells[name] = column
    if len(rest):
        raise ProblemError(422, f"{len(rest):,} bytes after the last binary tensor belong to none.")
    check_names(served, list(cells), limits)
    return table_of(served, cells, n_rows or 0)


def _columns(
    served: Served, tensor: Tensor, values: list[Any] | NDArray[Any], n_inputs: int
) -> dict[str, list[Any] | NDArray[Any]]:
    """Return the columns of a tensor: one, or all of the training table if it is a matrix."""
    if len(tensor.shape) == 1 or (len(tensor.shape) == 2 and tensor.shape[1] == 1 and tensor.name in served.columns):
        return {tensor.name: values}
    width = tensor.shape[1] if len(tensor.shape) == 2 else 0
    if width != len(served.columns) or n_inputs > 1:
        raise ProblemError(
            422,
            f"the input {shown(tensor.name)} has the shape {tensor.shape}; send a tensor of shape [rows] per column, "
            f"or one of shape [rows, {len(served.columns)}] with all columns in the order of training.",
        )
    return {name: values[c::width] for name, c in served.columns.items()}


def _values(tensor: Tensor, rest: memoryview) -> tuple[list[Any] | NDArray[Any], memoryview]:
    """Return the values of a tensor, row after row, and the bytes that are left for the next ones."""
    n = int(np.prod(tensor.shape, dtype=object)) if tensor.shape else 0
    if tensor.datatype != _TEXT and tensor.datatype not in _TYPES:
        raise ProblemError(422, f"the datatype {shown(tensor.datatype)} is none of {', '.join([*_TYPES, _TEXT])}.")
    size = tensor.parameters.get("binary_data_size")
    if size is not None:
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= len(rest):
            raise ProblemError(422, f"the binary tensor {shown(tensor.name)} is not as long as it says.")
        part, rest = rest[:size], rest[size:]
        values = _texts(part, n) if tensor.datatype == _TEXT else _numbers(part, _TYPES[tensor.datatype], n)
        if values is not None:
            return values, rest
    else:
        flat = _flat(tensor.data or [], len(tensor.shape))
        if flat is not None and len(flat) == n:
            return _checked(tensor, flat), rest
    raise ProblemError(422, f"the data of {shown(tensor.name)} do not have the shape {tensor.shape}.")


def _numbers(data: memoryview, kind: str, n: int) -> NDArray[Any] | None:
    return np.frombuffer(data, kind) if len(data) == n * np.dtype(kind).itemsize else None


def _texts(data: memoryview, n: int) -> list[Any] | None:
    """Return texts, each after its length; None if these are not n."""
    texts: list[str] = []
    at = 0
    while at + _LENGTH.size <= len(data) and len(texts) < n:
        (length,) = _LENGTH.unpack_from(data, at)
        at += _LENGTH.size
        if at + length > len(data):
            return None
        try:
            texts.append(str(data[at : at + length], "utf-8"))
        except UnicodeDecodeError:
            raise ProblemError(422, "a text of a binary tensor is not UTF-8.") from None
        at += length
    return texts if len(texts) == n and at == len(data) else None


def _flat(data: list[Any], depth: int) -> list[Any] | None:
    """Return values that may be nested as the shape is; None if they are nested in another way."""
    if depth == 2 and any(isinstance(row, list) for row in data):
        data = [cell for row in data for cell in (row if isinstance(row, list) else [row])]
    return None if any(isinstance(cell, list | dict) for cell in data) else data


def _checked(tensor: Tensor, values: list[Any]) -> list[Any]:
    """Return values of a JSON tensor if they are of its type; null is a missing one."""
    wanted: type | tuple[type, ...] = (
        str if tensor.datatype == _TEXT else bool if tensor.datatype == "BOOL" else (int, float)
    )
    for value in values:
        fits = isinstance(value, wanted) and (tensor.datatype == "BOOL" or not isinstance(value, bool))
        if value is not None and not fits:
            raise ProblemError(422, f"the data of {shown(tensor.name)} are not all {tensor.datatype}.")
    return values


def response_of(served: Served, request: InferRequest, decisions: Decisions) -> tuple[bytes, str, dict[str, str]]:
    """Return the body of a response, its media type and its headers."""
    figures = _figures(decisions)
    asked = request.outputs or []
    unknown = [output.name for output in asked if output.name not in figures]
    if unknown:
        raise ProblemError(422, f"there is no output {shown(unknown[0])}; the outputs are {', '.join(figures)}.")
    every = bool(request.parameters.get("binary_data_output", False))
    wanted = {output.name: bool(output.parameters.get("binary_data", every)) for output in asked}
    outputs, tail = [], []
    for name, binary in (wanted or dict.fromkeys(figures, every)).items():
        record: dict[str, Any] = {"name": name, "datatype": OUTPUTS[name], "shape": [len(decisions)]}
        if binary:
            data = _packed(figures[name], OUTPUTS[name])
            record["parameters"] = {"binary_data_size": len(data)}
            tail.append(data)
        else:
            record["data"] = figures[name] if isinstance(figures[name], list) else figures[name].tolist()
        outputs.append(record)
    head = {"model_name": served.name, "model_version": served.version, "outputs": outputs}
    text = json.dumps(head if request.id is None else {**head, "id": request.id}).encode()
    if not tail:
        return text, JSON, {}
    return b"".join([text, *tail]), BINARY, {HEADER_LENGTH: str(len(text))}


def _figures(decisions: Decisions) -> Mapping[str, Any]:
    """Return the outputs; the protocol has no null, so that a row without a label is called as in files."""
    guesses = [str(label) for label in decisions.label.data.tolist()]
    sure = decisions.conclusive.tolist()
    return {
        "label": [guess if s else INCONCLUSIVE for guess, s in zip(guesses, sure, strict=True)],
        "best_guess": guesses,
        "conclusive": decisions.conclusive,
        "confidence": decisions.confidence,
        "stage": decisions.stage,
        "cost": decisions.cost,
    }


def _packed(values: Any, datatype: str) -> bytes:
    if datatype == _TEXT:
        texts = [text.encode() for text in values]
        return b"".join(part for text in texts for part in (_LENGTH.pack(len(text)), text))
    data: bytes = np.asarray(values).astype(_TYPES[datatype]).tobytes()
    return data
