"""A little of what ``python tests/tools/kill_rounds.py --rounds 500`` does at length."""

import os
import random

import pytest
from forks import servers
from kill_rounds import Scene, learned, make_data, make_model, settings

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork"),
]


@pytest.fixture(scope="module")
def ready():
    with servers(settings()[:2]) as started:
        yield started


@pytest.fixture(scope="module")
def data(tmp_path_factory, ready):
    folder = tmp_path_factory.mktemp("data")
    make_data(folder, rows=6000)
    make_model(folder, ready[0])
    return folder


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("train", "table"),
        ("train", "passes"),
        ("train", "columns"),
        ("train", "columns-pipe"),
        ("train", "skipping"),
        ("train", "curves"),
        ("train", "members"),
        ("train", "pipe"),
        ("train", "parquet"),
        ("train", "wide-forgetting"),
        ("update", "in-place"),
    ],
)
def test_killed_at_any_moment_and_resumed_gives_the_model_of_a_run_never_killed(
    data, ready, command, name
):
    Scene(data, command, name, ready[0]).round(random.Random(name), kills=2, ready=ready)


def test_a_pipe_gives_the_model_of_the_file(data, ready):
    scenes = [Scene(data, "train", name, ready[0]) for name in ("skipping", "pipe")]
    assert learned(scenes[0]) == learned(scenes[1])
