"""What tests of the service share."""

import pytest
from served import Launcher


@pytest.fixture(scope="session")
def launcher():
    """A process that forks servers: they start at once."""
    with Launcher() as launcher:
        yield launcher
