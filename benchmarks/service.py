"""The decision service under load: `python -m benchmarks.service`, some seven minutes; --requests 50000 is shorter.

Everything is on 127.0.0.1 and bounded. The client and both services share the machine, so that ratios say more than
rates. Answers are compared with `decide` first.
"""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import chain
import json
import os
from pathlib import Path
import re
import socket
from statistics import median
import subprocess
import sys
from tempfile import TemporaryDirectory
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import ipc
import uvloop

from benchmarks.common import Bar, best_of
from benchmarks.load import Result, flood, one_by_one, request_of, steady
from emsco import Acquire, MultiStageClassifier, load
from emsco.datasets import load_heart_failure

ROUNDS, SECONDS, CONNECTIONS = 5, 3.0, 16
ARROW = "application/vnd.apache.arrow.stream"


@contextmanager
def running(command: list[str], port: int, path: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server, wait until it answers, and end it."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 300  # a busy machine is slow
        while time.monotonic() < end:
            try:
                with urlopen(f"http://127.0.0.1:{port}{path}", timeout=5):
                    break
            except HTTPError:  # it answers, if only that it wants something else
                break
            except OSError:
                time.sleep(0.02)
        yield process
    finally:
        process.terminate()
        process.wait(60)


def free_port() -> int:
    with socket.socket() as chosen:
        chosen.bind(("127.0.0.1", 0))
        return int(chosen.getsockname()[1])


def serve(model: Path, port: int, *more: str) -> list[str]:
    return [sys.executable, "-m", "emsco", "serve", str(model), "--port", str(port), "--quiet", *more]


def fitted(folder: Path) -> tuple[Any, Path, pd.DataFrame]:
    """A classifier of three stages on the heart-failure data, as a file."""
    heart = load_heart_failure()
    design = [["age", "ejection_fraction"], ["serum_creatinine", "sex"], ["serum_sodium", "platelets"]]
    clf = MultiStageClassifier(design, heart.prices, threshold=0.8).fit(heart.data, heart.target)
    clf.save(folder / "heart.emsco")
    return load(folder / "heart.emsco"), folder / "heart.emsco", heart.data


def walked(clf: Any, data: pd.DataFrame) -> tuple[list[bytes], list[dict[str, Any]]]:
    """Return a body for every stage that every row reaches, and what the answer must say."""
    bodies, wanted = [], []
    for row in data.to_dict("records"):
        session, values = clf.session(), {}
        while True:
            answer = session.step()
            bodies.append(json.dumps({"values": values}).encode())
            if not isinstance(answer, Acquire):
                label = getattr(answer, "label", None)
                wanted.append(
                    {"label": label, "confidence": answer.confidence, "cost": answer.cost, "stage": answer.stage}
                )
                break
            wanted.append({"columns": list(answer.columns), "stage": answer.stage})
            new = {column: row[column] for column in answer.columns}
            values = {**values, **new}
            session.give(new)
    return bodies, wanted


def agrees(wanted: dict[str, Any], body: bytes) -> bool:
    answer = json.loads(body)
    found = answer.get("acquire") or answer["decision"]
    return all(found[name] == value for name, value in wanted.items())


def memory(pid: int) -> float:
    """Megabytes of a process and its children, without what they share with others."""
    pids = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    total = 0
    for each in pids:
        found = re.findall(r"Private_(?:Clean|Dirty):\s+(\d+)", Path(f"/proc/{each}/smaps_rollup").read_text())
        total += sum(map(int, found))
    return total / 1024


def resident(pid: int) -> float:
    """Megabytes of a process in memory, shared libraries included."""
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1024


def bars() -> Iterator[Bar]:
    with TemporaryDirectory() as name:
        clf, model, data = fitted(Path(name))
        bodies, wanted = walked(clf, data)
        port, other = free_port(), free_port()
        with running(serve(model, port), port, "/health/ready"):
            pass  # the first start on a machine compiles
        began = time.perf_counter()
        with running(serve(model, port), port, "/health/ready") as process:
            ready = time.perf_counter() - began
            yield Bar("seconds until emsco serve is ready", ready, "s", 2, "from the start of the process")
            questions = [request_of("/models/heart/next", body) for body in bodies]
            check = lambda i, body: agrees(wanted[i], body)  # noqa: E731
            first = uvloop.run(flood(port, questions, n_connections=8, n=len(questions), check=check))
            assert first.n_failed == first.n_broken == 0, "an answer differs from decide"
            with running([sys.executable, "-m", "benchmarks.echo", str(other)], other, "/echo"):
                echoes = [request_of("/echo", body) for body in bodies]
                ours, theirs = in_turns(port, questions, other, echoes)
            top = median(result.rate for result in ours)
            yield Bar(
                "next against a bare FastAPI echo of the same body", top / median(r.rate for r in theirs), "x", 0.6,
                f"{top:,.0f} against {median(r.rate for r in theirs):,.0f} a second, {CONNECTIONS} connections",
            )  # fmt: skip
            half = uvloop.run(steady(port, questions, rate=top / 2, seconds=10, n_connections=64))
            assert half.n_failed == half.n_broken == 0
            yield Bar(
                "p99 of next at half of the top rate", 1e3 * half.quantile(0.99), "ms", 20,
                f"median {1e3 * half.quantile(0.5):.2f} ms, {len(half.times):,} requests, {memory(process.pid):.0f} MB",
            )  # fmt: skip
            yield from tables(port, clf, data)


def in_turns(port: int, questions: list[bytes], other: int, echoes: list[bytes]) -> tuple[list[Result], list[Result]]:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        for found, where, requests in ((ours, port, questions), (theirs, other, echoes)):
            found.append(uvloop.run(flood(where, requests, n_connections=CONNECTIONS, seconds=SECONDS)))
            assert found[-1].n_failed == found[-1].n_broken == 0
    return ours, theirs


def tables(port: int, clf: Any, data: pd.DataFrame) -> Iterator[Bar]:
    frame = pd.concat([data] * 34, ignore_index=True)[:10_000].astype(np.float64)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    sink = BytesIO()
    with ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    request = request_of("/models/heart/decide", sink.getvalue(), ARROW)
    decisions = clf.decide(table)

    _, answer = one_by_one(port, request, 20)
    assert (ipc.open_stream(answer).read_all()["confidence"].to_numpy() == decisions.confidence).all()
    over_http = typical(port, request)
    way = transport(sink.getvalue(), len(answer))
    direct = best_of(lambda: clf.decide(frame), 100)
    without = best_of(lambda: clf.decide(table), 100)
    yield Bar(
        "decide of 10,000 rows by Arrow against clf.decide of the data frame", direct / over_http, "x", 0.3,
        f"{1e3 * over_http:.2f} ms against {1e3 * direct:.2f} ms, or {1e3 * without:.2f} ms of the Arrow table; to and "
        f"from a bare endpoint, the same {(len(request) + len(answer)) / 2**20:.1f} MB take {1e3 * way:.2f} ms",
    )  # fmt: skip


def typical(port: int, request: bytes) -> float:
    """Seconds that a request takes: of three times a hundred, the median of the fastest hundred."""
    results = [one_by_one(port, request, 100)[0] for _ in range(3)]
    assert not any(result.n_failed for result in results)
    return min(result.quantile(0.5) for result in results)


def transport(body: bytes, n_back: int) -> float:
    """Seconds that a bare endpoint takes for a body of this length, and an answer of that one."""
    port = free_port()
    with running([sys.executable, "-m", "benchmarks.echo", str(port)], port, "/echo"):
        return typical(port, request_of(f"/sent?back={n_back}", body, ARROW))


def flat(n_requests: int) -> Iterator[Bar]:
    """Many requests to one worker: memory after the first tenth and at the end, and what went wrong."""
    with TemporaryDirectory() as name:
        clf, model, data = fitted(Path(name))
        bodies, wanted = walked(clf, data)
        port = free_port()
        questions = [request_of("/models/heart/next", body) for body in bodies]
        check = lambda i, body: agrees(wanted[i], body)  # noqa: E731
        with running(serve(model, port), port, "/health/ready") as process:
            n_wrong, sizes = 0, []
            for n in (n_requests // 10, n_requests - n_requests // 10):
                result = uvloop.run(flood(port, questions, n_connections=CONNECTIONS, n=n, check=check))
                n_wrong += result.n_failed + result.n_broken
                sizes.append((memory(process.pid), resident(process.pid)))
        (first, _), (last, rss) = sizes
        yield Bar(
            f"growth of the memory over {n_requests:,} requests", 100 * max(last / first - 1, 0.0), "percent", 5,
            f"{first:.1f} MB after a tenth of them, {last:.1f} MB at the end; {rss:.0f} MB with shared libraries (RSS)",
        )  # fmt: skip
        yield Bar(f"wrong, failed or broken ones of {n_requests:,} requests", n_wrong, "", 0, "answers equal decide")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000, help="for the line about memory; 0: leave it out")
    n_requests = parser.parse_args().requests
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    missed = 0
    for bar in chain(bars(), flat(n_requests) if n_requests else ()):
        sign = ">=" if bar.more_is_better else "<="
        verdict = "" if bar.met else "MISSED"
        missed += not bar.met
        line = f"{bar.name:<70} {bar.value:8.3g} {bar.unit:<8} {sign} {bar.floor:<4g} {verdict:<7} {bar.detail}"
        print(line, flush=True)
    return missed


if __name__ == "__main__":
    asyncio.set_event_loop_policy(None)
    sys.exit(main() > 0)
