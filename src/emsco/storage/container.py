"""The container of a model file: a zip of JSON and arrays, each with its size and checksum.

Nothing here trusts what a file says of itself: every read is bounded, and nothing in it is executed or evaluated.
"""

from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
import json
from math import isfinite, prod
import os
from pathlib import Path
import re
import stat
import struct
from typing import Any, NoReturn
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import ModelFileError, shown

FORMAT, VERSION = "emsco-model", 1
MAX_BYTES = 2**30  # of the file, and of all its members once they are decompressed
MAX_JSON_BYTES = 2**25
MAX_JSON_DEPTH = 64
MAX_JSON_PARTS = 2**21  # values, keys and brackets; each takes some 70 bytes once it is read
MAX_MEMBERS = 2**14
MANIFEST = "manifest.json"
_ALWAYS_READ = 2**25  # bytes, however few the compressed ones are
_LARGEST_RATIO = 400  # of the bytes beyond, to those of the file; deflate alone reaches 1,000

_END = struct.Struct("<4s4H2LH")  # the last record of a zip: signature, disks, members, directory size and offset
_ZIP64_LOCATOR = b"PK\x06\x07"
_LARGEST_ENTRY = 512  # bytes of a member in the directory; ours take less than 100
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00(?P<length>[\x00-\xff]{2})"
    rb"\{'descr': '(?P<dtype>[<|][a-z]\d)', 'fortran_order': False, 'shape': \((?P<shape>[\d, ]{0,64})\), \} *\n",
    re.DOTALL,
)


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of the members and a manifest with their sizes and checksums; equal members give equal bytes."""
    records = {name: {"bytes": len(data), "sha256": sha256(data).hexdigest()} for name, data in members.items()}
    manifest = {"format": FORMAT, "version": VERSION, "members": records}
    buffer = BytesIO()
    with ZipFile(buffer, "w") as archive:
        for name, data in {MANIFEST: to_json(manifest), **members}.items():
            archive.writestr(ZipInfo(name), data, compress_type=ZIP_DEFLATED)  # ZipInfo's date is that of all members
    if len(members) >= MAX_MEMBERS or max(len(buffer.getbuffer()), sum(map(len, members.values()))) > MAX_BYTES:
        total = sum(map(len, members.values()))
        raise ModelFileError(
            f"the model takes {total:,} bytes in {len(members):,} members; a file may have {MAX_BYTES:,} in "
            f"{MAX_MEMBERS:,}. Save fewer points of the front: fit with fewer stages, or with smaller estimators."
        )
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, bytes]:
    """Return the members of a model file, sizes and checksums checked."""
    if not data.startswith(b"PK\x03\x04"):
        raise ModelFileError("it is not a model file, as `emsco fit` or clf.save writes them.")
    left = _limit(data)
    with _open(data) as archive:
        names = [info.filename for info in archive.infolist()]
        if MANIFEST not in names:
            raise ModelFileError(f"it is not a model file: a zip without {MANIFEST}.")
        manifest = from_json(_read(archive, MANIFEST, MAX_JSON_BYTES), MANIFEST)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ModelFileError(f"it is not a model file: {MANIFEST} does not say that the format is {FORMAT!r}.")
        version = manifest.get("version")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise damaged(f"the version is {shown(version)}")
        if version > VERSION:
            raise ModelFileError(
                f"it was written by a newer emsco (file version {version}, this one reads up to {VERSION}); upgrade "
                "with pip install --upgrade emsco."
            )
        records = manifest.get("members")
        if not isinstance(records, dict) or sorted(names) != sorted([MANIFEST, *records]):
            raise damaged(f"its members are not those that {MANIFEST} lists")
        members: dict[str, bytes] = {}
        for name, record in records.items():
            members[name] = _read(archive, name, left)
            left -= len(members[name])
            found = {"bytes": len(members[name]), "sha256": sha256(members[name]).hexdigest()}
            if record != found:
                raise damaged(f"{name} does not have the checksum that {MANIFEST} gives it")
    return members


def unpack_plain(data: bytes) -> dict[str, bytes]:
    """Return the members of a zip inside a model file, every read bounded."""
    members: dict[str, bytes] = {}
    left = _limit(data)
    with _open(data) as archive:
        for name in archive.namelist():
            if name in members:
                raise damaged(f"{name} is in it twice")
            members[name] = _read(archive, name, left)
            left -= len(members[name])
    return members


def _limit(data: bytes) -> int:
    """Return how many bytes the members of a zip may have together."""
    return min(MAX_BYTES, _ALWAYS_READ + _LARGEST_RATIO * len(data))


def _open(data: bytes) -> ZipFile:
    """Open a zip after a look at its last record: the directory of a hostile one would fill the memory."""
    end = data[-_END.size :]
    if len(end) < _END.size or not end.startswith(b"PK\x05\x06"):
        raise damaged("its end is missing")
    _, _, _, _, n_members, directory_bytes, _, comment_bytes = _END.unpack(end)
    if data[-_END.size - 20 :].startswith(_ZIP64_LOCATOR) or comment_bytes:
        raise damaged("its last record is not one that clf.save writes")
    if n_members > MAX_MEMBERS or directory_bytes > MAX_MEMBERS * _LARGEST_ENTRY:
        raise damaged(f"it has more than {MAX_MEMBERS:,} members")
    try:
        return ZipFile(BytesIO(data))
    except Exception as error:  # zipfile raises whatever its parts raise on bytes that are no zip
        raise damaged(f"its directory cannot be read ({error})") from error


def _read(archive: ZipFile, name: str, most: int) -> bytes:
    info = archive.getinfo(name)
    if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
        raise damaged(f"{name} is compressed by method {info.compress_type}")
    try:
        with archive.open(info) as member:
            data = member.read(most + 1)  # the size that the header declares is not believed
    except Exception as error:  # see above
        raise damaged(f"{name} cannot be read ({error})") from error
    if len(data) > most:
        raise ModelFileError(f"{name} makes the file larger than {most:,} bytes, which is the limit.")
    return data


def read_bytes(path: Path) -> bytes:
    """Return the bytes of a file, at most MAX_BYTES."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            found = os.fstat(file.fileno())
            regular = stat.S_ISREG(found.st_mode)
            data = file.read(min(found.st_size, MAX_BYTES) + 1) if regular else b""  # so much memory is taken at once
    except FileNotFoundError as error:
        raise ModelFileError(f"there is no file {str(path)!r}.") from error
    except (OSError, ValueError) as error:  # ValueError: a path that holds a null
        raise ModelFileError(f"{str(path)!r} cannot be read: {error}.") from error
    if not regular:
        raise ModelFileError(f"{str(path)!r} is not a regular file; copy the model to a file first.")
    if len(data) > MAX_BYTES:
        raise ModelFileError(f"{str(path)!r} is larger than {MAX_BYTES:,} bytes, which is the limit.")
    return data


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for anybody to write to it, as a pipe would."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def to_json(value: Any) -> bytes:
    """Return a value as JSON; TypeError, ValueError or RecursionError where JSON has no such thing."""
    return json.dumps(value, allow_nan=False, indent=1).encode()


