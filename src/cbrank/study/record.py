"""``study.json``: how the numbers of a study came about."""

import json
import shlex
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cbrank.atomic import atomic_write_text
from cbrank.provenance import LIBRARIES, machine, now, versions
from cbrank.study.settings import Settings, StudyError


class Record:
    """``study.json`` of a study that may take several sessions.

    Parameters
    ----------
    path : Path
        The file; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.facts: dict[str, Any] = read_facts(path)
        self._before = float(self.facts.get("seconds", 0.0))
        self._started = time.monotonic()

    def check_settings(self, settings: Settings) -> None:
        """Refuse to go on with results of other settings."""
        before, now = self.facts.get("settings"), settings.as_json()
        if before is not None and before != now:
            changed = ", ".join(name for name in now if before.get(name) != now[name])
            raise StudyError(
                f"{self.path.parent} holds a study of other settings ({changed}): repeat "
                "them or give another `folder` to keep it, or `fresh=True` to start anew."
            )

    def start(self, command: Sequence[str], settings: Settings) -> None:
        """Note that a session begins."""
        self.facts = {
            "command": shlex.join(command),
            "settings": settings.as_json(),
            "versions": versions(LIBRARIES),
            "machine": machine(),
            "started": self.facts.get("started", now()),
            "finished": None,
            "sessions": self.facts.get("sessions", 0) + 1,
        }
        self.note_time()

    def note_time(self) -> None:
        """Note the seconds so far, those of earlier sessions included."""
        self.facts["seconds"] = round(self._before + time.monotonic() - self._started, 3)
        atomic_write_text(self.path, json.dumps(self.facts, indent=2) + "\n")

    def finish(self) -> None:
        """Note the end."""
        self.facts["finished"] = now()
        self.note_time()


def read_facts(path: Path) -> dict[str, Any]:
    """Read what was noted of a study; nothing if the file is not there."""
    if not path.exists():
        return {}
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
        return dict(facts)
    except ValueError as error:
        raise StudyError(f"{path} is damaged ({error}): remove it or use `fresh=True`.") from error
