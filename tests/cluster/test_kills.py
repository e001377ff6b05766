"""Searches whose workers are killed and stopped end alike; the benchmark does it 50 times."""

import pytest

from benchmarks import cluster
from tests.cluster.conftest import need_loopback


@pytest.mark.slow
def test_killed_and_stopped_workers_change_nothing():
    need_loopback()
    assert cluster.main(["kills", "--runs", "2", "--rows", "300"]) == 0


def test_simulated_workers_take_what_they_must():
    assert cluster.makespan([1.0, 1.0, 1.0, 1.0], 1, 0.0) == 4.0
    assert cluster.makespan([1.0, 1.0, 1.0, 1.0], 2, 0.0) == 2.0
    assert cluster.makespan([3.0, 1.0, 1.0, 1.0], 1024, 0.0) == 3.0
    assert cluster.makespan([1.0] * 8, 1024, 0.5) == 4.5
