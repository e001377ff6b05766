"""The models that are served: loaded, checked, and replaced while requests are answered.

A model is swapped by replacing one reference. A request holds the model that it began with, so it ends with that one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
import os
from pathlib import Path
import re
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.data.encoding import ColumnCode, NumberCode
from emsco.data.labels import plain_classes
from emsco.deployed.model import Deployed
from emsco.deployed.session import Acquire
from emsco.exceptions import EmscoError, InvalidParameterError, ModelFileError, printable
from emsco.service.problems import ProblemError
from emsco.service.settings import Source
from emsco.storage.model_file import load_versioned

SUFFIX = ".emsco"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_DIGITS = 16  # of a version: the first ones of the checksum of its file
_Stamp = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class Served:
    """A model that answers requests.

    Attributes
    ----------
    name : str
    version : str
        The first 16 digits of the SHA-256 checksum of its file.
    model : Deployed
    loaded_at : float
        Seconds since 1970.
    """

    name: str
    version: str
    model: Deployed
    loaded_at: float

    @cached_property
    def classes(self) -> list[Any]:
        """Class labels as plain Python."""
        return plain_classes(self.model.classes)

    @cached_property
    def codes(self) -> dict[Any, int]:
        """Positions of the classes."""
        return {label: code for code, label in enumerate(self.classes)}

    def codes_of(self, labels: NDArray[Any]) -> NDArray[np.intp]:
        """Return the positions of the classes of labels."""
        return np.searchsorted(self.model.classes, labels)

    @cached_property
    def paid(self) -> list[float]:
        """What has been paid by the end of each stage."""
        paid: list[float] = self.model.paid.tolist()
        return paid

    @cached_property
    def columns(self) -> dict[str, int]:
        """Columns of the training table, by name."""
        return {name: c for c, name in enumerate(self.model.column_names)}

    @cached_property
    def codes_by_stage(self) -> list[list[ColumnCode]]:
        """How the columns that each stage buys are read."""
        codes = self.model.encoder.codes
        return [[codes[c] for c in stage.new_columns] for stage in self.model.stages]

    @cached_property
    def units(self) -> dict[str, list[str]]:
        """Columns that each purchase yields, by its name."""
        prices, names = self.model.prices, self.model.column_names
        return {
            unit: [names[c] for c in columns]
            for unit, columns in zip(prices.unit_names, prices.unit_columns, strict=True)
        }

    @cached_property
    def promise(self) -> dict[str, Any] | None:
        """What is promised of the labels; None if nothing is."""
        promise = self.model.promise
        if promise is None:
            return None
        guarantee = promise.guarantee
        return {
            "accuracy": guarantee.accuracy,
            "confidence": guarantee.confidence,
            "per_class": bool(guarantee.per_class),
            "made": promise.passed and not promise.n_shared,
            "text": str(promise).splitlines(),
        }

    def require(self, version: str | None) -> None:
        """Raise unless this is the version that a client wants."""
        if version not in (None, self.version):
            raise ProblemError(
                409,
                f"the version of {self.name!r} in use is {self.version!r}. Begin the case again, or leave the version "
                "out.",
            )


class Shelf:
    """Models by name.

    Parameters
    ----------
    sources : sequence of Source
    say : callable
        Takes what happened, and facts about it.

    Attributes
    ----------
    troubles : dict of str to str
        Of models whose file cannot be used now, why.
    """

    def __init__(self, sources: tuple[Source, ...], say: Callable[..., None]) -> None:
        self._sources = sources
        self._say = say
        self._served: Mapping[str, Served] = {}
        self._stamps: dict[str, _Stamp | None] = {}
        self.troubles: dict[str, str] = {}

    @property
    def served(self) -> Mapping[str, Served]:
        """The models in use, by name."""
        return self._served

    def get(self, name: str) -> Served:
        """Return a model, or raise that there is none of this name."""
        served = self._served.get(name)
        if served is None:
            raise ProblemError(
                404, f"there is no model of this name; the models are {', '.join(self._served) or 'none'}."
            )
        return served

    def fill(self) -> None:
        """Load everything for the first time; a file that was named must be usable, one in a folder need not be."""
        self.look()
        for source in self._sources:
            name = source.name or source.path.stem
            if not source.path.is_dir() and name in self.troubles:
                raise ModelFileError(self.troubles[name])

    def look(self) -> list[str]:
        """Load files that are new or have changed; return the names of the models that changed."""
        changed = []
        found = self._files()
        for name, path in found.items():
            stamp = _stamp(path)
            if name in self._stamps and self._stamps[name] == stamp:
                continue
            self._stamps[name] = stamp
            if self._load(name, path):
                changed.append(name)
            if _stamp(path) != stamp:
                self._stamps[name] = None  # replaced while it was read: look again
        for name in [name for name in self._stamps if name not in found]:
            del self._stamps[name]
            self.troubles.pop(name, None)
            if name in self._served:
                self._served = {other: served for other, served in self._served.items() if other != name}
                self._say("model withdrawn", model=name)
                changed.append(name)
        return changed

    def _files(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        for source in self._sources:
            inside = source.path.is_dir()
            paths = sorted(source.path.glob(f"*{SUFFIX}")) if inside else [source.path]
            for path in paths:
                name = source.name if source.name is not None and not inside else path.stem
                if not _NAME.fullmatch(name):
                    if inside:
                        self._tell_once(name, f"{str(path)!r} is not served: {_BAD_NAME}")
                        continue
                    raise InvalidParameterError(f"{name!r} is no name of a model: {_BAD_NAME}")
                if name in found and found[name] != path:
                    raise InvalidParameterError(
                        f"{str(found[name])!r} and {str(path)!r} would both be called {name!r}; give one as NAME=FILE."
                    )
                found[name] = path
        return found

    def _tell_once(self, name: str, what: str) -> None:
        if self.troubles.get(name) != what:
            self.troubles[name] = what
            self._say("model refused", model=printable(name), reason=printable(what))

    def _load(self, name: str, path: Path) -> bool:
        try:
            model, digest = load_versioned(path)
            model.require_chain("service")
            served = Served(name, digest[:_DIGITS], model, time.time())
            _warm_up(served)
        except EmscoError as error:
            self.troubles[name] = str(error)
            self._say("model refused", model=name, reason=printable(str(error)), still_serving=name in self._served)
            return False
        self.troubles.pop(name, None)
        before = self._served.get(name)
        self._served = {**self._served, name: served}
        self._say("model loaded", model=name, version=served.version)
        return before is None or before.version != served.version


_BAD_NAME = "letters, digits, '.', '_' and '-' make a name, at most 100 of them, beginning with a letter or digit."


def _stamp(path: Path) -> _Stamp | None:
    """Return what changes when a file is replaced; None if it is not there."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _warm_up(served: Served) -> None:
    """Decide a case of which nothing is known, in both ways: what is broken shows now, and compiled code is loaded."""
    model = served.model
    numbers = all(isinstance(code, NumberCode) for code in model.encoder.codes)
    row = np.full((1, model.n_columns), np.nan) if numbers else np.full((1, model.n_columns), None, dtype=object)
    model.decide(row)
    session = model.session()
    if isinstance(session.step(), Acquire):  # else nothing is bought, and the session is decided
        session.give(dict.fromkeys(served.columns))
