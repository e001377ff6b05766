"""Routes of the Open Inference Protocol."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from emsco.deployed.decide import Decisions
from emsco.service import inference
from emsco.service.bodies import read_body
from emsco.service.core import Service
from emsco.service.responses import answers, body_of, json_response, problems, readiness, record
from emsco.service.shapes import InferRequest
from emsco.service.shelf import Served

_SMALL = 2**15  # bytes of a body that is decided at once; larger ones are left to a thread
_VERSION = "/versions/{version}"


def add_inference(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    _add_facts(app, service)
    limits = service.settings.limits

    def answer(served: Served, data: bytes, length: str | None) -> tuple[Any, Decisions, Any]:
        asked, rest = inference.read_request(data, length)
        table = inference.table_from(served, asked, rest, limits)
        decisions = served.model.decide(table)
        return table, decisions, inference.response_of(served, asked, decisions)

    async def infer(request: Request, name: str, version: str | None = None) -> Response:
        """Decide rows."""
        served = service.shelf.get(name)
        served.require(version)
        data = await read_body(request, limits)
        arguments = (served, data, request.headers.get(inference.HEADER_LENGTH))
        if len(data) <= _SMALL:
            table, decisions, response = answer(*arguments)
        else:
            loop = asyncio.get_running_loop()
            table, decisions, response = await loop.run_in_executor(service.pool, answer, *arguments)
        service.record_table(served, table, decisions)
        body, kind, headers = response
        return Response(body, headers={"Cache-Control": "no-store", **headers}, media_type=kind)

    binary = {inference.BINARY: {"schema": {"type": "string", "format": "binary"}}}
    settings: dict[str, Any] = {
        "methods": ["POST"],
        "tags": ["inference"],
        "openapi_extra": body_of(InferRequest),
        "responses": {
            **answers("The outputs.", record(model_name="string", model_version="string", outputs="array"), **binary),
            **problems(400, 404, 409, 413, 415, 422),
        },
    }

    async def infer_version(request: Request, name: str, version: str) -> Response:
        """Decide rows by a version of a model."""
        return await infer(request, name, version)

    async def infer_any(request: Request, name: str) -> Response:
        """Decide rows."""
        return await infer(request, name)

    app.add_api_route("/v2/models/{name}/infer", infer_any, **settings)
    app.add_api_route(f"/v2/models/{{name}}{_VERSION}/infer", infer_version, **settings)


def _add_facts(app: FastAPI, service: Service) -> None:
    named = record(name="string")
    described = record(name="string", versions="array", platform="string", inputs="array", outputs="array")

    @app.get("/v2", tags=["inference"], responses={**answers("The server.", named), **problems()})
    async def server() -> Response:
        """Describe the server."""
        return json_response(inference.SERVER)

    @app.get("/v2/health/live", tags=["health"], responses=answers("It does.", record(live="boolean")))
    async def live() -> Response:
        """Say that the process answers."""
        return json_response({"live": True})

    @app.get("/v2/health/ready", tags=["health"], responses=readiness())
    async def ready() -> Response:
        """Say whether requests should be sent here."""
        return json_response({"ready": service.ready}, 200 if service.ready else 503)

    @app.get("/v2/models/{name}", tags=["inference"], responses={**answers("It.", described), **problems(404)})
    async def model(name: str) -> Response:
        """Describe a model."""
        return json_response(inference.metadata(service.shelf.get(name)))

    @app.get("/v2/models/{name}/ready", tags=["inference"], responses={**answers("It is.", named), **problems(404)})
    async def model_ready(name: str) -> Response:
        """Say that a model is served."""
        return json_response({"name": service.shelf.get(name).name, "ready": True})

    of_version = {**answers("It.", described), **problems(404, 409)}
    version_ready = {**answers("It is.", named), **problems(404, 409)}

    @app.get(f"/v2/models/{{name}}{_VERSION}", tags=["inference"], responses=of_version)
    async def model_version(name: str, version: str) -> Response:
        """Describe a version of a model."""
        served = service.shelf.get(name)
        served.require(version)
        return json_response(inference.metadata(served))

    @app.get(f"/v2/models/{{name}}{_VERSION}/ready", tags=["inference"], responses=version_ready)
    async def model_version_ready(name: str, version: str) -> Response:
        """Say that a version of a model is served."""
        served = service.shelf.get(name)
        served.require(version)
        return json_response({"name": served.name, "ready": True})
