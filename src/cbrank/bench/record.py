"""``bench.json``: all that was measured and how; ``results.csv``: a line for each peer and workload."""

import csv
import io
import json
import math
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from cbrank.atomic import atomic_write_text
from cbrank.bench.race import Result
from cbrank.bench.worker import Turn
from cbrank.provenance import LIBRARIES, machine, now, versions

_PEERS = ("river", "vowpalwabbit", "torch", "libauc")


class Record:
    """A benchmark's folder, which fills as measurements end.

    Parameters
    ----------
    folder : Path
        Where the files are; it need not exist yet.

    Raises
    ------
    ValueError
        If there is something else.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "bench.json"
        self.facts: dict[str, Any] = _read(self.path)

    def start(self, settings: dict[str, Any], command: str) -> None:
        """Go on with measurements of the same settings, or begin.

        Raises
        ------
        ValueError
            If those in the folder are of other settings.
        """
        if self.facts and self.facts["settings"] != settings:
            raise ValueError(
                f"{self.folder} holds a benchmark of other settings: repeat its options or give "
                "another --out to keep it, or --fresh to start anew."
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        peers = {name: found for name in _PEERS if (found := _version(name))}
        self.facts = {
            "command": command,
            "settings": settings,
            "versions": versions(LIBRARIES) | peers,
            "machine": machine(),
            "started": self.facts.get("started", now()),
            "finished": None,
            "steps": self.facts.get("steps", {}),
        }

    def add(self, step: str, measured: Any) -> None:
        """Keep what a step has measured."""
        self.facts["steps"][step] = _plain(measured)
        self._write()

    def finish(self) -> None:
        """Note the end and write the table."""
        self.facts["finished"] = now()
        self._write()
        columns = [field.name for field in fields(Result) if field.name != "turns"]
        file = io.StringIO()
        table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        table.writeheader()
        table.writerows(_plain(asdict(result)) for result in self.results())
        atomic_write_text(self.folder / "results.csv", file.getvalue())

    def results(self) -> list[Result]:
        """Return what is known of each peer on each workload."""
        races = [step for step in self.facts["steps"].values() if isinstance(step, list)]
        return [_result(line) for lines in races for line in lines if "workload" in line]

    def step(self, name: str) -> Any:
        """Return what a step has measured, or None if it has not or failed."""
        return None if name in self.failures() else self.facts["steps"].get(name)

    def failures(self) -> dict[str, str]:
        """Return why steps failed."""
        steps = self.facts["steps"].items()
        return {name: step["failed"] for name, step in steps if "failed" in step}

    def _write(self) -> None:
        atomic_write_text(self.path, json.dumps(self.facts) + "\n")


def _read(path: Path) -> dict[str, Any]:
    if not path.exists():
        return {}
    try:
        facts = dict(json.loads(path.read_text(encoding="utf-8")))
        if facts.keys() >= {"settings", "steps"}:
            return facts
    except ValueError:
        pass
    raise ValueError(f"{path} is not a benchmark's: remove it or use --fresh.")


def _plain(value: Any) -> Any:
    """Return what JSON can hold: no number is null."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _result(line: dict[str, Any]) -> Result:
    known: dict[str, Any] = {
        name: math.nan if value is None else value for name, value in line.items()
    }
    known["turns"] = [[Turn(*turn) for turn in turns] for turns in line["turns"]]
    return Result(**known)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
