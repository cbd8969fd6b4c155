"""A little of what ``python tests/kill_rounds.py --rounds 40`` does at length."""

import random

import pytest
from kill_rounds import TRAIN, UPDATE, Scene, make_data


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, rows=25_000)
    return folder


@pytest.mark.parametrize(
    ("command", "arguments"), [("train", TRAIN["table"]), ("update", UPDATE["in-place"])]
)
def test_killed_at_any_moment_and_resumed_gives_the_model_of_a_run_never_killed(
    data, command, arguments
):
    scene = Scene(data, command, arguments)
    scene.round(random.Random(command), kills=2)
