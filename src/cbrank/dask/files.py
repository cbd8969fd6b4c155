"""Partitions on disk: each file is one, and the worker that learns from it reads it in chunks."""

import os
from collections.abc import Collection, Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import ArrayLike, NDArray

from cbrank.dask.cluster import compiled_once, tell_client
from cbrank.dask.tasks import CHUNK_ROWS, Chunk, Schema
from cbrank.rankers import checks
from cbrank.streams import Columns, StreamScaler, open_stream
from cbrank.streams.labels import Labels, canonical
from cbrank.streams.reading import Format
from cbrank.streams.sources import find_sources
from cbrank.training.model import refuse_too_wide

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker

Scale = Literal["none", "unit"]


class Files:
    r"""Files to learn from on a cluster: svmlight text, CSV or Parquet, plain or compressed.

    Each file is a partition and is read in chunks by a worker, so all workers must find it under
    the same path. To the ranker the labels are 0 and 1, where 1 is the positive class;
    `DaskRanker.columns_` has the labels of the files in its ``classes_``.

    Parameters
    ----------
    paths : path, glob or sequence of them
        The files, in order; those that match a glob by name.
    columns : Columns, optional
        What the columns mean, the same for all files: CSV and Parquet need it, to know at least
        which column is the label. Columns that it does not name are those of the first file's
        header. Categories must be listed or hashed: with "onehot" every file would number them in
        its own way.
    format : {"svmlight", "csv", "parquet"}, optional
        The format of all files; by default told by each file's extension, or by its first line.
    scale : {"none", "unit"}, default="none"
        Whether each row is divided by its length.
    widest : int, optional
        The most features that a full covariance may have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dask.distributed import Client
    >>> from cbrank import CBRanker
    >>> from cbrank.dask import DaskRanker, Files
    >>> from cbrank.streams import Columns
    >>> folder = Path(tempfile.mkdtemp())
    >>> for day, rows in enumerate(["31,no\n44,yes\n", "27,no\n52,yes\n"]):
    ...     _ = (folder / f"day{day}.csv").write_text("age,clicked\n" + rows)
    >>> days = Files(folder / "day*.csv", Columns(label="clicked"))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     ranker = DaskRanker(CBRanker(), client=client).fit(days)
    >>> ranker.n_seen_, ranker.columns_.classes_
    (array([2, 2]), ['no', 'yes'])
    """

    def __init__(
        self,
        paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        columns: Columns | None = None,
        *,
        format: Format | None = None,
        scale: Scale = "none",
        widest: int | None = None,
    ) -> None:
        self.paths = [str(Path(path).absolute()) for path in _readable(find_sources(paths))]
        self.columns = Columns() if columns is None else columns
        self.format, self.scale, self.widest = format, scale, widest
        if scale not in ("none", "unit"):
            raise ValueError(f"scale must be 'none' or 'unit', got {scale!r}.")
        for name, how in self.columns.categorical.items():
            if how == "onehot":
                raise ValueError(
                    f"column {name!r} cannot be onehot here, since every file would number its "
                    "categories in its own way: list the categories, or say hash:BITS."
                )

    def parts(self) -> list["File"]:
        """Return the partitions.

        Returns
        -------
        list of File
            One for each path.
        """
        shared = self.columns, self.format, self.scale, self.widest
        return [File(number, path, *shared) for number, path in enumerate(self.paths)]

    def schema(
        self,
        client: Client,
        ranker: "CBRanker",
        classes: ArrayLike | None,  # noqa: ARG002
    ) -> Schema:
        """Find out what must be known of all rows before the first is learned from.

        Parameters
        ----------
        client : Client
            Whose workers read the beginnings of the files.
        ranker : CBRanker
            The ranker that is to learn.
        classes : object
            Ignored: they are 0 and 1.

        Returns
        -------
        Schema
            What was found; `columns` knows it from here on, too.
        """
        tasks = [delayed(File.begin)(part) for part in self.parts()]
        found = [file for file in client.gather(client.compute(tasks)) if file.labels]
        if not found:
            raise ValueError(f"There are no rows to learn from in {', '.join(self.paths)}.")
        for file in found[1:]:
            found[0].columns.expect(sparse=_is_text(file.columns), name=file.path, learn=True)
        self.columns, labels = found[0].columns, Labels(self.columns.labels.positive)
        words = dict.fromkeys(label for file in found for label in file.labels)
        labels.encode(list(words), learn=True, where="All files")
        checks.check_classes(labels.known())
        self.columns.labels = labels
        if _is_text(self.columns):
            self.columns.width_ = max(file.columns.width_ for file in found)
        refuse_too_wide(ranker, self.columns.width_, self.widest)
        sparse = _is_text(self.columns) or bool(self.columns.categorical)
        return Schema(np.arange(2), self.columns.width_, sparse)


