"""Designs and figures in words."""

from collections.abc import Sequence

import numpy as np

from emsco.arrays import IntArray
from emsco.designs.branched import Branched


def describe(design: IntArray, feature_names: tuple[str, ...]) -> str:
    """Return a design in words.

    Examples
    --------
    >>> describe(np.array([0, 1, 0]), ("age", "blood", "sex"))
    'age, sex | blood'
    >>> describe(np.array([0, -1, 1]), ("age", "blood", "sex"))
    'age | sex; never blood'
    >>> describe(np.array([-1, -1, -1]), ("age", "blood", "sex"))
    'nothing'
    """
    bought = " | ".join(
        ", ".join(name for name, stage in zip(feature_names, design, strict=True) if stage == j)
        for j in range(int(design.max()) + 1)
    )
    if not bought:
        return "nothing"
    never = never_bought(design, feature_names)
    return f"{bought}; never {in_brief(never)}" if never else bought


def describe_branched(branched: Branched, feature_names: tuple[str, ...]) -> str:
    """Return a design that branches in words, with a number for each branch.

    Examples
    --------
    >>> from emsco.designs.branched import Route
    >>> route = Route("cut", unit=0, columns=(0,), cuts=(54.5,), n_branches=2)
    >>> rows = np.array([[0, 1, -1, -1], [0, -1, -1, -1]])
    >>> describe_branched(Branched(rows, route, (), ("shared", "shared")), ("age", "blood", "sex", "scan"))
    'age, then by age: [1] blood; [2] nothing more; never sex, scan'
    """
    names = np.array(feature_names, dtype=object)
    parts = []
    for b, row in enumerate(branched.rows):
        stages = [", ".join(names[row == j]) for j in range(1, int(row.max()) + 1)]
        parts.append(f"[{b + 1}] {' | '.join(stages) or 'nothing more'}")
    read = "leaning" if branched.route.kind == "leaning" else feature_names[branched.route.unit]
    never = never_bought(branched.summary, feature_names)
    rest = f"; never {in_brief(never)}" if never else ""
    return f"{', '.join(names[branched.root])}, then by {read}: {'; '.join(parts)}{rest}"


def never_bought(design: IntArray, feature_names: tuple[str, ...]) -> list[str]:
    """Return the features that a design leaves out."""
    return [name for name, stage in zip(feature_names, design, strict=True) if stage < 0]


def in_brief(names: Sequence[str], most: int = 3) -> str:
    """Return the names, or their number if there are many.

    Examples
    --------
    >>> in_brief(["age", "sex"]), in_brief(["age", "sex"], most=1)
    ('age, sex', '2 others')
    """
    return ", ".join(names) if len(names) <= most else f"{len(names)} others"


def percent(share: float) -> str:
    """Return a share as a percentage, or a dash if it is undefined."""
    return "-" if np.isnan(share) else f"{100 * share:.0f} %"


def tenths(share: float) -> str:
    """Return a share as a percentage to a tenth, or a dash if it is undefined.

    Examples
    --------
    >>> tenths(0.9375), tenths(float("nan"))
    ('93.8 %', '-')
    """
    return "-" if np.isnan(share) else f"{100 * share:.1f} %"


def tenths_of_worst(share: float) -> str:
    """Return the recall of the worst class; that of a class that is never found is marked."""
    return f"{tenths(share)} !" if share == 0 else tenths(share)


NEVER_FOUND = "! a class is never found."
