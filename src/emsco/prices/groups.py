"""Groups of units that share a cost, such as drawing blood."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidPricesError, PriceRoundingWarning, warn

_ROUNDED = 1e-3  # share of a shared cost by which units of a group may differ: their prices were rounded


def groups_of(
    names: list[str], group_members: Mapping[str, Sequence[str]], discount: Mapping[str, Any]
) -> NDArray[np.bool_]:
    """Return which units are in which group, (n_units, n_groups)."""
    position = {name: i for i, name in enumerate(names)}
    groups = np.zeros((len(names), len(group_members)), dtype=np.bool_)
    for g, (group, members) in enumerate(group_members.items()):
        if isinstance(members, str) or not hasattr(members, "__len__") or len(members) == 0:
            raise InvalidPricesError(f"group {group!r} must list its units; got {members!r}.")
        for unit in map(str, members):
            if unit not in position:
                raise InvalidPricesError(f"group {group!r} holds {unit!r}, which is no unit; units: {names}.")
            if groups[position[unit]].any():
                raise InvalidPricesError(f"{unit!r} is in two groups, or twice in one; it can be in one.")
            groups[position[unit], g] = True
    grouped = {name for name, row in zip(names, groups, strict=True) if row.any()}
    if grouped != set(discount):
        lacking = sorted(grouped - set(discount))
        surplus = sorted(set(discount) - grouped)
        raise InvalidPricesError(
            f"no discount for {lacking}, which share a cost; give what each costs once that is paid."
            if lacking
            else f"there is a discount for {surplus}, which are in no group; name their group, or leave it out."
        )
    return groups


def shared_costs(
    names: Sequence[str],
    group_members: Mapping[str, Any],
    groups: NDArray[np.bool_],
    shared: NDArray[np.float64],
    ticks: NDArray[np.int64],
    noise: float,
) -> NDArray[np.int64]:
    """Return the cost that each group shares, in ticks: price minus discount, which is the same for all of a group.

    Rounded price lists have units that differ a little. Then it is the middle one, and a warning says so.

    Parameters
    ----------
    names : sequence of str
        Units.
    group_members : mapping
        By name of the group.
    groups : ndarray of shape (n_units, n_groups)
    shared, ticks : ndarray of shape (n_units,)
        Price minus discount of each unit, as given and in ticks.
    noise : float
        Difference that floating-point numbers may have by themselves.

    Raises
    ------
    InvalidPricesError
        The units of a group differ by more than rounding, or a discount is higher than its price.
    """
    costs = np.zeros(groups.shape[1], dtype=np.int64)
    for g, (group, members) in enumerate(zip(group_members, groups.T, strict=True)):
        each = shared[members]
        said = ", ".join(f"{n} {s:.9g}" for n, s in zip(np.array(names)[members], each, strict=True))
        if each.min() < 0 or np.ptp(each) > max(_ROUNDED * each.max(), noise):
            raise InvalidPricesError(
                f"price minus discount is the cost that the group {group!r} shares: it must be the same for all of the "
                f"group but for rounding (0.1 %), and not negative; got {said}."
            )
        costs[g] = np.sort(ticks[members])[(members.sum() - 1) // 2]
        if np.ptp(each) > noise:
            middle = float(np.sort(each)[(each.size - 1) // 2])
            warn(
                f"price minus discount is the cost that the group {group!r} shares; its units differ a little: {said}. "
                f"This was taken for rounding: the group shares {middle:.9g}, and the discounts stay as they are.",
                PriceRoundingWarning,
            )
    return costs
