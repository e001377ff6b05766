from base64 import b64encode
import time

import pytest

from emsco.exceptions import FileError, InvalidParameterError
from emsco.service.settings import Limits, Settings, Source
from emsco.service.tokens import Tokens
from tests.service.conftest import serving

GOOD, OTHER, ENDED = "a-token-that-is-long", "another-token-that-is", "a-token-that-has-ended"
FILE = f"# tokens\n\n{GOOD}\n{OTHER} 2999-01-01\n{ENDED} 2020-01-01T00:00:00+01:00\n"


@pytest.fixture
def token_file(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(FILE)
    return path


def bearer(token):
    return f"Bearer {token}".encode()


def test_tokens_are_known_until_they_end(token_file):
    tokens = Tokens(token_file)
    now = time.time()
    assert tokens.allow(bearer(GOOD), now)
    assert tokens.allow(bearer(OTHER), now)
    assert tokens.allow(b"Basic " + b64encode(f"anyone:{GOOD}".encode()), now)
    assert not tokens.allow(bearer(ENDED), now)
    assert tokens.allow(bearer(ENDED), 0.0)
    for header in (None, b"", b"Bearer", b"Bearer ", bearer("no"), bearer(GOOD + "x"), b"Basic !", b"Digest x"):
        assert not tokens.allow(header, now)


def test_a_file_that_changes_is_read_again_and_a_wrong_one_changes_nothing(token_file):
    tokens = Tokens(token_file)
    assert not tokens.look()
    token_file.write_text("short\n")
    with pytest.raises(FileError, match="line 1"):
        tokens.look()
    assert tokens.allow(bearer(GOOD), time.time())
    token_file.write_text("a-new-token-of-a-file\n")
    assert tokens.look()
    assert not tokens.allow(bearer(GOOD), time.time())


@pytest.mark.parametrize("text", ["", "# nothing\n", "short\n", f"{GOOD} tomorrow\n", f"{GOOD} 2027-01-01 x\n"])
def test_wrong_files_are_refused(tmp_path, text):
    path = tmp_path / "tokens"
    path.write_text(text)
    with pytest.raises(FileError):
        Tokens(path)
    with pytest.raises(FileError, match="cannot be read"):
        Tokens(tmp_path / "nothing")


def every_route(client):
    """Every route of the application, whether the schema has it or not: a new one cannot be forgotten."""
    routes = [route for route in client.app._app.routes if route.path != "/openapi.json"]
    for route in routes:
        for method in route.methods:
            yield method, route.path.replace("{name}", "heart").replace("{version}", "1")


def test_every_route_but_health_wants_a_token(folder, token_file):
    with serving(folder, token_file=token_file) as client:
        routes = [*every_route(client), ("GET", "/openapi.json"), ("GET", "/no")]
        paths = client.get("/openapi.json", headers={"Authorization": f"Bearer {GOOD}"}).json()["paths"]
        assert len(routes) >= len(paths) + 5  # the pages are not in the schema
        assert {"/", "/live", "/explore"} <= {path for _, path in routes}
        for method, path in routes:
            for headers in ({}, {"Authorization": "Bearer wrong-wrong-wrong"}, {"Authorization": f"Bearer {ENDED}"}):
                response = client.request(method, path, headers=headers)
                if "/health/" in path:
                    assert response.status_code == 200
                else:
                    assert response.status_code == 401, path
                    assert "Bearer" in response.headers["www-authenticate"]
                    assert response.headers["content-type"] == "application/problem+json"
            right = client.request(method, path, headers={"Authorization": f"Bearer {GOOD}"})
            assert right.status_code != 401


def test_an_address_that_others_can_reach_needs_tokens(folder, token_file):
    sources = (Source(folder),)
    for host in ("0.0.0.0", "::", "192.0.2.7", "example.org"):
        with pytest.raises(InvalidParameterError, match="others can reach"):
            Settings(sources, host=host)
        Settings(sources, host=host, insecure=True)
        assert not Settings(sources, host=host, token_file=token_file).is_local
    for host in ("127.0.0.1", "::1", "localhost", "127.8.8.8"):
        assert Settings(sources, host=host).is_local


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"tls_cert": "x"}, {"sources": ()}])
def test_other_settings_are_checked(folder, wrong):
    with pytest.raises(InvalidParameterError):
        Settings(**{"sources": (Source(folder),), **wrong})
    with pytest.raises(InvalidParameterError, match="rows must be more than 0"):
        Limits(rows=0)


def test_a_page_elsewhere_cannot_reach_the_service_under_a_name_of_its_own(folder):
    with serving(folder, hosts=("Proxy.example",)) as client:
        for host, status in {
            "localhost": 200, "localhost:8000": 200, "127.0.0.1:80": 200, "[::1]:8000": 200, "proxy.example": 200,
            "evil.example": 421, "": 421, "localhost.evil.example": 421,
        }.items():  # fmt: skip
            response = client.get("/models", headers={"Host": host})
            assert response.status_code == status, host
