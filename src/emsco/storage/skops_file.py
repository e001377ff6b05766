"""A file in skops' format -> plain values: numbers, text, lists, dicts, arrays, and objects that are not made yet.

Nothing is imported or executed here. An object is the name of its class and its state; ``estimators`` decides which
ones to make.
"""

from dataclasses import dataclass
from io import BytesIO
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import ModelFileError, shown
from emsco.storage.container import damaged, from_json, unpack_plain

MAX_DEPTH = 128  # of the schema; a pipeline of a voting of calibrated forests has less than half
_SCHEMA = "schema.json"
_PROTOCOLS = range(3)
_COPIES = 4  # how often, on average, an array may be used: every use can be a copy
_KEYS = {"str": str, "int": int, "int64": int, "int32": int, "float": float, "float64": float}


@dataclass(frozen=True, eq=False)
class Foreign:
    """An object that a file asks for.

    Attributes
    ----------
    kind : str
        Module and name of its class, or of the function or type that it is.
    state : Any
        Its attributes.
    arguments : tuple
        What its class is called with.
    """

    kind: str
    state: Any = None
    arguments: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        """Name of the class."""
        return self.kind.rpartition(".")[2]

    @property
    def package(self) -> str:
        """Package of the class."""
        return self.kind.partition(".")[0]


def read_skops(data: bytes, name: str) -> Any:
    """Return what a file in skops' format holds, every size bounded."""
    members = unpack_plain(data)
    if _SCHEMA not in members:
        raise damaged(f"{name} has no {_SCHEMA}")
    schema = from_json(members.pop(_SCHEMA), f"{_SCHEMA} of {name}", most_depth=MAX_DEPTH)
    for member in members:
        if not member.endswith(".npy"):
            raise damaged(f"{name} holds {member!r}, which is neither JSON nor an array")
    if not isinstance(schema, dict) or schema.get("protocol") not in _PROTOCOLS:
        raise ModelFileError(
            f"{name} is written in a protocol of skops that this version does not read; upgrade emsco."
        )
    arrays = {}
    for member, content in members.items():
        try:
            arrays[member] = _array(content)
        except Exception as error:  # a header is evaluated as literals, which can fail in many ways
            raise damaged(f"{name} holds an array that cannot be read ({error})") from error
    try:
        return _Reader(arrays).value(schema)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise damaged(f"{name} is no estimator ({type(error).__name__}: {shown(str(error))})") from error


class _Reader:
    """Turns nodes into values."""

    def __init__(self, arrays: dict[str, NDArray[Any]]) -> None:
        self._arrays = arrays
        self._bytes_left = _COPIES * sum(array.nbytes for array in arrays.values())

    def value(self, node: dict[str, Any]) -> Any:
        loader = node["__loader__"]
        if loader == "JsonNode":
            return _scalar(node["content"])
        if loader == "DictNode":
            return self._dict(node)
        if loader == "DefaultDictNode":
            return self.value(node["content"]["main"])
        if loader == "ListNode":
            return self._list(node["content"])
        if loader == "TupleNode":
            return tuple(self._list(node["content"]))
        if loader == "NdArrayNode":
            return self._numbers(node)
        return self._foreign(node)

    def _dict(self, node: dict[str, Any]) -> dict[Any, Any]:
        content, kinds = node["content"], node["key_types"]["content"]
        if len(content) != len(kinds):
            raise ValueError("a dict has other keys than it says")
        return {
            _KEYS[kind["__class__"]](key): self.value(item)
            for kind, (key, item) in zip(kinds, content.items(), strict=True)
        }

    def _list(self, nodes: list[dict[str, Any]]) -> list[Any]:
        return [self.value(node) for node in nodes]

    def _numbers(self, node: dict[str, Any]) -> Any:
        if node["type"] == "json":
            return self._list(node["content"])  # an array of objects
        array = self._arrays[node["file"]]
        self._bytes_left -= array.nbytes
        if self._bytes_left < 0:
            raise ValueError("arrays are used too often")
        return array if node["__class__"] == "ndarray" else array.item()

    def _foreign(self, node: dict[str, Any]) -> Foreign:
        module, name = node["__module__"], node["__class__"]
        if not isinstance(module, str) or not isinstance(name, str):
            raise TypeError("a class without a name")
        state = self.value(node["content"]) if node["__loader__"] in ("ObjectNode", "TreeNode") else None
        arguments = self.value(node["__reduce__"]["args"]) if node["__loader__"] == "TreeNode" else ()
        return Foreign(f"{module}.{name}", state, tuple(arguments))


def _scalar(text: str) -> bool | int | float | str | None:
    value = json.loads(text)
    if isinstance(value, dict | list):
        raise TypeError("a value that is not a single one")
    return value  # type: ignore[no-any-return]


def _array(content: bytes) -> NDArray[Any]:
    """Return an array after a look at its header: it is as large as it says."""
    file = BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("its version is not 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    n_cells = 1
    for length in shape:
        n_cells *= length
    if dtype.hasobject or min(shape, default=0) < 0 or n_cells * dtype.itemsize != len(content) - file.tell():
        raise ValueError(f"it is not {shape} cells of {dtype}")
    return np.asarray(np.lib.format.read_array(BytesIO(content), allow_pickle=False))
