"""All points of a front as lines of text and as a data frame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from emsco.data.table import data_frame
from emsco.markup import line_width
from emsco.scoring.classes import class_columns
from emsco.scoring.words import percent

if TYPE_CHECKING:
    from emsco.scoring.front import Front


def front_text(front: "Front", most: int, width: int | None) -> str:
    """Return the fittest points, one line each; see ``Front.to_text``."""
    width = line_width(width)
    extra = {name: (values, max(len(name), 8)) for name, values in front.extra.items()}
    names = "".join(f"{name:>{room}}  " for name, (_, room) in extra.items())
    lines = [f"point  fitness  stages  coverage  accuracy   mean cost  {names}buys, stage | stage"[:width]]
    for i, point in enumerate(front[:most]):
        figures = (
            f"{i:5d}  {point.fitness:7.3f}  {point.n_stages:6d}  {percent(point.coverage):>8}  "
            f"{percent(point.accuracy):>8}  {point.mean_cost:10,.2f}  "
        ) + "".join(f"{values[i]:{room}.4g}  " for values, room in extra.values())
        design = with_facts(front.in_words(i), [], front, i)
        room = max(width - len(figures), 10)
        lines.append(figures + (design if len(design) <= room else design[: room - 3] + "..."))
    if len(front) > most:
        lines.append(f"... and {len(front) - most} more")
    return "\n".join(lines)


def with_facts(design: str, facts: Sequence[str], front: "Front", point: int) -> str:
    """Return a design with further facts of its point, and with when it gives a label, in brackets."""
    said = "; ".join(filter(None, (", ".join(facts), front.when_labelled(point))))
    return f"{design} ({said})" if said else design


def front_frame(front: "Front") -> Any:
    """Return a data frame with one row per point; see ``Front.to_frame``."""
    figures: dict[str, Any] = {}
    for figure in ("coverage", "accuracy", "mean_cost"):
        low, high = front.interval(figure)
        figures |= {figure: getattr(front, figure), f"{figure}_low": low, f"{figure}_high": high}
    if front.confusion is not None:
        low, high = front.interval("recall")
        figures["worst_recall"] = front.worst_recall
        figures |= class_columns(front.classes, front.recall, low, high, front.precision)
    if front.thresholds is not None:
        *early, last = front.thresholds.T
        figures |= {f"early_threshold{f'_{j + 1}' if j else ''}": bars for j, bars in enumerate(early)}
        figures["last_threshold"] = last
    branches = {} if not front.branched else {"branches": [1 if b is None else b.n_branches for b in front.branched]}
    return data_frame(
        {
            "stages": front.n_stages,
            **branches,
            **figures,
            **front.extra,
            "fitness": front.fitness,
            "ties": front.n_ties,
            "design": [front.in_words(i) for i in range(len(front))],
        }
    )
