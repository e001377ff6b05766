"""Clusters: `python -m benchmarks.cluster kills|speed|memory|decide|replay`, each with `--help`.

- kills: searches on a cluster whose workers are killed or stopped at random moments; all fronts must be equal.
- speed: one worker and two against one process, each of one thread.
- memory: a table larger than the memory of the workers is fitted; the memory of each is watched.
- decide: many rows in generated partitions are decided, beside `emsco predict` on one file.
- replay: the tasks of a search, as they were, on 1 to 1,024 simulated workers; with a picture.
"""

import argparse
from contextlib import ExitStack, contextmanager
import heapq
import json
import logging
import os
from pathlib import Path
import signal
import subprocess
import sys
from tempfile import TemporaryDirectory
from threading import Event, Thread
import time

import numpy as np
from sklearn.datasets import make_classification

from emsco import BestFirst, EMSCOClassifier, Evolution, MultiStageClassifier

FIGURE = ("#2a6fb0", "#8a8a8a")


@contextmanager
def cluster(n_workers, *, memory=None, ttl="10s"):
    """A client of so many processes of one thread."""
    import dask
    from distributed import Client, LocalCluster

    options = {} if memory is None else {"memory_limit": memory}
    settings = {
        "distributed.scheduler.worker-ttl": ttl,
        "distributed.scheduler.allowed-failures": 100,
        "distributed.deploy.lost-worker-timeout": "1s",
    }
    with dask.config.set(settings):
        local = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0",
            silence_logs=logging.CRITICAL, **options,
        )  # fmt: skip
        with local, Client(local, set_as_default=False) as client:
            local.adapt(minimum=n_workers, maximum=n_workers)  # for those that Dask closes because they hung
            yield client


def boosted(n_rows, n_columns=12, **settings):
    """A search whose stages are boosted trees, and its table."""
    from lightgbm import LGBMClassifier

    X, y = make_classification(n_rows, n_columns, n_informative=8, n_redundant=2, flip_y=0.1, random_state=3)
    trees = LGBMClassifier(n_estimators=40, num_leaves=15, n_jobs=1, verbose=-1, random_state=0)
    search = Evolution(population_size=60, max_generations=6, patience=None)
    return EMSCOClassifier(range(1, n_columns + 1), estimator=trees, search=search, random_state=0, threshold=0.8,
                           choose="combined", verbose=False, **settings), X, y  # fmt: skip


def small(n_rows, **settings):
    """A search that takes some seconds."""
    clf, X, y = boosted(n_rows, 10, **settings)
    return clf.set_params(search=Evolution(population_size=20, max_generations=4, patience=None), validation=3), X, y


def answer(clf, X):
    """What must be equal, as text."""
    front, decisions = clf.front_, clf.decide(X)
    return json.dumps([front.designs.tolist(), front.mean_cost.tolist(), front.accuracy.tolist(), clf.point_,
                       float(decisions.confidence.sum()).hex(), clf.history_.tolist()])  # fmt: skip


def kills(arguments):
    """Kill or stop workers at random moments while searches run; return 1 if an answer differs."""
    rng = np.random.default_rng(arguments.seed)
    clf, X, y = small(arguments.rows)
    clf.fit(X, y)
    expected, n_killed, n_stopped = answer(clf, X), 0, 0
    with cluster(2, ttl="3s") as client:
        began = time.perf_counter()
        small(arguments.rows, client=client)[0].fit(X, y)
        pause = max(time.perf_counter() - began, 1.5)  # at most, between two troubles: workers take a while to begin
        for run in range(arguments.runs):
            done, hits = Event(), []
            troubler = Thread(target=_trouble, args=(client, done, rng.integers(2**31), pause, hits))
            troubler.start()
            again = small(arguments.rows, client=client)[0]
            try:
                again.fit(X, y)
            finally:
                done.set()
                troubler.join()
            n_killed += hits.count("killed")
            n_stopped += hits.count("stopped")
            if answer(again, X) != expected:
                print(f"run {run}: another answer after {hits}")
                return 1
            print(f"{run + 1} runs ended alike; {n_killed} workers killed, {n_stopped} stopped", flush=True)
    return 0


