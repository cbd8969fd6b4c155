"""Where a run stopped: the model, the place in the input and what the run was asked to do."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from cbrank import modelfile
from cbrank.modelfile.values import under, within
from cbrank.streams import FileMark, Position
from cbrank.streams.position import marks_from_arrays, marks_to_arrays
from cbrank.training.file_lock import alone
from cbrank.training.model import Model
from cbrank.training.order import LabelOrder

_LONGEST = 1000  # characters of one option in a file; a longer one is kept as a checksum


@dataclass
class Progress:
    """How far a run is.

    Parameters
    ----------
    position : Position or None
        Where to read on; None before the first row.
    passes : int
        The passes that are over.
    rows, positives : int
        The rows learned from, in all passes.
    weight_before : float
        The effective rows behind the progressive AUC of the model before this run.
    auc_before : float
        That AUC.
    order : LabelOrder
        How the labels followed each other in the first pass.

    Examples
    --------
    >>> progress = Progress(Position((), rows=8192), rows=8192, positives=70)
    >>> Progress.from_json(progress.to_json()) == progress
    True
    """

    position: Position | None = None
    passes: int = 0
    rows: int = 0
    positives: int = 0
    weight_before: float = 0.0
    auc_before: float = 0.0
    order: LabelOrder = field(default_factory=LabelOrder)

    def to_json(self) -> dict[str, Any]:
        """Return the progress as what JSON can hold.

        Returns
        -------
        dict
            The parameters by name.
        """
        facts = {own.name: getattr(self, own.name) for own in fields(self)}
        return facts | {
            "position": self.position and self.position.to_json(),
            "order": self.order.to_json(),
        }

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> Self:
        """Take the progress from what `to_json` gave; anything else is a ValueError."""
        if facts.keys() != {own.name for own in fields(cls)}:
            raise ValueError("its progress makes no sense")
        counts = [facts[name] for name in ("passes", "rows", "positives")]
        measured, place = (facts["weight_before"], facts["auc_before"]), facts["position"]
        whole = all(type(count) is int and 0 <= count < 2**63 for count in counts)
        known = all(
            type(number) is float and 0.0 <= number <= most
            for number, most in zip(measured, (2.0**63, 1.0), strict=True)
        )
        if not (whole and known):
            raise ValueError(f"its progress makes no sense: {facts}")
        if not (place is None or type(place) is dict):
            raise ValueError("its progress makes no sense: it has no position")
        if type(facts["order"]) is not dict:
            raise ValueError("its progress makes no sense: it has no order of labels")
        position, order = place and Position.from_json(place), LabelOrder.from_json(facts["order"])
        return cls(**facts | {"position": position, "order": order})


class Every:
    """How often to write a checkpoint.

    Parameters
    ----------
    rows : int, optional
        After each so many rows.
    seconds : float, optional
        After each so many seconds.
    clock : callable, optional
        Returns the time in seconds.

    Examples
    --------
    >>> every = Every(rows=100)
    >>> every.due(90, 98), every.due(98, 106)
    (False, True)
    """

    def __init__(
        self,
        rows: int | None = None,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rows, self.seconds, self.clock = rows, seconds, clock
        self._last = clock()

    def due(self, before: int, rows: int) -> bool:
        """Say whether it is time.

        Parameters
        ----------
        before : int
            The rows before the last chunk.
        rows : int
            The rows now.

        Returns
        -------
        bool
            Whether it is.
        """
        if self.rows is not None:
            return rows // self.rows > before // self.rows
        late = self.seconds is not None and self.clock() - self._last >= self.seconds
        self._last = self.clock() if late else self._last
        return late


class Checkpoint:
    r"""A file from which a run that was killed goes on as if it had not been.

    Parameters
    ----------
    path : path-like
        The file.
    asked : dict
        What the run was asked to do, as JSON: a run that was asked something else is refused.
    every : Every
        How often to write it.

    Examples
    --------
    >>> import io, tempfile
    >>> import cbrank
    >>> from cbrank.streams import Columns, open_stream
    >>> path = Path(tempfile.mkdtemp(), "run.ckpt")
    >>> checkpoint = Checkpoint(path, {"passes": 2}, Every(rows=100))
    >>> model = Model(cbrank.CBRanker(), None, Columns())
    >>> for chunk in open_stream(io.BytesIO(b"1 1:2\n-1 1:1\n"), columns=model.columns):
    ...     model.learn(chunk)
    >>> checkpoint.write(model, Progress(chunk.position, rows=2, positives=1))
    >>> model, progress = checkpoint.open()
    >>> progress.rows
    2
    >>> checkpoint.remove()
    """

    def __init__(self, path: str | os.PathLike[str], asked: dict[str, Any], every: Every) -> None:
        self.path, self.asked, self.every = Path(path), in_brief(asked), every

    def held(self) -> AbstractContextManager[None]:
        """Keep other processes away from the checkpoint.

        Returns
        -------
        context manager
            While it is entered, this process is the only one.
        """
        return alone(self.path)

    def open(self) -> tuple[Model, Progress] | None:
        """Open the checkpoint.

        Returns
        -------
        tuple of Model and Progress, or None
            The model and how far it is; None if there is no checkpoint.

        Raises
        ------
        ModelFileError
            If the file is damaged or is no checkpoint.
        ValueError
            If it is the checkpoint of a run that was asked something else.
        """
        if not self.path.exists():
            return None
        arrays, facts = modelfile.read(self.path)
        match facts:
            case {"run": {"asked": dict(asked), "progress": dict(progress)}}:
                self._refuse_other(in_brief(asked))
            case _:
                raise modelfile.ModelFileError(f"{self.path} is a model file, not a checkpoint.")
        try:
            if type(progress.get("position")) is dict:
                progress["position"]["files"] = marks_from_arrays(within("run", arrays))
            stopped = Progress.from_json(progress)
        except ValueError as error:
            raise modelfile.ModelFileError(
                f"{self.path} does not say where its run stopped: {error}"
            ) from None
        return Model.restore(self.path, arrays, facts), stopped

    def write(self, model: Model, progress: Progress) -> None:
        """Write the checkpoint in place of the one before.

        Parameters
        ----------
        model : Model
            What was learned.
        progress : Progress
            How far that is.
        """
        reached, arrays = progress.to_json(), dict[str, Any]()
        if progress.position:
            reached["position"]["files"] = []
            arrays = under("run", marks_to_arrays(progress.position.files))
        model.write(self.path, arrays=arrays, run={"asked": self.asked, "progress": reached})

    def remove(self) -> None:
        """Remove the checkpoint, if there is one."""
        self.path.unlink(missing_ok=True)

    def _refuse_other(self, asked: dict[str, Any]) -> None:
        for name in {**self.asked, **asked}:
            before, now = asked.get(name), self.asked.get(name)
            if before == now:
                continue
            if name == "model":
                raise ValueError(
                    f"{self.path} is the checkpoint of a run that began with another model: give "
                    "that model, or another checkpoint."
                )
            raise ValueError(
                f"{self.path} is the checkpoint of a run with {name[:_LONGEST]}={before!r}, and "
                f"this one has {name[:_LONGEST]}={now!r}: give the same options, or another "
                "checkpoint."
            )


def in_brief(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what a run is asked to do, with a checksum in the place of anything long.

    Examples
    --------
    >>> in_brief({"passes": 2, "drop": ["a", "b"]})
    {'passes': 2, 'drop': ['a', 'b']}
    >>> in_brief({"drop": [f"column {number}" for number in range(1000)]})["drop"][:20]
    'sha256:9417b5d25123e'
    """
    return {
        name: f"sha256:{checksum(value)}" if len(json.dumps(value)) > _LONGEST else value
        for name, value in asked.items()
    }


def checksum(value: Any) -> str:
    """Return the SHA-256 of a value as JSON, for files that need not say all of it.

    Examples
    --------
    >>> checksum([[120, None]])[:8]
    'c5921157'
    """
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def last_run(asked: dict[str, Any], files: Sequence[FileMark]) -> dict[str, Any]:
    """Return what a model file says of the run that wrote it, however many files it read.

    Parameters
    ----------
    asked : dict
        What the run was asked to do, as JSON.
    files : sequence of FileMark
        The files it read.

    Returns
    -------
    dict
        What it was asked for, a checksum of its files, and the model it began with.

    Examples
    --------
    >>> last_run({"passes": 2, "model": "c0ffee"}, [])["began_with"]
    'c0ffee'
    """
    options = {name: value for name, value in asked.items() if name != "model"}
    marks = checksum([[mark.size, mark.head] for mark in files])
    return {"asked": in_brief(options), "files": marks, "began_with": asked.get("model")}
