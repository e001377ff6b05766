"""Mutated bodies for every route: `python -m tests.service.fuzz_bodies 20000`.

Whatever comes, the service answers, soon, and never with an error of its own.
"""

from collections import Counter
import json
from pathlib import Path
import sys
from tempfile import TemporaryDirectory
import time

import numpy as np
import pyarrow as pa

from emsco import MultiStageClassifier
from emsco.service.ids import make_ids
from tests.service.conftest import DESIGN, PRICES, mixed_cases, serving
from tests.service.test_inference import tensors_of
from tests.service.test_tables import ARROW, rows_of, stream_of

JSON = "application/json"
SLOWEST = 5.0  # seconds
EXTREMES = [
    None, True, -1, 0, 2**63, 10**300, 1e308, -0.0, 1e-320, "", "\x00", "\ud800", "x" * 5000, "=1+1", [], {}, [[]],
    [None] * 100, {"a": {"b": {}}}, "NaN", "Infinity", "../../etc/passwd", "\u202e", "age", "panel",
]  # fmt: skip


def seeds(version):
    """Bodies that are right, by route and media type."""
    frame, _ = mixed_cases(6, seed=3)
    rows = rows_of(frame)
    (text,) = make_ids(version, [1], [0], [True])
    tensors = tensors_of(frame)
    ages = {**tensors[0], "data": None, "parameters": {"binary_data_size": 8 * len(frame)}}
    head = json.dumps({"inputs": [ages, *tensors[1:]]}).encode()
    binary = head + frame["age"].to_numpy().tobytes()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    coded = table.set_column(2, "country", table["country"].combine_chunks().dictionary_encode())
    return [
        ("/models/mixed/next", JSON, json.dumps({"values": rows[0], "explain": True}).encode(), {}),
        ("/models/mixed/next", JSON, json.dumps({"values": {"age": 4}, "unavailable": ["panel"]}).encode(), {}),
        ("/models/mixed/decide?ids=true", JSON, json.dumps({"rows": rows, "ids": True}).encode(), {}),
        ("/models/mixed/decide", "text/csv", frame.to_csv(index=False).encode(), {}),
        ("/models/mixed/decide", ARROW, stream_of(table), {}),
        ("/models/mixed/decide", ARROW, stream_of(coded), {}),
        ("/models/mixed/outcomes", JSON, json.dumps({"outcomes": [{"id": text, "truth": "sick"}]}).encode(), {}),
        ("/v2/models/mixed/infer", JSON, json.dumps({"inputs": tensors}).encode(), {}),
        (
            "/v2/models/mixed/infer",
            "application/octet-stream",
            binary,
            {"Inference-Header-Content-Length": str(len(head))},
        ),
    ]


def mutated(rng, body, kind):
    """Return a body with a few changes."""
    if kind == JSON and rng.random() < 0.6:
        value = json.loads(body)
        for _ in range(rng.integers(1, 4)):
            value = changed(rng, value)
        return json.dumps(value).encode()
    data = bytearray(body)
    for _ in range(rng.integers(1, 6)):
        at = int(rng.integers(0, len(data) + 1))
        match rng.integers(6):
            case 0 if data:
                data[at % len(data)] = int(rng.integers(256))
            case 1 if data:
                data[at % len(data)] ^= 1 << int(rng.integers(8))
            case 2:
                del data[at:]
            case 3:
                data[at:at] = rng.bytes(int(rng.integers(1, 20)))
            case 4:
                data[at:at] = data[: int(rng.integers(0, 200))]
            case _:
                word = rng.choice([2**31 - 1, 2**32 - 1, 2**16, 0, 1, 7]).astype("<u4").tobytes()
                data[at : at + 4] = word
    return bytes(data)


def changed(rng, value):
    """Return a JSON value with one part of it replaced, removed or added."""
    if rng.random() < 0.25 or not isinstance(value, dict | list) or not value:
        return EXTREMES[rng.integers(len(EXTREMES))]
    if isinstance(value, list):
        i = int(rng.integers(len(value)))
        return [changed(rng, part) if k == i else part for k, part in enumerate(value)] * int(rng.integers(1, 3))
    keys = list(value)
    key = keys[rng.integers(len(keys))]
    if rng.random() < 0.2:
        return {name: part for name, part in value.items() if name != key}
    if rng.random() < 0.2:
        return {**value, str(EXTREMES[rng.integers(len(EXTREMES))]): value[key]}
    return {**value, key: changed(rng, value[key])}


def fuzz(client, n, seed=0):
    """Send n mutated bodies; return how often each status came, and what must not happen."""
    rng = np.random.default_rng(seed)
    version = client.get("/models/mixed").json()["version"]
    statuses, bad = Counter(), []
    originals = seeds(version)
    for path, kind, body, headers in originals:
        response = client.post(path, content=body, headers={"Content-Type": kind, **headers})
        assert response.status_code == 200, (path, response.text)
    for _ in range(n):
        path, kind, body, headers = originals[rng.integers(len(originals))]
        body = mutated(rng, body, kind)
        if rng.random() < 0.05:
            kind = originals[rng.integers(len(originals))][1]
        began = time.monotonic()
        response = client.post(path, content=body, headers={"Content-Type": kind, **headers})
        took = time.monotonic() - began
        statuses[response.status_code] += 1
        problem = response.headers["content-type"] == "application/problem+json"
        if response.status_code >= 500 or took > SLOWEST or problem != (response.status_code >= 400):
            bad.append((path, kind, body[:300], response.status_code, took, response.text[:300]))
    return statuses, bad


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with TemporaryDirectory() as folder:
        X, y = mixed_cases()
        MultiStageClassifier(DESIGN, PRICES, threshold=0.85).fit(X, y).save(Path(folder) / "mixed.emsco")
        with serving(Path(folder), outcomes=Path(folder) / "outcomes.db", quiet=True) as client:
            statuses, bad = fuzz(client, n)
    print(dict(sorted(statuses.items())))
    for case in bad[:20]:
        print(case)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
