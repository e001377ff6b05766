"""Numbers that only grow, of one worker, in memory that the other workers can read.

A worker has a file of its own and is the only one to write to it, so nothing is locked. The kernel keeps the file if
the worker is killed; the one that replaces it goes on from there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
import json
import mmap
import os
from pathlib import Path
import struct

Key = tuple[str, ...]
_USED = struct.Struct("<Q")  # the file begins with how many bytes of it are in use
_ENTRY = struct.Struct(
    "<I4x"
)  # an entry begins with the length of its key; then the key, filled up to 8; then a double
_SIZE = 2**23
_OVERFLOW: Key = ("overflow",)


class Counters:
    """Counters of this worker.

    Parameters
    ----------
    path : path or None
        The file. None: memory that nobody else reads.

    Examples
    --------
    >>> counters = Counters(None)
    >>> counters.add(("requests", "next"))
    >>> counters.add(("requests", "next"), 2)
    >>> dict(counters)
    {('requests', 'next'): 3.0}
    """

    def __init__(self, path: Path | None) -> None:
        if path is None:
            self._map = mmap.mmap(-1, _SIZE)
        else:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                os.ftruncate(handle, _SIZE)
                self._map = mmap.mmap(handle, _SIZE)
            finally:
                os.close(handle)
        if not _USED.unpack_from(self._map)[0]:
            _USED.pack_into(self._map, 0, _USED.size)
        self._cells = memoryview(self._map).cast("d")
        self._places = {key: place // 8 for key, place in _entries(self._map)}

    def add(self, key: Key, amount: float = 1.0) -> None:
        """Add to a counter."""
        place = self._places.get(key)
        if place is None:
            place = self._new(key)
        self._cells[place] += amount

    def _new(self, key: Key) -> int:
        """Return the place of a counter that is new; beyond the size of the file there is one for all."""
        name = json.dumps(key).encode()
        used: int = _USED.unpack_from(self._map)[0]
        at = used + _ENTRY.size + -(-len(name) // 8) * 8
        if at + 8 > _SIZE - 64 and key != _OVERFLOW:
            return self._places[_OVERFLOW] if _OVERFLOW in self._places else self._new(_OVERFLOW)
        _ENTRY.pack_into(self._map, used, len(name))
        self._map[used + _ENTRY.size : used + _ENTRY.size + len(name)] = name
        _USED.pack_into(self._map, 0, at + 8)  # last: a reader, or whoever replaces a killed worker, sees whole entries
        self._places[key] = at // 8
        return at // 8

    def __iter__(self) -> Iterator[Key]:
        return iter(self._places)

    def keys(self) -> Iterator[Key]:
        """Return the names of the counters."""
        return iter(self._places)

    def __getitem__(self, key: Key) -> float:
        return self._cells[self._places[key]]


def total_of(folder: Path | None, own: Counters) -> Counter[Key]:
    """Return the sums over all workers."""
    total: Counter[Key] = Counter()
    if folder is None:
        return Counter({key: own[key] for key in own})
    for path in sorted(folder.glob("*.counters")):
        with path.open("rb") as file:
            head = file.read(_USED.size)
            data = head + file.read(_USED.unpack(head)[0] - _USED.size)
        for key, place in _entries(data):
            total[key] += struct.unpack_from("<d", data, place)[0]
    return total


def decided_of(totals: Mapping[Key, float], model: str, version: str) -> dict[tuple[int, int | None], int]:
    """Return how many cases a version has decided, by stage and position of the label, None for no label.

    A case whose values were corrected counts once, as it was decided last.
    """
    found: dict[tuple[int, int | None], int] = {}
    for key, n in totals.items():
        if key[0] in ("decided", "withdrawn") and key[1:3] == (model, version):
            place = int(key[3]), int(key[4]) if key[4] else None
            found[place] = found.get(place, 0) + (int(n) if key[0] == "decided" else -int(n))
    return {place: max(n, 0) for place, n in found.items()}


def _entries(data: bytes | mmap.mmap) -> Iterator[tuple[Key, int]]:
    """Yield the names of counters, and where in the data their numbers are."""
    (used,) = _USED.unpack_from(data)
    at = _USED.size
    while at < used:
        (length,) = _ENTRY.unpack_from(data, at)
        begin = at + _ENTRY.size
        name = json.loads(data[begin : begin + length])
        place = begin + -(-length // 8) * 8
        yield tuple(name), place
        at = place + 8
