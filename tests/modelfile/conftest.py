"""What the tests of model files share."""

import pytest
from forgery import bytes_of, small_models


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.cbrank"


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """A small file of every kind."""
    folder = tmp_path_factory.mktemp("files")
    return {name: bytes_of(model, folder) for name, model in small_models()}
