"""Passes over files, from the first row or from where a checkpoint left off."""

import math
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from cbrank.features.table import Table
from cbrank.streams import Chunk, FileMark, Position, Stream, open_stream
from cbrank.streams.position import MOST_FILES
from cbrank.training.checkpoint import Checkpoint, Progress
from cbrank.training.holdout import Holdout, first_of_last
from cbrank.training.misfits import Misfits
from cbrank.training.model import Model, refuse_too_wide
from cbrank.training.order import fall_in_words
from cbrank.training.shuffling import Buckets
from cbrank.training.survey import count_rows


class NotWrittenError(OSError):
    """A model that could not be written; the checkpoint of its run has all that was learned."""


class Run:
    r"""Learn from files, chunk by chunk, and keep what was learned.

    Chunks are cut at rows, never by time, so a run that was stopped and taken up again gives the
    model that it would have given otherwise, to the last bit.

    Parameters
    ----------
    model : Model
        What learns.
    paths : sequence of str
        What to read.
    progress : Progress, optional
        Where to begin.
    passes : int, default=1
        How often to read the paths, in the same order.
    shuffle : bool, default=False
        Whether to learn from all rows in random order, another one in each pass; else in the order
        in which they come.
    seed : int, default=0
        The seed of that order and of the choice of rows that are held out.
    holdout : float, optional
        The share of rows that are never learned from, but read again by `held_out`.
    last : bool, default=False
        Whether that is the last share of the rows; else a random one. Rows are counted first.
    strict : bool, default=False
        Whether a word in a column of numbers or dates is an error; else it is a gap, and counted.
    widest : int, optional
        The most features that a full covariance may have.
    checkpoint : Checkpoint, optional
        Where to keep what was learned so far.
    **reading : object
        How to read: what `open_stream` takes.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import cbrank
    >>> from cbrank.streams import Columns
    >>> from cbrank.training import Model, Run
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "rows.svm").write_text("1 1:2\n-1 1:1\n1 1:3\n")
    >>> run = Run(Model(cbrank.CBRanker(), None, Columns()), [str(folder / "rows.svm")], passes=2)
    >>> for _ in run:
    ...     print(run.progress.rows, run.progress.positives)
    3 2
    6 4
    >>> run.finish(folder / "model.cbrank")
    """

    def __init__(
        self,
        model: Model,
        paths: Sequence[str],
        progress: Progress | None = None,
        *,
        passes: int = 1,
        shuffle: bool = False,
        seed: int = 0,
        holdout: float | None = None,
        last: bool = False,
        strict: bool = False,
        widest: int | None = None,
        checkpoint: Checkpoint | None = None,
        **reading: Any,
    ) -> None:
        self.model, self.paths, self.passes = model, paths, passes
        self.shuffle, self.seed = shuffle, seed
        self.holdout, self.last = None if holdout is None else Holdout(holdout, seed), last
        self.strict, self.misfits = strict, Misfits()
        self.progress = progress or Progress(None, 0, 0, 0, *_measured(model))
        self.checkpoint, self.widest, self.reading = checkpoint, widest, reading
        self.first: Table | None = None  # the rows by which columns were decided
        self.skipped = 0  # malformed rows, in one pass
        self._is_writable = False  # whether the model fits into a file, as far as is known yet
        self.stopped = False
        self._stream: Stream | None = None
        self._mixed: tuple[int, int] | None = None  # rows learned from in this pass, of all

    @property
    def files(self) -> tuple[FileMark, ...]:
        """The files that were read."""
        return self.progress.position.files if self.progress.position else ()

    def __iter__(self) -> Generator[Stream, None, None]:
        """Learn chunk by chunk, and yield the stream after each."""
        if self.progress.position is None:
            self.keep()  # an update's first checkpoint says with which model it began
        if self.holdout and self.last:
            self._count()
            if self.stopped:  # and it is not known which rows are the last ones
                return
        while self.progress.passes < self.passes:
            with self._open() as stream:
                yield from self._learned(stream)
            if self.stopped:
                return
            self.skipped = stream.position.errors
            self.progress.passes += 1
            self.progress.position = Position(stream.position.files)
        if not self.model.ranker.__sklearn_is_fitted__():
            raise ValueError(f"There are no rows to learn from in {', '.join(self.paths)}.")

    def stop(self) -> None:
        """Stop after the chunks that are read already; a signal handler may call it at any time."""
        self.stopped = True
        if self._stream:
            self._stream.stop()

    def keep(self) -> None:
        """Write a checkpoint, if there is to be one."""
        if not self.checkpoint or not self.model.ranker.__sklearn_is_fitted__():
            return
        try:
            self.checkpoint.write(self.model, self.progress)
        except ValueError as error:
            raise ValueError(f"After {self.progress.rows:,} rows: {error}") from error

    def finish(self, path: str | os.PathLike[str], **facts: Any) -> None:
        """Write the model, then remove the checkpoint.

        Where the model cannot be written, a checkpoint that is asked for keeps it.

        Parameters
        ----------
        path : path-like
            Where the model goes.
        **facts : object
            What else to keep in the file, as JSON.
        """
        try:
            self.model.write(path, **facts)
        except OSError as error:
            if not self.checkpoint:
                raise
            self.keep()
            raise NotWrittenError(
                error.errno, f"{error.strerror}. All that was learned is in {self.checkpoint.path}."
            ) from error
        if self.checkpoint:
            self.checkpoint.remove()

    def progressive_auc(self) -> tuple[float, float]:
        """Return how well the rows of this run were ranked before they were learned from.

        Returns
        -------
        weight : float
            The effective rows behind the AUC, as in ``progressive_auc_weight_``.
        auc : float
            The mean AUC of the blocks that ended in this run; NaN if there was none.
        """
        before = self.progress.weight_before, self.progress.auc_before
        return auc_since(before, _measured(self.model))

    def held_out(self) -> Iterator[Chunk]:
        """Read the rows that were never learned from.

        Returns
        -------
        iterator of Chunk
            The rows with their labels; none if no share was to be held out.
        """
        if self.holdout is None:
            return iter(())
        return self.holdout.rows(self.paths, self.model.columns, self.reading)

    def bytes_read(self, stream: Stream) -> tuple[int, int | None]:
        """Return the bytes read in all passes, and how many there are.

        Rows that are shuffled count twice, as they are read from temporary files once more.

        Parameters
        ----------
        stream : Stream
            The stream of this pass.

        Returns
        -------
        tuple of int and int or None
            The bytes read, and of all passes; None if one of the files is a pipe.
        """
        times = 2 if self.shuffle else 1
        given, rows = self._mixed or (0, 1)
        total = stream.bytes_total
        read = stream.bytes_read + stream.bytes_read * given // rows
        return (
            times * self.progress.passes * (total or 0) + read,
            total and total * times * self.passes,
        )

    def remarks(self) -> dict[str, str | None]:
        """Say what was odd about the order of the rows, each thing in a sentence with its cure.

        Returns
        -------
        dict of str to str or None
            ``sorted_by_label`` and ``auc_fell``: the sentence, or None if it is not so.
        """
        order, ranker = self.progress.order, self.model.ranker
        found = fell = None
        if not self.shuffle:
            found = order.in_words(len(self.files))
            fell = fall_in_words(ranker)
        return {
            "sorted_by_label": found
            and f"the rows are sorted by label: {found}. One pass over them teaches one label at a "
            "time: shuffle them by `shuffle=True`, unless rows will come in this order.",
            "auc_fell": fell
            and f"{fell}. If rows come in order of time, what they say has changed, and a greater "
            "`forgetting=...` follows that; if not, shuffle them by `shuffle=True`.",
        }

    def _open(self) -> Stream:
        start = self.progress.position
        if start and self.shuffle:  # all rows are read again, and those learned left out
            start = Position(start.files)
        stream = open_stream(self.paths, columns=self.model.columns, start=start, **self.reading)
        self._refuse_pipes(stream)
        if self.checkpoint and len(stream.position.files) > MOST_FILES:
            raise ValueError(
                f"A checkpoint knows of up to {MOST_FILES:,} files: join some of them."
            )
        self._follow(stream)
        return stream

    def _count(self) -> None:
        """Find out which rows are the last ones."""
        assert self.holdout

        def opened(stream: Stream) -> None:
            self._refuse_pipes(stream)
            self._follow(stream)

        rows = count_rows(self.paths, self.model.columns, self.reading, opened)
        begin = first_of_last(self.holdout.share, rows)
        self.holdout = self.holdout._replace(begin=begin)

    def _follow(self, stream: Stream) -> None:
        """Have `stop` stop this stream."""
        self._stream = stream
        if self.stopped:
            stream.stop()

    def _refuse_pipes(self, stream: Stream) -> None:
        for file in stream.position.files:
            if (self.passes > 1 or self.holdout) and file.size is None:
                what = "in several passes" if self.passes > 1 else "again for the rows held out"
                raise ValueError(f"{file.name} can be read once, not {what}.")

    def _learned(self, stream: Stream) -> Iterator[Stream]:
        for chunk in self._shuffled(stream) if self.shuffle else self._read(stream):
            assert chunk.y is not None
            before = self.progress.rows
            if len(chunk.y):
                self._learn(chunk)
            self.progress.position = chunk.position
            if self.checkpoint and self.checkpoint.every.due(before, self.progress.rows):
                self.keep()
            yield stream

    def _learn(self, chunk: Chunk) -> None:
        assert chunk.y is not None
        self.model.again, self.model.shuffled = self.progress.passes > 0, self.shuffle
        begins = not self.model.ranker.__sklearn_is_fitted__()
        self.model.learn(chunk)
        if begins and isinstance(chunk.X, Table):
            self.first = chunk.X
        self.misfits.add(self.model, chunk, strict=self.strict)
        if not self._is_writable:  # better refused now than after the last row
            self.model.refuse_unwritable()
            self._is_writable = True
        self.progress.rows += len(chunk.y)
        self.progress.positives += int(chunk.y.sum())

    # The order of rows ----------------------------------------------------------------------------

    def _read(self, stream: Stream) -> Iterator[Chunk]:
        for whole in stream:
            refuse_too_wide(self.model.ranker, whole.X.shape[1], self.widest)
            chunk = self.holdout.parted(whole, held=False) if self.holdout else whole
            assert chunk.y is not None
            if not self.progress.passes and not self.shuffle:
                self.progress.order.add(chunk.y)
            yield chunk

    def _shuffled(self, stream: Stream) -> Iterator[Chunk]:
        learned = self.progress.position.rows if self.progress.position else 0
        here = Position(stream.position.files, rows=learned)
        with Buckets((self.seed, self.progress.passes)) as buckets:
            for chunk in self._read(stream):
                assert chunk.y is not None
                assert chunk.lines is not None
                places = np.full(len(chunk.y), chunk.position.file), chunk.lines
                buckets.add(chunk.X, np.column_stack([chunk.y, *places]))
                yield Chunk(chunk.X, chunk.y[:0], None, here)
            given = 0
            for X, rows in () if self.stopped else buckets.shuffled(self.model.columns.width_):
                given += len(rows)
                if given > learned:
                    here = replace(here, rows=given)
                    self._mixed = given, buckets.rows
                    y, sources, lines = np.ascontiguousarray(rows.T)
                    yield Chunk(self._named(X), y, None, here, lines, sources)
        self._mixed = None

    def _named(self, X: Any) -> Any:
        """Return rows with the names of their columns, which the shuffle does not keep."""
        return Table(self.model.columns.numeric_ or (), X.columns) if isinstance(X, Table) else X


def _measured(model: Model) -> tuple[float, float]:
    """Return the effective rows behind a ranker's progressive AUC, and the AUC; zeros before both."""
    ranker = model.ranker
    if not ranker.__sklearn_is_fitted__() or not ranker.progressive_auc_weight_:
        return 0.0, 0.0
    return ranker.progressive_auc_weight_, ranker.progressive_auc_


def auc_since(before: tuple[float, float], now: tuple[float, float]) -> tuple[float, float]:
    """Return the effective rows between two measurements of an AUC, and the AUC of these.

    Examples
    --------
    >>> auc_since((100.0, 0.5), (200.0, 0.75))
    (100.0, 1.0)
    """
    weight = now[0] - before[0]
    if weight <= 0.0:
        return 0.0, math.nan
    if not before[0]:
        return now
    auc = (now[0] * now[1] - before[0] * before[1]) / weight
    return weight, min(max(auc, 0.0), 1.0)  # which rounding may miss
