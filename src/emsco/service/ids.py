"""Ids of decisions. An id says itself what was decided, so that the truth can come later without anything being kept.

An id is no secret and no signature: whoever may send outcomes may say anything of them. Its checksum finds typing
errors.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
import os
import struct
from zlib import crc32

from emsco.service.problems import ProblemError

_FORM = struct.Struct(">8s8sIHBB")  # version, process, number, stage, position of the class, whether it is the label
_PROCESS = os.urandom(8)
_NUMBERS = count(int.from_bytes(os.urandom(3)))
_CHECK = struct.Struct(">I")


@dataclass(frozen=True)
class DecisionId:
    """What an id says.

    Attributes
    ----------
    version : str
        Of the model that decided.
    stage, code : int
        Where the case left, and the position of its most probable class.
    conclusive : bool
        Whether that class is its label.
    """

    version: str
    stage: int
    code: int
    conclusive: bool


def make_ids(version: str, stages: Sequence[int], codes: Sequence[int], conclusive: Sequence[bool]) -> list[str]:
    """Return ids of decisions, each another one.

    Examples
    --------
    >>> (text,) = make_ids("702565d454f248c0", [2], [1], [True])
    >>> read_id(text)
    DecisionId(version='702565d454f248c0', stage=2, code=1, conclusive=True)
    """
    digits, ids = bytes.fromhex(version), []
    for stage, code, sure in zip(stages, codes, conclusive, strict=True):
        body = _FORM.pack(digits, _PROCESS, next(_NUMBERS) & 0xFFFFFFFF, stage, code, sure)
        ids.append(urlsafe_b64encode(body + _CHECK.pack(crc32(body))).rstrip(b"=").decode())
    return ids


def read_id(text: str) -> DecisionId:
    """Return what an id says, or raise that it is none."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        body, (check,) = data[: _FORM.size], _CHECK.unpack(data[_FORM.size :])
        version, _, _, stage, code, sure = _FORM.unpack(body)
    except (binascii.Error, struct.error, ValueError):
        raise _no_id() from None
    if crc32(body) != check or urlsafe_b64encode(data).rstrip(b"=").decode() != text:
        raise _no_id()
    return DecisionId(version.hex(), stage, code, bool(sure))


def _no_id() -> ProblemError:
    return ProblemError(422, "an id is none that this service gave a decision; copy it again.")
