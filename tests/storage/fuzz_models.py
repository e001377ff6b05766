"""Model files with something wrong in them: each is refused with an EmscoError, or gives a classifier that decides.

``python -m tests.storage.fuzz_models 10000`` tries so many and prints what became of them. Processes of their own try
them: one that crashes, takes 1 GB more than before or 5 s of a processor is a failure, and its number is printed.
"""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
import itertools
import json
import os
from pathlib import Path
import resource
import signal
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import perf_counter
import warnings
from zipfile import ZipFile

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

import emsco
from emsco import EMSCOClassifier, EmscoError, Evolution, Guarantee, Loss, MultiStageClassifier, Prices
from emsco.exceptions import ModelFileError
from emsco.report.records import facts_record
from emsco.storage.container import pack, unpack, unpack_plain
from tests.classifiers import fixed
from tests.storage.zoo import machine, zoo

MOST_BYTES = 2**30
MOST_SECONDS = 5.0

HOSTILE = (
    None, True, False, 0, -1, 1, 2, 3, 255, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e-320, 1e308, -1e308, "", "x",
    "age", "<U999999", "\ud800", "\0", "nan", [], {}, [[]], [1, 2], [None], {"kind": "prices"}, {"a": {"b": []}},
)  # fmt: skip
CELLS = (np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 2.0, 7.0, 1e308, -1e308, 2.0**62)


def patients(n=60, seed=0):
    """Numbers, text and missing values; what is known of each says little."""
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=n)
    X = pd.DataFrame({"age": risk + rng.normal(size=n), "ward": rng.choice(["a", "b", "c"], n), "salt": risk.round(1)})
    X.loc[::5, "salt"] = np.nan
    X.loc[::7, "ward"] = None
    return X, np.where(risk > rng.normal(scale=0.5, size=n), "ill", "well")


PRICES = Prices(
    price={"age": 1, "ward": 2.5, "salt": 3}, groups={"blood": ["ward", "salt"]}, discount={"ward": 1.5, "salt": 2}
)


def seeds(folder, names=None):
    """Write model files of every kind, or with the estimators of a few names only."""
    X, y = patients()
    zeros = X.assign(age=X["age"].where(X.index % 3 > 0, 0.0))
    search = Evolution(population_size=8, max_generations=1)
    clf = fixed(PRICES, max_stages=2, random_state=0).fit(X, y)
    clf.save(folder / "exact", evaluation=clf.evaluate(X, y), notes={"by": "me", "n": [1, {"x": 2}]})
    three = np.digitize(X["age"], [-0.5, 0.5])
    MultiStageClassifier([0, 1, 0], PRICES).fit(X, three).save(folder / "design")
    Z = X[["age", "salt"]].to_numpy()
    fixed([1, 2], search=search, random_state=0).fit(Z, y == "ill").save(folder / "numbers")
    chosen = {"objectives": ("fnr", Loss([[0, 1], [5, 0]], 0.5), "cost"), "choose": {"best": "loss"}}
    fixed(PRICES, search=search, random_state=0, **chosen).fit(X, y).save(folder / "chosen")
    everything = {
        "threshold": Guarantee(0.6, 0.8), "encoding": "spline", "C": 3.0, "removal": True, "validation": 3,
        "objectives": ("fnr", "coverage", "cost"),
    }  # fmt: skip
    fixed(PRICES, search=search, random_state=0, **everything).fit(zeros, y).save(folder / "curves")
    final = {"final_estimator": DecisionTreeClassifier(max_depth=2), "calibration": "isotonic", "encoding": "rank"}
    fixed(PRICES, search=search, random_state=0, **final).fit(zeros, y).save(folder / "final")
    for i, (name, estimator) in enumerate({**zoo(), "machine": machine()}.items()):
        if (names is None or name in names) and name != "support vectors":
            labels = y if i % 2 else three
            MultiStageClassifier([0, 1, 0], estimator=estimator, random_state=0).fit(X, labels).save(folder / name)


def mutate(data, rng):
    """Return the name of a change, and the bytes of a file so changed."""
    kinds = (flip, cut, splice, exchange, drop, leaf, leaf, leaf, leaf, cell, cell, cell, header, member_flip)
    kind = kinds[rng.integers(len(kinds))]
    return kind.__name__, kind(data, rng)


