"""Partitions on disk: each file is one, read in chunks by the worker that learns from it."""

import os
from collections.abc import Generator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import ArrayLike, NDArray

from cbrank.dask.compiling import one_at_a_time, tell_client
from cbrank.dask.learning import CHUNK_ROWS, Chunk, Form
from cbrank.rankers import CBRanker, checks
from cbrank.streams import Columns, StreamScaler, open_stream
from cbrank.streams.labels import Labels, canonical
from cbrank.streams.reading import Format
from cbrank.streams.sources import find_sources
from cbrank.training.model import refuse_too_wide

Scale = Literal["none", "unit"]


class Files:
    r"""Files to learn from on a cluster: svmlight text, CSV or Parquet, plain or compressed.

    Each file is a partition and is read in chunks by a worker, so all workers must find it under
    the same path. The classes that a ranker learns are 0 and 1, the positive one;
    ``columns.classes_`` says which labels these are.

    Parameters
    ----------
    paths : path, glob or sequence of them
        The files, in order; those of a glob by name.
    columns : Columns, optional
        What the columns mean, the same for all files; the first file's header says the rest. CSV
        and Parquet need one. Categories must be listed or hashed: with "onehot" every file would
        number them in its own way.
    format : {"svmlight", "csv", "parquet"}, optional
        The format of all files; else told by each file's extension, or by its first line.
    scale : {"none", "unit"}, default="none"
        Whether each row is divided by its length.
    widest : int, optional
        The most features that a full covariance may have.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from dask.distributed import Client
    >>> from cbrank.dask import DaskCBRanker, Files
    >>> from cbrank.streams import Columns
    >>> folder = Path(tempfile.mkdtemp())
    >>> for day, rows in enumerate(["31,no\n44,yes\n", "27,no\n52,yes\n"]):
    ...     _ = (folder / f"day{day}.csv").write_text("age,clicked\n" + rows)
    >>> days = Files(folder / "day*.csv", Columns(label="clicked"))
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
    ...     ranker = DaskCBRanker(client=client).fit(days)
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
        self.paths = [str(Path(path).absolute()) for path in _named(find_sources(paths))]
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
        told = self.columns, self.format, self.scale, self.widest
        return [File(number, path, *told) for number, path in enumerate(self.paths)]

    def form(
        self,
        client: Client,
        ranker: CBRanker,
        classes: ArrayLike | None,  # noqa: ARG002
    ) -> Form:
        """Find out what must be known before the first row is learned from.

        Parameters
        ----------
        client : Client
            Whose workers look at the files.
        ranker : CBRanker
            What is to learn.
        classes : object
            Ignored: they are 0 and 1.

        Returns
        -------
        Form
            What is known; `columns` is what the columns mean from here on.
        """
        looks = [delayed(File.look)(part) for part in self.parts()]
        sights = [sight for sight in client.gather(client.compute(looks)) if sight.labels]
        if not sights:
            raise ValueError(f"There are no rows to learn from in {', '.join(self.paths)}.")
        for sight in sights[1:]:
            sights[0].columns.expect(sparse=_is_text(sight.columns), name=sight.path, learn=True)
        self.columns, labels = sights[0].columns, Labels(self.columns.labels.positive)
        found = dict.fromkeys(label for sight in sights for label in sight.labels)
        labels.encode(list(found), learn=True, where="All files")
        checks.check_classes(labels.known())
        self.columns.labels = labels
        if _is_text(self.columns):
            self.columns.width_ = max(sight.columns.width_ for sight in sights)
        refuse_too_wide(ranker, self.columns.width_, self.widest)
        sparse = _is_text(self.columns) or bool(self.columns.categorical)
        return Form(np.arange(2), self.columns.width_, sparse)


class Sight(NamedTuple):
    """What a look into a file told."""

    path: str
    columns: Columns
    labels: list[str]


@dataclass
class File:
    """A file, on a worker."""

    number: int
    path: str
    columns: Columns
    format: Format | None
    scale: Scale
    widest: int | None

    def look(self) -> Sight:
        """Read until there are two labels: a chunk, or a file of one label to its end."""
        columns, heard = deepcopy(self.columns), _Heard()
        columns.labels = heard
        with (
            one_at_a_time("cbrank.streams"),
            open_stream(self.path, columns=columns, format=self.format) as stream,
        ):
            for _ in stream:
                if len(heard.labels) > 1:
                    break
        columns.labels = self.columns.labels
        return Sight(self.path, columns, list(heard.labels))

    def chunks(
        self, random: np.random.Generator | None, width: int
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, each shuffled by `random` if there is one."""
        columns = deepcopy(self.columns)
        columns.width_ = max(columns.width_, width)
        scaler = StreamScaler(self.scale)
        with open_stream(
            self.path, columns=columns, format=self.format, chunk_rows=CHUNK_ROWS
        ) as stream:
            for X, y, _, _ in stream:
                rows = slice(None) if random is None else random.permutation(X.shape[0])
                assert y is not None
                yield scaler.learn_transform(X)[rows], y[rows], None
            for note in stream.notes:
                tell_client(note)

    def make_room(self, ranker: CBRanker, width: int) -> None:
        """Widen a ranker to rows of this width: features appear as a stream goes."""
        refuse_too_wide(ranker, width, self.widest)
        if width > ranker.n_features_in_:
            ranker.resize(width)

    def explained(self, error: ValueError, prior: CBRanker) -> ValueError:  # noqa: ARG002
        """Return the error, which names file and line."""
        return error


class _Heard(Labels):
    """Note which labels there are, and complain about none."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: dict[str, None] = {}

    def encode(
        self,
        labels: NDArray[np.float64] | list[str],
        *,
        learn: bool,  # noqa: ARG002
        where: str,  # noqa: ARG002
    ) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        words: list[Any] = np.unique(labels).tolist()
        self.labels |= dict.fromkeys(filter(None, map(canonical, words)))
        return np.zeros(len(labels), np.int64), []


def _named(sources: Sequence[Any]) -> Sequence[Any]:
    """Return sources, if workers can read them: standard input and open files they cannot."""
    for source in sources:
        if source == "-" or not isinstance(source, str | os.PathLike):
            raise ValueError("a cluster reads files that have a path, not standard input.")
    return sources


def _is_text(columns: Columns) -> bool:
    """Say whether these are the columns of svmlight text."""
    return columns.numeric_ is None
