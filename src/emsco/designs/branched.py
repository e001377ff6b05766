"""Designs that branch: a few chains that share their first stage, the root, and a route to one of them for each row.

A row buys the root, and the root's classifier labels it if it is confident; otherwise the row goes on in the chain of
its branch. The route reads what the root has bought, or what its classifier leans to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.data.encoding import to_category
from emsco.data.table import is_missing, to_number, to_numbers
from emsco.designs.partition import acquired_sets, compress, set_key, stage_counts
from emsco.exceptions import InvalidDesignError

if TYPE_CHECKING:
    from emsco.scoring.rejection import RejectRule

KINDS = ("category", "cut", "largest", "pattern", "leaning")
EXPERTS = ("shared", "weighted", "own")
_ONE = 0.5  # cells above it count as 1 in a pattern


@dataclass(frozen=True, eq=False)
class Route:
    """Which branch a row takes, by values that the root has bought, or by the class that it leans to.

    Attributes
    ----------
    kind : str
        "category": by the value of a column, text or number. "cut": by intervals of a number. "largest": by which of
        several columns has the largest number, the first of equals. "pattern": by which of several columns are 1, that
        is above one half. "leaning": by the label that the root's classifier would give.
    unit : int
        The unit that is read, or the first of several; -1 for a leaning.
    columns : tuple of int
        Columns of the table that are read, all bought by the root.
    groups : tuple of tuple
        What belongs to each branch. "category": values, text as the encoder has it, or finite numbers. "pattern":
        tuples of 0 and 1. "leaning": positions of classes. Otherwise empty.
    cuts : tuple of float
        Increasing. A number takes the branch ``searchsorted(cuts, number, side="right")``.
    default : int
        The branch of rows whose value is missing or in no group.
    n_branches : int

    Examples
    --------
    >>> route = Route("cut", unit=0, columns=(0,), cuts=(40.0, 60.0), default=1, n_branches=3)
    >>> route.branch([np.array([39.0, 40.0, 75.0, np.nan])]).tolist()
    [0, 1, 2, 1]
    >>> route.words(["age"], ["well", "sick"])
    ('age below 40', 'age from 40 to below 60, or missing', 'age 60 or more')
    """

    kind: str
    unit: int
    columns: tuple[int, ...] = ()
    groups: tuple[tuple[Any, ...], ...] = ()
    cuts: tuple[float, ...] = ()
    default: int = 0
    n_branches: int = field(kw_only=True)

    def branch(self, columns: Sequence[NDArray[Any]], leaning: NDArray[Any] | None = None) -> NDArray[np.intp]:
        """Return the branch of each row.

        Parameters
        ----------
        columns : sequence of ndarray of shape (n_rows,)
            Values of each of ``self.columns`` as the table has them.
        leaning : ndarray of int of shape (n_rows,) or None
            Position of the label that the root's classifier would give, for a route by leaning.
        """
        if self.kind == "leaning":
            assert leaning is not None
            return self._looked_up(np.asarray(leaning))
        if self.kind == "category":
            return self._categories(columns[0])
        if self.kind == "cut":  # numbers as they are: copies of large tables take longer than the walk
            cells = columns[0] if columns[0].dtype == np.float64 else to_numbers(columns[0], "", slice(None))
            found = np.zeros(cells.size, dtype=np.intp)
            for cut in self.cuts:
                found += cells >= cut
            found[np.isnan(cells)] = self.default
            return found
        numbers = np.array([to_numbers(values, "", slice(None)) for values in columns])
        missing = np.isnan(numbers)
        if self.kind == "largest":
            numbers[missing] = -np.inf
            return np.where(missing.all(axis=0), self.default, numbers.argmax(axis=0))
        found = np.full(numbers.shape[1], self.default, dtype=np.intp)
        bits = numbers > _ONE
        for b, patterns in enumerate(self.groups):
            for pattern in patterns:
                found[(bits == np.array(pattern, dtype=np.bool_)[:, None]).all(axis=0) & ~missing.any(axis=0)] = b
        return found

    def branch_of(self, values: Sequence[Any], leaning: int = 0) -> int:
        """Return the branch of one row, as ``branch`` does; ``values`` has one for each of ``self.columns``."""
        if self.kind == "leaning":
            return self._branch_of.get(leaning, self.default)
        if self.kind == "category":
            return self._branch_of.get(self._read(values[0]), self.default)
        numbers = [to_number(value) for value in values]
        known = [number for number in numbers if number is not None and not is_missing(number)]
        if self.kind == "largest":
            return numbers.index(max(known)) if known else self.default
        if len(known) < len(values):
            return self.default
        if self.kind == "cut":
            return int(np.searchsorted(self.cuts, known[0], side="right"))
        return self._branch_of.get(tuple(int(number > _ONE) for number in known), self.default)

    def _categories(self, values: NDArray[Any]) -> NDArray[np.intp]:
        if self.by_number and values.dtype.kind in "fiub":
            return self._looked_up(values)
        found = [self._branch_of.get(self._read(value), self.default) for value in values.tolist()]
        return np.array(found, dtype=np.intp)

    def _looked_up(self, values: NDArray[Any]) -> NDArray[np.intp]:
        found = np.full(values.size, self.default, dtype=np.intp)
        for b, group in enumerate(self.groups):
            for value in group:
                found[values == value] = b
        return found

    def _read(self, value: Any) -> Any:
        return to_number(value) if self.by_number else to_category(value)

    @property
    def by_number(self) -> bool:
        """Whether the groups of a route by category hold numbers, for a column that is encoded as one."""
        return all(isinstance(value, int | float) for group in self.groups for value in group)

    @cached_property
    def _branch_of(self) -> dict[Any, int]:
        return {value: b for b, group in enumerate(self.groups) for value in group}

    def words(self, column_names: Sequence[str], classes: Sequence[Any]) -> tuple[str, ...]:
        """Return a phrase for each branch; ``column_names`` has all columns of the table, ``classes`` all labels.

        Examples
        --------
        >>> groups = (("fixed", "reversible"), ())
        >>> route = Route("category", unit=1, columns=(1,), groups=groups, default=1, n_branches=2)
        >>> route.words(["age", "thal"], ["well", "sick"])
        ('thal is fixed or reversible', 'thal is anything else')
        >>> Route("leaning", unit=-1, groups=((0,), (1,)), n_branches=2).words([], ["well", "sick"])
        ('the root leans to well', 'the root leans to sick')
        """
        names = [column_names[c] for c in self.columns]
        return tuple(self._phrase(b, names, [str(label) for label in classes]) for b in range(self.n_branches))

    def _phrase(self, b: int, names: list[str], classes: list[str]) -> str:
        is_default = b == self.default
        if self.kind == "cut":
            low, high = (None, *self.cuts)[b], (*self.cuts, None)[b]
            said = f"{low:g} or more" if high is None else f"below {high:g}"
            if low is not None and high is not None:
                said = f"from {low:g} to below {high:g}"
            return f"{names[0]} {said}{', or missing' if is_default else ''}"
        if self.kind == "largest":
            return f"{names[b]} is the largest{', or all are missing' if is_default else ''}"
        group = self.groups[b]
        if self.kind == "leaning":
            return f"the root leans to {' or '.join(classes[k] for k in group) or 'another label'}"
        if self.kind == "category":
            shown = [f"{value:g}" if isinstance(value, int | float) else str(value) for value in group]
            return f"{names[0]} is {' or '.join([*shown, 'anything else'] if is_default else shown)}"
        shown = [" and ".join(f"{n} = {bit}" for n, bit in zip(names, bits, strict=True)) for bits in group]
        return ", or ".join([*shown, f"{', '.join(names)} have any other pattern"] if is_default else shown)

    def check(self) -> None:
        """Raise unless the parts of the route agree with each other."""
        n, groups = self.n_branches, self.groups
        if self.kind not in KINDS:
            raise InvalidDesignError(f"a route is one of {', '.join(KINDS)}; got {self.kind!r}.")
        n_columns = {"leaning": 0, "category": 1, "cut": 1}.get(self.kind)
        right_columns = len(self.columns) == n_columns if n_columns is not None else bool(self.columns)
        if (
            not right_columns
            or (self.kind == "leaning") != (self.unit < 0)
            or len(set(self.columns)) < len(self.columns)
        ):
            raise InvalidDesignError(f"a route by {self.kind} cannot read the columns {self.columns}.")
        if n < 2 or not 0 <= self.default < n:
            raise InvalidDesignError(f"a route has two branches or more, one of them the default; got {n} branches.")
        if bool(self.cuts) != (self.kind == "cut") or bool(groups) != (self.kind in ("category", "pattern", "leaning")):
            raise InvalidDesignError(f"a route by {self.kind} has {len(groups)} groups and {len(self.cuts)} cuts.")
        if self.kind == "cut" and not (len(self.cuts) == n - 1 and _is_increasing(self.cuts)):
            raise InvalidDesignError(f"a route of {n} branches needs {n - 1} increasing cuts; got {self.cuts}.")
        if self.kind == "largest" and len(self.columns) != n:
            raise InvalidDesignError(f"a route of {n} branches needs as many columns; got {len(self.columns)}.")
        if groups:
            self._check_groups()

    def _check_groups(self) -> None:
        n, groups = self.n_branches, self.groups
        values = [value for group in groups for value in group]
        if len(groups) != n or any(not group for b, group in enumerate(groups) if b != self.default):
            raise InvalidDesignError(f"a route of {n} branches needs a group for each; only the default may have none.")
        if not values or len(set(values)) < len(values):
            raise InvalidDesignError("the groups of a route hold a value twice, or none at all.")
        if self.kind == "category":
            right = all(isinstance(value, str) for value in values)
            right |= self.by_number and bool(np.isfinite(values).all())
        elif self.kind == "leaning":
            right = all(isinstance(value, int) and value >= 0 for value in values)
        else:
            right = all(
                isinstance(value, tuple) and len(value) == len(self.columns) and set(value) <= {0, 1}
                for value in values
            )
        if not right:
            raise InvalidDesignError(f"the groups of a route by {self.kind} hold {values!r}.")

    @cached_property
    def key(self) -> bytes:
        """Bytes that tell routes apart, the same in every process."""
        parts = (self.kind, self.unit, self.columns, self.groups, self.cuts, self.default, self.n_branches)
        return sha256(ascii(parts).encode()).digest()[:16]


@dataclass(frozen=True, eq=False)
class BranchFigures:
    """What became of the validation samples of each branch.

    Attributes
    ----------
    reached : ndarray of shape (n_branches, n_stages)
        Samples that reach, and pay for, each stage; 0 beyond the last one.
    n_conclusive, n_correct : ndarray of shape (n_branches,)
        Samples that leave with a label, and with a correct one.
    paid : ndarray of shape (n_branches, n_stages)
        Total that a sample has paid by the end of each stage; constant beyond the last one.
    """

    reached: IntArray
    n_conclusive: IntArray
    n_correct: IntArray
    paid: FloatArray

    @property
    def left(self) -> IntArray:
        """Samples that leave at each stage of each branch, with or without a label."""
        return -np.diff(self.reached, axis=1, append=0)

    @property
    def n_samples(self) -> int:
        """Samples in all branches."""
        return int(self.reached[:, 0].sum())


@dataclass(frozen=True, eq=False)
class Branched:
    """A design that branches after its first stage.

    Attributes
    ----------
    rows : ndarray of shape (n_branches, n_units)
        The chain of each branch: an ordinary design. All buy the same units in stage 0, the root.
    route : Route
    rules : tuple of RejectRule
        When the stages of each branch are confident enough. At the root, too, the rule of a row's branch holds.
    experts : tuple of str
        Of each branch, where the classifiers after the root come from. "shared": those of chains, trained on all rows.
        "weighted": trained on all rows, those of the branch counted more. "own": trained on rows of the branch alone.
    figures : BranchFigures or None
        What became of the validation samples, branch by branch; None if unknown.
    """

    rows: IntArray
    route: Route
    rules: "tuple[RejectRule, ...]"
    experts: tuple[str, ...]
    figures: BranchFigures | None = None

    def __post_init__(self) -> None:
        self.rows.setflags(write=False)

    @property
    def n_branches(self) -> int:
        """Number of branches."""
        return len(self.rows)

    @property
    def root(self) -> BoolArray:
        """Units that the root buys, (n_units,)."""
        return np.asarray(self.rows[0] == 0)

    @property
    def n_stages(self) -> int:
        """Stages of the deepest branch, the root included."""
        return int(stage_counts(self.rows).max())

    @cached_property
    def summary(self) -> IntArray:
        """The branches as one row: of each unit the earliest stage in any of them, -1 if none buys it.

        Examples
        --------
        >>> route = Route("leaning", unit=-1, groups=((0,), (1,)), n_branches=2)
        >>> Branched(np.array([[0, 1, -1, -1], [0, 2, 1, -1]]), route, (), ("shared", "shared")).summary
        array([ 0,  1,  1, -1])
        """
        earliest = np.where(self.rows < 0, np.iinfo(np.int64).max, self.rows).min(axis=0)
        row = compress(np.where((self.rows >= 0).any(axis=0), earliest, -1)[None])[0]
        row.setflags(write=False)
        return np.asarray(row)

    @cached_property
    def sets(self) -> tuple[BoolArray, NDArray[np.intp]]:
        """Units known by the end of each stage of one branch after another, and where the stages of each begin."""
        sets = [acquired_sets(row[None])[0][0] for row in self.rows]
        return np.concatenate(sets), np.cumsum([0, *map(len, sets)])[:-1]

    def keys(self, branch: int) -> list[bytes]:
        """Return the key of the model of each stage of a branch."""
        sets = acquired_sets(self.rows[branch][None])[0][0]
        shared = self.experts[branch] == "shared"
        return [set_key(units) if j == 0 or shared else expert_key(self, branch, units) for j, units in enumerate(sets)]

    def check(self, unit_columns: Sequence[Sequence[int]] | None = None) -> None:
        """Raise unless this is a design that branches.

        Parameters
        ----------
        unit_columns : sequence or None
            Columns of the table that each unit yields; None: not checked.
        """
        n, route, rows = self.n_branches, self.route, self.rows
        route.check()
        if not n == route.n_branches == len(self.rules) == len(self.experts):
            raise InvalidDesignError(
                f"a route of {route.n_branches} branches has {n} designs, {len(self.rules)} rules and "
                f"{len(self.experts)} kinds of classifiers; give one of each per branch."
            )
        if any(kind not in EXPERTS for kind in self.experts):
            raise InvalidDesignError(f"classifiers of a branch are {', '.join(EXPERTS)}; got {self.experts}.")
        if not ((compress(rows) == rows).all() and (rows.max(axis=1) >= 0).all()):
            raise InvalidDesignError("a branch leaves a stage empty, or buys nothing.")
        if not ((rows == 0) == self.root).all():
            raise InvalidDesignError("the branches buy different units in their first stage, which they share.")
        if route.kind == "leaning":
            return
        if not (route.unit < rows.shape[1] and self.root[route.unit]):
            raise InvalidDesignError("the route reads a unit that the root does not buy.")
        if unit_columns is None:
            return
        bought = {c for unit in np.flatnonzero(self.root).tolist() for c in unit_columns[unit]}
        if not set(route.columns) <= bought or not set(route.columns) & set(unit_columns[route.unit]):
            raise InvalidDesignError(f"the route reads the columns {route.columns}, which the root does not buy.")


def expert_key(branched: Branched, branch: int, units: BoolArray) -> bytes:
    """Return the key of a classifier of one branch that was trained for it.

    It is longer than every ``set_key``. Points share a classifier if they agree in the root, the route, the branch, the
    kind of training and the set.
    """
    head = f"{branched.experts[branch]} {branch} ".encode()
    return head + branched.route.key + set_key(branched.root) + set_key(units)


def _is_increasing(cuts: tuple[float, ...]) -> bool:
    return bool(np.isfinite(cuts).all() and (np.diff(cuts) > 0).all())
