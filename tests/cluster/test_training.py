"""Fits on a cluster: the same fronts, models and decisions as in one process, whatever becomes of workers."""

from concurrent.futures import CancelledError
from contextlib import contextmanager
import logging
import os
import pickle
import signal
from threading import Timer
import time
import warnings

import dask
from distributed import Future
from joblib import parallel_config
import numpy as np
from numpy.testing import assert_array_equal
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.tree import DecisionTreeClassifier

from emsco import BestFirst, EMSCOClassifier, Evolution, load
from emsco.cluster import training
from emsco.cluster.crew import Call, Crew
from emsco.exceptions import ClusterError, InvalidParameterError
from emsco.search import evolution
from tests.classifiers import fixed
from tests.cluster.conftest import need_loopback

RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 6))
Y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * RNG.normal(size=260) > 0, "yes", "no")
COSTS = [1, 2, 3, 4, 5, 6]
TREES = {"estimator": DecisionTreeClassifier(max_depth=3), "search": Evolution(population_size=30, max_generations=4)}


@pytest.fixture(autouse=True)
def send_everything(monkeypatch):
    monkeypatch.setattr(training, "_WORTH_IT", 0.0)
    monkeypatch.setattr(training, "_SHORTEST", 0.0)


@contextmanager
def own_cluster(**config):
    need_loopback()
    from distributed import Client, LocalCluster

    with dask.config.set({"distributed.scheduler.worker-ttl": "10s", **config}):
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", silence_logs=logging.CRITICAL
        )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client, cluster


def same(clf, other):
    assert_array_equal(clf.front_.designs, other.front_.designs)
    assert_array_equal(clf.front_.objectives, other.front_.objectives)
    assert clf.point_ == other.point_
    for point in range(len(clf.front_)):
        first, second = (each.deployed_.use(point).decide(X) for each in (clf, other))
        assert_array_equal(first.confidence.view(np.uint64), second.confidence.view(np.uint64))
        assert_array_equal(first.label.filled("none"), second.label.filled("none"))


SETTINGS = {
    "trees": TREES,
    "trees, held out": {**TREES, "validation": 0.3, "refit": True},
    "logistic": {"search": BestFirst(max_designs=60)},
    "logistic, final trees": {"search": BestFirst(max_designs=40), "final_estimator": TREES["estimator"]},
    "prices of errors": {"threshold": None, "choose": None, "final_estimator": None, "errors": [[0, 20], [30, 0]]},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_cluster_finds_what_one_process_finds(name, client):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = fixed(COSTS, random_state=0, **SETTINGS[name]).fit(X, Y)
        many = fixed(COSTS, random_state=0, **SETTINGS[name], client=client).fit(X, Y)
    same(one, many)


@pytest.mark.slow
@pytest.mark.parametrize("n_rows", [800, 14_000])
def test_the_defaults_too(n_rows, client):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n_rows, 6))
    y = rows[:, 0] + rows[:, 1] * rows[:, 2] + 0.5 * rng.normal(size=n_rows) > 0
    one = EMSCOClassifier(COSTS, random_state=0).fit(rows, y)
    many = EMSCOClassifier(COSTS, random_state=0, client=client).fit(rows, y)
    assert one.learner_ == many.learner_
    assert_array_equal(one.front_.designs, many.front_.designs)
    assert_array_equal(one.front_.objectives, many.front_.objectives)
    first, second = one.decide(rows), many.decide(rows)
    assert_array_equal(first.confidence.view(np.uint64), second.confidence.view(np.uint64))


def test_joblib_says_where(client, monkeypatch):
    asked = []
    monkeypatch.setattr(
        Crew, "__init__", lambda self, given, init=Crew.__init__: [asked.append(given), init(self, given)][1]
    )
    one = fixed(COSTS, random_state=0, **TREES).fit(X, Y)
    with client.as_current(), parallel_config(backend="dask"):
        many = fixed(COSTS, random_state=0, **TREES).fit(X, Y)
    assert [each.scheduler.address for each in asked] == [client.scheduler.address]
    same(one, many)


