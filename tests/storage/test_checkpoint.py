import ast
from functools import partial
import os
from pathlib import Path
import signal
import sqlite3
import subprocess
import sys
import time

import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

from emsco import BestFirst, Evolution, Exact, Guarantee, Loss, Objective, Prices
from emsco.exceptions import CheckpointError, SearchInterruptedWarning
from emsco.stages.estimator import EstimatorTrainer
from emsco.stages.logistic import LogisticTrainer
from emsco.storage import checkpoint
from emsco.storage.checkpoint import Checkpoint, identity_of
from tests.classifiers import fixed
from tests.storage import fuzz_checkpoints


def len_of_stages(counts):
    return counts.n_stages


RUNS = {
    "evolution": {"search": Evolution(population_size=40, max_generations=12, patience=None), "max_stages": 4},
    "best first": {"search": BestFirst(max_designs=2_500, start=3), "max_stages": 6},
    "best first, enumerated": {"search": BestFirst(), "max_stages": 2},
    "exact": {"search": Exact(), "max_stages": 5},
    "evolution, with removal": {
        "search": Evolution(population_size=40, max_generations=12, patience=None),
        "max_stages": 4,
        "removal": True,
    },
    "best first, with removal": {"search": BestFirst(max_designs=2_500, start=3), "max_stages": 6, "removal": True},
    "exact, with removal": {"search": Exact(), "max_stages": 3, "removal": True},
    "chosen objectives": {
        "search": BestFirst(max_designs=2_500, start=3),
        "max_stages": 6,
        "objectives": ("fnr", Loss([[0, 1], [5, 0]], 0.5), Objective("late", len_of_stages, maximise=False)),
    },
    "chosen objectives, evolution": {
        "search": Evolution(population_size=40, max_generations=12, patience=None),
        "objectives": ("worst_class_accuracy", "cost"),
    },
    "two of three, exact": {"search": Exact(), "max_stages": 3, "objectives": ("accuracy", "cost")},
    "trees": {
        "search": Evolution(population_size=20, max_generations=6),
        "estimator": DecisionTreeClassifier(max_depth=3, max_features=2),
    },
    "folds, with removal, proven and promised": {
        "search": Exact(),
        "max_stages": 2,
        "removal": True,
        "validation": 2,
        "threshold": Guarantee(0.7, per_class=True),
    },
    "folds, with removal, objectives by class and thresholds by stage": {
        "search": BestFirst(max_designs=1_000, start=3),
        "max_stages": 4,
        "removal": True,
        "validation": 2,
        "threshold": [0.9, 0.8, 0.7],
        "objectives": ("fnr", "worst_class_accuracy", "cost"),
        "final_estimator": GaussianNB(),
    },
    "chains, thresholds of their own and a final estimator": {
        "search": BestFirst(max_designs=400, start="chains"),
        "max_stages": 3,
        "removal": True,
        "threshold": "auto",
        "final_estimator": GaussianNB(),
    },
}


COSTS = Prices(price=dict(zip([f"x{i}" for i in range(8)], [3, 1, 4, 1, 5, 9, 2, 6], strict=True)), overhead=0.5)


def data(n_features=8):
    return make_classification(400, n_features, n_informative=5, n_redundant=2, flip_y=0.2, random_state=3)


class KilledError(Exception):
    """Stands for kill -9: nothing catches it."""


def run(path, settings, **more):
    clf = fixed(costs=COSTS, random_state=0, preset="paper", **settings, **more)
    return clf.fit(*data(), checkpoint=path)


def assert_same(a, b):
    for name in ("designs", "coverage", "accuracy", "mean_cost", "n_ties", "reached", "values"):
        assert_array_equal(getattr(a.front_, name), getattr(b.front_, name), err_msg=name)
    for tied, others in zip(a.front_.ties, b.front_.ties, strict=True):
        assert_array_equal(list(tied), list(others))
    assert_array_equal(a.history_, b.history_)
    assert (a.front_.thresholds is None) == (b.front_.thresholds is None)
    if a.front_.thresholds is not None:
        assert_array_equal(a.front_.thresholds, b.front_.thresholds)
    assert a.deployed_.promises == b.deployed_.promises
    assert a.n_feature_sets_ == b.n_feature_sets_
    assert a.n_generations_ == b.n_generations_
    if a.front_.certificate is not None:
        assert a.front_.certificate.n_walked == b.front_.certificate.n_walked
    X = data()[0]
    assert_array_equal(a.predict_proba(X), b.predict_proba(X))


