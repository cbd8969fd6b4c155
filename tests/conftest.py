"""What pytest sets up for all tests."""

import pytest
from hypothesis import settings
from real_data import real

settings.register_profile("cbrank", deadline=None, max_examples=30, derandomize=True)
settings.load_profile("cbrank")


@pytest.fixture
def german():
    return real("german", scaling="standard")
