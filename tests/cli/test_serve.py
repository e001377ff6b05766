from pathlib import Path

import pytest

from emsco.service.settings import Source
from tests.cli.calls import call


@pytest.fixture
def settings(monkeypatch):
    """The settings that the command starts the service with."""
    started = []

    def serve(settings, on_address):
        started.append(settings)
        on_address("http://127.0.0.1:8000")
        return 0

    monkeypatch.setattr("emsco.service.server.serve", serve)
    return started


def test_options_become_settings(settings, capsys, model, tmp_path):
    (tmp_path / "a=b.emsco").write_bytes(b"")
    printed = call(
        capsys, "serve", model, f"ward7={model}", tmp_path / "a=b.emsco", tmp_path, "--port", 0, "--max-rows", 5,
        "--max-body", 6, "--max-columns", 7, "--max-text", 8, "--max-requests", 9, "--max-connections", 10,
        "--timeout", 11, "--drain-delay", 0, "--drain-time", 12, "--workers", 2, "--allow-host", "a",
        "--allow-host", "b", "--outcomes", tmp_path / "outcomes.db", "--quiet", "--log-values",
    )  # fmt: skip
    assert printed.out == "The page is at http://127.0.0.1:8000. Ctrl-C ends the service.\n"
    (found,) = settings
    assert found.sources == (
        Source(model), Source(model, "ward7"), Source(tmp_path / "a=b.emsco"), Source(tmp_path),
    )  # fmt: skip
    assert vars(found.limits) == {
        "rows": 5, "body": 6, "columns": 7, "text": 8, "at_once": 9, "connections": 10, "seconds": 11,
    }  # fmt: skip
    assert (found.port, found.workers, found.hosts) == (0, 2, ("a", "b"))
    assert (found.drain_delay, found.drain_seconds) == (0, 12)
    assert (found.outcomes, found.quiet, found.log_values) == (tmp_path / "outcomes.db", True, True)


def test_what_is_left_out_is_as_the_settings_have_it(settings, capsys, model):
    from emsco.service.settings import Settings

    call(capsys, "serve", model)
    assert settings == [Settings((Source(Path(model)),))]


def test_errors_name_the_options(settings, capsys, model):
    assert "--host is '0.0.0.0'" in call(capsys, "serve", model, "--host", "0.0.0.0", expect=1).err
    assert "--max-text must be more than 0" in call(capsys, "serve", model, "--max-text", 0, expect=1).err
    assert "--tls-cert needs both" in call(capsys, "serve", model, "--tls-cert", model, expect=1).err
    assert "--workers must be at least 1" in call(capsys, "serve", model, "--workers", 0, expect=1).err
    assert settings == []
