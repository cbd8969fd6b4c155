"""Bytes from paths, plain or compressed, from standard input and from open files."""

import bz2
import codecs
import contextlib
import glob
import gzip
import importlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

Source = str | os.PathLike[str] | IO[bytes]

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")
_SKIPPED = 2**20  # bytes read at a time where a position cannot be sought
_DAMAGE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def source_name(source: Source) -> str:
    """Return the name of a source for messages.

    Examples
    --------
    >>> source_name("-")
    '<stdin>'
    """
    if isinstance(source, str | os.PathLike):
        return "<stdin>" if source == "-" else os.fspath(source)
    return str(getattr(source, "name", "<stream>"))


@contextlib.contextmanager
def open_bytes(source: Source) -> Iterator[IO[bytes]]:
    """Open a source to read bytes from, decompressed.

    Parameters
    ----------
    source : path, "-" or binary file
        Compression of a path or of standard input (gzip, bzip2, xz, Zstandard) is recognised by
        the first bytes. An open file is read as it is, and left open.

    Yields
    ------
    binary file
        The bytes.

    Raises
    ------
    OSError
        If the path cannot be read.
    ValueError
        If compressed data are damaged, or no module for Zstandard is installed.

    Examples
    --------
    >>> import io
    >>> with open_bytes(io.BytesIO(b"1 1:0.5")) as stream:
    ...     stream.read()
    b'1 1:0.5'
    """
    with open_source(source) as opened:
        yield opened.stream


class Opened(NamedTuple):
    """The bytes of a source, decompressed and as they are on disk."""

    stream: IO[bytes]
    raw: IO[bytes]

    def skip(self, count: int, name: str) -> None:
        """Skip `count` bytes of the stream; a plain file seeks, any other is read."""
        if self.stream is self.raw and self.seekable():
            self.raw.seek(count, io.SEEK_CUR)
            return
        while count and (data := self.stream.read(min(count, _SKIPPED))):
            count -= len(data)
        if count:
            raise ValueError(f"{name} ends before the position where reading stopped last time.")

    def head(self, count: int) -> bytes:
        """Return the first bytes on disk without consuming them; none if that is not possible."""
        return first_bytes(self.raw, count)

    def seekable(self) -> bool:
        """Say whether the raw bytes can be read from any position."""
        return hasattr(self.raw, "seekable") and self.raw.seekable()

    def consumed(self, offset: int) -> int:
        """Return the number of bytes read from disk; for a pipe, the `offset` in its text."""
        return self.raw.tell() if self.seekable() else offset


def reader(stream: IO[bytes]) -> Callable[[int], bytes]:
    """Return what reads some bytes of a stream; of a pipe, those that are there."""
    return stream.read1 if isinstance(stream, io.BufferedReader) else stream.read


