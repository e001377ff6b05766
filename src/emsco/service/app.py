"""The routes of the service."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
import math
from time import perf_counter
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from emsco import __version__
from emsco.deployed.decide import Decisions
from emsco.deployed.session import Acquire
from emsco.exceptions import EmscoError
from emsco.service import tables
from emsco.service.bodies import (
    JSON,
    SMALL,
    as_shape,
    media_type,
    parse_json,
    read_body,
    read_json,
    unsupported,
    what_is_wrong,
)
from emsco.service.cases import answer_of, known_values, walk
from emsco.service.core import Service
from emsco.service.describing import describe
from emsco.service.gate import Endpoint, Gate
from emsco.service.ids import read_id
from emsco.service.inference_routes import add_inference
from emsco.service.monitoring_routes import add_monitoring
from emsco.service.page_routes import add_pages
from emsco.service.problems import ProblemError, problem_of
from emsco.service.responses import CASE, DECIDED, answers, body_of, json_response, problems, readiness, record
from emsco.service.shapes import NextQuestion, Rows
from emsco.service.shelf import Served

Keep = Annotated[Sequence[str], Query(description="Columns that are no features, to be given back as they are.")]
_SMALL = 2**15  # bytes of a table that is decided at once
_BRIEF = 0.001  # seconds; a larger table is decided at once if it will not take longer, and else by a thread


def create_app(service: Service) -> Gate:
    """Return the application of a worker, gate included."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        looking = asyncio.create_task(_look_again(service))
        yield
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking
        service.close()

    app = FastAPI(
        title="EMSCO decision service",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,  # its pages would load scripts from elsewhere
        redoc_url=None,
    )
    _add_problems(app)
    _add_health(app, service)
    _add_models(app, service)
    often = _add_decisions(app, service)
    add_inference(app, service)
    add_monitoring(app, service)
    add_pages(app, service)
    return Gate(app, service, often)


async def _look_again(service: Service) -> None:
    """Look at the files again and again; loading a model does not keep requests waiting."""
    while True:
        await asyncio.sleep(service.settings.look_seconds)
        try:
            await asyncio.to_thread(service.look)
            await asyncio.get_running_loop().run_in_executor(service.clerk, service.watch)
        except Exception as error:  # the next look may work
            service.log.failure(error)


def _add_problems(app: FastAPI) -> None:
    def told(make: Callable[[Any], ProblemError]) -> Any:
        async def handler(request: Request, error: Exception) -> Response:
            return make(error).response(request.state.request_id, request.url.path)

        return handler

    app.add_exception_handler(ProblemError, told(lambda problem: problem))
    app.add_exception_handler(EmscoError, told(problem_of))
    app.add_exception_handler(HTTPException, told(_of_http))
    app.add_exception_handler(RequestValidationError, told(_of_parameters))
    app.add_exception_handler(
        Exception, told(lambda _: ProblemError(500, "an error of the service; its log has more."))
    )


def _of_http(error: HTTPException) -> ProblemError:
    """Return what the framework refuses: an address, or a method of it."""
    said = {
        404: "there is nothing at this address; /openapi.json has all of them.",
        405: f"this address takes {(error.headers or {}).get('Allow', 'another method')} only.",
    }
    return ProblemError(error.status_code, said.get(error.status_code, error.detail), headers=error.headers)


def _of_parameters(error: RequestValidationError) -> ProblemError:
    """Return what is wrong with the parameters in an address."""
    found = [
        {"field": ".".join(map(str, part["loc"][1:])), "detail": what_is_wrong(part["type"], part["msg"])}
        for part in error.errors()
    ]
    return ProblemError(422, f"{found[0]['field']}: {found[0]['detail']}.", errors=found)


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/health/live", tags=["health"], responses=answers("It does.", record(live="boolean")))
    async def live() -> Response:
        """Say that the process answers."""
        return json_response({"live": True})

    @app.get("/health/ready", tags=["health"], responses=readiness())
    async def ready() -> Response:
        """Say whether requests should be sent here: a model is loaded, and the service is not about to end."""
        return json_response({"ready": service.ready}, 200 if service.ready else 503)


