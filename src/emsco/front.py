"""Front: the answer of a search, best first."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from emsco.cascade import Tally
from emsco.exceptions import InvalidParameterError, MissingDependencyError, NoSuchPointError
from emsco.objectives import FloatArray, measure
from emsco.operators.elitism import best_first
from emsco.partition import IntArray, stage_counts
from emsco.ranking import norm

if TYPE_CHECKING:
    from emsco.report.plots import FrontDisplay


@dataclass(frozen=True, eq=False)
class FrontPoint:
    """One point of a front: a design and what it achieves on the validation samples."""

    design: IntArray
    coverage: float
    accuracy: float
    mean_cost: float
    fitness: float
    n_stages: int
    n_ties: int


@dataclass(frozen=True, eq=False)
class Front:
    """Non-dominated designs, one per objective vector, fittest first.

    Attributes
    ----------
    designs : ndarray of shape (n_points, n_features)
        ``designs[i, f]`` is the stage, from 0, in which design i buys feature f, -1 if it never does: the simplest
        design met with its objective vector (fewest stages, then fewest features, then the smaller row).
    coverage, accuracy, mean_cost : ndarray of shape (n_points,)
        On the validation samples. Accuracy is of the labels given, NaN where none is.
    fitness : ndarray of shape (n_points,)
        Norm of (coverage, accuracy, least cost / cost): the paper's fitness of the front as a generation of its own.
    n_ties : ndarray of shape (n_points,)
        Designs that share the objective vector, this one included: all of them after an exact search, else those met.
    ties : tuple of iterable
        Of each point, these designs; after an exact search they are found as they are asked for.
    feature_names : tuple of str
        What the columns of ``designs`` buy.
    n_samples : int
        Validation samples behind the figures.
    reached : ndarray of shape (n_points, n_stages)
        How many of them reach each stage.
    certificate : Certificate or None
        What an exact search looked at, and whether the frontier is proven to be the true one.
    """

    designs: IntArray
    coverage: FloatArray
    accuracy: FloatArray
    mean_cost: FloatArray
    fitness: FloatArray
    n_ties: IntArray
    ties: tuple[Iterable[IntArray], ...]
    feature_names: tuple[str, ...]
    n_samples: int
    reached: IntArray
    certificate: Any = None

    @property
    def n_stages(self) -> IntArray:
        """Stages of each design."""
        return stage_counts(self.designs)

    def __len__(self) -> int:
        return len(self.designs)

    @overload
    def __getitem__(self, index: int) -> FrontPoint: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> "Front": ...
    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> "FrontPoint | Front":
        """Return a point, or of a slice, a mask or a list of indices the front of those points."""
        if isinstance(index, slice | Sequence | np.ndarray):
            return self._select(np.arange(len(self))[index])
        return FrontPoint(
            self.designs[index],
            float(self.coverage[index]),
            float(self.accuracy[index]),
            float(self.mean_cost[index]),
            float(self.fitness[index]),
            int(self.n_stages[index]),
            int(self.n_ties[index]),
        )

    def _select(self, points: NDArray[np.intp]) -> "Front":
        return Front(
            _frozen(self.designs[points]),
            _frozen(self.coverage[points]),
            _frozen(self.accuracy[points]),
            _frozen(self.mean_cost[points]),
            _frozen(self.fitness[points]),
            _frozen(self.n_ties[points]),
            tuple(self.ties[i] for i in points),
            self.feature_names,
            self.n_samples,
            _frozen(self.reached[points]),
            self.certificate,
        )

    def choose(
        self,
        *,
        max_cost: float | None = None,
        min_coverage: float | None = None,
        min_accuracy: float | None = None,
        best: str = "fitness",
    ) -> int:
        """Return the point that is best of those within the limits, ready for ``EMSCOClassifier.use``.

        Parameters
        ----------
        max_cost : float or None
            Most mean cost.
        min_coverage, min_accuracy : float or None
            Least coverage and accuracy, between 0 and 1.
        best : "accuracy", "coverage", "cost" or "fitness"
            What decides between several; on a tie the other figures do, in this order: accuracy, coverage, cost.

        Raises
        ------
        NoSuchPointError
            No point is within the limits; the message says how near the front comes to each.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from emsco import EMSCOClassifier
        >>> clf = EMSCOClassifier(costs=[1, 1, 5, 5], random_state=0).fit(*load_iris(return_X_y=True))
        >>> point = clf.front_[clf.front_.choose(max_cost=6, best="accuracy")]
        >>> point.mean_cost <= 6
        True
        """
        limits = {"max_cost": max_cost, "min_coverage": min_coverage, "min_accuracy": min_accuracy}
        for name, value in limits.items():
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            most = np.inf if name == "max_cost" else 1
            if value is not None and not (number and 0 <= value <= most):
                wanted = "a number of at least 0" if name == "max_cost" else "a share between 0 and 1, such as 0.9"
                raise InvalidParameterError(f"{name} must be {wanted}; got {value!r}.")
        keys = {
            "accuracy": -np.nan_to_num(self.accuracy, nan=-1.0),
            "coverage": -self.coverage,
            "cost": self.mean_cost,
            "fitness": -self.fitness,
        }
        if best not in keys:
            raise InvalidParameterError(f"best must be one of {', '.join(keys)}; got {best!r}.")
        within = {
            "max_cost": self.mean_cost <= (np.inf if max_cost is None else max_cost),
            "min_coverage": self.coverage >= (min_coverage or 0.0),
            "min_accuracy": np.nan_to_num(self.accuracy, nan=-1.0) >= (-1.0 if min_accuracy is None else min_accuracy),
        }
        allowed = np.flatnonzero(np.logical_and.reduce(list(within.values())))
        if not allowed.size:
            raise NoSuchPointError(self._nearest_miss({k: v for k, v in limits.items() if v is not None}, within))
        ties = [keys[name][allowed] for name in ("cost", "coverage", "accuracy", best)]
        return int(allowed[np.lexsort(ties)[0]])

    def _nearest_miss(self, limits: dict[str, Any], within: dict[str, NDArray[np.bool_]]) -> str:
        """Say how far each limit would have to give way for the others to hold."""
        figure = {"max_cost": self.mean_cost, "min_coverage": self.coverage, "min_accuracy": self.accuracy}
        offers = []
        for name in limits:
            others = np.logical_and.reduce([held for other, held in within.items() if other != name])
            possible = figure[name][others & ~np.isnan(figure[name])]
            if possible.size:
                nearest = possible.min() if name == "max_cost" else possible.max()
                offers.append(f"{name} = {nearest:.4g}")
        asked = ", ".join(f"{name} = {value:g}" for name, value in limits.items())
        if not offers:
            return f"no point of the front has {asked}, nor would it if one of these gave way; relax two of them."
        return f"no point of the front has {asked}; the nearest gives way to {' or '.join(offers)}."

    def __iter__(self) -> Iterator[FrontPoint]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        designs = "1 design" if len(self) == 1 else f"{len(self)} designs"
        return (
            f"<Front of {designs}: coverage {_span(self.coverage)}, accuracy {_span(self.accuracy)}, "
            f"mean cost {_span(self.mean_cost)}>"
        )

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, *, most: int = 12, width: int | None = None) -> str:
        """Return the best points as a table, a line each.

        Parameters
        ----------
        most : int
            How many points to show.
        width : int or None
            How many characters a line may have; what is bought is cut to fit. None: the width of the terminal, 110
            where there is none.
        """
        if width is None:
            width = get_terminal_size((110, 24)).columns
        lines = ["point  fitness  stages  coverage  accuracy   mean cost  what is bought, stage | stage"[:width]]
        for i, point in enumerate(self[:most]):
            figures = (
                f"{i:5d}  {point.fitness:7.3f}  {point.n_stages:6d}  {percent(point.coverage):>8}  "
                f"{percent(point.accuracy):>8}  {point.mean_cost:10,.2f}  "
            )
            design = describe(point.design, self.feature_names)
            room = max(width - len(figures), 10)
            lines.append(figures + (design if len(design) <= room else design[: room - 3] + "..."))
        if len(self) > most:
            lines.append(f"... and {len(self) - most} more")
        return "\n".join(lines)

    def plot(self, ax: Any = None, highlight: int | None = None) -> "FrontDisplay":
        """Draw accuracy against mean cost, coloured by coverage; needs matplotlib.

        Parameters
        ----------
        ax : Axes or None
            Where. None: a new figure.
        highlight : int or None
            A point to mark, such as ``clf.point_``.

        Returns
        -------
        FrontDisplay
            With the axes as ``ax_`` and the figure as ``figure_``.
        """
        from emsco.report.plots import FrontDisplay

        return FrontDisplay.from_front(self, ax=ax, highlight=highlight)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame, a row per point: its figures, and what it buys, stage after stage."""
        return data_frame(
            {
                "stages": self.n_stages,
                "coverage": self.coverage,
                "accuracy": self.accuracy,
                "mean_cost": self.mean_cost,
                "fitness": self.fitness,
                "ties": self.n_ties,
                "design": [describe(design, self.feature_names) for design in self.designs],
            }
        )


