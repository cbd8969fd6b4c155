"""A benchmark's folder: ``bench.json`` with all that was measured, and ``results.csv``.

``results.csv`` has a line for each peer and workload.
"""

import csv
import io
import json
import math
import subprocess
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.interleaved import Chunk, Result, cost_ratio, time_ratio
from benchmarks.roofline import Limits, work
from benchmarks.workloads import WORKLOADS, Workload
from cbrank.atomic import atomic_write_text
from cbrank.provenance import LIBRARIES, machine, now, versions

PLAIN, FAST = "Plain loop 50", "CBR 50, no averaging"
"""The plain loop, and CBR set to do the same."""
PLAIN_10, FAST_10 = "Plain loop 10", "CBR 10, no averaging"

_PEERS = ("river", "vowpalwabbit", "lightgbm", "interpret-core", "torch", "libauc")


class ResultsFolder:
    """The files of a benchmark, which are written as measurements end.

    Parameters
    ----------
    path : Path
        The folder; it need not exist yet.

    Raises
    ------
    ValueError
        If ``bench.json`` there is something else.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts: dict[str, Any] = _read(path / "bench.json")

    def start(self, settings: dict[str, Any], command: str) -> None:
        """Go on with measurements of the same settings, or begin.

        Raises
        ------
        ValueError
            If those in the folder are of other settings.
        """
        if self.facts and self.facts["settings"] != settings:
            raise ValueError(
                f"{self.path} holds a benchmark of other settings: repeat its options or give "
                "another --out to keep it, or --fresh to start anew."
            )
        self.path.mkdir(parents=True, exist_ok=True)
        self.facts = {
            "command": command,
            "settings": settings,
            **circumstances(),
            "commit": commit(),
            "started": self.facts.get("started", now()),
            "finished": None,
            "measurements": self.facts.get("measurements", {}),
        }

    def add(self, name: str, measured: Any) -> None:
        """Keep what a measurement returned."""
        self.facts["measurements"][name] = for_json(measured)
        self._write()

    def finish(self) -> None:
        """Note the end and write ``results.csv``."""
        self.facts["finished"] = now()
        self._write()
        columns = [field.name for field in fields(Result) if field.name != "chunks"]
        file = io.StringIO()
        table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(for_json(asdict(result)) for result in self.results())
        atomic_write_text(self.path / "results.csv", file.getvalue())

    def results(self) -> list[Result]:
        """Return what was measured of each peer on each workload."""
        found = self.facts["measurements"].values()
        lines = [line for measured in found if isinstance(measured, list) for line in measured]
        return [_result(line) for line in lines if "workload" in line]

    def measured(self, name: str) -> Any:
        """Return what a measurement returned, or None if it is not there or failed."""
        return None if name in self.failures() else self.facts["measurements"].get(name)

    def failures(self) -> dict[str, str]:
        """Return why measurements failed, by name."""
        found = self.facts["measurements"].items()
        return {name: value["failed"] for name, value in found if "failed" in value}

    def _write(self) -> None:
        atomic_write_text(self.path / "bench.json", json.dumps(self.facts) + "\n")


def circumstances() -> dict[str, Any]:
    """Return the versions of what is compared, and the machine."""
    peers = {name: found for name in _PEERS if (found := _version(name))}
    return {"versions": versions(LIBRARIES) | peers, "machine": machine()}


def commit() -> str:
    """Return the commit that is checked out, marked if files differ from it; empty without Git."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(
            asked, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        facts = dict(json.loads(path.read_text(encoding="utf-8")))
        if facts.keys() >= {"settings", "measurements"}:
            return facts
    except ValueError:
        pass
    raise ValueError(f"{path} is not a benchmark's: remove it or use --fresh.")