def _trouble(client, done, seed, pause, hits):
    """Kill or stop a random worker now and then; one that was stopped goes on later.

    It ends after five times: on a busy machine, workers would never finish anything.
    """
    rng = np.random.default_rng(seed)
    while len(hits) < 5 and not done.wait(float(rng.uniform(0.05, pause))):
        processes = [process for process in map(_pid, _nannies(client)) if process]
        if not processes:
            continue
        process, kill = int(rng.choice(processes)), bool(rng.integers(2))
        try:
            os.kill(process, signal.SIGKILL if kill else signal.SIGSTOP)
            hits.append("killed" if kill else "stopped")
            if not kill:
                done.wait(float(rng.uniform(0.5, 6.0)))
                os.kill(process, signal.SIGCONT)
        except ProcessLookupError:
            continue


def _nannies(client):
    return list(client.cluster.workers.values())


def _pid(nanny):
    process = getattr(nanny, "process", None)
    return getattr(process, "pid", None)


SPEED = """
import sys, time, warnings
from benchmarks.cluster import answer, boosted, cluster, default
from contextlib import nullcontext
kind, n_workers, n_rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
make = boosted if kind == "boosted" else default
warnings.simplefilter("ignore")
warm = make(600, time_limit=4)
warm[0].fit(*warm[1:])
with cluster(n_workers) if n_workers else nullcontext() as client:
    clf, X, y = make(n_rows, client=client)
    if client is not None:  # workers load and compile, as the process has
        small = make(600, time_limit=8, client=client)
        small[0].fit(*small[1:])
    began = time.perf_counter()
    clf.fit(X, y)
    print(time.perf_counter() - began)
    print(answer(clf, X))
"""


def default(n_rows, n_columns=40, **settings):
    """A default fit, and its table."""
    X, y = make_classification(n_rows, n_columns, n_informative=12, n_redundant=6, flip_y=0.1, random_state=3)
    return EMSCOClassifier(range(1, n_columns + 1), random_state=0, verbose=False, **settings), X, y


