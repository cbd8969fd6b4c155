"""Requests that change the store: what each writes inside a transaction, and its answer."""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec

from cbrank.serving.errors import Refused, sentence_of
from cbrank.serving.store import DISCARDED, EXPIRED, ID_BYTES, LABELLED
from cbrank.streams.objects import Row

if TYPE_CHECKING:
    from cbrank.serving.served import Served

CHUNK = 64  # rows learned in one call; what looks at the model waits meanwhile, scores do not
_MOST_NAMED = 100  # unreadable cells that an answer names


class Once(NamedTuple):
    """What tells a request from others, so that it is carried out once although it comes twice.

    Examples
    --------
    >>> once = Once("shop", "order 7", "POST /learn")
    >>> once.digest(None, b"{}") == once._replace(request="POST /score").digest(None, b"{}")
    False
    """

    owner: str = ""  # who asks: keys are theirs
    key: str | None = None
    request: str = ""  # method and path

    def digest(self, names: Sequence[str] | None, *blobs: bytes) -> bytes:
        """Return a digest of method, path, ids and content."""
        parts = [self.request.encode(), msgspec.json.encode(names), *blobs]
        return hashlib.sha256(b"\n".join(parts)).digest()


class Fresh(NamedTuple):
    """A labelled row that a transaction learns from."""

    job: "Job"
    at: int  # the place of the row in its request
    name: str | None
    label: str
    row: Row
    blob: bytes


@dataclass
class Batch:
    """What one transaction changes: counted and numbered here, and nowhere else before its commit.

    Parameters
    ----------
    now : float
        The time of the transaction.
    number, chunk : int
        The last event, and the last chunk, before it.
    """

    now: float
    number: int
    chunk: int
    fresh: list[Fresh] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)  # changes to attributes of `Counts`
    keyed: dict[tuple[str, str], "Job"] = field(default_factory=dict)

    @property
    def last(self) -> int:
        """The number of its last event."""
        return self.number + len(self.fresh)

    @property
    def last_chunk(self) -> int:
        """The number of its last chunk."""
        return self.chunk + -(-len(self.fresh) // CHUNK)

    def chunks(self) -> Iterator[list[Fresh]]:
        """Yield the rows by the calls in which they are learned."""
        for begin in range(0, len(self.fresh), CHUNK):
            yield self.fresh[begin : begin + CHUNK]

    def events(self) -> Iterator[tuple[int, int, float, str | None, str, bytes]]:
        """Yield the events as the store takes them."""
        for at, fresh in enumerate(self.fresh):
            chunk = self.chunk + 1 + at // CHUNK
            yield self.number + 1 + at, chunk, self.now, fresh.name, fresh.label, fresh.blob


@dataclass
class Job:
    """A request that changes the store."""

    future: "asyncio.Future[tuple[bytes, bool]] | None" = None
    owner: str = ""
    key: str | None = None
    digest: bytes = b""
    result: dict[str, Any] = field(default_factory=dict)  # the answer, once `apply` was called

    rows: ClassVar[int] = 1

    def apply(self, writer: Any, batch: Batch) -> dict[str, Any]:
        """Make the changes inside a transaction; return the answer. A refusal changes nothing."""
        raise NotImplementedError

    def report(self, at: int, column: str) -> None:
        """Report a cell that was read as a missing value although it holds something else."""


@dataclass
class Teach(Job):
    """Rows with their labels."""

    objects: list[Row] = field(default_factory=list)

    def apply(self, writer: Any, batch: Batch) -> dict[str, Any]:
        try:
            labels = writer.served.objects.labels(self.objects)
        except ValueError as error:
            raise Refused(400, sentence_of(error)) from None
        for at, (label, row) in enumerate(zip(labels, self.objects, strict=True)):
            batch.fresh.append(Fresh(self, at, None, label, row, msgspec.json.encode(row)))
        return {"learned": len(self.objects), "event": batch.last}

    def report(self, at: int, column: str) -> None:
        cells = self.result.setdefault("unreadable", [])
        if len(cells) < _MOST_NAMED:
            cells.append({"row": at, "column": column})


@dataclass
class Label(Job):
    """Labels of rows that wait."""

    labels: list[tuple[str, Any]] = field(default_factory=list)

    def apply(self, writer: Any, batch: Batch) -> dict[str, Any]:
        labels = self._checked(writer)
        results = [
            self._one(writer, batch, at, name, label) for at, (name, label) in enumerate(labels)
        ]
        for result in _NOT_LEARNED:
            batch.counts[f"labels_{result}"] += results.count(result)
        told = [
            {"id": name, "result": result}
            for (name, _), result in zip(labels, results, strict=True)
        ]
        learned = results.count("learned")
        if not learned:
            raise Refused(409 if "already" in results else 404, _none(told), {"labels": told})
        return {"learned": learned, "event": batch.last, "labels": told}

    def _checked(self, writer: Any) -> list[tuple[str, str]]:
        """Return the labels as the model that learns from them knows them."""
        found, faults = list[tuple[str, str]](), list[str]()
        for at, (name, label) in enumerate(self.labels):
            try:
                found.append((name, writer.served.objects.label_of(label)))
            except ValueError as error:
                faults.append(f"label {at}: {error}")
        if faults:
            raise Refused(400, sentence_of(" ".join(faults[:10])))
        return found

    def _one(self, writer: Any, batch: Batch, at: int, name: str, label: str) -> str:
        found = writer.store.find_id(name)
        if found is None:
            return "unknown"
        state, end, row = found
        if state == LABELLED:
            return "already"
        if state == DISCARDED:
            return "discarded"
        if state == EXPIRED or end < batch.now or row is None:
            return "expired"
        batch.fresh.append(Fresh(self, at, name, label, msgspec.json.decode(row), row))
        writer.let_go(batch, name, row, LABELLED)
        return "learned"


@dataclass
class Remember(Job):
    """Rows that were scored and wait for their labels."""

    served: "Served | None" = None  # the model that scored them
    ids: list[str] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)

    def apply(self, writer: Any, batch: Batch) -> dict[str, Any]:
        if self.served is not None and not writer.served.reads_rows_of(self.served):
            raise Refused(
                409,
                "while the rows were scored, the model was replaced by one with other columns or "
                "labels: score them again.",
            )
        known = [name for name in self.ids if writer.store.find_id(name) is not None]
        if known:
            raise Refused(
                409, f"{_listed(known)}: such ids are known already; give each row one of its own."
            )
        size = sum(map(takes, self.ids, self.blobs))
        writer.make_room(batch, size)
        end = batch.now + writer.settings.wait
        writer.store.remember([(n, end, row) for n, row in zip(self.ids, self.blobs, strict=True)])
        batch.counts.update(remembered=len(self.ids), waiting=len(self.ids), waiting_bytes=size)
        return self.answer


