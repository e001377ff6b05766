"""Kernel: what designs that label everybody gain and lose against another classifier, at many exit thresholds."""

from typing import Any

from emsco._compile import kernel

Array = Any


@kernel()
def walk_against(
    slots: Array,
    n_stages: Array,
    confidence: Array,
    right: Array,
    other: Array,
    truth: Array,
    fold: Array,
    exits: Array,
    left: Array,
    lost: Array,
    gained: Array,
) -> None:
    """Send all samples through each design at each exit threshold; whoever is left gets the label of the last stage.

    ``slots[d, j]`` is the row of ``confidence`` and ``right`` that belongs to stage j of design d; ``other`` says which
    samples the other classifier labels correctly; ``exits`` ascend. Adds to ``left[d, e, f, j]``, the samples of fold f
    that leave at stage j, and to ``lost`` and ``gained[d, e, f, c]``, those of class c that only the other one, or only
    the design, labels correctly.
    """
    for d in range(slots.shape[0]):
        last = n_stages[d] - 1
        for i in range(truth.size):
            j, f, was = 0, fold[i], other[i]
            for e in range(exits.size):  # whoever stays at a threshold stays at all higher ones
                while j < last and confidence[slots[d, j], i] < exits[e]:
                    j += 1
                left[d, e, f, j] += 1
                hit = right[slots[d, j], i]
                if was and not hit:
                    lost[d, e, f, truth[i]] += 1
                elif hit and not was:
                    gained[d, e, f, truth[i]] += 1
