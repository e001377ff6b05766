"""Real processes: started, killed, replaced, ended."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from io import BytesIO
import json
import os
from pathlib import Path
import shutil
import signal
import socket
import subprocess
import sys
from threading import Thread
import time

import httpx2
import pandas as pd
import pytest

from tests.service.conftest import HEART

PATIENCE = 120  # seconds: a busy machine is slow, and that is no failure


class Process:
    """A service in a process of its own; what it logs is in ``lines``."""

    def __init__(self, *arguments, cwd, verify=True):
        self._verify = verify
        self.log = Path(cwd) / "log.jsonl"
        with self.log.open("wb") as log:
            command = [sys.executable, "-m", "emsco", "serve", *map(str, arguments), "--port", "0"]
            self.process = subprocess.Popen(command, cwd=cwd, stderr=log, stdout=subprocess.DEVNULL)
        self.url = self.wait_for("starting")["address"]
        self.port = int(self.url.rpartition(":")[2])

    @property
    def lines(self):
        whole = self.log.read_text().rpartition("\n")[0]
        return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]

    def wait_for(self, event, n=1, **facts):
        def found():
            lines = [line for line in self.lines if line["event"] == event]
            lines = [line for line in lines if all(line.get(name) == value for name, value in facts.items())]
            return lines[n - 1] if len(lines) >= n else None

        return self.wait_until(found)

    def wait_until(self, condition):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if (result := condition()) is not None:
                return result
            assert self.process.poll() is None, self.log.read_text()
            time.sleep(0.05)
        raise AssertionError(self.log.read_text())

    def ready(self):
        try:
            return (
                True
                if httpx2.get(f"{self.url}/health/ready", timeout=5, verify=self._verify).status_code == 200
                else None
            )
        except httpx2.HTTPError:
            return None


@cache
def loopback():
    """Whether this machine reaches itself; in a bare network namespace it does not."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        try:
            socket.create_connection(server.getsockname(), timeout=PATIENCE).close()
        except OSError:
            return False
    return True


@contextmanager
def process(*arguments, cwd, **settings):
    if not loopback():
        assert not os.environ.get("EMSCO_REQUIRE_ALL"), "127.0.0.1 cannot be reached."
        pytest.skip("127.0.0.1 cannot be reached")
    started = Process(*arguments, cwd=cwd, **settings)
    try:
        started.wait_until(started.ready)
        yield started
    finally:
        if started.process.poll() is None:
            started.process.terminate()
            try:
                started.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                started.process.kill()
                started.process.wait()


@pytest.fixture
def connect():
    """Open connections to a service; they are closed at the end."""
    opened = []

    def connect_to(service):
        opened.append(socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE))
        return opened[-1]

    yield connect_to
    for connection in opened:
        connection.close()


def ask(url, **question):
    return httpx2.post(f"{url}/models/mixed/next", json=question, timeout=PATIENCE)


def test_a_model_is_swapped_while_it_serves(folder, tmp_path):
    path = tmp_path / "mixed.emsco"
    shutil.copy(folder / "mixed.emsco", path)
    with process(path, cwd=tmp_path) as service:
        before = ask(service.url).json()
        path.write_bytes(b"broken")
        service.wait_for("model refused")
        assert ask(service.url).json() == before
        new = tmp_path / "new"
        shutil.copy(folder / "promising.emsco", new)
        new.replace(path)
        service.wait_for("model loaded", n=2)
        assert ask(service.url).json()["version"] != before["version"]


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signals")
def test_a_killed_worker_is_replaced_and_the_others_answer(folder, tmp_path):
    with process(folder / "mixed.emsco", "--workers", "2", cwd=tmp_path) as service:
        service.wait_for("model loaded", n=2)
        pid = service.wait_for("worker started", worker=0)["pid"]
        os.kill(pid, signal.SIGKILL)
        assert service.wait_for("worker ended", worker=0)["exit_code"] == -signal.SIGKILL
        again = service.wait_for("worker started", n=2, worker=0)
        assert again["pid"] != pid
        service.wait_for("model loaded", n=3)
        assert ask(service.url).status_code == 200
        service.process.terminate()
        assert service.process.wait(PATIENCE) == 0


def test_sigterm_lets_requests_end_and_says_no_to_readiness(folder, tmp_path, connect):
    with process(folder / "mixed.emsco", "--drain-delay", "100", cwd=tmp_path) as service:
        body = json.dumps({"values": {"age": 50}}).encode()
        slow = connect(service)
        head = "POST /models/mixed/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:5])
        ask(service.url)  # by now, the slow request has begun
        service.process.terminate()
        service.wait_until(lambda: None if service.ready() else True)
        during = ask(service.url)
        assert during.status_code == 200
        assert during.headers["connection"] == "close"
        service.process.terminate()  # again: the delay ends
        service.wait_until(lambda: None if answers(service) else True)
        slow.sendall(body[5:])
        answer = b"".join(iter(lambda: slow.recv(65536), b""))  # until it is closed
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"acquire"' in answer
        assert service.process.wait(PATIENCE) == 0


