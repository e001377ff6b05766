"""What a model has decided since the service began, beside what was expected of it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from emsco.service.counters import Key, decided_of
from emsco.service.metrics import shifts_of
from emsco.service.profiles import UNAVAILABLE, UNSEEN, VALUES
from emsco.service.shelf import Served


def live_record(served: Served, totals: Mapping[Key, float], watched: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return counts of the version in use, what was expected, and what is watched."""
    n_stages = len(served.paid)
    exits, labels = np.zeros(n_stages, dtype=np.int64), dict.fromkeys(map(str, served.classes), 0)
    n_rejected, cost = 0, 0.0
    for (stage, code), n in decided_of(totals, served.name, served.version).items():
        if stage >= n_stages or (code is not None and code >= len(served.classes)):
            continue  # an id that nobody was given
        cost += n * served.paid[stage]
        if code is not None:
            exits[stage] += n
            labels[str(served.classes[code])] += n
        else:
            n_rejected += n
    n_cases = int(exits.sum()) + n_rejected
    watched = watched if watched is not None and watched["version"] == served.version else None
    return {
        "model": served.name,
        "version": served.version,
        "cases": n_cases,
        "labelled": exits.tolist(),
        "rejected": n_rejected,
        "labels": labels,
        "mean_cost": cost / n_cases if n_cases else None,
        "paid": served.paid,
        "columns": _columns(served, totals),
        "expected": _expected(served),
        "false_alarms": watched["false_alarms"] if watched else None,
        "watches": watched["watches"] if watched else [],
        "reason": watched["reason"] if watched else None,
    }


def _columns(served: Served, totals: Mapping[Key, float]) -> list[dict[str, Any]]:
    shifts = shifts_of(totals)
    columns = []
    for code in (code for codes in served.codes_by_stage for code in codes):
        n = totals.get((VALUES, served.name, code.name), 0.0)
        if n:
            unavailable = totals.get((UNAVAILABLE, served.name, code.name), 0.0)
            unseen = totals.get((UNSEEN, served.name, code.name), 0.0)
            shift = shifts.get((served.name, code.name))
            columns.append({"name": code.name, "unavailable": unavailable / n, "unseen": unseen / n, "shift": shift})
    return columns


def _expected(served: Served) -> dict[str, Any] | None:
    """Return shares of the rows that judged the model: held-out ones, or else those of the search."""
    model = served.model
    if model.evaluation is not None:
        result = model.evaluation.points[model.point]
        n = result.n_rows
        source = f"{n:,} held-out rows"
        return {
            "source": source, "labelled": [count / n for count in result.answered], "rejected": result.n_rejected / n,
            "mean_cost": result.mean_cost,
        }  # fmt: skip
    if model.front is None:
        return None
    front, n_stages = model.front, len(served.paid)
    reached = (front.reached[model.point, :n_stages] / front.n_samples).tolist()
    rejected = 1 - float(front.coverage[model.point])
    labelled = [here - after for here, after in zip(reached, [*reached[1:], rejected], strict=True)]
    return {
        "source": "the rows of the search", "labelled": labelled, "rejected": rejected,
        "mean_cost": float(front.mean_cost[model.point]),
    }  # fmt: skip
