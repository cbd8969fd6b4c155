"""A cluster of two worker processes for all tests of this folder."""

import pytest


@pytest.fixture(scope="package")
def client():
    from dask.distributed import Client, LocalCluster  # noqa: PLC0415

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client
