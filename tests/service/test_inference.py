import json
import struct

import numpy as np
import pytest
from tritonclient import http as triton
from tritonclient.utils import InferenceServerException

from tests.service.conftest import HEART, HOSTILE, mixed_cases
from tests.service.test_server import process

MIXED, _ = mixed_cases(80, seed=2)


def infer(client, name, **request):
    return client.post(f"/v2/models/{name}/infer", json=request)


def tensors_of(frame):
    """A tensor per column; NaN is null."""
    inputs = []
    for name, column in frame.items():
        text = column.dtype.kind not in "fiub"
        data = [None if value is None or value != value else value for value in column.tolist()]
        inputs.append({"name": name, "datatype": "BYTES" if text else "FP64", "shape": [len(frame)], "data": data})
    return inputs


def outputs_of(response):
    assert response.status_code == 200, response.text
    return {output["name"]: output["data"] for output in response.json()["outputs"]}


def assert_decided(found, decisions):
    sure = decisions.conclusive.tolist()
    guesses = [str(label) for label in decisions.label.data.tolist()]
    assert list(found["best_guess"]) == guesses
    assert list(found["label"]) == [g if s else "inconclusive" for g, s in zip(guesses, sure, strict=True)]
    assert list(found["conclusive"]) == sure
    for figure in ("confidence", "stage", "cost"):
        np.testing.assert_array_equal(found[figure], getattr(decisions, figure))


@pytest.mark.parametrize(("name", "frame"), [("heart", HEART.data), ("mixed", MIXED)], ids=["heart", "mixed"])
def test_tensors_are_decided_as_decide_does(client, fitted, name, frame):
    response = infer(client, name, inputs=tensors_of(frame), id="one")
    assert_decided(outputs_of(response), fitted[name].decide(frame))
    answer = response.json()
    assert (answer["model_name"], answer["id"]) == (name, "one")
    version = answer["model_version"]
    again = client.post(f"/v2/models/{name}/versions/{version}/infer", json={"inputs": tensors_of(frame)})
    assert outputs_of(again) == outputs_of(response)


@pytest.mark.parametrize("nested", [False, True])
def test_a_matrix_of_all_columns_is_decided(client, fitted, nested):
    X = HEART.data.to_numpy()[:20, :4]
    data = X.tolist() if nested else X.ravel().tolist()
    tensor = {"name": "input-0", "datatype": "FP64", "shape": list(X.shape), "data": data}
    assert_decided(outputs_of(infer(client, "matrix", inputs=[tensor])), fitted["matrix"].decide(X))


def test_outputs_may_be_chosen(client):
    inputs = tensors_of(HEART.data[:3])
    found = outputs_of(infer(client, "heart", inputs=inputs, outputs=[{"name": "cost"}]))
    assert list(found) == ["cost"]
    response = infer(client, "heart", inputs=inputs, outputs=[{"name": "nothing"}])
    assert response.status_code == 422
    assert "there is no output 'nothing'" in response.json()["error"]


def test_metadata_name_the_columns_that_are_bought(client, fitted):
    facts = client.get("/v2/models/mixed").json()
    assert facts["inputs"][:3] == [
        {"name": "age", "datatype": "FP64", "shape": [-1]},
        {"name": "smokes", "datatype": "FP64", "shape": [-1]},
        {"name": "country", "datatype": "BYTES", "shape": [-1]},
    ]
    assert [tensor["name"] for tensor in client.get("/v2/models/matrix").json()["inputs"]] == ["x0", "x1", "x3"]
    (version,) = facts["versions"]
    assert client.get(f"/v2/models/mixed/versions/{version}").json() == facts
    assert client.get(f"/v2/models/mixed/versions/{version}/ready").status_code == 200
    assert client.get("/v2/models/mixed/versions/1").status_code == 409
    assert client.get("/v2/models/nothing").status_code == 404
    assert client.get("/v2").json()["name"] == "emsco"


