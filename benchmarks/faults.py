"""The decision service while things go wrong: `python -m benchmarks.faults`.

Workers killed, the service ended, model files replaced (some by broken ones), a full disk: under load, on 127.0.0.1.
No answer may be wrong and no acknowledged outcome lost; how many requests failed is said.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, contextmanager
import json
import os
from pathlib import Path
import signal
import sqlite3
import subprocess
import sys
from tempfile import TemporaryDirectory
import time
from typing import Any

import numpy as np
import uvloop

from benchmarks.load import Connection, Result, flood, request_of
from benchmarks.service import agrees, fitted, free_port, memory, running, serve, walked
from emsco import MultiStageClassifier
from emsco.datasets import load_heart_failure


def children(pid: int) -> list[int]:
    """The workers of a service: its children that serve."""
    found = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in found if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()]


async def under_load(
    port: int,
    requests: list[bytes],
    check: Callable[[int, bytes], bool],
    seconds: float,
    fault: Callable[[], Awaitable[None]],
) -> Result:
    load = asyncio.create_task(flood(port, requests, n_connections=8, seconds=seconds, check=check))
    await fault()
    return await load


def said(what: str, result: Result, more: str = "") -> None:
    n = len(result.times) + result.n_broken
    print(
        f"{what}: {n:,} requests, {result.n_failed} wrong or refused, {result.n_broken} without an answer. {more}",
        flush=True,
    )


def kills(folder: Path) -> None:
    clf, model, data = fitted(folder)
    bodies, wanted = walked(clf, data)
    questions = [request_of("/models/heart/next", body) for body in bodies]
    port = free_port()
    with running(serve(model, port, "--workers", "2"), port, "/health/ready") as process:
        while len(children(process.pid)) < 2:
            time.sleep(0.1)
        killed = []

        async def kill() -> None:
            for _ in range(3):
                await asyncio.sleep(8)
                killed.append(children(process.pid)[0])
                os.kill(killed[-1], signal.SIGKILL)

        result = uvloop.run(under_load(port, questions, lambda i, body: agrees(wanted[i], body), 32, kill))
        said("3 workers killed with SIGKILL", result, f"{len(children(process.pid))} workers at the end.")


def terminated(folder: Path) -> None:
    clf, model, data = fitted(folder)
    bodies, wanted = walked(clf, data)
    questions = [request_of("/models/heart/next", body) for body in bodies]
    port = free_port()
    with running(serve(model, port, "--workers", "2"), port, "/health/ready") as process:
        took = []

        async def terminate() -> None:
            await asyncio.sleep(4)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            while process.poll() is None:
                await asyncio.sleep(0.05)
            took.append(time.monotonic() - began)

        async def scene() -> tuple[Result, int]:
            """Count until the port is closed: whoever comes after that was told by readiness."""
            wrong = []
            ended = asyncio.create_task(terminate())
            result = Result()

            async def client() -> None:
                connection, i = Connection(port), 0
                while not ended.done():
                    i = (i + 1) % len(questions)
                    try:
                        status, body = await connection.send(questions[i])
                    except ConnectionRefusedError:
                        return
                    except (OSError, asyncio.IncompleteReadError):
                        result.n_broken += 1
                        continue
                    result.times.append(0.0)
                    result.n_failed += status != 200
                    if status == 200 and not agrees(wanted[i], body):
                        wrong.append(i)

            await asyncio.gather(*(client() for _ in range(8)), ended)
            return result, len(wrong)

        result, n_wrong = uvloop.run(scene())
        said(
            "SIGTERM",
            result,
            f"{n_wrong} wrong answers; ended after {took[0]:.1f} s with exit code {process.returncode}.",
        )


def late(folder: Path) -> None:
    """SIGTERM while the successor of a killed worker starts, at several moments."""
    clf, model, data = fitted(folder)
    questions = [request_of("/models/heart/next", body) for body in walked(clf, data)[0]]
    for delay in (0.0, 0.1, 0.3, 0.6, 0.9, 1.2, 1.6, 2.2):
        port = free_port()
        with running(serve(model, port, "--workers", "2"), port, "/health/ready") as process:
            while len(children(process.pid)) < 2:
                time.sleep(0.05)
            time.sleep(2)

            async def scene(process: Any = process, port: int = port, delay: float = delay) -> float:
                load = asyncio.create_task(flood(port, questions, n_connections=8, seconds=90))
                await asyncio.sleep(0.5)
                os.kill(children(process.pid)[0], signal.SIGKILL)
                await asyncio.sleep(delay)
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                while process.poll() is None:
                    await asyncio.sleep(0.02)
                load.cancel()
                return time.monotonic() - began

            took = uvloop.run(scene())
        print(f"SIGTERM {delay} s after a SIGKILL: ended after {took:.1f} s, code {process.returncode}", flush=True)


def swaps(folder: Path) -> None:
    heart = load_heart_failure()
    first, model, data = fitted(folder)
    second = MultiStageClassifier([["age", "serum_creatinine"], ["ejection_fraction"]], heart.prices, threshold=0.8)
    second.fit(heart.data, heart.target).save(folder / "second")
    files = {"first": model.read_bytes(), "second": (folder / "second").read_bytes()}
    values = [dict(row) for row in data.to_dict("records")]
    wanted = []
    decided = {"first": first.decide(data), "second": second.decide(data)}
    for i in range(len(data)):
        wanted.append({name: (d.confidence[i], d.stage[i], d.cost[i]) for name, d in decided.items()})
    from hashlib import sha256

    names = {sha256(content).hexdigest()[:16]: name for name, content in files.items()}
    requests = [request_of("/models/heart/next", json.dumps({"values": row}).encode()) for row in values]
    seen: dict[str, int] = {}

    def check(i: int, body: bytes) -> bool:
        answer = json.loads(body)
        name = names[answer["version"]]
        seen[name] = seen.get(name, 0) + 1
        decision = answer["decision"]
        return (decision["confidence"], decision["stage"], decision["cost"]) == wanted[i][name]

    port = free_port()
    with running(serve(model, port, "--workers", "2"), port, "/health/ready"):

        async def swap() -> None:
            for k in range(100):
                content = b"broken" * 100 if k % 10 == 5 else files["second" if k % 2 else "first"]
                (folder / "new").write_bytes(content)
                (folder / "new").replace(model)
                await asyncio.sleep(0.4)

        result = uvloop.run(under_load(port, requests, check, 42, swap))
        said("100 replacements, 10 of them broken", result, f"Answers by version: {seen}.")


@contextmanager
def small_disk(folder: Path, megabytes: int):  # type: ignore[no-untyped-def]
    """A file system of a few megabytes, if this user may make one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    made = subprocess.run(command, check=False, capture_output=True).returncode == 0
    try:
        yield made
    finally:
        if made:
            subprocess.run(["umount", str(folder)], check=False)


