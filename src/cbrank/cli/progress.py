"""How work goes on: notes and progress on standard error, the result on standard output."""

import json
import logging
import math
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click

from cbrank.cli.errors import in_flags

if TYPE_CHECKING:
    from cbrank.cli.column_file import Taken
    from cbrank.streams import Stream
    from cbrank.training import Run

_BAR = 6  # characters: the numbers beside the bar say more
_FIRST, _LONGEST = 2.0, 600.0  # seconds to the first line, and at most from one to the next

Task = TypeVar("Task")


def follow(label: str, done: Iterable[Task], amounts: Mapping[Task, float]) -> None:
    """Show tasks as they end, with the time that remains.

    Parameters
    ----------
    label : str
        What they are.
    done : iterable
        Yields each task as it ends.
    amounts : mapping of task to number
        How much work each is.
    """
    bar = click.progressbar(
        length=max(1, round(sum(amounts.values()))),
        label=label,
        file=sys.stderr,
        item_show_func=lambda task: str(task or ""),
    )
    with bar:
        for task in done:
            bar.update(round(amounts[task]), task)


# The numbers --------------------------------------------------------------------------------------


class Pace:
    """Rows, bytes, AUC and time of a run.

    Parameters
    ----------
    run : Run
        The run.
    clock : callable, optional
        Returns the time in seconds.
    """

    def __init__(self, run: "Run", clock: Callable[[], float] = time.monotonic) -> None:
        self.run, self.clock = run, clock
        self.began, self.rows_before = clock(), run.progress.rows
        self._first = None if run.progress.position else (self.began, 0)
        self._reported = run.progressive_auc()

    def seconds(self) -> float:
        """Return the seconds since the run began in this process."""
        return self.clock() - self.began

    def now(self, stream: "Stream") -> dict[str, Any]:
        """Return how far the run is, as `in_words` and ``--json`` show it."""
        from cbrank.training.run import auc_since  # noqa: PLC0415

        progress, measured = self.run.progress, self.run.progressive_auc()
        seconds, (read, total) = self.seconds(), self.run.bytes_read(stream)
        return {
            "rows": progress.rows,
            "positives": progress.positives,
            "pass": progress.passes + 1,
            "rows_per_second": round((progress.rows - self.rows_before) / max(seconds, 1e-9)),
            "bytes_read": read,
            "bytes_total": total,
            "progressive_auc": shown(measured[1]),
            "progressive_auc_interval": interval_of(self.run.model.ranker, measured[1]),
            "progressive_auc_since": shown(auc_since(self._reported, measured)[1]),
            "seconds": round(seconds, 3),
            "seconds_left": self._left(stream),
        }

    def reported(self) -> None:
        """Measure the AUC since the last report from here on."""
        self._reported = self.run.progressive_auc()

    def _left(self, stream: "Stream") -> float | None:
        """Return the seconds that remain, by the bytes read since the run was taken up."""
        read, total = self.run.bytes_read(stream)
        if total is None:
            return None
        self._first = self._first or (self.clock(), read)
        began, before = self._first
        if read <= before:
            return None
        speed = (self.clock() - began) / (read - before)
        return round(speed * (total - read), 3)


def shown(value: float) -> float | None:
    """Return a number as ``--json`` shows it, None if it is not known."""
    return None if value != value else round(value, 6)  # noqa: PLR0124


def interval_of(ranker: Any, auc: float) -> list[float | None]:
    """Return the interval of the progressive AUC of a stream; unknown if `auc` is of a part of it."""
    if not ranker.__sklearn_is_fitted__() or not math.isclose(
        auc, ranker.progressive_auc_, rel_tol=1e-9
    ):
        return [None, None]
    return [shown(end) for end in ranker.progressive_auc_interval_]


