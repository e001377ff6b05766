"""What designs that branch were tried, and what they gain."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload


@dataclass(frozen=True)
class Gain:
    """A root that was tried.

    Attributes
    ----------
    root : tuple of str
        Units that it buys.
    branches : tuple of str
        Which rows take each branch, in words.
    budget : float
        Price per case at which its gain is the clearest; where errors have prices, that of the best chain with errors.
    gain : float
        Right labels per case more than the best chain within that budget gives, everybody labelled, on rows that chose
        neither. Of a root that fails on the rows that chose both, the gain on these. Where errors have prices: the
        money per case that it saves, on rows that chose neither.
    error : float
        Its standard error.
    needed : float
        Standard errors that the gain must exceed.
    kept : bool
        Whether designs with this root are on the front.
    why : str
        Why not.
    """

    root: tuple[str, ...]
    branches: tuple[str, ...]
    budget: float
    gain: float
    error: float
    needed: float
    kept: bool
    why: str = ""

    def second(self) -> "Gain":
        """Return the same of a root that another one is better than."""
        return replace(self, kept=False, why="another root gains more")

    def __str__(self) -> str:
        said = "kept" if self.kept else f"not kept: {self.why}"
        return (
            f"{' + '.join(self.root)} ({'; '.join(self.branches)}): {self.gain:+.3f} ± {self.error:.3f} at "
            f"{self.budget:.4g}, {self.needed:.1f} errors needed; {said}"
        )


@dataclass(frozen=True)
class Branches(Sequence[Gain]):
    """The roots that were tried, those that are kept first; prints as a list, and ``to_frame`` gives a table.

    Attributes
    ----------
    n_screened : int
        Roots that were screened.
    note : str
        Why no designs that branch were looked for, if so.
    """

    gains: tuple[Gain, ...] = field(default=())
    n_screened: int = 0
    note: str = ""

    @overload
    def __getitem__(self, index: int) -> Gain: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Gain, ...]: ...
    def __getitem__(self, index: int | slice) -> Gain | tuple[Gain, ...]:
        return self.gains[index]

    def __len__(self) -> int:
        return len(self.gains)

    def __str__(self) -> str:
        if self.note:
            return f"no designs that branch: {self.note}."
        head = f"{self.n_screened} roots were screened, {len(self)} of them looked at closely."
        return "\n".join([head, *map(str, self.gains)])

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row per root."""
        from emsco.data.table import data_frame

        names = ("root", "branches", "budget", "gain", "error", "needed", "kept", "why")
        joined = {"root": " + ".join, "branches": "; ".join}
        return data_frame({
            name: [joined.get(name, lambda value: value)(getattr(gain, name)) for gain in self] for name in names
        })  # fmt: skip
