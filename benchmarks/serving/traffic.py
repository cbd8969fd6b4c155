"""A file as traffic: rows are scored, their labels are sent later, and all of it is timed."""

import heapq
import itertools
import random
import secrets
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.serving.sending import Answer, Request
from cbrank.features.table import Column, Table, Times, Words, is_gap_word, time_text
from cbrank.metrics import auc_interval
from cbrank.streams import Columns, TableColumns, open_stream
from cbrank.streams.labels import canonical

if TYPE_CHECKING:
    from cbrank.streams import Chunk, Stream

# Rows read at a time: few enough that to make objects of them delays no request by a millisecond.
# The labels of svmlight text are learned from the first ones, which are more for that.
_ROWS, _SPARSE_ROWS = 512, 8192
_SVMLIGHT = {".svm", ".svmlight", ".libsvm"}
PERCENTILES = {"p50": 50.0, "p90": 90.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}

_encode = msgspec.json.encode


# Rows ---------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A row of a file: its cells by column, and its label, None if it has none."""

    cells: dict[str, Any]
    label: str | None


def open_traffic(
    paths: Sequence[str], label: str | None, *, labelled: bool = True, **reading: Any
) -> "Stream":
    """Open files whose rows become traffic, without a model.

    Parameters
    ----------
    paths : sequence of str
        The files.
    label : str or None
        The column of the label in a table. Rows of svmlight text begin with it.
    labelled : bool, default=True
        Whether labels are needed.
    **reading : object
        Other arguments of `open_stream`.

    Returns
    -------
    Stream
        The chunks; `rows_of` makes rows of them.
    """
    suffixes = {suffix.lower() for path in paths for suffix in PurePath(str(path)).suffixes}
    if label is None and (labelled or reading.get("format") == "svmlight" or suffixes & _SVMLIGHT):
        return open_stream(paths, columns=Columns(), chunk_rows=_SPARSE_ROWS, **reading)
    # Read as the id, the label is passed on as it is written, whatever it is.
    columns = TableColumns(id=label)
    return open_stream(paths, columns=columns, labels=False, chunk_rows=_ROWS, **reading)


def rows_of(stream: "Stream") -> Iterator[Row]:
    r"""Return the rows of a stream, each as an object by column name.

    Parameters
    ----------
    stream : Stream
        What `open_traffic` returns.

    Yields
    ------
    Row
        Cells are numbers, texts, times in ISO form, or None for gaps.

    Examples
    --------
    >>> import io
    >>> table = io.BytesIO(b"age,city,left\n31,Oslo,no\n,Rome,yes\n7.5,,\n")
    >>> for row in rows_of(open_traffic([table], "left", format="csv")):
    ...     print(row.cells, row.label)
    {'age': 31, 'city': 'Oslo'} no
    {'age': None, 'city': 'Rome'} yes
    {'age': 7.5, 'city': None} None
    """
    for chunk in stream:
        if isinstance(chunk.X, Table):
            labels: Iterable[str] = chunk.ids or [""] * len(chunk.X)
            cells = zip(*map(_cells, chunk.X.columns), strict=True)
            for row, text in zip(cells, labels, strict=True):
                label = None if is_gap_word(text.strip()) else canonical(text)
                yield Row(dict(zip(chunk.X.names, row, strict=True)), label)
        else:
            yield from _sparse_rows(chunk, stream.columns)


def _sparse_rows(chunk: "Chunk", columns: Columns) -> Iterator[Row]:
    X: Any = chunk.X
    assert chunk.y is not None
    base, labels = 0 if columns.zero_based else 1, columns.classes_
    indices, data, ends = (X.indices + base).tolist(), X.data.tolist(), X.indptr.tolist()
    for at, y in enumerate(chunk.y.tolist()):
        rows = slice(ends[at], ends[at + 1])
        yield Row(dict(zip(map(str, indices[rows]), data[rows], strict=True)), labels[y])


def _cells(column: Column) -> list[Any]:
    """Return the cells of a column as JSON has them."""
    if isinstance(column, Words):
        values = (*column.values, None)
        return [values[code] for code in column.codes.tolist()]
    if isinstance(column, Times):
        return [None if t != t else time_text(t) for t in column.seconds.tolist()]  # noqa: PLR0124
    return [_number(value) for value in column.tolist()]


def _number(value: float) -> float | int | None:
    if value.is_integer() and abs(value) < 2**53:
        return int(value)
    return None if value != value else value  # noqa: PLR0124


# Delays -------------------------------------------------------------------------------------------


class Delay(NamedTuple):
    """How long labels take.

    Parameters
    ----------
    amount : float
        Seconds, or rows that are scored meanwhile.
    in_rows : bool
        Which of them.
    exponential : bool
        Whether `amount` is the mean of an exponential distribution, else all take as long.
    """

    amount: float = 0.0
    in_rows: bool = False
    exponential: bool = False

    def draw(self, random: random.Random) -> float:
        """Return the delay of a label."""
        return random.expovariate(1.0) * self.amount if self.exponential else self.amount