def in_words(facts: dict[str, Any], since: str = "since the last line") -> str:
    """Say how far a run is.

    Examples
    --------
    >>> in_words({"rows": 8192, "rows_per_second": 70123, "bytes_read": 2.1e6,
    ...           "bytes_total": 7.5e7, "progressive_auc": 0.81234,
    ...           "progressive_auc_interval": [0.8, 0.825],
    ...           "progressive_auc_since": None, "seconds_left": 83.4})
    '8,192 rows, 70,123 rows/s, AUC 0.8123 (0.8000 to 0.8250), 1:23 left, 2.1 of 75.0 MB'
    """
    parts = [f"{facts['rows']:,} rows", f"{facts['rows_per_second']:,} rows/s"]
    if facts["progressive_auc"] is not None:
        interval = _between(*facts["progressive_auc_interval"])
        parts.append(f"AUC {facts['progressive_auc']:.4f}{interval}")
    if facts["progressive_auc_since"] is not None:
        parts.append(f"{since} {facts['progressive_auc_since']:.4f}")
    if facts["seconds_left"] is not None:
        parts.append(f"{clock_time(facts['seconds_left'])} left")
    total = f" of {facts['bytes_total'] / 1e6:.1f}" if facts["bytes_total"] is not None else ""
    return ", ".join([*parts, f"{facts['bytes_read'] / 1e6:.1f}{total} MB"])


