import sqlite3
from threading import Barrier, Thread

import pytest

from emsco.exceptions import FileError
from emsco.service.ids import make_ids, read_id
from emsco.service.outcomes import Store
from emsco.service.problems import ProblemError
from tests.service.conftest import serving
from tests.service.test_cases import MIXED, ask, plain

VERSION = "0123456789abcdef"


def rows_of(ids, truth="sick"):
    return [(text, read_id(text), truth) for text in ids]


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "outcomes.db")
    yield store
    store.close()


def some_ids(n, version=VERSION):
    return make_ids(version, [1] * n, [0] * n, [True] * n)


def test_outcomes_are_stored_once_and_in_order(store, tmp_path):
    ids = some_ids(3)
    assert store.add("heart", rows_of(ids)) == (3, 0)
    assert store.add("heart", rows_of([*ids[1:], *some_ids(1)])) == (1, 2)
    again = Store(tmp_path / "outcomes.db")
    rows = again.since("heart", VERSION, 0)
    assert [(code, sure, truth) for _, code, sure, truth in rows] == [(0, True, "sick")] * 4
    assert [place for place, *_ in rows] == sorted(place for place, *_ in rows)
    assert again.since("heart", VERSION, rows[2][0]) == rows[3:]
    assert again.since("other", VERSION, 0) == again.since("heart", "0" * 16, 0) == []
    assert again.counts("heart", VERSION) == {"cases": 4, "labelled": 4}
    again.close()


def test_another_truth_of_the_same_case_is_refused_with_all_that_came_with_it(store):
    ids = some_ids(2)
    store.add("heart", rows_of(ids[:1]))
    with pytest.raises(ProblemError) as problem:
        store.add("heart", rows_of(ids[1:]) + rows_of(ids[:1], "well"))
    assert problem.value.status == 409
    assert len(store.since("heart", VERSION, 0)) == 1
    with pytest.raises(ProblemError):
        store.add("other", rows_of(ids[:1]))
    assert store.add("heart", rows_of(ids)) == (1, 1)


def test_a_full_disk_stores_nothing_and_says_so(tmp_path):
    store = Store(tmp_path / "outcomes.db")
    store.add("heart", rows_of(some_ids(10)))
    (pages,) = store._file.execute("PRAGMA page_count").fetchone()
    store._file.execute(f"PRAGMA max_page_count = {pages + 2}")
    n_stored, refused = 10, []
    for _ in range(100):
        try:
            n_stored += store.add("heart", rows_of(some_ids(40)))[0]
        except ProblemError as problem:
            refused.append(problem.status)
    assert len(refused) > 90
    assert set(refused) == {507}
    assert len(store.since("heart", VERSION, 0)) == n_stored
    store._file.execute("PRAGMA max_page_count = 100000")
    store.add("heart", rows_of(some_ids(40)))
    store.close()
    again = Store(tmp_path / "outcomes.db")
    assert len(again.since("heart", VERSION, 0)) == n_stored + 40
    again.close()


def test_a_busy_file_is_told_apart(tmp_path, store):
    other = sqlite3.connect(tmp_path / "outcomes.db", isolation_level=None)
    store._file.execute("PRAGMA busy_timeout = 50")
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(ProblemError) as problem:
        store.add("heart", rows_of(some_ids(1)))
    assert problem.value.status == 503
    other.execute("ROLLBACK")
    other.close()
    assert store.add("heart", rows_of(some_ids(1))) == (1, 0)


def test_workers_that_start_together_make_one_file(tmp_path):
    barrier, made, failed = Barrier(4), [], []

    def start():
        barrier.wait()
        try:
            made.append(Store(tmp_path / "outcomes.db"))
        except FileError as error:
            failed.append(error)

    threads = [Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    for store in made:
        store.add("heart", rows_of(some_ids(1)))
    assert len(made[0].since("heart", VERSION, 0)) == 4
    for store in made:
        store.close()


def test_files_of_something_else_are_left_as_they_are(tmp_path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE mine (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(FileError, match="something else"):
        Store(path)
    assert path.read_bytes() == before
    (tmp_path / "text").write_text("no database at all, but long enough to be looked at" * 50)
    with pytest.raises(FileError, match="cannot store outcomes"):
        Store(tmp_path / "text")
    with pytest.raises(FileError, match="folder"):
        Store(tmp_path)
    with pytest.raises(FileError, match="folder"):
        Store(tmp_path / "nothing" / "outcomes.db")


def test_states_of_monitors_are_kept(store):
    assert store.state("heart", VERSION) is None
    store.set_state("heart", VERSION, {"seq": 3})
    store.set_state("heart", VERSION, {"seq": 4})
    assert store.state("heart", VERSION) == {"seq": 4}


@pytest.fixture
def keeping(folder, tmp_path):
    with serving(folder, outcomes=tmp_path / "outcomes.db") as client:
        yield client


def decision_of(client, name="mixed", i=0):
    row = {column: plain(value) for column, value in MIXED.iloc[i].items()}
    return ask(client, name, values=row)["decision"]


def send(client, *outcomes, name="mixed"):
    return client.post(f"/models/{name}/outcomes", json={"outcomes": list(outcomes)})


def test_a_truth_is_acknowledged_once(keeping):
    outcome = {"id": decision_of(keeping)["id"], "truth": "sick"}
    assert send(keeping, outcome).json() == {"stored": 1, "known": 0}
    assert send(keeping, outcome).json() == {"stored": 0, "known": 1}
    assert send(keeping, {**outcome, "truth": "well"}).status_code == 409
    assert send(keeping).json() == {"stored": 0, "known": 0}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"truth": "dead"}, "the classes are 'sick', 'well'"),
        ({"truth": None}, "give a class"),
        ({"truth": []}, "give a class"),
        ({"id": "nonsense"}, "none that this service gave"),
        ({"id": "A" * 38}, "none that this service gave"),
        ({"id": "x" * 65}, "the text is too long"),
        ({"more": 1}, "there is no such field"),
    ],
)
def test_wrong_outcomes_are_refused(keeping, change, said):
    response = send(keeping, {"id": decision_of(keeping)["id"], "truth": "sick", **change})
    assert response.status_code == 422
    assert said in response.json()["detail"]


def test_one_changed_letter_of_an_id_is_noticed(keeping):
    good = decision_of(keeping)["id"]
    for i in range(len(good)):
        other = good[:i] + ("A" if good[i] != "A" else "B") + good[i + 1 :]
        assert send(keeping, {"id": other, "truth": "sick"}).status_code == 422


def test_a_service_without_a_file_stores_nothing(client):
    response = send(client, {"id": decision_of(client)["id"], "truth": "sick"})
    assert response.status_code == 409
    assert "--outcomes" in response.json()["detail"]
