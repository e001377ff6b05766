"""Routes of outcomes, metrics and what happens now."""

import asyncio
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import Response

from emsco.exceptions import shown
from emsco.service.bodies import check_number, read_shape
from emsco.service.core import Service
from emsco.service.ids import DecisionId, read_id
from emsco.service.live import live_record
from emsco.service.metrics import MEDIA_TYPE, exposition
from emsco.service.problems import ProblemError
from emsco.service.responses import answers, body_of, json_response, problems, record
from emsco.service.shapes import Outcome, Outcomes
from emsco.service.shelf import Served


def add_monitoring(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    limits = service.settings.limits

    @app.post(
        "/models/{name}/outcomes", tags=["monitor"], openapi_extra=body_of(Outcomes),
        responses={
            **answers("How many are new.", record(stored="integer", known="integer")),
            **problems(400, 404, 409, 413, 415, 422, 507),
        },
    )  # fmt: skip
    async def outcomes(name: str, request: Request) -> Response:
        """Store true labels of cases that were decided. The id of a decision makes it safe to send one again."""
        served = service.shelf.get(name)
        sent = (await read_shape(request, limits, Outcomes)).outcomes
        check_number(len(sent), limits.rows, "outcomes")
        store = service.store
        if store is None:
            raise ProblemError(409, "this service stores no outcomes; start it with --outcomes FILE.")
        rows = [_checked(served, outcome) for outcome in sent]
        loop = asyncio.get_running_loop()
        n_new, n_known = await loop.run_in_executor(service.clerk, store.add, name, rows)
        service.counters.add(("outcomes", name), n_new)
        return json_response({"stored": n_new, "known": n_known})

    counted = record(model="string", version="string", cases="integer", labelled="array", watches="array")

    @app.get("/models/{name}/live", tags=["monitor"], responses={**answers("Counts.", counted), **problems(404)})
    async def live(name: str) -> Response:
        """Say what was decided since the service began, what was expected, and what is watched."""
        served = service.shelf.get(name)
        watched = service.watcher.records().get(name)
        return json_response(live_record(served, service.totals(), watched))

    text = {"text/plain": {"schema": {"type": "string"}}}

    @app.get("/metrics", tags=["monitor"], responses={**answers("Metrics.", None, **text), **problems()})
    async def metrics() -> Response:
        """Return the counters of all workers in the text format of Prometheus."""
        watched = service.watcher.records()
        text = exposition(service.totals(), service.shelf.served, watched, service.shelf.troubles)
        return Response(text, headers={"Cache-Control": "no-store"}, media_type=MEDIA_TYPE)


def _checked(served: Served, outcome: Outcome) -> tuple[str, DecisionId, Any]:
    """Return an outcome with what its id says, if its truth is a class."""
    said = read_id(outcome.id)
    if outcome.truth not in served.codes:
        classes = ", ".join(map(shown, served.classes[:20]))
        raise ProblemError(
            422, f"the truth {shown(outcome.truth)} is no class of the model; the classes are {classes}."
        )
    if said.version == served.version and said.code >= len(served.classes):
        raise ProblemError(422, "an id is none that this service gave a decision; copy it again.")
    return outcome.id, said, outcome.truth