def answers(service):
    try:
        return ask(service.url).status_code == 200
    except httpx2.ConnectError:
        return False


def test_heads_and_bodies_that_never_end_are_closed(folder, tmp_path, connect):
    with process(folder / "mixed.emsco", "--timeout", "3", cwd=tmp_path) as service:
        head, body = connect(service), connect(service)
        head.sendall(b"GET /models HTTP/1.1\r\nHost: local")
        body.sendall(
            b"POST /models/mixed/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Content-Length: 10\r\n\r\n{"
        )
        assert head.recv(100) == b""
        assert body.recv(100).startswith(b"HTTP/1.1 503")


def test_a_long_body_arrives_whole_however_it_is_sent(folder, fitted, tmp_path, connect):
    frame = pd.concat([HEART.data] * 90, ignore_index=True)
    body = frame.to_csv(index=False).encode()
    assert len(body) > 2**20  # more than is taken before the route asks for it
    head = b"POST /models/heart/decide HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    parts = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in split(body, 100_003))
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + parts + b"0\r\n\r\n"
    wanted = fitted["heart"].decide(frame)
    with process(folder / "heart.emsco", cwd=tmp_path) as service:
        connection = connect(service)
        answers = connection.makefile("rb")
        for sent in (whole, chunked, whole + chunked, chunked + whole):  # the last two are in one go
            sending = Thread(target=lambda sent=sent: [connection.sendall(part) for part in split(sent, 70_001)])
            sending.start()
            for _ in range(sent.count(head)):
                found = pd.read_csv(BytesIO(answer_from(answers)))
                assert found["stage"].tolist() == wanted.stage.tolist()
                assert found["confidence"].tolist() == pytest.approx(wanted.confidence.tolist(), abs=1e-12)
            sending.join()


def split(data, size):
    return [data[i : i + size] for i in range(0, len(data), size)]


def answer_from(file):
    """The body of the next answer on a connection."""
    head = b"".join(iter(file.readline, b"\r\n"))
    assert head.startswith(b"HTTP/1.1 200"), head
    return file.read(int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0]))


def test_an_endless_head_is_closed(folder, tmp_path, connect):
    with process(folder / "mixed.emsco", "--timeout", "1000", cwd=tmp_path) as service:
        endless = connect(service)
        endless.sendall(b"GET /models HTTP/1.1\r\nHost: localhost\r\n")
        with suppress(OSError):
            for _ in range(1000):
                endless.sendall(b"X-Header: " + b"x" * 1000 + b"\r\n")
        with suppress(ConnectionResetError):
            assert endless.recv(100) == b""
        service.wait_until(service.ready)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")
def test_https_with_a_certificate(folder, tmp_path):
    made = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key.pem -out cert.pem"
    subprocess.run(["openssl", *made.split()], cwd=tmp_path, check=True, capture_output=True)
    options = ("--tls-cert", tmp_path / "cert.pem", "--tls-key", tmp_path / "key.pem")
    with process(folder / "mixed.emsco", *options, cwd=tmp_path, verify=False) as service:
        assert service.url.startswith("https://")
        assert httpx2.get(f"{service.url}/models", verify=False).json()["models"][0]["name"] == "mixed"


def test_connections_beyond_the_limit_are_closed(folder, tmp_path, connect):
    with process(folder / "mixed.emsco", "--timeout", "1000", "--max-connections", "3", cwd=tmp_path) as service:
        many = [connect(service) for _ in range(12)]
        assert [connection.recv(1) for connection in many[-5:]] == [b""] * 5
        for connection in many:
            connection.close()
        service.wait_until(service.ready)


def test_answers_of_two_workers_under_load_are_those_of_one(folder, fitted, tmp_path):
    with process(folder / "mixed.emsco", "--workers", "2", "--quiet", cwd=tmp_path) as service:
        service.wait_for("model loaded", n=2)
        questions = [{"values": {"age": float(age)}} for age in range(20, 90)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda question: ask(service.url, **question).json(), questions))
        for question, answer in zip(questions, found, strict=True):
            session = fitted["mixed"].session()
            session.give(question["values"])
            assert answer["acquire"]["columns"] == list(session.step().columns)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.emsco"], "there is no file"),
        (["{model}", "--host", "0.0.0.0"], "--host is '0.0.0.0', which others can reach"),
        (["{model}", "--max-rows", "0"], "--max-rows must be more than 0"),
        (["{model}", "--host", "256.1.1.1", "--insecure"], "cannot be listened at"),
        (["{model}", "--token-file", "nothing"], "nothing cannot be read"),
        (["{model}", "--token-file", "nothing", "--workers", "2"], "nothing cannot be read"),
        (["nothing.emsco", "--workers", "2"], "there is no file"),
    ],
)
def test_a_service_that_cannot_start_says_why(folder, tmp_path, arguments, said):
    model = str(folder / "mixed.emsco")
    command = [sys.executable, "-m", "emsco", "serve", *(a.format(model=model) for a in arguments), "--port", "0"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "warning" not in done.stderr
    assert "The page is at" not in done.stdout
