"""Every error and warning EMSCO raises on purpose.

An error knows the parameter that it is about: ``error.parameter``. Each error is also the built-in that a caller would
expect, so ``except ValueError`` keeps working::

    EmscoError
    ├── InvalidInputError (ValueError)       a table that cannot be used: empty, infinite, not two-dimensional
    │   └── MissingColumnError               a column that a waiting row needs is not in the table
    ├── InvalidTargetError (ValueError)      labels that cannot be learned: missing, one class, wrong length
    ├── InvalidPricesError (ValueError)      prices that do not fit the table: missing, negative, too many
    ├── InvalidDesignError (ValueError)      a row that is no ordered partition of the features
    ├── InvalidParameterError (ValueError)   a setting outside its range
    ├── SessionError (RuntimeError)          a session that cannot go on: decided already, or of another classifier
    ├── RunInterruptedError (RuntimeError)   a run over many inputs that failed on one; holds what was decided
    ├── NoSuchPointError (LookupError)       no point of the front is within the limits asked for
    ├── SpaceTooLargeError (ValueError)      an exact search that would take too long, or too much memory
    ├── InvalidEstimatorError (TypeError)    a stage classifier that cannot give probabilities
    ├── FileError (ValueError)               a file that is not there, damaged, or of another kind
    ├── CheckpointError (ValueError)         a checkpoint of another run, damaged, or in use
    ├── ModelFileError (ValueError)          a model file that cannot be read or written: damaged, newer, another kind
    ├── ExportError (ValueError)             a classifier that cannot be written as ONNX graphs
    ├── ClusterError (RuntimeError)          a cluster that is not there, is lost, or dies of its work
    └── MissingDependencyError (ImportError) an optional package that is not installed

    EmscoWarning (UserWarning)
    ├── GuaranteeWarning                     a promise that the calibration rows cannot support: no label is given
    ├── PriceRoundingWarning                 prices that are rounded, by us or in the list
    ├── BaseRateWarning                      a threshold below the share of a class
    ├── NoPointWarning                       no point is as good as buying everything
    ├── WeakEvidenceWarning                  too few rows to tell it from always answering one class
    ├── RareClassWarning                     a class of a single row, which trains and is not validated
    ├── SearchInterruptedWarning             Ctrl-C: the front is the best found so far
    ├── TimeLimitWarning                     the front is the best that there was time for
    └── SuspiciousColumnWarning              a column that is probably not a feature: an id, a constant, the target
"""

from collections.abc import Mapping
import re
import sys
from types import FrameType, MappingProxyType
from typing import Any
import warnings


