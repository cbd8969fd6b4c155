"""The service itself, without the network: scores at once, labels when they are on the disk.

The event loop scores; one thread, the writer, learns. Requests that wait together are scored in one call.
"""

import asyncio
import logging
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import msgspec

from cbrank.modelfile import ModelFileError
from cbrank.serving.counts import Counts
from cbrank.serving.errors import Refused, sentence_of
from cbrank.serving.jobs import Job, Label, Once, Remember, Teach
from cbrank.serving.served import Served, begun, opened, resumed, warm_up
from cbrank.serving.store import Store
from cbrank.serving.writer import Settings, Writer
from cbrank.streams.objects import Row
from cbrank.training.model import Model

log = logging.getLogger("cbrank.serving")

_AT_ONCE = 256  # rows that the event loop scores itself; more would keep other requests waiting
_TOGETHER = 4096  # rows that are scored in one call
_EMPTY = "`rows` is empty: give at least one row."
_LONGEST = 200  # characters of an id or a key

Result = TypeVar("Result")
Said = dict[str, Any]


_ANY = Once()


class _Asked(NamedTuple):
    rows: list[Row]
    future: "asyncio.Future[_Scored]"


class _Scored(NamedTuple):
    """What a model said of rows."""

    rows: list[Said]
    served: Served  # the model


