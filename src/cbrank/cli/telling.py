"""What a run tells: notes and progress on standard error, its result on standard output."""

import json
import logging
import shutil
import sys
from typing import TYPE_CHECKING, Any, Self

import click

from cbrank.cli.pace import Pace, in_words

if TYPE_CHECKING:
    from cbrank.streams import Stream
    from cbrank.training import Run

_BAR = 6  # characters
_FIRST, _LONGEST = 2.0, 600.0  # seconds to the first line, and at most from one to the next


class Teller(logging.Handler):
    """Tell nothing; the base of those who do."""

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
        """Tell what cbrank logs, such as that it compiles."""
        self.note(record.getMessage().removeprefix("cbrank: "))

    def begin(self, run: "Run") -> None:
        """Look at the clock."""
        self.pace = Pace(run)

    def chunk(self, stream: "Stream") -> None:
        """Tell of a chunk that was learned from, where there is something to tell."""
        self.notes(stream)
        self.show(stream)
        if self.pace.seconds() >= self._next:
            while self.pace.seconds() >= self._next:
                self._next += min(self._next, _LONGEST)
            self.line(self.pace.now(stream))
            self.pace.told()

    def notes(self, stream: "Stream") -> None:
        """Tell what is odd about the rows read so far, each thing once."""
        for sentence in [*stream.notes, *stream.complaints]:
            if sentence not in self._noted:
                self._noted.add(sentence)
                self.note(sentence)

    def note(self, sentence: str) -> None:
        """Tell something in passing."""

    def show(self, stream: "Stream") -> None:
        """Show how things stand, after every chunk."""

    def line(self, facts: dict[str, Any]) -> None:
        """Tell how things stand: after 2 seconds, 4, 8 and so on, at last each 10 minutes."""

    def end(self) -> None:
        """Tell no more of how things stand."""

    def done(self, facts: dict[str, Any]) -> None:
        """Tell the result."""


class Words(Teller):
    """Tell a person who reads a log."""

    def note(self, sentence: str) -> None:
        """Tell something in passing."""
        click.echo(f"Note: {sentence}", err=True)

    def line(self, facts: dict[str, Any]) -> None:
        """Tell how things stand."""
        click.echo(in_words(facts), err=True)

    def done(self, facts: dict[str, Any]) -> None:
        """Tell the result."""
        auc, skipped = facts["progressive_auc"], facts["skipped"]
        click.echo(
            f"Learned from {facts['rows']:,} rows, {facts['positives']:,} of them positive"
            + (f" ({skipped:,} malformed ones skipped)" if skipped else "")
            + (f": progressive AUC {auc:.4f}" if auc is not None else "")
            + f", {facts['features']:,} features"
            + (f", C {facts['C']:g}" if facts["C"] is not None else "")
            + f". Model: {facts['model']}"
        )


class Bar(Words):
    """Tell a person at a terminal: one line that changes."""

    _bar: Any = None

    def note(self, sentence: str) -> None:
        """Tell something in passing, above the line."""
        click.echo("\r\x1b[K", err=True, nl=False)
        super().note(sentence)

    def show(self, stream: "Stream") -> None:
        """Change the line."""
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
        """Tell nothing more: the AUC in the line is measured anew from here on."""

    def end(self) -> None:
        """End the line."""
        if self._bar is not None:
            self._bar.render_finish()
            self._bar = None


def _fitting(facts: dict[str, Any] | None) -> str:
    """Say as much of how things stand as the terminal has room for beside the bar."""
    room = shutil.get_terminal_size().columns - _BAR - len("  []   ")
    return in_words(facts, "lately")[:room] if facts else ""


class Json(Teller):
    """Tell a machine: an object on each line."""

    def note(self, sentence: str) -> None:
        """Tell something in passing."""
        _write({"event": "note", "note": sentence}, err=True)

    def line(self, facts: dict[str, Any]) -> None:
        """Tell how things stand."""
        _write({"event": "progress", **facts}, err=True)

    def done(self, facts: dict[str, Any]) -> None:
        """Tell the result."""
        _write({"event": "done", **facts}, err=False)


def _write(facts: dict[str, Any], err: bool) -> None:
    click.echo(json.dumps(facts), err=err)


def teller(quiet: bool, as_json: bool) -> Teller:
    """Return who tells, by the options and by what standard error is."""
    if quiet:
        return Teller()
    if as_json:
        return Json()
    return Bar() if sys.stderr.isatty() else Words()
