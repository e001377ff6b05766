"""Responses, and what the schema of the service says of them."""

import json
from typing import Any

from fastapi.responses import Response

from emsco.service.bodies import JSON
from emsco.service.problems import MEDIA_TYPE
from emsco.service.shapes import Shape


def json_response(value: Any, status: int = 200) -> Response:
    """Return JSON that no cache keeps."""
    return Response(json.dumps(value), status, headers={"Cache-Control": "no-store"}, media_type=JSON)


def body_of(*shapes: type[Shape], **others: dict[str, Any]) -> dict[str, Any]:
    """Return what the schema of the service says of a body."""
    content = {JSON: {"schema": {"anyOf": [s.model_json_schema() for s in shapes]}}} if shapes else {}
    if len(shapes) == 1:
        content = {JSON: {"schema": shapes[0].model_json_schema()}}
    return {"requestBody": {"required": True, "content": {**content, **others}}}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return what the schema of the service says of responses that are problems."""
    schema = {
        "type": "object",
        "required": ["type", "title", "status", "detail", "request_id"],
        "properties": {
            "type": {"type": "string"},
            "title": {"type": "string"},
            "status": {"type": "integer"},
            "detail": {"type": "string"},
            "errors": {"type": "array", "items": {"type": "object"}},
            "request_id": {"type": "string"},
        },
    }
    every = (*statuses, 401, 403, 421, 503)
    return {status: {"description": "A problem", "content": {MEDIA_TYPE: {"schema": schema}}} for status in every}


def answers(description: str, schema: dict[str, Any] | None = None, **content: Any) -> dict[int | str, dict[str, Any]]:
    """Return what the schema of the service says of a response that is no problem: of JSON, or of other types."""
    types = (
        {JSON: {"schema": schema or {"type": "object"}}, **content} if schema is not None or not content else content
    )
    return {200: {"description": description, "content": types}}


def record(**fields: Any) -> dict[str, Any]:
    """Return the schema of a JSON object that has these fields; a type may be given by its name."""
    properties = {name: {"type": kind} if isinstance(kind, str | list) else kind for name, kind in fields.items()}
    return {"type": "object", "required": list(fields), "properties": properties}


def readiness() -> dict[int | str, dict[str, Any]]:
    """Return what the schema of the service says of the answers to readiness."""
    schema = record(ready="boolean")
    return {**answers("It is ready.", schema), 503: {**answers("It is not ready.", schema)[200]}}


LABEL: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
TEXTS: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
STAGE: dict[str, Any] = {"type": "integer", "minimum": 0, "description": "Number of the stage, from 0."}
ACQUIRE = record(features=TEXTS, columns=TEXTS, price="number", stage=STAGE, stages="integer", paid="number")
DECISION = record(label=LABEL, best_guess=LABEL, confidence="number", stage=STAGE, cost="number")
CASE = {
    "oneOf": [
        record(model="string", version="string", acquire=ACQUIRE),
        record(model="string", version="string", decision=DECISION),
    ]
}
DECIDED = record(model="string", version="string", decisions={"type": "array", "items": DECISION})
