"""Routes of the pages."""

import asyncio

from fastapi import FastAPI
from fastapi.responses import Response

from emsco.service.core import Service
from emsco.service.pages import EXPLORE_POLICY, explore_page, page_of
from emsco.service.problems import ProblemError
from emsco.service.responses import problems

_HTML = "text/html; charset=utf-8"


def add_pages(app: FastAPI, service: Service) -> None:
    """Add the routes."""
    explored: dict[str, tuple[str, str]] = {}  # of each model its version, and the page

    def respond(page: str, policy: str) -> Response:
        headers = {"Content-Security-Policy": policy, "Cache-Control": "no-store"}
        return Response(page, headers=headers, media_type=_HTML)

    def page(place: str, model: str | None) -> Response:
        if model is not None:
            service.shelf.get(model)  # the address of a model that is gone opens no other
        return respond(*page_of(place, list(service.shelf.served), outcomes=service.store is not None))

    @app.get("/", tags=["pages"], include_in_schema=False, responses=problems(404))
    async def decide_page(model: str | None = None) -> Response:
        """Show the page to decide a case on."""
        return page("/", model)

    @app.get("/live", tags=["pages"], include_in_schema=False, responses=problems(404))
    async def live_page(model: str | None = None) -> Response:
        """Show the page of what happens now."""
        return page("/live", model)

    @app.get("/explore", tags=["pages"], include_in_schema=False, responses=problems(404))
    async def explore(model: str | None = None) -> Response:
        """Show the report of a model."""
        names = list(service.shelf.served)
        if model is None and not names:
            raise ProblemError(404, "no model is loaded yet.")
        served = service.shelf.get(names[0] if model is None else model)
        known = explored.get(served.name)
        if known is None or known[0] != served.version:
            loop = asyncio.get_running_loop()
            explored[served.name] = served.version, await loop.run_in_executor(service.pool, explore_page, served)
        return respond(explored[served.name][1], EXPLORE_POLICY)
