"""Partitions on disk: each file is one, and the worker that learns from it reads it in chunks."""

import os
import warnings
from collections import Counter
from collections.abc import Collection, Generator, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from dask import delayed
from distributed import Client
from numpy.typing import ArrayLike, NDArray

from cbrank import checks
from cbrank.dask.cluster import compiled_once, tell_client
from cbrank.dask.tasks import CHUNK_ROWS, Chunk, Schema
from cbrank.features.table import Table
from cbrank.streams import Columns, StreamScaler, TableColumns, open_stream
from cbrank.streams.labels import Labels, canonical
from cbrank.streams.sources import find_sources
from cbrank.training.holdout import Holdout, first_of_last
from cbrank.training.misfits import Misfits
from cbrank.training.model import Model, refuse_too_wide
from cbrank.training.shuffling import Buckets
from cbrank.training.survey import count_labels, count_rows

if TYPE_CHECKING:
    from cbrank.rankers import CBRanker

Scale = Literal["none", "unit", "standard", "maxabs"]
Ranked = tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64]]

_MEASURED = ("standard", "maxabs")  # scales that take statistics of all rows


class Files:
    r"""Files to learn from on a cluster: svmlight text, CSV or Parquet, plain or compressed.

    Each file is a partition and is read in chunks by a worker, so all workers must find it under
    the same path. To the ranker the labels are 0 and 1, where 1 is the positive class;
    `DaskRanker.columns_` has the labels of the files in its ``classes_``.

    Parameters
    ----------
    paths : path, glob or sequence of them
        The files, in order; those that match a glob by name.
    columns : Columns or TableColumns, optional
        What the columns mean, the same for all files: CSV and Parquet need it, to know at least
        which column is the label. Columns that it does not name are those of the first file's
        header. `AdditiveRanker` takes tables as they come, by `TableColumns`.
    scale : {"none", "unit", "standard", "maxabs"}, default="none"
        How rows of numbers are scaled, as in `StreamScaler`; "standard" and "maxabs" go by the
        statistics of all files, which are read once more for it.
    holdout : float, optional
        The share of rows that are never learned from; `held_out` ranks them.
    last : bool, default=False
        Whether that is the last share of all rows; else random rows of each file. The rows are counted first.
    seed : int, default=0
        What the choice of those rows depends on, beside their places.
    strict : bool, default=False
        Whether a word in a column of numbers or dates is an error; else it is a gap, and told of.
    widest : int, optional
        The most features that a full covariance may have.
    **reading : object
        How to read: `format`, `separator`, `decimal` and `encoding` as `open_stream` takes them.

    Attributes
    ----------
    scaler : StreamScaler
        What scales the rows; fitted once all files were looked at, if it learns from rows.

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
        scale: Scale = "none",
        holdout: float | None = None,
        last: bool = False,
        seed: int = 0,
        strict: bool = False,
        widest: int | None = None,
        **reading: Any,
    ) -> None:
        self.paths = [str(Path(path).absolute()) for path in _readable(find_sources(paths))]
        self.columns = Columns() if columns is None else columns
        if scale not in ("none", "unit", *_MEASURED):
            raise ValueError(f"scale must be none, unit, standard or maxabs, got {scale!r}.")
        self.scaler = StreamScaler(scale)
        self.holdout, self.last, self.seed = holdout, last, seed
        self._begins: list[int] | None = None  # where the last rows begin in each file
        self.strict, self.widest, self.reading = strict, widest, reading
        self._looked = False

    def go_on(self, columns: Columns, scaler: StreamScaler) -> None:
        """Read as files before were read.

        Parameters
        ----------
        columns : Columns
            What their columns mean.
        scaler : StreamScaler
            What scaled their rows.
        """
        self.columns, self.scaler = columns, scaler
        self._looked = "onehot" not in columns.categorical.values()

    def parts(self) -> list["File"]:
        """Return the partitions.

        Returns
        -------
        list of File
            One for each path.
        """
        shared = self.columns, self.scaler, self.strict, self.widest, self.reading
        return [
            File(number, path, self._held(number), *shared)
            for number, path in enumerate(self.paths)
        ]

    def _held(self, number: int) -> Holdout | None:
        if self.holdout is None:
            return None
        begin = self._begins[number] if self._begins else None
        return Holdout(self.holdout, self.seed + number, begin)

    def look(self, client: Client) -> None:
        """Find out what must be known of all files before the first row is learned from.

        That is columns, labels, one-hot categories and statistics to scale by. Workers read the
        beginnings of files for it, or whole files where a rare value must not be missed.

        Parameters
        ----------
        client : Client
            Whose workers read.
        """
        if self.last and self.holdout is not None and self._begins is None:
            counts = self._each(client, File.count)
            begin = first_of_last(self.holdout, sum(counts))
            self._begins = [begin - before for before in accumulate(counts[:-1], initial=0)]
        if self._looked:
            return
        found = [file for file in self._each(client, File.begin) if file.labels]
        if not found:
            raise ValueError(f"There are no rows to learn from in {', '.join(self.paths)}.")
        first = found[0].columns
        for file in found[1:]:
            first.expect(sparse=_is_text(file.columns), name=file.path, learn=True)
            first.take_in(file.columns)
        if first.labels.negative is None:
            first.labels.learn(sum((file.labels for file in found), Counter()), "All files")
        checks.check_classes(first.labels.known())
        if _is_text(first):
            first.width_ = max(file.columns.width_ for file in found)
        self.columns = first
        if self.scaler.kind in _MEASURED and not self.scaler.__sklearn_is_fitted__():
            self.scaler = _of_all([*filter(None, self._each(client, File.measure))])
        self._looked = True
        alone = sum(len(file.labels) == 1 for file in found)
        if len(found) > 1 and 2 * alone > len(found):
            warnings.warn(
                f"{alone:,} of {len(found):,} files have one label only, and what is learned from one "
                "file alone is little there: mix the rows of all files first, or learn without a "
                "cluster.",
                stacklevel=2,
            )

    def schema(
        self,
        client: Client,
        ranker: "CBRanker",
        classes: ArrayLike | None,  # noqa: ARG002
    ) -> Schema:
        """Find out what a ranker must know before it learns from the first row.

        Parameters
        ----------
        client : Client
            Whose workers look at the files.
        ranker : CBRanker
            The ranker that is to learn; one of tables is told what columns were said to be.
        classes : object
            Ignored: they are 0 and 1.

        Returns
        -------
        Schema
            What was found; `columns` knows it from here on, too.
        """
        from cbrank.rankers import AdditiveRanker  # noqa: PLC0415

        of_tables = isinstance(self.columns, TableColumns)
        if of_tables != isinstance(ranker, AdditiveRanker):
            raise ValueError(
                "AdditiveRanker takes tables as they come, and no other ranker does: give its Files "
                "TableColumns(label=...), and those of other rankers Columns(label=...)."
            )
        self.look(client)
        if isinstance(self.columns, TableColumns):
            if self.columns.kinds_:
                ranker.set_params(kinds=self.columns.kinds_)
            return Schema(np.arange(2), self.columns.width_, sparse=False)
        refuse_too_wide(ranker, self.columns.width_, self.widest)
        sparse = _is_text(self.columns) or bool(self.columns.categorical)
        return Schema(np.arange(2), self.columns.width_, sparse)

    def held_out(self, client: Client, model: Model) -> Ranked:
        """Rank the rows that were never learned from.

        Parameters
        ----------
        client : Client
            Whose workers score them.
        model : Model
            What was learned from the others.

        Returns
        -------
        tuple of ndarray
            Labels (0 or 1), scores and probabilities.
        """
        return _joined(self._each(client, File.rank_held_out, model))

    def _each(self, client: Client, call: Any, *args: Any) -> list[Any]:
        """Return what workers make of each file."""
        shared = [delayed(value, traverse=False) for value in args]
        tasks = [delayed(call)(part, *shared) for part in self.parts()]
        return list(client.gather(client.compute(tasks)))


class Beginning(NamedTuple):
    """What is found in a file before it is learned from."""

    path: str
    columns: Columns
    labels: Counter[str]


@dataclass
class File:
    """One file, as the worker that reads it knows it."""

    number: int
    path: str
    holdout: Holdout | None
    columns: Columns
    scaler: StreamScaler
    strict: bool
    widest: int | None
    reading: dict[str, Any]

    def count(self) -> int:
        """Return how many rows there are to learn from or to hold out."""
        with compiled_once("cbrank.streams"):
            return count_rows([self.path], self.columns, self.reading)

    def begin(self) -> Beginning:
        """Find the columns, the labels and the categories.

        Of a table as it comes all labels are read, and nothing else. Any other file is read until
        two labels have come: mostly one chunk, but a file of one label, or of one-hot categories, to
        its end.
        """
        columns = deepcopy(self.columns)
        if isinstance(columns, TableColumns):
            return self._begin_table(columns)
        known, columns.labels = columns.labels, _CollectedLabels()
        whole, chunks = "onehot" in columns.categorical.values(), self._read(columns)
        with compiled_once("cbrank.streams"):
            more = next(chunks, None)
        while more is not None and (whole or len(columns.labels.counts) < 2):
            more = next(chunks, None)
        found, columns.labels = columns.labels.counts, known
        return Beginning(self.path, columns, found)

    def _begin_table(self, columns: TableColumns) -> Beginning:
        with (
            compiled_once("cbrank.streams"),
            open_stream(self.path, columns=columns, labels=False, **self.reading) as stream,
        ):
            next(stream, None)
        return Beginning(self.path, columns, count_labels([self.path], columns, self.reading))

    def measure(self) -> StreamScaler | None:
        """Return a scaler that has learned from all rows; None if there are none."""
        scaler, columns = deepcopy(self.scaler), deepcopy(self.columns)
        for X, *_ in self._read(columns):
            scaler.partial_fit(X)
        return scaler if scaler.__sklearn_is_fitted__() else None

    def chunks(
        self, random: np.random.Generator | None, ranker: "CBRanker | None"
    ) -> Generator[Chunk, None, None]:
        """Yield the rows in chunks, shuffled by `random` if it is not None."""
        columns, scaler = deepcopy(self.columns), deepcopy(self.scaler)
        if ranker is not None:
            columns.width_ = max(columns.width_, ranker.n_features_in_)
        scaled = scaler.transform if scaler.__sklearn_is_fitted__() else scaler.learn_transform
        for X, y in self._in_order(self._read(columns, ranker), random, columns):
            if isinstance(X, Table):
                yield Table(columns.numeric_ or (), X.columns), y, None
            elif len(y):
                yield scaled(X), y, None

    def _read(self, columns: Columns, ranker: "CBRanker | None" = None) -> Iterator[Any]:
        """Read the rows to learn from, and tell what is odd about them once all are read."""
        model, misfits = Model(ranker, None, columns), Misfits()  # type: ignore[arg-type]
        with open_stream(
            self.path, columns=columns, chunk_rows=CHUNK_ROWS, **self.reading
        ) as stream:
            for whole in stream:
                chunk = self.holdout.parted(whole, held=False) if self.holdout else whole
                if ranker is not None:
                    misfits.add(model, chunk, strict=self.strict)
                if len(chunk.y):  # type: ignore[arg-type]
                    yield chunk
            for note in (*stream.notes, *misfits.sentences()):
                tell_client(note)

    def _in_order(
        self, chunks: Iterator[Any], random: np.random.Generator | None, columns: Columns
    ) -> Iterator[tuple[Any, NDArray[np.int64]]]:
        """Give rows and labels in the order in which to learn from them."""
        if random is None:
            yield from ((chunk.X, chunk.y) for chunk in chunks)
            return
        with Buckets((int(random.integers(2**32)),)) as buckets:
            for X, y, *_ in chunks:
                buckets.add(X, y)
            yield from buckets.shuffled(columns.width_)

    def rank_held_out(self, model: Model) -> Ranked:
        """Return labels, scores and probabilities of the rows that are held out."""
        assert self.holdout is not None
        found = [(np.zeros(0, np.int8), np.zeros(0), np.zeros(0))]
        for X, y, *_ in self.holdout.rows([self.path], deepcopy(model.columns), self.reading):
            assert y is not None
            judged = model.judge(X)
            found.append((y.astype(np.int8), judged.scores, judged.probabilities))
        return _joined(found)

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
        self.counts = Counter[str]()

    def encode(
        self,
        labels: NDArray[np.float64] | list[str],
        *,
        learn: bool,  # noqa: ARG002
        where: str,  # noqa: ARG002
        gaps: Collection[str] = (),  # noqa: ARG002
    ) -> tuple[NDArray[np.int64], list[tuple[int, str]]]:
        found, counts = np.unique(labels, return_counts=True)
        for label, count in zip(map(canonical, found.tolist()), counts.tolist(), strict=True):
            self.counts[label] += count
        del self.counts[""]
        return np.zeros(len(labels), np.int64), []


def _joined(parts: Sequence[Ranked]) -> Ranked:
    labels, scores, chances = zip(*parts, strict=True)
    return np.concatenate(labels), np.concatenate(scores), np.concatenate(chances)


def _of_all(scalers: Sequence[StreamScaler]) -> StreamScaler:
    """Return the scaler of all rows that several have learned from apart."""
    width = max(scaler.n_features_in_ for scaler in scalers)
    for scaler in scalers:
        scaler.resize(width)
    known = [scaler.get_state()[0] for scaler in scalers]
    every: dict[str, NDArray[Any]] = {
        name: np.array([arrays[name] for arrays in known]) for name in known[0]
    }
    arrays = {"rows": every["rows"].sum(axis=0)}
    if "largest" in every:
        arrays["largest"] = every["largest"].max(axis=0)
    else:
        counts, means = every["counts"], every["means"]
        arrays["counts"] = counts.sum(axis=0)
        mean = (counts / np.maximum(arrays["counts"], 1.0) * means).sum(axis=0)
        between = counts * (means - mean) ** 2
        arrays |= {"means": mean, "squares": (every["squares"] + between).sum(axis=0)}
    return StreamScaler.from_state(arrays, {"kind": scalers[0].kind, "n_features_in": width})


def _readable(sources: Sequence[Any]) -> Sequence[Any]:
    """Return sources that workers can open: all but standard input and open files."""
    for source in sources:
        if source == "-" or not isinstance(source, str | os.PathLike):
            raise ValueError("a cluster reads files that have a path, not standard input.")
    return sources


def _is_text(columns: Columns) -> bool:
    """Say whether these are the columns of svmlight text."""
    return columns.numeric_ is None
