r"""Read rows from files in chunks: svmlight text, CSV and Parquet, plain or compressed.

In short::

    columns = Columns(label="clicked", positive="yes", id="row", drop=["ip"],
                      categorical={"city": "onehot", "page": "hash:12", "plan": ["free", "paid"]},
                      zero_based=False, max_width=2**24)
    with open_stream(["day1.csv.gz", "day2*.csv.zst"], columns=columns, chunk_rows=8192,
                     on_error="raise" | "skip", max_errors=100, start=None) as stream:
        for chunk in stream:
            chunk.X          # (n, width so far) float64: ndarray (CSV or Parquet without
                             #  categories), else csr_array
            chunk.y          # (n,) int64: 1 for the positive label, 0 for the other; None if unread
            chunk.ids        # list of str, or None
            chunk.position   # Position after this chunk
    stream.position, stream.bytes_read, stream.bytes_total   # so far; bytes on disk; None = unknown
    stream.complaints, stream.notes                           # messages about skipped rows, and others

* ``open_stream(paths, columns=..., format=None | "svmlight" | "csv" | "parquet", learn=True,
  labels=True)``: a path, "-", a glob or a list of them. To train or update, ``learn=True``:
  the header, the two labels, new categories and new indices are added to ``columns``. To evaluate,
  ``learn=False``: features that the model does not know are left out. To score, ``labels=False``
  as well: the label column may be missing, and ``chunk.y`` is None.
* `Columns` says what the columns mean. It is stored with the model: ``columns.get_state()`` gives
  ``(arrays, facts)``, from which ``Columns.from_state(arrays, facts)`` makes it again.
  ``columns.classes_`` are the two labels as text, the positive one last (chunks have them as 0 and
  1); ``columns.width_`` is the number of features so far; ``columns.feature_names()`` names them.
* `Position` is a place in a stream, and can be stored as JSON: ``position.to_json()``,
  ``Position.from_json(facts)``. ``open_stream(..., start=position)``, with the columns as they were
  then, gives exactly the remaining rows in the same chunks. A file that has changed is refused.
  (A chunk ends after ``chunk_rows`` rows, at 32 MiB of text or numbers, and at the end of a file,
  so that it never spans two files.)
* `StreamScaler` scales rows by the statistics so far: ``learn_transform(X)`` to train,
  ``transform(X)`` to score; ``get_state`` and ``from_state`` as above.

Malformed input is a ValueError of one sentence that names file, line and column; an unreadable file
is an OSError. Chunks are read ahead in a thread, but ``columns`` and ``stream.position`` are always
those of the last chunk given, so that they can be saved together.
"""

from typing import TYPE_CHECKING, Any

from cbrank.streams.columns import Columns
from cbrank.streams.position import FileMark, Position
from cbrank.streams.reading import Chunk, Stream, open_stream
from cbrank.streams.table_columns import TableColumns

if TYPE_CHECKING:
    from cbrank.streams.scaling import StreamScaler

__all__ = [
    "Chunk",
    "Columns",
    "FileMark",
    "Position",
    "Stream",
    "StreamScaler",
    "TableColumns",
    "open_stream",
]


def __getattr__(name: str) -> Any:
    """Import the scaler, and scikit-learn with it, at its first use."""
    if name != "StreamScaler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cbrank.streams.scaling import StreamScaler  # noqa: PLC0415

    return StreamScaler
