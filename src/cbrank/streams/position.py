"""A place in a stream of files, from which reading can go on."""

import hashlib
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from cbrank.streams.sources import Source, source_name

MOST_FILES = 2**18  # in a checkpoint: bounds the memory for opening one, some 250 bytes each

_HEAD = 2**16  # bytes whose SHA-256 is taken: quick for any file, and headers and first rows differ
_NO_SIZE = -1  # of a pipe
_DIGEST = 32  # bytes of a SHA-256


class FileMark(NamedTuple):
    """The size and checksum by which a changed file is recognised.

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
    """The place after a chunk of a stream.

    Parameters
    ----------
    files : tuple of FileMark
        Name, size and the SHA-256 of the first 64 KiB of each file.
    file : int
        The number of the file, from 0.
    offset : int
        The bytes of its decompressed text, or the rows of a Parquet file, read so far.
    line : int
        The number of the next line, or row of a Parquet file, from 1.
    rows : int
        The rows given so far, of all files.
    errors : int
        The malformed rows skipped so far.

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
        """Return the position as a dictionary for JSON.

        Returns
        -------
        dict
            The parameters by name.
        """
        return asdict(self) | {"files": [list(mark) for mark in self.files]}

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Self:
        """Make a position from the result of `to_json`.

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
        if not all(type(count) is int and 0 <= count < 2**63 for count in counts.values()):
            raise ValueError(f"This is not a position in a stream: {counts}.")
        if counts["file"] > max(0, len(marks) - 1) or not all(map(_is_mark, marks)):
            raise ValueError("This is not a position in a stream: its files make no sense.")
        return cls(marks, **counts)

    def _refuse_changes(self, marks: Sequence[FileMark]) -> None:
        """Raise an error unless the files are those that the position is in."""
        if len(marks) != len(self.files):
            raise ValueError(
                f"The position is one in a stream of {len(self.files)} files, and this stream has "
                f"{len(marks)}: give the same files in the same order."
            )
        for now, before in zip(marks, self.files, strict=True):
            if (now.size, now.head) == (before.size, before.head):
                continue
            what = f"its size was {before.size} and is {now.size}"
            if now.size == before.size:
                what = "its first 64 KiB are different"
            raise ValueError(
                f"{now.name} has changed since reading stopped: {what}. "
                "Give the same file, or start anew."
            )


def _is_mark(mark: FileMark) -> bool:
    if type(mark.name) is not str:
        return False
    if mark.size is None or mark.head is None:
        return mark.size is None and mark.head is None
    known = type(mark.size) is int and 0 <= mark.size < 2**63 and type(mark.head) is str
    return known and len(mark.head) == 2 * _DIGEST and mark.head.isalnum() and mark.head.isascii()


def marks_to_arrays(marks: Sequence[FileMark]) -> dict[str, NDArray[Any]]:
    """Return sizes and checksums of files as two arrays, without their names.

    Examples
    --------
    >>> arrays = marks_to_arrays([FileMark("<stdin>", None, None)])
    >>> arrays["sizes"], marks_from_arrays(arrays)
    (array([-1]), (FileMark(name='', size=None, head=None),))
    """
    sizes = [_NO_SIZE if mark.size is None else mark.size for mark in marks]
    heads = b"".join(bytes.fromhex(mark.head or "00" * _DIGEST) for mark in marks)
    return {
        "sizes": np.array(sizes, np.int64),
        "heads": np.frombuffer(heads, np.uint8).reshape(-1, _DIGEST),
    }


def marks_from_arrays(arrays: Mapping[str, NDArray[Any]]) -> tuple[FileMark, ...]:
    """Return the marks in the arrays of `marks_to_arrays`, without names; refuse other arrays."""
    sizes, heads = (arrays.get(name, np.zeros(0)) for name in ("sizes", "heads"))
    sound = sizes.dtype == np.int64 and heads.dtype == np.uint8 and sizes.ndim == 1
    if not sound or heads.shape != (len(sizes), _DIGEST) or len(sizes) > MOST_FILES:
        raise ValueError("its files make no sense")
    if (sizes < _NO_SIZE).any():
        raise ValueError("its files make no sense")
    return tuple(
        FileMark("", None, None) if size == _NO_SIZE else FileMark("", size, head.tobytes().hex())
        for size, head in zip(sizes.tolist(), heads, strict=True)
    )


def mark(source: Source) -> FileMark:
    """Return the size and checksum by which a changed file is recognised.

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