def from_json(data: bytes, name: str, *, most_depth: int = MAX_JSON_DEPTH) -> Any:
    """Return what JSON bytes say, within bounds of size and depth; NaN and infinity are no JSON."""

    def no_constant(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no number")

    def finite(text: str) -> float:
        number = float(text)
        return number if isfinite(number) else no_constant(text)

    if len(data) > MAX_JSON_BYTES:
        raise ModelFileError(f"{name} has {len(data):,} bytes; the limit is {MAX_JSON_BYTES:,}.")
    if sum(map(data.count, (b"[", b"{", b",", b":"))) > MAX_JSON_PARTS:
        raise ModelFileError(f"{name} holds more than {MAX_JSON_PARTS:,} values, which is the limit.")
    try:
        value = json.loads(data.decode("utf-8"), parse_constant=no_constant, parse_float=finite)
    except (ValueError, RecursionError) as error:
        raise damaged(f"{name} is no JSON ({error})") from error
    if depth(value, most=most_depth) > most_depth:
        raise damaged(f"{name} is nested more than {most_depth} deep")
    return value


def depth(value: Any, seen: int = 0, most: int = MAX_JSON_DEPTH) -> int:
    """Return how deep a JSON value is nested; beyond the limit, only that it is."""
    if seen > most or not isinstance(value, dict | list) or not value:
        return seen
    return max(depth(v, seen + 1, most) for v in (value.values() if isinstance(value, dict) else value))


def array_to_bytes(array: NDArray[Any]) -> bytes:
    """Return an array of numbers in NumPy's format."""
    buffer = BytesIO()
    little = array.dtype.newbyteorder("<")
    np.lib.format.write_array(buffer, np.ascontiguousarray(array, little), version=(1, 0), allow_pickle=False)
    return buffer.getvalue()


def array_from_bytes(data: bytes, name: str, dtype: str, shape: tuple[int | None, ...]) -> NDArray[Any]:
    """Return an array of the dtype and shape wanted (None: any length); the header is matched, not evaluated."""
    header = _NPY.match(data)
    if header is None or int.from_bytes(header["length"], "little") != header.end() - 10:
        raise damaged(f"{name} is not an array that clf.save writes")
    found = tuple(int(length) for length in re.findall(rb"\d+", header["shape"]))
    fits = len(found) == len(shape) and all(want in (None, have) for want, have in zip(shape, found, strict=True))
    if header["dtype"].decode() != dtype or not fits:
        wanted = ", ".join("any" if length is None else str(length) for length in shape)
        raise damaged(f"{name} is {header['dtype'].decode()} of shape {found}; wanted {dtype} of shape ({wanted})")
    content = memoryview(data)[header.end() :]
    if prod(found) * np.dtype(dtype).itemsize != len(content):
        raise damaged(f"{name} has {len(content):,} bytes, which are not {found} numbers")
    return np.frombuffer(content, dtype).reshape(found).astype(np.dtype(dtype).newbyteorder("="))


def damaged(what: str) -> ModelFileError:
    """Return the error of a file that cannot be what ``save`` wrote."""
    return ModelFileError(f"the file is damaged: {what}. Copy it again from where it was saved.")