class EmscoError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    message : str
        What is wrong, and what to do. With a parameter it is the rest of a sentence that begins with its name.
    parameter : str or None
        The parameter that the error is about.

    Attributes
    ----------
    parameter : str or None

    Examples
    --------
    >>> error = InvalidParameterError("must be at least 1; got 0.", parameter="max_stages")
    >>> print(error)
    max_stages must be at least 1; got 0.
    >>> error.with_names({"max_stages": "--max-stages"})
    '--max-stages must be at least 1; got 0.'
    """

    def __init__(self, message: str = "", *, parameter: str | None = None) -> None:
        super().__init__(message if parameter is None else f"{parameter} {message}")
        self.parameter = parameter
        self._rest = message

    def with_names(self, names: Mapping[str, str]) -> str:
        """Return the message with other names of the parameters, such as the options of a command."""
        if self.parameter is None:
            return str(self)
        return f"{names.get(self.parameter, self.parameter)} {self._rest}"


class InvalidInputError(EmscoError, ValueError):
    """The table cannot be used."""


class MissingColumnError(InvalidInputError):
    """A column that is needed now is not in the table."""


class InvalidTargetError(EmscoError, ValueError):
    """The labels cannot be learned."""


class InvalidPricesError(EmscoError, ValueError):
    """The prices do not fit the table."""


class InvalidDesignError(EmscoError, ValueError):
    """The design is no ordered partition of the features."""


class InvalidParameterError(EmscoError, ValueError):
    """A setting is outside its range."""


class SessionError(EmscoError, RuntimeError):
    """The session cannot go on."""


class RunInterruptedError(EmscoError, RuntimeError):
    """A run over many inputs failed on one of them; the reason is its ``__cause__``.

    Attributes
    ----------
    decided : dict of int to Accept or Reject
        What was decided before, by the position of the input.
    """

    def __init__(self, message: str, decided: Mapping[int, Any] = MappingProxyType({})) -> None:
        super().__init__(message)
        self.decided = dict(decided)


class NoSuchPointError(EmscoError, LookupError):
    """No point of the front is within the limits.

    Attributes
    ----------
    limits : dict of str to float
        What was asked for; a limit on one class as ``min_recall[sick]``.
    nearest : dict of str to float
        For each limit the value at which it would be met, if all the others stay as they are. A limit that cannot be
        met alone is not in it.
    """

    def __init__(self, limits: Mapping[str, float], nearest: Mapping[str, float]) -> None:
        self.limits = dict(limits)
        self.nearest = dict(nearest)
        super().__init__(self.with_names({name: f"{name} =" for name in limits}))
        self.args = (self.limits, self.nearest)  # a copy of the error is made of these

    def __str__(self) -> str:
        return self.with_names({name: f"{name} =" for name in self.limits})

    def with_names(self, names: Mapping[str, str]) -> str:
        """Return the message with other names of the parameters, such as the options of a command."""
        asked = ", ".join(_setting(name, f"{value:g}", names) for name, value in self.limits.items())
        if not self.nearest:
            return f"no point of the front has {asked}, and relaxing one of these is not enough; relax two of them."
        offers = " or ".join(_setting(name, f"{value:.4g}", names) for name, value in self.nearest.items())
        return f"no point of the front has {asked}; set {offers} instead."


def _setting(name: str, value: str, names: Mapping[str, str]) -> str:
    """Return a limit and its value; an option takes that of a class as CLASS=VALUE."""
    option, _, label = name.partition("[")
    if name not in names and label and option in names:
        return f"{names[option]} {label.removesuffix(']')}={value}"
    return f"{names.get(name, name)} {value}"


class SpaceTooLargeError(EmscoError, ValueError):
    """There are too many designs to look at all of them."""


class InvalidEstimatorError(EmscoError, TypeError):
    """The stage classifier cannot be used."""


class FileError(EmscoError, ValueError):
    """A file cannot be read."""


class CheckpointError(EmscoError, ValueError):
    """The checkpoint cannot be used for this run."""


class ModelFileError(EmscoError, ValueError):
    """A model file cannot be read or written."""


class ExportError(EmscoError, ValueError):
    """A classifier cannot be written as ONNX graphs."""


class ClusterError(EmscoError, RuntimeError):
    """A cluster is not there, was lost, or its workers die of their work."""


class MissingDependencyError(EmscoError, ImportError):
    """An optional package is not installed."""


class EmscoWarning(UserWarning):
    """Base of all warnings of this package."""


class BaseRateWarning(EmscoWarning):
    """A threshold is at or below the share of a class: always answering that class passes for confident."""


class NoPointWarning(EmscoWarning):
    """No point of the front is as good as buying everything, for every class."""


class WeakEvidenceWarning(EmscoWarning):
    """The rows do not show that the point in use is better than always answering the same class."""


class GuaranteeWarning(EmscoWarning):
    """The calibration rows cannot support the promise, so labels it is about are never given."""


class PriceRoundingWarning(EmscoWarning):
    """Prices are rounded: too far apart to be added exactly, or shares of a group that differ a little."""


class RareClassWarning(EmscoWarning):
    """A class has a single row, so no row of it is left to validate."""


class SearchInterruptedWarning(EmscoWarning):
    """The search was stopped by the user; its front is the best found so far."""


class TimeLimitWarning(EmscoWarning):
    """A time limit has cut the fit short; its front is the best that there was time for."""


class SuspiciousColumnWarning(EmscoWarning):
    """A column is probably not what it seems: numbers read as categories, an id, a constant, or the target itself."""


_CONTROLS = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")


def shown(value: Any) -> str:
    """Return a value for an error message, cut short."""
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    """Return text that cannot control a terminal: text from a file may hold anything.

    Control characters, and those that change the direction of writing, become U+FFFD; line breaks and tabs stay.
    """
    return _CONTROLS.sub("\ufffd", text)


def warn(message: str, kind: type[Warning]) -> None:
    """Warn the caller of this package, however deep inside it the reason is found."""
    level = 1
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "emsco":
        level, frame = level + 1, frame.f_back
    warnings.warn(message, kind, stacklevel=level)
