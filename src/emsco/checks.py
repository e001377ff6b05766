"""Checks of parameters that several steps share."""

from typing import Any

from joblib import effective_n_jobs
import numpy as np
from sklearn.utils import check_random_state

from emsco.exceptions import InvalidParameterError


def check_n_jobs(n_jobs: Any) -> int:
    """Return a number of workers as joblib understands it."""
    try:
        return int(effective_n_jobs(n_jobs))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"must be a positive number of workers, or -1 for all cores; got {n_jobs!r}.", parameter="n_jobs"
        ) from error


def check_seed(random_state: Any) -> int:
    """Return the seed that a random_state gives."""
    try:
        return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise InvalidParameterError(
            f"must be a whole number, a numpy RandomState or None; got {random_state!r}.", parameter="random_state"
        ) from error
