"""A little of what ``python tests/tools/serve_kills.py --rounds 200 --fault all`` does at length."""

from pathlib import Path

import pytest

pytest.importorskip("uvicorn")

from serve_faults import FAULTS
from serve_kills import kill_rounds

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="this is no Linux"),
]


def test_nothing_acknowledged_is_lost_or_learned_twice_by_kills(launcher):
    assert kill_rounds(launcher, rounds=4, seed=1) >= 4


@pytest.mark.parametrize("fault", sorted({*FAULTS} - {"sync"}))  # which needs a compiler
def test_nor_is_it_by(fault, launcher):
    FAULTS[fault](launcher, 1, seed=1)
