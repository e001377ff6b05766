"""What every search is given, and what it gives back."""

from collections.abc import Callable
import json
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Arrays: TypeAlias = dict[str, NDArray[Any]]


class Journal(Protocol):
    """What a search sees of a checkpoint."""

    def load(self) -> Arrays | None:
        """Return the last snapshot, or nothing at the beginning of a run."""

    def save(self, snapshot: Callable[[], Arrays]) -> None:
        """Take a snapshot, if it is time for one."""


def pack_generator(rng: np.random.Generator) -> NDArray[np.uint8]:
    """Return the state of a generator as an array."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), dtype=np.uint8)


def restore_generator(rng: np.random.Generator, packed: NDArray[np.uint8]) -> None:
    """Set a generator to a packed state."""
    rng.bit_generator.state = json.loads(packed.tobytes())
