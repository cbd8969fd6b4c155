"""Requests that change the store: what each writes inside a transaction, and its answer."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from cbrank.serving.errors import Refused
from cbrank.serving.store import EXPIRED, ID_BYTES, LABELLED
from cbrank.streams.objects import Row

if TYPE_CHECKING:
    from cbrank.serving.writer import Writer


@dataclass
class Job:
    """A request that changes the store."""

    future: "asyncio.Future[tuple[bytes, bool]]"
    owner: str = ""
    key: str | None = None
    digest: bytes = b""

    rows: ClassVar[int] = 1

    def apply(self, writer: "Writer", now: float) -> dict[str, Any]:
        """Make the changes inside a transaction; return the answer. A refusal changes nothing."""
        raise NotImplementedError


@dataclass
class Teach(Job):
    """Rows with their labels."""

    labels: list[str] = field(default_factory=list)
    objects: list[Row] = field(default_factory=list)

    def apply(self, writer: "Writer", now: float) -> dict[str, Any]:
        for label, row in zip(self.labels, self.objects, strict=True):
            writer.add_event(now, None, label, row, msgspec.json.encode(row))
        return {"learned": len(self.objects), "event": writer.number}


@dataclass
class Label(Job):
    """Labels of rows that wait."""

    labels: list[tuple[str, str]] = field(default_factory=list)

    def apply(self, writer: "Writer", now: float) -> dict[str, Any]:
        results = [self._one(writer, now, name, label) for name, label in self.labels]
        learned = results.count("learned")
        counts = writer.counts
        counts.labels_already += results.count("already")
        counts.labels_unknown += results.count("unknown")
        counts.labels_expired += results.count("expired")
        said = [
            {"id": name, "result": result}
            for (name, _), result in zip(self.labels, results, strict=True)
        ]
        if not learned:
            raise Refused(409 if "already" in results else 404, _none(said), {"labels": said})
        return {"learned": learned, "event": writer.number, "labels": said}

    def _one(self, writer: "Writer", now: float, name: str, label: str) -> str:
        found = writer.store.find_id(name)
        if found is None:
            return "unknown"
        state, end, row = found
        if state == LABELLED:
            return "already"
        if state == EXPIRED or end < now or row is None:
            return "expired"
        writer.add_event(now, name, label, msgspec.json.decode(row), row)
        writer.let_go(name, row, now, LABELLED)
        return "learned"


@dataclass
class Remember(Job):
    """Rows that were scored and wait for their labels."""

    ids: list[str] = field(default_factory=list)
    blobs: list[bytes] = field(default_factory=list)
    answer: dict[str, Any] = field(default_factory=dict)

    def apply(self, writer: "Writer", now: float) -> dict[str, Any]:
        known = [name for name in self.ids if writer.store.find_id(name) is not None]
        if known:
            raise Refused(
                409, f"{_listed(known)}: such ids are known already; give each row one of its own."
            )
        writer.make_room(sum(map(takes, self.ids, self.blobs)), now)
        end = now + writer.settings.wait
        writer.store.remember([(n, end, row) for n, row in zip(self.ids, self.blobs, strict=True)])
        writer.count_in(self.ids, self.blobs)
        return self.answer


def takes(name: str, row: bytes) -> int:
    return len(name) + len(row) + ID_BYTES


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:10])) + ", ..." * (len(names) > 10)


def _none(said: list[dict[str, str]]) -> str:
    """Say why no label was learned."""
    reasons = {
        "already": "had a label before, which counts",
        "unknown": "never waited here, or not for long",
        "expired": "came too late: its wait had ended",
    }
    parts = []
    for result, reason in reasons.items():
        names = [one["id"] for one in said if one["result"] == result]
        if names:
            parts.append(f"{_listed(names)}: {reason}")
    return f"No label was learned. {'; '.join(parts)}."