@pytest.fixture
def always_save(monkeypatch):
    monkeypatch.setattr(checkpoint, "_SECONDS", -1.0)
    monkeypatch.setattr(checkpoint, "_SHARE", 1e9)


@pytest.mark.filterwarnings("ignore::emsco.exceptions.GuaranteeWarning")
@pytest.mark.usefixtures("always_save")
@pytest.mark.parametrize("name", RUNS)
def test_cut_off_again_and_again_it_ends_as_if_it_had_not_been(name, tmp_path, monkeypatch):
    """Every piece of training, and every layer of a proof, is the last of its run."""
    settings = RUNS[name]
    whole = run(None, settings)
    n_calls, allowed = 0, 0

    def counted(original):
        def wrapper(self, *args, **kwargs):
            nonlocal n_calls
            n_calls += 1
            if n_calls > allowed:
                raise KilledError
            return original(self, *args, **kwargs)

        return wrapper

    for owner, method in ((LogisticTrainer, "train"), (EstimatorTrainer, "train"), (Checkpoint, "save")):
        monkeypatch.setattr(owner, method, counted(getattr(owner, method)))
    n_runs = 0
    while True:
        n_calls, allowed, n_runs = 0, 3 + n_runs % 4, n_runs + 1
        assert n_runs < 300, "it does not get on"
        try:
            resumed = run(tmp_path / "run.ckpt", settings)
            break
        except KilledError:
            continue
    assert n_runs > 2
    assert_same(resumed, whole)


@pytest.mark.filterwarnings("ignore::emsco.exceptions.GuaranteeWarning")
@pytest.mark.usefixtures("always_save")
@pytest.mark.parametrize("name", RUNS)
def test_with_a_checkpoint_and_without_the_result_is_the_same(name, tmp_path):
    whole = run(None, RUNS[name])
    assert_same(run(tmp_path / "a.ckpt", RUNS[name]), whole)
    assert_same(run(tmp_path / "a.ckpt", RUNS[name], n_jobs=2), whole)  # all of it from the file, by two workers


def test_an_unseeded_run_keeps_its_seed(tmp_path):
    settings = {"search": Evolution(population_size=20, max_generations=3), "max_stages": 3, "preset": "paper"}
    first = fixed(**settings).fit(*data(), checkpoint=tmp_path / "a.ckpt")
    again = fixed(**settings).fit(*data(), checkpoint=tmp_path / "a.ckpt")
    assert_array_equal(first.front_.designs, again.front_.designs)
    assert_array_equal(first.history_, again.history_)


ONES = partial(Prices, price={f"x{i}": 1 for i in range(8)})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"threshold": 0.8}, "threshold: 0.75 there, 0.8 here"),
        ({"random_state": 1}, "seed: "),
        ({"costs": [2] + [1] * 7}, "prices: "),
        ({"costs": ONES(overhead=2)}, "price model: 0, sum there, 2, sum here"),
        ({"costs": ONES(parallel=True)}, "price model: 0, sum there, 0, parallel here"),
        ({"search": Evolution(population_size=21, max_generations=3)}, "population_size=20.* there"),
        ({"max_stages": 4}, "max_stages: 3 there, 4 here"),
        ({"objectives": ["fpr", "cost"]}, r'objectives: null there, \["fpr", "cost"\] here'),
        ({"estimator": DecisionTreeClassifier()}, r"estimator: \(Recipe\(estimator=None.* there"),
        ({"encoding": "rank"}, "'raw', 1.0.* there.*'rank', 1.0"),
        ({"removal": True}, "removal: False there, True here"),
        ({"validation": 3}, "other data"),
        ({"preset": "best"}, "other data.*removal: False there, True here"),
    ],
)
def test_the_checkpoint_of_another_run_is_refused(tmp_path, change, says):
    search = Evolution(population_size=20, max_generations=3)
    settings = {"search": search, "max_stages": 3, "random_state": 0, "preset": "paper"}
    path = tmp_path / "a.ckpt"
    fixed(**settings).fit(*data(), checkpoint=path)
    with pytest.raises(CheckpointError, match=f"another run.*{says}"):
        fixed(**{**settings, **change}).fit(*data(), checkpoint=path)
    X, y = data()
    with pytest.raises(CheckpointError, match="other data"):
        fixed(**settings).fit(X + 1e-9, y, checkpoint=path)


