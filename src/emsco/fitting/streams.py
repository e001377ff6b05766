"""Random numbers of a fit: a stream per step, so that one step's draws do not change another's."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Streams:
    """Random numbers: one stream per step, so that one step's draws do not change another's."""

    split: np.random.Generator
    search: np.random.Generator
    calibration: np.random.Generator
    recipe: np.random.Generator

    @classmethod
    def of(cls, seed: int) -> "Streams":
        """Return the streams of a seed."""
        return cls(*(np.random.default_rng(part) for part in np.random.SeedSequence(seed).spawn(4)))
