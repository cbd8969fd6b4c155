"""From lines of text to rows: the loop that the svmlight and CSV readers share.

The rows are a function of the bytes alone. Text comes in blocks, and where one ends depends on pipes
and on the size of blocks; a row that is cut by the end of a block waits for the rest of it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from cbrank.streams.rows import Complaints, Rows
from cbrank.streams.sources import Opened, reader

_BLOCK = 2**20  # bytes read at a time: large enough for the parser, small beside a chunk of 32 MiB
# Bytes of a line, and of a row whose quoted cells have several lines: a quote that is never closed
# must not make the reader take a whole file into memory.
_LONGEST = 2**26
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SHOWN = 24  # characters of a malformed word in a message


class Fault(NamedTuple):
    """Why a row is malformed."""

    line: int  # from 0, counted from where parsing began
    place: str  # the column, or nothing
    sentence: str
    begin: int | None = None  # where the row begins, if it may be well-formed with more text


class Piece(NamedTuple):
    """Rows parsed from one text, copied out of the parser's arrays."""

    lines: NDArray[np.int64]  # from 0, counted from where parsing began
    passed: int  # lines read, those without rows included
    data: Any  # rows, in the form that the parser's `join` takes


class Parser(Protocol):
    """What a text format has to provide."""

    def parse(
        self, text: bytes, start: int, stop_at: int, rows: int
    ) -> tuple[Piece, int, Fault | None]:
        """Return up to `rows` rows that begin between `start` and `stop_at`, and where to go on.

        Parsing ends at a malformed row, which is then returned as a `Fault`.
        """

    def join(self, data: Sequence[Any]) -> tuple[Any, Any, dict[str, list[str]]]:
        """Return features, labels and text columns of a chunk, joined from its pieces."""


class Size(NamedTuple):
    """Where a chunk ends: after so many rows, or at the row with which it has so many bytes."""

    rows: int
    text: int = 2**62  # no limit


class Lines:
    """Whole lines of a stream, about a mebibyte at a time; each text ends with a newline."""

    def __init__(self, opened: Opened, name: str) -> None:
        self.name, self.longest = name, _LONGEST
        self.offset = 0  # position in the stream of the text returned last
        self.end = 0  # position in the stream after that text
        self.over = False  # whether it was the last: the stream ends, or a line is too long
        self._read: Callable[[int], Any] = reader(opened.stream)
        self._skip = opened.skip
        self._kept = b""
        self._too_long = False

    def take(self) -> bytes:
        """Return the next whole lines; an empty text at the end."""
        text = self._next(1)
        if self._too_long and not text:
            raise ValueError(f"{self.name}: a line of more than {self.longest >> 20} MiB.")
        return text

    def more(self, text: bytes, begin: int) -> bytes:
        """Return the text that was returned last, from `begin` on, and at least as much after it.

        At the end of the stream less is added, or nothing. Doubling keeps the total work linear.
        """
        rest, offset = text[begin:], self.offset + begin
        text = rest + self._next(len(rest))
        self.offset = offset
        return text

    def whole(self, text: bytes) -> int:
        """Return the end of the last whole line within the first `longest` bytes of a text."""
        return text.rfind(b"\n", 0, self.longest + 1) + 1

    def cut(self, text: bytes, offset: int) -> bytes:
        """Return text from an offset in the stream on; `text` is what was returned last."""
        if offset <= self.end:
            text = text[offset - self.offset :]
            self.offset = offset
            return text or self.take()
        beyond = offset - self.end - len(self._kept)
        self._kept = self._kept[offset - self.end :]
        self._skip(max(0, beyond), self.name)
        self.end = offset
        return self.take()

    def _next(self, least: int) -> bytes:
        """Return whole lines of at least `least` bytes, else all that are left."""
        parts, whole, begun = [self._kept], 0, len(self._kept)
        while not self._too_long and (data := self._read(min(_BLOCK, self.longest))):
            if not isinstance(data, bytes):  # the file was opened in text mode
                kind = type(data).__name__
                raise TypeError(f"{self.name} gives {kind}, not bytes: open it with 'rb'.")
            cut = data.rfind(b"\n") + 1
            if begun + (data.find(b"\n") if cut else len(data)) > self.longest:
                self._too_long = True
                break
            whole, begun = (
                (whole + begun + cut, len(data) - cut) if cut else (whole, begun + len(data))
            )
            if cut and whole >= least:
                self._kept = data[cut:]
                return self._hand_out(b"".join([*parts, data[:cut]]))
            parts.append(data)
        self.over, self._kept = True, b""
        text = b"".join(parts)
        text = self._hand_out(text[:whole] if self._too_long else text)
        return text + b"\n" if text and not text.endswith(b"\n") else text

    def _hand_out(self, text: bytes) -> bytes:
        self.offset, self.end = self.end, self.end + len(text)
        if self.offset == 0 and text.startswith(_BYTE_ORDER_MARK):
            self.offset = len(_BYTE_ORDER_MARK)
            return text[self.offset :]
        return text


def read_rows(
    lines: Lines, text: bytes, line: int, parser: Parser, size: Size, complaints: Complaints
) -> Iterator[Rows]:
    """Read chunks from `text`, whose first line has the number `line`, and from the lines after it.

    After a malformed row reading goes on behind its end or, if its quotes do not match or it is too
    long, behind its first line.
    """
    chunk: list[Piece] = []
    missing, begin = size.rows, lines.offset
    while text:
        at = 0
        while at < len(text):
            left = begin + size.text - lines.offset
            piece, stop, fault = parser.parse(text, at, min(len(text), left), missing)
            if len(piece.lines):
                chunk.append(piece._replace(lines=piece.lines + line))
                missing -= len(piece.lines)
            if fault and fault.begin is not None and not lines.over:
                line += text.count(b"\n", at, fault.begin)
                text, at = lines.more(text, fault.begin), 0
                continue
            if fault:
                where = f"{lines.name}, line {line + fault.line}{fault.place}"
                complaints.add(f"{where}: {fault.sentence}")
            line += piece.passed if fault is None else text.count(b"\n", at, stop)
            at = stop
            if missing == 0 or at >= left:
                end = min(lines.offset + at, lines.end)
                if chunk:
                    yield _joined(parser, chunk, end, line, complaints)
                chunk, missing, begin = [], size.rows, end
        text = lines.take()
    if chunk or complaints.count:
        yield _joined(parser, chunk, lines.end, line, complaints)


def _joined(
    parser: Parser, chunk: list[Piece], offset: int, line: int, complaints: Complaints
) -> Rows:
    X, labels, texts = parser.join([piece.data for piece in chunk])
    numbers = np.concatenate([np.empty(0, np.int64), *(piece.lines for piece in chunk)])
    return Rows(X, labels, texts, numbers, offset, line, *complaints.pop())


def shown(word: bytes) -> str:
    """Return a word as messages show it, shortened and in quotes.

    Examples
    --------
    >>> print(shown(b"x" * 99))
    'xxxxxxxxxxxxxxxxxxxxxxxx...'
    """
    text = word[: _SHOWN + 1].decode("ascii", "backslashreplace")
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")