def _add_models(app: FastAPI, service: Service) -> None:
    listed = record(models="array", refused="object")

    @app.get("/models", tags=["models"], responses={**answers("The models.", listed), **problems()})
    async def models() -> Response:
        """List the models."""
        served = [
            {"name": s.name, "version": s.version, "classes": s.classes, "trouble": service.shelf.troubles.get(s.name)}
            for s in service.shelf.served.values()
        ]
        refused = {name: said for name, said in service.shelf.troubles.items() if name not in service.shelf.served}
        return json_response({"models": served, "refused": refused})

    described = record(name="string", version="string", classes="array", features="array", stages="array")

    @app.get("/models/{name}", tags=["models"], responses={**answers("The model.", described), **problems(404)})
    async def model(name: str) -> Response:
        """Describe a model: features with types, prices and categories, stages, thresholds, front."""
        served = service.shelf.get(name)
        return json_response({**describe(served), "trouble": service.shelf.troubles.get(name)})


def _add_decisions(app: FastAPI, service: Service) -> dict[str, Endpoint]:
    """Add the routes; return them by the last part of their address."""
    limits = service.settings.limits

    @app.post(
        "/models/{name}/next", tags=["decide"], openapi_extra=body_of(NextQuestion),
        responses={**answers("What to buy, or the decision.", CASE), **problems(400, 404, 409, 413, 415, 422)},
    )  # fmt: skip
    async def next_question(name: str, request: Request) -> Response:
        """Say what to buy next for a case, or its decision, from what is known so far. Nothing is kept."""
        served = service.shelf.get(name)
        question = as_shape(parse_json(await read_json(request, limits, SMALL)), NextQuestion)
        served.require(question.version)
        values = known_values(served, question, limits)
        replaces = None if question.replaces is None else read_id(question.replaces)
        session = walk(served, values)
        decision_id = None
        if not isinstance(session.step(), Acquire):
            decision_id = service.record_case(served, session, replaces)
        if service.settings.log_values:
            request.state.logged = {"values": values}
        return json_response(answer_of(served, session, explained=question.explain, decision_id=decision_id))

    binary = {"schema": {"type": "string", "format": "binary"}}
    paces: dict[tuple[str, str], float] = {}  # seconds per byte that the last table took, by version and format
    formats = {tables.CSV: {"schema": {"type": "string"}}, tables.ARROW: binary}

    @app.post(
        "/models/{name}/decide", tags=["decide"],
        openapi_extra=body_of(Rows, **formats),
        responses={**answers("The decisions.", DECIDED, **formats), **problems(400, 404, 409, 413, 415, 422)},
    )  # fmt: skip
    async def decide(
        name: str, request: Request, ids: bool = False, version: str | None = None, keep: Keep = ()
    ) -> Response:
        """Decide cases whose values are all there: JSON rows, CSV or an Arrow stream, answered in kind."""
        served = service.shelf.get(name)
        kind = media_type(request)
        if kind not in tables.TYPES:
            raise unsupported(kind, tables.TYPES)
        data = await read_body(request, limits)
        served.require(version)
        arguments = (service, served, kind, data, ids, tuple(dict.fromkeys(keep)))
        pace = (served.version, kind)
        if len(data) <= max(_SMALL, _BRIEF / paces.get(pace, math.inf)):
            table, decisions, body, seconds = _decided(*arguments)
        else:
            loop = asyncio.get_running_loop()
            table, decisions, body, seconds = await loop.run_in_executor(service.pool, _decided, *arguments)
        if len(data) > _SMALL:
            paces[pace] = seconds / len(data)
        headers = {"Cache-Control": "no-store", "X-Model-Version": served.version}
        counting = BackgroundTask(_count_table, service, served, table, decisions)  # the client does not wait for it
        return Response(body, headers=headers, media_type=kind, background=counting)

    return {"next": next_question, "decide": decide}


async def _count_table(service: Service, served: Served, table: Any, decisions: Decisions) -> None:
    service.record_table(served, table, decisions)


def _decided(
    service: Service, served: Served, kind: str, data: bytes, ids: bool, keep: tuple[str, ...]
) -> tuple[Any, Decisions, bytes, float]:
    """Read a table, decide it, write the answer in the same format, and say how many seconds that took."""
    began = perf_counter()
    limits = service.settings.limits
    rows = as_shape(parse_json(data), Rows) if kind == JSON else None
    ids = ids or (rows is not None and rows.ids)
    tables.check_kept(keep, ids=ids)
    if rows is not None:
        served.require(rows.version)
        table, more = tables.from_rows(served, rows, limits, keep)
    else:
        table, more = (tables.from_csv if kind == tables.CSV else tables.from_arrow)(served, data, limits, keep)
    decisions = served.model.decide(table)
    if ids:
        more = {**more, "id": service.ids_of(served, decisions)}
    if kind == JSON:
        body = tables.to_json(served, decisions, more)
    else:
        body = (tables.to_csv if kind == tables.CSV else tables.to_arrow)(decisions, more)
    return table, decisions, body, perf_counter() - began