class Service:
    """A model that is served, and the store in which it lives on.

    Parameters
    ----------
    store : Store
        The store; the service closes it.
    served : Served
        The model after all events of the store.
    settings : Settings
        What is asked.
    name : str
        What the model is called.
    """

    def __init__(self, store: Store, served: Served, settings: Settings, name: str) -> None:
        self.name, self.settings, self.counts = name, settings, Counts()
        self.closing = False  # what would go on for ever ends when this is true
        self._writer = Writer(store, served, settings, self.counts, lambda: resumed(store)[0])
        self._asked: list[_Asked] = []
        self._thread = ThreadPoolExecutor(1, "scorer")
        self.began = time.time()

    # Beginning and end ---------------------------------------------------------------------------

    @classmethod
    def open(cls, model: Path, folder: Path, settings: Settings) -> Self:
        """Serve a model file, or what has become of it in the store.

        Raises
        ------
        ValueError
            If model, store or settings cannot be used; the sentence says what to do.
        """
        given = model.read_bytes()
        store = Store.open(folder, create=True)
        try:
            served = begun(store, given, model, keep_events=settings.keep_events)
            if settings.default_label is not None:
                served.objects.label_of(settings.default_label)
            warm_up(served)
            return cls(store, served, settings, _name(model))
        except BaseException:
            store.close()
            raise

    def start(self) -> None:
        """Let the writer begin."""
        self._writer.thread.start()

    def end_soon(self) -> None:
        """Let open requests know that the service ends."""
        self.closing = True

    async def close(self) -> None:
        """Do what waits, make a snapshot, and close the store."""
        self.end_soon()
        self._writer.end()
        await asyncio.to_thread(self._writer.thread.join)
        self._thread.shutdown()
        self._writer.store.close()

    # What others may know ------------------------------------------------------------------------

    @property
    def model(self) -> Model:
        """The model."""
        return self._writer.served.model

    @property
    def served(self) -> Served:
        """The model with what reads rows for it."""
        return self._writer.served

    @property
    def lock(self) -> Any:
        """Held while the model changes."""
        return self._writer.lock

    @property
    def label(self) -> str:
        """The key of the label in rows."""
        return self.served.objects.label

    @property
    def stopped(self) -> str | None:
        """Why learning has stopped, if it has."""
        return self._writer.stopped

    # Scoring -------------------------------------------------------------------------------------

    async def score(self, rows: list[Row]) -> list[Said]:
        """Return what the model says of each row.

        Parameters
        ----------
        rows : list of dict
            Rows.

        Returns
        -------
        list of dict
            ``score``, ``proba``, ``std`` and ``label`` of each row, and ``unreadable`` where cells could
            not be read.
        """
        return (await self._scored(rows)).rows

    async def _scored(self, rows: list[Row]) -> _Scored:
        begin = time.perf_counter()
        if not rows:
            raise Refused(400, _EMPTY)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Scored] = loop.create_future()
        if not self._asked:
            loop.call_soon(self._score_all)
        self._asked.append(_Asked(rows, future))
        scored = await future
        self.counts.latencies["score"].add(time.perf_counter() - begin)
        return scored

    async def answer(
        self,
        rows: list[Row],
        *,
        remember: bool = False,
        ids: Sequence[Any] | None = None,
        once: Once = _ANY,
    ) -> tuple[bytes, bool]:
        """Return scores with ids, as JSON, once the rows that are to wait are on the disk.

        Parameters
        ----------
        rows : list of dict
            Rows.
        remember : bool, default=False
            Whether the rows wait for labels from now on.
        ids : sequence of str or int, optional
            Ids of the rows; else those that they name themselves, or new ones if they wait.
        once : Once, optional
            What tells the request from others if it comes twice.

        Returns
        -------
        answer : bytes
            JSON.
        replayed : bool
            Whether it was given before.
        """
        names = self._names(rows, ids, remember)
        scored = await self._scored(rows)
        said = scored.rows
        if names is not None:
            said = [{"id": name, **one} for name, one in zip(names, said, strict=True)]
        if not remember or names is None:
            return msgspec.json.encode({"rows": said}), False
        blobs = [msgspec.json.encode(row) for row in rows]
        digest = once.digest(names if ids is not None else None, *blobs)
        return await self._done(
            Remember(
                *self._begin(once, digest),
                served=scored.served,
                ids=names,
                blobs=blobs,
                answer={"rows": said},
            )
        )

    def _names(
        self, rows: list[Row], ids: Sequence[Any] | None, remember: bool
    ) -> list[str] | None:
        """Return the ids of rows: the caller's, or new ones if they are to be remembered."""
        if ids is not None and len(ids) != len(rows):
            raise Refused(400, f"there are {len(ids)} `ids` for {len(rows)} rows.")
        key = self.served.objects.id
        if ids is None and key is not None and any(row.get(key) is not None for row in rows):
            ids = [row.get(key) for row in rows]
        if ids is None and not remember:
            return None
        names = [_id(name, at) for at, name in enumerate(ids or [None] * len(rows))]
        if len({*names}) < len(names):
            [(twin, _)] = Counter(names).most_common(1)
            raise Refused(400, f"two rows have the id {twin!r}: give each its own.")
        return names

    def _score_all(self) -> None:
        """Score the rows of all requests that wait; in a thread if they are many."""
        asked, self._asked = self._asked, []
        if sum(len(one.rows) for one in asked) > _AT_ONCE:
            asyncio.get_running_loop().run_in_executor(self._thread, self._score_apart, asked)
        else:
            _deliver(asked, self._answers(asked))

    def _score_apart(self, asked: list[_Asked]) -> None:
        answers = self._answers(asked)
        asked[0].future.get_loop().call_soon_threadsafe(_deliver, asked, answers)

    def _answers(self, asked: list[_Asked]) -> list[_Scored | Refused]:
        """Return what the model says, to each request."""
        rows, served = [row for one in asked for row in one.rows], self.served
        try:
            said = [
                one
                for begin in range(0, len(rows), _TOGETHER)
                for one in self._say(served, rows[begin : begin + _TOGETHER])
            ]
        except Exception as error:
            if len(asked) > 1:  # whose rows are they?
                return [answer for one in asked for answer in self._answers([one])]
            if isinstance(error, ValueError):
                return [Refused(400, sentence_of(error))]
            log.exception("not scored")
            return [Refused(503, f"internal error: {type(error).__name__}.")]
        answers, begin = list[_Scored | Refused](), 0
        for one in asked:
            answers.append(_Scored(said[begin : begin + len(one.rows)], served))
            begin += len(one.rows)
        return answers

    def _say(self, served: Served, rows: list[Row]) -> list[Said]:
        X = served.read(rows)
        judged = served.judge(X)
        above = (judged.scores > 0.0).tolist()
        self.counts.rows_scored += len(rows)
        self.counts.scores_above += sum(above)
        self.counts.probabilities += float(judged.probabilities.sum())
        std = [None] * len(rows) if judged.std is None else judged.std.tolist()
        labels = served.labels
        said: list[Said] = [
            {"score": score, "proba": proba, "std": deviation, "label": labels[is_above]}
            for score, proba, deviation, is_above in zip(
                judged.scores.tolist(), judged.probabilities.tolist(), std, above, strict=True
            )
        ]
        for column, places in served.unreadable(X).items():
            self.counts.cells_unreadable += len(places)
            for at in places:
                said[at].setdefault("unreadable", []).append(column)
        return said

    # Learning ------------------------------------------------------------------------------------

    async def learn(self, rows: list[Row], *, once: Once = _ANY) -> tuple[bytes, bool]:
        """Learn from rows with labels; return the answer as JSON when they are on the disk.

        The writer checks rows and labels, by the model that learns from them.

        Parameters
        ----------
        rows : list of dict
            Rows with their labels.
        once : Once, optional
            As for `answer`.

        Returns
        -------
        answer : bytes
            JSON.
        replayed : bool
            Whether it was given before.
        """
        if not rows:
            raise Refused(400, _EMPTY)
        digest = once.digest(None, *map(msgspec.json.encode, rows)) if once.key else b""
        return await self._learned(Teach(*self._begin(once, digest), objects=rows))

    async def learn_labels(
        self, labels: Sequence[tuple[Any, Any]], *, once: Once = _ANY
    ) -> tuple[bytes, bool]:
        """Learn from the labels of rows that wait; as `learn`.

        Parameters
        ----------
        labels : sequence of tuple
            The id and the label of each.
        once : Once, optional
            As for `answer`.

        Returns
        -------
        answer : bytes
            JSON.
        replayed : bool
            Whether it was given before.
        """
        if not labels:
            raise Refused(400, "`labels` is empty: give at least one label.")
        found = [(_id(name, at), label) for at, (name, label) in enumerate(labels)]
        digest = once.digest(None, msgspec.json.encode(found)) if once.key else b""
        return await self._learned(Label(*self._begin(once, digest), labels=found))

    def _begin(self, once: Once, digest: bytes) -> tuple[Any, str, str | None, bytes]:
        """Return what all jobs begin with."""
        return asyncio.get_running_loop().create_future(), once.owner, once.key, digest

    async def _learned(self, job: Job) -> tuple[bytes, bool]:
        begin = time.perf_counter()
        done = await self._done(job)
        self.counts.latencies["learn"].add(time.perf_counter() - begin)
        return done

    async def _done(self, job: Job) -> tuple[bytes, bool]:
        if job.key is not None and not _is_key(job.key):
            raise Refused(
                400, f"Idempotency-Key may have 1 to {_LONGEST} visible ASCII characters."
            )
        if self.stopped is not None:
            raise Refused(503, self.stopped)
        assert job.future is not None
        self._writer.put(job)
        return await job.future

    # The model -----------------------------------------------------------------------------------

    async def snapshot(self) -> bytes:
        """Return the model file as of now."""
        return await self._called(self._model_file)

    def _model_file(self) -> bytes:
        if self._writer.is_ahead:
            raise Refused(503, self.stopped or "the model is being restored.")
        return self.model.to_bytes()  # of the model when the writer comes to it

    async def replace(self, file: bytes, *, discard: bool = False) -> dict[str, Any]:
        """Serve another model from now on.

        Rows that wait go on waiting if they mean the same to it: the same columns and labels.

        Parameters
        ----------
        file : bytes
            A model file.
        discard : bool, default=False
            Whether to discard the rows that wait if they do not.

        Returns
        -------
        dict
            What the model is.

        Raises
        ------
        Refused
            If it is no model that can be served, or rows wait for labels that it cannot learn from.
        """
        try:
            served = await asyncio.to_thread(opened, file)
        except (ModelFileError, ValueError) as error:
            raise Refused(400, sentence_of(error)) from None
        if self.settings.default_label is not None:
            try:
                served.objects.label_of(self.settings.default_label)
            except ValueError as error:
                raise Refused(400, sentence_of(error)) from None

        discarded = await self._called(lambda: self._writer.replace(served, discard=discard))
        return {
            "columns": len(served.model.columns.numeric_ or ()),
            "labels": served.labels,
            "discarded": discarded,
        }

    async def _called(self, action: Callable[[], Result]) -> Result:
        """Have the writer do something between two transactions."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            result: Any
            try:
                result = action()
            except Refused as refused:
                loop.call_soon_threadsafe(_settle, future, None, refused)
            except Exception as error:
                log.exception("not done")
                fault = Refused(503, f"internal error: {type(error).__name__}.")
                loop.call_soon_threadsafe(_settle, future, None, fault)
            else:
                loop.call_soon_threadsafe(_settle, future, result, None)

        self._writer.call(run)
        return await future


def _settle(future: "asyncio.Future[Any]", result: Any, refused: Refused | None) -> None:
    if future.done():
        return
    if refused is not None:
        future.set_exception(refused)
    else:
        future.set_result(result)


def _deliver(asked: list[_Asked], answers: list[_Scored | Refused]) -> None:
    for one, answer in zip(asked, answers, strict=True):
        refused = answer if isinstance(answer, Refused) else None
        _settle(one.future, answer, refused)


def _id(name: Any, at: int) -> str:
    """Return the id of a row, a new one if it has none."""
    if name is None:
        return secrets.token_urlsafe(12)
    if isinstance(name, float) and name.is_integer() and abs(name) < 2**53:
        name = int(name)
    text = str(name)
    if isinstance(name, bool | float) or not 1 <= len(text) <= _LONGEST or not text.isprintable():
        raise Refused(
            400, f"row {at}: an id is a whole number, or text of 1 to {_LONGEST} characters."
        )
    return text


def _is_key(key: str) -> bool:
    return 1 <= len(key) <= _LONGEST and key.isascii() and key.isprintable() and " " not in key


def _name(path: Path) -> str:
    """Return a name for URLs."""
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in path.stem)
    return kept.strip("-") or "model"
