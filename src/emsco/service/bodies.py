"""Bodies of requests: read within limits, and parsed strictly."""

from collections.abc import Iterable
import json
from typing import Any, NoReturn, TypeVar

from fastapi import Request
from pydantic import ValidationError

from emsco.exceptions import shown
from emsco.service.problems import ProblemError
from emsco.service.settings import Limits
from emsco.service.shapes import Shape

JSON = "application/json"
SMALL = 2**20  # bytes of one case
_MOST_PARTS = 4_000_000  # values, keys and brackets of JSON; each takes some 70 bytes once it is read
CLOSE = {"Connection": "close"}  # what the client goes on sending is not read

_Shape = TypeVar("_Shape", bound=Shape)


def media_type(request: Request) -> str:
    """Return the media type of a body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, limits: Limits, most: int = 2**62) -> bytes:
    """Return the body of a request, if it is within the limit, or within a smaller one."""
    most = min(limits.body, most)
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ProblemError(415, "compressed bodies are not read; send it as it is.", headers=CLOSE)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(most)
    parts, n_bytes = [], 0
    async for part in request.stream():
        n_bytes += len(part)
        if n_bytes > most:
            raise _too_large(most)
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(most: int) -> ProblemError:
    return ProblemError(413, f"the body has more than {most:,} bytes, which is the limit; send less.", headers=CLOSE)


async def read_json(request: Request, limits: Limits, most: int = 2**62) -> bytes:
    """Return the body of a request that says that it is JSON."""
    if media_type(request) != JSON:
        raise unsupported(media_type(request), [JSON])
    return await read_body(request, limits, most)


def unsupported(found: str, wanted: Iterable[str]) -> ProblemError:
    """Return the problem of a body of another media type."""
    return ProblemError(
        415, f"the body is of the type {shown(found)}; send {' or '.join(wanted)}, and say so in Content-Type."
    )


def parse_json(data: bytes) -> Any:
    """Return what JSON says; a key that comes twice is refused, and NaN and infinity are no JSON."""
    if sum(map(data.count, (b"[", b"{", b",", b":"))) > _MOST_PARTS:
        raise ProblemError(413, f"the body holds more than {_MOST_PARTS:,} values; send them in parts.")
    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=_mapping, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise ProblemError(400, f"the body is no JSON: {_reason(error)}.") from None


def _reason(error: Exception) -> str:
    """Say what is wrong without a value of the body."""
    if isinstance(error, json.JSONDecodeError):
        return f"it is broken at character {error.pos}"
    if isinstance(error, UnicodeDecodeError):
        return f"byte {error.start} is not UTF-8"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error) if str(error).startswith(("the key", "NaN", "Infinity", "-Infinity")) else "a number is too long"


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {shown(next(key for key in keys if keys.count(key) > 1))} comes twice")
    return mapping


def _no_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number; leave it null if it is unknown")


def as_shape(value: Any, shape: type[_Shape]) -> _Shape:
    """Return a JSON value as the object that it must be, or say which fields are wrong."""
    try:
        return shape.model_validate(value)
    except ValidationError as error:
        found = [
            {"field": _field(part["loc"]), "detail": what_is_wrong(part["type"], part["msg"])}
            for part in error.errors(include_url=False, include_context=False, include_input=False)
        ]
    first = found[0]
    known = f" The fields are {', '.join(shape.model_fields)}." if first["detail"] == _UNKNOWN else ""
    raise ProblemError(422, f"{first['field'] or 'the body'}: {first['detail']}.{known}", errors=found[:20])


_UNKNOWN = "there is no such field"


def _field(place: tuple[int | str, ...]) -> str:
    """Return the way to a field."""
    return ".".join(str(part)[:100] for part in place)


_WANTED = {
    "extra_forbidden": _UNKNOWN,
    "missing": "it is missing; send it",
    "dict_type": "send a JSON object",
    "model_type": "send a JSON object",
    "list_type": "send a list",
    "string_type": "send text",
    "string_too_long": "the text is too long",
    "bool_type": "send true or false",
    "bool_parsing": "send true or false",
    "int_type": "send a whole number",
    "greater_than_equal": "send a number of at least 0",
}


def what_is_wrong(kind: str, message: str) -> str:
    """Return what is wrong with a field, in our words; what our own checks say begins with ``Value error``."""
    said = message.removeprefix("Value error, ")
    return said if said != message else _WANTED.get(kind, "it is not of the kind that is wanted")


def check_texts(texts: Iterable[Any], limits: Limits, what: str) -> None:
    """Raise if a text among values is too long."""
    for text in texts:
        if isinstance(text, str) and len(text) > limits.text:
            raise ProblemError(
                422, f"{what} has {len(text):,} characters; at most {limits.text:,} are read. Is it a file by mistake?"
            )


def check_number(n: int, most: int, what: str) -> None:
    """Raise if there are too many of something."""
    if n > most:
        raise ProblemError(422, f"there are {n:,} {what}; at most {most:,} are taken at once. Send them in parts.")
