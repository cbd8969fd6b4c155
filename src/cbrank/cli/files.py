"""Files that a command reads and writes: what it may write over, and how it does."""

import contextlib
import io
import itertools
import json
import math
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from cbrank.cli.options import READING
from cbrank.cli.progress import Reporter, TextReporter

if TYPE_CHECKING:
    from cbrank.streams import Chunk, Stream
    from cbrank.training import Model

# What may be written ------------------------------------------------------------------------------


class _Read(NamedTuple):
    """A file that is read."""

    what: str
    path: str | os.PathLike[str] | None
    facts: os.stat_result | None


def check_outputs(
    *written: tuple[str, Path | None], model: Path | None = None, data: Sequence[str] = ()
) -> None:
    """Refuse, before the work begins, to write over what is read or where nothing can be written.

    Parameters
    ----------
    *written : tuple of str and path
        The option that says where a file goes, and the path; None if the option is not given.
    model : path, optional
        The model that is read.
    data : sequence of str
        The rows that are read.
    """
    refuse_overwriting(*written, model=model, data=data)
    for _, path in written:
        if path is not None:
            _refuse_unwritable(path)


def refuse_overwriting(
    *written: tuple[str, Path | None], model: Path | None = None, data: Sequence[str] = ()
) -> None:
    """Refuse to write over what is read or written, by whatever name it is called; as `check_outputs`."""
    given = [(option, path) for option, path in written if path is not None]
    for (option, path), (other, another) in itertools.combinations(given, 2):
        if is_same(path, another):
            raise click.UsageError(
                f"{option} and {other} would both be written to {another}: give two files."
            )
    for file in _read(model, data) if given else ():
        for option, path in given:
            if _is(path, file):
                name = "" if file.path is None or str(path) == str(file.path) else f", {file.path},"
                raise click.UsageError(
                    f"{path} is {file.what}{name} and would be written over: give {option} another "
                    "file."
                )


def _refuse_unwritable(path: Path) -> None:
    folder = path.resolve().parent
    if path.is_dir():
        raise click.ClickException(f"{path} is a folder: give a file in it.")
    if path.exists() and not path.is_file():
        raise click.ClickException(f"{path} cannot be written: it is there and is not a file.")
    if not folder.is_dir():
        raise click.ClickException(f"{path} cannot be written: there is no folder {folder}.")
    if not os.access(folder, os.W_OK):
        raise click.ClickException(f"{path} cannot be written: the folder {folder} is read-only.")


def refuse_overwriting_by_output(model: Path, data: Sequence[str]) -> None:
    """Refuse a standard output that goes to a file which is read, or nowhere."""
    refuse_closed_output()
    output = _of_stream(sys.stdout)
    for file in _read(model, data) if output else ():
        if file.facts and output and os.path.samestat(file.facts, output):
            raise click.UsageError(f"standard output goes to {file.what}: send it elsewhere.")


def refuse_closed_output() -> None:
    """Refuse a standard output that goes nowhere."""
    if sys.stdout is None:
        raise click.ClickException("standard output is closed, and the result would go there.")


def is_same(path: Path, other: Path) -> bool:
    """Say whether two paths are one file, there or not."""
    return _is(path, _Read("", other, _facts(other)))


def _read(model: Path | None, data: Sequence[str]) -> Iterator[_Read]:
    from cbrank.streams.sources import find_sources  # noqa: PLC0415

    if model is not None:
        yield _Read("the model", model, _facts(model))
    for source in find_sources(data) if data else ():
        if source == "-":
            yield _Read("the data", None, _of_stream(sys.stdin))
        elif isinstance(source, str | os.PathLike):
            yield _Read("the data", source, _facts(source))


def _is(path: Path, file: _Read) -> bool:
    if file.path is not None and os.path.realpath(path) == os.path.realpath(file.path):
        return True
    facts = _facts(path)
    return facts is not None and file.facts is not None and os.path.samestat(facts, file.facts)


def _facts(path: str | os.PathLike[str]) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except OSError:
        return None


def _of_stream(stream: IO[Any] | None) -> os.stat_result | None:
    """Return what a standard stream is, if it is a file."""
    try:
        facts = os.fstat(stream.fileno()) if stream else None
    except (OSError, ValueError):  # not a stream of the operating system, as in tests
        return None
    return facts if facts and stat.S_ISREG(facts.st_mode) else None


# Reading ------------------------------------------------------------------------------------------


def read_chunks(
    model: "Model", data: Sequence[str], options: dict[str, Any], *, labels: bool
) -> Iterator["Chunk"]:
    """Read rows by a model's columns; note on standard error what is odd about them."""
    from cbrank.training.misfits import Misfits  # noqa: PLC0415

    misfits = Misfits()
    with (
        Reporter() if options["quiet"] else TextReporter() as reporter,
        open_rows(model, data, options, labels=labels) as stream,
    ):
        for chunk in stream:
            misfits.add(model, chunk)
            yield chunk
            reporter.notes(stream)
        reporter.notes(stream)
        for sentence in misfits.sentences():
            reporter.note(sentence)
        if skipped := stream.position.errors:
            rows = "1 malformed row was" if skipped == 1 else f"{skipped:,} malformed rows were"
            reporter.note(f"{rows} skipped.")


def open_rows(
    model: "Model", data: Sequence[str], options: dict[str, Any], *, labels: bool
) -> "Stream":
    """Open files whose rows are read by a model's columns."""
    from cbrank.streams import open_stream  # noqa: PLC0415

    how = {name: options[name] for name in READING}
    return open_stream(data, columns=model.columns, learn=False, labels=labels, **how)


# Writing ------------------------------------------------------------------------------------------


@contextlib.contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """Open standard output, or a file that is in place only when it is whole."""
    from cbrank.atomic import atomic_write  # noqa: PLC0415

    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    with atomic_write(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        yield text
        text.detach()


def as_json(facts: Any) -> str:
    """Return facts as JSON; numbers that JSON does not know, such as infinity, are null."""
    return json.dumps(_finite(facts), indent=2, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    """Return a number of NumPy as Python's, anything else in words."""
    return value.item() if hasattr(value, "item") else str(value)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _finite(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
