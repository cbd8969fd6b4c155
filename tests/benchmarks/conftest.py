"""Benchmarks without a process for each method."""

import pytest

from benchmarks.beyond import measuring as beyond
from benchmarks.streams import measuring as streams


class NoProcess:
    """A ``Process`` that is none: it saves the seconds that one takes to start."""

    def __init__(self, timeout=0.0):
        pass

    def make(self, kind, *arguments):
        self._made = kind(*arguments)
        return self

    def call(self, method, *arguments):
        return getattr(self._made, method)(*arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture
def start_no_more(monkeypatch):
    """Return what makes methods run in this process from now on."""

    def patch():
        for module in (beyond, streams):
            monkeypatch.setattr(module, "Process", NoProcess)

    return patch
