"""Many rows in many files, decided part by part into a folder; a run that was ended goes on where it was."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from glob import glob
from hashlib import sha256
import json
from pathlib import Path
import shutil
from typing import Any

from emsco.cluster.crew import Call, Crew
from emsco.data.files import TableFile
from emsco.data.output import write_atomically
from emsco.deployed.model import Deployed
from emsco.deployed.streaming import Totals, predict_file
from emsco.exceptions import FileError

MANIFEST, _PLAN, _DONE = "_manifest.json", "_plan.json", "_done"
PART_ROWS = 1_000_000  # of a Parquet file, about, that are decided by one task
_ENDS = 2**16  # bytes at both ends of a file that tell it from others


@dataclass(frozen=True)
class Part:
    """Rows that are decided together.

    Attributes
    ----------
    name : str
        Of the file that is written.
    source : str
        The file that they are in.
    row_groups : tuple of int or None
        Those of a Parquet file; None: the whole file.
    """

    name: str
    source: str
    row_groups: tuple[int, ...] | None


@dataclass(frozen=True)
class How:
    """How files are read and parts written."""

    keep: tuple[str, ...] = ()
    escape_formulas: bool = False
    encoding: str = "utf-8"


def found_files(data: str) -> list[Path]:
    """Return the files that a pattern such as ``rows/*.parquet``, a folder or a name stands for, in order."""
    path = Path(data)
    if path.is_dir():
        inside = (each for each in path.iterdir() if each.is_file() and not each.name.startswith((".", "_")))
        files = sorted(inside)
    else:
        files = [path] if path.exists() else sorted(Path(each) for each in glob(data, recursive=True))
    if not files:
        raise FileError(f"there is no file {data}.")
    return files


def predict_files(
    model: Deployed,
    model_digest: str,
    files: Sequence[Path],
    target: Path,
    *,
    crew: Crew | None = None,
    how: How | None = None,
    part_rows: int = PART_ROWS,
    on_progress: Callable[[str, float, str], None] | None = None,
) -> tuple[Totals, int]:
    """Decide every row of some files, and write a folder of Parquet files: a row for each, in order.

    A part appears under its name when it is complete. If the run ends early, the same call goes on; parts that are
    there are not done again. At the end ``_manifest.json`` says what each part holds. The bytes of the folder depend on
    the model, the files and the options alone.

    Parameters
    ----------
    model : Deployed
    model_digest : str
        Checksum of its file.
    files : sequence of path
        CSV or Parquet files that all workers can read.
    target : path
        A folder, which all workers can write to.
    crew : Crew or None
        Who decides. None: this process.
    how : How
    part_rows : int
        Rows of a Parquet file that make a part, about.
    on_progress : callable or None
        Called with a phase, the share done and more in words.

    Returns
    -------
    totals : Totals
    n_before : int
        Parts that were there before.
    """
    how, model = how or How(), model.in_use()
    parts = list(_parts(files, how, part_rows))
    plan = {"model": model_digest, "files": [_identity(file) for file in files], "how": asdict(how),
            "parts": [asdict(part) for part in parts]}  # fmt: skip
    _begin(target, plan)
    done = {part.name: totals for part in parts if (totals := _totals_of(target, part)) is not None}
    left = [part for part in parts if part.name not in done]
    n_before = len(done)
    calls = [Call(decide_part, model, (part, str(target), how), f"deciding {part.source}") for part in left]
    for i, totals in _run(calls, crew):
        done[left[i].name] = totals
        if on_progress is not None:
            words = f"{len(done):,} of {len(parts):,} parts, {sum(each.n_rows for each in done.values()):,} rows"
            on_progress("deciding", len(done) / len(parts), words + ("" if crew is None else f", {crew.in_words()}"))
    totals = _sum([done[part.name] for part in parts])
    described = [asdict(part) | asdict(done[part.name]) for part in parts]
    _write(target / MANIFEST, {"format": 1} | plan | {"parts": described, "totals": asdict(totals)})
    (target / _PLAN).unlink(missing_ok=True)
    shutil.rmtree(target / _DONE, ignore_errors=True)
    for half in target.glob(".*.tmp"):  # of runs that were killed
        half.unlink(missing_ok=True)
    return totals, n_before


def decide_part(model: Deployed, part: Part, target: str, how: How) -> Totals:
    """Decide the rows of a part, write its file, and note that it is there."""
    folder = Path(target)
    source = TableFile(part.source, encoding=how.encoding, row_groups=part.row_groups)
    totals = predict_file(
        model, source, folder / part.name, keep=how.keep, n_jobs=1, escape_formulas=how.escape_formulas
    )
    _write(folder / _DONE / f"{part.name}.json", asdict(totals))
    return totals


def _run(calls: Sequence[Call], crew: Crew | None) -> Iterator[tuple[int, Any]]:
    if crew is not None:
        yield from crew.run(calls)
        return
    for i, call in enumerate(calls):
        yield i, call.function(call.thing, *call.arguments)


def _parts(files: Sequence[Path], how: How, part_rows: int) -> Iterator[Part]:
    """Yield the parts of all files: row groups that follow each other, or whole files."""
    number = 0
    for file in files:
        groups = TableFile(file, encoding=how.encoding).row_groups_of(part_rows)
        for group in groups:
            yield Part(f"part-{number:07}.parquet", str(file.absolute()), group)
            number += 1


def _identity(file: Path) -> dict[str, Any]:
    """Return what tells a file from others, and from what it may become."""
    status, digest = file.stat(), sha256()
    with file.open("rb") as stream:
        digest.update(stream.read(_ENDS))
        stream.seek(max(status.st_size - _ENDS, 0))
        digest.update(stream.read(_ENDS))
    return {"path": str(file.absolute()), "bytes": status.st_size, "changed": status.st_mtime_ns,
            "ends": digest.hexdigest()}  # fmt: skip


def digest_of_files(files: Sequence[Path]) -> str:
    """Return what tells files from others, without reading all of them: names, sizes, and both ends of each."""
    known = [(file.name, record["bytes"], record["ends"]) for file in files for record in [_identity(file)]]
    return sha256(repr(known).encode()).hexdigest()


def _begin(target: Path, plan: dict[str, Any]) -> None:
    """Note in a folder what will be done, or see that it is what was begun."""
    known = next((_read(path) for path in (target / _PLAN, target / MANIFEST) if path.exists()), None)
    plan = json.loads(json.dumps(plan))
    if known is None:
        if target.exists() and (not target.is_dir() or any(target.iterdir())):
            raise FileError(f"{target} is not an empty folder; give another one.")
    else:
        parts = [{name: part.get(name) for name in ("name", "source", "row_groups")} for part in known["parts"]]
        differs = [name for name in ("model", "files", "how") if known.get(name) != plan[name]]
        if differs or parts != plan["parts"]:
            raise FileError(
                f"{target} holds the decisions of another run, of {' and '.join(differs) or 'parts'} that differ; give "
                "another folder, or empty it."
            )
    try:
        (target / _DONE).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{target} cannot be written: {error.strerror}.") from error
    if known is not None and "totals" in known:  # complete: nothing is left but to say so
        for part in known["parts"]:
            totals = {name: part[name] for name in ("n_rows", "n_conclusive", "left", "cost")}
            _write(target / _DONE / f"{part['name']}.json", totals)
    _write(target / _PLAN, plan)


def _totals_of(target: Path, part: Part) -> Totals | None:
    """Return the totals of a part that is there."""
    note = target / _DONE / f"{part.name}.json"
    if not note.exists() or not (target / part.name).exists():
        return None
    return Totals(**_read(note))


def _sum(all_totals: Sequence[Totals]) -> Totals:
    n_stages = len(all_totals[0].left)
    return Totals(
        sum(each.n_rows for each in all_totals),
        sum(each.n_conclusive for each in all_totals),
        [sum(each.left[j] for each in all_totals) for j in range(n_stages)],
        sum(each.cost for each in all_totals),
    )


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise FileError(f"{path} cannot be read; is it damaged? Empty the folder and decide again.") from error


def _write(path: Path, record: Any) -> None:
    write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())
