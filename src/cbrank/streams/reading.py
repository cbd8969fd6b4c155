"""From files to chunks of rows: formats, the order of files, and resuming."""

import io
import operator
import os
import queue
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, Self, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cbrank.features.table import Table
from cbrank.streams.ahead import Ready, read_ahead
from cbrank.streams.columns import Columns
from cbrank.streams.csv import CsvParser, refuse_other_formats, split_header
from cbrank.streams.dialect import Asked, Dialect, numbered, told
from cbrank.streams.parquet import import_parquet, open_parquet, read_parquet
from cbrank.streams.position import Position, mark
from cbrank.streams.rows import (
    CHUNK_BYTES,
    FIRST_FEW,
    WIDEST,
    Complaints,
    Roles,
    Rows,
    rows_that_fit,
)
from cbrank.streams.sources import (
    Opened,
    Source,
    checked_encoding,
    find_sources,
    open_source,
    recoded,
    source_name,
)
from cbrank.streams.svmlight import SvmlightParser
from cbrank.streams.text import Lines, Parser, Size, read_rows

Format = Literal["svmlight", "csv", "parquet"]

_EXTENSIONS: dict[str, Format] = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_COMPRESSIONS = {".gz", ".bz2", ".xz", ".zst"}
_PARQUET = b"PAR1"
_LOOKED_AT = 2**16  # bytes that tell how a table is written, or more if the first line is longer


class Chunk(NamedTuple):
    r"""Some rows of a stream.

    Parameters
    ----------
    X : ndarray or csr_array of float64, or Table
        The features, as wide as the stream is known to be; the columns of a table that is taken as
        it comes.
    y : ndarray of int64 or None
        1 for the positive label, 0 for the other.
    ids : list of str or None
        The cells of the id column.
    position : Position
        The place after these rows.
    lines : ndarray of int64 or None
        Where each row stands in its file, from 1.
    sources : ndarray of int64 or None
        The number of each row's file, where rows of several files were shuffled.

    Examples
    --------
    >>> import io
    >>> from cbrank.streams import open_stream
    >>> [chunk] = open_stream(io.BytesIO(b"1 1:5\n-1 2:6\n"))
    >>> chunk.y, chunk.position.rows
    (array([1, 0]), 2)
    """

    X: NDArray[np.float64] | csr_array | Table
    y: NDArray[np.int64] | None
    ids: list[str] | None
    position: Position
    lines: NDArray[np.int64] | None = None
    sources: NDArray[np.int64] | None = None


class _Settings(NamedTuple):
    """How all files of a stream are read."""

    format: Format | None
    columns: Columns
    learn: bool
    labels: bool
    rows: int
    complaints: Complaints
    notes: list[str]
    asked: Asked
    encoding: str | None


class _Item(NamedTuple):
    """What the reading thread hands over."""

    file: int
    rows: Rows
    bytes_read: int
    unit: str


