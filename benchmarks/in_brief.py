"""In brief, what commands of their own measure in depth: streams in time, curves, the service."""

import subprocess
import tempfile
from contextlib import ExitStack
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.beyond import measuring as beyond
from benchmarks.beyond.methods import METHODS as FITTED
from benchmarks.processes import Process, ProcessFailed
from benchmarks.streams import measuring as in_time
from benchmarks.streams.learners import METHODS as FORETELLING

_STREAMS = ("elec", "weather")
_FORETELLING = ("cbr-row", "cbr", "river-lr", "vw")
_TABLE = "adult"
_FITTED = ("curves", "lightgbm", "river-arf", "vw-pairs")
_SERVED = "german-lines"
_SERVICE = ("msgspec", "httptools", "starlette", "uvicorn", "prometheus_client")


# Streams in time ----------------------------------------------------------------------------------


def streams(seed: int, quick: bool) -> list[dict[str, Any]]:  # noqa: ARG001
    """Measure AUC and time on streams, row by row as `python -m benchmarks.streams` does."""
    wanted = [stream for stream in in_time.STREAMS if stream.name in _STREAMS]
    if absent := [reason for stream in wanted if (reason := stream.missing())]:
        raise ProcessFailed(absent[0])
    lines = []
    for stream in wanted:
        X, y = stream.load()
        most = 4 * in_time.WINDOW if quick else len(y)
        lines += _foretold(stream.name, X[:most], y[:most])
    return lines


def _foretold(stream: str, X: Any, y: Any) -> list[dict[str, Any]]:
    """Let methods predict and learn a stream, one after the other in each window."""
    methods = {m.name: m for m in FORETELLING if m.name in _FORETELLING and not m.missing()}
    told: dict[str, list[Any]] = {name: [] for name in methods}
    costs: dict[str, list[float]] = {name: [] for name in methods}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(Process()).make(in_time.Run, method.make, X, y)
            for name, method in methods.items()
        }
        for process in processes.values():
            process.call("warm_up")
        for begin in range(0, len(y), in_time.WINDOW):
            end = min(begin + in_time.WINDOW, len(y))
            for name, process in processes.items():
                part, seconds = process.call("go_on", begin, end)
                told[name].append(part)
                costs[name].append(1e6 * seconds / (end - begin))
    lines = []
    for name, method in methods.items():
        measured = in_time.measures(y, np.concatenate(told[name]))
        kept = {key: measured[key] for key in ("auc", "window_auc")}
        line = {"stream": stream, "rows": len(y), "method": name, "title": method.title}
        lines.append(line | kept | {"cost": median(costs[name]), "costs": costs[name]})
    return lines


# Curves -------------------------------------------------------------------------------------------


def curves(seed: int, quick: bool) -> list[dict[str, Any]]:
    """Measure `AdditiveRanker` and others on a table, as `python -m benchmarks.beyond` does."""
    data = next(data for data in beyond.DATA if data.name == _TABLE)
    if missing := data.missing():
        raise ProcessFailed(missing)
    data = replace(data, most=2000 if quick else 12_500)
    loaded = data.load()
    train, test = data.split(len(loaded.y), seed)
    methods = [method for method in FITTED if method.name in _FITTED and not method.missing()]
    taken: dict[str, list[list[float]]] = {method.name: [] for method in methods}
    with ExitStack() as stack:
        trials = []
        for method in methods:
            X, y = (loaded.as_read if method.as_read else loaded.by_hand).iloc, loaded.y
            process = stack.enter_context(Process()).make(beyond.Trial, method.make)
            few = train[: method.warm_up]
            process.call("warm_up", X[few], y[few])
            trials.append((method.name, process, (X[train], y[train], X[test], y[test])))
        for _ in range(1 if quick else 2):
            for name, process, rows in trials:
                taken[name].append(process.call("measure", *rows))
    return [_fitted(method, len(train), taken[method.name]) for method in methods]


def _fitted(method: Any, rows: int, taken: list[list[float]]) -> dict[str, Any]:
    costs = [1e6 * seconds / rows for _, _, seconds, _ in taken]
    line = {"table": _TABLE, "rows": rows, "method": method.name, "title": method.title}
    return line | {"auc": taken[0][0], "cost": median(costs), "costs": costs}


# The service --------------------------------------------------------------------------------------


def service(seed: int, quick: bool) -> list[dict[str, Any]]:  # noqa: ARG001
    """Measure `cbrank serve` beside an echo, as `python -m benchmarks.serving` does."""
    if absent := [name for name in _SERVICE if find_spec(name) is None]:
        raise ProcessFailed(f"no {absent[0]}: pip install 'cbrank[serve]'")
    try:
        with tempfile.TemporaryDirectory() as folder:
            return _served(Path(folder), *((1, 0.5) if quick else (3, 2.0)))
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        raise ProcessFailed(str(error)) from error


def _served(folder: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    from benchmarks.serving import servers  # noqa: PLC0415
    from benchmarks.serving.measuring import Bench  # noqa: PLC0415

    data = next(data for data in servers.DATA if data.name == _SERVED)
    model, rows = data.train(folder)
    store = folder / "served.store"
    with servers.serve(model, store) as server, servers.echo(folder) as echo:
        bench = Bench(server, echo, model, rows, data.label, seconds)
        bench.warm_up()
        kinds = {"score": bench.single, "durable learn": bench.learning}
        return [
            {"model": data.text, "request": name, "pairs": pairs}
            for name, kind in kinds.items()
            for pairs in [[bench.beside_echo(kind) for _ in range(rounds)]]
        ]
