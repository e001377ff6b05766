import asyncio
import json
import re

import pytest

from emsco.service.core import Service
from emsco.service.gate import Gate
from emsco.service.settings import Limits, Settings, Source


def call(gate, path="/models", headers=()):
    """Send a request through a gate; return status, headers and body as they come."""

    async def request():
        sent = []

        async def receive():
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http", "method": "GET", "path": path, "headers": [(b"host", b"localhost"), *headers], "state": {},
            "query_string": b"",
        }  # fmt: skip
        await gate(scope, receive, send)
        start, *rest = sent
        return start["status"], dict(start["headers"]), b"".join(part["body"] for part in rest)

    return request()


def gate_of(app, folder, **limits):
    return Gate(app, Service(Settings((Source(folder),), limits=Limits(**limits))))


async def answer(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"fine"})


def test_answers_have_an_id_and_are_safe_to_show(folder):
    status, headers, body = asyncio.run(call(gate_of(answer, folder), headers=[(b"x-request-id", b"order-66")]))
    assert (status, body) == (200, b"fine")
    assert headers[b"x-request-id"] == b"order-66"
    assert headers[b"x-content-type-options"] == b"nosniff"
    for unfit in (b"", b"x" * 101, b"a b", b"\n"):
        _, headers, _ = asyncio.run(call(gate_of(answer, folder), headers=[(b"x-request-id", unfit)]))
        assert re.fullmatch(rb"[0-9a-f]{8}-\d+", headers[b"x-request-id"])


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)]
)
def test_pages_of_other_sites_cannot_send_anything(folder, site, status):
    from tests.service.conftest import serving

    with serving(folder / "mixed.emsco") as client:
        headers = {"Sec-Fetch-Site": site}
        assert client.post("/models/mixed/next", json={}, headers=headers).status_code == status
        assert client.get("/", headers=headers).status_code == 200  # a link may lead here


def test_too_many_requests_at_once_are_told_to_come_again(folder):
    async def scene():
        begun, end = asyncio.Event(), asyncio.Event()

        async def slow(scope, receive, send):
            begun.set()
            await end.wait()
            await answer(scope, receive, send)

        gate = gate_of(slow, folder, at_once=1)
        first = asyncio.create_task(call(gate))
        await begun.wait()
        second, health = await call(gate), asyncio.create_task(call(gate, "/health/live"))
        await asyncio.sleep(0)
        end.set()
        return await first, second, await health, await call(gate)

    first, second, health, third = asyncio.run(scene())
    assert first[0] == health[0] == third[0] == 200
    assert second[0] == 503
    assert second[1][b"retry-after"] == b"1"


def test_a_request_that_takes_too_long_is_ended(folder):
    async def endless(scope, receive, send):
        await asyncio.sleep(60)

    status, headers, body = asyncio.run(call(gate_of(endless, folder, seconds=0.05)))
    assert status == 503
    assert headers[b"connection"] == b"close"
    assert "0.05 seconds" in json.loads(body)["detail"]


def test_an_error_that_nobody_expected_is_a_problem_and_its_place_is_logged(folder, capsys):
    async def broken(scope, receive, send):
        raise KeyError("a secret value")

    status, headers, body = asyncio.run(call(gate_of(broken, folder)))
    assert status == 500
    assert b"secret" not in body
    logged = capsys.readouterr().err
    assert "secret" not in logged
    lines = [json.loads(line) for line in logged.splitlines()]
    assert lines[0]["kind"] == "KeyError"
    assert any("broken" in place for place in lines[0]["where"])
    assert lines[0]["id"] == lines[1]["id"] == headers[b"x-request-id"].decode()


def test_an_error_after_the_answer_has_begun_adds_nothing_to_it(folder):
    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError

    status, _, body = asyncio.run(call(gate_of(half, folder)))
    assert (status, body) == (200, b"")


@pytest.mark.parametrize("values", [False, True])
def test_values_are_logged_only_if_that_was_asked_for(folder, capsys, values):
    from tests.service.conftest import serving

    with serving(folder, log_values=values) as client:
        client.post("/models/mixed/next", json={"values": {"age": 41.5}}, headers={"X-Request-Id": "it"})
        client.post("/models/mixed/next", json={"values": {"age": "oops"}})
    logged = capsys.readouterr().err
    assert ("41.5" in logged) == values
    assert "oops" not in logged
    (line,) = [json.loads(line) for line in logged.splitlines() if '"it"' in line]
    assert (line["path"], line["status"]) == ("/models/mixed/next", 200)


def test_a_quiet_service_logs_only_problems(folder, capsys):
    from tests.service.conftest import serving

    with serving(folder, quiet=True) as client:
        capsys.readouterr()
        client.get("/models")
        client.get("/nothing")
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/models/mixed/next", {}), ("/models/mixed/next", {"values": {"age": 50}, "explain": True}),
        ("/models/mixed/next", {"values": {"agee": 1}}), ("/models/mixed/next", {"values": []}),
        ("/models/nothing/next", {}), ("/models/mixed/next/", {}), ("/models/a%2Fb/next", {}),
        ("/models/mixed/decide", {"rows": [{"age": 50}, {}]}), ("/models/mixed/decide", {"rows": [{"agee": 1}]}),
        ("/models/mixed/decide?keep=age", {"rows": [{"age": 50}]}), ("/models/mixed/decide?ids=2", {"rows": []}),
    ],
)  # fmt: skip
def test_the_short_way_to_a_route_gives_the_same_as_the_long_one(folder, path, body):
    from tests.service.conftest import serving

    def answers(client, often):
        client.app._often = often
        response = client.post(path, json=body, headers={"X-Request-Id": "same"}, follow_redirects=False)
        return response.status_code, response.json() if response.content else None, dict(response.headers)

    with serving(folder / "mixed.emsco") as client:
        short = client.app._often
        assert short
        assert answers(client, short) == answers(client, {})
        client.app._often = short
        client.post(path, json=body)
        text = client.get("/metrics").text
        if path == "/models/mixed/next":
            assert 'route="/models/{name}/next",method="POST"' in text
