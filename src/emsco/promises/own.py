"""Thresholds of a design's own: one for its early exits, another for its last stage."""

from dataclasses import replace

import numpy as np

from emsco.scoring.front import Front

AUTO = "auto"
_SEARCHED = 0.85  # what designs are searched with; the thresholds of each are chosen afterwards
_ABOVE = 0.6  # of the way from the base rate to certainty, if that is more


def searched_at(base_rate: float) -> float:
    """Return the one threshold that designs are searched with: clearly above the share of the largest class.

    At a threshold below it, always answering that class labels everybody, and the cheapest feature is the best design.

    Examples
    --------
    >>> searched_at(0.5), round(searched_at(0.925), 3)
    (0.85, 0.97)
    """
    return max(_SEARCHED, base_rate + _ABOVE * (1 - base_rate))


def untuned(front: Front, threshold: float) -> Front:
    """Return a front whose designs all have the threshold that they were searched with."""
    return replace(front, thresholds=np.full((len(front), 2), threshold))
