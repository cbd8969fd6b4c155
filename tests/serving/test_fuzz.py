"""A little of what ``python tests/tools/fuzz_server.py --count 100000`` does at length."""

from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from fuzz_server import OPTIONS, Range, fuzz
from served import Server
from served_clients import make_model

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this is no Linux"),
]


def test_broken_requests_are_refused_in_a_sentence_and_change_nothing(launcher, tmp_path):
    model = make_model(tmp_path, rows=600)
    with Server(launcher, model, tmp_path / "store", *OPTIONS) as server:
        target = Range(server.wait_ready(), model.stem, tmp_path)
        assert fuzz(target, seed=0, count=1500) >= 1500
        server.wait_ready()
    assert {200, 400, 404, 405, 409, 413} <= target.statuses.keys()
