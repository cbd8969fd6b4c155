"""What a process of the benchmark may be asked for, and what may go wrong there."""

import os

import numpy as np  # noqa: F401  (brings the library whose threads are counted)
from threadpoolctl import threadpool_info


class Trouble:
    def threads(self):
        return {library["num_threads"] for library in threadpool_info()}

    def fail(self):
        raise ImportError("no such name\nin two lines (/some/where/__init__.py)")

    def leave(self):
        os._exit(3)
