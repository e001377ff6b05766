import json

import numpy as np
import pandas as pd
import pytest

from emsco import EMSCOClassifier, Prices
from tests.service.conftest import HEART, HOSTILE, PRICES, mixed_cases, serving

MIXED, _ = mixed_cases(120, seed=1)
TABLES = {
    "heart": HEART.data,
    "mixed": MIXED,
    "promising": MIXED,
    "matrix": HEART.data.iloc[:, :4].set_axis(["x0", "x1", "x2", "x3"], axis=1),
}


def ask(client, name, **question):
    response = client.post(f"/models/{name}/next", json=question)
    assert response.status_code == 200, response.text
    return response.json()


def plain(value):
    return None if pd.isna(value) else getattr(value, "item", lambda: value)()


def decided(client, name, row, *, missing_as="null"):
    """Walk a case to its decision, one stage per request; return it, with what was asked for on the way."""
    values, unavailable, asked = {}, [], []
    while True:
        answer = ask(client, name, values=values, unavailable=unavailable)
        if "decision" in answer:
            return answer["decision"], asked
        asked.append(answer["acquire"])
        for column in answer["acquire"]["columns"]:
            value = plain(row[column])
            if value is None and missing_as == "unavailable":
                unavailable.append(column)
            else:
                values[column] = value


@pytest.mark.parametrize("missing_as", ["null", "unavailable"])
@pytest.mark.parametrize("name", TABLES)
def test_a_case_walked_over_http_ends_as_decide_says(client, fitted, name, missing_as):
    clf, frame = fitted[name], TABLES[name].iloc[:60]
    decisions = clf.decide(frame.to_numpy() if name == "matrix" else frame)
    for i, row in enumerate(frame.to_dict("records")):
        decision, asked = decided(client, name, row, missing_as=missing_as)
        label = plain(decisions.label.data[i])
        assert decision["label"] == (label if decisions.conclusive[i] else None)
        assert decision["best_guess"] == label
        assert (decision["confidence"], decision["stage"], decision["cost"]) == (
            decisions.confidence[i], decisions.stage[i], decisions.cost[i],
        )  # fmt: skip
        assert [question["stage"] for question in asked] == list(range(decisions.stage[i] + 1))
        paid = [0.0, *clf.deployed_.paid.tolist()]
        assert [question["paid"] for question in asked] == paid[: decisions.stage[i] + 1]


def test_a_question_names_features_columns_price_and_stage(client):
    answer = ask(client, "mixed", values={"age": 50, "smokes": 1, "country": "DE"})
    assert answer["acquire"] == {
        "features": ["panel"], "columns": ["sodium", HOSTILE], "price": 30.0, "stage": 2, "stages": 3, "paid": 3.0,
    }  # fmt: skip
    part = ask(client, "mixed", values={"age": 50, "smokes": 1, "country": "DE", "sodium": None})
    assert part["acquire"]["columns"] == [HOSTILE]


def test_a_feature_of_several_columns_may_be_unavailable_as_a_whole(client, fitted):
    known = {"age": 50, "smokes": 1, "country": "DE"}
    decision = ask(client, "mixed", values=known, unavailable=["panel"])["decision"]
    session = fitted["mixed"].session()
    session.give({**known, "sodium": None, HOSTILE: None})
    assert decision["confidence"] == session.step().confidence
    with_columns = ask(client, "mixed", values=known, unavailable=["sodium", HOSTILE])["decision"]
    assert {**decision, "id": ""} == {**with_columns, "id": ""}


def test_a_promise_comes_with_the_decision(client, fitted):
    row = MIXED.iloc[0]
    promise = decided(client, "promising", row)[0]["promise"]
    assert promise["accuracy"] == 0.7
    assert promise["text"] == str(fitted["promising"].guarantee_).splitlines()
    assert decided(client, "mixed", row)[0]["promise"] is None


def test_explanations_name_the_stages_passed_the_runner_up_and_contributions(client, fitted):
    values = {"age": 50, "smokes": 1, "country": "DE", "sodium": 139.0, HOSTILE: 0.3}
    answer = client.post("/models/mixed/next", json={"values": values, "explain": True}).json()
    found, decision = answer["explanation"], answer["decision"]
    assert len(found["stages"]) == decision["stage"] + 1
    assert found["stages"][-1]["confidence"] == decision["confidence"]
    assert found["stages"][-1]["cost"] == decision["cost"]
    assert found["stages"][0]["needed"] == 0.85
    assert found["probabilities"][0] == {"label": decision["best_guess"], "probability": decision["confidence"]}
    assert found["runner_up"]["label"] != decision["best_guess"]
    assert sum(other["probability"] for other in found["probabilities"]) == pytest.approx(1)
    bought = [feature for stage in fitted["mixed"].stages_[: decision["stage"] + 1] for feature in stage.features]
    assert {feature["feature"] for feature in found["features"]} == set(bought)
    for feature in found["features"]:
        without = {**values, **dict.fromkeys(feature["columns"])}
        other = client.post("/models/mixed/next", json={"values": without, "explain": True}).json()
        if other["decision"]["stage"] == decision["stage"]:
            shares = {o["label"]: o["probability"] for o in other["explanation"]["probabilities"]}
            assert feature["without"] == pytest.approx(shares[decision["best_guess"]], abs=1e-12)


