"""Counters, monitors and metrics of a service, one worker and several."""

import json

import numpy as np
import pandas as pd
from prometheus_client.parser import text_string_to_metric_families
import pyarrow as pa
import pytest

from emsco import Monitor
from emsco.service.core import Service
from emsco.service.settings import Settings, Source
from tests.service.conftest import HEART, HOSTILE, mixed_cases, serving
from tests.service.test_cases import ask, plain
from tests.service.test_tables import ARROW, post, stream_of

X, Y = HEART.data.iloc[200:], HEART.target.to_numpy()[200:]


def metrics_of(client):
    """Every sample by name and labels, as Prometheus itself reads them."""
    response = client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(response.text))
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def found(metrics, name, **labels):
    return {
        tuple(value for key, value in sorted(where) if key not in labels): amount
        for (other, where), amount in metrics.items()
        if other == name and labels.items() <= dict(where).items()
    }


@pytest.fixture
def fresh(folder, tmp_path):
    with serving(folder, outcomes=tmp_path / "outcomes.db") as client:
        yield client


def decide(client, frame, name="heart"):
    body = stream_of(pa.Table.from_pandas(frame, preserve_index=False))
    return pa.ipc.open_stream(post(client, name, body, ARROW, ids=True).content).read_all().to_pandas()


def test_decisions_are_counted_by_stage_label_and_price(fresh, fitted):
    clf = fitted["heart"]
    decisions = clf.decide(X)
    decide(fresh, X)
    row = {column: plain(value) for column, value in X.iloc[0].items()}
    ask(fresh, "heart", values=row)
    metrics = metrics_of(fresh)
    exits = found(metrics, "emsco_exits_total", model="heart")
    wanted = np.bincount(decisions.stage, minlength=len(clf.stages_))
    wanted[decisions.stage[0]] += 1
    assert exits == {(str(j + 1),): n for j, n in enumerate(wanted.tolist()) if n}
    labels = found(metrics, "emsco_labels_total", model="heart")
    assert sum(labels.values()) == decisions.conclusive.sum() + decisions.conclusive[0]
    assert sum(found(metrics, "emsco_rejects_total").values()) == (~decisions.conclusive).sum() + (
        not decisions.conclusive[0]
    )
    (cost,) = found(metrics, "emsco_cost_total", model="heart").values()
    assert cost == pytest.approx(decisions.cost.sum() + decisions.cost[0])


def test_a_question_is_no_decision(fresh):
    ask(fresh, "heart")
    metrics = metrics_of(fresh)
    assert found(metrics, "emsco_exits_total") == {}
    (n,) = found(metrics, "emsco_requests_total", route="/models/{name}/next", status="200").values()
    assert n == 1
    buckets = found(metrics, "emsco_request_seconds_bucket", route="/models/{name}/next")
    assert buckets[("+Inf",)] == 1
    assert list(buckets.values()) == sorted(buckets.values())


def test_unavailable_unseen_and_shifted_values_show(fresh):
    frame, _ = mixed_cases(300, seed=5)
    frame["age"] += 60
    frame.loc[:149, "country"] = "Atlantis"
    frame.loc[:, "sodium"] = np.nan
    decide(fresh, frame, "mixed")
    row = {column: plain(value) for column, value in frame.iloc[0].items()}
    ask(fresh, "mixed", values={**row, "country": None})
    metrics = metrics_of(fresh)
    columns = {"model": "mixed"}
    values, unavailable = (
        {column: n for (column,), n in found(metrics, name, **columns).items()}
        for name in ("emsco_values_total", "emsco_values_unavailable_total")
    )
    assert values["age"] == 301
    assert unavailable["sodium"] == values["sodium"] > 0
    assert unavailable["age"] == 0
    unseen = found(metrics, "emsco_values_unseen_total", model="mixed", column="country")
    assert 0.3 < sum(unseen.values()) / values["country"] < 0.6
    shifts = found(metrics, "emsco_column_shift", model="mixed")
    assert list(shifts) == [("age",)]  # the only column that everybody gives
    assert 2.5 < shifts[("age",)] < 3.5
    assert HOSTILE in values


def test_live_has_counts_beside_what_was_expected(fresh, fitted):
    decide(fresh, X)
    fresh.service.watch()
    live = fresh.get("/models/heart/live").json()
    decisions = fitted["heart"].decide(X)
    result = fitted["heart"].evaluate(X, Y).points[fitted["heart"].point_]
    assert live["cases"] == 99
    assert live["labelled"] == list(result.answered)
    assert live["rejected"] == result.n_rejected
    assert live["mean_cost"] == pytest.approx(decisions.cost.mean())
    assert live["expected"]["labelled"] == [n / 99 for n in result.answered]
    assert [watch["name"] for watch in live["watches"]] == ["coverage", "accuracy", "mean_cost"]
    assert live["watches"][0]["cases"] == 99
    assert live["watches"][0]["alarm"] is None
    mixed = fresh.get("/models/mixed/live").json()
    assert mixed["watches"] == []
    assert "nothing to compare with" in mixed["reason"]
    assert mixed["expected"] is None


