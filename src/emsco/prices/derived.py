"""Units that are computed from others: they cost what they are computed from."""

from collections.abc import Collection, Mapping, Sequence

from emsco.exceptions import InvalidPricesError


def check_derived(
    derived: Mapping[str, Sequence[str]], names: Sequence[str], priced: Collection[str]
) -> dict[str, list[str]]:
    """Return the units that each derived unit is computed from.

    Parameters
    ----------
    derived : mapping of str to sequence of str
        As the user gave it.
    names : sequence of str
        All units.
    priced : collection of str
        Units that have a price of their own.
    """
    sources = {str(unit): units for unit, units in derived.items()}
    for unit, units in sources.items():
        if isinstance(units, str) or not hasattr(units, "__len__") or len(units) == 0:
            raise InvalidPricesError(f"derived {unit!r} must list the units it is computed from; got {units!r}.")
        if unit not in names:
            raise InvalidPricesError(f"derived {unit!r} is no column or unit of the table; units: {list(names)}.")
        if unit in priced:
            raise InvalidPricesError(f"{unit!r} is derived and has a price of its own; leave one of them out.")
        for source in map(str, units):
            if source not in names:
                raise InvalidPricesError(
                    f"{unit!r} is derived from {source!r}, which is no unit; units: {list(names)}."
                )
            if source in sources:
                raise InvalidPricesError(
                    f"{unit!r} is derived from {source!r}, which is derived itself; name what that is computed from."
                )
    return {unit: [str(source) for source in units] for unit, units in sources.items()}