def open_stream(
    paths: Source | Sequence[Source],
    *,
    columns: Columns | None = None,
    format: Format | None = None,
    learn: bool = True,
    labels: bool = True,
    chunk_rows: int = 8192,
    on_error: Literal["raise", "skip"] = "raise",
    max_errors: int = 100,
    start: Position | None = None,
    separator: str | None = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
) -> "Stream":
    r"""Read rows from files, a chunk at a time, in a background thread.

    Parameters
    ----------
    paths : path, "-", glob, binary file, or a sequence of them
        What to read, in order; the files of a glob are sorted by name. Compression (gzip, bzip2,
        xz, Zstandard) is recognised by the first bytes.
    columns : Columns, optional
        What the columns mean; updated as chunks are given. CSV and Parquet need one to train.
    format : {"svmlight", "csv", "parquet"}, optional
        The format of all files. By default each file's extension decides, else its first line.
    learn : bool, default=True
        Whether new labels, categories and indices are added to `columns`. Otherwise features that
        it does not know are left out.
    labels : bool, default=True
        Whether to read labels.
    chunk_rows : int, default=8192
        Rows of a chunk. The last chunk of a file and chunks with malformed rows may have fewer;
        chunks of wide rows have as many as fit in 32 MiB of text and of numbers.
    on_error : {"raise", "skip"}, default="raise"
        Whether a malformed row is an error, or is skipped and counted.
    max_errors : int, default=100
        How many rows may be skipped; one more is an error.
    start : Position, optional
        Where to go on reading, the `position` of an earlier stream over the same files.
    separator : str, optional
        What stands between the cells of CSV text. By default each file's first rows tell: a comma,
        a semicolon, a tab or a bar.
    decimal : {".", ","}, optional
        The decimal mark of numbers in CSV text; else the first rows tell.
    encoding : str, optional
        The encoding of text. By default it is UTF-8, or UTF-16 if the file begins with its mark;
        cells that are not UTF-8 are read as Windows-1252.

    Returns
    -------
    Stream
        An iterator of chunks.

    Raises
    ------
    ValueError
        If a file or a row is malformed, or is not as `start` knows it.
    OSError
        If a file cannot be read.

    Examples
    --------
    >>> import io
    >>> from cbrank.streams import open_stream
    >>> for chunk in open_stream(io.BytesIO(b"1 1:0.5\n-1 3:2\n1 1:7\n"), chunk_rows=2):
    ...     print(chunk.X.toarray().tolist(), chunk.y)
    [[0.5, 0.0, 0.0], [0.0, 0.0, 2.0]] [1 0]
    [[7.0, 0.0, 0.0]] [1]
    """
    chunk_rows, max_errors = operator.index(chunk_rows), operator.index(max_errors)
    if chunk_rows < 1 or max_errors < 0:
        counts = f"{chunk_rows} and {max_errors}"
        raise ValueError(f"chunk_rows must be at least 1 and max_errors 0, got {counts}.")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error must be 'raise' or 'skip', got {on_error!r}.")
    if format not in (None, *get_args(Format)):
        raise ValueError(f"format must be one of {', '.join(get_args(Format))}, got {format!r}.")
    if separator is not None and (
        len(separator) != 1 or separator in '\r\n"' or ord(separator) > 127
    ):
        raise ValueError(f"separator must be one ASCII character and no quote, got {separator!r}.")
    if decimal not in (None, ".", ","):
        raise ValueError(f"decimal must be '.' or ',', got {decimal!r}.")
    sources = find_sources(paths)
    position = Position(tuple(mark(source) for source in sources))
    for source, file in zip(sources, position.files, strict=True):
        if file.size:
            _refuse_unreadable(source, format)
    if start is not None:
        start._refuse_changes(position.files)
        position = replace(start, files=position.files)
    settings = _Settings(
        format=format,
        columns=columns or Columns(),
        learn=learn,
        labels=labels,
        rows=chunk_rows,
        complaints=Complaints(max_errors if on_error == "skip" else 0, position.errors),
        notes=[],
        asked=Asked(separator, decimal),
        encoding=checked_encoding(encoding),
    )
    return Stream(sources, position, settings)


