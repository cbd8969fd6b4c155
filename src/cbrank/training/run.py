"""Passes over files, from the first row or from where a checkpoint left off."""

import math
import os
from collections.abc import Generator, Iterator, Sequence
from typing import Any

from cbrank.rankers.cbr import CBRanker
from cbrank.streams import FileMark, Position, Stream, open_stream
from cbrank.streams.position import MOST_FILES
from cbrank.training.checkpoint import Checkpoint, Progress
from cbrank.training.model import Model, refuse_too_wide


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
        widest: int | None = None,
        checkpoint: Checkpoint | None = None,
        **reading: Any,
    ) -> None:
        self.model, self.paths, self.passes = model, paths, passes
        self.progress = progress or Progress(None, 0, 0, 0, *_measured(model))
        self.checkpoint, self.widest, self.reading = checkpoint, widest, reading
        self.skipped = 0  # malformed rows, in one pass
        self._is_writable = False  # whether the model fits into a file, as far as is known yet
        self.stopped = False
        self._stream: Stream | None = None

    @property
    def files(self) -> tuple[FileMark, ...]:
        """The files that were read."""
        return self.progress.position.files if self.progress.position else ()

    def __iter__(self) -> Generator[Stream, None, None]:
        """Learn chunk by chunk, and yield the stream after each."""
        if self.progress.position is None:
            self.keep()  # an update's first checkpoint says with which model it began
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

    def progressive_auc(self) -> tuple[int, float]:
        """Return how well the pairs of this run were ranked before they were learned from.

        Returns
        -------
        pairs : int
            How many there were.
        auc : float
            The share ranked right, ties counted half; NaN if there were none.
        """
        before = self.progress.pairs_before, self.progress.auc_before
        return auc_since(before, _measured(self.model))

    def _open(self) -> Stream:
        stream = open_stream(
            self.paths, columns=self.model.columns, start=self.progress.position, **self.reading
        )
        for file in stream.position.files:
            if self.passes > 1 and file.size is None:
                raise ValueError(f"{file.name} can be read once, not in several passes.")
        if self.checkpoint and len(stream.position.files) > MOST_FILES:
            raise ValueError(
                f"A checkpoint knows of up to {MOST_FILES:,} files: join some of them."
            )
        self._stream = stream
        if self.stopped:
            stream.stop()
        return stream

    def _learned(self, stream: Stream) -> Iterator[Stream]:
        for chunk in stream:
            refuse_too_wide(self.model.ranker, chunk.X.shape[1], self.widest)
            self.model.learn(chunk)
            if not self._is_writable:  # better refused now than after the last row
                self.model.refuse_unwritable()
                self._is_writable = True
            assert chunk.y is not None
            before = self.progress.rows
            self.progress.position = chunk.position
            self.progress.rows += len(chunk.y)
            self.progress.positives += int(chunk.y.sum())
            if self.checkpoint and self.checkpoint.every.due(before, self.progress.rows):
                self.keep()
            yield stream


def _measured(model: Model) -> tuple[int, float]:
    """Return the pairs that a ranker has met and its progressive AUC."""
    ranker = model.ranker
    if not isinstance(ranker, CBRanker) or not ranker.__sklearn_is_fitted__():
        return 0, 0.0
    return ranker.n_pairs_, ranker.progressive_auc_ if ranker.n_pairs_ else 0.0


def auc_since(before: tuple[int, float], now: tuple[int, float]) -> tuple[int, float]:
    """Return the pairs between two measurements, and the share of them ranked right.

    Examples
    --------
    >>> auc_since((100, 0.5), (200, 0.75))
    (100, 1.0)
    """
    pairs = now[0] - before[0]
    if not pairs:
        return 0, math.nan
    if not before[0]:
        return now
    return pairs, (now[0] * now[1] - before[0] * before[1]) / pairs