def clock_time(seconds: float) -> str:
    """Return seconds as minutes and seconds, and hours if there are some.

    Examples
    --------
    >>> clock_time(83.4), clock_time(7384)
    ('1:23', '2:03:04')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def result_in_words(facts: dict[str, Any]) -> str:
    """Say what a run has learned.

    Examples
    --------
    >>> print(result_in_words({
    ...     "rows": 6339, "positives": 1682, "positive": "Yes", "skipped": 0, "columns": 20, "features": 94,
    ...     "progressive_auc": 0.83412, "progressive_auc_interval": [0.82, 0.85],
    ...     "recent_auc": 0.84, "recent_auc_interval": [0.8, 0.88],
    ...     "model": "churn.model", "shuffled": True, "held_out": {"which": "random", "rows": 704, "positives": 187, "auc": 0.84,
    ...     "auc_low": 0.81, "auc_high": 0.87, "average_precision": 0.65}, "C": 0.5,
    ... }))
    Learned from 6,339 rows, shuffled, 1,682 of them positive (26.53%), labelled 'Yes', 20 columns as 94 features.
    AUC 0.8341 (0.8200 to 0.8500) on rows before they were learned from; on the last ones 0.8400 (0.8000 to 0.8800).
    AUC 0.8400 (0.8100 to 0.8700) on 704 random rows held out; average precision 0.6500.
    Model: churn.model
    """
    skipped, held, auc = facts["skipped"], facts.get("held_out"), facts["progressive_auc"]
    share = facts["positives"] / max(1, facts["rows"])
    lately = "" if facts["recent_auc"] is None else f"{facts['recent_auc']:.4f}"
    lately += _between(*facts["recent_auc_interval"])
    lines = [
        f"Learned from {facts['rows']:,} rows, {'shuffled' if facts['shuffled'] else 'in order'}, "
        f"{facts['positives']:,} of them positive ({share:.2%}), "
        f"labelled {facts['positive']!r}"
        + (f" ({skipped:,} malformed ones skipped)" if skipped else "")
        + ", "
        + _wide(facts)
    ]
    if auc is not None:
        lines.append(
            f"AUC {auc:.4f}{_between(*facts['progressive_auc_interval'])} on rows before they were "
            f"learned from{f'; on the last ones {lately}' if lately else ''}."
        )
    elif lately:
        lines.append(f"AUC {lately} on the last rows before they were learned from.")
    elif "columns" in facts and facts["positives"] in (0, facts["rows"]):
        lines.append("No AUC yet: all rows learned from have one label.")
    elif "columns" in facts and not held:
        lines.append(
            "No AUC yet: too few rows came after those by which columns were decided. Hold some out "
            "by --holdout 20%, or evaluate the model on others."
        )
    if held and held["auc"] is None:
        lines.append(f"No AUC of {_held_out(held)}, which have one label only.")
    elif held:
        lines.append(
            f"AUC {held['auc']:.4f}{_between(held['auc_low'], held['auc_high'])} on "
            f"{_held_out(held)}; average precision {held['average_precision']:.4f}."
        )
    return "\n".join([*lines, f"Model: {facts['model']}"])


def _held_out(held: dict[str, Any]) -> str:
    rows = f"{held['rows']:,}"
    return (
        f"the last {rows} rows, held out"
        if held["which"] == "last"
        else f"{rows} random rows held out"
    )


def _wide(facts: dict[str, Any]) -> str:
    features = f"{facts['features']:,} features"
    if "columns" in facts:
        return f"{facts['columns']:,} columns as {features}."
    return features + (f", C {facts['C']:g}." if facts["C"] is not None else ".")


def _between(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f" ({low:.4f} to {high:.4f})"


# Who reports them ---------------------------------------------------------------------------------


class Reporter(logging.Handler):
    """Report nothing; the base of those that do."""

    pace: Pace

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._noted: set[str] = set()
        self._next = _FIRST

    def __enter__(self) -> Self:
        logging.getLogger("cbrank").addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger("cbrank").removeHandler(self)
        self.end()

    def emit(self, record: logging.LogRecord) -> None:
        """Report what cbrank logs, such as that it compiles."""
        self.note(record.getMessage().removeprefix("cbrank: "))

    def begin(self, run: "Run") -> None:
        """Start the clock."""
        self.pace = Pace(run)

    def chunk(self, stream: "Stream") -> None:
        """Report on a chunk that was learned from, where there is something to report."""
        self.notes(stream)
        self.show(stream)
        if self.pace.seconds() >= self._next:
            while self.pace.seconds() >= self._next:
                self._next += min(self._next, _LONGEST)
            self.line(self.pace.now(stream))
            self.pace.reported()

    def notes(self, stream: "Stream") -> None:
        """Report what is odd about the rows read so far, each thing once."""
        for sentence in [*stream.notes, *stream.complaints]:
            if sentence not in self._noted:
                self._noted.add(sentence)
                self.note(in_flags(sentence))

    def note(self, sentence: str) -> None:
        """Report something in passing."""

    def columns(self, taken: "list[Taken]") -> None:
        """Report what the columns of a table are taken for."""

    def show(self, stream: "Stream") -> None:
        """Show how far the run is, after every chunk."""

    def line(self, facts: dict[str, Any]) -> None:
        """Report how far the run is: after 2 seconds, 4, 8 and so on, at last each 10 minutes."""

    def end(self) -> None:
        """Show no more of how far the run is."""

    def done(self, facts: dict[str, Any]) -> None:
        """Report the result."""


class TextReporter(Reporter):
    """Report to a person who reads a log."""

    def note(self, sentence: str) -> None:
        click.echo(f"Note: {sentence}", err=True)

    def columns(self, taken: "list[Taken]") -> None:
        from cbrank.cli.column_file import as_table  # noqa: PLC0415

        click.echo(as_table(taken), err=True)

    def line(self, facts: dict[str, Any]) -> None:
        click.echo(in_words(facts), err=True)

    def done(self, facts: dict[str, Any]) -> None:
        click.echo(result_in_words(facts))


class BarReporter(TextReporter):
    """Report to a person at a terminal: one line that changes."""

    _bar: Any = None

    def note(self, sentence: str) -> None:
        click.echo("\r\x1b[K", err=True, nl=False)  # the note takes the line's place
        super().note(sentence)

    def show(self, stream: "Stream") -> None:
        facts = self.pace.now(stream)
        if self._bar is None:
            self._bar = click.progressbar(
                length=facts["bytes_total"],
                file=sys.stderr,
                width=_BAR,
                show_eta=False,
                show_percent=False,
                update_min_steps=0,
                item_show_func=_fitting,
            )
        self._bar.update(facts["bytes_read"] - self._bar.pos, facts)

    def line(self, facts: dict[str, Any]) -> None:
        """Print no line: the one on the screen shows the AUC since this moment."""

    def end(self) -> None:
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None


def _fitting(facts: dict[str, Any] | None) -> str:
    """Say as much of how far the run is as the terminal has room for beside the bar."""
    room = shutil.get_terminal_size().columns - _BAR - len("  []   ")
    return in_words(facts, "lately")[:room] if facts else ""


class JsonReporter(Reporter):
    """Report to a program: an object on each line."""

    def note(self, sentence: str) -> None:
        _write({"event": "note", "note": sentence}, err=True)

    def columns(self, taken: "list[Taken]") -> None:
        _write({"event": "columns", "columns": [column._asdict() for column in taken]}, err=True)

    def line(self, facts: dict[str, Any]) -> None:
        _write({"event": "progress", **facts}, err=True)

    def done(self, facts: dict[str, Any]) -> None:
        _write({"event": "done", **facts}, err=False)


def _write(facts: dict[str, Any], err: bool) -> None:
    click.echo(json.dumps(facts), err=err)


def reporter(quiet: bool, as_json: bool) -> Reporter:
    """Return who reports, by the options and by what standard error is."""
    if quiet:
        return Reporter()
    if as_json:
        return JsonReporter()
    return BarReporter() if sys.stderr.isatty() else TextReporter()