def test_nothing_is_explained_before_a_stage_is_passed(client):
    answer = ask(client, "mixed", explain=True)
    assert answer["explanation"] == {"stages": [], "probabilities": [], "runner_up": None, "features": []}
    assert "explanation" not in ask(client, "mixed")


def test_a_client_may_insist_on_a_version(client, fitted):
    version = ask(client, "mixed")["version"]
    assert ask(client, "mixed", version=version)["version"] == version
    response = client.post("/models/mixed/next", json={"version": "0" * 16})
    assert response.status_code == 409
    assert version in response.json()["detail"]


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"{", 400, "the body is no JSON"),
        (b'{"values": {"age": 1, "age": 2}}', 400, "the key 'age' comes twice"),
        (b'{"values": {"age": NaN}}', 400, "NaN is no number"),
        (b'{"values": {"age": 1' + b"0" * 5000 + b"}}", 400, "a number is too long"),
        (b'{"values": ' + b"[" * 100_000, 400, "nested too deeply"),
        (b'"\xff"', 400, "byte 1 is not UTF-8"),
        (b"[]", 422, "the body: "),
        (
            b'{"value": {}}',
            422,
            "value: there is no such field. The fields are values, unavailable, explain, replaces, version.",
        ),
        (b'{"values": {"age": [1]}}', 422, "values.age: give a number, text, true, false or null"),
        (b'{"values": {"agee": 1}}', 422, "did you mean 'age'?"),
        (b'{"values": {"panel": 1}}', 422, "is what is bought"),
        (b'{"values": {"age": "old"}}', 422, "'age' was given 'old'"),
        (b'{"values": {"age": 1e999}}', 422, "give a finite number"),
        (b'{"values": {"country": "' + b"x" * 5000 + b'"}}', 422, "has 5,000 characters; at most 4,096 are read"),
        (b'{"values": {"age": 4}, "unavailable": ["age"]}', 422, "values and unavailable both have age"),
        (b'{"unavailable": ["nothing"]}', 422, "there is no column 'nothing'"),
        (b'{"explain": 1}', 422, "explain: "),
    ],
)
def test_what_is_wrong_is_said(client, body, status, said):
    response = client.post("/models/mixed/next", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert said in problem["detail"]
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]


def test_other_media_types_and_compression_are_refused(client):
    assert client.post("/models/mixed/next", content=b"{}").status_code == 415
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert client.post("/models/mixed/next", content=b"{}", headers=headers).status_code == 415


def test_an_unknown_model_is_a_problem_that_names_the_others(client):
    response = client.post("/models/nothing/next", json={})
    assert response.status_code == 404
    assert "heart" in response.json()["detail"]


def test_models_are_listed_and_described(client, fitted):
    listed = {model["name"]: model for model in client.get("/models").json()["models"]}
    assert listed.keys() == fitted.keys()
    mixed = client.get("/models/mixed").json()
    assert mixed["version"] == listed["mixed"]["version"]
    assert mixed["classes"] == ["sick", "well"]
    panel = mixed["features"][[f["name"] for f in mixed["features"]].index("panel")]
    assert (panel["price"], panel["stage"], [c["name"] for c in panel["columns"]]) == (30.0, 2, ["sodium", HOSTILE])
    assert panel["columns"][0]["unit"] == "mmol/l"
    columns = {column["name"]: column for feature in mixed["features"] for column in feature["columns"]}
    assert columns["country"]["categories"] == ["DE", "FR", "US"]
    assert columns["smokes"]["range"] == [0, 1]
    assert [stage["price"] for stage in mixed["stages"]] == [0.0, 3.0, 30.0]
    assert mixed["stages"][0]["thresholds"] == [0.85, 0.85]
    assert mixed["front"] is None
    heart = client.get("/models/heart").json()
    front = fitted["heart"].front_
    assert [point["mean_cost"] for point in heart["front"]["points"]] == front.mean_cost.tolist()
    assert json.dumps(heart, allow_nan=False)


def test_health_says_whether_models_are_there(client, tmp_path):
    from tests.service.conftest import serving

    assert client.get("/health/live").json() == {"live": True}
    assert client.get("/health/ready").json() == {"ready": True}
    with serving(tmp_path) as empty:
        assert empty.get("/health/live").status_code == 200
        assert empty.get("/health/ready").status_code == 503
        assert empty.get("/models").json() == {"models": [], "refused": {}}


def test_ids_of_two_decisions_differ(client):
    row = {column: plain(value) for column, value in MIXED.iloc[0].items()}
    ids = {ask(client, "mixed", values=row)["decision"]["id"] for _ in range(20)}
    assert len(ids) == 20
    assert all(np.char.str_len(list(ids)) == 38)


