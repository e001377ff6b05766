"""When an answer is confident enough to be given."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidParameterError


def check_threshold(threshold: Any) -> float:
    """Return the confidence threshold as a float in [0, 1]."""
    number = isinstance(threshold, int | float | np.integer | np.floating) and not isinstance(threshold, bool)
    if not number or not 0 <= threshold <= 1:
        raise InvalidParameterError(
            f"threshold must be a probability between 0 and 1, such as 0.75; got {threshold!r}."
        )
    return float(threshold)


def is_confident(confidence: NDArray[np.float64], threshold: float) -> NDArray[np.bool_]:
    """Return where the top class probability reaches the threshold (§2)."""
    return confidence >= threshold