def flip(data, rng):
    changed = bytearray(data)
    for i in rng.integers(len(data), size=rng.integers(1, 4)):
        changed[i] ^= 1 << rng.integers(8)
    return bytes(changed)


def cut(data, rng):
    return data[: rng.integers(len(data))]


def splice(data, rng):
    a, b = sorted(rng.integers(len(data), size=2))
    return data[:a] + rng.bytes(int(rng.integers(40))) + data[b:]


def exchange(data, rng):
    members = unpack(data)
    a, b = rng.choice(list(members), 2)
    return pack({**members, a: members[b], b: members[a]})


def drop(data, rng):
    members = unpack(data)
    name = str(rng.choice(list(members)))
    content = members.pop(name)
    return pack({**members, f"{name}x": content} if rng.random() < 0.5 else members)


def leaf(data, rng):
    """Change a value somewhere inside model.json, or inside the schema of an estimator."""
    members = unpack(data)
    inner = [name for name in members if name.endswith(".skops")]
    if inner and rng.random() < 0.7:
        name = inner[rng.integers(len(inner))]
        parts = unpack_plain(members[name])
        parts["schema.json"] = edited(parts["schema.json"], rng)
        return pack({**members, name: zipped(parts)})
    return pack({**members, "model.json": edited(members["model.json"], rng)})


def edited(text, rng):
    record = json.loads(text)
    places = list(places_of(record))
    holder, key = places[rng.integers(len(places))]
    value = holder[key]
    action = rng.integers(4)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(value, int | float):
        holder[key] = value + [1, -1, 0.5, 1e6][rng.integers(4)]
    elif action == 2 and isinstance(holder, list):
        holder.append(value)
    elif action == 2:
        other, where = places[rng.integers(len(places))]
        holder[key] = json.loads(json.dumps(other[where]))
    else:
        holder[key] = HOSTILE[rng.integers(len(HOSTILE))]
    return json.dumps(record).encode()


def places_of(value):
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places_of(value[key])


def cell(data, rng):
    """Change a number of an array, also one inside an estimator."""

    def change(content):
        array = np.load(BytesIO(content)).copy()
        if not array.size:
            return content
        flat = array.reshape(-1)
        i, value = rng.integers(array.size), CELLS[rng.integers(len(CELLS))]
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if array.dtype.names:
                field = array.dtype.names[rng.integers(len(array.dtype.names))]
                flat[field][i] = np.array(value).astype(array.dtype[field])
            else:
                flat[i] = np.array(value).astype(array.dtype)
        return saved(array)

    return on_array(data, rng, change)


def header(data, rng):
    """Change what an array says of itself, or put another kind of array in its place."""

    def change(content):
        array = np.atleast_1d(np.load(BytesIO(content)))
        choice = rng.integers(7)
        if choice == 0:
            return saved(np.zeros(array.shape, rng.choice(["f4", "f8", "i4", "i8", "U9", ">f8"])))
        if choice == 1:
            return saved(array[None])
        if choice == 2:
            return saved(np.concatenate([array, array]))
        if choice == 3:
            return saved(array[:0])
        if choice == 4:
            return content.replace(b"(", b"(9999999999, ", 1)
        if choice == 5:
            return content.replace(b"False", b"True ", 1)
        return saved(np.array([print], dtype=object), allow_pickle=True)

    return on_array(data, rng, change)


def on_array(data, rng, change):
    members = unpack(data)
    names = [name for name in members if name.endswith((".npy", ".skops"))]
    name = names[rng.integers(len(names))]
    if name.endswith(".npy"):
        return pack({**members, name: change(members[name])})
    parts = unpack_plain(members[name])
    arrays = [part for part in parts if part.endswith(".npy")]
    if not arrays:
        return pack({**members, name: b""})
    part = arrays[rng.integers(len(arrays))]
    return pack({**members, name: zipped({**parts, part: change(parts[part])})})


def member_flip(data, rng):
    members = unpack(data)
    name = str(rng.choice(list(members)))
    return pack({**members, name: flip(members[name], rng)})


def saved(array, allow_pickle=False):
    buffer = BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=allow_pickle)
    return buffer.getvalue()


def zipped(parts):
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def reasons(error):
    while error is not None:
        yield error
        error = error.__cause__


