"""Branch: how designs that branch are looked for, as a user asks for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from emsco.exceptions import InvalidParameterError

_AUTO = "auto"
CHOICES = (_AUTO, "shared", "weighted", "own")


@dataclass(frozen=True)
class Branch:
    """How designs that branch are looked for: ``EMSCOClassifier(branch=Branch(...))``.

    Parameters
    ----------
    on : str, sequence of str or None
        What the root buys: a unit, or several. None: each unit is tried.
    by : str or None
        The unit whose value says which branch a row takes, or "leaning": the label that the root's classifier would
        give. None: each way is tried.
    min_rows : int
        Fewest training rows of a branch.
    experts : "auto", "shared", "weighted" or "own"
        Classifiers of a branch: those of chains; trained on all rows, those of the branch counted four times; trained
        on the rows of the branch alone. "auto": whichever labels rows best that did not train it.

    Examples
    --------
    >>> Branch(on="thal", min_rows=50)
    Branch(on='thal', by=None, min_rows=50, experts='auto')
    """

    on: str | Sequence[str] | None = None
    by: str | None = None
    min_rows: int = 40
    experts: str = _AUTO

    @property
    def units(self) -> tuple[str, ...]:
        """Names of the units that the root buys; none if each is tried."""
        if self.on is None:
            return ()
        return (self.on,) if isinstance(self.on, str) else tuple(self.on)


def check_branch(branch: Any) -> Branch | None:
    """Return how designs that branch are looked for, None if they are not."""
    if branch is None or isinstance(branch, Branch):
        found = branch
    elif isinstance(branch, str) and branch == _AUTO:
        found = Branch()
    else:
        raise InvalidParameterError(f"must be None, 'auto' or emsco.Branch(...); got {branch!r}.", parameter="branch")
    if found is not None:
        _check(found)
    return found


def _check(branch: Branch) -> None:
    on, by, min_rows = branch.on, branch.by, branch.min_rows
    names = isinstance(on, list | tuple) and on and all(isinstance(name, str) for name in on)
    if not (on is None or isinstance(on, str) or names):
        raise InvalidParameterError(f"Branch: on must be the name of a unit, or a list of them; got {on!r}.")
    if not (by is None or isinstance(by, str)):
        raise InvalidParameterError(f"Branch: by must be the name of a unit, or 'leaning'; got {by!r}.")
    if isinstance(min_rows, bool) or not isinstance(min_rows, int | np.integer) or min_rows < 2:
        raise InvalidParameterError(f"Branch: min_rows must be a whole number of at least 2; got {min_rows!r}.")
    if branch.experts not in CHOICES:
        raise InvalidParameterError(f"Branch: experts must be one of {', '.join(CHOICES)}; got {branch.experts!r}.")
