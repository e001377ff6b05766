"""Which point of a front: by name, by limits, by a preset."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from emsco.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from emsco.scoring.front import Front

# What decides between points within limits, if nothing else is said.
PRESET_CHOICES = {"best": "combined", "paper": "fitness"}
OF_A_CLASS = 0.5  # standard errors by which the recall of one class may be worse than with everything
NO_WORSE = "no_worse"  # the default: the cheapest point that is no worse than buying everything


def check_choice(choice: Mapping[str, Any], objectives: tuple[str, ...]) -> None:
    """Raise unless these are valid arguments for ``Front.choose`` on a front with these objectives."""
    with_error = ("accuracy", "coverage", "cost", "combined")
    bests = tuple(dict.fromkeys((*with_error, "fitness", *objectives)))
    names = ("max_cost", "min_coverage", "min_accuracy", "best", "one_standard_error")
    unknown = sorted(str(name) for name in choice if name not in names)
    if unknown:
        raise InvalidParameterError(f"a point is chosen by {', '.join(names)}; got {', '.join(unknown)}.")
    for name in names[:3]:
        value = choice.get(name)
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        most = np.inf if name == "max_cost" else 1
        if value is not None and not (number and 0 <= value <= most):
            wanted = "a number of at least 0" if name == "max_cost" else "a share between 0 and 1, such as 0.9"
            raise InvalidParameterError(f"must be {wanted}; got {value!r}.", parameter=name)
    best, one_standard_error = choice.get("best", "fitness"), choice.get("one_standard_error", False)
    if best not in bests:
        raise InvalidParameterError(f"must be one of {', '.join(bests)}; got {best!r}.", parameter="best")
    if not isinstance(one_standard_error, bool | np.bool_):
        raise InvalidParameterError(
            f"must be True or False; got {one_standard_error!r}.", parameter="one_standard_error"
        )
    if one_standard_error and best not in with_error:
        raise InvalidParameterError(
            f"is for the best {', '.join(with_error)}; the error of {best} is not known.",
            parameter="one_standard_error",
        )


def choose_point(front: "Front", choose: Any, *, best: str) -> int:
    """Return the point of a front that ``choose``, a name or limits, stands for."""
    if isinstance(choose, Mapping):
        return front.choose(**{"best": best, **choose})
    if choose == NO_WORSE:
        return no_worse(front)[0]
    if choose == "fitness":
        return 0
    return front.knee() if choose == "knee" else front.choose(best=choose)


def no_worse(front: "Front") -> tuple[int, bool]:
    """Return the cheapest point that is no worse than buying everything, for any class; or the nearest, and False.

    No worse is within ``front.margin`` paired standard errors: of the rows that only one of the two labels correctly,
    by class and together, and of the wrong labels that both give.
    """
    if front.against is None or front.confusion is None:
        raise InvalidParameterError(
            "cannot be 'no_worse': a file of an older version does not have the counts; fit again.", parameter="choose"
        )
    lost, gained = front.against[..., 0], front.against[..., 1]
    counts = np.column_stack([lost, lost.sum(axis=1)]), np.column_stack([gained, gained.sum(axis=1)])
    margins = np.append(np.full(lost.shape[1], OF_A_CLASS), front.margin)
    errors = np.sqrt(counts[0] + counts[1])
    beyond = (counts[0] - counts[1] - margins * errors) / np.maximum(errors, 1)
    labelled = front.confusion[:, :, :-1].sum(axis=(1, 2))
    n_wrong = labelled - np.trace(front.confusion, axis1=1, axis2=2)
    more = n_wrong - front.n_wrong_with_everything
    wrong = (more - np.sqrt(np.maximum(n_wrong + front.n_wrong_with_everything, 0))) / np.maximum(np.sqrt(n_wrong), 1)
    worst = np.maximum(beyond.max(axis=1), wrong)
    worst[labelled == 0] = np.inf
    allowed = np.flatnonzero(worst <= 1e-9)
    if not allowed.size:
        return int(np.lexsort((front.mean_cost, worst.round(6)))[0]), False
    return int(allowed[np.lexsort((front.n_stages[allowed], front.mean_cost[allowed]))[0]]), True
