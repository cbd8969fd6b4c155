"""Lines of text to rows: the loop that the svmlight and CSV readers share."""

import io
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cbrank.streams.rows import Complaints, Rows
from cbrank.streams.sources import Opened

_BLOCK = 2**20
_LONGEST_LINE = 2**26
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 24


class Fault(NamedTuple):
    """Why a row was not read."""

    line: int  # from 0, counted from where parsing began
    place: str  # the column, or nothing
    sentence: str
    unfinished: bool = False  # whether more text may mend it


class Piece(NamedTuple):
    """Rows parsed from one text, copied out of the parser's room."""

    lines: NDArray[np.int64]  # from 0, counted from where parsing began
    passed: int  # lines passed over in all
    data: Any  # what the parser joins


class Parser(Protocol):
    """What a form of text needs: rows from text, and rows joined."""

    def parse(self, text: bytes, start: int, rows: int) -> tuple[Piece, int, Fault | None]:
        """Return up to `rows` rows, where to go on, and why a row was left out, if one was."""

    def join(self, data: Sequence[Any]) -> tuple[Any, Any, dict[str, list[str]]]:
        """Return features, labels and texts of the pieces of a chunk."""


class Lines:
    """Whole lines of a stream, about a megabyte at a time; each text ends with a newline."""

    def __init__(self, opened: Opened, name: str) -> None:
        self.name = name
        self.ended = False
        self.offset = 0  # in the stream, of the text handed out last
        self.end = 0  # of the stream as far as it was handed out
        stream = opened.stream
        self._read: Callable[[int], Any] = (
            stream.read1 if isinstance(stream, io.BufferedReader) else stream.read
        )
        self._skip = opened.skip
        self._kept = b""

    def take(self, least: int = 0) -> bytes:
        """Return whole lines of at least `least` bytes, else all that are left; at last none."""
        parts, size = [self._kept], len(self._kept)
        while data := self._read(_BLOCK):
            if not isinstance(data, bytes):  # as a file that is open for text gives
                kind = type(data).__name__
                raise TypeError(f"{self.name} gives {kind}, not bytes: open it with 'rb'.")
            size += len(data)
            cut = data.rfind(b"\n") + 1
            if cut and size >= least:
                self._kept = data[cut:]
                return self._hand_out(b"".join([*parts, data[:cut]]))
            parts.append(data)
            if size > _LONGEST_LINE:
                raise ValueError(f"{self.name}: a line of more than {_LONGEST_LINE >> 20} MiB.")
        self.ended, self._kept = True, b""
        text = self._hand_out(b"".join(parts))
        return text + b"\n" if text and not text.endswith(b"\n") else text

    def cut(self, text: bytes, offset: int) -> bytes:
        """Return the text, that was handed out last, from an offset on, or what comes there."""
        if offset <= self.end:
            text = text[offset - self.offset :]
            self.offset = offset
            return text or self.take()
        beyond = offset - self.end - len(self._kept)
        self._kept = self._kept[offset - self.end :]
        self._skip(max(0, beyond), self.name)
        self.end = offset
        return self.take()

    def _hand_out(self, text: bytes) -> bytes:
        self.offset, self.end = self.end, self.end + len(text)
        if self.offset == 0 and text.startswith(_BYTE_ORDER_MARK):
            self.offset = len(_BYTE_ORDER_MARK)
            return text[self.offset :]
        return text


def read_rows(
    lines: Lines, text: bytes, line: int, parser: Parser, rows: int, complaints: Complaints
) -> Iterator[Rows]:
    """Read `rows` rows at a time from `text`, whose first line has the number `line`, and on."""
    chunk: list[Piece] = []
    missing = rows
    while text:
        at = 0
        while at < len(text):
            piece, stop, fault = parser.parse(text, at, missing)
            if fault and fault.unfinished and not lines.ended:
                text, at = _with_more(lines, text, at), 0
                continue
            if len(piece.lines):
                chunk.append(piece._replace(lines=piece.lines + line))
                missing -= len(piece.lines)
            if fault:
                where = f"{lines.name}, line {line + fault.line}{fault.place}"
                complaints.add(f"{where}: {fault.sentence}")
            line += piece.passed if fault is None else text.count(b"\n", at, stop)
            at = stop
            if missing == 0:
                end = min(lines.offset + at, lines.end)
                yield _joined(parser, chunk, end, line, complaints)
                chunk, missing = [], rows
        text = lines.take()
    if chunk or complaints.count:
        yield _joined(parser, chunk, lines.end, line, complaints)


def _with_more(lines: Lines, text: bytes, at: int) -> bytes:
    """Return the text from `at` on, with at least as much again after it."""
    begun, offset = text[at:], lines.offset + at
    if len(begun) > _LONGEST_LINE:
        raise ValueError(
            f"{lines.name}: a quoted cell does not end within {_LONGEST_LINE >> 20} MiB."
        )
    text = begun + lines.take(len(begun))
    lines.offset = offset
    return text


def _joined(
    parser: Parser, chunk: list[Piece], offset: int, line: int, complaints: Complaints
) -> Rows:
    X, labels, texts = parser.join([piece.data for piece in chunk])
    numbers = np.concatenate([np.empty(0, np.int64), *(piece.lines for piece in chunk)])
    return Rows(X, labels, texts, numbers, offset, line, *complaints.pop())


def shown(word: bytes) -> str:
    """Return a word as a message shows it.

    Examples
    --------
    >>> print(shown(b"x" * 99))
    'xxxxxxxxxxxxxxxxxxxxxxxx...'
    """
    text = word[: _SHOWN + 1].decode("ascii", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
