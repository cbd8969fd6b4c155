"""Print how many files and functions of the package each of seven walks passes through.

``python tests/tools/walks.py`` follows `partial_fit` to its kernel (of `CBRanker` with a number for C and
with C="auto", of `AdditiveRanker`), ``cbrank train`` to the model file, a label from ``POST /learn`` to the
model, ``cbrank reproduce`` to its report, and `DaskRanker.fit`, each in a process that has compiled and
imported what it needs, and counts what Python calls of cbrank on the way, and how often it comes back to
a file that it has left.
"""

import argparse
import collections
import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import FrameType
from typing import Any, Self

import cbrank

PACKAGE = str(Path(cbrank.__file__).parent)


class Steps:
    """The functions of the package that were called, by file."""

    def __init__(self, end: str | None = None) -> None:
        self.called: dict[str, set[str]] = collections.defaultdict(set)
        self.end = end  # the file at which the walk is over
        self.last, self.back = "", 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if self.end in self.called:
            return
        if event == "call" and code.co_filename.startswith(PACKAGE) and code.co_name != "<module>":
            file = os.path.relpath(code.co_filename, PACKAGE)
            self.back += file != self.last and file in self.called
            self.called[file].add(code.co_qualname)
            self.last = file

    def __enter__(self) -> Self:
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def report(self, name: str) -> None:
        functions = sum(map(len, self.called.values()))
        counts = f"{len(self.called)} files, {functions} functions, {self.back} times back"
        print(f"{name}: {counts}", flush=True)


def partial_fit() -> None:
    to_kernel(cbrank.CBRanker(C=0.1))


def auto() -> None:
    to_kernel(cbrank.CBRanker())


def table() -> None:
    to_kernel(cbrank.AdditiveRanker())


def to_kernel(ranker: Any) -> None:
    """From the second chunk on: the first compiles, and begins a stream."""
    X, y, _ = cbrank.datasets.load("german")
    ranker.partial_fit(X[:300], y[:300])
    with Steps("kernels/full.py") as steps:
        ranker.partial_fit(X[300:400], y[300:400])
    steps.report(f"{ranker}.partial_fit")


def train() -> None:
    from cbrank.cli import main  # noqa: PLC0415

    table = "age,clicked\n" + "".join(f"{age},{'yes' if age > 40 else 'no'}\n" for age in range(99))
    Path("clicks.csv").write_text(table)
    asked = ["train", "clicks.csv", "--label", "clicked", "-o", "clicks.model", "--quiet"]
    main(asked, standalone_mode=False)
    with Steps() as steps:
        main(asked, standalone_mode=False)
    steps.report("cbrank train")


def learn() -> None:
    import asyncio  # noqa: PLC0415

    from cbrank.serving.app import App  # noqa: PLC0415
    from cbrank.serving.guard import Guard  # noqa: PLC0415
    from cbrank.serving.limits import Limits  # noqa: PLC0415
    from cbrank.serving.service import Service  # noqa: PLC0415
    from cbrank.serving.writer import Settings  # noqa: PLC0415

    cbrank.save(cbrank.CBRanker().partial_fit([[0.0], [1.0]], [0, 1]), "clicks.model")
    body = b'{"rows": [{"1": 0.5, "label": 1}]}'
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/learn", "headers": headers}

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: Any) -> None:
        assert message.get("status", 200) == 200, message

    async def ask() -> None:
        service = Service.open(Path("clicks.model"), Path("clicks.store"), Settings())
        guard = Guard(App(service, Limits()), None, Limits(), service.counts)
        with Steps() as steps:
            service.start()
            await guard({**scope}, receive, send)
        steps.report("POST /learn")
        await service.close()

    asyncio.run(ask())


def reproduce() -> None:
    from cbrank.cli import main  # noqa: PLC0415

    asked = ["reproduce", "--quick", "--datasets", "glass", "--jobs", "1", "--out", "study"]
    with Steps() as steps:
        main(asked, standalone_mode=False)
    steps.report("cbrank reproduce")


def dask_fit() -> None:
    import dask.array as da  # noqa: PLC0415
    from distributed import Client  # noqa: PLC0415

    from cbrank.dask import DaskRanker  # noqa: PLC0415

    X, y, _ = cbrank.datasets.load("german")
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"
    ) as client:
        ranker = DaskRanker(cbrank.CBRanker(C=0.1), client=client)
        rows, labels = da.from_array(X, chunks=(250, -1)), da.from_array(y, chunks=250)
        with Steps() as steps:
            ranker.fit(rows, labels)
    steps.report("DaskRanker.fit")


_EVERY = partial_fit, auto, table, train, learn, reproduce, dask_fit
WALKS = {walk.__name__: walk for walk in _EVERY}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=WALKS)
    only = parser.parse_args().only
    if only:
        WALKS[only]()
        return
    for name in WALKS:
        with tempfile.TemporaryDirectory() as folder:
            asked = [sys.executable, __file__, "--only", name]
            subprocess.run(asked, cwd=folder, check=True, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
