"""One small cluster for all tests of a process: two workers of two threads, as processes."""

import logging
import os

import pytest

from tests.service.test_server import loopback


def need_loopback():
    if not loopback():
        assert not os.environ.get("EMSCO_REQUIRE_ALL"), "127.0.0.1 cannot be reached."
        pytest.skip("127.0.0.1 cannot be reached, which a cluster needs")


@pytest.fixture(scope="session")
def client():
    need_loopback()
    import dask
    from distributed import Client, LocalCluster

    quiet = {"distributed.scheduler.worker-ttl": "10s", "distributed.scheduler.unknown-task-duration": "50ms"}
    with dask.config.set(quiet):
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=2, host="127.0.0.1", dashboard_address=":0", silence_logs=logging.CRITICAL
        )
        with cluster, Client(cluster, set_as_default=False) as client:
            yield client
