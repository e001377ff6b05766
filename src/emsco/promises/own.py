"""Thresholds of a design's own: one for its early exits, another for its last stage."""

from dataclasses import replace

import numpy as np

from emsco.scoring.front import Front
from emsco.scoring.rejection import RejectRule

AUTO = "auto"


SEARCHED = 0.85  # what designs are searched with; the thresholds of each are chosen afterwards


def rule_of(exit_at: float, last_at: float, n_stages: int) -> RejectRule:
    """Return the rule of a design that many stages deep.

    Examples
    --------
    >>> rule_of(0.95, 0.8, n_stages=3).in_words(["ham", "spam"])
    '95 % (stages 1 to 2), 80 % (from stage 3 on)'
    """
    return RejectRule.of([[exit_at]] * (n_stages - 1) + [[last_at]])


def untuned(front: Front) -> Front:
    """Return a front whose designs all have the threshold that they were searched with."""
    return replace(front, thresholds=np.full((len(front), 2), SEARCHED))