class Beginning(NamedTuple):
    """What the first rows of a file tell."""

    path: str
    columns: Columns
    labels: list[str]


@dataclass
class File:
    """One file, as the worker that reads it knows it."""

    number: int
    path: str
    columns: Columns
    format: Format | None
    scale: Scale
    widest: int | None

    def begin(self) -> Beginning:
        """Read until two labels have come: mostly one chunk, but a file of one label to its end."""
        columns, collected = deepcopy(self.columns), _CollectedLabels()
        columns.labels = collected
        with (
            compiled_once("cbrank.streams"),
            open_stream(self.path, columns=columns, format=self.format) as stream,
        ):
            for _ in stream:
                if len(collected.words) > 1:
                    break
        columns.labels = self.columns.labels
        return Beginning(self.path, columns, list(collected.words))

    def chunks(
        self, random: np.random.Generator | None, width: int
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, each shuffled by `random` if it is not None."""
        columns = deepcopy(self.columns)
        columns.width_ = max(columns.width_, width)
        scaler = StreamScaler(self.scale)
        with open_stream(
            self.path, columns=columns, format=self.format, chunk_rows=CHUNK_ROWS
        ) as stream:
            for X, y, *_ in stream:
                rows = slice(None) if random is None else random.permutation(X.shape[0])
                assert y is not None
                yield scaler.learn_transform(X)[rows], y[rows], None
            for note in stream.notes:
                tell_client(note)

    def widen(self, ranker: "CBRanker", width: int) -> None:
        """Make room in a ranker for rows of this width: later rows may have further features."""
        refuse_too_wide(ranker, width, self.widest)
        if width > ranker.n_features_in_:
            ranker.resize(width)

    def located(self, error: ValueError, prior: "CBRanker") -> ValueError:  # noqa: ARG002
        """Return the error as it is, for it names file and line."""
        return error


class _CollectedLabels(Labels):
    """All labels of the rows read, however many: it is for all files together to refuse a third."""

    def __init__(self) -> None:
        super().__init__()
        self.words: dict[str, None] = {}  # in the order in which they came

    def encode(
        self,
        labels: NDArray[np.float64] | list[str],
        *,
        learn: bool,  # noqa: ARG002
        where: str,  # noqa: ARG002
        gaps: Collection[str] = (),
    ) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        found: list[Any] = np.unique(labels).tolist()
        known = [label for label in map(canonical, found) if label.lower() not in gaps]
        self.words |= dict.fromkeys(filter(None, known))
        return np.zeros(len(labels), np.int64), []


def _readable(sources: Sequence[Any]) -> Sequence[Any]:
    """Return sources that workers can open: all but standard input and open files."""
    for source in sources:
        if source == "-" or not isinstance(source, str | os.PathLike):
            raise ValueError("a cluster reads files that have a path, not standard input.")
    return sources


def _is_text(columns: Columns) -> bool:
    """Say whether these are the columns of svmlight text."""
    return columns.numeric_ is None