def tensor(**changes):
    return {"name": "age", "datatype": "FP64", "shape": [1], "data": [50.0], **changes}


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([tensor(shape=[2])], "do not have the shape [2]"),
        ([tensor(shape=[])], "do not have the shape []"),
        ([tensor(data=[[50.0]])], "do not have the shape [1]"),
        ([tensor(data=["old"])], "are not all FP64"),
        ([tensor(data=[True])], "are not all FP64"),
        ([tensor(data=[1], datatype="BOOL")], "are not all BOOL"),
        ([tensor(datatype="FP8")], "the datatype 'FP8' is none of"),
        ([tensor(name="agee")], "the model has no column 'agee'"),
        ([tensor(), tensor()], "comes twice"),
        ([tensor(), tensor(name="smokes", shape=[2], data=[0.0, 1.0])], "has 2 rows, others have 1"),
        ([tensor(shape=[1, 2], data=[1.0, 2.0])], "send a tensor of shape [rows] per column"),
        ([tensor(shape=[10**12], data=[])], "at most 100,000 are taken at once"),
        ([tensor(shape=[1, 10**12], data=[])], "do not have the shape"),
        ([tensor(shape=[-1])], "at least 0"),
        ([tensor(extra=1)], "there is no such field"),
        ([tensor(parameters={"binary_data_size": 8})], "is not as long as it says"),
        ([tensor(parameters={"binary_data_size": -1})], "is not as long as it says"),
        ([], "not in the table"),
    ],
)
def test_wrong_tensors_are_refused(client, inputs, said):
    response = infer(client, "mixed", inputs=inputs)
    assert response.status_code in (200, 422)
    if response.status_code == 200:
        assert inputs == []
        assert response.json()["outputs"][0]["shape"] == [0]
        return
    assert said in response.json()["detail"]
    assert response.json()["error"] == response.json()["detail"]


def post_binary(client, head, tail, length=None):
    text = json.dumps(head).encode()
    headers = {"Inference-Header-Content-Length": str(len(text) if length is None else length)}
    return client.post("/v2/models/mixed/infer", content=text + tail, headers=headers)


@pytest.mark.parametrize(
    ("datatype", "tail", "said"),
    [
        ("FP64", struct.pack("<d", 50.0) + b"x", "belong to none"),
        ("FP64", struct.pack("<d", 50.0)[:7], "is not as long as it says"),
        ("FP32", struct.pack("<d", 50.0), "do not have the shape"),
        ("BYTES", struct.pack("<I", 2**31) + b"1234", "do not have the shape"),
        ("BYTES", struct.pack("<I", 4) + b"\xff\xff\xff\xff", "not UTF-8"),
        ("BYTES", struct.pack("<I", 2) + b"1234", "do not have the shape"),
    ],
)
def test_wrong_binary_tensors_are_refused(client, datatype, tail, said):
    head = {"inputs": [{"name": "age", "datatype": datatype, "shape": [1], "parameters": {"binary_data_size": 8}}]}
    response = post_binary(client, head, tail)
    assert response.status_code == 422
    assert said in response.json()["detail"]
    assert post_binary(client, head, tail, length=10**9).status_code == 400
    assert post_binary(client, head, tail, length="x").status_code == 400


@pytest.mark.parametrize("binary", [True, False])
def test_a_client_library_of_the_protocol_works(folder, fitted, tmp_path, binary):
    with process(folder, cwd=tmp_path) as service:
        client = triton.InferenceServerClient(f"127.0.0.1:{service.port}", network_timeout=120)
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("mixed")
        facts = client.get_model_metadata("mixed")
        inputs = []
        for asked in facts["inputs"]:
            column = MIXED[asked["name"]].fillna("" if asked["datatype"] == "BYTES" else np.nan)
            tensor = triton.InferInput(asked["name"], [len(MIXED)], asked["datatype"])
            kind = np.object_ if asked["datatype"] == "BYTES" else np.float64
            values = column.to_numpy(dtype=kind)
            if not binary and kind is np.float64:
                values = np.nan_to_num(values)  # JSON has no NaN
            tensor.set_data_from_numpy(values, binary_data=binary)
            inputs.append(tensor)
        frame = MIXED.assign(country=MIXED["country"].fillna(""))
        if not binary:
            frame = frame.assign(sodium=MIXED["sodium"].fillna(0.0), **{HOSTILE: MIXED[HOSTILE].fillna(0.0)})
        outputs = [triton.InferRequestedOutput(output["name"], binary_data=binary) for output in facts["outputs"]]
        result = client.infer("mixed", inputs, outputs=outputs)
        found = {output["name"]: result.as_numpy(output["name"]).tolist() for output in facts["outputs"]}
        texts = {name: [getattr(t, "decode", lambda t=t: t)() for t in found[name]] for name in ("label", "best_guess")}
        assert_decided({**found, **texts}, fitted["mixed"].decide(frame))
        with pytest.raises(InferenceServerException, match="no model"):
            client.infer("nothing", inputs)
        client.close()