def test_a_category_that_training_did_not_have_is_named(client):
    known = {"age": 50, "smokes": 0, "country": "FR"}
    assert "unseen" not in client.post("/models/mixed/next", json={"values": known}).json()
    known["country"] = "XX"
    assert client.post("/models/mixed/next", json={"values": known}).json()["unseen"] == ["country"]


@pytest.mark.parametrize(
    ("question", "field"),
    [
        ({"values": {"agee": 1}}, "values.agee"),
        ({"values": {"age": 1}, "unavailable": ["age"]}, "values.age"),
        ({"values": []}, "values"),
    ],
)
def test_a_wrong_value_is_named_by_its_field(client, question, field):
    answer = client.post("/models/mixed/next", json=question)
    assert answer.status_code == 422
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_every_problem_with_a_body_says_which_field_or_that_it_is_the_body(client):
    answer = client.post("/models/mixed/next", json={"values": {"age": "old"}})
    assert answer.status_code == 422
    assert answer.json()["errors"] == [{"field": "", "detail": answer.json()["detail"]}]


def test_a_corrected_case_counts_once(folder):
    with serving(folder / "mixed.emsco", quiet=True) as client:
        case = {"age": 88, "smokes": 1, "country": "FR", "sodium": 130, HOSTILE: 3}
        first = ask(client, "mixed", values=case)["decision"]
        other = {**case, "age": 21, "smokes": 0, "country": "DE", "sodium": 150, HOSTILE: -3}
        second = ask(client, "mixed", values=other, replaces=first["id"])["decision"]
        assert first["label"] == "sick"
        assert second["label"] == "well"
        live = client.get("/models/mixed/live").json()
        assert live["cases"] == sum(live["labelled"]) + live["rejected"] == 1
        assert live["labels"] == {"sick": 0, "well": 1}
        text = client.get("/metrics").text
        assert 'emsco_corrections_total{model="mixed"} 1' in text
        dearest = max(first["cost"], second["cost"])
        assert f'emsco_cost_total{{model="mixed"}} {dearest:g}\n' in text
        response = client.post("/models/mixed/next", json={"values": other, "replaces": "nothing"})
        assert response.status_code == 422


def test_stages_are_numbered_from_0_in_json_and_that_is_said(client):
    assert client.get("/models/mixed").json()["first_stage"] == 0
    row = {name: plain(value) for name, value in MIXED.iloc[0].items()}
    assert client.post("/models/mixed/decide", json={"rows": [row]}).json()["first_stage"] == 0


def test_a_model_with_prices_of_errors_says_what_its_label_is_expected_to_cost(tmp_path):
    X, y = mixed_cases()
    errors = [[0, 500], [80, 0]]
    clf = EMSCOClassifier(PRICES, errors=errors, random_state=0).fit(X, y)
    clf.save(tmp_path / "money.emsco")
    with serving(tmp_path, quiet=True) as client:
        described = client.get("/models/money").json()
        assert described["errors"] == {"prices": errors, "no_answer": None, "largest": 500.0}
        row = {name: plain(value) for name, value in X.iloc[3].items()}
        answer = ask(client, "money", values=row, explain=True)
        decision, shares = answer["decision"], answer["explanation"]["probabilities"]
        share = {entry["label"]: entry["probability"] for entry in shares}
        expected = {
            label: sum(share[truth] * errors[t][k] for t, truth in enumerate(described["classes"]))
            for k, label in enumerate(described["classes"])
        }
        assert decision["label"] == min(expected, key=expected.get)
        assert decision["expected_price"] == pytest.approx(min(expected.values()))


def test_a_model_that_buys_nothing_decides_at_once(tmp_path):
    X, y = mixed_cases()
    prices = Prices(units=PRICES.units, price={"age": 1, "smokes": 1, "country": 2, "panel": 30})
    clf = EMSCOClassifier(prices, errors=[[0, 0.001], [0.001, 0]], random_state=0).fit(X, y)
    clf.save(tmp_path / "empty.emsco")
    with serving(tmp_path, quiet=True) as client:
        answer = ask(client, "empty", explain=True)
        assert answer["decision"]["cost"] == 0
        assert answer["explanation"]["features"] == []
        assert ask(client, "empty", values={"age": 4})["decision"]["label"] == answer["decision"]["label"]
        assert client.post("/models/empty/next", json={"values": {"agee": 4}}).status_code == 422


def test_the_answer_says_what_buying_saves_where_errors_have_prices():
    from types import SimpleNamespace

    from emsco.deployed.session import Acquire
    from emsco.service.cases import answer_of

    served = SimpleNamespace(name="m", version="1", paid=[1.0, 3.0], codes_by_stage=[])
    for saves in (None, 12.4):
        session = SimpleNamespace(step=lambda s=saves: Acquire(("a",), ("a",), 2.0, 1, s), state={"given": {}})
        answer = answer_of(served, session, explained=False, decision_id=None)
        assert answer["acquire"].get("saves") == saves