def votes(strength):
    """Estimators that scikit-learn shows alike: it leaves the middle out."""
    more = {"max_iter": 5000, "tol": 1e-7, "solver": "newton-cg"}
    strengths = [strength if 4 <= i <= 15 else 1.5 for i in range(20)]
    members = [(f"member_number_{i}", LogisticRegression(C=c, **more)) for i, c in enumerate(strengths)]
    return VotingClassifier(members, voting="soft")


def test_estimators_that_look_alike_are_told_apart(tmp_path):
    assert repr(votes(1e-3)) == repr(votes(999.0))
    settings = {"search": Evolution(population_size=4, max_generations=1), "max_stages": 1, "random_state": 0}
    X, y = data()
    X = X[:, :2]
    path, other = tmp_path / "a.ckpt", tmp_path / "b.ckpt"
    weak, strong = (fixed(estimator=votes(c), **settings) for c in (1e-3, 999.0))
    weak.fit(X, y, checkpoint=path)
    with pytest.raises(CheckpointError, match="estimator: "):
        strong.fit(X, y, checkpoint=path)
    weak, strong = (fixed(final_estimator=votes(c), **settings) for c in (1e-3, 999.0))
    weak.fit(X, y, checkpoint=other)
    strong.fit(X, y, checkpoint=other)
    fresh = clone(strong).fit(X, y)
    assert_array_equal(strong.front_.values, fresh.front_.values)


def test_an_identity_is_the_same_in_another_process_and_changes_with_all_that_is_held():
    code = """
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import FunctionTransformer
from emsco import Objective
from emsco.storage.checkpoint import identity_of
late = 2
things = [
    RandomForestClassifier(random_state=np.random.RandomState(0)), FunctionTransformer(lambda x: x + {step}),
    [Objective("late", lambda counts: counts.n_stages * {step})], lambda x, step={step}: x, ["coverage", "cost"], None,
]
print([identity_of(thing) for thing in things])
"""
    said = [
        subprocess.run([sys.executable, "-c", code.replace("{step}", step)], capture_output=True, text=True, check=True)
        for step in ("1", "1", "2")
    ]
    first, again, other = (ast.literal_eval(run.stdout) for run in said)
    assert first == again
    assert [a == b for a, b in zip(first, other, strict=True)] == [True, False, False, False, True, True]
    assert not any(" at 0x" in name for name in first)


def test_files_that_are_no_checkpoints_are_explained(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("not a database, and long enough to be looked at " * 50)
    with pytest.raises(CheckpointError, match="not a checkpoint, or a damaged one"):
        Checkpoint(text)
    with pytest.raises(CheckpointError, match="not a regular file"):
        Checkpoint(tmp_path)
    with pytest.raises(CheckpointError, match="does not exist; create it"):
        Checkpoint(tmp_path / "no" / "a.ckpt")
    with Checkpoint(tmp_path / "a.ckpt"), pytest.raises(CheckpointError, match="Does another run use it"):
        Checkpoint(tmp_path / "a.ckpt")
    with Checkpoint(tmp_path / "a.ckpt") as held:
        held._set_fact("format", "emsco-checkpoint 3")
    with pytest.raises(CheckpointError, match=r"another version of emsco \(emsco-checkpoint 3; this one reads .* 2\)"):
        Checkpoint(tmp_path / "a.ckpt")


FOREIGN = {
    "another program": ("CREATE TABLE mine (x)", "INSERT INTO mine VALUES (1)"),
    "the same names": ("CREATE TABLE facts (name, value)", "CREATE TABLE sets (x)", "CREATE TABLE parts (x)"),
    "nothing in it": ("PRAGMA user_version = 3",),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_database_is_refused_and_left_as_it_is(name, tmp_path):
    path = tmp_path / "theirs.db"
    with sqlite3.connect(path) as db:
        for statement in FOREIGN[name]:
            db.execute(statement)
    db.close()
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match="database of another kind; give another file") as raised:
        Checkpoint(path)
    assert "remove" not in str(raised.value)
    assert path.read_bytes() == before
    assert [other.name for other in tmp_path.iterdir()] == ["theirs.db"]


def test_a_checkpoint_of_the_first_format_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "old.ckpt"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID")
        db.execute("INSERT INTO facts VALUES ('format', 'emsco-checkpoint 1')")
    db.close()
    before = path.read_bytes()
    with pytest.raises(CheckpointError, match=r"another version of emsco \(emsco-checkpoint 1; this one reads"):
        Checkpoint(path)
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes as POSIX has them")
def test_a_pipe_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="not a regular file"):
        Checkpoint(tmp_path / "pipe")