# What was measured --------------------------------------------------------------------------------


class Measured:
    """What was sent, how it was answered and how fast, so far."""

    def __init__(self) -> None:
        self.rows = 0  # scored
        self.requests = Counter[str]()
        self.errors = Counter[str]()
        self.reasons: dict[str, str] = {}  # the first sentence with each status
        self.results = Counter[str]()  # of labels
        self.latencies = {"score": array("d"), "learn": array("d")}
        self.waited = array("d")  # from when requests were due to when they were sent
        self._scores, self._codes = array("d"), array("b")
        self._words: dict[str, int] = {}
        self._positive: bool | None = None
        self._told: str | None = None

    def score(self, answers: "Sequence[Scored]", labels: Sequence[str | None]) -> None:
        """Take scores that were served, and the labels that were not known then."""
        self.rows += len(answers)
        for answer, label in zip(answers, labels, strict=True):
            if self._told is None and answer.label is not None:
                self._told, self._positive = canonical(answer.label), answer.score > 0
            if label is not None:
                self._scores.append(answer.score)
                self._codes.append(self._code(label))

    def refuse(self, status: str, body: bytes) -> None:
        """Take an answer that is not as asked for."""
        self.errors[status] += 1
        if status not in self.reasons:
            try:
                self.reasons[status] = msgspec.json.decode(body, type=_Error).error
            except msgspec.DecodeError:
                self.reasons[status] = ""

    def _code(self, label: str) -> int:
        """Return a number for a label; those after the second are alike, for none can rank them."""
        if len(self._words) < 3:
            return self._words.setdefault(label, len(self._words))
        return self._words.get(label, 2)

    def facts(self, seconds: float) -> dict[str, Any]:
        """Return everything, as JSON has it."""
        return {
            "rows": self.rows,
            "seconds": round(seconds, 3),
            "rows_per_second": round(self.rows / max(seconds, 1e-9), 1),
            "requests": {"score": self.requests["score"], "learn": self.requests["learn"]},
            "errors": dict(sorted(self.errors.items())),
            "reasons": dict(sorted(self.reasons.items())),
            "labels": dict(sorted(self.results.items())),
            "latency_ms": {kind: milliseconds(found) for kind, found in self.latencies.items()},
            "waited_ms": milliseconds(self.waited),
            **self.ranking(),
        }

    def ranking(self) -> dict[str, Any]:
        """Return how well the scores that were served rank the labels.

        The positive label is the one that the server gave to a score above zero.
        """
        found = {"scores": len(self._scores), "auc": None, "auc_low": None, "auc_high": None}
        if self._told is None or len(self._words) != 2:
            return found
        is_told = np.array(self._codes) == self._words.get(self._told, -1)
        y, scores = is_told == self._positive, np.array(self._scores)
        if y.all() or not y.any() or not np.isfinite(scores).all():
            return found
        auc = auc_interval(y, scores)
        shown = (None if end != end else round(end, 6) for end in auc[:3])  # noqa: PLR0124
        return found | dict(zip(("auc", "auc_low", "auc_high"), shown, strict=True))


def milliseconds(seconds: Sequence[float]) -> dict[str, float] | None:
    """Return the percentiles of latencies in milliseconds, None if there are none.

    Examples
    --------
    >>> milliseconds([0.001, 0.002, 0.003])["p50"]
    2.0
    """
    if not len(seconds):
        return None
    found = np.percentile(np.array(seconds), [*PERCENTILES.values()], method="higher") * 1e3
    return dict(zip(PERCENTILES, found.round(3).tolist(), strict=True))


class Scored(msgspec.Struct):
    """What the server says of a row, as far as it matters here."""

    score: float
    id: str | None = None
    label: Any = None


class _Scores(msgspec.Struct):
    rows: list[Scored]


class _Error(msgspec.Struct):
    error: str


class _Result(msgspec.Struct):
    result: str


class _Results(msgspec.Struct):
    labels: list[_Result] = []


_scores, _results = msgspec.json.Decoder(_Scores), msgspec.json.Decoder(_Results)


# The traffic --------------------------------------------------------------------------------------


