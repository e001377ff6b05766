"""What tells one run from another: settings, estimators, functions with all that they read, and data."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import partial
from hashlib import sha256
import json
import re
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray

_LONGEST = 300  # characters of an object that are shown


def identity_of(thing: Any) -> str:
    """Return what tells an object from others, the same in every process: how it looks, and a hash of what it holds.

    How it looks is not enough: scikit-learn cuts the middle out of long estimators. Functions are told by their code
    and by the values of the globals that it names.
    """
    with suppress(TypeError, ValueError):
        return json.dumps(thing)
    seen = " ".join(re.sub(r"(RandomState\(\w+\))? at 0x\w+", "", repr(thing)).split())
    digest = sha256(_told(thing, ())).hexdigest()[:16]
    return f"{seen if len(seen) <= _LONGEST else seen[: _LONGEST - 3] + '...'} {digest}"


def fingerprint(*arrays: NDArray[Any]) -> str:
    """Return a short name of the contents of arrays."""
    digest = sha256()
    for array in arrays:
        digest.update(repr((array.shape, array.dtype.str)).encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).tobytes() if array.size else b"")
    return digest.hexdigest()[:16]


def _told(thing: Any, around: tuple[int, ...]) -> bytes:
    """Return bytes that differ where things do; ``around`` holds the functions that lead here."""
    if isinstance(thing, FunctionType):
        if id(thing) in around:
            return b"itself"
        around = (*around, id(thing))
        closed = [cell.cell_contents for cell in thing.__closure__ or ()]
        held = [*_code(thing.__code__), thing.__defaults__, thing.__kwdefaults__, *closed, *_globals_of(thing)]
        return repr([thing.__module__, thing.__qualname__]).encode() + _told(held, around)
    if isinstance(thing, MethodType):
        return _told([thing.__func__, thing.__self__], around)
    if isinstance(thing, partial):
        return _told([thing.func, thing.args, thing.keywords], around)
    if is_dataclass(thing) and not isinstance(thing, type):
        return _told([type(thing).__qualname__, *(getattr(thing, field.name) for field in fields(thing))], around)
    if isinstance(thing, list | tuple):
        return b"(" + b",".join(_told(item, around) for item in thing) + b")"
    if isinstance(thing, dict):
        return _told([*thing.items()], around)
    if hasattr(thing, "get_params") and not isinstance(thing, type):
        settings = sorted(thing.get_params(deep=False).items())
        return _told([type(thing).__module__, type(thing).__qualname__, settings], around)
    return _called(thing, around) + _hashed(thing)


def _called(thing: Any, around: tuple[int, ...]) -> bytes:
    """Return what is run when an object of somebody's class is called."""
    call = next((vars(kind)["__call__"] for kind in type(thing).__mro__ if "__call__" in vars(kind)), None)
    return _told(call, around) if isinstance(call, FunctionType) else b""


def _hashed(thing: Any) -> bytes:
    try:
        return str(joblib.hash(thing)).encode()
    except Exception:  # nothing else that it may be is known; an address in memory makes it another run
        return repr(thing).encode()


def _code(code: CodeType) -> list[Any]:
    return [
        code.co_code, code.co_names, *(_code(part) if isinstance(part, CodeType) else part for part in code.co_consts),
    ]  # fmt: skip


def _globals_of(function: FunctionType) -> Iterator[Any]:
    """Yield the names and values of the globals that the code of a function names."""
    names = sorted(set(_names(function.__code__)))
    for name in names:
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if isinstance(value, ModuleType):
            yield from ((name, inner, getattr(value, inner)) for inner in names if _is_setting(value, inner))
        elif isinstance(value, type | BuiltinFunctionType | np.ufunc):
            yield name, f"{value.__module__}.{value.__name__}" if isinstance(value, type) else repr(value)
        else:
            yield name, value


def _is_setting(module: ModuleType, name: str) -> bool:
    value = getattr(module, name, None)
    return value is not None and not callable(value) and not isinstance(value, ModuleType)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _names(part)