def full_disk(folder: Path) -> None:
    _, model, data = fitted(folder)
    with small_disk(folder / "disk", 1) as made:
        if not made:
            print("full disk: left out, as this user may not mount one")
            return
        port, store = free_port(), folder / "disk" / "outcomes.db"
        rows = json.loads(data.to_json(orient="records"))
        acknowledged: set[str] = set()
        statuses: dict[int, int] = {}

        async def send(rounds: int) -> None:
            connection = Connection(port)
            for _ in range(rounds):
                body = json.dumps({"rows": rows, "ids": True}).encode()
                _, answer = await connection.send(request_of("/models/heart/decide", body))
                ids = [decision["id"] for decision in json.loads(answer)["decisions"]]
                for part in np.array_split(ids, 10):
                    outcomes = [{"id": str(i), "truth": 0} for i in part]
                    request = request_of("/models/heart/outcomes", json.dumps({"outcomes": outcomes}).encode())
                    status, _ = await connection.send(request)
                    statuses[status] = statuses.get(status, 0) + 1
                    if status == 200:
                        acknowledged.update(outcome["id"] for outcome in outcomes)
            connection.close()

        with running(serve(model, port, "--outcomes", str(store)), port, "/health/ready") as process:
            uvloop.run(send(40))
            before = memory(process.pid)
            process.kill()
        with closing(sqlite3.connect(store)) as file:
            stored = {row[0] for row in file.execute("SELECT id FROM outcomes")}
        lost = acknowledged - stored
        print(
            f"full disk, then SIGKILL: statuses {statuses}; {len(acknowledged):,} outcomes acknowledged, {len(lost)} "
            f"of them lost, {len(stored - acknowledged)} stored without a word; {before:.0f} MB",
            flush=True,
        )


def main() -> None:
    chosen: dict[str, Any] = {"kills": kills, "sigterm": terminated, "late": late, "swaps": swaps, "disk": full_disk}
    for name in sys.argv[1:] or chosen:
        with TemporaryDirectory() as folder:
            chosen[name](Path(folder))


if __name__ == "__main__":
    main()