def test_a_full_disk_is_said_and_the_run_can_go_on(tmp_path):
    path = tmp_path / "a.ckpt"
    with Checkpoint(path) as held:
        held.add_trained([(b"set", 0, b"memory")])
        held._db.execute("COMMIT")
        held._db.execute("PRAGMA max_page_count = 12")
        with pytest.raises(CheckpointError, match=r"disk of the checkpoint .* is full; free some space"):
            held.add_trained([(b"other", 1, b"m" * 100_000)])
    with Checkpoint(path) as held:
        assert held.trained([b"set", b"other"]) == {b"set": (0, b"memory")}


@pytest.mark.usefixtures("always_save")
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sets SET memory = zeroblob(length(memory)) WHERE number = 1", "UPDATE sets SET number = number + 1",
        "UPDATE facts SET value = 'x' WHERE name = 'identity'", "DELETE FROM facts WHERE name = 'identity'",
        "DELETE FROM facts WHERE name = 'format'", "UPDATE facts SET value = '{}' WHERE name = 'identity'",
        "UPDATE parts SET data = zeroblob(length(data)) WHERE name = 'population'", "DELETE FROM parts",
        "DELETE FROM parts WHERE name = 'rng'", "UPDATE parts SET name = 'ring' WHERE name = 'rng'",
        "UPDATE parts SET part = 1 WHERE name = 'rng'", "UPDATE parts SET data = 'text' WHERE name = 'rng'",
        "UPDATE parts SET checksum = NULL", "DROP TABLE parts", "DELETE FROM facts WHERE name = 'snapshot'",
    ],
)  # fmt: skip
def test_a_checkpoint_that_was_changed_is_refused(statement, tmp_path):
    path, settings = tmp_path / "a.ckpt", {"search": Evolution(population_size=10, max_generations=2), "max_stages": 2}
    run(path, settings)
    with sqlite3.connect(path) as db:
        db.execute(statement)
    db.close()
    with pytest.raises(CheckpointError, match=r"damaged|another version|failed: no such table|cannot be used"):
        run(path, settings)


@pytest.mark.usefixtures("always_save")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("population", lambda a: a[:-1]), ("population", lambda a: a + 2**20), ("counts", lambda a: -a),
        ("counts", lambda a: a[:2]), ("rng", lambda a: a[:-1]), ("rng", lambda a: a[:0]), ("phase", lambda a: a[:3]),
        ("history", lambda a: a.astype(float)), ("seconds", lambda a: a * np.nan), ("figures", lambda a: a[:, :1]),
        ("tie_sizes", lambda a: a.astype("U3")), ("money", lambda a: a[:1]),
    ],
)  # fmt: skip
def test_a_snapshot_that_cannot_be_is_refused_before_it_is_used(name, change, tmp_path):
    path, settings = tmp_path / "a.ckpt", {"search": Evolution(population_size=10, max_generations=2), "max_stages": 2}
    run(path, settings)
    with Checkpoint(path) as held:
        arrays = held.load()
        held.save(lambda: {**arrays, name: np.asarray(change(arrays[name]))})
    with pytest.raises(CheckpointError, match="snapshot in the checkpoint cannot be used"):
        run(path, settings)


def test_flipped_bytes_change_no_result():
    outcomes = fuzz_checkpoints.run(12)
    assert set(outcomes) <= {"the same", "refused"}


LIMIT = 3


def limited(counts):
    return np.minimum(counts.n_stages, LIMIT)


def through_another(counts):
    return limited(counts)


