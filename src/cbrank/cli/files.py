"""Files that a command reads, and may not write over."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import click


class _Read(NamedTuple):
    """A file that is read."""

    what: str
    path: str | os.PathLike[str] | None
    facts: os.stat_result | None


def refuse_overwriting(
    *written: tuple[str, Path | None], model: Path | None = None, data: Sequence[str] = ()
) -> None:
    """Refuse to write over what is read, by whatever name it is called.

    Parameters
    ----------
    *written : tuple of str and path
        The option that says where a file goes, and the path; None if the option is not given.
    model : path, optional
        The model that is read.
    data : sequence of str
        The rows that are read.
    """
    given = [(option, path) for option, path in written if path is not None]
    for file in _read(model, data) if given else ():
        for option, path in given:
            if _is(path, file):
                name = "" if file.path is None or str(path) == str(file.path) else f", {file.path},"
                raise click.UsageError(
                    f"{path} is {file.what}{name} and would be written over: give {option} another "
                    "file."
                )


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
    except (OSError, ValueError):  # it is no stream of the system's
        return None
    return facts if facts and stat.S_ISREG(facts.st_mode) else None