def spread(front: Front, n_points: int) -> NDArray[np.intp]:
    """Return up to so many points that stand for all: the fittest half of them, the others evenly over the costs."""
    if len(front) <= n_points:
        return np.arange(len(front))
    fittest = np.arange(n_points // 2)
    by_cost = np.argsort(front.mean_cost, kind="stable")
    by_cost = by_cost[by_cost >= fittest.size]
    even = np.linspace(0, by_cost.size - 1, n_points - fittest.size).round().astype(np.intp)
    return np.concatenate([fittest, by_cost[even]])


def describe(design: IntArray, feature_names: tuple[str, ...]) -> str:
    """Return a design in words.

    Examples
    --------
    >>> describe(np.array([0, 1, 0]), ("age", "blood", "sex"))
    'age, sex | blood'
    >>> describe(np.array([0, -1, 1]), ("age", "blood", "sex"))
    'age | sex; never blood'
    """
    bought = " | ".join(
        ", ".join(name for name, stage in zip(feature_names, design, strict=True) if stage == j)
        for j in range(int(design.max()) + 1)
    )
    never = never_bought(design, feature_names)
    return f"{bought}; never {in_brief(never)}" if never else bought


def never_bought(design: IntArray, feature_names: tuple[str, ...]) -> list[str]:
    """Return what a design leaves out."""
    return [name for name, stage in zip(feature_names, design, strict=True) if stage < 0]


def in_brief(names: Sequence[str], most: int = 3) -> str:
    """Return names in a row, or of many how many they are.

    Examples
    --------
    >>> in_brief(["age", "sex"]), in_brief(["age", "sex"], most=1)
    ('age, sex', '2 others')
    """
    return ", ".join(names) if len(names) <= most else f"{len(names)} others"


def percent(share: float) -> str:
    """Return a share as a percentage for people, a dash where it is undefined."""
    return "-" if np.isnan(share) else f"{100 * share:.0f} %"


def data_frame(columns: dict[str, Any]) -> Any:
    """Return a pandas DataFrame, or say how to get pandas."""
    try:
        import pandas
    except ImportError as error:
        raise MissingDependencyError("to_frame needs pandas: pip install 'emsco[pandas]'.") from error
    return pandas.DataFrame(columns)


def make_front(
    designs: IntArray,
    tally: Tally,
    n_ties: IntArray,
    ties: Sequence[Iterable[IntArray]],
    feature_names: tuple[str, ...],
    certificate: Any = None,
) -> Front:
    """Return the front of designs known to be non-dominated and of distinct vectors, fittest first."""
    objectives = measure(tally)
    norms = norm(objectives)
    accuracy = np.where(tally.n_conclusive > 0, objectives.accuracy, np.nan)
    figures = (objectives.coverage, accuracy, objectives.mean_cost, norms)
    front = Front(designs, *figures, n_ties, tuple(ties), feature_names, tally.n_samples, tally.reached, certificate)
    return front._select(best_first(designs, np.zeros(len(designs), dtype=np.int64), norms))


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array.setflags(write=False)
    return array


def _span(values: FloatArray) -> str:
    known = values[~np.isnan(values)]
    return f"{known.min():.4g} to {known.max():.4g}" if known.size else "undefined"
