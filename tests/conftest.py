"""What pytest sets up for all tests."""

import gc

import pytest
from hypothesis import settings
from real_data import real

settings.register_profile("cbrank", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("cbrank")


def pytest_collection_finish():
    """Let no garbage collection look again at thousands of tests, which stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def german():
    return real("german", scaling="standard")