def for_json(value: Any) -> Any:
    """Return a value with NaN, which JSON does not know, as None."""
    if isinstance(value, dict):
        return {name: for_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [for_json(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _result(line: dict[str, Any]) -> Result:
    known: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in line.items()
    }
    known["chunks"] = [[Chunk(*chunk) for chunk in chunks] for chunks in line["chunks"]]
    return Result(**known)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


class Results:
    """What was measured, as targets, tables and figures ask for it; NaN where it was not.

    Parameters
    ----------
    folder : ResultsFolder
        A benchmark's folder.
    """

    def __init__(self, folder: ResultsFolder) -> None:
        self.folder = folder
        self._results = {(r.workload, r.peer): r for r in folder.results()}

    def workloads(self, *groups: str) -> list[Workload]:
        """Return the workloads of groups that were measured, a group after the other."""
        return [w for group in groups for w in WORKLOADS if w.group == group and self.of(w.name)]

    def of(self, workload: str) -> list[Result]:
        """Return all results of a workload."""
        return [result for (name, _), result in self._results.items() if name == workload]

    def ok(self, workload: str, peer: str) -> Result | None:
        """Return the result of a peer that ran."""
        result = self._results.get((workload, peer))
        return result if result and result.status == "ok" else None

    def cost_ratio(self, workload: str, peer: str, other: str) -> float:
        """Return the cost of a peer divided by that of another."""
        one, two = self.ok(workload, peer), self.ok(workload, other)
        return cost_ratio(one, two) if one and two else math.nan

    def auc(self, workload: str, peer: str) -> float:
        """Return an AUC."""
        result = self.ok(workload, peer)
        return result.auc if result else math.nan

    def time_ratio(self, workload: str, peer: str, other: str) -> float:
        """Return the time of a whole stream of a peer divided by that of another."""
        one, two = self.ok(workload, peer), self.ok(workload, other)
        return time_ratio(one, two) if one and two else math.nan

    def pair_cost(self, workload: str) -> float:
        """Return the time of a pair of diagonal CBR divided by that of an example of SGD.

        Both learn from all rows in one call.
        """
        ours = self.ok(workload, "CBR-diag 50, one call")
        theirs = self.ok(workload, "SGD, one call")
        if not ours or not theirs:
            return math.nan
        chunks = zip(ours.timed_chunks, theirs.timed_chunks, strict=True)
        return median(
            (one.seconds / one.pairs) / (other.seconds / other.rows) for one, other in chunks
        )

    def rate(self, workload: str, peer: str, of: str) -> float:
        """Return the operations a second of the sweep, counted as if it were CBR's.

        The plain loop does more than is counted, as it makes a product with Sigma for each pair.

        Parameters
        ----------
        workload, peer : str
            Their names; the peer is a sweep, whose name tells how many rows are buffered.
        of : str
            The peer that counted the pairs that fired on the same rows.
        """
        result, counted = self.ok(workload, peer), self.ok(workload, of)
        if not result or not counted:
            return math.nan
        d, M = int(result.features), _buffered(peer)
        return median(
            work(d, M, chunk.rows, round(chunk.rows * other.updates / other.rows)).operations
            / chunk.seconds
            for chunk, other in zip(result.timed_chunks, counted.timed_chunks, strict=True)
        )

    def limits(self) -> Limits | None:
        """Return the machine's limits, None if they were not measured."""
        measured = self.folder.measured("limits")
        return Limits(measured) if measured else None

    def matrix_share(self, workload: str, peer: str = FAST) -> float:
        """Return CBR's operations per second divided by those of a matrix product."""
        result = self.ok(workload, peer)
        if not result:
            return math.nan
        d, M = int(result.features), _buffered(peer)
        return median(
            work(d, M, chunk.rows, chunk.updates).operations / chunk.seconds / chunk.rate
            for chunk in result.timed_chunks
        )

    def attained_share(self, workload: str, peer: str = FAST) -> float:
        """Return the least time that the machine allows CBR's sweep, divided by what it takes."""
        result, limits = self.ok(workload, peer), self.limits()
        if not result or not limits:
            return math.nan
        d, M = int(result.features), _buffered(peer)
        return median(
            limits.least_seconds(d, work(d, M, chunk.rows, chunk.updates), chunk.rate)
            / chunk.seconds
            for chunk in result.timed_chunks
        )

    def lines(self, measurement: str, **wanted: str) -> list[dict[str, Any]]:
        """Return the lines of a measurement that is none of workloads, of some kind."""
        found: list[dict[str, Any]] = self.folder.measured(measurement) or []
        return [line for line in found if all(line[name] == it for name, it in wanted.items())]

    def single_ratio(self, caller: str, kind: str) -> float:
        """Return the time of a call with one row divided by that of River's regression."""
        ours, theirs = (
            self.lines("single-rows", caller=name, kind=kind) for name in (caller, "River LR")
        )
        return float(ours[0]["cost"] / theirs[0]["cost"]) if ours and theirs else math.nan

    def line_ratio(self, measurement: str, one: dict[str, str], other: dict[str, str]) -> float:
        """Return the cost of one line divided by that of another, the median over rounds."""
        ours, theirs = self.lines(measurement, **one), self.lines(measurement, **other)
        if not ours or not theirs:
            return math.nan
        rounds = zip(ours[0]["costs"], theirs[0]["costs"], strict=True)
        return float(median(ours / theirs for ours, theirs in rounds))

    def fit_memory(self, kind: str) -> float:
        """Return the memory of a fit divided by the size of the caller's matrix."""
        memory: dict[str, Any] = (self.folder.measured("memory") or {}).get(kind, {})
        return max(memory["fit"], memory["partial_fit"]) / memory["matrix"] if memory else math.nan

    def selection_time(self) -> float:
        """Return the time of cross-validation divided by that of its fits shared by all cores."""
        return float((self.folder.measured("selection") or {}).get("share", math.nan))


def _buffered(peer: str) -> int:
    """Return the rows buffered of each class, which a peer's name tells."""
    return next(int(word) for word in peer.replace(",", "").split() if word.isdigit())
