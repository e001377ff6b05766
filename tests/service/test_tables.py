from io import BytesIO
import json

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import ipc
import pytest

from emsco.service.ids import read_id
from emsco.service.settings import Limits
from tests.service.conftest import HEART, HOSTILE, mixed_cases, serving
from tests.service.test_cases import TABLES, plain

ARROW = "application/vnd.apache.arrow.stream"


def stream_of(table, **options):
    sink = BytesIO()
    with ipc.new_stream(sink, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return sink.getvalue()


def post(client, name, body, kind, **parameters):
    return client.post(f"/models/{name}/decide", content=body, headers={"Content-Type": kind}, params=parameters)


def rows_of(frame):
    return [{column: plain(value) for column, value in row.items()} for row in frame.to_dict("records")]


def answers_of(response, kind):
    """The decisions in a response, as a data frame; missing labels are None."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith(kind)
    if kind == "application/json":
        frame = pd.DataFrame(response.json()["decisions"])
    elif kind == "text/csv":
        frame = pd.read_csv(BytesIO(response.content))
    else:
        frame = ipc.open_stream(response.content).read_all().to_pandas()
    frame["label"] = [None if pd.isna(label) else label for label in frame["label"]]
    return frame


def body_of(frame, kind):
    if kind == "application/json":
        return json.dumps({"rows": rows_of(frame)}).encode()
    if kind == "text/csv":
        return frame.to_csv(index=False).encode()
    return stream_of(pa.Table.from_pandas(frame, preserve_index=False))


@pytest.mark.parametrize("kind", ["application/json", "text/csv", ARROW])
@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_decided_as_decide_does(client, fitted, name, kind):
    frame = TABLES[name]
    decisions = fitted[name].decide(frame.to_numpy() if name == "matrix" else frame)
    response = post(client, name, body_of(frame, kind), kind)
    found = answers_of(response, kind)
    assert found["best_guess"].tolist() == decisions.label.data.tolist()
    assert (found["label"].notna() == decisions.conclusive).all()
    for figure in ("confidence", "stage", "cost"):
        np.testing.assert_array_equal(found[figure], getattr(decisions, figure))
    assert response.headers["x-model-version"] == client.get(f"/models/{name}").json()["version"]


@pytest.mark.parametrize("kind", ["application/json", "text/csv", ARROW])
def test_ids_say_what_was_decided(client, fitted, kind):
    frame = TABLES["mixed"]
    decisions = fitted["mixed"].decide(frame)
    found = answers_of(post(client, "mixed", body_of(frame, kind), kind, ids=True), kind)
    ids = [read_id(text) for text in found["id"]]
    assert len(set(found["id"])) == len(frame)
    assert [i.stage for i in ids] == decisions.stage.tolist()
    assert [i.conclusive for i in ids] == decisions.conclusive.tolist()
    assert [fitted["mixed"].classes_[i.code] for i in ids] == decisions.label.data.tolist()


def test_columns_that_nobody_needs_may_be_absent(client, fitted):
    frame = TABLES["matrix"][["x0", "x1", "x3"]]
    found = answers_of(post(client, "matrix", body_of(frame, ARROW), ARROW), ARROW)
    decisions = fitted["matrix"].decide(TABLES["matrix"].to_numpy())
    np.testing.assert_array_equal(found["confidence"], decisions.confidence)
    response = post(client, "matrix", body_of(frame[["x0", "x1"]], ARROW), ARROW)
    assert response.status_code == 422
    assert "x3" in response.json()["detail"]
    response = client.post("/models/mixed/decide", json={"rows": [{"age": 50}]})
    assert response.status_code == 422
    assert "not in the table" in response.json()["detail"]


def test_a_cell_that_a_row_does_not_have_is_missing(client, fitted):
    rows = rows_of(TABLES["mixed"].iloc[:2])
    del rows[1]["sodium"]
    found = client.post("/models/mixed/decide", json={"rows": rows}).json()["decisions"]
    frame = pd.DataFrame(rows)
    assert [row["confidence"] for row in found] == fitted["mixed"].decide(frame).confidence.tolist()


def test_no_rows_are_no_decisions(client):
    assert client.post("/models/mixed/decide", json={"rows": []}).json()["decisions"] == []


def test_unknown_and_repeated_columns_are_refused_by_name(client):
    response = client.post("/models/mixed/decide", json={"rows": [{"age": 50, "patient": "A", "ward": 7}]})
    assert response.status_code == 422
    assert [error["field"] for error in response.json()["errors"]] == ["patient", "ward"]
    response = post(client, "mixed", b"age,age\n1,2\n", "text/csv")
    assert response.status_code == 422
    assert "twice" in response.json()["detail"]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"age": "old"}], "column 'age' holds 'old' in row 0"),
        ([{"age": 1e999}], "holds inf in row 0"),
        ([{"age": {}}], "rows.0.age: give a number"),
        ("many", "rows: "),
    ],
)
def test_wrong_cells_are_named(client, rows, said):
    body = json.dumps({"rows": rows}).replace("Infinity", "1e999").encode()
    response = post(client, "mixed", body, "application/json")
    assert response.status_code == 422
    assert said in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "text/csv", 422),
        (b"\x00\x01", "text/csv", 422),
        (b"\xff\xfe\n", "text/csv", 422),
        (b"age,smokes\n1\n", "text/csv", 422),
        (b"", ARROW, 422),
        (b"ARROW1" * 100, ARROW, 422),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7f", ARROW, 422),
        (b"{}", "application/json", 422),
        (b"", "application/json", 400),
        (b"age", "text/plain", 415),
    ],
)
def test_bodies_that_are_no_tables_are_refused(client, body, kind, status):
    response = post(client, "mixed", body, kind)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("codec", ["lz4", "zstd"])
@pytest.mark.parametrize("column", [pa.array([0.0] * 5000), pa.array(["x"] * 5000).dictionary_encode()])
def test_compressed_buffers_are_refused_before_they_are_expanded(client, codec, column):
    table = pa.table({"age": column})
    response = post(client, "mixed", stream_of(table, compression=codec), ARROW)
    assert response.status_code == 415
    assert "compress" in response.json()["detail"]
    assert post(client, "mixed", stream_of(table), ARROW).status_code == 422  # not for its compression


@pytest.mark.parametrize(
    "column",
    [
        pa.array([[1.0]]), pa.array([{"a": 1}]), pa.array([b"x"]), pa.array([1], pa.date32()),
        pa.array([1], pa.timestamp("s")), pa.array([1], pa.duration("s")), pa.array(["x"], pa.string_view()),
        pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array([1.0])),
    ],
    ids=lambda column: str(column.type),
)  # fmt: skip
def test_columns_of_other_types_are_refused(client, column):
    response = post(client, "mixed", stream_of(pa.table({"age": column})), ARROW)
    assert response.status_code == 422
    assert "send numbers, booleans or text" in response.json()["detail"]


def test_rows_that_take_no_bytes_are_counted_before_they_are_read(client):
    table = pa.table({"age": pa.nulls(10**9)})
    response = post(client, "mixed", stream_of(table), ARROW)
    assert response.status_code == 422
    assert "at most 100,000 are taken at once" in response.json()["detail"]


def test_long_texts_are_refused_however_they_are_stored(client):
    for column in (pa.array(["x" * 20_000]), pa.array(["x" * 20_000]).dictionary_encode()):
        response = post(client, "mixed", stream_of(pa.table({"country": column})), ARROW)
        assert response.status_code == 422
        assert "20,000 bytes" in response.json()["detail"]
    many = pa.DictionaryArray.from_arrays(np.zeros(50_000, dtype=np.int32), pa.array(["x" * 4000]))
    response = post(client, "mixed", stream_of(pa.table({"country": many})), ARROW)
    assert "too long for so many rows" in response.json()["detail"]


def test_limits_are_told(folder):
    with serving(folder / "mixed.emsco", limits=Limits(rows=3, columns=2, body=2000)) as small:
        frame = mixed_cases(4)[0]
        response = small.post("/models/mixed/decide", json={"rows": rows_of(frame[["age", "smokes"]])})
        assert "there are 4 rows; at most 3" in response.json()["detail"]
        response = small.post("/models/mixed/decide", json={"rows": rows_of(frame.iloc[:1])})
        assert "there are 5 columns; at most 2" in response.json()["detail"]
        response = small.post("/models/mixed/next", json={"values": dict.fromkeys(["age", "smokes", "sodium"])})
        assert "there are 3 values; at most 2" in response.json()["detail"]
        response = post(small, "mixed", b"x" * 2001, "text/csv")
        assert response.status_code == 413
        chunks = (b"x" * 1000 for _ in range(3))
        response = post(small, "mixed", chunks, "text/csv")
        assert response.status_code == 413


def test_millions_of_small_values_are_refused_before_they_are_read(client):
    body = b'{"rows": [' + b"{}," * 3_000_000 + b"{}]}"
    response = post(client, "mixed", body, "application/json")
    assert response.status_code == 413
    assert "4,000,000 values" in response.json()["detail"]
    response = client.post(
        "/models/mixed/next", content=b" " * (2**20 + 1), headers={"Content-Type": "application/json"}
    )
    assert response.status_code == 413


def test_a_hostile_column_name_is_a_name(client):
    response = client.post("/models/mixed/decide", json={"rows": [{HOSTILE + "x": 1}]})
    assert response.json()["errors"][0]["field"] == HOSTILE + "x"
    assert "<script" not in response.text.lower().replace("</script", "")


def test_large_tables_are_decided_beside_the_event_loop(client, fitted):
    frame = pd.concat([HEART.data] * 20, ignore_index=True)
    found = answers_of(post(client, "heart", body_of(frame, ARROW), ARROW), ARROW)
    np.testing.assert_array_equal(found["confidence"], fitted["heart"].decide(frame).confidence)


@pytest.mark.parametrize(("brief", "n_threads"), [(0.0, 3), (1e9, 1)])
def test_a_table_is_decided_at_once_if_the_last_one_was_quick(folder, fitted, monkeypatch, brief, n_threads):
    monkeypatch.setattr("emsco.service.app._BRIEF", brief)
    frame = pd.concat([HEART.data] * 5, ignore_index=True)
    body, wanted = body_of(frame, ARROW), fitted["heart"].decide(frame).confidence
    with serving(folder / "heart.emsco") as client:
        submitted, submit = [], client.service.pool.submit
        client.service.pool.submit = lambda *arguments: submitted.append(1) or submit(*arguments)
        for _ in range(3):
            np.testing.assert_array_equal(answers_of(post(client, "heart", body, ARROW), ARROW)["confidence"], wanted)
        assert client.get("/models/heart/live").json()["cases"] == 3 * len(frame)
    assert len(submitted) == n_threads


@pytest.mark.parametrize("kind", ["application/json", "text/csv", ARROW])
def test_columns_that_are_no_features_are_given_back_on_request(client, fitted, kind):
    frame = TABLES["mixed"].iloc[:7].assign(patient=[f"P{i}" for i in range(7)])
    body = body_of(frame, kind)
    refused = post(client, "mixed", body, kind)
    assert refused.status_code == 422
    assert "no column 'patient'; leave them out, or get them back with the decisions: ?keep=patient" in refused.text
    found = answers_of(post(client, "mixed", body, kind, keep=["patient", "age"]), kind)
    assert found["patient"].tolist() == frame["patient"].tolist()
    assert found["age"].tolist() == frame["age"].tolist()
    decisions = fitted["mixed"].decide(frame.drop(columns="patient"))
    assert found["confidence"].tolist() == pytest.approx(decisions.confidence.tolist(), abs=1e-15)
    assert post(client, "mixed", body, kind, keep="nothing").json()["detail"].startswith("keep: there is no column")
    assert "of their own" in post(client, "mixed", body, kind, keep="label").json()["detail"]
