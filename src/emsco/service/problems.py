"""ProblemError: a request that cannot be answered, as JSON that says what came and what was wanted (RFC 9457)."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
import json
from typing import Any

from fastapi.responses import Response

from emsco.exceptions import EmscoError, InvalidInputError, InvalidTargetError, SessionError

MEDIA_TYPE = "application/problem+json"
_CLIENTS_FAULT = (InvalidInputError, InvalidTargetError, SessionError)


class ProblemError(Exception):
    """What a client is told instead of an answer.

    Parameters
    ----------
    status : int
        Of the response.
    detail : str
        What is wrong with this request, and what to do.
    errors : sequence of mapping
        Of each field that is wrong, its name (``field``; empty: the body as a whole) and what is wrong (``detail``).
    headers : mapping of str to str
        Further headers of the response.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors
        self.headers = dict(headers or {})

    def body(self, request_id: str, *, inference: bool = False) -> bytes:
        """Return the document; clients of the Open Inference Protocol look for the field ``error``."""
        record: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        if self.errors or self.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            record["errors"] = list(self.errors) or [{"field": "", "detail": self.detail}]
        if inference:
            record["error"] = self.detail
        return json.dumps({**record, "request_id": request_id}).encode()

    def response(self, request_id: str, path: str) -> Response:
        """Return the response to a request for a path."""
        body = self.body(request_id, inference=path.startswith("/v2"))
        return Response(body, self.status, headers=self.headers, media_type=MEDIA_TYPE)


def problem_of(error: EmscoError) -> ProblemError:
    """Return what a client is told of an error of the library; what is not the client's fault is not explained."""
    if isinstance(error, _CLIENTS_FAULT):
        return ProblemError(422, str(error))
    return ProblemError(500, "the model could not decide this; the log of the service has the reason.")
