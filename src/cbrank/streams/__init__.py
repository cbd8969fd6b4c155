r"""From bytes to chunks of rows: what the command line reads, and where it stopped.

The interface, for whoever trains from files::

    columns = Columns(label="clicked", positive="yes", id="row", drop=["ip"],
                      categorical={"city": "onehot", "page": "hash:12", "plan": ["free", "paid"]},
                      zero_based=False, max_features=2**24)
    with open_stream(["day1.csv.gz", "day2*.csv.zst"], columns=columns, chunk_rows=8192,
                     on_error="raise" | "skip", max_errors=100, start=None) as stream:
        for chunk in stream:
            chunk.X          # (n, width so far) float64: ndarray (CSV or Parquet without
                             #  categories), else csr_array
            chunk.y          # (n,) int64: 1 for the positive label, 0 for the other; None if unread
            chunk.ids        # list of str, or None
            chunk.position   # Position after this chunk
    stream.position, stream.bytes_read, stream.bytes_total   # so far; compressed bytes; None = unknown
    stream.complaints, stream.notes                           # sentences to show, the first few

* ``open_stream(paths, columns=..., format=None | "svmlight" | "csv" | "parquet", learn=True,
  labels=True)``: a path, "-", a glob or a list of them. Training and updating learn
  (``learn=True``): the header, the two labels, new categories and new indices widen ``columns``.
  Evaluating does not (``learn=False``): what the model never saw is left out. Scoring reads no
  labels either (``labels=False``): the label column may be missing, ``chunk.y`` is None.
* `Columns` is what the columns mean. It travels with the model: ``columns.get_state()`` gives
  ``(arrays, facts)``, ``Columns.from_state(arrays, facts)`` takes them back. ``columns.classes_``
  are the two labels as text, the positive one last (so a ranker starts with ``classes=[0, 1]``);
  ``columns.width_`` is the width so far; ``columns.feature_names()`` names the features.
* `Position` is JSON: ``position.to_json()``, ``Position.from_json(facts)``. With
  ``open_stream(..., start=position)`` and the columns as they were then, exactly the remaining
  rows come, in the same chunks (a chunk ends at each ``chunk_rows`` rows of a file, at 32 MiB of
  text or numbers and at the file's end, so it never spans two files). A file that changed is
  refused.
* `StreamScaler` scales rows by what it has seen so far: ``learn_transform(X)`` to train,
  ``transform(X)`` to score; ``get_state`` and ``from_state`` as above.

Whatever is wrong with the input is a ValueError of one sentence that names file, line and column
(an unreadable file is an OSError). Chunks are read ahead in a thread; ``columns`` and
``stream.position`` always are as of the last chunk given, so they can be saved together.
"""

from typing import TYPE_CHECKING, Any

from cbrank.streams.columns import Columns
from cbrank.streams.position import FileMark, Position
from cbrank.streams.reading import Chunk, Stream, open_stream

if TYPE_CHECKING:
    from cbrank.streams.scaling import StreamScaler

__all__ = ["Chunk", "Columns", "FileMark", "Position", "Stream", "StreamScaler", "open_stream"]


def __getattr__(name: str) -> Any:
    """Import the scaler, and scikit-learn with it, at its first use."""
    if name != "StreamScaler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cbrank.streams.scaling import StreamScaler  # noqa: PLC0415

    return StreamScaler