def speed(arguments):
    """Print how long one process, one worker and two take; return 1 if their answers differ."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    for kind, n_rows in (("boosted", arguments.boosted_rows), ("default", arguments.default_rows)):
        if arguments.only not in (None, kind):
            continue
        seconds, answers = {}, set()
        for n_workers in (0, 1, 2):
            command = [sys.executable, "-c", SPEED, kind, str(n_workers), str(n_rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            taken, said = done.stdout.splitlines()[-2:]
            seconds[n_workers] = float(taken)
            print(f"{kind}, {n_workers or 'no'} workers: {seconds[n_workers]:.1f} s", flush=True)
            answers.add(said)
        if len(answers) > 1:
            print(f"{kind}: the answers differ")
            return 1
        print(f"{kind}, {n_rows:,} rows: {seconds[0]:.1f} s in one process; one worker {seconds[1]:.1f} s "
              f"({seconds[1] / seconds[0]:.2f} times as long), two {seconds[2]:.1f} s "
              f"({seconds[0] / seconds[2]:.2f} times as fast)", flush=True)  # fmt: skip
    return 0


def generated(number, n_rows, n_columns, dtype=np.float64):
    """A partition of a table that nobody has to store."""
    import pandas

    rng = np.random.default_rng([7, number])
    X = rng.standard_normal((n_rows, n_columns), dtype=dtype)
    y = X[:, 0] + 0.7 * X[:, 1] - 0.5 * X[:, 2] * (X[:, 3] > 0) + rng.normal(size=n_rows) > 0
    frame = pandas.DataFrame(X, columns=[f"x{i}" for i in range(n_columns)])
    return frame.assign(label=np.where(y, "yes", "no"))


def memory(arguments):
    """Fit a table larger than the memory of the workers; print how much each had."""
    import dask.dataframe as dd

    from emsco.cluster import fitting

    fitting._SAMPLE_ROWS = arguments.sample
    n_parts = -(-arguments.bytes // (arguments.part_rows * arguments.columns * 8))
    with cluster(2, memory=arguments.limit) as client:
        size = {"n_rows": arguments.part_rows, "n_columns": arguments.columns, "dtype": np.float32}
        frame = dd.from_map(generated, range(n_parts), **size)
        seen, done = [], Event()
        watcher = Thread(target=_watch, args=(client, seen, done))
        watcher.start()
        began = time.perf_counter()
        clf = EMSCOClassifier(range(1, arguments.columns + 1), random_state=0, client=client, verbose=None,
                              final_estimator="search", encoding="linear",
                              search=BestFirst(max_designs=100))  # fmt: skip
        try:
            clf.fit(frame, "label")
        finally:
            done.set()
            watcher.join()
        seconds = time.perf_counter() - began
    n_rows = n_parts * arguments.part_rows
    print(f"{n_rows:,} rows, {n_rows * arguments.columns * 8 / 1e9:.1f} GB, {seconds:.0f} s; judged on "
          f"{clf.front_.n_samples:,} rows; MB of a worker, at most, "
          f"in each quarter of the time: {[round(max(part) / 1e6) for part in np.array_split(seen, 4)]}")  # fmt: skip
    return 0


def _watch(client, seen, done):
    while not done.wait(0.5):
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        seen.append(max((worker["metrics"]["memory"] for worker in workers), default=0))


def decide(arguments):
    """Decide many rows by two workers, partition by partition, beside `emsco predict` on one file on one core.

    With a folder, a run that was ended goes on after the last chunk of files that was done.
    """
    from pyarrow import Table, parquet

    import emsco
    from emsco.cluster.crew import Crew
    from emsco.cluster.dataset import predict_files

    rows, columns = arguments.part_rows, 12
    with ExitStack() as stack:
        folder = Path(arguments.folder or stack.enter_context(TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        source, kept = folder / "rows.parquet", folder / "done.json"
        if not kept.exists():
            train = generated(10**6, 5_000, columns)
            design = [[f"x{i}" for i in range(3)], [f"x{i}" for i in range(3, 7)], [f"x{i}" for i in range(7, columns)]]
            clf = MultiStageClassifier(design, dict.fromkeys(train.columns[:-1], 1.0), threshold=0.85)
            clf.fit(train.drop(columns="label"), train["label"]).save(folder / "model.emsco")
            parquet.write_table(Table.from_pandas(generated(0, rows, columns).drop(columns="label")), source)
        model = emsco.load(folder / "model.emsco").deployed_
        said = subprocess.run([sys.executable, "-c", ALONE, str(folder)], capture_output=True, text=True, check=True)
        alone = rows / float(said.stdout)
        done = json.loads(kept.read_text()) if kept.exists() else {"files": 0, "rows": 0, "seconds": 0.0}
        with cluster(2) as client:
            dict(Crew(client).run([]))
            step = max(arguments.disk_bytes // (folder / "one.parquet").stat().st_size, 2)
            while done["files"] < arguments.files:
                links = [folder / f"rows-{i:06}.parquet" for i in range(done["files"], arguments.files)[:step]]
                for link in links:  # the disk holds one file; each name is another part of the table
                    link.unlink(missing_ok=True)
                    os.link(source, link)
                target, began = folder / f"out-{done['files']}", time.perf_counter()
                totals, _ = predict_files(model, "bench", links, target, crew=Crew(client))
                done = {"files": done["files"] + len(links), "rows": done["rows"] + totals.n_rows,
                        "seconds": done["seconds"] + time.perf_counter() - began}  # fmt: skip
                kept.write_text(json.dumps(done))
                for path in [*target.iterdir(), *links]:  # bounded disk
                    path.unlink()
                target.rmdir()
                print(f"{done['rows']:,} rows in {done['seconds']:.0f} s", flush=True)
    each = done["rows"] / done["seconds"] / 2
    print(f"{each:,.0f} rows per second and core; emsco predict {alone:,.0f} ({each / alone:.2f} times)")
    return 0


ALONE = """
import os, sys, time
os.sched_setaffinity(0, {0})  # reading and writing have threads of their own
from pathlib import Path
import emsco
from emsco.data.files import TableFile
from emsco.deployed.streaming import predict_file
folder = Path(sys.argv[1])
model = emsco.load(folder / "model.emsco").deployed_
for _ in range(4):  # the first one compiles
    began = time.perf_counter()
    predict_file(model, TableFile(folder / "rows.parquet"), folder / "one.parquet", n_jobs=1)
    seconds = time.perf_counter() - began
