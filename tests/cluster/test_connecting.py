"""Who is connected to: schedulers by address and by file, and what they must have."""

import json

import dask
import pytest

from emsco.cluster import connecting
from emsco.cluster.connecting import connected
from emsco.cluster.crew import Call, Crew
from emsco.exceptions import ClusterError, InvalidParameterError


@pytest.mark.parametrize("text", ["", "rows", "[]", "{}", '{"address": 3}', '{"address": "tcp://here"}'])
def test_a_file_that_is_not_a_schedulers_is_refused_at_once(text, tmp_path):
    (tmp_path / "scheduler.json").write_text(text)
    with pytest.raises(InvalidParameterError, match="cluster must be the file that dask scheduler"):
        connected(str(tmp_path / "scheduler.json")).__enter__()


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(connecting, "_SECONDS", 0.2)
    (tmp_path / "scheduler.json").write_text(json.dumps({"address": "tcp://127.0.0.1:9"}))
    for where in ("tcp://127.0.0.1:9", str(tmp_path / "scheduler.json")):
        with pytest.raises(ClusterError, match=f"there is no scheduler at {where}"):
            connected(where).__enter__()


def test_tls_without_certificates_is_said_at_once(tmp_path):
    none = {"distributed.comm.tls.ca-file": None}
    with dask.config.set(none), pytest.raises(ClusterError, match=r"tls://127\.0\.0\.1:9 needs TLS; set ca-file"):
        connected("tls://127.0.0.1:9").__enter__()
    path = str(tmp_path / "missing.pem")
    missing = {f"distributed.comm.tls.{name}": path for name in ("ca-file", "client.cert", "client.key")}
    with dask.config.set(missing), pytest.raises(ClusterError, match="certificates in the configuration of Dask can"):
        connected("tls://127.0.0.1:9").__enter__()


def test_a_scheduler_and_workers_without_emsco_are_named(client, monkeypatch):
    monkeypatch.setattr(connecting, "_VERSION", "emsco_is_not_there:__version__")
    with pytest.raises(ClusterError, match=r"the scheduler cannot import EMSCO \(No module named 'emsco_is_not_there'"):
        Crew(client)
    monkeypatch.setattr(client, "run_on_scheduler", lambda *_: connecting.__version__)
    with pytest.raises(ClusterError, match=r"the worker tcp://\S+ cannot import EMSCO \(No module named"):
        Crew(client)


def test_other_versions_are_named_also_those_of_workers_that_came_later(client, monkeypatch):
    crew = Crew(client)
    monkeypatch.setattr(connecting, "__version__", "9.9")
    with pytest.raises(ClusterError, match=r"has EMSCO 0\.\d\.\d; install version 9\.9"):
        Crew(client)
    assert dict(crew.run([Call(lambda _: 3, crew.totals, (), "")])) == {0: 3}  # who was asked is not asked again
    crew._asked.clear()
    with pytest.raises(ClusterError, match=r"install version 9\.9"):
        dict(crew.run([Call(lambda _: 3, crew.totals, (), "")]))
