"""Checks of parameters that several steps share."""

import os
from typing import Any

import numpy as np

from emsco.exceptions import InvalidParameterError

CLIENT = "client"  # the parameter that belongs to a process: it is neither copied nor stored


def check_n_jobs(n_jobs: Any) -> int:
    """Return a number of workers as joblib understands it."""
    from joblib import effective_n_jobs

    try:
        return int(effective_n_jobs(n_jobs))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(
            f"must be a positive number of workers, or -1 for all cores; got {n_jobs!r}.", parameter="n_jobs"
        ) from error


def n_threads(n_jobs: int) -> int:
    """Return the number of threads of work that needs no process of its own: as OpenMP has, or more if asked for."""
    from joblib import cpu_count

    limit = os.environ.get("OMP_NUM_THREADS", "")
    return max(n_jobs, int(limit) if limit.isdigit() and int(limit) else cpu_count())


def check_seed(random_state: Any) -> int:
    """Return the seed that a random_state gives."""
    try:
        if isinstance(random_state, int | np.integer):  # as scikit-learn does, which takes a second to load
            rng = np.random.RandomState(random_state)
        else:
            from sklearn.utils import check_random_state

            rng = check_random_state(random_state)
        return int(rng.randint(np.iinfo(np.int32).max))
    except ValueError as error:
        raise InvalidParameterError(
            f"must be a whole number, a numpy RandomState or None; got {random_state!r}.", parameter="random_state"
        ) from error


def check_cache_bytes(cache: Any) -> int:
    """Return a bound of memory."""
    if isinstance(cache, bool) or not isinstance(cache, int | np.integer) or cache < 1:
        raise InvalidParameterError(f"must be a positive number of bytes; got {cache!r}.", parameter="cache_bytes")
    return int(cache)


def check_flag(value: Any, name: str) -> bool:
    """Return a parameter that is true or false."""
    if not isinstance(value, bool | np.bool_ | int):
        raise InvalidParameterError(f"must be True or False; got {value!r}.", parameter=name)
    return bool(value)


def check_time_limit(limit: Any) -> float | None:
    """Return a number of seconds, or None if there is no limit."""
    number = isinstance(limit, int | float | np.integer | np.floating) and not isinstance(limit, bool)
    if limit is not None and not (number and 0 < limit < np.inf):
        raise InvalidParameterError(
            f"must be a positive number of seconds, or None for no limit; got {limit!r}.", parameter="time_limit"
        )
    return None if limit is None else float(limit)