print(seconds)
"""


def replay(arguments):
    """Replay the tasks of a search on more and more workers; print and draw the speed-up."""
    from emsco.cluster import training

    logs = []
    original = training.Workers.__init__

    def kept(self, client):
        original(self, client)
        logs.append(self.crew)

    training.Workers.__init__ = kept
    training._PER_THREAD, training._SHORTEST = 10**6, 0.0  # a task per set and fold: workers share them as they like
    with cluster(2) as client:
        began = time.perf_counter()
        clf, X, y = boosted(arguments.rows, client=client)
        clf.fit(X, y)
        seconds = time.perf_counter() - began
    log = [(start, end, tasks) for start, end, tasks in logs[0].totals.log if tasks]
    here = seconds - sum(end - start for start, end, _ in log)  # the client's own work, between tasks
    whole = here + sum(sum(tasks) for _, _, tasks in log)
    curve = []
    for power in range(11):
        n = 2**power
        taken = here + sum(makespan(tasks, n, arguments.latency) for _, _, tasks in log)
        curve.append((n, whole / taken))
        print(f"{n:>5} workers: {whole / taken:6.2f} times as fast, {taken:.2f} s")
    longest = sum(max(tasks) for _, _, tasks in log)
    print(f"{sum(len(tasks) for _, _, tasks in log):,} tasks in {len(log)} generations; the client's own work "
          f"{here:.2f} s, the longest task of each generation {longest:.2f} s of {whole:.2f} s")  # fmt: skip
    if arguments.picture is not None:
        _draw(curve, whole / here, arguments.picture)
    return 0


def makespan(tasks, n_workers, latency):
    """Seconds that workers take for tasks, each given to whoever is free first; one task is handed out at a time."""
    free = [0.0] * min(n_workers, len(tasks))
    end = 0.0
    for i, seconds in enumerate(tasks):
        start = max(heapq.heappop(free), i * latency)
        heapq.heappush(free, start + seconds)
        end = max(end, start + seconds)
    return end


def _draw(curve, limit, path):
    import matplotlib.pyplot as plt

    n, times = zip(*curve, strict=True)
    _, ax = plt.subplots(figsize=(6, 4))
    ax.plot(n, n, color=FIGURE[1], linewidth=1, linestyle=":", label="as many times as workers")
    ax.axhline(limit, color=FIGURE[1], linewidth=1, linestyle="--", label="the client's own work")
    ax.plot(n, times, color=FIGURE[0], marker="o", label="replayed")
    ax.set(xscale="log", yscale="log", xlabel="workers", ylabel="times as fast", ylim=(0.8, max(n)))
    ax.set_xticks(n, [str(each) for each in n])
    ax.legend(frameon=False)
    plt.savefig(path, bbox_inches="tight")
    plt.close()


def main(given=None):
    """Run one of the commands."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cluster", description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    options = {
        kills: {"runs": 50, "rows": 1_000, "seed": 0},
        speed: {"boosted-rows": 2_000, "default-rows": 100_000, "only": None},
        memory: {"bytes": 8 * 10**9, "columns": 40, "part-rows": 100_000, "limit": "1GB", "sample": 2_000_000},
        decide: {"files": 1_000, "part-rows": 1_000_000, "disk-bytes": 4 * 10**9, "folder": None},
        replay: {"rows": 4_000, "latency": 1e-3, "picture": None},
    }
    for function, values in options.items():
        command = commands.add_parser(function.__name__, help=function.__doc__)
        command.set_defaults(function=function)
        for name, value in values.items():
            command.add_argument(f"--{name}", default=value, type=str if value is None else type(value))
    arguments = parser.parse_args(given)
    return arguments.function(arguments)


if __name__ == "__main__":
    sys.exit(main())
