"""Points that branch <-> parts of a model file; every field is checked against the others."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.arrays import BoolArray, FloatArray, IntArray
from emsco.data.encoding import Encoder, NumberCode
from emsco.designs.branched import Branched, BranchFigures, Route
from emsco.designs.partition import acquired_sets, distinct_sets, set_key
from emsco.exceptions import InvalidDesignError, ModelFileError
from emsco.prices.prices import PriceList
from emsco.scoring.branches import branches_paid, dearest_paid
from emsco.scoring.front import stages_paid
from emsco.scoring.rejection import NEVER, RejectRule
from emsco.storage.container import damaged
from emsco.storage.fields import Fields

_MOST_CELLS = 2**22  # branches x units
Points = tuple[Branched | None, ...]


def needed_sets(designs: IntArray, points: Points) -> tuple[BoolArray, list[bytes]]:
    """Return the sets of units whose classifiers the points need, in the order of a file, and their keys.

    First those of chains, and of everything; then what branches need besides.
    """
    chains = designs if not points else designs[[branched is None for branched in points]]
    sets = list(distinct_sets(chains) if len(chains) else np.ones((1, designs.shape[1]), dtype=np.bool_))
    keys = {set_key(units): None for units in sets}
    for branched in points:
        for b in range(0 if branched is None else branched.n_branches):
            assert branched is not None
            for key, units in zip(branched.keys(b), acquired_sets(branched.rows[b][None])[0][0], strict=True):
                if key not in keys:
                    keys[key] = None
                    sets.append(units)
    return np.array(sets), list(keys)


def branches_to_json(points: Points) -> list[dict[str, Any]]:
    """Return an object per point that branches."""
    return [_to_json(i, branched) for i, branched in enumerate(points) if branched is not None]


def _to_json(point: int, branched: Branched) -> dict[str, Any]:
    route, figures = branched.route, branched.figures
    record: dict[str, Any] = {
        "point": point,
        "route": {
            "kind": route.kind, "unit": route.unit, "columns": list(route.columns),
            "groups": [[list(v) if isinstance(v, tuple) else v for v in group] for group in route.groups],
            "cuts": list(route.cuts), "default": route.default,
        },
        "rows": branched.rows.tolist(),
        "rules": [[list(row) for row in rule.bars] for rule in branched.rules],
        "experts": list(branched.experts),
    }  # fmt: skip
    if figures is not None:
        counts = {name: getattr(figures, name).tolist() for name in ("reached", "n_conclusive", "n_correct")}
        record["figures"] = counts
    return record


def branches_from_json(
    record: Fields, designs: IntArray, encoder: Encoder, prices: PriceList, n_classes: int
) -> tuple[Branched | None, ...]:
    """Return the branches of each point, None of chains; empty if all are, as in older files."""
    if "branches" not in record:
        return ()
    points: list[Branched | None] = [None] * len(designs)
    parts = record.parts("branches")
    n_branches = sum(len(part.items("rows")) for part in parts)
    if n_branches * prices.n_units > _MOST_CELLS:
        raise ModelFileError(f"{n_branches:,} branches of {prices.n_units:,} units are more than can be read.")
    for part in parts:
        i = part.whole("point", most=len(designs) - 1)
        if points[i] is not None:
            part.refuse("point", "points that differ")
        try:
            points[i] = branched = _from_json(part, encoder, prices, n_classes)
            branched.check(prices.unit_columns)
        except InvalidDesignError as error:
            raise damaged(str(error).rstrip(".")) from error
        if not np.array_equal(branched.summary, designs[i]):
            raise damaged("the branches of a point are not those of its design")
    return tuple(points) if parts else ()


def _from_json(record: Fields, encoder: Encoder, prices: PriceList, n_classes: int) -> Branched:
    lines = record.items("rows")
    rows = np.array([_wholes(line, prices.n_units, -1, prices.n_units - 1) for line in lines], dtype=np.int64)
    if len(rows) < 2:
        record.refuse("rows", "a list of two or more")
    rules = tuple(_rule(bars, prices.n_units, n_classes) for bars in record.items("rules", len(rows)))
    route = _route(record.part("route"), len(rows), encoder, n_classes)
    branched = Branched(rows, route, rules, record.texts("experts"))
    if "figures" not in record:
        return branched
    branched.check(prices.unit_columns)
    figures = _figures(record.part("figures"), branched, prices)
    return Branched(rows, route, rules, branched.experts, figures)


def _route(record: Fields, n_branches: int, encoder: Encoder, n_classes: int) -> Route:
    kind, n_columns = record.text("kind"), len(encoder.codes)
    columns = _wholes(record.raw("columns"), None, 0, n_columns - 1)
    groups = tuple(tuple(map(_value, _list(group))) for group in record.items("groups"))
    if kind == "leaning" and any(not isinstance(k, int) or k >= n_classes for group in groups for k in group):
        record.refuse("groups", "positions of classes")
    route = Route(
        kind,
        record.whole("unit", -1),
        columns,
        groups,
        record.numbers("cuts"),
        record.whole("default", most=n_branches - 1),
        n_branches=n_branches,
    )
    route.check()
    numeric = kind != "category" or route.by_number
    if any(isinstance(encoder.codes[c], NumberCode) != numeric for c in columns):
        raise damaged(f"a route by {kind} reads a column of another kind")
    return route


def _value(value: Any) -> Any:
    """Return a value of a group: text, a finite number, or a pattern of 0 and 1."""
    if isinstance(value, list):
        return _wholes(value, None, 0, 1)
    if isinstance(value, str) or (type(value) in (int, float) and abs(value) < 1e300):
        return value
    raise damaged("a route has groups of neither text, numbers nor patterns")


def _rule(bars: Any, n_units: int, n_classes: int) -> RejectRule:
    rows = [Fields({"row": row}, "rules").numbers("row") for row in _list(bars)]
    sound = 0 < len(rows) <= n_units and len({len(row) for row in rows}) == 1 and len(rows[0]) in (1, n_classes)
    if not sound or not all(0 <= bar <= 1 or bar == NEVER for row in rows for bar in row):
        raise damaged("the rules of a branch are no probabilities by stage")
    return RejectRule.of(rows)


def _figures(record: Fields, branched: Branched, prices: PriceList) -> BranchFigures:
    n, n_stages = branched.n_branches, branched.n_stages
    reached = np.array([_wholes(line, n_stages, 0, 2**40) for line in record.items("reached", n)], dtype=np.int64)
    conclusive, correct = (np.array(record.wholes(name, n)) for name in ("n_conclusive", "n_correct"))
    beyond = np.arange(n_stages) > branched.rows.max(axis=1)[:, None]
    sound = (np.diff(reached, axis=1) <= 0).all() and (correct <= conclusive).all() and not reached[beyond].any()
    if not sound or (conclusive > reached[:, 0]).any():
        raise damaged("the figures of branches are out of range")
    return BranchFigures(reached, conclusive, correct, branches_paid(branched, prices))


def check_figures(points: Points, figures: dict[str, NDArray[Any]], reached: IntArray, n_samples: int) -> None:
    """Raise unless the figures by branch add up to those of the point."""
    for i, branched in enumerate(points):
        if branched is None or (known := branched.figures) is None:
            continue
        n_stages = known.reached.shape[1]
        sound = known.n_samples == n_samples and reached.shape[1] >= n_stages
        sound = sound and np.array_equal(known.reached.sum(axis=0), reached[i, :n_stages])
        if not sound or abs(int(known.n_conclusive.sum()) - figures["coverage"][i] * n_samples) > 1e-3:
            raise damaged("the figures of branches are not those of their point")


def front_paid(designs: IntArray, points: Points, prices: PriceList, n_stages: int) -> FloatArray:
    """Return what has been paid by the end of each stage of each point; of one that branches, in its dearest branch."""
    paid = stages_paid(designs, prices, n_stages)
    for i, branched in enumerate(points):
        if branched is not None:
            if branched.n_stages > n_stages:
                raise damaged("figures of the front are out of range")
            paid[i] = dearest_paid(branched, prices, n_stages)
    return paid


def _list(value: Any) -> list[Any]:
    return Fields({"list": value}, "branches").items("list")


def _wholes(value: Any, length: int | None, least: int, most: int) -> tuple[int, ...]:
    values = _list(value)
    if length is not None and len(values) != length:
        raise damaged(f"a list in branches has {len(values)} entries; wanted {length}")
    if not all(type(v) is int and least <= v <= most for v in values):
        raise damaged(f"branches hold what is no whole number from {least} to {most}")
    return tuple(values)
