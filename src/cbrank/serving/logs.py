"""Logs: one line for each event, as JSON, or as text on a terminal.

An event is a message without arguments, and its facts are in `extra`:
``log.info("serving", extra={"facts": {"url": url}})``. Bodies, ids and tokens are never among them. Of
an exception, its type and where it was raised are logged and not its words, which may hold what came
in a request.
"""

import json
import logging
import math
import sys
import traceback
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

_OURS = "cbrank"
_TAKEN = ("time", "level", "event")
_FRAMES = 8  # of a traceback: enough to find the line
_LONGEST = 200  # characters of what other packages say

_log = logging.getLogger("cbrank.serving")


def begin(stream: TextIO | None = None) -> None:
    """Log to standard error from now on: JSON in lines, or text if it is a terminal.

    Of other packages only warnings and errors are logged, of uvicorn only errors.

    Parameters
    ----------
    stream : file, optional
        Where lines go instead.
    """
    stream = stream or sys.stderr
    handler = _Handler(stream)
    handler.setFormatter(Text() if stream.isatty() else Lines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(_OURS).setLevel(logging.INFO)
    # It warns of each request that is no HTTP: strangers could fill the disk.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)


def request(
    method: str, path: str, status: int, seconds: float, rows: int | None, who: str
) -> None:
    """Log a request, by its path as the table of rules has it.

    Parameters
    ----------
    method, path : str
        What was asked.
    status : int
        Of the answer; 0 if there was none.
    seconds : float
        Until the answer was given.
    rows : int or None
        Rows of the request.
    who : str
        The name of the token.
    """
    facts = {"method": method, "path": path, "status": status, "ms": round(1000 * seconds, 3)}
    if rows is not None:
        facts["rows"] = rows
    if who:
        facts["token"] = who
    _log.info("request", extra={"facts": facts})


class _Handler(logging.StreamHandler[TextIO]):
    """A handler that does without a line rather than stop the service."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Go on: the place that could be told of it is the one that fails."""


class Lines(logging.Formatter):
    """Events as JSON objects, one a line.

    Examples
    --------
    >>> record = logging.LogRecord("cbrank", logging.INFO, "", 0, "serving", None, None)
    >>> record.created, record.facts = 0.0, {"url": "http://[::1]:8000"}
    >>> Lines().format(record)
    '{"time": "1970-01-01T00:00:00.000Z", "level": "info", "event": "serving", "url": "http://[::1]:8000"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; in JSON of ASCII alone, no text can end it or begin another."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {"time": when.replace("+00:00", "Z"), "level": record.levelname.lower()}
        return json.dumps({**head, **_facts(record)}, default=str)


class Text(logging.Formatter):
    r"""Events in words, one a line.

    Examples
    --------
    >>> record = logging.LogRecord("cbrank", logging.WARNING, "", 0, "reloaded", None, None)
    >>> record.facts = {"file": "tokens", "reason": "line 3:\nforged"}
    >>> Text().format(record)[9:]
    'WARNING reloaded file=tokens reason="line 3:\\nforged"'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; what could end it, or move the cursor, is written as in JSON."""
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        level = "" if record.levelno == logging.INFO else f"{record.levelname} "
        facts = _facts(record)
        event = facts.pop("event")
        return f"{time} {level}{event}" + "".join(f" {k}={_word(v)}" for k, v in facts.items())


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    """Return the event of a record and its facts."""
    if record.name.partition(".")[0] == _OURS:
        given = getattr(record, "facts", {}).items()
        facts = {"event": record.getMessage()} | {k: v for k, v in given if k not in _TAKEN}
    else:  # the first line, before its arguments are put in: they may hold what came in a request
        said = str(record.msg).partition("\n")[0][:_LONGEST]
        facts = {"event": said if said.isprintable() else ascii(said), "by": record.name}
    if record.exc_info:
        kind, _, trace = record.exc_info
        facts |= {"error": kind.__name__ if kind else "", "at": _places(trace)}
    return {name: _finite(value) for name, value in facts.items()}


def _places(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)[-_FRAMES:]
    return [f"{Path(each.filename).name}:{each.lineno} {each.name}" for each in frames]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _word(value: Any) -> str:
    if isinstance(value, str) and value.isprintable() and value and not {*' "='} & {*value}:
        return value
    return json.dumps(value, default=str)