class Traffic:
    """Requests that score rows and later send their labels: a source for `Sender`.

    Parameters
    ----------
    rows : iterable of Row
        The rows.
    rate : float or None
        Rows a second, whatever the answers; None to send as fast as answers come. With a rate,
        latencies count from the moment at which a request was due, so that a server which stalls
        is not spared the requests that wait for it meanwhile.
    per_request : int, default=1
        Rows, or labels, of a request.
    delay : Delay or None
        When labels follow; None if they do not.
    limit, seconds : float, optional
        After how many rows, or seconds, to send no more. The labels that wait are then sent at once.
    seed : int, default=0
        Source of delays that are random.

    Examples
    --------
    >>> traffic = Traffic([Row({"age": 31}, "no")], rate=None, delay=None)
    >>> traffic.next(0.0).body
    b'{"rows":[{"age":31}]}'
    >>> traffic.next(0.0)
    """

    def __init__(
        self,
        rows: Iterable[Row],
        *,
        rate: float | None,
        delay: Delay | None,
        per_request: int = 1,
        limit: float = float("inf"),
        seconds: float = float("inf"),
        seed: int = 0,
    ) -> None:
        self.measured = Measured()
        self.sent = 0  # rows
        self._rows, self._rate, self._delay = _begun(rows), rate, delay
        self._per_request, self._limit, self._seconds = per_request, limit, seconds
        self._waiting: list[tuple[float, int, str, str]] = []  # when, then id and label
        self._random = random.Random(seed)
        # Ids that no other run has, so that a file can be sent twice.
        self._run = secrets.token_hex(6)
        self._began: float | None = None
        self._over = False

    def next(self, now: float) -> Request | float | None:
        """Return the next request, or when it is due."""
        self._began = now if self._began is None else self._began
        self._over = self._over or self.sent >= self._limit or now >= self._began + self._seconds
        if self._label_is_due(now):
            return self._learn(now)
        if self._over:
            return None
        due = now if self._rate is None else self._began + self.sent / self._rate
        if due > now:
            return min(due, self._next_label())
        return self._score(due) or self.next(now)

    def answered(self, request: Request, answer: Answer) -> None:
        """Take an answer."""
        kind, status = request.path[1:], answer.status
        self.measured.requests[kind] += 1
        if self._rate is not None:
            self.measured.waited.append(answer.waited)
        if status == 200:
            self.measured.latencies[kind].append(answer.seconds)
        else:
            self.measured.refuse(str(status), answer.body)
        if kind == "learn":
            for label in _read(_results, answer).labels if status in (200, 404, 409) else ():
                self.measured.results[label.result] += 1
        elif status == 200:
            self._scored(request, answer)

    def _scored(self, request: Request, answer: Answer) -> None:
        scored = _read(_scores, answer).rows
        first, labels = request.about
        if len(scored) != len(labels):
            raise ValueError(f"the server gave {len(scored)} scores for {len(labels)} rows.")
        self.measured.score(scored, labels)
        if self._delay is None:
            return
        for number, (row, label) in enumerate(zip(scored, labels, strict=True), first + 1):
            if label is not None and row.id is not None:
                begin = number if self._delay.in_rows else request.due + answer.seconds
                when = begin + self._delay.draw(self._random)
                heapq.heappush(self._waiting, (when, number, row.id, label))

    # Requests ----------------------------------------------------------------------------------

    def _score(self, due: float) -> Request | None:
        most = int(min(self._per_request, self._limit - self.sent))
        rows = [*itertools.islice(self._rows, most)]
        if not rows:
            self._over = True
            return None
        body: dict[str, Any] = {"rows": [row.cells for row in rows]}
        if self._delay is not None:
            ids = range(self.sent, self.sent + len(rows))
            body |= {"remember": True, "ids": [f"{self._run}-{number}" for number in ids]}
        about = self.sent, [row.label for row in rows]
        self.sent += len(rows)
        return Request("/score", _encode(body), due, about)

    def _next_label(self) -> float:
        """Return when the next label is due, as far as time tells."""
        if not self._waiting or self._delay is None or self._delay.in_rows:
            return float("inf")
        return self._waiting[0][0]

    def _label_is_due(self, now: float) -> bool:
        if not self._waiting or self._delay is None:
            return False
        return self._over or self._waiting[0][0] <= (self.sent if self._delay.in_rows else now)

    def _learn(self, now: float) -> Request:
        due, labels = now, list[dict[str, str]]()
        if self._rate is not None and self._delay and not self._delay.in_rows and not self._over:
            due = self._waiting[0][0]
        while len(labels) < self._per_request and self._label_is_due(now):
            _, _, name, label = heapq.heappop(self._waiting)
            labels.append({"id": name, "label": label})
        return Request("/learn", _encode({"labels": labels}), due)


def _begun(rows: Iterable[Row]) -> Iterator[Row]:
    """Return rows of which the first is read already, with all that has to be compiled for it."""
    rest = iter(rows)
    return itertools.chain([*itertools.islice(rest, 1)], rest)


def _read(decoder: Any, answer: Answer) -> Any:
    try:
        return decoder.decode(answer.body)
    except msgspec.DecodeError as error:
        raise ValueError(
            f"the server's answer is not that of a cbrank service ({error}): is the URL right?"
        ) from error
