"""Bytes from a path, plain or compressed, from standard input or from an open file."""

import bz2
import contextlib
import gzip
import importlib
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, cast

Source = str | os.PathLike[str] | IO[bytes]

_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
_ZSTD_MODULES = ("compression.zstd", "backports.zstd")
_DAMAGE = (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error)


def source_name(source: Source) -> str:
    """Return what to call a source in a message.

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
        A path's or standard input's compression (gzip, bzip2, xz, Zstandard) is told by its
        first bytes. An open file is read as it is, and left open.

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
    name = source_name(source)
    try:
        if isinstance(source, str | os.PathLike):
            with _raw(source) as raw, _decompressed(raw, name) as stream:
                yield stream
        else:
            yield source
    except Exception as reason:
        if not _is_damage(reason):
            raise
        raise ValueError(f"{name}: damaged compressed data: {reason}") from reason


def _is_damage(reason: Exception) -> bool:
    """Tell a decompressor's complaint from other errors; bzip2's is an OSError without number."""
    nameless = type(reason) is OSError and reason.errno is None
    return isinstance(reason, _DAMAGE) or nameless or type(reason).__name__ == "ZstdError"


def _raw(source: str | os.PathLike[str]) -> AbstractContextManager[io.BufferedReader]:
    if source == "-":
        return contextlib.nullcontext(cast(io.BufferedReader, sys.stdin.buffer))
    return Path(source).open("rb")


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
        f"{name}: Zstandard data, and no module to read them with; "
        "pip install backports.zstd, or decompress the file first."
    )