def test_wrong_labels_raise_an_alarm_that_every_reader_sees(fresh, capsys):
    for _ in range(8):
        decisions = decide(fresh, X)
        wrong = (1 - decisions["best_guess"]).tolist()
        outcomes = [{"id": i, "truth": t} for i, t in zip(decisions["id"], wrong, strict=True)]
        assert fresh.post("/models/heart/outcomes", json={"outcomes": outcomes}).json()["stored"] == 99
    fresh.service.watch()
    live = fresh.get("/models/heart/live").json()
    (alarm,) = [watch["alarm"] for watch in live["watches"] if watch["alarm"]]
    assert alarm["watch"] == "accuracy"
    metrics = metrics_of(fresh)
    assert found(metrics, "emsco_watch_alarm", model="heart") == {
        ("coverage",): 0.0, ("accuracy",): 1.0, ("mean_cost",): 0.0,
    }  # fmt: skip
    assert found(metrics, "emsco_outcomes_total") == {("heart",): 792.0}
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["watch"] for line in lines if line["event"] == "alarm"] == ["accuracy"]


def test_what_the_service_watches_is_what_a_monitor_would(fresh, fitted):
    decisions = decide(fresh, X)
    outcomes = [{"id": i, "truth": t} for i, t in zip(decisions["id"], Y.tolist(), strict=True)]
    fresh.post("/models/heart/outcomes", json={"outcomes": outcomes})
    fresh.service.watch()
    live = {watch["name"]: watch for watch in fresh.get("/models/heart/live").json()["watches"]}
    served = fresh.service.shelf.get("heart").model
    monitor = Monitor(served)
    decided = served.decide(X)
    monitor.add_exits(
        np.bincount(np.where(decided.conclusive, decided.stage, len(served.paid)), minlength=len(served.paid) + 1)
    )
    monitor.add_truth(decided, Y)
    for watch in monitor.watches:
        assert live[watch.name]["evidence"] == pytest.approx(watch.evidence)
        assert live[watch.name]["found"] == pytest.approx(watch.found)


def test_evidence_outlasts_the_service(folder, tmp_path):
    states = []
    for _ in range(2):
        with serving(folder / "heart.emsco", outcomes=tmp_path / "outcomes.db") as client:
            decisions = decide(client, X)
            outcomes = [{"id": i, "truth": t} for i, t in zip(decisions["id"], Y.tolist(), strict=True)]
            client.post("/models/heart/outcomes", json={"outcomes": outcomes})
            client.service.watch()
            states.append({w["name"]: w["cases"] for w in client.get("/models/heart/live").json()["watches"]})
    assert states[1] == {name: 2 * n for name, n in states[0].items()}


def test_one_worker_watches_for_all_and_another_can_take_over(folder, tmp_path):
    settings = Settings((Source(folder / "heart.emsco"),))
    workers = [Service(settings, folder=tmp_path, slot=slot) for slot in range(2)]
    for worker in workers:
        worker.fill()
        served = worker.shelf.get("heart")
        table = pa.Table.from_pandas(X, preserve_index=False)
        worker.record_table(served, table, served.model.decide(table))
    for worker in reversed(workers):
        worker.watch()
    records = [worker.watcher.records()["heart"] for worker in workers]
    assert records[0] == records[1]
    assert records[0]["watches"][0]["cases"] == 198
    replaced = Service(settings, folder=tmp_path, slot=0)
    replaced.fill()
    replaced.watch()
    assert replaced.watcher.records()["heart"] == records[0]  # nothing was counted twice
    replaced.record_table(served, table, served.model.decide(table))
    replaced.watch()
    assert workers[1].watcher.records()["heart"]["watches"][0]["cases"] == 297
    for service in (*workers, replaced):
        service.close()


def test_a_new_version_is_watched_from_the_beginning(folder, fitted, tmp_path):
    path = tmp_path / "model.emsco"
    clf = fitted["heart"]
    evaluation = clf.evaluate(X, Y)
    clf.save(path, evaluation=evaluation)
    with serving(path) as client:
        decide(client, X, "model")
        client.service.watch()
        first = client.service.shelf.get("model").version
        clf.save(path, evaluation=evaluation, notes={"new": True})
        client.service.look()
        client.service.watch()
        live = client.get("/models/model/live").json()
        assert live["version"] != first
        assert live["cases"] == 0
        assert [watch["cases"] for watch in live["watches"]] == [0, 0, 0]
        assert sum(found(metrics_of(client), "emsco_exits_total").values()) == 99


def test_metrics_of_hostile_names_can_be_read(folder, tmp_path):
    with serving(folder / "mixed.emsco") as client:
        frame, _ = mixed_cases(50)
        decide(client, pd.concat([frame] * 3), "mixed")
        assert (HOSTILE,) in found(metrics_of(client), "emsco_values_total", model="mixed")
