"""What pytest sets up for all tests."""

import functools
import gc
import inspect

import pytest
from click.testing import CliRunner
from hypothesis import settings
from real_data import real

settings.register_profile("cbrank", deadline=None, max_examples=40, derandomize=True)
settings.load_profile("cbrank")

if "mix_stderr" in inspect.signature(CliRunner).parameters:  # click before 8.2 mixes it by default
    separate = functools.partialmethod(CliRunner.__init__, mix_stderr=False)
    CliRunner.__init__ = separate  # type: ignore[method-assign, assignment]


def pytest_collection_finish():
    """Let no garbage collection look again at thousands of tests, which stay to the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def german():
    return real("german", scaling="standard")
