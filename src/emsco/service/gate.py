"""Gate: what every request passes before a route sees it. Host, token, number and time are checked here."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from itertools import count
import re
import secrets
from time import perf_counter
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from emsco.exceptions import EmscoError
from emsco.service.core import Service
from emsco.service.problems import ProblemError, problem_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Endpoint = Callable[..., Awaitable[Response]]

OPEN = frozenset({"/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"})  # without a token
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)  # seconds
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,100}")
_SAFE = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
]
_CHALLENGES = {"WWW-Authenticate": 'Bearer realm="emsco", Basic realm="emsco", charset="UTF-8"'}


class Gate:
    """The application with its gate.

    Parameters
    ----------
    app : ASGI application
    service : Service
    often : mapping of str to callable
        What answers ``POST /models/NAME/KEY`` without parameters in the address, by key. These also are routes of the
        application; here they save the way through it, which takes longer than the answer.
    """

    def __init__(self, app: App, service: Service, often: Mapping[str, Endpoint] | None = None) -> None:
        self._app = app
        self._often = often or {}
        self._service = service
        self._limits = service.settings.limits
        self._hosts = service.settings.allowed_hosts
        self._n_running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()
        headers = {name: value for name, value in scope["headers"] if name in _READ}
        request_id = _request_id(headers.get(b"x-request-id"))
        scope["state"]["request_id"] = request_id
        answer = _Answer(send, request_id.encode(), closing=self._service.draining)
        self._n_running += 1
        try:
            self._check(scope["path"], scope["method"], headers)
            async with asyncio.timeout(self._limits.seconds):
                await self._respond(scope, receive, answer)
        except ProblemError as problem:
            await answer.tell(problem, scope, receive)
        except EmscoError as error:
            await answer.tell(problem_of(error), scope, receive)
        except TimeoutError:
            said = f"the answer took longer than {self._limits.seconds:g} seconds; send less at once, and faster."
            await answer.tell(ProblemError(503, said, headers={"Connection": "close"}), scope, receive)
        except Exception as error:  # whatever it is, the client gets a problem, and the log where it was
            self._service.log.failure(error, id=request_id)
            await answer.tell(ProblemError(500, "an error of the service; its log has more."), scope, receive)
        finally:
            self._n_running -= 1
            self._note(scope, answer.status, perf_counter() - began, request_id)

    async def _respond(self, scope: Scope, receive: Receive, answer: "_Answer") -> None:
        parts = scope["path"].split("/")
        usual = scope["method"] == "POST" and not scope["query_string"]
        if usual and len(parts) == 4 and parts[1] == "models" and parts[3] in self._often:
            scope["route_path"] = f"/models/{{name}}/{parts[3]}"
            response = await self._often[parts[3]](parts[2], Request(scope, receive))
            await response(scope, receive, answer)
        else:
            await self._app(scope, receive, answer)

    def _check(self, path: str, method: str, headers: dict[bytes, bytes]) -> None:
        if self._hosts is not None and _host_name(headers.get(b"host", b"")) not in self._hosts:
            raise ProblemError(421, "the service is not known under the name in Host; start it with --allow-host NAME.")
        if path in OPEN:
            return
        if method == "POST" and headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise ProblemError(403, "a page of another site has sent this; only pages of the service itself may.")
        if not self._service.allows(headers.get(b"authorization")):
            raise ProblemError(
                401, "send a token as Authorization: Bearer TOKEN; it must not have ended.", headers=_CHALLENGES
            )
        if self._n_running > self._limits.at_once:
            raise ProblemError(503, "too many requests are in progress; try again soon.", headers={"Retry-After": "1"})

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        """Count a request and log it."""
        route = str(scope.get("route_path") or getattr(scope.get("route"), "path", "other"))
        counters = self._service.counters
        counters.add(("requests", route, scope["method"] if route != "other" else "any", str(status)))
        counters.add(("seconds", route, _bucket(seconds)))
        counters.add(("seconds_sum", route), seconds)
        if not self._service.log.quiet or status >= 500:
            facts = {"method": scope["method"], "path": scope["path"], "status": status, "ms": round(1e3 * seconds, 3)}
            self._service.log.say("request", id=request_id, **facts, **scope["state"].get("logged", {}))


_READ = frozenset({b"host", b"authorization", b"sec-fetch-site", b"x-request-id"})


def _bucket(seconds: float) -> str:
    for bound in BUCKETS:
        if seconds <= bound:
            return str(bound)
    return "+Inf"


def _request_id(sent: bytes | None) -> str:
    """Return the id that a client gave a request, or a new one."""
    if sent is not None and _REQUEST_ID.fullmatch(sent):
        return sent.decode()
    return f"{_PROCESS}-{next(_NUMBERS)}"


_PROCESS = secrets.token_hex(4)
_NUMBERS = count(1)


def _host_name(header: bytes) -> str:
    """Return the name in a Host header, without the port."""
    name = header.decode("latin-1").lower()
    head, _, port = name.rpartition(":")
    return head if port.isdecimal() and head and (head.endswith("]") or ":" not in head) else name


class _Answer:
    """The way of an answer to the client: sees its status, and adds headers."""

    def __init__(self, send: Send, request_id: bytes, *, closing: bool) -> None:
        self._send = send
        self._headers = [*_SAFE, (b"x-request-id", request_id)]
        if closing:
            self._headers.append((b"connection", b"close"))
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *self._headers]
        await self._send(message)

    async def tell(self, problem: ProblemError, scope: Scope, receive: Receive) -> None:
        """Answer with a problem, unless an answer has begun."""
        if not self.status:
            await problem.response(scope["state"]["request_id"], scope["path"])(scope, receive, self)