@dataclass
class Expire(Job):
    """The end of the wait of rows without a label: the default label is learned, if there is one.

    Parameters
    ----------
    most : int
        Rows that are taken at a time.
    unlearnable : str, optional
        The id of a row that cannot be learned from: it is let go as without a default.
    """

    most: int = 1000
    unlearnable: str | None = None

    def apply(self, writer: Any, batch: Batch) -> dict[str, Any]:
        default = writer.settings.default_label
        for at, (name, row) in enumerate(writer.store.ended(batch.now, self.most)):
            learns = default is not None and name != self.unlearnable
            if learns:
                fresh = Fresh(self, at, name, str(default), msgspec.json.decode(row), row)
                batch.fresh.append(fresh)
            writer.let_go(batch, name, row, EXPIRED)
            batch.counts["defaulted" if learns else "expired"] += 1
        return {}

    def with_less(self, batch: Batch) -> "Expire":
        """Return the job after learning failed on its rows: fewer of them, or one to be let go."""
        half = len(batch.fresh) // 2
        return Expire(most=half) if half else Expire(most=1, unlearnable=batch.fresh[0].name)


_NOT_LEARNED = {
    "already": "had a label before, which counts",
    "unknown": "never waited here, or not for long",
    "expired": "came too late: its wait had ended",
    "discarded": "was discarded when the model was replaced by one with other columns or labels",
}


def takes(name: str, row: bytes) -> int:
    return len(name) + len(row) + ID_BYTES


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + ", ..." * (len(names) > 10)


def _none(told: list[dict[str, str]]) -> str:
    """Say why no label was learned."""
    parts = []
    for result, reason in _NOT_LEARNED.items():
        names = [one["id"] for one in told if one["result"] == result]
        if names:
            parts.append(f"{_listed(names)}: {reason}")
    return f"No label was learned. {'; '.join(parts)}."
