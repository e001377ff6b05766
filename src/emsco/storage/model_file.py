"""Model files: trained classifiers as versioned JSON and arrays, no pickle; ``docs/model-file.md`` has the format."""

from dataclasses import replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

from emsco.data.output import write_atomically
from emsco.deployed.evaluation import Evaluation
from emsco.deployed.model import Deployed
from emsco.exceptions import InvalidParameterError, ModelFileError
from emsco.storage.codec import from_members, to_members
from emsco.storage.container import pack, read_bytes, unpack


def save(
    deployed: Deployed, path: str | PathLike[str], *, evaluation: Evaluation | None = None, notes: Any = None
) -> None:
    """Write a model to a file; see ``EMSCOClassifier.save``."""
    target = _path(path)
    deployed = replace(deployed, evaluation=deployed.evaluation if evaluation is None else evaluation)
    deployed = replace(deployed, notes=deployed.notes if notes is None else notes)
    data = pack(to_members(deployed))
    from_members(unpack(data))  # what could not be loaded is not written
    write_atomically(target, data, ModelFileError)


def load_deployed(path: str | PathLike[str]) -> Deployed:
    """Read what ``save`` wrote. Nothing in the file is executed.

    Raises
    ------
    ModelFileError
        There is no such file, or it is damaged, of another kind, or written by a newer version.
    """
    return load_versioned(path)[0]


def load_versioned(path: str | PathLike[str]) -> tuple[Deployed, str]:
    """Read what ``save`` wrote, and return it with the SHA-256 checksum of the bytes that were read."""
    source = _path(path)
    data = read_bytes(source)
    try:
        return from_members(unpack(data)), sha256(data).hexdigest()
    except ModelFileError as error:
        raise ModelFileError(f"{str(source)!r} cannot be loaded: {error}") from error


def _path(path: Any) -> Path:
    if not isinstance(path, str | PathLike):
        raise InvalidParameterError(f"path must be text or a path; got {path!r}.")
    return Path(path)