def outcome(path, X):
    """Return what becomes of a file; anything but an EmscoError or a decision is raised."""
    try:
        clf = emsco.load(path)
    except ModelFileError as error:
        if isinstance(error.__cause__, MemoryError) or isinstance(
            getattr(error.__cause__, "__cause__", 0), MemoryError
        ):
            raise MemoryError from error
        return "refused"
    try:
        for point in range(len(clf.front_) if isinstance(clf, EMSCOClassifier) else 1):
            decisions = (clf.use(point) if isinstance(clf, EMSCOClassifier) else clf).decide(X)
            if len(decisions) != len(X):
                raise AssertionError("not every row was decided")
        repr((clf, clf.stages_, clf.evaluation_, clf.notes_, facts_record(clf.deployed_)))
    except EmscoError:
        return "refused when used"
    return "works"


def work(folder, seed, first, last):
    """Try mutations, and print what becomes of each; a process of its own, within limits, does this."""
    warnings.simplefilter("ignore")  # absurd numbers overflow
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    X = patients()[0].head()
    tables = {name: X[["age", "salt"]].to_numpy() if name == "numbers" else X for name in files}
    for name in files:
        outcome(folder / name, tables[name])  # imports and compilation take time and memory, once
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 2**22
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MOST_BYTES, resource.RLIM_INFINITY))
    order = [name for name in ("exact", "curves", "design", "numbers") if name in files] * 2 + list(files)
    with TemporaryDirectory() as own:
        path = Path(own) / "mutated"
        for i in range(first, last):
            name = order[i % len(order)]
            kind, changed = mutate(files[name], np.random.default_rng([seed, i]))
            path.write_bytes(changed)
            print(i, name, kind, sep="\t", end="\t", flush=True)
            signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)  # the system ends the process, whatever it does
            try:
                end = "unchanged" if changed == files[name] else outcome(path, tables[name])
            except Exception as error:
                end = f"FAILED: {type(error).__name__}: {error}".replace("\n", " ").replace("\t", " ")
            signal.setitimer(signal.ITIMER_PROF, 0)
            print(end, flush=True)


def run(n, seed=0, n_workers=1, names=None):
    """Try n mutations; return how many of each kind ended how, and those that failed."""
    counts, failures = Counter(), []
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seeds(Path(folder), names)
        bounds = np.linspace(0, n, n_workers + 1).astype(int).tolist()
        with ThreadPoolExecutor(n_workers) as pool:
            parts = [pool.submit(watch, folder, seed, first, last) for first, last in itertools.pairwise(bounds)]
            for line in itertools.chain.from_iterable(part.result() for part in parts):
                i, name, kind, end = line.split("\t")
                counts[kind, end.partition(":")[0]] += 1
                if end.startswith("FAILED"):
                    failures.append(f"mutation {i} of seed {seed} ({kind} of {name}): {end}")
    return counts, failures


def watch(folder, seed, first, last):
    """Return a line for each mutation; where a process ends before its time, the next one goes on."""
    lines = []
    while first < last:
        command = [sys.executable, "-m", "tests.storage.fuzz_models", "--work", folder, *map(str, (seed, first, last))]
        root = Path(__file__).parents[2]
        path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
        env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path}
        done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True, check=False)
        *whole, cut_off = done.stdout.split("\n")
        lines += whole
        if done.returncode == 0:
            break
        assert cut_off, done.stderr
        why = "took too long" if done.returncode == -signal.SIGPROF else f"ended with {done.returncode}"
        lines.append(f"{cut_off}FAILED: {why}: {done.stderr[-200:]!r}")
        first = int(cut_off.split("\t")[0]) + 1
    return lines


def main():
    if sys.argv[1:2] == ["--work"]:
        folder, *numbers = sys.argv[2:]
        work(Path(folder), *map(int, numbers))
        return
    started = perf_counter()
    counts, failures = run(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, n_workers=2)
    for (kind, end), count in sorted(counts.items()):
        print(f"{kind:<12} {end:<18} {count:6d}")
    for end in sorted({end for _, end in counts}):
        print(f"{'all':<12} {end:<18} {sum(c for (_, e), c in counts.items() if e == end):6d}")
    print(*failures, f"{perf_counter() - started:.0f} s", sep="\n")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
