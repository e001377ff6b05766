"""Kernels, and the parts that they are made of."""

import numpy as np

from emsco._compile import inlined, kernel, part


@part()
def add_one(values, n):
    for i in range(n):
        values[i] += 1.0


@inlined
def doubled(value):
    return 2.0 * value


@kernel()
def change(values):
    add_one(values, values.size)
    values[0] = doubled(values[0])


def test_a_kernel_is_made_of_parts():
    values = np.zeros(3)
    change(values)
    assert values.tolist() == [2.0, 1.0, 1.0]
    assert len(change.signatures) == 1


def test_a_part_called_from_python_is_plain_python():
    values = np.zeros(2)
    add_one(values, 1)
    assert values.tolist() == [1.0, 0.0]
    assert not hasattr(add_one, "signatures")  # nothing of it was compiled apart
