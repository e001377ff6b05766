"""Files that are written whole or not at all."""

import os
from pathlib import Path
import secrets

from emsco.exceptions import ModelFileError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all: readers see the old one or the new one, whenever the power fails."""
    if not path.parent.is_dir():
        raise ModelFileError(f"there is no folder {str(path.parent)!r} to write {path.name!r} to; create it first.")
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        if hasattr(os, "O_DIRECTORY"):  # the new name itself; Windows has no way to ask
            folder = os.open(path.parent, os.O_DIRECTORY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        raise ModelFileError(f"{str(path)!r} cannot be written: {error}.") from error