class Stream(Iterator[Chunk]):
    r"""An iterator over the chunks of a stream, made by `open_stream`.

    Parameters
    ----------
    sources : list
        The files.
    position : Position
        Where to begin.
    settings : tuple
        How to read them.

    Attributes
    ----------
    columns : Columns
        What the columns mean, as of the last chunk.
    position : Position
        The place after the last chunk.
    bytes_read : int
        Bytes read of the files as they are on disk; of a pipe, of its decompressed text.
    bytes_total : int or None
        The size of all files; None if one is a pipe.
    complaints : list of str
        A message on each of the first few rows that were skipped.
    unlabelled : int
        Rows of a table as it comes that were left out because their label is a gap.
    notes : list of str
        Other messages for the user, such as on columns that were ignored.

    Examples
    --------
    >>> import io
    >>> from cbrank.streams import open_stream
    >>> with open_stream(io.BytesIO(b"1 1:x\n0\n1\n"), on_error="skip") as stream:
    ...     print(sum(len(chunk.y) for chunk in stream), stream.complaints)
    2 ["<stream>, line 1, column 5: the value 'x' is not a finite number."]
    """

    def __init__(self, sources: list[Source], position: Position, settings: _Settings) -> None:
        self.columns, self.position, self.notes = settings.columns, position, settings.notes
        sizes = [file.size for file in position.files]
        self.bytes_total = None if None in sizes else sum(size or 0 for size in sizes)
        self.bytes_read = sum(size or 0 for size in sizes[: position.file])
        self.complaints: list[str] = []
        self.unlabelled = 0
        self._settings = settings
        self._labels = Complaints(settings.complaints.limit, position.errors)
        self._ready: Ready = queue.SimpleQueue()
        self._items = read_ahead(_read(sources, position, settings), self._ready)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Chunk:
        for item in self._items:
            X, y, ids, lines = self._meaning(item)
            if X.shape[0]:
                return Chunk(X, y, ids, self.position, lines)
        raise StopIteration

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop reading."""
        self._items.close()

    def stop(self) -> None:
        """End the stream after the chunks that are already read; a signal handler may call it."""
        self._ready.put(None)

    def _meaning(self, item: _Item) -> Any:
        """Return features, labels and ids of the rows, and move to the position after them."""
        rows, name = item.rows, self.position.files[item.file].name
        if not self._settings.labels:
            rows = rows._replace(labels=None)
        X, y, ids, kept, faults = self.columns._encode(rows, learn=self._settings.learn, where=name)
        self.unlabelled += 0 if kept is None else len(rows.lines) - len(kept) - len(faults)
        self._labels.count_in(rows.errors)
        column = 1 if self.columns.numeric_ is None else self.columns.label
        for row, sentence in faults:
            self._labels.add(
                f"{name}, {item.unit} {rows.lines[row]}, column {column!r}: {sentence}"
            )
        _, sentences = self._labels.pop()
        self.complaints = [*self.complaints, *rows.complaints, *sentences][:FIRST_FEW]
        self.bytes_read = item.bytes_read
        self.position = Position(
            self.position.files,
            item.file,
            rows.offset,
            rows.line,
            self.position.rows + X.shape[0],
            self._labels.total,
        )
        return X, y, ids, rows.lines if kept is None else rows.lines[kept]


def _read(
    sources: list[Source], position: Position, settings: _Settings
) -> Generator[_Item, None, None]:
    """Read the files from a position on, in the background thread."""
    done = sum(file.size or 0 for file in position.files[: position.file])
    offset, line = position.offset, position.line
    for number, source in enumerate(sources[position.file :], position.file):
        name = source_name(source)
        with open_source(source, own_input=True) as opened:
            form = settings.format or _told_by_name(source) or _told_by_content(opened)
            if form == "parquet":
                for rows, read in _read_parquet(opened, name, offset, settings):
                    yield _Item(number, rows, done + read, "row")
            else:
                text = recoded(opened, settings.encoding, name)
                for rows, read in _read_text(text, name, form, offset, line, settings):
                    yield _Item(number, rows, done + read, "line")
        done += position.files[number].size or 0
        offset, line = 0, 1


def _read_text(
    opened: Opened, name: str, form: Format | None, offset: int, line: int, settings: _Settings
) -> Iterator[tuple[Rows, int]]:
    """Read svmlight text or CSV from an offset on; yield rows and bytes read."""
    lines, rows = Lines(opened, name), settings.rows
    form, text = (form, lines.take()) if form else _told_by_text(lines, settings.columns)
    refuse_other_formats(text, name)
    if form == "svmlight":
        settings.columns.expect(sparse=True, name=name, learn=settings.learn)
        base = 0 if settings.columns.zero_based else 1
        widest = settings.columns.max_width if settings.learn else WIDEST
        parser: Parser = SvmlightParser(rows, base, widest)
        begin, first_line = 0, 1
    else:
        text, dialect = _dialect(lines, text, settings)
        text, names, begin, first_line = _header(lines, text, dialect)
        if not names:
            return
        names = settings.columns.names_of(names, dialect.unnamed)
        roles = _roles(names, name, settings, dialect)
        if settings.learn:
            settings.columns.decimal = dialect.decimal
        rows = rows_that_fit(rows, roles.n_numbers, len(roles.cells))
        parser = CsvParser(rows, names, roles, lines.longest, dialect)
    text = lines.cut(text, offset or min(lines.offset + begin, lines.end))
    line = line if offset else first_line
    size, noted = Size(rows, CHUNK_BYTES), False
    for found in read_rows(lines, text, line, parser, size, settings.complaints):
        if isinstance(parser, CsvParser) and parser.cells.foreign and not noted:
            noted = True
            settings.notes.append(
                f"{name} is not UTF-8: cells such as {parser.cells.foreign[:24]!r} are read as "
                "Windows-1252."
            )
        yield found, opened.consumed(found.offset)


def _dialect(lines: Lines, text: bytes, settings: _Settings) -> tuple[bytes, Dialect]:
    """Return text that has the first rows, and how they are written."""
    while len(text) < _LOOKED_AT and not lines.over:
        text = lines.more(text, 0)
    cut = text.rfind(b"\n", 0, _LOOKED_AT) + 1 or text.find(b"\n") + 1
    dialect = told(text[:cut], settings.asked, settings.columns.expected())
    if note := dialect.note(lines.name):
        settings.notes.append(note)
    return text, dialect


def _header(lines: Lines, text: bytes, dialect: Dialect) -> tuple[bytes, list[str], int, int]:
    """Return text that has the whole header, and what `split_header` finds in it."""
    above, passed = dialect.above, text.count(b"\n", 0, dialect.above)
    while True:
        cut = lines.whole(text)
        over = lines.over and cut == len(text)
        found = split_header(text[above:cut], lines.name, over=over, separator=dialect.separator)
        if found and not dialect.header:
            return text, numbered(len(found[0])), above, 1 + passed
        if found:
            return text, found[0], above + found[1], passed + found[2]
        if cut < len(text):
            size = f"{lines.longest >> 20} MiB"
            raise ValueError(f"{lines.name}: there is no header line in its first {size}.")
        text = lines.more(text, 0)


def _read_parquet(
    opened: Opened, name: str, start: int, settings: _Settings
) -> Iterator[tuple[Rows, int]]:
    """Read a Parquet file from a row on; yield rows and roughly the bytes read."""
    if opened.stream is not opened.raw or not opened.seekable():
        raise ValueError(f"{name}: Parquet is read from plain files only, not compressed or piped.")
    size = opened.raw.seek(0, os.SEEK_END)
    if size == 0:
        return
    with open_parquet(opened.raw, name) as file:
        roles = _roles(file.schema_arrow.names, name, settings)
        most = rows_that_fit(settings.rows, roles.n_numbers, len(roles.cells))
        for rows in read_parquet(file, name, roles, start, most, settings.complaints):
            yield rows, size * rows.offset // file.metadata.num_rows


def _roles(
    names: list[str], name: str, settings: _Settings, dialect: Dialect | None = None
) -> Roles:
    try:
        roles, notes = settings.columns._match(
            names, name, learn=settings.learn, labelled=settings.labels
        )
    except ValueError as error:
        told = [str(error), dialect.note(name) if dialect else None]
        if dialect and len(names) == 1 and "`separator" not in str(error):
            told.append("If cells are separated otherwise, say how by `separator=...`.")
        raise ValueError(" ".join(filter(None, told))) from None
    settings.notes.extend(notes)
    return roles


def _refuse_unreadable(source: Source, form: Format | None) -> None:
    """Refuse a file that needs a package which is missing, before those before it are read."""
    with open_source(source) as opened:
        if (form or _told_by_name(source) or _told_by_content(opened)) == "parquet":
            import_parquet(source_name(source))


def _told_by_name(source: Source) -> Format | None:
    if not isinstance(source, str | os.PathLike):
        return None
    suffixes = [suffix.lower() for suffix in PurePath(source).suffixes]
    if suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return _EXTENSIONS.get(suffixes[-1]) if suffixes else None


def _told_by_content(opened: Opened) -> Format | None:
    return "parquet" if opened.head(len(_PARQUET)) == _PARQUET else None


def _told_by_text(lines: Lines, columns: Columns) -> tuple[Format, bytes]:
    """Return the format by the first line that is not blank or a comment, and the text read."""
    text = lines.take()
    if columns.AS_THEY_COME and b":" not in text.partition(b"\n")[0]:
        return "csv", text
    while True:
        cut = lines.whole(text)
        form = _told_by_line(text[:cut])
        if form or lines.over or cut < len(text):
            return form or "svmlight", text
        text = lines.more(text, 0)


def _told_by_line(text: bytes) -> Format | None:
    """Return "svmlight" for a line of a number and then words with colons, else "csv"."""
    lines = (line.partition(b"#")[0].split(None, 2) for line in io.BytesIO(text))
    label, *words = next(filter(None, lines), [b""])
    if not label:
        return None
    try:
        float(label)
    except ValueError:
        return "csv"
    return "svmlight" if all(b":" in word for word in words[:1]) else "csv"