class _Recoded:
    """A stream of text in another encoding, as UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str, name: str) -> None:
        self._read, self._encoding, self._name = reader(stream), encoding, name
        self._decoder: Any = codecs.getincrementaldecoder(encoding)()
        self._is_faulty = False

    def read(self, count: int) -> bytes:
        """Return some bytes, none at the end; all before a fault, however they come."""
        while not self._is_faulty:
            data = self._read(count)
            text = self._decoded(data)
            if text or not (data or self._is_faulty):
                return text
        raise ValueError(
            f"{self._name} is not {self._encoding}. Say which encoding it has by "
            "`encoding`, such as utf-8 or cp1252."
        )

    def _decoded(self, data: bytes) -> bytes:
        held = len(getattr(self._decoder, "buffer", b""))
        try:
            text: str = self._decoder.decode(data, final=not data)
        except UnicodeError as reason:
            self._is_faulty = True
            sound = data[: max(0, reason.start - held)] if hasattr(reason, "start") else b""
            try:
                text = self._decoder.decode(sound)
            except UnicodeError:
                text = ""
        return text.encode("utf-8", "surrogatepass")


class _Begun:
    """A stream whose first bytes were read already."""

    def __init__(self, start: bytes, stream: IO[bytes]) -> None:
        self._start, self._read = start, reader(stream)

    def read(self, count: int) -> bytes:
        """Return some bytes, none at the end."""
        start, self._start = self._start, b""
        return start or self._read(count)


def recoded(opened: Opened, encoding: str | None, name: str) -> Opened:
    """Return the bytes of a text in UTF-8; without an encoding its first bytes tell UTF-16."""
    if encoding is None:
        opened, start = _begun(opened)
        encoding = _told_by_bytes(start)
    if codecs.lookup(encoding).name == "utf-8":
        return opened
    return Opened(cast(IO[bytes], _Recoded(opened.stream, encoding, name)), opened.raw)


def _begun(opened: Opened) -> tuple[Opened, bytes]:
    """Return a stream and its first four bytes, which it still gives, however slowly they come."""
    stream: Any = opened.stream
    if stream is opened.raw and opened.seekable():
        return opened, first_bytes(stream, 4)
    start = b""
    while len(start) < 4 and (data := stream.read(4 - len(start))):
        if not isinstance(data, bytes):  # the file was opened in text mode
            return Opened(cast(IO[bytes], _Begun(data, stream)), opened.raw), b""
        start += data
    return Opened(cast(IO[bytes], _Begun(start, stream)), opened.raw), start


def _told_by_bytes(start: bytes) -> str:
    r"""Return the encoding of a text by its first bytes: a mark, or zeros in every other place.

    Examples
    --------
    >>> _told_by_bytes(b"a\0g\0"), _told_by_bytes(b"age,")
    ('utf-16-le', 'utf-8')
    """
    if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    if len(start) == 4 and start[1] == start[3] == 0 < min(start[0], start[2]):
        return "utf-16-le"
    if len(start) == 4 and start[0] == start[2] == 0 < min(start[1], start[3]):
        return "utf-16-be"
    return "utf-8"


def checked_encoding(encoding: str | None) -> str | None:
    """Return the name of an encoding; refuse one that is not known.

    Examples
    --------
    >>> checked_encoding("latin-1")
    'latin-1'
    """
    try:
        b" ".decode(encoding or "utf-8")  # of no bytes at all Python does not ask for the encoding
    except UnicodeError:
        return encoding
    except LookupError:
        raise ValueError(
            f"the encoding {encoding!r} is not known: say utf-8, utf-16, cp1252 or another of Python's."
        ) from None
    return encoding


def first_bytes(stream: Any, count: int) -> bytes:
    """Return the first bytes of a stream without consuming them; none if that is not possible."""
    if hasattr(stream, "peek"):
        return bytes(stream.peek(count)[:count])
    if not (hasattr(stream, "seekable") and stream.seekable()):
        return b""
    found = stream.read(count)
    stream.seek(-len(found), io.SEEK_CUR)
    return bytes(found)


@contextlib.contextmanager
def open_source(source: Source, *, own_input: bool = False) -> Iterator[Opened]:
    """Open a source as `open_bytes` does, and give access to its raw bytes.

    With `own_input` standard input is read through a duplicate descriptor: the interpreter closes
    its own at exit, and would wait for a thread that is blocked in reading it.
    """
    name = source_name(source)
    try:
        if isinstance(source, str | os.PathLike):
            with _raw(source, own_input) as raw, _decompressed(raw, name) as stream:
                yield Opened(stream, raw)
        else:
            yield Opened(source, source)
    except Exception as reason:
        if not _is_damage(reason):
            raise
        raise ValueError(f"{name}: damaged compressed data: {reason}") from reason


def find_sources(paths: Source | Sequence[Source]) -> list[Source]:
    """Return the sources in order, with globs replaced by the files they match, sorted by name.

    Raises
    ------
    OSError
        If a file is missing or is a folder.
    ValueError
        If a glob matches nothing, or there is no path.

    Examples
    --------
    >>> find_sources("-")
    ['-']
    """
    single = isinstance(paths, str | os.PathLike) or hasattr(paths, "read")
    given = [cast(Source, paths)] if single else list(cast(Sequence[Source], paths))
    if not given:
        raise ValueError("There is no input: give a path, a glob or '-' for standard input.")
    return [source for path in given for source in _matches(path)]


def _matches(path: Source) -> list[Source]:
    if not isinstance(path, str | os.PathLike) or path == "-":
        return [path]
    text = os.fspath(path)
    if not os.path.lexists(text) and glob.has_magic(text):
        found = sorted(glob.glob(text))  # noqa: PTH207
        if not found:
            raise ValueError(f"{text}: no file matches.")
        return [source for name in found for source in _matches(name)]
    if Path(text).is_dir():
        raise IsADirectoryError(f"{text} is a folder; give its files: {Path(text, '*')}.")
    if not Path(text).exists():
        raise FileNotFoundError(f"{text}: there is no such file.")
    return [path]


def _is_damage(reason: Exception) -> bool:
    """Say whether an error is a decompressor's; that of bzip2 is an OSError without a number."""
    nameless = type(reason) is OSError and reason.errno is None
    return isinstance(reason, _DAMAGE) or nameless or type(reason).__name__ == "ZstdError"


def _raw(
    source: str | os.PathLike[str], own_input: bool
) -> AbstractContextManager[io.BufferedReader]:
    if source != "-":
        return Path(source).open("rb")
    shared = getattr(sys.stdin, "buffer", None)
    if shared is None:
        raise ValueError("standard input is closed: there are no rows to read from '-'.")
    if own_input:
        with contextlib.suppress(OSError):
            return os.fdopen(os.dup(shared.fileno()), "rb")
    if not isinstance(shared, io.BufferedReader):
        shared = io.BufferedReader(shared)
    return contextlib.nullcontext(shared)


def _decompressed(raw: io.BufferedReader, name: str) -> AbstractContextManager[IO[bytes]]:
    start = raw.peek(len(_XZ))
    if start.startswith(_GZIP):
        return cast(IO[bytes], gzip.GzipFile(fileobj=raw))
    if start.startswith(_BZIP2):
        return cast(IO[bytes], bz2.BZ2File(raw))
    if start.startswith(_XZ):
        return cast(IO[bytes], lzma.LZMAFile(raw))
    if start.startswith(_ZSTD):
        return cast(IO[bytes], _zstd(name).open(raw, "rb"))
    return contextlib.nullcontext(raw)


def _zstd(name: str) -> Any:
    for module in _ZSTD_MODULES:
        with contextlib.suppress(ImportError):
            return importlib.import_module(module)
    raise ValueError(
        f"{name} is compressed with Zstandard, which needs a package: "
        "pip install 'cbrank[zstd]', or decompress the file first."
    )