def test_a_client_is_kept_by_clone_and_not_stored(client, tmp_path):
    clf = fixed(COSTS, random_state=0, **TREES, client=client)
    assert clf.get_params()["client"] is client
    copied = clone(clf)
    assert copied.client is client
    assert copied.estimator is not clf.estimator
    clf.fit(X, Y)
    assert pickle.loads(pickle.dumps(clf)).client is None
    assert clf.client is client
    clf.save(tmp_path / "model.emsco")
    fixed(COSTS, random_state=0, **TREES).fit(X, Y).save(tmp_path / "plain.emsco")
    loaded = load(tmp_path / "model.emsco")
    assert loaded.client is None
    same(loaded, load(tmp_path / "plain.emsco"))
    assert "client" not in clf.deployed_.origin.parameters


def test_something_else_is_refused():
    with pytest.raises(InvalidParameterError, match="client must be a synchronous"):
        fixed(COSTS, client="tcp://127.0.0.1:8786").fit(X, Y)


def test_arrays_are_sent_once(client):
    crew = Crew(client)

    class Thing:
        def __init__(self, big):
            self.big = big

    big = np.arange(100_000.0)
    first, second = Thing(big), Thing(big)
    calls = [
        Call(lambda thing, i: float(thing.big[i]), thing, (i,), "") for i in range(10) for thing in (first, second)
    ]
    found = dict(crew.run(calls))
    assert [found[i] for i in range(20)] == [float(i // 2) for i in range(20)]
    assert crew.totals.sent == big.nbytes
    assert crew.totals.tasks == 20
    assert crew.totals.log[0][1] >= crew.totals.log[0][0]


def test_what_is_sent_to_a_worker_that_dies_meanwhile_is_sent_again(client, monkeypatch):
    scatter, failed = client.scatter, []

    def failing(*arguments, **options):
        if len(failed) < 3:
            failed.append(1)
            raise [OSError("the stream is closed"), TimeoutError("no workers"), KeyError("tcp://gone")][len(failed) - 1]
        return scatter(*arguments, **options)

    monkeypatch.setattr(client, "scatter", failing)
    crew = Crew(client)
    big = np.arange(100_000.0)
    thing = type("Thing", (), {"__init__": lambda self: setattr(self, "big", big)})()
    assert dict(crew.run([Call(lambda thing: float(thing.big[7]), thing, (), "")])) == {0: 7.0}
    assert crew.totals.again == 3


def test_a_result_that_is_lost_is_made_again(client, monkeypatch):
    result, lost = Future.result, []

    def losing(self, *arguments, **options):
        if not lost:
            lost.append(1)
            raise CancelledError(self.key)
        return result(self, *arguments, **options)

    crew = Crew(client)
    monkeypatch.setattr(Future, "result", losing)
    assert dict(crew.run([Call(lambda _, i: i, crew.totals, (i,), "") for i in range(5)])) == {i: i for i in range(5)}
    assert crew.totals.again == 1


def test_what_a_call_raises_is_raised(client):
    crew = Crew(client)
    with pytest.raises(ZeroDivisionError):
        dict(crew.run([Call(lambda _, i: 1 / i, crew.totals, (i,), "") for i in range(3)]))


class Slow(ClassifierMixin, BaseEstimator):
    """A tree that takes its time."""

    def __init__(self, seconds=0.01):
        self.seconds = seconds

    def fit(self, Z, y):
        time.sleep(self.seconds)
        self.tree_ = DecisionTreeClassifier(max_depth=3, random_state=0).fit(Z, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict_proba(self, Z):
        return self.tree_.predict_proba(Z)


class Deadly(Slow):
    """Ends the process that trains it on one column alone, the third."""

    def fit(self, Z, y):
        if Z.shape[1] == 1 and abs(float(Z[0, 0]) - self.seconds) < 1e-12:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seconds = 0.0
        return super().fit(Z, y)


def test_a_worker_that_is_killed_costs_its_work_and_nothing_else():
    settings = {**TREES, "estimator": Slow(), "random_state": 0}
    one = fixed(COSTS, **settings).fit(X, Y)
    with own_cluster() as (client, _):
        pids = [*client.run(os.getpid).values()]
        timers = [Timer(0.5, os.kill, (pids[0], signal.SIGKILL)), Timer(1.2, os.kill, (pids[1], signal.SIGKILL))]
        for timer in timers:
            timer.start()
        many = fixed(COSTS, **settings, client=client).fit(X, Y)
        for timer in timers:
            timer.join()
    same(one, many)


@pytest.mark.slow
def test_a_feature_set_that_ends_workers_is_named():
    with own_cluster(**{"distributed.scheduler.allowed-failures": 0}) as (client, _):
        crew = Crew(client)
        trainer = training.ClusterTrainer(_deadly_trainer(), crew, _Timing())
        with pytest.raises(ClusterError, match=r"training the feature set \{x2\} has ended several workers"):
            trainer.train(np.eye(6, dtype=bool))
        assert dict(crew.run([Call(lambda _: 3, crew.totals, (), "")])) == {0: 3}  # the cluster lives on


class _Timing:
    class problem:  # noqa: N801
        class prices:  # noqa: N801
            unit_names = tuple(f"x{i}" for i in range(6))

    def one_by_one(self, sets, **_):
        return np.full(len(sets), 0.01)


def _deadly_trainer():
    from emsco.prices.prices import resolve
    from emsco.stages.estimator import EstimatorTrainer
    from emsco.stages.problem import Problem

    codes = (Y == "yes").astype(np.int64)
    problem = Problem(
        X[:200].T.copy(), codes[:200], X[200:].T.copy(), codes[200:], 2, np.eye(6, dtype=bool),
        resolve(COSTS, [f"x{i}" for i in range(6)]),
    )  # fmt: skip
    return EstimatorTrainer(problem, Deadly(float(X[0, 2])), seed=0)


@pytest.mark.slow
def test_a_lost_scheduler_leaves_the_checkpoint_which_goes_on_without_a_cluster(tmp_path):
    settings = {**TREES, "estimator": Slow(), "random_state": 0}
    one = fixed(COSTS, **settings).fit(X, Y)
    need_loopback()
    import subprocess
    import sys

    from distributed import Client

    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0",
               "--no-dashboard", "--scheduler-file", str(file)]  # fmt: skip
    scheduler = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    worker = None
    try:
        while not file.exists():
            time.sleep(0.05)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads",
                   "1", "--no-dashboard", "--death-timeout", "5", "--host", "127.0.0.1"]  # fmt: skip
        worker = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
            client = Client(scheduler_file=str(file), set_as_default=False)
            client.wait_for_workers(1, timeout=60)
            timer = Timer(2.0, scheduler.kill)
            timer.start()
            with pytest.raises(ClusterError, match="scheduler of the cluster is gone"):
                fixed(COSTS, **settings, client=client).fit(X, Y, checkpoint=tmp_path / "run.ckpt")
            timer.join()
            client.close(timeout=1)
    finally:
        for process in (scheduler, worker):
            if process is not None:
                process.kill()
                process.wait()
    again = fixed(COSTS, **settings).fit(X, Y, checkpoint=tmp_path / "run.ckpt")
    same(one, again)


@pytest.mark.slow
def test_ctrl_c_keeps_what_there_is_and_a_checkpoint_goes_on_with_a_cluster(client, tmp_path, ctrl_c, monkeypatch):
    from emsco.exceptions import SearchInterruptedWarning

    settings = {**TREES, "estimator": Slow(0.02), "random_state": 0}
    one = fixed(COSTS, **settings).fit(X, Y)
    begun, sent, run, step = [], [], Crew.run, evolution.step

    def counted_step(*arguments, **options):
        begun.append(1)
        return step(*arguments, **options)

    def interrupted_run(self, *arguments, **options):
        for done in run(self, *arguments, **options):
            yield done
            if len(begun) == 2 and not sent:  # while tasks of the second generation are open
                sent.append(1)
                signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(evolution, "step", counted_step)
    monkeypatch.setattr(Crew, "run", interrupted_run)
    with pytest.warns(SearchInterruptedWarning):
        interrupted = fixed(COSTS, **settings, client=client).fit(X, Y, checkpoint=tmp_path / "run.ckpt")
    assert len(interrupted.front_)
    same(one, fixed(COSTS, **settings, client=client).fit(X, Y, checkpoint=tmp_path / "run.ckpt"))