def test_a_function_is_told_apart_by_the_globals_that_it_reads(monkeypatch):
    functions = [limited, through_another, partial(through_another), [Objective("late", lambda c: limited(c))]]
    before = [identity_of(function) for function in functions]
    assert before == [identity_of(function) for function in functions]
    monkeypatch.setitem(globals(), "LIMIT", 4)
    assert not set(before) & {identity_of(function) for function in functions}
    monkeypatch.setitem(globals(), "UNREAD", 4)
    monkeypatch.setitem(globals(), "LIMIT", 3)
    assert before == [identity_of(function) for function in functions]


@pytest.mark.usefixtures("always_save")
def test_a_snapshot_is_replaced_whole_or_not_at_all(tmp_path):
    with Checkpoint(tmp_path / "a.ckpt") as held:
        held.save(lambda: {"a": np.arange(5)})
        with pytest.raises(ValueError, match="allow_pickle"):
            held.save(lambda: {"a": np.arange(3), "b": np.array([object()])})
    with Checkpoint(tmp_path / "a.ckpt") as held:
        snapshot = held.load()
    assert list(snapshot) == ["a"]
    assert_array_equal(snapshot["a"], np.arange(5))


def test_large_arrays_are_kept_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "_PART", 100)
    monkeypatch.setattr(checkpoint, "_SECONDS", -1.0)
    array = np.random.default_rng(0).normal(size=(37, 9))
    with Checkpoint(tmp_path / "a.ckpt") as held:
        held.save(lambda: {"a": array, "empty": np.empty((0, 3))})
    with Checkpoint(tmp_path / "a.ckpt") as held:
        assert_array_equal(held.load()["a"], array)
        assert held.load()["empty"].shape == (0, 3)


@pytest.mark.filterwarnings("ignore::emsco.exceptions.SearchInterruptedWarning")
@pytest.mark.usefixtures("always_save", "ctrl_c")
def test_after_ctrl_c_the_same_call_goes_on(tmp_path, monkeypatch):
    settings = RUNS["evolution"]
    whole = run(None, settings)
    original, n_calls = LogisticTrainer.train, 0

    def interrupted(self, sets):
        nonlocal n_calls
        n_calls += 1
        if n_calls == 5:
            signal.raise_signal(signal.SIGINT)
        return original(self, sets)

    monkeypatch.setattr(LogisticTrainer, "train", interrupted)
    with pytest.warns(SearchInterruptedWarning):
        partial = run(tmp_path / "a.ckpt", settings)
    assert partial.n_generations_ < whole.n_generations_
    assert_same(run(tmp_path / "a.ckpt", settings), whole)


SCRIPT = """
import os, signal, sys, threading
from emsco.storage import checkpoint
from tests.storage.test_checkpoint import RUNS, run
checkpoint._SECONDS, checkpoint._SHARE = -1.0, 1e9
end = threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), signal.SIGKILL))
end.daemon = True
end.start()
clf = run(sys.argv[1], RUNS[sys.argv[2]])
print(clf.front_.designs.tolist(), clf.front_.n_ties.tolist(), clf.history_.tolist(), clf.n_feature_sets_)
"""


def run_until_killed(path, name, seconds):
    """Run a search in a process that is killed after so many seconds; return what it printed and whether it was."""
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), name, str(seconds)], stdout=subprocess.PIPE, cwd=root, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL)
    return done.stdout, done.returncode != 0


@pytest.mark.parametrize("name", ["evolution", pytest.param("exact", marks=pytest.mark.slow)])
def test_killed_at_random_moments_it_ends_with_the_same_front(name, tmp_path):
    run(None, RUNS[name])  # compiles
    start = time.perf_counter()
    whole = run(None, RUNS[name])
    seconds = time.perf_counter() - start  # a run that saves takes longer
    shares = np.random.default_rng(0).uniform(0, 1, 2)
    killed = [run_until_killed(tmp_path / "a.ckpt", name, share * seconds)[1] for share in shares]
    assert any(killed)
    output, _ = run_until_killed(tmp_path / "a.ckpt", name, 3600)
    front = whole.front_
    expected = [front.designs.tolist(), front.n_ties.tolist(), whole.history_.tolist(), whole.n_feature_sets_]
    assert output.strip() == " ".join(map(str, expected))
