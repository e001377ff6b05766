"""Cache of trained feature sets and their bits; each set is trained once.

The stored result of a set (``StageTrainer.memory_dtype``) does not depend on the threshold: a new threshold converts
the stored outcomes into new bits, without training.
"""

from collections.abc import Iterable, Sequence
from time import monotonic
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emsco.exceptions import InvalidParameterError
from emsco.scoring import _bitset as bitset
from emsco.scoring.rejection import Threshold, as_rule
from emsco.stages.base import FeatureSets, StageModel, StageOutcomes, StageTrainer

_SECONDS = 0.5  # of training between two writes to the store, approximately
_ENTRY_BYTES = 200  # a key and its entry in the dictionary
_BLOCK_CELLS = 2**21  # sets x samples with confidences in memory at once: 16 MiB


class Store(Protocol):
    """Storage for trained feature sets beyond the run."""

    def trained(self, keys: Sequence[bytes]) -> dict[bytes, tuple[int, bytes]]:
        """Return number and memory of those of the sets that are already trained."""

    def add_trained(self, rows: Iterable[tuple[bytes, int, bytes]]) -> None:
        """Store sets: units, number, memory."""


class StageCache:
    """Bits of the feature sets used so far.

    Slot s of ``confident`` has a bit for each validation sample for which the set's classifier is confident, slot s of
    ``right`` for each sample for which it is confident and correct. If thresholds differ between stages, a set has
    ``n_rules`` rows of bits instead: ``slots * n_rules + stage``, the last one for all further stages.

    Parameters
    ----------
    trainer : StageTrainer
    y : ndarray of shape (n_samples,)
        Class indices of the validation samples.
    n_units : int
    threshold : float or RejectRule
    max_bytes : int
        Memory bound. Beyond it, the least recently used sets are dropped. If they are needed again, they are trained
        again, with the same bits.
    store : Store or None
        Sets in the store are not trained again.
    n_classes : int
        Number of classes in ``labels`` and ``truth``; 0 if only correct and wrong labels are counted.
    n_answers : int
        Number of labels, if there are more than classes: no answer may be one.

    Attributes
    ----------
    n_trained : int
        Number of feature sets trained so far.
    capacity : int
        Number of feature sets that fit into ``max_bytes``.
    n_rules : int
        Rows of bits per set: 1 unless thresholds differ between stages.
    labels : ndarray of shape (capacity * n_rules, n_bits, n_words)
        For each slot, the samples for which it is confident and whose predicted class has bit b set.
    truth : ndarray of shape (n_classes, n_words)
        The samples of each class.
    """

    def __init__(
        self,
        trainer: StageTrainer,
        y: NDArray[np.int64],
        *,
        n_units: int,
        threshold: Threshold,
        max_bytes: int,
        store: Store | None = None,
        n_classes: int = 0,
        n_answers: int = 0,
    ) -> None:
        self._trainer = trainer
        self._disk = store
        self._y = y
        self._n_units = n_units
        self._rule = as_rule(threshold)
        self.n_rules = n_rules = self._rule.n_rows
        n_words = -(-y.size // 64)
        n_bits = max(max(n_classes, n_answers) - 1, 0).bit_length()
        self._slot_bytes = trainer.memory_dtype.itemsize + n_rules * (2 + n_bits) * 8 * n_words + _ENTRY_BYTES
        self.capacity = min(max_bytes // self._slot_bytes, 2**n_units)
        self.n_trained = 0
        # The system allocates these pages on the first write, so an empty cache takes no memory.
        self._memory: NDArray[Any] = np.empty(self.capacity, dtype=trainer.memory_dtype)
        self.confident: NDArray[np.uint64] = np.empty((self.capacity * n_rules, n_words), dtype=np.uint64)
        self.right: NDArray[np.uint64] = np.empty((self.capacity * n_rules, n_words), dtype=np.uint64)
        self.labels: NDArray[np.uint64] = np.empty((self.capacity * n_rules, n_bits, n_words), dtype=np.uint64)
        self.truth = bitset.pack(y == np.arange(n_classes)[:, None])
        self._last_use: NDArray[np.int64] = np.empty(self.capacity, dtype=np.int64)
        self._clock = 0
        self._slot_of: dict[bytes, int] = {}
        self._recycled: list[int] = []
        self._n_touched = 0
        self.everyone = bitset.pack(np.ones((1, y.size), dtype=np.bool_))[0]

    def require(self, n_sets: int) -> None:
        """Raise unless this number of sets fits at once."""
        if self.capacity < n_sets:
            raise InvalidParameterError(
                f"cache_bytes leaves room for {self.capacity} feature sets, but one design needs {n_sets} at once; "
                f"set it to at least {n_sets * self._slot_bytes:,}."
            )

    def knows(self, feature_sets: FeatureSets) -> NDArray[np.bool_]:
        """Return which sets need no training: they are here, or in the store."""
        keys = _keys(feature_sets)
        stored = {} if self._disk is None else self._disk.trained([key for key in keys if key not in self._slot_of])
        return np.array([key in self._slot_of or key in stored for key in keys], dtype=np.bool_)

    def slots(self, feature_sets: FeatureSets) -> NDArray[np.int64]:
        """Return the slot of each set, after training the new ones. At most ``capacity`` distinct sets."""
        keys = _keys(feature_sets)
        self._clock += 1
        new: dict[bytes, int] = {}
        slot_of = self._slot_of
        known = np.array([slot_of.get(key, -1) for key in keys], dtype=np.int64)
        for i in np.flatnonzero(known < 0).tolist():
            new.setdefault(keys[i], i)
        self._last_use[known[known >= 0]] = self._clock
        if not new:
            return known
        slots = self._claim(len(new))
        self._store(slots, feature_sets[list(new.values())], list(new))
        return np.array([slot_of[key] for key in keys], dtype=np.int64)

    def remember(
        self,
        feature_sets: FeatureSets,
        memory: NDArray[Any],
        confident: NDArray[np.uint64],
        right: NDArray[np.uint64],
    ) -> None:
        """Take over sets that were trained elsewhere, none of them met before, with their bits at one rule."""
        assert self.n_rules == 1
        assert not self.labels.shape[1]
        self._clock += 1
        slots = self._claim(len(feature_sets))
        self._memory[slots], self.confident[slots], self.right[slots] = memory, confident, right
        self.n_trained += len(feature_sets)
        self._register(slots, [units.tobytes() for units in np.packbits(feature_sets, axis=1)])

    def set_threshold(self, threshold: Threshold) -> None:
        """Convert all stored outcomes into bits for another threshold with the same number of rows."""
        self._rule = as_rule(threshold)
        assert self._rule.n_rows == self.n_rules
        held = np.array(list(self._slot_of.values()), dtype=np.int64)
        packed = np.frombuffer(b"".join(self._slot_of), dtype=np.uint8).reshape(len(held), -(-self._n_units // 8))
        feature_sets = np.unpackbits(packed, axis=1, count=self._n_units).astype(np.bool_)
        for part in self._parts(len(held)):
            self._write_bits(held[part], feature_sets[part], self._memory[held[part]])

    def outcomes(self, feature_sets: FeatureSets) -> StageOutcomes:
        """Return the outcomes of sets for every sample. At most ``capacity`` distinct sets."""
        return self._trainer.outcomes(feature_sets, self._memory[self.slots(feature_sets)])

    def models(self, feature_sets: FeatureSets) -> list[StageModel]:
        """Return the trained models of feature sets."""
        models: list[StageModel] = []
        for i in range(0, len(feature_sets), self.capacity):
            part = feature_sets[i : i + self.capacity]
            models += self._trainer.models(part, self._memory[self.slots(part)])
        return models

    def _claim(self, n_sets: int) -> NDArray[np.int64]:
        """Return free slots: unused ones first, then those of the least recently used sets."""
        fresh = min(self.capacity - self._n_touched, n_sets)
        self._recycled.extend(range(self._n_touched, self._n_touched + fresh))
        self._n_touched += fresh
        missing = n_sets - len(self._recycled)
        if missing > 0:
            keys = list(self._slot_of)
            ages = self._last_use[list(self._slot_of.values())]
            n_idle = int((ages < self._clock).sum())  # the sets of this call stay
            for i in np.argsort(ages, kind="stable")[: min(max(missing, self.capacity // 16), n_idle)].tolist():
                self._recycled.append(self._slot_of.pop(keys[i]))
        return np.array(self._recycled[:n_sets], dtype=np.int64)

    def _store(self, slots: NDArray[np.int64], feature_sets: FeatureSets, keys: list[bytes]) -> None:
        for part in self._parts(len(slots)):
            memory = self._train(feature_sets[part], keys[part])
            self._memory[slots[part]] = memory
            self._write_bits(slots[part], feature_sets[part], memory)
        self._register(slots, keys)

    def _register(self, slots: NDArray[np.int64], keys: list[bytes]) -> None:
        # Only after everything is computed: an interrupt may lose sets, but leaves no wrong bits.
        self._last_use[slots] = self._clock
        self._slot_of.update(zip(keys, slots.tolist(), strict=True))
        del self._recycled[: len(slots)]

    def _train(self, feature_sets: FeatureSets, keys: list[bytes]) -> NDArray[Any]:
        """Train sets; with a store, only those that it lacks, a few at a time so that little is ever lost."""
        store = self._disk
        if store is None:
            self.n_trained += len(keys)
            return self._trainer.train(feature_sets)
        dtype = self._trainer.memory_dtype
        memory = np.empty(len(keys), dtype=dtype)
        known = store.trained(keys)
        for i, key in enumerate(keys):
            if key in known:
                number, remembered = known[key]
                memory[i] = np.frombuffer(remembered, dtype=dtype)[0]
                self.n_trained = max(self.n_trained, number + 1)  # sets have the numbers of an uninterrupted run
        new = np.array([i for i, key in enumerate(keys) if key not in known], dtype=np.intp)
        step = 16
        while new.size:
            began = monotonic()
            part, new = new[:step], new[step:]
            memory[part] = self._trainer.train(feature_sets[part])
            store.add_trained([(keys[i], self.n_trained + n, memory[i].tobytes()) for n, i in enumerate(part)])
            self.n_trained += part.size
            step *= 2 if monotonic() - began < _SECONDS else 1
        return memory

    def _write_bits(self, slots: NDArray[np.int64], feature_sets: FeatureSets, memory: NDArray[Any]) -> None:
        outcomes = self._trainer.outcomes(feature_sets, memory)
        for stage in range(self.n_rules):
            rows = slots * self.n_rules + stage
            self.confident[rows], self.right[rows] = to_bits(outcomes, self._y, self._rule, stage)
            for bit in range(self.labels.shape[1]):
                has_bit = bitset.pack((outcomes.label >> bit) & 1 == 1)
                self.labels[rows, bit] = has_bit & self.confident[rows]

    def _parts(self, n_sets: int) -> list[slice]:
        step = sets_at_once(self._y.size)
        return [slice(i, i + step) for i in range(0, n_sets, step)]


def _keys(feature_sets: FeatureSets) -> list[bytes]:
    packed = np.packbits(feature_sets, axis=1)
    keys: list[bytes] = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0].tolist()
    return keys


def to_bits(
    outcomes: StageOutcomes, y: NDArray[np.int64], threshold: Threshold, stage: int = 0
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return packed bits: samples for which each set is confident at a stage, and confident and correct."""
    confident = as_rule(threshold).confident(outcomes.confidence, outcomes.label, stage)
    return bitset.pack(confident), bitset.pack(confident & (outcomes.label == y))


def sets_at_once(n_samples: int) -> int:
    """Return the number of sets whose confidences fit into one block."""
    return max(_BLOCK_CELLS // n_samples, 1)
