"""Where reading stopped, and in which files."""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

from cbrank.streams.sources import Source, source_name

_HEAD = 2**16


class FileMark(NamedTuple):
    """What tells a file from a changed one.

    Parameters
    ----------
    name : str
        Its path, or what it is called in messages.
    size : int or None
        Its bytes on disk; None for a pipe.
    head : str or None
        The SHA-256 of its first 64 KiB; None for a pipe.

    Examples
    --------
    >>> from cbrank.streams import FileMark
    >>> FileMark("<stdin>", None, None).size is None
    True
    """

    name: str
    size: int | None
    head: str | None


@dataclass(frozen=True)
class Position:
    """The place after some chunk of a stream.

    Parameters
    ----------
    files : tuple of FileMark
        Name, size and the SHA-256 of the first 64 KiB of each file.
    file : int
        The number of the file, from 0.
    offset : int
        The bytes of its decompressed text, or the rows of a Parquet file, that were read.
    line : int
        The number of the next line, or row of a Parquet file, from 1.
    rows : int
        The rows given so far, of all files.
    errors : int
        The rows left out so far because they were malformed.

    Examples
    --------
    >>> from cbrank.streams import Position
    >>> position = Position((), rows=8192)
    >>> Position.from_json(position.to_json()) == position
    True
    """

    files: tuple[FileMark, ...]
    file: int = 0
    offset: int = 0
    line: int = 1
    rows: int = 0
    errors: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the position as what JSON can hold.

        Returns
        -------
        dict
            The parameters by name.
        """
        return asdict(self) | {"files": [list(mark) for mark in self.files]}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Take a position from what `to_json` gave.

        Parameters
        ----------
        facts : mapping
            The parameters by name.

        Returns
        -------
        Position
            The position.

        Raises
        ------
        ValueError
            If that is not a position.
        """
        try:
            marks = tuple(FileMark(*mark) for mark in facts["files"])
            counts = {field.name: facts[field.name] for field in fields(cls)[1:]}
        except (KeyError, TypeError) as reason:
            raise ValueError(f"This is not a position in a stream: {reason}.") from reason
        if not all(type(count) is int and count >= 0 for count in counts.values()):
            raise ValueError(f"This is not a position in a stream: {counts}.")
        return cls(marks, **counts)

    def _refuse_changes(self, marks: Sequence[FileMark]) -> None:
        """Raise an error unless the files are those that the position is in."""
        if len(marks) != len(self.files):
            raise ValueError(
                f"The position is in a stream of {len(self.files)} files, and this one has "
                f"{len(marks)}: give the same files in the same order."
            )
        for now, before in zip(marks, self.files, strict=True):
            if (now.size, now.head) == (before.size, before.head):
                continue
            what = f"its size was {before.size} and is {now.size}"
            if now.size == before.size:
                what = "its first 64 KiB are others"
            raise ValueError(
                f"{now.name} is not as it was when reading stopped: {what}. "
                "Give the same file, or start anew."
            )


def mark(source: Source) -> FileMark:
    """Return what tells a file from a changed one.

    Examples
    --------
    >>> mark("-")
    FileMark(name='<stdin>', size=None, head=None)
    """
    name = source_name(source)
    if not isinstance(source, str | os.PathLike) or source == "-":
        return FileMark(name, None, None)
    facts = Path(source).stat()
    if not stat.S_ISREG(facts.st_mode):
        return FileMark(name, None, None)
    with Path(source).open("rb") as file:
        return FileMark(name, facts.st_size, hashlib.sha256(file.read(_HEAD)).hexdigest())
